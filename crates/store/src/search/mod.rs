//! Full-text search: queries and results.
//!
//! A query is a list of words, which must all occur, and of `"quoted words"`, which
//! must follow each other. `pars*` is any word that starts with it. Any text is a valid query.

pub(crate) mod query;
pub(crate) mod rank;
pub(crate) mod snippet;
pub(crate) mod words;

pub use query::takes_star;

use std::ops::Range;

use aside_core::block::Time;

use crate::session::{MessageId, SessionId};

/// A search query. `SearchQuery::new(text)` searches everything.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchQuery {
    pub text: String,
    pub scope: SearchScope,
    /// Part of the name of the model that made the message. Prompts and tool results
    /// have no model.
    pub model: Option<String>,
    pub since: Option<Time>,
    pub session: Option<SessionId>,
    /// The maximum number of hits to return; more may be counted.
    pub limit: usize,
}

impl SearchQuery {
    pub fn new(text: impl Into<String>) -> SearchQuery {
        SearchQuery { text: text.into(), scope: SearchScope::All, model: None, since: None, session: None, limit: 20 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchScope {
    All,
    Only(HitKind),
}

/// Which kind of block a hit is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitKind {
    /// Text of the user or the system prompt.
    Prompt,
    Thinking,
    Answer,
    /// A tool call with its arguments, or a tool result.
    Tool,
}

impl HitKind {
    pub const ALL: [HitKind; 4] = [HitKind::Prompt, HitKind::Thinking, HitKind::Answer, HitKind::Tool];

    pub fn as_str(self) -> &'static str {
        match self {
            HitKind::Prompt => "prompt",
            HitKind::Thinking => "thinking",
            HitKind::Answer => "answer",
            HitKind::Tool => "tool",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown place to search in `{0}`; use prompt, thinking, answer, tool or all")]
pub struct UnknownScope(String);

impl std::str::FromStr for SearchScope {
    type Err = UnknownScope;

    fn from_str(word: &str) -> Result<SearchScope, UnknownScope> {
        if word == "all" {
            return Ok(SearchScope::All);
        }
        let kind = HitKind::ALL.into_iter().find(|kind| kind.as_str() == word);
        kind.map(SearchScope::Only).ok_or_else(|| UnknownScope(word.to_owned()))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct HitList {
    pub hits: Vec<SearchHit>,
    pub order: HitOrder,
    pub count: HitCount,
}

/// The order of hits. Ranking a word that is everywhere would be slow and of
/// little use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitOrder {
    BestFirst,
    NewestFirst,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitCount {
    Exactly(usize),
    /// Counting stopped here.
    AtLeast(usize),
}

/// One matching block, with its position.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    pub session: SessionId,
    pub title: Option<String>,
    pub message: MessageId,
    /// The index of the block in its message.
    pub block: usize,
    pub kind: HitKind,
    pub model: Option<String>,
    pub at: Option<Time>,
    /// The text around the first match, on one line.
    pub snippet: String,
    /// The ranges to highlight in the snippet.
    pub marks: Vec<Range<usize>>,
    /// The message is part of the conversation; others were undone or summarised.
    pub is_current: bool,
    /// Where the first match is in the block's text; none if it is in the name of
    /// the tool.
    pub match_range: Option<Range<usize>>,
}
