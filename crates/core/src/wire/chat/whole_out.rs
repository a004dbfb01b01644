//! A whole chat completion. One message holds one of each: all thinking, then
//! all text, then the calls, whatever their order was.

use super::details::Family;
use super::entry::Entry;
use super::phrases::{chunk_head, finish_word, kept_extra, opaque, seal_extra, usage};
use super::place::{Course, Place, Tags, family, place, tags};
use crate::block::{Block, Reply, Thinking, ToolCall, Unmodelled};
use crate::dialect::{Carrier, DeltaMode, Rules};
use crate::wire::ReplyHead;
use crate::wire::draft::{arguments_text, encrypted, object, signature};
use crate::wire::failure_out::error_in_stream;
use crate::wire::json::{ObjectWriter, Raw, quote};
use crate::wire::out::is_unknown;

/// The message as it comes together.
#[derive(Default)]
struct Whole {
    /// Thinking fields, in the order they came.
    fields: Vec<(String, String)>,
    entries: Vec<(Family, String)>,
    /// Payloads beside the content, each an object of one member.
    beside: Vec<String>,
    text: String,
    tail: Option<String>,
    /// Elements of a content array, where one is needed.
    chunks: Vec<String>,
    calls: Vec<String>,
    course: Course,
    n_entries: u64,
}

pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    let mut whole = Whole::default();
    whole.course.tags_are_literal = speaks_beside(rules, reply);
    if let Some(field) = &reply.seen {
        whole.seen(rules, field);
    }
    for block in &reply.blocks {
        match block {
            Block::Thinking(thinking) => whole.thinking(rules, thinking),
            Block::Text(text) => {
                whole.answer(&text.text);
                whole.beside.extend(text.seal.as_ref().and_then(|seal| seal_extra(rules, &seal.payload)));
            }
            Block::ToolCall(call) => whole.call(rules, call),
            Block::Unmodelled(Unmodelled { native }) => {
                let chunks = !whole.chunks.is_empty() || rules.echo.carrier == Carrier::ContentChunks;
                if chunks && rules.read.content_chunks {
                    whole.flush_text();
                    whole.chunks.push(native.json.clone());
                }
            }
            Block::ToolResult(_) | Block::Image(_) => (),
        }
    }
    let message = whole.message();
    body(rules, head, reply, &message)
}

/// Whether anything of a thought stands beside the content. It is read first,
/// and tags are literal then.
fn speaks_beside(rules: &Rules, reply: &Reply) -> bool {
    let mut course = Course::default();
    reply.blocks.iter().any(|block| match block {
        Block::Thinking(thinking) => match place(rules, &thinking.source, &course) {
            Place::Tags(_) => {
                course.tagged = true;
                thinking.seals().is_some() && family(rules).is_some()
            }
            Place::Opaque(_) => false,
            Place::Field(_) | Place::Details(_) | Place::Chunk => true,
        },
        Block::Text(text) => {
            course.content_began |= !text.text.trim().is_empty();
            false
        }
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => false,
    })
}

