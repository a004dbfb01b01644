//! The states of a tool call, and which of its arguments describe it.

use serde::{Deserialize, Serialize};

/// Arguments that describe a call, the most useful first.
pub const SUBJECT_ARGUMENTS: [&str; 8] = ["command", "path", "file_path", "pattern", "query", "url", "name", "city"];

/// Those of them that name a file or a folder.
pub const PATH_ARGUMENTS: [&str; 2] = ["path", "file_path"];

/// How results begin that aside wrote itself. The model gets them as text, and the store keeps only that text.
const SYNTHETIC_RESULTS: [(&str, CallState); 4] = [
    ("denied", CallState::Denied),
    ("stopped by the user", CallState::Stopped),
    ("[ended by the user before it began]", CallState::NotRun),
    ("interrupted before it was allowed", CallState::NotRun),
];

/// How the output of a command ends that the user stopped. Other failed commands end with a line of ours too, so no
/// command can pretend it.
const STOPPED_COMMAND: &str = "[ended by the user]";

/// How the result of a call begins that created a file. It has no diff.
const CREATED_FILE: &str = "created `";

/// How far a tool call is, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    /// The model is still writing the arguments.
    Streaming,
    Waiting,
    /// The user is asked whether it may run.
    Asked,
    Running,
    Done,
    Failed,
    /// The user or a rule denied it.
    Denied,
    /// The user stopped the turn while it ran.
    Stopped,
    /// The turn ended before it ran.
    NotRun,
}

/// Whether this is what a command wrote until the user stopped it.
pub fn is_stopped_command(result: &str) -> bool {
    result.ends_with(STOPPED_COMMAND)
}

/// Whether this is the result of a call that created a file.
pub fn is_created_file(result: &str) -> bool {
    result.starts_with(CREATED_FILE)
}

impl CallState {
    /// How a call ended, judging by its result.
    pub fn of_result(is_error: bool, text: &str) -> CallState {
        let known = SYNTHETIC_RESULTS.iter().find(|(begins, _)| text.starts_with(begins));
        match (is_error, known) {
            (false, _) => CallState::Done,
            (true, None) if is_stopped_command(text) => CallState::Stopped,
            (true, None) => CallState::Failed,
            (true, Some((_, state))) => *state,
        }
    }

    /// The turn is over, so a call that has no result never gets one.
    pub fn settled(self) -> CallState {
        match self {
            CallState::Streaming | CallState::Waiting | CallState::Asked | CallState::Running => CallState::NotRun,
            CallState::Done | CallState::Failed | CallState::Denied | CallState::Stopped | CallState::NotRun => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_from_the_result() {
        #[rustfmt::skip]
        let cases = [
            ("a success",           false, "3 lines",                                            CallState::Done),
            ("a success that reads like a denial", false, "denied by the user; nothing was done", CallState::Done),
            ("a failure",           true,  "[exit code 1]",                                      CallState::Failed),
            ("a denial",            true,  "denied by the user; nothing was done",               CallState::Denied),
            ("a stopped command",   true,  "begun\n[ended by the user]",                        CallState::Stopped),
            ("a command stopped before it began", true, "[ended by the user before it began]", CallState::NotRun),
            ("a failure that prints the words", true, "[ended by the user]\n[exit code 1]",   CallState::Failed),
            ("stopped",             true,  "stopped by the user before it ended",                CallState::Stopped),
            ("stopped at the question", true, "interrupted before it was allowed; nothing was done", CallState::NotRun),
        ];
        for (name, is_error, text, expected) in cases {
            assert_eq!(CallState::of_result(is_error, text), expected, "{name}");
        }
    }

    #[test]
    fn a_call_without_a_result_did_not_run() {
        assert_eq!(CallState::Running.settled(), CallState::NotRun);
        assert_eq!(CallState::Asked.settled(), CallState::NotRun);
        assert_eq!(CallState::Denied.settled(), CallState::Denied);
    }
}
