//! JSON members shared by streamed and whole replies.

use serde_json::{Map, Value};

use crate::dialect::Rules;
use crate::event::{Ending, Usage};
use crate::json_text::{ObjectWriter, Raw, each_member, quote, set_value};
use crate::wire::ReplyHead;
use crate::wire::stream_parts::{total_tokens, usage_object};

/// The native members of a call that the dialect sends with it.
pub(super) fn kept_extra(rules: &Rules, native: Option<&str>) -> Option<String> {
    let native = Raw::of(native?).ok()?;
    let mut extra = ObjectWriter::default();
    let mut any = false;
    each_member(native, |key, value| {
        if rules.read.call_extra.iter().any(|path| path.split('.').next() == Some(key)) {
            extra.push(key, value.get());
            any = true;
        }
    });
    any.then(|| extra.finish())
}

/// A seal as the dialect attaches it to a call.
pub(super) fn seal_extra(rules: &Rules, seal: &str) -> Option<String> {
    let path = rules.read.call_extra.first()?;
    let mut object = Map::new();
    set_value(&mut object, path, seal.into());
    Some(Value::Object(object).to_string())
}

/// A payload of the whole message, under its field.
pub(super) fn opaque_member(rules: &Rules, name: &str, seal: &str) -> String {
    let paths = rules.read.call_extra.iter();
    let path = paths.into_iter().find(|path| path.split('.').next() == Some(name)).map_or(name, String::as_str);
    let mut object = Map::new();
    set_value(&mut object, path, seal.into());
    Value::Object(object).to_string()
}

/// The metadata of a reply, as the beginning of a JSON object.
pub(super) fn chunk_head(head: &ReplyHead<'_>, kind: &str) -> String {
    let ReplyHead { id, model, created, .. } = head;
    format!(r#"{{"id":{},"object":"{kind}","created":{created},"model":{}"#, quote(id), quote(model))
}

pub(super) fn usage_json(rules: &Rules, usage: Usage) -> String {
    let path =
        if rules.usage.path.is_empty() { "completion_tokens_details.reasoning_tokens" } else { &rules.usage.path };
    let counts = [
        ("prompt_tokens", usage.input),
        ("completion_tokens", usage.output),
        ("total_tokens", total_tokens(usage)),
        (path, usage.reasoning),
        ("prompt_tokens_details.cached_tokens", usage.cached),
        ("prompt_tokens_details.cache_write_tokens", usage.cache_write),
    ];
    Value::Object(usage_object(counts)).to_string()
}

pub(super) fn finish_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop => Some("stop"),
        Ending::Length => Some("length"),
        Ending::ToolCalls => Some("tool_calls"),
        Ending::ContentFilter => Some("content_filter"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause_turn"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(reason) => Some(reason),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
