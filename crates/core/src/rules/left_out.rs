//! What of a request cannot be sent, and why. Thinking is not listed here: its
//! decisions say what happens to it.

use std::fmt;

use crate::block::{Arguments, Block};
use crate::message::Role;
use crate::protocol::Protocol;

/// A part of a request that the body does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Where it is in the neutral request: `messages[2].blocks[0]`, or the name of
    /// a parameter.
    pub path: String,
    /// Why it is not sent.
    pub reason: LeftOutReason,
}

/// Why a part of a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The protocol has no place for such a block in a message of this role.
    NoPlace {
        /// The protocol of the receiving provider.
        protocol: Protocol,
        /// The kind of block, in the plural.
        kind: &'static str,
        /// The role of its message.
        role: Role,
    },
    /// Content of a kind that only its maker understands.
    OtherProvider {
        /// The provider and model that made it, in words.
        maker: String,
    },
    /// A tool call without a result, or a result without a call.
    NotPaired,
    /// The arguments of a call are not a JSON object, so the call is sent without them.
    BrokenArguments,
    /// Tool results of the protocol cannot say that the tool failed.
    NoErrorFlag {
        /// The protocol of the receiving provider.
        protocol: Protocol,
    },
    /// The protocol has no such parameter.
    NoParameter {
        /// The protocol of the receiving provider.
        protocol: Protocol,
    },
    /// The protocol has the parameter, but not this value.
    NoSuchValue {
        /// The protocol of the receiving provider.
        protocol: Protocol,
        /// The value.
        value: String,
    },
    /// A member that only another protocol has.
    OtherProtocol {
        /// The protocol that has it.
        protocol: Protocol,
    },
    /// This model refuses the parameter.
    Refused,
    /// This model refuses the parameter while it thinks.
    RefusedWhileThinking,
    /// It has no meaning while thinking is off.
    ThinkingOff,
    /// This provider takes an effort or a budget, and the effort is sent.
    NotWithEffort,
    /// The block that it refers to is not sent, or cannot be marked.
    NoBlock,
    /// It has no meaning without tools.
    NoTools,
    /// Something else in the request determines the value.
    AlreadySet,
}

impl LeftOut {
    /// Something at a path of the neutral request.
    pub fn new(path: impl Into<String>, reason: LeftOutReason) -> LeftOut {
        LeftOut { path: path.into(), reason }
    }

    /// A block, or with `member` a part of it.
    pub(crate) fn of_block(message: usize, block: usize, member: &str, reason: LeftOutReason) -> LeftOut {
        LeftOut { path: format!("messages[{message}].blocks[{block}]{member}"), reason }
    }

    /// Whether a user who was told of one need not be told of the other: the same
    /// parameter, or a block elsewhere, for the same reason.
    pub fn is_same_kind(&self, other: &LeftOut) -> bool {
        let in_message = |path: &str| path.starts_with("messages[");
        let same_place = self.path == other.path || (in_message(&self.path) && in_message(&other.path));
        same_place && self.reason == other.reason
    }

    /// Whether a session says it without being asked. The text of a tool result
    /// says that the tool failed, with or without a flag.
    pub fn needs_notice(&self) -> bool {
        !matches!(self.reason, LeftOutReason::NoErrorFlag { .. })
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not sent: {}", self.path, self.reason)
    }
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftOutReason::NoPlace { protocol, kind, role } => {
                write!(f, "the {protocol} protocol has no {kind} in {} messages", role_word(*role))
            }
            LeftOutReason::OtherProvider { maker } => write!(f, "only its maker can read it ({maker})"),
            LeftOutReason::NotPaired => f.write_str("a call without its result, or a result without its call"),
            LeftOutReason::BrokenArguments => f.write_str("the arguments are not a JSON object"),
            LeftOutReason::NoErrorFlag { protocol } => {
                write!(f, "tool results of the {protocol} protocol have no error flag")
            }
            LeftOutReason::NoParameter { protocol } => write!(f, "the {protocol} protocol has no such parameter"),
            LeftOutReason::NoSuchValue { protocol, value } => {
                write!(f, "the {protocol} protocol has no value `{value}` for it")
            }
            LeftOutReason::OtherProtocol { protocol } => write!(f, "only the {protocol} protocol has it"),
            LeftOutReason::Refused => f.write_str("this model does not accept it"),
            LeftOutReason::RefusedWhileThinking => f.write_str("this model does not accept it while it thinks"),
            LeftOutReason::ThinkingOff => f.write_str("thinking is switched off"),
            LeftOutReason::NotWithEffort => {
                f.write_str("this provider takes an effort or a budget, not both, and the effort is sent")
            }
            LeftOutReason::NoBlock => f.write_str("its block is not sent, or cannot be marked"),
            LeftOutReason::NoTools => f.write_str("the request has no tools"),
            LeftOutReason::AlreadySet => f.write_str("another part of the request determines it"),
        }
    }
}

fn role_word(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Why a protocol cannot represent a block in a message of this role; None if it
/// can. The writers of the protocols and this table must agree.
pub(super) fn no_place(protocol: Protocol, role: Role, block: &Block) -> Option<LeftOutReason> {
    let (kind, fits) = match block {
        Block::Text(_) => ("text", has_text(protocol, role)),
        Block::Image(_) => ("images", has_images(protocol, role)),
        Block::ToolCall(_) => ("tool calls", role == Role::Assistant || has_block_lists(protocol, role)),
        Block::ToolResult(_) => ("tool results", role == Role::Tool || has_block_lists(protocol, role)),
        // Decided by their own rules.
        Block::Thinking(_) | Block::Unmodelled(_) => return None,
    };
    (!fits).then_some(LeftOutReason::NoPlace { protocol, kind, role })
}

/// A message is a list in which every kind of block may stand.
fn has_block_lists(protocol: Protocol, role: Role) -> bool {
    match protocol {
        Protocol::Anthropic | Protocol::Bedrock | Protocol::Gemini => role != Role::System,
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama | Protocol::Cohere => false,
    }
}

fn has_text(protocol: Protocol, role: Role) -> bool {
    role != Role::Tool || has_block_lists(protocol, role)
}

fn has_images(protocol: Protocol, role: Role) -> bool {
    match protocol {
        Protocol::Anthropic | Protocol::Bedrock | Protocol::Gemini => has_block_lists(protocol, role),
        Protocol::OpenaiChat | Protocol::Ollama => matches!(role, Role::System | Role::User),
        Protocol::OpenaiResponses => role == Role::User,
        Protocol::Cohere => false,
    }
}

/// What a block loses although it is sent: the member, and why.
pub(super) fn lost_member(protocol: Protocol, block: &Block) -> Option<(&'static str, LeftOutReason)> {
    match block {
        Block::ToolResult(result) if result.is_error => match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama | Protocol::Cohere => {
                Some((".isError", LeftOutReason::NoErrorFlag { protocol }))
            }
            Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock => None,
        },
        Block::ToolCall(call) => {
            let is_lost = writes_arguments_as_json(protocol) && !is_object(&call.arguments);
            is_lost.then_some((".arguments", LeftOutReason::BrokenArguments))
        }
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    }
}

fn is_object(arguments: &Arguments) -> bool {
    match arguments {
        Arguments::Json(json) => matches!(json.trim_start().chars().next(), None | Some('{')),
        Arguments::Broken(_) => false,
    }
}

/// Arguments are an object, and not a text that contains one.
fn writes_arguments_as_json(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock => true,
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Cohere => false,
    }
}
