//! `aside usage`: tokens, seconds and cost by model, day or session.

use std::io::Write;

use aside_core::block::Origin;
use aside_core::dialect::Dialects;
use aside_core::safe_json;
use aside_core::terminal_text::terminal_safe_line;
use aside_store::Store;
use aside_store::usage::{
    BillingRules, Cost, GroupBy, ThinkingCount, TokenPrice, TokenTotal, UsageGroup, UsageQuery, UsageRow,
};
use clap::ValueEnum;
use serde_json::json;

use crate::output;
use crate::providers::{Providers, env_var};
use crate::report::{Report, print_notice};
use crate::settings::Overrides;
use crate::{ExitStatus, session_recorder, times, user_files};

/// Show usage: thinking, answer and cached tokens, seconds, cost
///
/// Counts come from the providers; estimates are marked with `~`. Cost is shown
/// for models with a `price` in config.toml.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value_t = UsageGrouping::Model, value_name = "GROUP")]
    by: UsageGrouping,

    /// Only usage since then: 7d, 12h, 2026-11-15
    #[arg(long, value_name = "T")]
    since: Option<String>,

    /// Only this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UsageGrouping {
    Model,
    Day,
    Session,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let store = session_recorder::open_store()?;
    let dialects = user_files::dialects()?;
    let loaded = Overrides::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let since = arguments.since.as_deref().map(|word| {
        let hint = "7d, 12h, 30m, 2026-11-15 or 2026-11-15T10:00";
        times::parse(word, session_recorder::now())
            .ok_or_else(|| Report::new(format!("`{word}` is not a time")).hint(hint))
    });
    let session = arguments
        .session
        .as_deref()
        .map(|word| store.find(word).map_err(|error| session_recorder::store_error(&error)));
    let query = UsageQuery {
        group_by: match arguments.by {
            UsageGrouping::Model => GroupBy::Model,
            UsageGrouping::Day => GroupBy::Day,
            UsageGrouping::Session => GroupBy::Session,
        },
        session: session.transpose()?,
        since: since.transpose()?,
        billing: &|origin| pricing_terms(&providers, &dialects, origin),
        utc_offset_minutes: times::utc_offset_minutes(),
    };
    let lines = store.usage(&query).map_err(|error| session_recorder::store_error(&error))?;
    let mut out = output::stdout();
    if arguments.json {
        for line in &lines {
            writeln!(out, "{}", safe_json::to_string(&as_json(line)))?;
        }
        return Ok(ExitStatus::Done);
    }
    if lines.is_empty() {
        print_notice("no usage recorded yet");
        return Ok(ExitStatus::Done);
    }
    writeln!(
        out,
        "{:<36} {:>7} {:>10} {:>10} {:>10} {:>10} {:>8}  cost",
        "", "replies", "input", "cached", "thinking", "answer", "seconds"
    )?;
    for line in &lines {
        let seconds = line.seconds.map_or(String::new(), |seconds| format!("{seconds:.0}"));
        let (input, cached, thinking, answer) =
            (token_count(line.input), token_count(line.cached), token_count(line.thinking), token_count(line.answer));
        let name = terminal_safe_line(&group_name(&line.group));
        writeln!(
            out,
            "{name:<36} {:>7} {input:>10} {cached:>10} {thinking:>10} {answer:>10} {seconds:>8}  {}",
            line.n_replies,
            cost_text(line.cost)
        )?;
    }
    Ok(ExitStatus::Done)
}

/// The price of a message's model, and whether its output count includes thinking.
pub(crate) fn pricing_terms(providers: &Providers<'_>, dialects: &Dialects, origin: &Origin) -> BillingRules {
    let dialect = origin.dialect.as_deref().and_then(|id| dialects.get(id));
    let included = dialect.is_none_or(|dialect| dialect.rules(origin.model.as_deref()).usage.included);
    let counting = if included { ThinkingCount::InOutput } else { ThinkingCount::SeparateFromOutput };
    let name = origin.provider.as_deref().zip(origin.model.as_deref()).map(|(id, model)| format!("{id}/{model}"));
    let price = name.and_then(|name| providers.resolve(&name, None).ok()).and_then(|provider| provider.price);
    let price = price.map(|price| TokenPrice { input: price.input, output: price.output, cached: price.cached });
    BillingRules { price, thinking_count: counting }
}

pub(crate) fn group_name(group: &UsageGroup) -> String {
    match group {
        UsageGroup::Turn { session, turn } => format!("{session} #{turn}"),
        UsageGroup::Model(model) => model.clone().unwrap_or_else(|| "unknown".to_owned()),
        UsageGroup::Day(day) => {
            let millis = u64::try_from(*day).unwrap_or_default().saturating_mul(86_400_000);
            times::rfc3339(aside_core::block::Time(millis)).split('T').next().unwrap_or_default().to_owned()
        }
        UsageGroup::Session { id, title } => {
            format!("{id} {}", title.as_deref().unwrap_or("")).chars().take(36).collect()
        }
    }
}

pub(crate) fn token_count(tokens: TokenTotal) -> String {
    format!("{}{}", if tokens.is_estimate { "~" } else { "" }, tokens.count)
}

pub(crate) fn cost_text(cost: Cost) -> String {
    match cost {
        Cost::Unknown => String::new(),
        Cost::AtLeast(amount) => format!("over {amount:.4}"),
        Cost::Known(amount) => format!("{amount:.4}"),
    }
}

fn as_json(line: &UsageRow) -> serde_json::Value {
    let tokens = |tokens: TokenTotal| json!({ "count": tokens.count, "estimated": tokens.is_estimate });
    let (amount, exact) = match line.cost {
        Cost::Unknown => (None, false),
        Cost::AtLeast(amount) => (Some(amount), false),
        Cost::Known(amount) => (Some(amount), true),
    };
    json!({
        "group": group_name(&line.group), "replies": line.n_replies,
        "input": tokens(line.input), "cached": tokens(line.cached),
        "thinking": tokens(line.thinking), "answer": tokens(line.answer),
        "seconds": line.seconds, "thinkingSeconds": line.thinking_seconds,
        "cost": amount, "costIsExact": exact,
    })
}
