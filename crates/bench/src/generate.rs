//! Generates streams of any length: thinking, then an answer, in the frames of the
//! real services.

use std::fmt::Write;

use aside_core::protocol::Protocol;
use serde_json::Value;

/// Words of different lengths, some with characters that JSON escapes.
const WORDS: [&str; 10] =
    ["Let", " me look", " at this", " carefully", ".\n", " The \"first\" step", " is", " naïve", ", then", " 終わり"];

/// A stream of this many deltas, half thinking, half text.
pub fn stream(protocol: Protocol, deltas: usize) -> Vec<u8> {
    let thinking = WORDS.iter().cycle().take(deltas / 2).map(|word| (true, (*word).to_owned()));
    let text = WORDS.iter().cycle().take(deltas - deltas / 2).map(|word| (false, (*word).to_owned()));
    frames(protocol, thinking.chain(text))
}

/// The length of the text of [`stream`].
pub fn text_bytes(deltas: usize) -> usize {
    let words = |count: usize| WORDS.iter().cycle().take(count).map(|word| word.len()).sum::<usize>();
    words(deltas / 2) + words(deltas - deltas / 2)
}

/// A stream of one thinking block.
pub fn one_thinking_block(protocol: Protocol, pieces: impl Iterator<Item = String>) -> Vec<u8> {
    frames(protocol, pieces.map(|piece| (true, piece)))
}

fn frames(protocol: Protocol, deltas: impl Iterator<Item = (bool, String)>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut side = None;
    frame(protocol, GeneratedFrame::Start, &mut out);
    for (thinking, text) in deltas {
        if side != Some(thinking) {
            if let Some(before) = side {
                frame(protocol, GeneratedFrame::Close { thinking: before }, &mut out);
            }
            frame(protocol, GeneratedFrame::Open { thinking }, &mut out);
            side = Some(thinking);
        }
        frame(protocol, GeneratedFrame::Delta { thinking, text: &text }, &mut out);
    }
    if let Some(before) = side {
        frame(protocol, GeneratedFrame::Close { thinking: before }, &mut out);
    }
    frame(protocol, GeneratedFrame::End, &mut out);
    out
}

enum GeneratedFrame<'a> {
    Start,
    Open { thinking: bool },
    Delta { thinking: bool, text: &'a str },
    Close { thinking: bool },
    End,
}

fn frame(protocol: Protocol, frame: GeneratedFrame<'_>, out: &mut Vec<u8>) {
    match protocol {
        Protocol::OpenaiChat => sse(None, &chat(&frame), out),
        Protocol::OpenaiResponses => {
            let (name, data) = responses(&frame);
            sse(Some(name), &data, out);
        }
        Protocol::Anthropic => {
            let (name, data) = anthropic(&frame);
            sse(Some(name), &data, out);
        }
        Protocol::Gemini => sse(None, &gemini(&frame), out),
        Protocol::Cohere => sse(None, &cohere(&frame), out),
        Protocol::Ollama => {
            let line = ollama(&frame);
            if !line.is_empty() {
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            }
        }
        Protocol::Bedrock => {
            let (name, payload) = converse(&frame);
            if !name.is_empty() {
                event_stream(name, payload.as_bytes(), out);
            }
        }
    }
}

