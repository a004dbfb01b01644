//! What of a request cannot be sent, and why. Thinking is not listed here: its
//! decisions say what happens to it.

use std::borrow::Cow;
use std::fmt;

use crate::block::{Arguments, Block, Media, MediaKind, MediaSource, ToolResult};
use crate::message::{Message, Role};
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
    /// The same result of the same call is already there.
    RepeatedResult,
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
    /// A client sent it, and it has no neutral form.
    NoNeutralForm,
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
            LeftOutReason::RepeatedResult => f.write_str("the same result of the same call is already there"),
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
            LeftOutReason::NoNeutralForm => f.write_str("it has no neutral form"),
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
        Block::Media(media) => (media_words(media), has_images(protocol, role) && has_form(protocol, media)),
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

/// Such media, in the plural.
fn media_words(media: &Media) -> &'static str {
    match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Data(_)) => "images",
        (MediaKind::Image, MediaSource::Url(_)) => "images by this URL",
        (MediaKind::Image, MediaSource::FileId(_)) => "images by file id",
        (MediaKind::Document, MediaSource::Data(_)) => "documents",
        (MediaKind::Document, MediaSource::Url(_)) => "documents by this URL",
        (MediaKind::Document, MediaSource::FileId(_)) => "documents by file id",
    }
}

/// Whether the protocol has a form for such media.
fn has_form(protocol: Protocol, media: &Media) -> bool {
    use MediaSource::{Data, FileId, Url};
    match (protocol, media.kind, &media.source) {
        (Protocol::OpenaiResponses | Protocol::Anthropic, _, _) => true,
        (Protocol::OpenaiChat, MediaKind::Image, Data(_) | Url(_)) => true,
        (Protocol::OpenaiChat, MediaKind::Document, Data(_) | FileId(_)) => true,
        (Protocol::OpenaiChat, _, _) => false,
        // A URL there must be one that Google can read; an id alone is none.
        (Protocol::Gemini, _, Data(_) | Url(_)) => true,
        (Protocol::Gemini, _, FileId(_)) => false,
        (Protocol::Bedrock, _, Data(_)) => true,
        (Protocol::Bedrock, _, Url(url)) => url.starts_with("s3://"),
        (Protocol::Bedrock, _, FileId(_)) => false,
        (Protocol::Ollama, MediaKind::Image, Data(_)) => true,
        (Protocol::Ollama | Protocol::Cohere, _, _) => false,
    }
}

/// The media of a tool result that the protocol cannot represent there, and the
/// names that it cannot carry: the member of the block, and why.
pub(super) fn lost_media(protocol: Protocol, block: &Block) -> impl Iterator<Item = (String, LeftOutReason)> {
    let media: &[Media] = match block {
        Block::ToolResult(result) => &result.media,
        Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => &[],
    };
    media.iter().enumerate().filter_map(move |(at, media)| {
        if !fits_in_result(protocol, media) {
            let reason = LeftOutReason::NoPlace { protocol, kind: media_words(media), role: Role::Tool };
            return Some((format!(".media[{at}]"), reason));
        }
        lost_name(protocol, media, Role::Tool).map(|reason| (format!(".media[{at}].name"), reason))
    })
}

/// Why the name of an image or a document is not sent; None if it is, or there is
/// none.
fn lost_name(protocol: Protocol, media: &Media, role: Role) -> Option<LeftOutReason> {
    let has_name = match protocol {
        Protocol::Anthropic | Protocol::Bedrock => media.kind == MediaKind::Document,
        Protocol::OpenaiChat | Protocol::OpenaiResponses => media.kind == MediaKind::Document && media.data().is_some(),
        Protocol::Gemini | Protocol::Ollama | Protocol::Cohere => false,
    };
    let reason = LeftOutReason::NoPlace { protocol, kind: "names of such media", role };
    (media.name.is_some() && !has_name).then_some(reason)
}

/// Whether a tool result of the protocol can hold such media.
pub(crate) fn fits_in_result(protocol: Protocol, media: &Media) -> bool {
    match protocol {
        Protocol::Anthropic | Protocol::Bedrock | Protocol::OpenaiResponses => has_form(protocol, media),
        Protocol::Gemini => media.data().is_some(),
        Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere => false,
    }
}

/// What a client sent in a message beyond its neutral form: the member, and why it is not sent on. Such
/// members of a reply are not meant to be sent back.
pub(super) fn unread_members(message: &Message) -> impl Iterator<Item = (&str, LeftOutReason)> {
    let is_reply = message.role == Role::Assistant;
    message.extra.iter().filter(move |_| !is_reply).map(|(name, _)| (name, LeftOutReason::NoNeutralForm))
}

/// The text of a tool result as it is sent: media that the protocol cannot hold there are described, so
/// that the model knows of them.
pub(crate) fn result_text(protocol: Protocol, result: &ToolResult) -> Cow<'_, str> {
    result.described_without(|media| fits_in_result(protocol, media))
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
        Block::Media(media) => lost_name(protocol, media, Role::User).map(|reason| (".name", reason)),
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Unmodelled(_) => None,
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
