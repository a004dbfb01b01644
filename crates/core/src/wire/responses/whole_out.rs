//! Writes a whole response, as a body or as the last event of a stream.

use serde_json::{Map, Value};

use super::item_out::{ItemKindOut, ItemOut};
use crate::block::{Block, Reply, Thinking};
use crate::dialect::Rules;
use crate::event::{Ending, ProviderError, Usage};
use crate::json_text::{ObjectWriter, quote};
use crate::wire::ReplyHead;
use crate::wire::error_out::error_in_stream;
use crate::wire::request_draft::{arguments_text, encrypted, list, object, signature};
use crate::wire::stream_parts::{is_unknown_usage, total_tokens, usage_object};

/// The status of a response, in this protocol's terms.
#[derive(Debug)]
pub(super) struct ResponseStatus {
    status: &'static str,
    /// Why it is incomplete.
    reason: Option<String>,
    error: Option<ProviderError>,
}

impl ResponseStatus {
    pub(super) const IN_PROGRESS: ResponseStatus = ResponseStatus { status: "in_progress", reason: None, error: None };

    pub(super) fn event(&self) -> &'static str {
        match self.status {
            "failed" => "response.failed",
            "incomplete" => "response.incomplete",
            _ => "response.completed",
        }
    }
}

pub(super) fn response_status(ending: &Ending, error: Option<&ProviderError>) -> ResponseStatus {
    let (status, reason) = match ending {
        Ending::Stop | Ending::ToolCalls | Ending::Refusal => ("completed", None),
        Ending::Length => ("incomplete", Some("max_output_tokens")),
        Ending::ContentFilter => ("incomplete", Some("content_filter")),
        Ending::Pause => ("incomplete", Some("pause_turn")),
        Ending::Unrecognized(other) => ("incomplete", Some(other.as_str())),
        Ending::Error => ("failed", None),
        Ending::Unsaid | Ending::CutOff => ("in_progress", None),
    };
    ResponseStatus { status, reason: reason.map(str::to_owned), error: error.cloned() }
}

pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), [], Ending::Unsaid) = (&reply.end.error, reply.blocks.as_slice(), &reply.end.ending) {
        return object([("error", &error_in_stream(error))]);
    }
    let mut items = Vec::new();
    for block in &reply.blocks {
        let index = items.len();
        let mut item = match block {
            Block::Text(text) => {
                let mut item = ItemOut::new(ItemKindOut::Message, None);
                item.text.clone_from(&text.text);
                item.native.clone_from(&text.native);
                item
            }
            Block::Thinking(thinking) => thinking_item(thinking),
            Block::ToolCall(call) => {
                let kind = ItemKindOut::Call { call_id: call.id.as_str().to_owned(), name: call.name.clone() };
                let mut item = ItemOut::new(kind, None);
                item.text = arguments_text(&call.arguments).to_owned();
                item.native.clone_from(&call.native);
                item
            }
            Block::Unmodelled(unmodelled) => {
                let mut item = ItemOut::new(ItemKindOut::Unmodelled, None);
                item.native = Some(unmodelled.native.clone());
                item
            }
            Block::ToolResult(_) | Block::Media(_) => continue,
        };
        item.assign_index(index);
        items.extend(Some(item.finished()).filter(|item| !item.is_empty()));
    }
    response(rules, head, &response_status(&reply.end.ending, reply.end.error.as_ref()), &items, reply.usage)
}

fn thinking_item(thinking: &Thinking) -> ItemOut {
    let mut item = ItemOut::new(ItemKindOut::Thinking, thinking.id.as_deref());
    if thinking.items.is_empty() {
        thinking.text().clone_into(&mut item.text);
    }
    for (index, range) in (0..).zip(&thinking.items) {
        item.enter(index);
        if let Some(part) = item.summary.last_mut() {
            thinking.text().get(range.clone()).unwrap_or("").clone_into(&mut part.text);
        }
    }
    item.encrypted = encrypted(thinking).or(signature(thinking)).map(str::to_owned);
    item.native.clone_from(&thinking.native);
    item
}

/// The response object, shared by both forms.
pub(super) fn response(
    rules: &Rules,
    head: &ReplyHead<'_>,
    status: &ResponseStatus,
    items: &[String],
    usage: Usage,
) -> String {
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
    let reason = status.reason.as_deref().map(|reason| object([("reason", &quote(reason))]));
    let error = status.error.as_ref().map(error_in_stream);
    let usage = Some(usage).filter(|usage| !is_unknown_usage(*usage)).map(|usage| counts(rules, usage));
    let mut body = ObjectWriter::default();
    body.push_text("id", head.id);
    body.push_raw("object", "\"response\"");
    body.push_raw("created_at", &head.created.to_string());
    body.push_text("status", status.status);
    body.push_raw("background", "false");
    body.push_raw("error", &or_null(error));
    body.push_raw("incomplete_details", &or_null(reason));
    body.push_raw("instructions", "null");
    body.push_raw("max_output_tokens", "null");
    body.push_text("model", head.model);
    body.push_raw("output", &list(items));
    body.push_raw("parallel_tool_calls", "true");
    body.push_raw("previous_response_id", &or_null(head.previous.map(quote)));
    body.push_raw("reasoning", r#"{"effort":null,"summary":null}"#);
    body.push_raw("store", if head.is_stored { "true" } else { "false" });
    body.push_raw("temperature", "1.0");
    body.push_raw("text", r#"{"format":{"type":"text"}}"#);
    body.push_raw("tool_choice", "\"auto\"");
    body.push_raw("tools", "[]");
    body.push_raw("top_p", "1.0");
    body.push_raw("truncation", "\"disabled\"");
    body.push_raw("usage", &or_null(usage));
    body.push_raw("metadata", "{}");
    body.finish()
}

fn counts(rules: &Rules, usage: Usage) -> String {
    let path = if rules.usage.path.is_empty() { "output_tokens_details.reasoning_tokens" } else { &rules.usage.path };
    let mut counts = usage_object([
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("total_tokens", total_tokens(usage)),
        // Codex and OpenAI's SDK stop without these two.
        ("input_tokens_details.cached_tokens", usage.cached.or(Some(0))),
        ("input_tokens_details.cache_write_tokens", usage.cache_write.or(Some(0))),
        (path, usage.reasoning),
    ]);
    // Clients expect both detail objects.
    counts.entry("output_tokens_details").or_insert_with(|| Value::Object(Map::new()));
    Value::Object(counts).to_string()
}