fn sse(name: Option<&str>, data: &str, out: &mut Vec<u8>) {
    if data.is_empty() {
        return;
    }
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

fn json(text: &str) -> String {
    Value::from(text).to_string()
}

fn chat(frame: &GeneratedFrame<'_>) -> String {
    let head = r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"m-1","system_fingerprint":"fp_0","choices":[{"index":0,"delta":"#;
    let tail = r#","logprobs":null,"finish_reason":"#;
    match frame {
        GeneratedFrame::Start => format!(r#"{head}{{"role":"assistant","content":""}}{tail}null}}]}}"#),
        GeneratedFrame::Delta { thinking: true, text } => {
            format!(r#"{head}{{"content":null,"reasoning_content":{}}}{tail}null}}]}}"#, json(text))
        }
        GeneratedFrame::Delta { thinking: false, text } => {
            format!(r#"{head}{{"content":{}}}{tail}null}}]}}"#, json(text))
        }
        GeneratedFrame::End => format!(
            r#"{head}{{}}{tail}"stop"}}],"usage":{{"prompt_tokens":9,"completion_tokens":40000,"total_tokens":40009}}}}"#
        ),
        GeneratedFrame::Open { .. } | GeneratedFrame::Close { .. } => String::new(),
    }
}

fn responses(frame: &GeneratedFrame<'_>) -> (&'static str, String) {
    match frame {
        GeneratedFrame::Start => (
            "response.created",
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"m-1","output":[]}}"#
                .to_owned(),
        ),
        GeneratedFrame::Open { thinking: true } => (
            "response.output_item.added",
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#.to_owned(),
        ),
        GeneratedFrame::Open { thinking: false } => (
            "response.output_item.added",
            r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}"#
                .to_owned(),
        ),
        GeneratedFrame::Delta { thinking: true, text } => (
            "response.reasoning_summary_text.delta",
            format!(
                r#"{{"type":"response.reasoning_summary_text.delta","sequence_number":77,"item_id":"rs_0123456789abcdef0123456789abcdef","output_index":0,"summary_index":0,"delta":{},"obfuscation":"x9Kq"}}"#,
                json(text)
            ),
        ),
        GeneratedFrame::Delta { thinking: false, text } => (
            "response.output_text.delta",
            format!(
                r#"{{"type":"response.output_text.delta","sequence_number":78,"item_id":"msg_0123456789abcdef0123456789abcdef","output_index":1,"content_index":0,"delta":{},"logprobs":[],"obfuscation":"x9Kq"}}"#,
                json(text)
            ),
        ),
        GeneratedFrame::Close { .. } => ("", String::new()),
        GeneratedFrame::End => (
            "response.completed",
            r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":9,"output_tokens":40000,"output_tokens_details":{"reasoning_tokens":20000}}}}"#
                .to_owned(),
        ),
    }
}

fn anthropic(frame: &GeneratedFrame<'_>) -> (&'static str, String) {
    let index = |thinking: bool| usize::from(!thinking);
    match frame {
        GeneratedFrame::Start => (
            "message_start",
            r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#
                .to_owned(),
        ),
        GeneratedFrame::Open { thinking: true } => (
            "content_block_start",
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#.to_owned(),
        ),
        GeneratedFrame::Open { thinking: false } => (
            "content_block_start",
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#.to_owned(),
        ),
        GeneratedFrame::Delta { thinking, text } => {
            let (kind, member) = if *thinking { ("thinking_delta", "thinking") } else { ("text_delta", "text") };
            let data = format!(
                r#"{{"type":"content_block_delta","index":{},"delta":{{"type":"{kind}","{member}":{}}}             }}"#,
                index(*thinking),
                json(text)
            );
            ("content_block_delta", data)
        }
        GeneratedFrame::Close { thinking } => {
            ("content_block_stop", format!(r#"{{"type":"content_block_stop","index":{}}}"#, index(*thinking)))
        }
        GeneratedFrame::End => (
            "message_delta",
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":40000}}"#.to_owned(),
        ),
    }
}

fn gemini(frame: &GeneratedFrame<'_>) -> String {
    let tail = r#""usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":12,"totalTokenCount":400,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}],"thoughtsTokenCount":300},"modelVersion":"m-1","responseId":"r-0123456789"}"#;
    match frame {
        GeneratedFrame::Delta { thinking, text } => {
            let thought = if *thinking { r#","thought":true"# } else { "" };
            format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"text":{}{thought}}}],"role":"model"}},"index":0}}],{tail}"#,
                json(text)
            )
        }
        GeneratedFrame::End => format!(
            r#"{{"candidates":[{{"content":{{"parts":[],"role":"model"}},"finishReason":"STOP","index":0}}],{tail}"#
        ),
        GeneratedFrame::Start | GeneratedFrame::Open { .. } | GeneratedFrame::Close { .. } => String::new(),
    }
}

