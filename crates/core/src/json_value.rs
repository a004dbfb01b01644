//! Blocks, messages and parts of events as members of other serde values, with
//! the names of [`crate::json`].
//!
//! Use it as `#[serde(with = "aside_core::json_value")]`. The values themselves
//! stay plain, and are read back from JSON only: native items must keep their
//! bytes, which other formats cannot do.

use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::block::{Block, Seal, SealKind, ThinkingSpan, ToolCall, ToolResult};
use crate::conversation::{parse_block, parse_message, read_ending};
use crate::event::{BlockId, ContextOverflow, Ending, Note, NoteCode, ProseKind, ProviderError, ReplyEnd, Usage};
use crate::json;
use crate::message::Message;
use crate::safe_json;

/// A value with one JSON form.
pub trait JsonValue: Sized {
    /// The value as JSON text.
    fn to_json(&self) -> String;

    /// Reads the value back. The error says what is wrong, in words.
    fn from_json(json: &str) -> Result<Self, String>;
}

/// Writes the value's JSON into any serializer of JSON.
pub fn serialize<T: JsonValue, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    let json = RawValue::from_string(value.to_json()).map_err(serde::ser::Error::custom)?;
    json.serialize(serializer)
}

/// Reads a value from a deserializer of JSON.
pub fn deserialize<'de, T: JsonValue, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let json = Box::<RawValue>::deserialize(deserializer)?;
    T::from_json(json.get()).map_err(D::Error::custom)
}

impl<T: JsonValue> JsonValue for Box<T> {
    fn to_json(&self) -> String {
        self.as_ref().to_json()
    }

    fn from_json(json: &str) -> Result<Box<T>, String> {
        T::from_json(json).map(Box::new)
    }
}

impl<T: JsonValue> JsonValue for Arc<T> {
    fn to_json(&self) -> String {
        self.as_ref().to_json()
    }

    fn from_json(json: &str) -> Result<Arc<T>, String> {
        T::from_json(json).map(Arc::new)
    }
}

impl<T: JsonValue> JsonValue for Vec<T> {
    fn to_json(&self) -> String {
        let values: Vec<String> = self.iter().map(T::to_json).collect();
        format!("[{}]", values.join(","))
    }

    fn from_json(json: &str) -> Result<Vec<T>, String> {
        let values: Vec<&RawValue> = parse(json)?;
        values.into_iter().map(|value| T::from_json(value.get())).collect()
    }
}

impl<T: JsonValue> JsonValue for Option<T> {
    fn to_json(&self) -> String {
        self.as_ref().map_or_else(|| "null".to_owned(), T::to_json)
    }

    fn from_json(json: &str) -> Result<Option<T>, String> {
        if json.trim() == "null" { Ok(None) } else { T::from_json(json).map(Some) }
    }
}

impl JsonValue for Block {
    fn to_json(&self) -> String {
        json::block(self)
    }

    fn from_json(json: &str) -> Result<Block, String> {
        parse_block(json)
    }
}

impl JsonValue for ToolCall {
    fn to_json(&self) -> String {
        json::block(&Block::ToolCall(self.clone()))
    }

    fn from_json(json: &str) -> Result<ToolCall, String> {
        match parse_block(json)? {
            Block::ToolCall(call) => Ok(call),
            Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                Err("expected a toolCall block".to_owned())
            }
        }
    }
}

impl JsonValue for ToolResult {
    fn to_json(&self) -> String {
        json::block(&Block::ToolResult(self.clone()))
    }

    fn from_json(json: &str) -> Result<ToolResult, String> {
        match parse_block(json)? {
            Block::ToolResult(result) => Ok(result),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => {
                Err("expected a toolResult block".to_owned())
            }
        }
    }
}

impl JsonValue for Message {
    fn to_json(&self) -> String {
        crate::interchange::message_json(self)
    }

    fn from_json(json: &str) -> Result<Message, String> {
        parse_message(json)
    }
}

impl JsonValue for BlockId {
    fn to_json(&self) -> String {
        self.0.to_string()
    }

    fn from_json(json: &str) -> Result<BlockId, String> {
        parse(json).map(BlockId)
    }
}

impl JsonValue for ProseKind {
    fn to_json(&self) -> String {
        safe_json::to_string(&json::side(*self))
    }

