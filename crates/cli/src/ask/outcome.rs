//! The last line of `ask --json`, and `--stats`.

use aside_core::json_schema::SchemaMismatch;
use aside_core::model_table::Cost;
use aside_core::turn::TurnEnd;
use aside_session::single_turn::{RunStats, SingleTurn};
use aside_session::usage::dollars;
use serde_json::{Value, json};

use crate::ExitStatus;

/// How a turn of `ask` ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnOutcome {
    Ended(TurnEnd),
    /// An answer came, but not in the form that `--schema` wants.
    WrongForm(SchemaMismatch),
}

impl TurnOutcome {
    pub(crate) fn of(end: TurnEnd, turn: &SingleTurn) -> TurnOutcome {
        let answered = matches!(end, TurnEnd::Answered | TurnEnd::Length);
        match turn.schema_mismatch().filter(|_| answered) {
            Some(mismatch) => TurnOutcome::WrongForm(mismatch),
            None => TurnOutcome::Ended(end),
        }
    }
}

/// The `failed` event for the end of a turn without an answer.
pub(crate) fn failed(end: &TurnOutcome, exit: ExitStatus, message: &str) -> Value {
    let (outcome, status, code) = match end {
        TurnOutcome::WrongForm(_) => ("error", None, Some("schema_mismatch")),
        TurnOutcome::Ended(end) => end_fields(end),
    };
    json!({
        "event": "failed", "outcome": outcome, "exit": exit as u8, "status": status, "code": code, "message": message,
    })
}

/// The outcome, the HTTP status and the code.
fn end_fields(end: &TurnEnd) -> (&'static str, Option<u16>, Option<&str>) {
    match end {
        TurnEnd::Answered | TurnEnd::Length => ("error", None, None),
        TurnEnd::ThinkingOnly { .. } => ("thinking_only", None, None),
        TurnEnd::Empty => ("empty", None, None),
        TurnEnd::Declined(_) => ("refused", None, None),
        TurnEnd::Interrupted => ("interrupted", None, None),
        TurnEnd::Failed(error) => ("error", error.status, error.code.as_deref()),
        TurnEnd::CutOff => ("error", None, Some("cut_off")),
        TurnEnd::Oversized { .. } => ("error", None, Some("oversized")),
        TurnEnd::Unreachable(_) => ("error", None, Some("unreachable")),
        TurnEnd::OutOfSteps(_) => ("error", None, Some("max_steps")),
        TurnEnd::OutOfMoney { .. } => ("error", None, Some("max_cost")),
    }
}

/// The `failed` event for a mistake that was found before anything was sent.
pub(crate) fn failed_early(message: &str) -> Value {
    json!({
        "event": "failed", "outcome": "error", "exit": ExitStatus::UsageError as u8, "status": null, "code": null,
        "message": message,
    })
}

/// The `stats` event.
pub(crate) fn stats_json(stats: &RunStats) -> Value {
    let totals = &stats.totals;
    json!({
        "event": "stats",
        "input": totals.usage.input, "output": totals.usage.output, "reasoning": totals.usage.reasoning,
        "cached": totals.usage.cached, "cacheWrite": totals.usage.cache_write,
        "cost": totals.cost.amount(), "costIsExact": totals.cost.is_exact(),
        "seconds": stats.took.as_secs_f64(), "thinkingSeconds": totals.thinking_ms.map(|ms| ms as f64 / 1000.0),
        "requests": totals.requests, "repairs": totals.repairs,
    })
}

/// One line for people. A count that the provider did not report is `?`.
pub(crate) fn stats_text(stats: &RunStats) -> String {
    let totals = &stats.totals;
    let count = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    let cost = match totals.cost {
        Cost::Unknown => "cost unknown".to_owned(),
        cost @ (Cost::AtLeast(_) | Cost::Known(_)) => dollars(cost).unwrap_or_default(),
    };
    format!(
        "stats: {} in, {} out ({} thinking), {} cached, {} written, {cost}, {:.1} s, {} requests",
        count(totals.usage.input),
        count(totals.usage.output),
        count(totals.usage.reasoning),
        count(totals.usage.cached),
        count(totals.usage.cache_write),
        stats.took.as_secs_f64(),
        totals.requests,
    )
}
