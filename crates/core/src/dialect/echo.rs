//! The `[echo]` and `[bind]` tables, which describe how to send stored thinking
//! back: where it is written, when it is required, and what it is bound to.

use super::DialectSource;
use super::error::DialectError;
use super::matrix::Matrix;
use super::table::{choices, table};
use crate::protocol::Protocol;

/// A JSON object to merge into a request body.
pub type Patch = serde_json::Map<String, serde_json::Value>;

choices!(
    /// Where thinking is placed when it is sent back.
    #[derive(Default)]
    Carrier {
        /// It is not sent.
        #[default]
        None = "none",
        /// A string next to the content.
        Field = "field",
        /// An array of structured thinking next to the content.
        Details = "details",
        /// Inside the content, in the original tags.
        ContentTags = "content_tags",
        /// A part of the content array.
        ContentChunks = "content_chunks",
        /// A block of its own.
        Block = "block",
        /// An item of its own.
        Item = "item",
        /// A part of its own, or a seal on another part.
        Part = "part",
        /// A seal on the tool call.
        CallExtra = "call_extra",
        /// The text in one field, the seal in another.
        FieldsOpaque = "fields_opaque",
    }
);

choices!(
    /// How a provider treats thinking that is sent back.
    #[derive(Default)]
    Duty {
        /// Refused without it, or documented as required.
        Must = "must",
        /// Gives better results with it.
        Should = "should",
        /// Accepted, without effect.
        #[default]
        Ignored = "ignored",
        /// Refused with it, or gives worse results with it.
        Forbidden = "forbidden",
    }
);

choices!(
    /// When the duty across turns applies.
    #[derive(Default)]
    TurnsIf {
        /// In every request.
        #[default]
        Always = "always",
        /// The request offers tools.
        Tools = "tools",
        /// The request carries `echo.flag`.
        Flag = "flag",
    }
);

choices!(
    /// Which messages without thinking get a filler.
    #[derive(Default)]
    FillEmpty {
        /// No message.
        #[default]
        None = "none",
        /// Assistant messages with tool calls.
        WithToolCalls = "with_tool_calls",
        /// All assistant messages.
        All = "all",
    }
);

choices!(
    /// Whether an item is sent back with its original id.
    #[derive(Default)]
    Ids {
        /// With its id.
        #[default]
        Keep = "keep",
        /// Without an id.
        Omit = "omit",
    }
);

choices!(
    /// Where an item holds unencrypted text.
    #[derive(Default)]
    ItemText {
        /// In `content`.
        #[default]
        Content = "content",
        /// In `encrypted_content`, as plain text.
        Encrypted = "encrypted_content",
    }
);

choices!(
    /// Which tool call ids from other providers are accepted.
    #[derive(Default)]
    CallIdShape {
        /// All of them.
        #[default]
        Any = "any",
        /// Nine letters or digits.
        Nine = "nine",
    }
);

choices!(
    /// The content of a message that has tool calls and no text.
    #[derive(Default)]
    EmptyContent {
        /// `null`
        #[default]
        Null = "null",
        /// An empty string.
        Empty = "empty",
        /// No content member.
        Omit = "omit",
    }
);

choices!(
    /// Which thinking blocks count as duplicates.
    #[derive(Default)]
    Dedupe {
        /// None.
        #[default]
        None = "none",
        /// Those with the same id.
        ById = "by_id",
        /// Summary text; encrypted id or data; text or signature.
        Openrouter = "openrouter",
    }
);

choices!(
    /// What happens to the thinking of another provider. It never becomes
    /// visible text.
    #[derive(Default)]
    Foreign {
        /// It is not sent.
        #[default]
        Drop = "drop",
        /// Its text is sent in the field for thinking.
        AsField = "as_field",
        /// Tool calls that need a seal get the documented dummy.
        DummySignature = "dummy_signature",
    }
);

