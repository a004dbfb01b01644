//! The messages of `ask`: notices, and how a turn ended.

use aside_core::repetition::Repetition;
use aside_core::terminal_text::terminal_safe_line;
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_front::wording::{self, EndNotice, HintStyle, Severity};

use super::outcome::TurnOutcome;
use crate::ExitStatus;

/// The notice on one line.
pub(crate) fn turn_notice(notice: &TurnNotice) -> String {
    let text = wording::turn_notice(notice);
    std::iter::once(text.what).chain(text.detail).collect::<Vec<_>>().join("; ")
}

/// The warning about thinking that repeats itself.
pub(crate) fn repetition_note(found: &Repetition) -> String {
    format!("note: {found} (Ctrl+C stops it)")
}

/// The exit code and the message for the end of a turn.
pub(crate) fn turn_end(end: &TurnOutcome) -> (ExitStatus, Option<EndNotice>) {
    let end = match end {
        TurnOutcome::Ended(end) => end,
        TurnOutcome::WrongForm(mismatch) => {
            let what = format!("the answer does not fit the schema: {}", terminal_safe_line(&mismatch.to_string()));
            let hint = "ask again, or ask another model; the answer is printed and stored as it came".to_owned();
            let notice = EndNotice { severity: Severity::Error, what, hint: Some(hint) };
            return (ExitStatus::ProviderFailed, Some(notice));
        }
    };
    let status = match end {
        TurnEnd::Answered | TurnEnd::Length => ExitStatus::Done,
        TurnEnd::ThinkingOnly { .. } => ExitStatus::ThinkingOnly,
        TurnEnd::Declined(_) => ExitStatus::Declined,
        TurnEnd::Interrupted => return (ExitStatus::Interrupted, None),
        TurnEnd::Empty
        | TurnEnd::CutOff
        | TurnEnd::Oversized { .. }
        | TurnEnd::Failed(_)
        | TurnEnd::Unreachable(_)
        | TurnEnd::OutOfSteps(_)
        | TurnEnd::OutOfMoney { .. } => ExitStatus::ProviderFailed,
    };
    (status, wording::turn_end(end, HintStyle::CommandLine))
}
