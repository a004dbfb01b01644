//! Why a block is sent as it is, or not.

use crate::dialect::Duty;

/// The rule or setting that decided about one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// Not a thought: it is the conversation itself.
    Said,
    Loop(Duty),
    Turns(Duty),
    /// The open tool loop is completed as it began, whatever is stripped.
    LoopIsNeverStripped,
    Stripped,
    NotIncluded,
    /// The user asked for it, where the provider does not mind.
    Included,
    ThinkingIsOff,
    /// Made by another provider, endpoint, account or model.
    Foreign {
        maker: String,
    },
    Interrupted,
    /// A call nobody answered, or an answer nobody asked for.
    Unanswered,
    /// A later thought cannot be read there, and thinking has no holes.
    BeforeAGap,
    /// This provider takes back only what it sealed.
    NotSealed,
    NothingReadable,
    /// A thought that nothing follows is refused there.
    NothingFollows,
    /// This provider takes no thinking back, or has no place for it.
    NoCarrier,
    /// The field must be there, and nothing may or can be in it.
    FieldIsDemanded,
    /// This provider refused it before.
    Refused,
    /// The same item was sent already.
    SentTwice,
}

impl Why {
    /// The rule, in the words of the dialect files.
    pub fn rule(&self) -> String {
        match self {
            Why::Said => "the conversation".to_owned(),
            Why::Loop(duty) => format!("echo.loop = {}", word(*duty)),
            Why::Turns(duty) => format!("echo.turns = {}", word(*duty)),
            Why::LoopIsNeverStripped => "the open tool loop is never stripped".to_owned(),
            Why::Stripped => "stripped from context".to_owned(),
            Why::NotIncluded => "not included in context".to_owned(),
            Why::Included => "included in context".to_owned(),
            Why::ThinkingIsOff => "thinking is switched off".to_owned(),
            Why::Foreign { maker } => format!("made by {maker}"),
            Why::Unanswered => "a call without its result, or a result without its call".to_owned(),
            Why::BeforeAGap => "bind.removal = prefix_only".to_owned(),
            Why::Interrupted => "cut short before it was whole".to_owned(),
            Why::NotSealed => "echo.need_opaque = true".to_owned(),
            Why::NothingReadable => "nothing readable, and its seal has no place here".to_owned(),
            Why::NothingFollows => "each thought is followed by its item".to_owned(),
            Why::NoCarrier => "there is no place for it".to_owned(),
            Why::FieldIsDemanded => "echo.fill_empty".to_owned(),
            Why::Refused => "this provider refused it before".to_owned(),
            Why::SentTwice => "echo.dedupe".to_owned(),
        }
    }

    /// The setting that had a say, if one had.
    pub fn setting(&self) -> Option<&'static str> {
        match self {
            Why::Stripped | Why::LoopIsNeverStripped => Some("reasoning.stripFromContext"),
            Why::NotIncluded | Why::Included => Some("reasoning.includeInContext"),
            Why::ThinkingIsOff => Some("reasoning.enabled"),
            Why::FieldIsDemanded => Some("reasoning.sendEmpty"),
            Why::Said
            | Why::Loop(_)
            | Why::Turns(_)
            | Why::Foreign { .. }
            | Why::Interrupted
            | Why::Unanswered
            | Why::BeforeAGap
            | Why::NotSealed
            | Why::NothingReadable
            | Why::NothingFollows
            | Why::Refused
            | Why::SentTwice
            | Why::NoCarrier => None,
        }
    }
}

fn word(duty: Duty) -> &'static str {
    match duty {
        Duty::Must => "must",
        Duty::Should => "should",
        Duty::Ignored => "ignored",
        Duty::Forbidden => "forbidden",
    }
}