fn ollama(frame: &GeneratedFrame<'_>) -> String {
    let head =
        r#"{"model":"m-1","created_at":"2026-11-15T09:30:00.123456789Z","message":{"role":"assistant","content":"#;
    match frame {
        GeneratedFrame::Delta { thinking: true, text } => {
            format!(r#"{head}"","thinking":{}}},"done":false}}"#, json(text))
        }
        GeneratedFrame::Delta { thinking: false, text } => format!(r#"{head}{}}},"done":false}}"#, json(text)),
        GeneratedFrame::End => {
            format!(r#"{head}""}},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":40000}}"#)
        }
        GeneratedFrame::Start | GeneratedFrame::Open { .. } | GeneratedFrame::Close { .. } => String::new(),
    }
}

fn cohere(frame: &GeneratedFrame<'_>) -> String {
    match frame {
        GeneratedFrame::Start => r#"{"type":"message-start","id":"m1","delta":{"message":{"role":"assistant","content":[]}}}"#.to_owned(),
        GeneratedFrame::Open { thinking } => {
            let (index, kind) = if *thinking { (0, "thinking") } else { (1, "text") };
            format!(r#"{{"type":"content-start","index":{index},"delta":{{"message":{{"content":{{"type":"{kind}","{kind}":""}}}}}}}}"#)
        }
        GeneratedFrame::Delta { thinking, text } => {
            let (index, kind) = if *thinking { (0, "thinking") } else { (1, "text") };
            let mut out = String::new();
            let _ = write!(
                out,
                r#"{{"type":"content-delta","index":{index},"delta":{{"message":{{"content":{{"{kind}":{}}}}}}}}}"#,
                json(text)
            );
            out
        }
        GeneratedFrame::Close { thinking } => format!(r#"{{"type":"content-end","index":{}}}"#, usize::from(!thinking)),
        GeneratedFrame::End => {
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":9,"output_tokens":40000}}}}"#
                .to_owned()
        }
    }
}

fn converse(frame: &GeneratedFrame<'_>) -> (&'static str, String) {
    match frame {
        GeneratedFrame::Start => ("messageStart", r#"{"p":"abcdefghij","role":"assistant"}"#.to_owned()),
        GeneratedFrame::Open { .. } => ("", String::new()),
        GeneratedFrame::Delta { thinking: true, text } => (
            "contentBlockDelta",
            format!(
                r#"{{"contentBlockIndex":0,"delta":{{"reasoningContent":{{"text":{}}}}},"p":"abcdefghijklmnop"}}"#,
                json(text)
            ),
        ),
        GeneratedFrame::Delta { thinking: false, text } => (
            "contentBlockDelta",
            format!(r#"{{"contentBlockIndex":1,"delta":{{"text":{}}},"p":"abcdefghijklmnop"}}"#, json(text)),
        ),
        GeneratedFrame::Close { thinking } => {
            ("contentBlockStop", format!(r#"{{"contentBlockIndex":{},"p":"abc"}}"#, usize::from(!thinking)))
        }
        GeneratedFrame::End => ("messageStop", r#"{"p":"abc","stopReason":"end_turn"}"#.to_owned()),
    }
}

fn event_stream(name: &str, payload: &[u8], out: &mut Vec<u8>) {
    let mut headers = Vec::new();
    for (key, value) in [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")] {
        headers.push(key.len() as u8);
        headers.extend_from_slice(key.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let start = out.len();
    out.extend_from_slice(&((16 + headers.len() + payload.len()) as u32).to_be_bytes());
    out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    let prelude = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&prelude.to_be_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload);
    let whole = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&whole.to_be_bytes());
}
