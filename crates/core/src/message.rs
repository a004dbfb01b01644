//! One message of a conversation, whoever said it.

use crate::block::{Block, Origin, Reply, Text, Thinking, Time};
use crate::event::{Ending, Usage};

/// The words of a nudge.
const ANSWER_NOW: &str = "Stop thinking and answer now, with what you have. Say what you are not sure of.";

/// The member by which a nudge is known again.
const NUDGE: &str = "answerNow";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    System,
    User,
    Assistant,
    /// Results of tool calls. Not a user message: it does not begin a turn.
    Tool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
    /// Who made an assistant message, and so who may read its seals. Without
    /// it the message is foreign to everybody.
    pub origin: Option<Origin>,
    pub ending: Option<Ending>,
    pub usage: Option<Usage>,
    /// A thinking field that was present but stayed empty.
    pub seen: Option<String>,
    /// The reply was cut short; what stands open in it is not sent back.
    pub interrupted: bool,
    pub at: Option<Time>,
    /// Members we do not know, as JSON, kept.
    pub extra: Vec<(String, String)>,
}

impl Message {
    pub fn new(role: Role, blocks: Vec<Block>) -> Message {
        Message {
            role,
            blocks,
            origin: None,
            ending: None,
            usage: None,
            seen: None,
            interrupted: false,
            at: None,
            extra: Vec::new(),
        }
    }

    /// What a decoder made of a reply, as it is recorded: whole, whatever the
    /// settings say.
    pub fn from_reply(reply: Reply, origin: Option<Origin>) -> Message {
        Message {
            interrupted: reply.end.ending == Ending::CutOff || reply.end.error.is_some(),
            ending: Some(reply.end.ending),
            usage: Some(reply.usage),
            seen: reply.seen,
            origin,
            ..Message::new(Role::Assistant, reply.blocks)
        }
    }

    /// What is said for the user who wants the answer instead of more thinking.
    pub fn answer_now() -> Message {
        let text = Text { text: ANSWER_NOW.to_owned(), ..Text::default() };
        let extra = vec![(NUDGE.to_owned(), "true".to_owned())];
        Message { extra, ..Message::new(Role::User, vec![Block::Text(text)]) }
    }

    /// Said in the middle of a turn, which it does not begin.
    pub fn is_nudge(&self) -> bool {
        self.role == Role::User && self.extra.iter().any(|(name, value)| name == NUDGE && value == "true")
    }

    /// The user's words that begin a turn. A summary of earlier ones begins none.
    pub fn is_question(&self) -> bool {
        self.role == Role::User && !self.is_nudge() && !crate::compact::is_summary(self)
    }

    /// The thoughts of a message, in order.
    pub fn thinking(&self) -> impl Iterator<Item = &Thinking> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Thinking(thinking) => Some(thinking),
            Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
        })
    }

    /// All readable thinking as one text, for providers that want a single
    /// field; none where there is nothing to read.
    pub fn thinking_text(&self) -> Option<String> {
        let texts: Vec<&str> = self.thinking().map(Thinking::text).filter(|text| !text.trim().is_empty()).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    pub fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::ToolCall(_)))
    }
}
