//! What a streamed and a whole reply say in the same words.

use serde_json::{Map, Value};

use crate::dialect::Rules;
use crate::event::{Ending, Usage};
use crate::wire::ReplyHead;
use crate::wire::json::{ObjectWriter, Raw, each_entry, quote};
use crate::wire::out::{counters, put, total};

/// The members of a call that came with it and go with it.
pub(super) fn kept_extra(rules: &Rules, native: Option<&str>) -> Option<String> {
    let native = Raw::of(native?).ok()?;
    let mut extra = ObjectWriter::default();
    let mut any = false;
    each_entry(native, |key, value| {
        if rules.read.call_extra.iter().any(|path| path.split('.').next() == Some(key)) {
            extra.push(key, value.get());
            any = true;
        }
    });
    any.then(|| extra.finish())
}

/// A seal where this dialect has it on a call.
pub(super) fn seal_extra(rules: &Rules, seal: &str) -> Option<String> {
    let path = rules.read.call_extra.first()?;
    let mut object = Map::new();
    put(&mut object, path, seal.into());
    Some(Value::Object(object).to_string())
}

/// A payload of the whole message under the field it belongs to.
pub(super) fn opaque(rules: &Rules, name: &str, seal: &str) -> String {
    let paths = rules.read.call_extra.iter();
    let path = paths.into_iter().find(|path| path.split('.').next() == Some(name)).map_or(name, String::as_str);
    let mut object = Map::new();
    put(&mut object, path, seal.into());
    Value::Object(object).to_string()
}

/// What a reply says of itself, as the beginning of an object.
pub(super) fn chunk_head(head: &ReplyHead<'_>, kind: &str) -> String {
    let ReplyHead { id, model, created } = head;
    format!(r#"{{"id":{},"object":"{kind}","created":{created},"model":{}"#, quote(id), quote(model))
}

pub(super) fn usage(rules: &Rules, usage: Usage) -> String {
    let path =
        if rules.usage.path.is_empty() { "completion_tokens_details.reasoning_tokens" } else { &rules.usage.path };
    let counts = [
        ("prompt_tokens", usage.input),
        ("completion_tokens", usage.output),
        ("total_tokens", total(usage)),
        (path, usage.reasoning),
        ("prompt_tokens_details.cached_tokens", usage.cached),
    ];
    Value::Object(counters(counts)).to_string()
}

pub(super) fn finish_word(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop => Some("stop"),
        Ending::Length => Some("length"),
        Ending::ToolCalls => Some("tool_calls"),
        Ending::ContentFilter => Some("content_filter"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause_turn"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(word) => Some(word),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
