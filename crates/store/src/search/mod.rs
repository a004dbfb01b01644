//! Full-text search: what may be asked, and what comes back.
//!
//! A query is plain words, which must all occur, and `"quoted words"`, which
//! must follow each other. There is no syntax that could be wrong.

pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod snippet;
pub(crate) mod words;

use std::ops::Range;

use aside_core::block::Time;

use crate::session::{MessageId, SessionId};

/// A search. `Query::new(text)` looks everywhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub text: String,
    pub scope: Scope,
    /// A part of the name of the model that made the message; what a person or
    /// a tool said was made by none.
    pub model: Option<String>,
    pub since: Option<Time>,
    pub session: Option<SessionId>,
    /// How many hits come back; more may be counted.
    pub most: usize,
}

impl Query {
    pub fn new(text: impl Into<String>) -> Query {
        Query { text: text.into(), scope: Scope::All, model: None, since: None, session: None, most: 20 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    Only(Kind),
}

/// What a hit stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What a person or the system prompt said.
    Prompt,
    Thinking,
    Answer,
    /// A call with its arguments, or its result.
    Tool,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Prompt, Kind::Thinking, Kind::Answer, Kind::Tool];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Prompt => "prompt",
            Kind::Thinking => "thinking",
            Kind::Answer => "answer",
            Kind::Tool => "tool",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown place to search in `{0}`; use prompt, thinking, answer, tool or all")]
pub struct UnknownScope(String);

impl std::str::FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(word: &str) -> Result<Scope, UnknownScope> {
        if word == "all" {
            return Ok(Scope::All);
        }
        let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.map(Scope::Only).ok_or_else(|| UnknownScope(word.to_owned()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub hits: Vec<Hit>,
    pub order: Order,
    pub count: Count,
}

/// How hits are ordered. Ranking a word that is everywhere would take long and
/// tell little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    BestFirst,
    NewestFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Exactly(usize),
    /// Counting stopped here.
    AtLeast(usize),
}

/// One block that matches, with the way to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub session: SessionId,
    pub title: Option<String>,
    pub message: MessageId,
    /// Which block of the message, counted from 0.
    pub block: usize,
    pub kind: Kind,
    pub model: Option<String>,
    pub at: Option<Time>,
    /// The surroundings of the first match, on one line.
    pub snippet: String,
    /// What to highlight in the snippet.
    pub marks: Vec<Range<usize>>,
    /// Where the first match stands in the block's text; none where the name of
    /// a tool matched.
    pub place: Option<Range<usize>>,
}