choices!(
    /// What happens if the conversation before a thinking block has changed.
    #[derive(Default)]
    PrefixCheck {
        /// Nothing.
        #[default]
        None = "none",
        /// Not checked by the provider, but recorded.
        Record = "record",
        /// The request is refused.
        Error = "error",
        /// The request asks the provider to drop the block instead.
        DropBlock = "drop_block",
    }
);

choices!(
    /// Which thinking may be left out of a conversation.
    #[derive(Default)]
    Removal {
        /// Any of it.
        #[default]
        Any = "any",
        /// Only the oldest, without gaps.
        PrefixOnly = "prefix_only",
        /// All of it, or nothing.
        AllOrNone = "all_or_none",
    }
);

/// The name of the field the thinking is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EchoField {
    /// The one it was received in.
    Same,
    /// In the form it was received: a field, an entry of a list, or tags.
    AsReceived,
    /// Always this one.
    Named(String),
}

/// Which models can read a thinking block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindModel {
    /// All models of this provider.
    None,
    /// Only the model that produced it.
    Same,
    /// The models listed in the matrix of this name.
    Matrix(String),
}

/// How stored thinking is sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one key of the file and contradicts no other")]
#[non_exhaustive]
pub struct EchoRules {
    /// The default of `reasoning.includeInContext` for this provider and model.
    pub include: bool,
    /// Where it is written.
    pub carrier: Carrier,
    /// Used by the carriers that write a field.
    pub field: EchoField,
    /// Within the open tool loop.
    pub loop_duty: Duty,
    /// Across user turns, under the condition of `turns_if`.
    pub turns_duty: Duty,
    /// The condition of `turns_duty`.
    pub turns_if: TurnsIf,
    /// What the request must contain so that the provider reads older turns.
    pub flag: Patch,
    /// Which messages get `filler`.
    pub fill_empty: FillEmpty,
    /// The value of the field if there was no thinking.
    pub filler: String,
    /// Thinking without a seal is not sent back.
    pub need_opaque: bool,
    /// Whether items keep their ids.
    pub ids: Ids,
    /// Which ids of tool calls are accepted.
    pub call_ids: CallIdShape,
    /// Where an item without a seal holds its text.
    pub item_text: ItemText,
    /// The thinking item is sent again before every call of its message.
    pub repeat_before_each_call: bool,
    /// Calls are sent after all other content of their message.
    pub calls_last: bool,
    /// What is sent in place of missing text.
    pub empty_content: EmptyContent,
    /// Which blocks are sent only once.
    pub dedupe: Dedupe,
    /// What happens to thinking of other providers.
    pub foreign: Foreign,
    /// The documented dummy signature, if there is one.
    pub dummy: String,
    /// The list entry that the dummy is written in, if the provider reads seals
    /// from a list. Otherwise calls have it.
    pub dummy_detail: Patch,
}

/// What a thinking block is bound to, besides its provider.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindRules {
    /// Which models can read it.
    pub model: BindModel,
    /// Only the account that received it may send it back.
    pub account: bool,
    /// Whether it depends on the messages before it.
    pub prefix: PrefixCheck,
    /// Which of it may be left out.
    pub removal: Removal,
}

table!(Echo {
    include: bool,
    carrier: Carrier,
    field: String,
    #[serde(rename = "loop")]
    loop_duty: Duty,
    turns: Duty,
    turns_if: TurnsIf,
    flag: Patch,
    fill_empty: FillEmpty,
    fill: String,
    need_opaque: bool,
    ids: Ids,
    call_ids: CallIdShape,
    item_text: ItemText,
    repeat_before_each_call: bool,
    calls_last: bool,
    empty_content: EmptyContent,
    dedupe: Dedupe,
    foreign: Foreign,
    dummy: String,
    dummy_detail: Patch,
});

table!(Bind { model: String, account: bool, prefix: PrefixCheck, removal: Removal });

