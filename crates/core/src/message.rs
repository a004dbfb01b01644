//! One message of a conversation.

use crate::block::{Block, Origin, Reply, Text, Thinking, Time};
use crate::event::{Ending, Usage};
use crate::extra::Extra;
use crate::safe_json;
use crate::turn::TurnEnd;

/// The text of an answer-now message.
const ANSWER_NOW_TEXT: &str = "Stop thinking and answer now, with what you have. Say what you are not sure of.";

/// The member of a message's JSON that marks an answer-now message.
pub const ANSWER_NOW_MEMBER: &str = "answerNow";

/// The member of a message's JSON that says how the turn ended whose last message this is.
const TURN_END_MEMBER: &str = "turnEnd";

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The user. Starts a turn.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls. Not a user message: it does not start a turn.
    Tool,
}

/// One message of a conversation, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The content, in order.
    pub blocks: Vec<Block>,
    /// Who produced an assistant message, and so who may read its seals.
    /// Without it, the message counts as foreign to every provider.
    pub origin: Option<Origin>,
    /// Why the reply stopped. None for messages that are not replies.
    pub ending: Option<Ending>,
    /// The provider's token counts. None for messages that are not replies.
    pub usage: Option<Usage>,
    /// The name of a thinking field that was present but stayed empty.
    pub empty_thinking_field: Option<String>,
    /// The reply was interrupted. Incomplete blocks are not sent back.
    pub interrupted: bool,
    /// When it was recorded. None if unknown.
    pub at: Option<Time>,
    /// Members of the reply that have no neutral form.
    pub extra: Extra,
    /// Members of this message's JSON that we do not know, kept as JSON.
    pub unknown_members: Vec<(String, String)>,
}

impl Message {
    /// A message without origin, usage or time.
    pub fn new(role: Role, blocks: Vec<Block>) -> Message {
        Message {
            role,
            blocks,
            origin: None,
            ending: None,
            usage: None,
            empty_thinking_field: None,
            interrupted: false,
            at: None,
            extra: Extra::default(),
            unknown_members: Vec::new(),
        }
    }

    /// A reply as it is recorded: complete, independent of any setting.
    pub fn from_reply(reply: Reply, origin: Option<Origin>) -> Message {
        Message {
            interrupted: reply.end.ending == Ending::CutOff || reply.end.error.is_some(),
            ending: Some(reply.end.ending),
            usage: Some(reply.usage),
            empty_thinking_field: reply.empty_thinking_field,
            extra: reply.extra,
            origin,
            ..Message::new(Role::Assistant, reply.blocks)
        }
    }

    /// The message sent if the user wants the answer now instead of more
    /// thinking.
    pub fn answer_now() -> Message {
        let text = Text { text: ANSWER_NOW_TEXT.to_owned(), ..Text::default() };
        let unknown_members = vec![(ANSWER_NOW_MEMBER.to_owned(), "true".to_owned())];
        Message { unknown_members, ..Message::new(Role::User, vec![Block::Text(text)]) }
    }

    /// Whether this is an answer-now message, which continues a turn instead of
    /// starting one.
    pub fn is_answer_now(&self) -> bool {
        self.role == Role::User
            && self.unknown_members.iter().any(|(name, value)| name == ANSWER_NOW_MEMBER && value == "true")
    }

    /// How the turn ended, if this was its last message and that says more than the message itself. It does not count
    /// if the turn was continued or asked again after it.
    pub fn turn_end(&self) -> Option<TurnEnd> {
        let (_, json) = self.unknown_members.iter().find(|(name, _)| name == TURN_END_MEMBER)?;
        serde_json::from_str(json).ok()
    }

    /// Notes how the turn ended whose last message this is.
    pub fn set_turn_end(&mut self, end: &TurnEnd) {
        self.unknown_members.retain(|(name, _)| name != TURN_END_MEMBER);
        if end.is_kept() {
            self.unknown_members.push((TURN_END_MEMBER.to_owned(), safe_json::to_string(end)));
        }
    }

    /// Whether this user message starts a turn. A summary does not.
    pub fn begins_turn(&self) -> bool {
        self.role == Role::User && !self.is_answer_now() && !crate::compaction::is_summary(self)
    }

    /// The thinking blocks of a message, in order.
    pub fn thinking(&self) -> impl Iterator<Item = &Thinking> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Thinking(thinking) => Some(thinking),
            Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
        })
    }

    /// All readable thinking as one text, for providers that expect a single
    /// field. None if there is nothing to read.
    pub fn thinking_text(&self) -> Option<String> {
        let texts: Vec<&str> = self.thinking().map(Thinking::text).filter(|text| !text.trim().is_empty()).collect();
        (!texts.is_empty()).then(|| texts.concat())
    }

    /// Whether the model calls a tool in it.
    pub fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Block::ToolCall(_)))
    }
}
