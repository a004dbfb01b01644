//! The minimum work of any decoder: the same framer, a struct with every field the
//! real decoder reads, and owned text. No order, no blocks, no tags, no rules.
//!
//! Text without escapes is borrowed from the frame, and lists of one element are
//! read without a `Vec`: the baseline wastes nothing.

#![allow(dead_code, reason = "what the decoder reads is read here too, used or not")]

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use aside_core::frame::{DEFAULT_FRAME_LIMIT, Framed, Framer};
use aside_core::protocol::Protocol;
use serde::Deserialize;
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::Chunking;

/// A string that is copied only if it has escapes.
#[derive(Default)]
struct JsonStr<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for JsonStr<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<JsonStr<'a>, D::Error> {
        struct JsonStrVisitor;
        impl<'de> Visitor<'de> for JsonStrVisitor {
            type Value = JsonStr<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonStr<'de>, E> {
                Ok(JsonStr(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<JsonStr<'de>, E> {
                Ok(JsonStr(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(JsonStrVisitor)
    }
}

/// The thinking and the answer of a reply.
#[derive(Default)]
struct FloorReply {
    thinking: String,
    text: String,
}

impl FloorReply {
    fn thinking(&mut self, text: &Option<JsonStr<'_>>) {
        if let Some(JsonStr(text)) = text {
            self.thinking.push_str(text);
        }
    }

    fn text(&mut self, text: &Option<JsonStr<'_>>) {
        if let Some(JsonStr(text)) = text {
            self.text.push_str(text);
        }
    }
}

pub fn decode(protocol: Protocol, chunking: Chunking, bytes: &[u8]) -> (String, String) {
    let mut reply = FloorReply::default();
    let mut framer = match protocol {
        Protocol::Ollama => Framer::of_lines(DEFAULT_FRAME_LIMIT),
        _ => Framer::new(DEFAULT_FRAME_LIMIT),
    };
    let mut take = |framed: Framed<'_>| {
        let Framed::Frame(frame) = framed else { return };
        let Ok(json) = std::str::from_utf8(frame.data) else { return };
        match protocol {
            Protocol::OpenaiChat => chat(json, &mut reply),
            Protocol::OpenaiResponses => responses(json, &mut reply),
            Protocol::Anthropic => anthropic(json, &mut reply),
            Protocol::Gemini => gemini(json, &mut reply),
            Protocol::Ollama => ollama(json, &mut reply),
            Protocol::Cohere => cohere(json, &mut reply),
            Protocol::Bedrock => converse(json, &mut reply),
        }
    };
    for chunk in chunking.chunks(bytes) {
        framer.push(chunk, &mut take);
    }
    framer.finish(&mut take);
    (reply.thinking, reply.text)
}

/// The first element of a list; the others are skipped.
struct First<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<First<T>, D::Error> {
        struct FirstVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = First<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First<T>, A::Error> {
                let first = seq.next_element()?;
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(first))
            }
        }
        deserializer.deserialize_seq(FirstVisitor(PhantomData))
    }
}

type Borrowed<'a> = Option<JsonStr<'a>>;
/// A member that is parsed only if it is not null.
type Rare<'a> = Option<&'a RawValue>;

#[derive(Deserialize)]
struct ChatChunk<'a> {
    #[serde(borrow)]
    model: Borrowed<'a>,
    #[serde(borrow)]
    choices: First<ChatChoice<'a>>,
    #[serde(borrow)]
    usage: Rare<'a>,
    #[serde(borrow)]
    error: Rare<'a>,
}

#[derive(Deserialize)]
struct ChatChoice<'a> {
    index: u64,
    #[serde(borrow)]
    delta: ChatDelta<'a>,
    #[serde(borrow)]
    finish_reason: Borrowed<'a>,
    #[serde(borrow)]
    message: Rare<'a>,
    #[serde(borrow)]
    error: Rare<'a>,
    #[serde(borrow)]
    usage: Rare<'a>,
}

