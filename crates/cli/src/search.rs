//! `aside search`: words in everything that was ever said or thought.

use std::io::{IsTerminal, Write};

use aside_core::safe_json;
use aside_core::screen::{neutral, neutral_line};
use aside_store::Store;
use aside_store::search::{Count, Found, Hit, Order, Query, Scope};
use serde_json::json;

use crate::Outcome;
use crate::keep;
use crate::report::{Report, tell};
use crate::times;

/// Find words in prompts, answers, thinking and tools
///
/// All words must occur; "quoted words" must follow each other. Every hit names
/// the session and message to jump to. The first MiB of each text is searched.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside search parse_header
  aside search '\"race condition\"' --in thinking --since 7d
  aside search 思考 --json")]
pub(crate) struct Arguments {
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,

    /// Where: prompt, thinking, answer, tool or all
    #[arg(long = "in", default_value = "all", value_name = "PLACE")]
    place: Scope,

    /// Only what this model made; a part of its name is enough
    #[arg(long, value_name = "M")]
    model: Option<String>,

    /// Only since then: 7d, 12h, 2026-11-15
    #[arg(long, value_name = "T")]
    since: Option<String>,

    /// Only in this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// At most so many hits
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N")]
    most: usize,

    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let store = keep::store()?;
    let since = arguments.since.as_deref().map(|word| {
        let hint = "7d, 12h, 30m, 2026-11-15 or 2026-11-15T10:00";
        times::parse(word, keep::now()).ok_or_else(|| Report::new(format!("`{word}` is no time")).hint(hint))
    });
    let session = arguments.session.as_deref().map(|word| store.find(word).map_err(|error| keep::trouble(&error)));
    let query = Query {
        scope: arguments.place,
        model: arguments.model.clone(),
        since: since.transpose()?,
        session: session.transpose()?,
        most: arguments.most,
        ..Query::new(arguments.query.join(" "))
    };
    let found = store.search(&query).map_err(|error| keep::trouble(&error))?;
    let mut out = std::io::stdout().lock();
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    for hit in &found.hits {
        match arguments.json {
            true => writeln!(out, "{}", safe_json::to_string(&as_json(hit)))?,
            false => writeln!(out, "{}", as_text(hit, colour))?,
        }
    }
    if !arguments.json {
        tell(&told(&found));
    }
    Ok(Outcome::Done)
}

/// How many there are, and in which order.
fn told(found: &Found) -> String {
    let shown = found.hits.len();
    let count = match found.count {
        Count::Exactly(0) => return "nothing was found".to_owned(),
        Count::Exactly(count) => format!("{shown} of {count}"),
        Count::AtLeast(count) => format!("{shown} of more than {count}"),
    };
    match found.order {
        Order::BestFirst => format!("{count}, best first"),
        Order::NewestFirst => format!("{count}, newest first: too many to rank"),
    }
}

fn as_text(hit: &Hit, colour: bool) -> String {
    let at = hit.at.map(times::local).unwrap_or_default();
    let title = hit.title.as_deref().unwrap_or("");
    let snippet = if colour { highlighted(hit) } else { neutral(&hit.snippet).into_owned() };
    let kind = hit.kind.as_str();
    format!("{} {} #{} {kind:<8} {}\n    {snippet}", hit.session, at, hit.message, neutral_line(title))
}

/// The matches in bold. Every piece is made safe by itself, so that the marks fit.
fn highlighted(hit: &Hit) -> String {
    let mut out = String::new();
    let mut from = 0;
    for mark in &hit.marks {
        let (before, word) = (hit.snippet.get(from..mark.start), hit.snippet.get(mark.clone()));
        out.push_str(&neutral(before.unwrap_or_default()));
        out.push_str(&format!("\x1b[1m{}\x1b[0m", neutral(word.unwrap_or_default())));
        from = mark.end;
    }
    out.push_str(&neutral(hit.snippet.get(from..).unwrap_or_default()));
    out
}

fn as_json(hit: &Hit) -> serde_json::Value {
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
    })
}
