//! Sessions and their messages, as the store hands them out.

use std::collections::BTreeMap;
use std::fmt;

use aside_core::block::{Block, Origin, Time};
use aside_core::conversation::{Conversation, Tool};
use aside_core::message::{Message, Role};
use aside_core::text::split_within;

/// The name of a session: short, random, never reused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) String);

impl SessionId {
    /// An id that somebody wrote down. Whether the session exists is found out
    /// when it is used.
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

/// A message of a store. Later messages have greater ids, whatever the clock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub i64);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What is known of a session when it begins.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewSession {
    pub title: Option<String>,
    pub model: Option<String>,
    pub settings: BTreeMap<String, String>,
    pub tools: Vec<Tool>,
    /// What a file said of its conversation that nobody here knows, as JSON.
    pub extra: Vec<(String, String)>,
    pub at: Option<Time>,
}

/// What can be changed about a session; its messages never are.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    Title(String),
    Model(Option<String>),
    Settings(BTreeMap<String, String>),
    Tools(Vec<Tool>),
}

/// A session without its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub id: SessionId,
    pub title: Option<String>,
    pub model: Option<String>,
    pub settings: BTreeMap<String, String>,
    pub tools: Vec<Tool>,
    pub extra: Vec<(String, String)>,
    pub head: Option<MessageId>,
    pub n_messages: u64,
    pub created: Time,
    pub changed: Time,
}

/// One line of a list of sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub id: SessionId,
    pub title: Option<String>,
    pub model: Option<String>,
    pub n_messages: u64,
    pub created: Time,
    pub changed: Time,
}

/// Below which message a new one goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parent {
    /// The end of the current branch.
    Head,
    /// Any earlier message: the branch that went on from it stays.
    Message(MessageId),
    /// Nothing: the message begins a branch of its own.
    Nothing,
}

/// A reply that begins to stream.
#[derive(Debug, Clone, PartialEq)]
pub struct NewReply {
    pub parent: Parent,
    pub origin: Option<Origin>,
    pub at: Option<Time>,
}

/// Which part of the current branch is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The newest message wanted; the head where none is named.
    pub from: Option<MessageId>,
    pub most: usize,
}

/// A message in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    pub id: MessageId,
    pub parent: Option<MessageId>,
    /// The name an imported message came with.
    pub name: Option<String>,
    pub message: Message,
}

/// The end of a branch, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Tail {
    pub messages: Vec<Kept>,
    /// Where to go on towards the beginning; none when it is reached.
    pub earlier: Option<MessageId>,
}

/// A whole session: every branch, in the order it was said.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub conversation: Conversation,
    /// The id of each entry of the history, in its order.
    pub ids: Vec<MessageId>,
}

const LONGEST_TITLE: usize = 60;

/// A title out of a prompt: its first line with words in it, cut at a word.
/// Only a user's text makes a title, so a thought never does.
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
        | Block::Image(_)
        | Block::Unmodelled(_) => None,
    })?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    // Of a long line no more is looked at than a title can hold.
    let (line, _) = split_within(line, 16 * LONGEST_TITLE);
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= LONGEST_TITLE {
        return Some(line);
    }
    let cut: String = line.chars().take(LONGEST_TITLE).collect();
    let at_word = cut.rsplit_once(' ').map(|(before, _)| before).filter(|before| before.chars().count() > 20);
    Some(format!("{}…", at_word.unwrap_or(&cut)))
}

#[cfg(test)]
mod tests {
    use aside_core::block::{Content, Text, Thinking};

    use super::*;

    fn text(text: &str) -> Block {
        Block::Text(Text { text: text.to_owned(), ..Text::default() })
    }

    #[test]
    fn a_title_is_the_first_line_of_a_prompt_and_never_a_thought() {
        let thought = Block::Thinking(Thinking {
            content: Content::Open { text: "hm".to_owned() },
            source: "thinking".to_owned(),
            id: None,
            items: Vec::new(),
            span: None,
            native: None,
        });
        #[rustfmt::skip]
        let cases = [
            ("plain",        Role::User,      vec![text("  fix   the build ")],   Some("fix the build".to_owned())),
            ("second line",  Role::User,      vec![text("\n\n why?\nbecause")],   Some("why?".to_owned())),
            ("long",         Role::User,      vec![text(&"word ".repeat(20))],    Some(format!("{}…", ["word"; 12].join(" ")))),
            ("one long word", Role::User,     vec![text(&"字".repeat(80))],        Some(format!("{}…", "字".repeat(60)))),
            ("blank",        Role::User,      vec![text(" \n ")],                 None),
            ("thought",      Role::Assistant, vec![thought.clone(), text("so")],  None),
            ("thought only", Role::User,      vec![thought],                      None),
        ];
        for (name, role, blocks, title) in cases {
            assert_eq!(title_of(&Message::new(role, blocks)), title, "{name}");
        }
    }
}