impl Echo {
    pub(super) fn resolve(self, protocol: Protocol, source: &DialectSource<'_>) -> Result<EchoRules, DialectError> {
        let carrier = self.carrier.unwrap_or_default();
        check_carrier(protocol, carrier, source)?;
        let turns_if = self.turns_if.unwrap_or_default();
        let flag = self.flag.unwrap_or_default();
        if turns_if == TurnsIf::Flag && flag.is_empty() {
            let problem = "`flag` needs an `echo.flag` to send".to_owned();
            return Err(DialectError::in_key(source, "echo.turns_if", problem));
        }
        let foreign = self.foreign.unwrap_or_default();
        let dummy = self.dummy.unwrap_or_default();
        if foreign == Foreign::DummySignature && dummy.is_empty() {
            let problem = "`dummy_signature` needs an `echo.dummy` to write".to_owned();
            return Err(DialectError::in_key(source, "echo.foreign", problem));
        }
        Ok(EchoRules {
            include: self.include.unwrap_or_default(),
            carrier,
            field: match self.field.as_deref() {
                None | Some("same") => EchoField::Same,
                Some("as_received") => EchoField::AsReceived,
                Some("") => return Err(DialectError::in_key(source, "echo.field", "a field needs a name".to_owned())),
                Some(name) => EchoField::Named(name.to_owned()),
            },
            loop_duty: self.loop_duty.unwrap_or_default(),
            turns_duty: self.turns.unwrap_or_default(),
            turns_if,
            flag,
            fill_empty: self.fill_empty.unwrap_or_default(),
            filler: self.fill.unwrap_or_default(),
            need_opaque: self.need_opaque.unwrap_or_default(),
            ids: self.ids.unwrap_or_default(),
            call_ids: self.call_ids.unwrap_or_default(),
            item_text: self.item_text.unwrap_or_default(),
            repeat_before_each_call: self.repeat_before_each_call.unwrap_or_default(),
            calls_last: self.calls_last.unwrap_or_default(),
            empty_content: self.empty_content.unwrap_or_default(),
            dedupe: self.dedupe.unwrap_or_default(),
            foreign,
            dummy,
            dummy_detail: self.dummy_detail.unwrap_or_default(),
        })
    }
}

/// Each protocol supports only some carriers.
fn check_carrier(protocol: Protocol, carrier: Carrier, source: &DialectSource<'_>) -> Result<(), DialectError> {
    let fits = match carrier {
        Carrier::None => true,
        Carrier::Field => matches!(protocol, Protocol::OpenaiChat | Protocol::Ollama),
        Carrier::Details | Carrier::ContentTags | Carrier::CallExtra | Carrier::FieldsOpaque => {
            protocol == Protocol::OpenaiChat
        }
        Carrier::ContentChunks => matches!(protocol, Protocol::OpenaiChat | Protocol::Cohere),
        Carrier::Block => matches!(protocol, Protocol::Anthropic | Protocol::Bedrock),
        Carrier::Item => protocol == Protocol::OpenaiResponses,
        Carrier::Part => protocol == Protocol::Gemini,
    };
    if fits {
        return Ok(());
    }
    let problem = format!("`{}` does not fit the {protocol} protocol", carrier.as_str());
    Err(DialectError::in_key(source, "echo.carrier", problem))
}

impl Bind {
    pub(super) fn resolve(self, matrices: &[Matrix], source: &DialectSource<'_>) -> Result<BindRules, DialectError> {
        let wrong = |problem| Err(DialectError::in_key(source, "bind.model", problem));
        let model = match self.model.as_deref().unwrap_or("none") {
            "none" => BindModel::None,
            "same" => BindModel::Same,
            other => match other.strip_prefix("matrix:") {
                Some(name) if matrices.iter().any(|matrix| matrix.name == name) => BindModel::Matrix(name.to_owned()),
                Some(name) => {
                    let known: Vec<&str> = matrices.iter().map(|matrix| matrix.name.as_str()).collect();
                    return wrong(format!("unknown matrix `{name}`; known: {}", known.join(", ")));
                }
                None => return wrong(format!("unknown value `{other}`; use none, same or matrix:NAME")),
            },
        };
        Ok(BindRules {
            model,
            account: self.account.unwrap_or_default(),
            prefix: self.prefix.unwrap_or_default(),
            removal: self.removal.unwrap_or_default(),
        })
    }
}