#[derive(Deserialize)]
struct ChatDelta<'a> {
    #[serde(borrow)]
    role: Borrowed<'a>,
    #[serde(borrow)]
    content: Borrowed<'a>,
    #[serde(borrow)]
    reasoning_content: Borrowed<'a>,
    #[serde(borrow)]
    reasoning: Borrowed<'a>,
    #[serde(borrow)]
    reasoning_text: Borrowed<'a>,
    #[serde(borrow)]
    thinking: Borrowed<'a>,
    #[serde(borrow)]
    reasoning_details: Rare<'a>,
    #[serde(borrow)]
    thinking_blocks: Rare<'a>,
    #[serde(borrow)]
    tool_calls: Rare<'a>,
    #[serde(borrow)]
    refusal: Borrowed<'a>,
}

fn chat(json: &str, reply: &mut FloorReply) {
    let Ok(chunk) = serde_json::from_str::<ChatChunk<'_>>(json) else { return };
    let Some(choice) = chunk.choices.0 else { return };
    reply.thinking(&choice.delta.reasoning_content);
    reply.text(&choice.delta.content);
}

#[derive(Deserialize)]
struct ResponsesEvent<'a> {
    #[serde(borrow)]
    r#type: Borrowed<'a>,
    output_index: Option<u64>,
    summary_index: Option<u64>,
    content_index: Option<u64>,
    #[serde(borrow)]
    delta: Borrowed<'a>,
    #[serde(borrow)]
    arguments: Borrowed<'a>,
    #[serde(borrow)]
    input: Borrowed<'a>,
    #[serde(borrow)]
    item: Rare<'a>,
    #[serde(borrow)]
    response: Rare<'a>,
    #[serde(borrow)]
    object: Borrowed<'a>,
}

fn responses(json: &str, reply: &mut FloorReply) {
    let Ok(event) = serde_json::from_str::<ResponsesEvent<'_>>(json) else { return };
    match event.r#type.as_ref().map(|JsonStr(kind)| kind.as_ref()) {
        Some("response.reasoning_summary_text.delta") => reply.thinking(&event.delta),
        Some("response.output_text.delta") => reply.text(&event.delta),
        _ => (),
    }
}

#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(borrow)]
    r#type: Borrowed<'a>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<AnthropicDelta<'a>>,
    #[serde(borrow)]
    content_block: Rare<'a>,
    #[serde(borrow)]
    message: Rare<'a>,
    #[serde(borrow)]
    usage: Rare<'a>,
    #[serde(borrow)]
    model: Borrowed<'a>,
    #[serde(borrow)]
    stop_reason: Borrowed<'a>,
}

#[derive(Deserialize)]
struct AnthropicDelta<'a> {
    #[serde(borrow)]
    thinking: Borrowed<'a>,
    #[serde(borrow)]
    text: Borrowed<'a>,
    #[serde(borrow)]
    partial_json: Borrowed<'a>,
    #[serde(borrow)]
    signature: Borrowed<'a>,
    #[serde(borrow)]
    citation: Rare<'a>,
    #[serde(borrow)]
    stop_reason: Borrowed<'a>,
}

fn anthropic(json: &str, reply: &mut FloorReply) {
    let Ok(event) = serde_json::from_str::<AnthropicEvent<'_>>(json) else { return };
    let Some(delta) = event.delta else { return };
    reply.thinking(&delta.thinking);
    reply.text(&delta.text);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    #[serde(borrow)]
    candidates: Option<First<GeminiCandidate<'a>>>,
    usage_metadata: Option<GeminiUsage>,
    #[serde(borrow)]
    model_version: Borrowed<'a>,
    #[serde(borrow)]
    prompt_feedback: Rare<'a>,
    #[serde(borrow)]
    error: Rare<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiUsage {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<GeminiContent<'a>>,
    #[serde(borrow)]
    finish_reason: Borrowed<'a>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Option<First<GeminiPart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(borrow)]
    text: Borrowed<'a>,
    #[serde(default)]
    thought: bool,
    #[serde(borrow)]
    thought_signature: Borrowed<'a>,
    #[serde(borrow)]
    function_call: Rare<'a>,
}

fn gemini(json: &str, reply: &mut FloorReply) {
    let Ok(chunk) = serde_json::from_str::<GeminiChunk<'_>>(json) else { return };
    let candidate = chunk.candidates.and_then(|candidates| candidates.0);
    let parts = candidate.and_then(|candidate| candidate.content).and_then(|content| content.parts);
    let Some(part) = parts.and_then(|parts| parts.0) else { return };
    if part.thought { reply.thinking(&part.text) } else { reply.text(&part.text) }
}

#[derive(Deserialize)]
struct OllamaLine<'a> {
    #[serde(borrow)]
    model: Borrowed<'a>,
    #[serde(borrow)]
    message: Option<OllamaMessage<'a>>,
    #[serde(borrow)]
    response: Borrowed<'a>,
    #[serde(borrow)]
    thinking: Borrowed<'a>,
    done: Option<bool>,
    #[serde(borrow)]
    done_reason: Borrowed<'a>,
    #[serde(borrow)]
    error: Rare<'a>,
}

