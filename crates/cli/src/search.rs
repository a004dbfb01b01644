//! `aside search`: full-text search over all sessions.

use std::io::{IsTerminal, Write};

use aside_core::safe_json;
use aside_core::terminal_text::{terminal_safe, terminal_safe_line};
use aside_session::session_recorder;
use aside_session::times;
use aside_session::{UserFolders, nothing_found};
use aside_store::Store;
use aside_store::search::{HitCount, HitList, HitOrder, SearchHit, SearchQuery, SearchScope};
use serde_json::json;

use crate::ExitStatus;
use crate::report::print_notice;

/// Search prompts, answers, thinking and tool calls
///
/// All words must occur; "quoted words" must follow each other. Only whole words
/// match, and accents count; `pars*` finds all that start with it. Every hit names its session and
/// message, and says if that was undone. The first MiB of each text is searched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside search parse_header
  aside search 'pars*'
  aside search '\"race condition\"' --in thinking --since 7d
  aside search 思考 --json")]
pub(crate) struct Arguments {
    /// The words to find
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,

    /// Search only here: prompt, thinking, answer, tool or all
    #[arg(long = "in", default_value = "all", value_name = "PLACE")]
    place: SearchScope,

    /// Only messages of this model; a part of its name is enough
    #[arg(long, value_name = "M")]
    model: Option<String>,

    /// Only messages since then: 7d, 12h, 2026-11-15
    #[arg(long, value_name = "T")]
    since: Option<String>,

    /// Only in this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// The maximum number of hits
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    most: usize,

    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let store = session_recorder::open_store(&UserFolders::from_environment())?;
    let since = arguments.since.as_deref().map(times::parse_past).transpose()?;
    let session = arguments.session.as_deref().map(|word| store.find(word)).transpose();
    let session = session.map_err(|error| session_recorder::store_error(&error))?;
    let query = SearchQuery {
        scope: arguments.place,
        model: arguments.model.clone(),
        since,
        session,
        limit: arguments.most,
        ..SearchQuery::new(arguments.query.join(" "))
    };
    let found = store.search(&query).map_err(|error| session_recorder::store_error(&error))?;
    let mut out = std::io::stdout().lock();
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    for hit in &found.hits {
        match arguments.json {
            true => writeln!(out, "{}", safe_json::to_string(&as_json(hit)))?,
            false => writeln!(out, "{}", as_text(hit, colour))?,
        }
    }
    if !arguments.json {
        print_notice(&count_line(&found, &query.text));
    }
    Ok(ExitStatus::Done)
}

/// The number of hits and their order.
fn count_line(found: &HitList, words: &str) -> String {
    let shown = found.hits.len();
    let count = match found.count {
        HitCount::Exactly(0) => return nothing_found(words),
        HitCount::Exactly(count) => format!("{shown} of {count}"),
        HitCount::AtLeast(count) => format!("{shown} of more than {count}"),
    };
    match found.order {
        HitOrder::BestFirst => format!("{count}, best first"),
        HitOrder::NewestFirst => format!("{count}, newest first: too many to rank"),
    }
}

fn as_text(hit: &SearchHit, colour: bool) -> String {
    let at = hit.at.map(times::local).unwrap_or_default();
    let title = hit.title.as_deref().unwrap_or("");
    let snippet = if colour { highlighted(hit) } else { terminal_safe(&hit.snippet).into_owned() };
    let kind = hit.kind.as_str();
    let undone = if hit.is_current { "" } else { " (undone or summarised)" };
    format!("{} {} #{} {kind:<8} {}{undone}\n    {snippet}", hit.session, at, hit.message, terminal_safe_line(title))
}

/// Prints matches in bold. Each part is sanitised separately, because the byte
/// ranges refer to the original text.
fn highlighted(hit: &SearchHit) -> String {
    let mut out = String::new();
    let mut from = 0;
    for mark in &hit.marks {
        let (before, word) = (hit.snippet.get(from..mark.start), hit.snippet.get(mark.clone()));
        out.push_str(&terminal_safe(before.unwrap_or_default()));
        out.push_str(&format!("\x1b[1m{}\x1b[0m", terminal_safe(word.unwrap_or_default())));
        from = mark.end;
    }
    out.push_str(&terminal_safe(hit.snippet.get(from..).unwrap_or_default()));
    out
}

fn as_json(hit: &SearchHit) -> serde_json::Value {
    let marks: Vec<[usize; 2]> = hit.marks.iter().map(|mark| [mark.start, mark.end]).collect();
    json!({
        "session": hit.session.as_str(),
        "title": hit.title,
        "message": hit.message.0,
        "block": hit.block,
        "kind": hit.kind.as_str(),
        "model": hit.model,
        "at": hit.at.map(times::rfc3339),
        "snippet": hit.snippet,
        "marks": marks,
        "current": hit.is_current,
    })
}
