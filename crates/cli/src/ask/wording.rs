//! The wording of notices, and of how a turn ended.

use aside_core::repetition::Repetition;
use aside_core::turn::{Declined, TurnEnd, TurnNotice};

use crate::ExitStatus;
use crate::report::{Report, counted};

/// The exact text that requirement T6 demands.
pub(crate) const THINKING_ONLY: &str = "Model provided reasoning but no response. Try rephrasing your question.";

pub(crate) fn turn_notice(notice: &TurnNotice) -> String {
    match notice {
        TurnNotice::Repaired { row, repair, refusal } => {
            let refusal = refusal.lines().next().unwrap_or("");
            format!("the provider refused ({row}: {refusal}); retried after: {}", repair.as_str().replace('_', " "))
        }
        TurnNotice::BrokenCall { name } => format!("the arguments of `{name}` are not valid JSON; it was not run"),
    }
}

/// The warning about thinking that repeats itself.
pub(crate) fn repetition_note(found: &Repetition) -> String {
    format!("note: {found} (Ctrl+C stops it)")
}

pub(crate) fn compacted(summarised: usize) -> String {
    format!("replaced {} with a summary", counted(summarised as u64, "older message"))
}

/// The exit code and the message for the end of a turn.
pub(crate) fn turn_end(end: &TurnEnd) -> (ExitStatus, Option<Report>) {
    let failed = |what: String, hint: &str| (ExitStatus::ProviderFailed, Some(Report::new(what).hint(hint)));
    match end {
        TurnEnd::Answered => (ExitStatus::Done, None),
        TurnEnd::ThinkingOnly { for_length: false } => (ExitStatus::Done, Some(Report::notice(THINKING_ONLY))),
        TurnEnd::ThinkingOnly { for_length: true } => {
            let hint = "it stopped at the output limit: raise request.maxTokens or lower reasoning.effort";
            (ExitStatus::Done, Some(Report::notice(THINKING_ONLY).hint(hint)))
        }
        TurnEnd::Length => {
            let notice = Report::notice("the answer is cut at the output limit");
            (ExitStatus::Done, Some(notice.hint("raise it with --set request.maxTokens=N, or ask it to continue")))
        }
        TurnEnd::Empty => failed("the model sent nothing at all".to_owned(), "ask again, or another model with -m"),
        TurnEnd::Declined(Declined::ByModel) => {
            failed("the model declined to answer".to_owned(), "put it differently, or ask another model with -m")
        }
        TurnEnd::Declined(Declined::ByFilter) => {
            failed("a content filter stopped the answer".to_owned(), "put it differently, or ask another model with -m")
        }
        TurnEnd::CutOff => {
            let what = "the answer stops before the provider said that it was done";
            failed(what.to_owned(), "what came is above; ask again")
        }
        TurnEnd::Oversized { most } => failed(
            format!("the answer was cut at {most} bytes, which is reply.maxBytes"),
            "what came is kept; raise it with --set reply.maxBytes=N, 0 for no limit",
        ),
        TurnEnd::Failed(error) => {
            let status = error.status.map(|status| format!(" ({status})")).unwrap_or_default();
            failed(format!("the provider failed{status}: {}", error.message), hint_for_status(error.status))
        }
        TurnEnd::Unreachable(what) => failed(what.clone(), "check the network and the provider's base_url"),
        TurnEnd::Interrupted => (ExitStatus::Interrupted, None),
        TurnEnd::OutOfSteps(steps) => failed(
            format!("stopped after {} of tools", counted(u64::from(*steps), "step")),
            "ask it to continue if it was making progress",
        ),
    }
}

fn hint_for_status(status: Option<u16>) -> &'static str {
    match status {
        Some(401 | 403) => "check the key: aside doctor says which variable it is read from",
        Some(402) => "the account has no credit, or the model is not in its plan",
        Some(404) => "check the model's name and the provider's base_url",
        Some(413) => "the conversation is too long for this model",
        Some(429) => "the provider limits how often it is asked; wait, or ask another model with -m",
        Some(status) if status >= 500 => "the fault is the provider's; try again later, or ask another model with -m",
        _ => "aside encode shows the request; --set changes what is sent",
    }
}
