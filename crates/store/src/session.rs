//! Sessions and messages, as the store returns them.

use std::collections::BTreeMap;
use std::fmt;

use aside_core::block::{Block, Origin, Time};
use aside_core::conversation::{Conversation, ToolSpec};
use aside_core::message::{Message, Role};
use aside_core::title::title_of_text;

/// The id of a session: short, random, never reused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) String);

impl SessionId {
    /// Wraps an id from outside. Whether the session exists is checked on use.
    pub fn new(id: impl Into<String>) -> SessionId {
        SessionId(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a stored message. Ids grow in insertion order, independent of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub i64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The folder that a session belongs to: where its tools worked when it began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFolder {
    pub path: String,
    /// The root of the folder's repository; the folder itself without one.
    pub root: String,
}

/// A session to create.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewSession {
    /// An id of [`SqliteStore::unused_id`](crate::SqliteStore::unused_id); by default a new one.
    pub id: Option<SessionId>,
    pub title: Option<String>,
    pub model: Option<String>,
    pub settings: BTreeMap<String, String>,
    pub tools: Vec<ToolSpec>,
    /// Unknown header members of an imported file, as JSON.
    pub extra: Vec<(String, String)>,
    /// None if it belongs to no folder.
    pub folder: Option<SessionFolder>,
    pub at: Option<Time>,
}

/// A change to a session's metadata. Messages never change.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionChange {
    Title(String),
    Model(Option<String>),
    Settings(BTreeMap<String, String>),
    Tools(Vec<ToolSpec>),
    Folder(SessionFolder),
}

/// A session without its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionInfo {
    pub id: SessionId,
    pub title: Option<String>,
    pub model: Option<String>,
    pub settings: BTreeMap<String, String>,
    pub tools: Vec<ToolSpec>,
    pub extra: Vec<(String, String)>,
    pub folder: Option<SessionFolder>,
    pub head: Option<MessageId>,
    pub created: Time,
    pub changed: Time,
}

/// When a session was begun and last used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionDates {
    pub created: Time,
    pub changed: Time,
}

/// A session that was imported from another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSession {
    pub id: SessionId,
    pub title: Option<String>,
}

/// One line of a list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    pub id: SessionId,
    pub title: Option<String>,
    pub model: Option<String>,
    pub folder: Option<SessionFolder>,
    pub created: Time,
    pub changed: Time,
}

/// How long the current branch of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BranchLength {
    /// All messages, the system prompt included.
    pub n_messages: u64,
    /// Those that the user wrote, without the summaries of a compaction.
    pub n_prompts: u64,
}

/// The parent of a new message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The end of the current branch.
    Head,
    /// Any earlier message. Its existing branches stay.
    Message(MessageId),
    /// No parent: the message starts a branch of its own.
    Nothing,
}

/// A reply that starts to stream.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReply {
    pub parent: Parent,
    pub origin: Option<Origin>,
    pub at: Option<Time>,
}

/// Which part of the current branch to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageQuery {
    /// The newest message of the page; the head if none.
    pub from: Option<MessageId>,
    pub limit: usize,
}

/// A message with its position in the history.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionMessage {
    pub id: MessageId,
    pub parent: Option<MessageId>,
    /// The id that the message had in an imported file.
    pub name: Option<String>,
    /// The reply is still being recorded, or its recorder crashed.
    pub is_running: bool,
    pub message: Message,
}

/// Consecutive messages of a branch, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct MessagePage {
    pub messages: Vec<SessionMessage>,
    /// The newest message of the previous page; none at the beginning.
    pub earlier: Option<MessageId>,
}

/// A whole session with every branch, in insertion order.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSession {
    pub conversation: Conversation,
    /// The stored id of each history entry, in the same order.
    pub ids: Vec<MessageId>,
}

/// Derives a title from a prompt: its first line that is not blank, cut at a word.
/// Only the user's text is used, never thinking.
pub fn title_of(message: &Message) -> Option<String> {
    if message.role != Role::User {
        return None;
    }
    let text = message.blocks.iter().find_map(|block| match block {
        Block::Text(text) if !text.text.trim().is_empty() => Some(text.text.as_str()),
        Block::Text(_)
        | Block::Thinking(_)
        | Block::ToolCall(_)
        | Block::ToolResult(_)
        | Block::Media(_)
        | Block::Unmodelled(_) => None,
    })?;
    title_of_text(text)
}

#[cfg(test)]
mod tests {
    use aside_core::block::{Text, Thinking, ThinkingContent};

    use super::*;

    fn text(text: &str) -> Block {
        Block::Text(Text { text: text.to_owned(), ..Text::default() })
    }

    #[test]
    fn a_title_is_the_first_line_of_a_prompt_and_never_thinking() {
        let thinking = Block::Thinking(Thinking::new(ThinkingContent::Open { text: "hm".to_owned() }, "thinking"));
        #[rustfmt::skip]
        let cases = [
            ("plain",        Role::User,      vec![text("  fix   the build ")],   Some("fix the build".to_owned())),
            ("second line",  Role::User,      vec![text("\n\n why?\nbecause")],   Some("why?".to_owned())),
            ("long",         Role::User,      vec![text(&"word ".repeat(20))],    Some(format!("{}…", ["word"; 12].join(" ")))),
            ("one long word", Role::User,     vec![text(&"字".repeat(80))],        Some(format!("{}…", "字".repeat(60)))),
            ("blank",        Role::User,      vec![text(" \n ")],                 None),
            ("thinking",      Role::Assistant, vec![thinking.clone(), text("so")], None),
            ("thinking only", Role::User,      vec![thinking],                     None),
        ];
        for (name, role, blocks, title) in cases {
            assert_eq!(title_of(&Message::new(role, blocks)), title, "{name}");
        }
    }
}
