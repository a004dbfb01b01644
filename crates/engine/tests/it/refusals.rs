//! Refusals as users met them, in the folder that `ASIDE_CORPUS` names: each is answered once, in
//! the middle of a tool loop, to a request that contains what it complains about. `refusals.txt`
//! says what is sent and how the next request differs; after an intended change run with
//! `UPDATE_EXPECT=1` and read the diff.

mod body_difference;
mod catalogue;
mod conversations;
mod wordings;
mod wrappers;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, Reply, Text};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{DialectSource, Dialects};
use aside_core::event::{Ending, ReplyEnd};
use aside_core::message::Message;
use aside_core::parameters::{Parameters, ToolChoice};
use aside_core::rules::AnswerMode;
use aside_core::settings::{Layer, Settings};
use aside_core::wire::{Encoder, ReplyHead, whole_reply};
use aside_engine::exchange::{ExchangeRequest, StopSignals};
use aside_engine::{Endpoint, Exchange, Http, Redactor, Timeouts};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::exchange_support::TestSink;
use crate::scripted_server::{ScriptedServer, answer};
use crate::session_support::dialects;
use conversations::{HistoryVariant, conversation};
use wrappers::{WRAPPERS, Wrapper};

const ANSWER: &str = "The answer.";

/// A refusal from the corpus.
struct RefusalRow {
    id: String,
    status: u16,
    body: String,
    dialect: String,
    model: String,
    is_negative: bool,
}

/// A line of the table: how the request is made that the refusal is about, and what changes.
#[derive(Debug, Clone, Default)]
struct Setup {
    dialect: String,
    model: String,
    settings: Vec<(String, String)>,
    /// Lines of a dialect file, for what our own dialects never send.
    dialect_lines: Vec<String>,
    history: HistoryVariant,
    change: String,
}

fn corpus_rows() -> Option<Vec<RefusalRow>> {
    let folder = std::env::var_os("ASIDE_CORPUS").map(PathBuf::from)?;
    let text = std::fs::read_to_string(folder.join("refusals.jsonl")).unwrap();
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        RefusalRow {
            id: text("id"),
            status: u16::try_from(row["status"].as_u64().unwrap()).unwrap(),
            body: text("body"),
            dialect: text("dialect"),
            model: text("model"),
            is_negative: text("kind") == "negative",
        }
    };
    Some(text.lines().map(row).collect())
}

fn table_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/refusals.txt")
}

/// The table: `id | dialect | model | settings | dialect lines | history | change`.
fn table() -> BTreeMap<String, Setup> {
    let text = std::fs::read_to_string(table_path()).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.map(parse_line).collect()
}

