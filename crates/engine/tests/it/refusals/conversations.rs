//! Conversations in the middle of a tool loop, with what a refusal complains about.

use std::str::FromStr;

use aside_core::block::{
    Arguments, Block, CallId, Native, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall, ToolResult,
    Unmodelled,
};
use aside_core::dialect::{Carrier, Dialect};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_engine::Endpoint;

use crate::session_support::user;

/// What is special about a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum HistoryVariant {
    #[default]
    Usual,
    /// The first step of the loop has no thinking.
    Lost,
    /// A call has no seal.
    UnsealedCall,
    /// A thinking block has a cache marker.
    CacheMarker,
    /// A call has a signature of its own.
    CallSignature,
    /// A reasoning item has content.
    ItemContent,
    /// A thinking block lacks its text.
    NoText,
    /// A reasoning item lacks its summary.
    NoSummary,
    /// A message holds nothing but thinking.
    ThinkingOnly,
    /// An empty text block.
    EmptyText,
    /// Text comes before the thinking.
    TextFirst,
    /// Thinking came as an entry of `reasoning_details`.
    Details,
    /// One thinking block has a payload and no text.
    Redacted,
    /// One thinking block has no seal.
    Unsealed,
    /// Seals are in the alphabet for URLs.
    UrlSafeSeals,
}

impl FromStr for HistoryVariant {
    type Err = String;

    fn from_str(word: &str) -> Result<HistoryVariant, String> {
        Ok(match word {
            "" => HistoryVariant::Usual,
            "lost" => HistoryVariant::Lost,
            "unsealed call" => HistoryVariant::UnsealedCall,
            "cache marker" => HistoryVariant::CacheMarker,
            "call signature" => HistoryVariant::CallSignature,
            "item content" => HistoryVariant::ItemContent,
            "no text" => HistoryVariant::NoText,
            "no summary" => HistoryVariant::NoSummary,
            "thinking only" => HistoryVariant::ThinkingOnly,
            "empty text" => HistoryVariant::EmptyText,
            "text first" => HistoryVariant::TextFirst,
            "details" => HistoryVariant::Details,
            "redacted" => HistoryVariant::Redacted,
            "unsealed" => HistoryVariant::Unsealed,
            "url-safe seals" => HistoryVariant::UrlSafeSeals,
            other => return Err(format!("unknown history `{other}`")),
        })
    }
}