fn body(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply, message: &str) -> String {
    let finish = finish_word(&reply.end.ending).map_or_else(|| "null".to_owned(), quote);
    let choice = object([("index", "0"), ("message", message), ("logprobs", "null"), ("finish_reason", &finish)]);
    let mut out = chunk_head(head, "chat.completion");
    out.push_str(&format!(r#","choices":[{choice}]"#));
    if !is_unknown(reply.usage) {
        out.push_str(&format!(r#","usage":{}"#, usage(rules, reply.usage)));
    }
    let failed_by_word = |code: &Option<String>| code.as_ref().is_some_and(|code| rules.finish.errors.contains(code));
    if let Some(error) = reply.end.error.as_ref().filter(|error| !failed_by_word(&error.code)) {
        out.push_str(&format!(r#","error":{}"#, error_in_stream(error)));
    }
    out.push('}');
    out
}

impl Whole {
    /// A thinking field that stayed empty.
    fn seen(&mut self, rules: &Rules, field: &str) {
        if rules.read.text.iter().any(|known| known == field) {
            self.fields.push((field.to_owned(), String::new()));
        } else if let Some(Tags { open, close, .. }) = tags(rules, field, &self.course) {
            self.course.tagged = true;
            self.text.push_str(&format!("{open}{close}"));
        } else if family(rules).is_some_and(|family| family.field() == field) {
            self.beside.push(object([(field, "[]")]));
        }
    }

    fn answer(&mut self, text: &str) {
        self.course.content_began |= !text.trim().is_empty();
        self.text.push_str(text);
    }

    fn flush_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.chunks.push(object([("type", "\"text\""), ("text", &quote(&text))]));
        }
    }

    fn thinking(&mut self, rules: &Rules, thinking: &Thinking) {
        let place = place(rules, &thinking.source, &self.course);
        let text = thinking.text();
        match &place {
            Place::Field(name) if !text.is_empty() => match self.fields.iter_mut().find(|(known, _)| known == name) {
                Some((_, said)) => said.push_str(text),
                None => self.fields.push((name.clone(), text.to_owned())),
            },
            Place::Chunk if !text.is_empty() => {
                self.flush_text();
                let part = format!("[{}]", object([("type", "\"text\""), ("text", &quote(text))]));
                self.chunks.push(object([("type", "\"thinking\""), ("thinking", &part)]));
            }
            Place::Tags(tags) => {
                self.course.tagged = true;
                self.text.push_str(&format!("{}{text}{}", tags.open, tags.close));
                self.tail.clone_from(&tags.tail);
            }
            Place::Opaque(name) => {
                let seal = encrypted(thinking).or(signature(thinking)).unwrap_or("");
                let native = thinking.native.as_ref().map(|native| native.json.clone());
                self.beside.push(native.unwrap_or_else(|| opaque(rules, name, seal)));
                return;
            }
            Place::Details(_) | Place::Field(_) | Place::Chunk => (),
        }
        self.course.tags_are_literal |= !matches!(place, Place::Tags(_)) && !text.is_empty();
        self.seal(rules, &place, thinking);
    }

    fn seal(&mut self, rules: &Rules, place: &Place, thinking: &Thinking) {
        let (signature, encrypted) = (signature(thinking), encrypted(thinking));
        match (place, family(rules), rules.read.opaque.first()) {
            (Place::Details(family), ..) => self.entry(*family, thinking, true),
            _ if signature.is_none() && encrypted.is_none() => (),
            (Place::Chunk, ..) if signature.is_some() => {
                let payload = quote(signature.unwrap_or(""));
                let members = [("type", "\"thinking\""), ("thinking", "[]"), ("signature", &payload)];
                self.chunks.push(object(members));
            }
            (_, Some(family), _) => self.entry(family, thinking, false),
            (_, None, Some(field)) => {
                self.beside.extend(encrypted.or(signature).map(|seal| opaque(rules, field, seal)))
            }
            (_, None, None) => (),
        }
    }

    fn entry(&mut self, family: Family, thinking: &Thinking, has_text: bool) {
        let own = has_text && thinking.source == family.field();
        let mut entry = Entry::new(family, self.n_entries, DeltaMode::Delta, thinking.id.as_deref().filter(|_| own));
        self.n_entries += 1;
        if let Some(native) = thinking.native.as_ref().filter(|_| own) {
            entry.keep(&native.json, native.text_member.as_deref());
        }
        if !thinking.items.is_empty() {
            entry.summarize();
        }
        entry.hold(signature(thinking).map(str::to_owned), encrypted(thinking).map(str::to_owned));
        let text = thinking.text();
        self.entries.push((family, entry.whole(Some(text).filter(|text| has_text && !text.is_empty()))));
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
        if let Some(tail) = self.tail.take().filter(|_| self.course.content_began) {
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
        for family in [Family::ReasoningDetails, Family::ThinkingBlocks] {
            let entries: Vec<String> =
                self.entries.iter().filter(|(of, _)| *of == family).map(|(_, entry)| entry.clone()).collect();
            if !entries.is_empty() {
                message.push_list(family.field(), entries);
            }
        }
        for beside in self.beside.iter().filter(|beside| Raw::of(beside).is_ok()) {
            message.push_members(beside);
        }
        if !self.calls.is_empty() {
            message.push_list("tool_calls", &self.calls);
        }
        message.finish()
    }
}
