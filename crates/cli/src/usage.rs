//! `aside usage`: tokens, seconds and cost by model, day or session.

use std::io::Write;

use aside_core::safe_json;
use aside_core::terminal_text::terminal_safe_line;
use aside_session::UserFolders;
use aside_session::providers::{Providers, env_var};
use aside_session::usage::{cost_text, group_name, pricing_terms, token_count};
use aside_session::{session_recorder, times};
use aside_store::Store;
use aside_store::usage::{Cost, GroupBy, TokenTotal, UsageQuery, UsageRow};
use clap::ValueEnum;
use serde_json::json;

use crate::ExitStatus;
use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;

/// Show usage: thinking and answer tokens, tokens read from and written to the cache, seconds, cost
///
/// Counts come from the providers; estimates are marked with `~`. Cost is shown in
/// US dollars for models whose price is known, from the table of models or from
/// config.toml; `over` marks a sum that lacks some replies.
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
    let store = session_recorder::open_store(&UserFolders::from_environment())?;
    let dialects = UserFolders::from_environment().dialects()?;
    let loaded = OverrideArguments::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let since = arguments.since.as_deref().map(times::parse_past).transpose()?;
    let session = arguments.session.as_deref().map(|word| store.find(word)).transpose();
    let session = session.map_err(|error| session_recorder::store_error(&error))?;
    let query = UsageQuery {
        group_by: match arguments.by {
            UsageGrouping::Model => GroupBy::Model,
            UsageGrouping::Day => GroupBy::Day,
            UsageGrouping::Session => GroupBy::Session,
        },
        session,
        since,
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
        "{:<36} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}  cost",
        "", "replies", "input", "cached", "written", "thinking", "answer", "seconds"
    )?;
    for line in &lines {
        let seconds = line.seconds.map_or(String::new(), |seconds| format!("{seconds:.0}"));
        let (input, thinking, answer) = (token_count(line.input), token_count(line.thinking), token_count(line.answer));
        let (cached, written) = (token_count(line.cached), token_count(line.cache_write));
        let name = terminal_safe_line(&group_name(&line.group));
        writeln!(
            out,
            "{name:<36} {:>7} {input:>10} {cached:>10} {written:>10} {thinking:>10} {answer:>10} {seconds:>8}  {}",
            line.n_replies,
            cost_text(line.cost)
        )?;
    }
    Ok(ExitStatus::Done)
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
        "cacheWrite": tokens(line.cache_write),
        "thinking": tokens(line.thinking), "answer": tokens(line.answer),
        "seconds": line.seconds, "thinkingSeconds": line.thinking_seconds,
        "cost": amount, "costIsExact": exact,
    })
}
