//! `aside usage`: tokens, seconds and money, by model, day or session.

use std::io::Write;

use aside_core::block::Origin;
use aside_core::dialect::Dialects;
use aside_core::safe_json;
use aside_core::screen::neutral_line;
use aside_store::Store;
use aside_store::ledger::{By, Cost, Counting, Group, LedgerLine, LedgerQuery, Price, Terms, Tokens};
use clap::ValueEnum;
use serde_json::json;

use crate::output;
use crate::providers::{Providers, environment};
use crate::report::{Report, tell};
use crate::settings::Overrides;
use crate::{Outcome, keep, times, user_files};

/// Show what was used: thinking, answer and cached tokens, seconds, cost
///
/// Counters are the providers' own; an estimate carries `~`. Cost is shown for
/// models with a `price` in config.toml.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value_t = Grouped::Model, value_name = "GROUP")]
    by: Grouped,

    /// Only since then: 7d, 12h, 2026-11-15
    #[arg(long, value_name = "T")]
    since: Option<String>,

    /// Only this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Grouped {
    Model,
    Day,
    Session,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let store = keep::store()?;
    let dialects = user_files::dialects()?;
    let loaded = Overrides::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
    let since = arguments.since.as_deref().map(|word| {
        let hint = "7d, 12h, 30m, 2026-11-15 or 2026-11-15T10:00";
        times::parse(word, keep::now()).ok_or_else(|| Report::new(format!("`{word}` is no time")).hint(hint))
    });
    let session = arguments.session.as_deref().map(|word| store.find(word).map_err(|error| keep::trouble(&error)));
    let query = LedgerQuery {
        by: match arguments.by {
            Grouped::Model => By::Model,
            Grouped::Day => By::Day,
            Grouped::Session => By::Session,
        },
        session: session.transpose()?,
        since: since.transpose()?,
        terms: &|origin| terms(&providers, &dialects, origin),
        minutes_ahead: times::minutes_ahead(),
    };
    let lines = store.ledger(&query).map_err(|error| keep::trouble(&error))?;
    let mut out = output::stdout();
    if arguments.json {
        for line in &lines {
            writeln!(out, "{}", safe_json::to_string(&as_json(line)))?;
        }
        return Ok(Outcome::Done);
    }
    if lines.is_empty() {
        tell("nothing was used yet");
        return Ok(Outcome::Done);
    }
    writeln!(
        out,
        "{:<36} {:>7} {:>10} {:>10} {:>10} {:>10} {:>8}  cost",
        "", "replies", "input", "cached", "thinking", "answer", "seconds"
    )?;
    for line in &lines {
        let seconds = line.seconds.map_or(String::new(), |seconds| format!("{seconds:.0}"));
        let (input, cached, thinking, answer) =
            (figure(line.input), figure(line.cached), figure(line.thinking), figure(line.answer));
        let name = neutral_line(&name(&line.group));
        writeln!(
            out,
            "{name:<36} {:>7} {input:>10} {cached:>10} {thinking:>10} {answer:>10} {seconds:>8}  {}",
            line.n_replies,
            cost(line.cost)
        )?;
    }
    Ok(Outcome::Done)
}

/// What whoever made a message asks for it, and how it counts.
pub(crate) fn terms(providers: &Providers<'_>, dialects: &Dialects, origin: &Origin) -> Terms {
    let dialect = origin.dialect.as_deref().and_then(|id| dialects.get(id));
    let included = dialect.is_none_or(|dialect| dialect.rules(origin.model.as_deref()).usage.included);
    let counting = if included { Counting::InOutput } else { Counting::BesideOutput };
    let name = origin.provider.as_deref().zip(origin.model.as_deref()).map(|(id, model)| format!("{id}/{model}"));
    let price = name.and_then(|name| providers.resolve(&name, None).ok()).and_then(|provider| provider.price);
    let price = price.map(|price| Price { input: price.input, output: price.output, cached: price.cached });
    Terms { price, counting }
}

pub(crate) fn name(group: &Group) -> String {
    match group {
        Group::Turn { session, turn } => format!("{session} #{turn}"),
        Group::Model(model) => model.clone().unwrap_or_else(|| "unknown".to_owned()),
        Group::Day(day) => {
            let millis = u64::try_from(*day).unwrap_or_default().saturating_mul(86_400_000);
            times::rfc3339(aside_core::block::Time(millis)).split('T').next().unwrap_or_default().to_owned()
        }
        Group::Session { id, title } => format!("{id} {}", title.as_deref().unwrap_or("")).chars().take(36).collect(),
    }
}

pub(crate) fn figure(tokens: Tokens) -> String {
    format!("{}{}", if tokens.is_estimate { "~" } else { "" }, tokens.count)
}

pub(crate) fn cost(cost: Cost) -> String {
    match cost {
        Cost::Unknown => String::new(),
        Cost::AtLeast(amount) => format!("over {amount:.4}"),
        Cost::Known(amount) => format!("{amount:.4}"),
    }
}

fn as_json(line: &LedgerLine) -> serde_json::Value {
    let tokens = |tokens: Tokens| json!({ "count": tokens.count, "estimated": tokens.is_estimate });
    let (amount, exact) = match line.cost {
        Cost::Unknown => (None, false),
        Cost::AtLeast(amount) => (Some(amount), false),
        Cost::Known(amount) => (Some(amount), true),
    };
    json!({
        "group": name(&line.group), "replies": line.n_replies,
        "input": tokens(line.input), "cached": tokens(line.cached),
        "thinking": tokens(line.thinking), "answer": tokens(line.answer),
        "seconds": line.seconds, "thinkingSeconds": line.thinking_seconds,
        "cost": amount, "costIsExact": exact,
    })
}
