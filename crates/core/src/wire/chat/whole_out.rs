//! Writes a whole chat completion. One message holds all thinking, then all text,
//! then the calls, whatever their order was.

use super::detail_out::DetailOut;
use super::details::DetailList;
use super::reply_members::{chunk_head, finish_reason, kept_extra, opaque_member, seal_extra, usage_json};
use super::thinking_carrier::{
    ContentState, ThinkingCarrier, ThinkingTags, carrier_for, dialect_detail_list, tags_for,
};
use crate::block::{Block, Reply, Thinking, ToolCall, Unmodelled};
use crate::dialect::{Carrier, DeltaMode, Rules};
use crate::json_text::{ObjectWriter, Raw, quote};
use crate::wire::ReplyHead;
use crate::wire::error_out::error_in_stream;
use crate::wire::request_draft::{arguments_text, encrypted, object, signature};
use crate::wire::stream_parts::is_unknown_usage;

/// The members of the message, collected block by block.
#[derive(Default)]
struct MessageParts {
    /// Thinking fields, in order.
    fields: Vec<(String, String)>,
    details: Vec<(DetailList, String)>,
    /// Members next to the content, each as an object with one member.
    extra_members: Vec<String>,
    text: String,
    tail: Option<String>,
    /// Elements of a content array, if one is needed.
    chunks: Vec<String>,
    calls: Vec<String>,
    content_state: ContentState,
    n_details: u64,
}

pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    let mut parts = MessageParts::default();
    parts.content_state.tags_are_literal = has_thinking_outside_content(rules, reply);
    if let Some(field) = &reply.empty_thinking_field {
        parts.empty_thinking_field(rules, field);
    }
    for block in &reply.blocks {
        match block {
            Block::Thinking(thinking) => parts.thinking(rules, thinking),
            Block::Text(text) => {
                parts.answer(&text.text);
                parts.extra_members.extend(text.seal.as_ref().and_then(|seal| seal_extra(rules, &seal.payload)));
            }
            Block::ToolCall(call) => parts.call(rules, call),
            Block::Unmodelled(Unmodelled { native }) => {
                let chunks = !parts.chunks.is_empty() || rules.echo.carrier == Carrier::ContentChunks;
                if chunks && rules.read.content_chunks {
                    parts.flush_text();
                    parts.chunks.push(native.json.clone());
                }
            }
            Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    let message = parts.message();
    body(rules, head, reply, &message)
}

/// Whether any thinking is outside the content. It is read first, and then tags
/// are literal.
fn has_thinking_outside_content(rules: &Rules, reply: &Reply) -> bool {
    let mut content_state = ContentState::default();
    reply.blocks.iter().any(|block| match block {
        Block::Thinking(thinking) => match carrier_for(rules, &thinking.source, &content_state) {
            ThinkingCarrier::Tags(_) => {
                content_state.tagged = true;
                thinking.seals().is_some() && dialect_detail_list(rules).is_some()
            }
            ThinkingCarrier::Opaque(_) => false,
            ThinkingCarrier::Field(_) | ThinkingCarrier::Details(_) | ThinkingCarrier::Chunk => true,
        },
        Block::Text(text) => {
            content_state.content_began |= !text.text.trim().is_empty();
            false
        }
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    })
}

fn body(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply, message: &str) -> String {
    let finish = finish_reason(&reply.end.ending).map_or_else(|| "null".to_owned(), quote);
    let choice = object([("index", "0"), ("message", message), ("logprobs", "null"), ("finish_reason", &finish)]);
    let mut out = chunk_head(head, "chat.completion");
    out.push_str(&format!(r#","choices":[{choice}]"#));
    if !is_unknown_usage(reply.usage) {
        out.push_str(&format!(r#","usage":{}"#, usage_json(rules, reply.usage)));
    }
    let failed_by_reason = |code: &Option<String>| code.as_ref().is_some_and(|code| rules.finish.errors.contains(code));
    if let Some(error) = reply.end.error.as_ref().filter(|error| !failed_by_reason(&error.code)) {
        out.push_str(&format!(r#","error":{}"#, error_in_stream(error)));
    }
    out.push('}');
    out
}

impl MessageParts {
    /// Adds a thinking field that stayed empty.
    fn empty_thinking_field(&mut self, rules: &Rules, field: &str) {
        if rules.read.text.iter().any(|known| known == field) {
            self.fields.push((field.to_owned(), String::new()));
        } else if let Some(ThinkingTags { open, close, .. }) = tags_for(rules, field, &self.content_state) {
            self.content_state.tagged = true;
            self.text.push_str(&format!("{open}{close}"));
        } else if dialect_detail_list(rules).is_some_and(|list| list.field() == field) {
            self.extra_members.push(object([(field, "[]")]));
        }
    }

    fn answer(&mut self, text: &str) {
        self.content_state.content_began |= !text.trim().is_empty();
        self.text.push_str(text);
    }

    fn flush_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.chunks.push(object([("type", "\"text\""), ("text", &quote(&text))]));
        }
    }

    fn thinking(&mut self, rules: &Rules, thinking: &Thinking) {
        let carrier = carrier_for(rules, &thinking.source, &self.content_state);
        let text = thinking.text();
        match &carrier {
            ThinkingCarrier::Field(name) if !text.is_empty() => {
                match self.fields.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known_text)) => known_text.push_str(text),
                    None => self.fields.push((name.clone(), text.to_owned())),
                }
            }
            ThinkingCarrier::Chunk if !text.is_empty() => {
                self.flush_text();
                let part = format!("[{}]", object([("type", "\"text\""), ("text", &quote(text))]));
                self.chunks.push(object([("type", "\"thinking\""), ("thinking", &part)]));
            }
            ThinkingCarrier::Tags(tags) => {
                self.content_state.tagged = true;
                self.text.push_str(&format!("{}{text}{}", tags.open, tags.close));
                self.tail.clone_from(&tags.tail);
            }
            ThinkingCarrier::Opaque(name) => {
                let seal = encrypted(thinking).or(signature(thinking)).unwrap_or("");
                let native = thinking.native.as_ref().map(|native| native.json.clone());
                self.extra_members.push(native.unwrap_or_else(|| opaque_member(rules, name, seal)));
                return;
            }
            ThinkingCarrier::Details(_) | ThinkingCarrier::Field(_) | ThinkingCarrier::Chunk => (),
        }
        self.content_state.tags_are_literal |= !matches!(carrier, ThinkingCarrier::Tags(_)) && !text.is_empty();
        self.seal(rules, &carrier, thinking);
    }

    fn seal(&mut self, rules: &Rules, carrier: &ThinkingCarrier, thinking: &Thinking) {
        let (signature, encrypted) = (signature(thinking), encrypted(thinking));
        match (carrier, dialect_detail_list(rules), rules.read.opaque.first()) {
            (ThinkingCarrier::Details(list), ..) => self.detail(*list, thinking, true),
            _ if signature.is_none() && encrypted.is_none() => (),
            (ThinkingCarrier::Chunk, ..) if signature.is_some() => {
                let payload = quote(signature.unwrap_or(""));
                let members = [("type", "\"thinking\""), ("thinking", "[]"), ("signature", &payload)];
                self.chunks.push(object(members));
            }
            (_, Some(list), _) => self.detail(list, thinking, false),
            (_, None, Some(field)) => {
                self.extra_members.extend(encrypted.or(signature).map(|seal| opaque_member(rules, field, seal)))
            }
            (_, None, None) => (),
        }
    }

    fn detail(&mut self, list: DetailList, thinking: &Thinking, has_text: bool) {
        let own = has_text && thinking.source == list.field();
        let mut detail = DetailOut::new(list, self.n_details, DeltaMode::Delta, thinking.id.as_deref().filter(|_| own));
        self.n_details += 1;
        if let Some(native) = thinking.native.as_ref().filter(|_| own) {
            detail.keep(&native.json, native.text_member.as_deref());
        }
        if !thinking.items.is_empty() {
            detail.mark_summary();
        }
        detail.set_seals(signature(thinking).map(str::to_owned), encrypted(thinking).map(str::to_owned));
        let text = thinking.text();
        self.details.push((list, detail.whole(Some(text).filter(|text| has_text && !text.is_empty()))));
    }

    fn call(&mut self, rules: &Rules, call: &ToolCall) {
        let arguments = quote(arguments_text(&call.arguments));
        let function = object([("name", &quote(&call.name)), ("arguments", &arguments)]);
        let mut entry = ObjectWriter::default();
        entry.push_raw("id", &quote(call.id.as_str()));
        entry.push_raw("type", "\"function\"");
        entry.push_raw("function", &function);
        let kept = kept_extra(rules, call.native.as_ref().map(|native| native.json.as_str()));
        let extra = kept.or_else(|| seal_extra(rules, &call.seal.as_ref()?.payload));
        if let Some(extra) = extra {
            entry.push_members(&extra);
        }
        self.calls.push(entry.finish());
    }

    fn message(mut self) -> String {
        if let Some(tail) = self.tail.take().filter(|_| self.content_state.content_began) {
            self.text.push_str(&tail);
        }
        let mut message = ObjectWriter::default();
        message.push_raw("role", "\"assistant\"");
        if self.chunks.is_empty() {
            let nothing = self.text.is_empty() && !self.calls.is_empty();
            message.push_raw("content", &if nothing { "null".to_owned() } else { quote(&self.text) });
        } else {
            self.flush_text();
            message.push_list("content", &self.chunks);
        }
        for (name, text) in &self.fields {
            message.push_raw(name, &quote(text));
        }
        for list in [DetailList::ReasoningDetails, DetailList::ThinkingBlocks] {
            let details: Vec<String> =
                self.details.iter().filter(|(of, _)| *of == list).map(|(_, detail)| detail.clone()).collect();
            if !details.is_empty() {
                message.push_list(list.field(), details);
            }
        }
        for members in self.extra_members.iter().filter(|members| Raw::of(members).is_ok()) {
            message.push_members(members);
        }
        if !self.calls.is_empty() {
            message.push_list("tool_calls", &self.calls);
        }
        message.finish()
    }
}
