//! What tools may do without a question.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What tools may do without a question. Rules and answers of the user come on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolMode {
    /// Changes and commands ask.
    #[default]
    Ask,
    /// Files inside the working directory are changed without a question, unless
    /// they are protected. Commands ask.
    AcceptEdits,
    /// The model is offered only tools that read.
    ReadOnly,
}

impl ToolMode {
    /// All modes, in the order in which a key cycles through them.
    pub const ALL: [ToolMode; 3] = [ToolMode::Ask, ToolMode::AcceptEdits, ToolMode::ReadOnly];

    /// Their names, in the same order.
    pub const WORDS: &'static [&'static str] = &["ask", "accept-edits", "read-only"];

    /// Its name in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            ToolMode::Ask => "ask",
            ToolMode::AcceptEdits => "accept-edits",
            ToolMode::ReadOnly => "read-only",
        }
    }

    /// The mode after this one.
    pub fn next(self) -> ToolMode {
        match self {
            ToolMode::Ask => ToolMode::AcceptEdits,
            ToolMode::AcceptEdits => ToolMode::ReadOnly,
            ToolMode::ReadOnly => ToolMode::Ask,
        }
    }
}

impl fmt::Display for ToolMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode `{0}`")]
pub struct UnknownToolMode(pub String);

impl FromStr for ToolMode {
    type Err = UnknownToolMode;

    fn from_str(word: &str) -> Result<ToolMode, UnknownToolMode> {
        let found = ToolMode::ALL.into_iter().find(|mode| mode.as_str() == word);
        found.ok_or_else(|| UnknownToolMode(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t23_every_mode_is_reached_by_cycling_and_parsed_by_its_name() {
        let mut mode = ToolMode::default();
        for (expected, word) in ToolMode::ALL.into_iter().zip(ToolMode::WORDS) {
            assert_eq!((mode, mode.as_str(), word.parse()), (expected, *word, Ok(expected)));
            mode = mode.next();
        }
        assert_eq!(mode, ToolMode::default());
        assert_eq!("yes".parse::<ToolMode>(), Err(UnknownToolMode("yes".to_owned())));
    }
}