    fn from_json(json: &str) -> Result<ProseKind, String> {
        match parse::<String>(json)?.as_str() {
            "text" => Ok(ProseKind::Text),
            "thinking" => Ok(ProseKind::Thinking),
            other => Err(format!("unknown kind of text `{other}`; use text or thinking")),
        }
    }
}

/// A seal has the member names that it has in a block.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SealMember {
    Signature(String),
    Encrypted(String),
}

impl JsonValue for Seal {
    fn to_json(&self) -> String {
        let payload = self.payload.clone();
        safe_json::to_string(&match self.kind {
            SealKind::Signature => SealMember::Signature(payload),
            SealKind::Encrypted => SealMember::Encrypted(payload),
        })
    }

    fn from_json(json: &str) -> Result<Seal, String> {
        Ok(match parse(json)? {
            SealMember::Signature(payload) => Seal { kind: SealKind::Signature, payload },
            SealMember::Encrypted(payload) => Seal { kind: SealKind::Encrypted, payload },
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpanMembers {
    started_at: String,
    ended_at: String,
}

impl JsonValue for ThinkingSpan {
    fn to_json(&self) -> String {
        safe_json::to_string(&SpanMembers {
            started_at: json::rfc3339(self.started),
            ended_at: json::rfc3339(self.ended),
        })
    }

    fn from_json(json: &str) -> Result<ThinkingSpan, String> {
        let SpanMembers { started_at, ended_at } = parse(json)?;
        let time = |text: &str| json::parse_rfc3339(text).ok_or_else(|| format!("`{text}` is not a time"));
        Ok(ThinkingSpan { started: time(&started_at)?, ended: time(&ended_at)? })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMembers {
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
}

impl JsonValue for Usage {
    fn to_json(&self) -> String {
        json::usage(*self)
    }

    fn from_json(json: &str) -> Result<Usage, String> {
        let UsageMembers { input, output, reasoning, cached, cache_write } = parse(json)?;
        Ok(Usage { input, output, reasoning, cached, cache_write })
    }
}

#[derive(Deserialize)]
struct NoteMembers {
    code: String,
    message: String,
}

impl JsonValue for Note {
    fn to_json(&self) -> String {
        json::note(self)
    }

    fn from_json(json: &str) -> Result<Note, String> {
        let NoteMembers { code, message } = parse(json)?;
        let known = NoteCode::ALL.into_iter().find(|known| known.as_str() == code);
        Ok(Note { code: known.ok_or_else(|| format!("unknown code of a note `{code}`"))?, message })
    }
}

#[derive(Serialize, Deserialize)]
struct ErrorMembers {
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    code: Option<String>,
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "is_default")]
    overflow: ContextOverflow,
    #[serde(default, rename = "lacksCredit", skip_serializing_if = "is_default")]
    lacks_credit: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl ErrorMembers {
    fn of(error: &ProviderError) -> ErrorMembers {
        let ProviderError { message, words, code, status, overflow, lacks_credit } = error.clone();
        ErrorMembers { message, words, code, status, overflow, lacks_credit }
    }

    fn into_error(self) -> ProviderError {
        let ErrorMembers { message, words, code, status, overflow, lacks_credit } = self;
        let error = ProviderError::new(message).with_words(words).with_code(code).with_status(status);
        error.with_overflow(overflow).with_lacks_credit(lacks_credit)
    }
}

impl JsonValue for ProviderError {
    fn to_json(&self) -> String {
        safe_json::to_string(&ErrorMembers::of(self))
    }

    fn from_json(json: &str) -> Result<ProviderError, String> {
        parse(json).map(ErrorMembers::into_error)
    }
}

#[derive(Serialize, Deserialize)]
struct EndMembers {
    finish: Option<String>,
    /// The detail that `finish` leaves out, as in a stored message.
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<String>,
    error: Option<ErrorMembers>,
}

impl JsonValue for ReplyEnd {
    fn to_json(&self) -> String {
        safe_json::to_string(&EndMembers {
            finish: json::finish(&self.ending).map(str::to_owned),
            ending: json::ending_detail(&self.ending).map(str::to_owned),
            error: self.error.as_ref().map(ErrorMembers::of),
        })
    }

    fn from_json(json: &str) -> Result<ReplyEnd, String> {
        let EndMembers { finish, ending, error } = parse(json)?;
        let ending = read_ending(finish.as_deref(), ending).unwrap_or(Ending::Unsaid);
        Ok(ReplyEnd { ending, error: error.map(ErrorMembers::into_error) })
    }
}

fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