fn parse_line(line: &str) -> (String, Setup) {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [id, dialect, model, settings, lines, history, change] = columns[..] else { panic!("seven columns: {line}") };
    let list =
        |text: &str| text.split(';').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let settings: Vec<String> = list(settings);
    let pair = |setting: &String| {
        let (name, value) = setting.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    let setup = Setup {
        dialect: dialect.to_owned(),
        model: model.to_owned(),
        settings: settings.iter().map(pair).collect(),
        dialect_lines: list(lines),
        history: history.parse().unwrap(),
        change: change.to_owned(),
    };
    (id.to_owned(), setup)
}

/// What happened after a refusal.
struct Healed {
    repaired: Vec<String>,
    answered: bool,
    /// The difference between the first and the second body.
    change: String,
    n_requests: usize,
    bodies: Vec<Value>,
}

fn tools() -> Vec<ToolSpec> {
    let parameters = r#"{"type":"object","properties":{"k":{"type":"integer"}}}"#.to_owned();
    vec![ToolSpec::new("get", "Gets a value.", parameters)]
}

async fn refuse_once(
    row: &RefusalRow,
    setup: &Setup,
    wrapper: &Wrapper,
    dialects: &Arc<Dialects>,
    http: &Http,
) -> Healed {
    let dialects = Arc::clone(dialects);
    let id = if setup.dialect.is_empty() { &row.dialect } else { &setup.dialect };
    let model = if setup.model.is_empty() { &row.model } else { &setup.model };
    let dialect = dialects.get(id).unwrap_or_else(|| panic!("{}: no dialect {id}", row.id)).clone();
    let reply = Reply {
        blocks: vec![Block::Text(Text { text: ANSWER.to_owned(), ..Text::default() })],
        end: ReplyEnd { ending: Ending::Stop, error: None },
        ..Reply::default()
    };
    let head = ReplyHead::new("r1", model, 1);
    let accepted = whole_reply(dialect.protocol, dialect.rules(Some(model)), &head, &reply);
    let (status, body) = wrapper.wrap(row.status, &row.body);
    let refused = answer(&format!("{status} Refused"), "x-should-retry: false\r\n", &body);
    let server = ScriptedServer::start(vec![refused, answer("200 OK", "", &accepted)]).await;
    let endpoint = Endpoint {
        provider: id.clone(),
        access: dialect.access.clone().at_the_protocols_path(),
        dialect,
        model: model.clone(),
        base_url: server.url.clone(),
        origin_url: Some(server.url.clone()),
        key: None,
        headers: Vec::new(),
        extra_body: serde_json::Map::new(),
        account: None,
    };
    let mut settings = Settings::new();
    let mut parameters = Parameters::new();
    for (name, value) in &setup.settings {
        match name.as_str() {
            "tool_choice" => parameters.tool_choice = ToolChoice::Required,
            _ => settings.set(Layer::Session, name, value).unwrap(),
        }
    }
    let messages = conversation(&endpoint, setup.history);
    let stored = messages.clone();
    let tools = tools();
    let request = ExchangeRequest {
        endpoint: &endpoint,
        messages: messages.iter().collect::<Vec<&Message>>(),
        entries: Vec::new(),
        tools: &tools,
        settings: &settings,
        parameters: &parameters,
        answer_mode: AnswerMode::Normal,
        repairs: &[],
    };
    let cancel = CancellationToken::new();
    let stop = StopSignals { cancel: &cancel, answer_now: None };
    let exchange = Exchange { dialects, http: http.clone(), redactor: Redactor::default() };
    let mut sink = TestSink::default();
    let outcome = exchange.run(&request, &mut Encoder::new(), stop, &mut sink).await;
    assert_eq!(messages, stored, "{}: what is stored stays", row.id);
    let bodies = server.requests();
    let answered = outcome.result.is_ok() && sink.text() == ANSWER;
    let repaired = sink.lines.iter().filter_map(|line| line.strip_prefix("repaired ").map(str::to_owned)).collect();
    let change = match bodies.as_slice() {
        [first, second, ..] => body_difference::difference(first, second),
        _ => String::new(),
    };
    Healed { repaired, answered, change, n_requests: bodies.len(), bodies }
}

fn test_http() -> Http {
    Http::new(Timeouts { connect: Duration::from_secs(5), idle: Duration::from_secs(10), ..Timeouts::default() })
}

/// The built-in dialects, with the lines of a setup over one of them.
fn dialects_for(row: &RefusalRow, setup: &Setup) -> Arc<Dialects> {
    if setup.dialect_lines.is_empty() {
        return dialects();
    }
    let id = if setup.dialect.is_empty() { &row.dialect } else { &setup.dialect };
    let path = format!("{id}.toml");
    let text = format!("id = \"{id}\"\n{}\n", setup.dialect_lines.join("\n"));
    let dialects = Dialects::with_user_files(&[DialectSource { path: &path, text: &text }]);
    Arc::new(dialects.unwrap_or_else(|error| panic!("{}: {error}", row.id)))
}

#[tokio::test]
async fn e11_real_refusals_are_repaired_with_the_smallest_change() {
    let Some(rows) = corpus_rows() else {
        println!("ASIDE_CORPUS is not set: no refusals to repair");
        return;
    };
    let table = table();
    let (mut failures, mut changes, mut not_handled) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut n_handled = 0;
    let http = test_http();
    for row in &rows {
        let setup = table.get(&row.id).cloned().unwrap_or_default();
        let dialects = dialects_for(row, &setup);
        let mut handled = true;
        for wrapper in WRAPPERS {
            let healed = refuse_once(row, &setup, wrapper, &dialects, &http).await;
            let name = format!("{} {}", row.id, wrapper.name);
            let Healed { repaired, answered, change, n_requests, .. } = &healed;
            if row.is_negative {
                if !repaired.is_empty() || *n_requests != 1 {
                    failures.push(format!("{name}: a negative was repaired by {repaired:?}: {change}"));
                    handled = false;
                }
                continue;
            }
            let is_handled = repaired.len() == 1 && *answered && *n_requests == 2;
            handled &= is_handled;
            if wrapper.name == "plain" {
                changes.insert(row.id.clone(), if is_handled { change.clone() } else { "not handled".to_owned() });
            }
            let expected = if setup.change.is_empty() { "?" } else { setup.change.as_str() };
            let found = if is_handled { change.as_str() } else { "not handled" };
            if found != expected {
                let repairs = repaired.join(", ");
                failures.push(format!("{name}: expected {expected}, found {found} ({repairs}, {n_requests} requests)"));
            }
        }
        n_handled += usize::from(handled);
        if !handled {
            not_handled.push(row.id.as_str());
        }
    }
    println!("{n_handled} of {} handled; not handled: {}", rows.len(), not_handled.join(" "));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        update_table(&changes);
        return;
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// Writes the changes into the last column.
fn update_table(changes: &BTreeMap<String, String>) {
    let text = std::fs::read_to_string(table_path()).unwrap();
    let mut out = String::new();
    for line in text.lines() {
        let id = line.split('|').next().unwrap_or_default().trim();
        match (changes.get(id), line.rsplit_once('|')) {
            (Some(change), Some((before, _))) => writeln!(out, "{}| {change}", before).unwrap(),
            _ => writeln!(out, "{line}").unwrap(),
        }
    }
    std::fs::write(table_path(), out).unwrap();
}