#[derive(Deserialize)]
struct OllamaMessage<'a> {
    #[serde(borrow)]
    content: Borrowed<'a>,
    #[serde(borrow)]
    thinking: Borrowed<'a>,
    #[serde(borrow)]
    tool_calls: Rare<'a>,
}

fn ollama(json: &str, reply: &mut FloorReply) {
    let Ok(line) = serde_json::from_str::<OllamaLine<'_>>(json) else { return };
    let Some(message) = line.message else { return };
    reply.thinking(&message.thinking);
    reply.text(&message.content);
}

#[derive(Deserialize)]
struct CohereEvent<'a> {
    #[serde(borrow)]
    r#type: Borrowed<'a>,
    #[serde(borrow)]
    delta: Option<CohereDelta<'a>>,
    #[serde(borrow)]
    message: Rare<'a>,
    #[serde(borrow)]
    finish_reason: Borrowed<'a>,
    #[serde(borrow)]
    usage: Rare<'a>,
}

#[derive(Deserialize)]
struct CohereDelta<'a> {
    #[serde(borrow)]
    message: Option<CohereMessage<'a>>,
    #[serde(borrow)]
    finish_reason: Borrowed<'a>,
    #[serde(borrow)]
    usage: Rare<'a>,
    #[serde(borrow)]
    error: Rare<'a>,
}

#[derive(Deserialize)]
struct CohereMessage<'a> {
    #[serde(borrow)]
    content: Option<CohereContent<'a>>,
    #[serde(borrow)]
    tool_calls: Rare<'a>,
    #[serde(borrow)]
    tool_plan: Borrowed<'a>,
}

#[derive(Deserialize)]
struct CohereContent<'a> {
    #[serde(borrow)]
    r#type: Borrowed<'a>,
    #[serde(borrow)]
    thinking: Borrowed<'a>,
    #[serde(borrow)]
    text: Borrowed<'a>,
}

fn cohere(json: &str, reply: &mut FloorReply) {
    let Ok(event) = serde_json::from_str::<CohereEvent<'_>>(json) else { return };
    let message = event.delta.and_then(|delta| delta.message);
    let Some(content) = message.and_then(|message| message.content) else { return };
    reply.thinking(&content.thinking);
    reply.text(&content.text);
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseEvent<'a> {
    content_block_index: Option<u64>,
    #[serde(borrow)]
    start: Rare<'a>,
    #[serde(borrow)]
    delta: Option<ConverseDelta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseDelta<'a> {
    #[serde(borrow)]
    text: Borrowed<'a>,
    #[serde(borrow)]
    reasoning_content: Option<ConverseThinking<'a>>,
    #[serde(borrow)]
    tool_use: Rare<'a>,
    #[serde(borrow)]
    tool_result: Rare<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConverseThinking<'a> {
    #[serde(borrow)]
    text: Borrowed<'a>,
    #[serde(borrow)]
    signature: Borrowed<'a>,
    #[serde(borrow)]
    redacted_content: Borrowed<'a>,
}

fn converse(json: &str, reply: &mut FloorReply) {
    let Ok(event) = serde_json::from_str::<ConverseEvent<'_>>(json) else { return };
    let Some(delta) = event.delta else { return };
    if let Some(thinking) = &delta.reasoning_content {
        reply.thinking(&thinking.text);
    }
    reply.text(&delta.text);
}