/// A finished turn, then two steps of an open tool loop.
pub(crate) fn conversation(endpoint: &Endpoint, variant: HistoryVariant) -> Vec<Message> {
    let assistant = |blocks| Message { origin: Some(endpoint.origin()), ..Message::new(Role::Assistant, blocks) };
    let dialect = &endpoint.dialect;
    let thinking = |n| thinking_block(endpoint, variant, n);
    let mut first = vec![thinking(2), call(endpoint, variant, 2)];
    match variant {
        HistoryVariant::Lost => drop(first.remove(0)),
        HistoryVariant::TextFirst => first.insert(0, answer(dialect, 9)),
        HistoryVariant::EmptyText => {
            let native = Native { json: r#"{"type":"text","text":""}"#.to_owned(), text_member: None };
            first.insert(1, Block::Unmodelled(Unmodelled { native }));
        }
        _ => (),
    }
    let mut messages = vec![user("q1"), assistant(vec![thinking(1), answer(dialect, 1)])];
    if variant == HistoryVariant::ThinkingOnly {
        messages.extend([user("q"), assistant(vec![thinking(4)])]);
    }
    let second = vec![thinking(3), call(endpoint, variant, 3)];
    messages.extend([user("q2"), assistant(first), result(2), assistant(second), result(3)]);
    messages
}

fn thinking_block(endpoint: &Endpoint, variant: HistoryVariant, n: usize) -> Block {
    let echo = &endpoint.dialect.rules(Some(&endpoint.model)).echo;
    let (text, payload) = (format!("words of thought {n}"), format!("seal{n}"));
    let seal = |kind| Some(Seal { kind, payload: payload.clone() });
    let open = || ThinkingContent::Open { text: text.clone() };
    let signed = || ThinkingContent::Sealed {
        text: text.clone(),
        seals: Seals { signature: seal(SealKind::Signature), encrypted: None },
    };
    let hidden = || ThinkingContent::Hidden { seals: Seals { signature: None, encrypted: seal(SealKind::Encrypted) } };
    let native = |json: String, member: Option<&str>| Some(Native { json, text_member: member.map(str::to_owned) });
    let detail = || native(format!(r#"{{"type":"reasoning.text","index":0,"signature":"{payload}"}}"#), Some("text"));
    let first_field = || endpoint.dialect.rules(None).read.text.first().cloned().unwrap_or_else(|| "thinking".into());
    let (content, native, source) = match (variant, echo.carrier) {
        (HistoryVariant::Redacted, Carrier::Details) if n == 2 => {
            let json = format!(r#"{{"type":"reasoning.encrypted","index":0,"data":"{payload}"}}"#);
            (hidden(), native(json, None), "reasoning_details".to_owned())
        }
        (HistoryVariant::Redacted, Carrier::Block) if n == 2 => {
            let json = format!(r#"{{"type":"redacted_thinking","data":"{payload}"}}"#);
            (hidden(), native(json, None), first_field())
        }
        (HistoryVariant::Unsealed, Carrier::Details) if n == 2 => {
            let json = r#"{"type":"thinking","signature":null}"#.to_owned();
            (open(), native(json, Some("thinking")), "thinking_blocks".to_owned())
        }
        (HistoryVariant::Unsealed, Carrier::Block) if n == 2 => (open(), None, first_field()),
        (HistoryVariant::Details, _) => (signed(), detail(), "reasoning_details".to_owned()),
        (_, Carrier::Details) if endpoint.dialect.id == "litellm" => {
            let json = format!(r#"{{"type":"thinking","signature":"{payload}"}}"#);
            (signed(), native(json, Some("thinking")), "thinking_blocks".to_owned())
        }
        (_, Carrier::Details) => (signed(), detail(), "reasoning_details".to_owned()),
        (HistoryVariant::CacheMarker, Carrier::Block) => {
            let json =
                format!(r#"{{"type":"thinking","cache_control":{{"type":"ephemeral"}},"signature":"{payload}"}}"#);
            (signed(), native(json, Some("thinking")), first_field())
        }
        (HistoryVariant::NoText, Carrier::Block) => {
            let json = format!(r#"{{"type":"thinking","signature":"{payload}"}}"#);
            (hidden(), native(json, None), first_field())
        }
        (_, Carrier::Block) => (signed(), None, first_field()),
        (_, Carrier::Item) if echo.need_opaque => {
            let rest = match variant {
                HistoryVariant::NoSummary => "",
                HistoryVariant::ItemContent => r#""summary":[],"content":[{"type":"reasoning_text","text":"t"}],"#,
                _ => r#""summary":[],"#,
            };
            let json = format!(r#"{{"type":"reasoning","id":"rs_{n}",{rest}"encrypted_content":"{payload}"}}"#);
            (hidden(), native(json, None), first_field())
        }
        _ => (open(), None, first_field()),
    };
    Block::Thinking(Thinking { native, ..Thinking::new(content, source) })
}

fn call(endpoint: &Endpoint, variant: HistoryVariant, n: usize) -> Block {
    let carrier = endpoint.dialect.rules(Some(&endpoint.model)).echo.carrier;
    let payload = match variant {
        HistoryVariant::UrlSafeSeals => format!("se-al_{n}"),
        _ => format!("seal{n}"),
    };
    let sealed = matches!(carrier, Carrier::Part | Carrier::CallExtra) && variant != HistoryVariant::UnsealedCall;
    let json = match endpoint.dialect.protocol {
        Protocol::OpenaiResponses => Some(format!(
            r#"{{"type":"function_call","id":"fc_{n}","call_id":"c{n}","name":"get","arguments":"{{\"k\":1}}"}}"#
        )),
        Protocol::OpenaiChat if sealed => {
            Some(format!(r#"{{"extra_content":{{"google":{{"thought_signature":"{payload}"}}}}}}"#))
        }
        _ if variant == HistoryVariant::CallSignature => Some(format!(r#"{{"signature":"{payload}"}}"#)),
        _ => None,
    };
    Block::ToolCall(ToolCall {
        id: CallId::Given(format!("c{n}")),
        name: "get".into(),
        arguments: Arguments::Json(r#"{"k":1}"#.into()),
        seal: sealed.then_some(Seal { kind: SealKind::Signature, payload }),
        native: json.map(|json| Native { json, text_member: None }),
        extra: Default::default(),
    })
}

fn answer(dialect: &Dialect, n: usize) -> Block {
    let json = format!(
        r#"{{"type":"message","id":"msg_{n}","role":"assistant","content":[{{"type":"output_text","text":"answer {n}"}}]}}"#
    );
    let native = (dialect.protocol == Protocol::OpenaiResponses).then_some(Native { json, text_member: None });
    Block::Text(Text { text: format!("answer {n}"), seal: None, native, extra: Default::default() })
}

fn result(n: usize) -> Message {
    let result = ToolResult {
        id: format!("c{n}"),
        name: "get".into(),
        content: "a value".into(),
        is_error: false,
        media: Vec::new(),
    };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}
