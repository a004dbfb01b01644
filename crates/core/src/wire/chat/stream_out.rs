//! Chat Completions, events to bytes: every delta a chunk, then the finish
//! word, the usage and the end mark.

use super::entry::Entry;
use super::pace::Pace;
use super::phrases::{chunk_head, finish_word, kept_extra, opaque, seal_extra, usage};
use super::place::{Course, Place, Tags, family, place};
use crate::block::SealKind;
use crate::dialect::{Carrier, Rules};
use crate::event::{End, Ending, Event, Opening, Side, Usage};
use crate::tags::Start;
use crate::wire::ReplyHead;
use crate::wire::draft::object;
use crate::wire::failure_out::error_in_stream;
use crate::wire::json::{ObjectWriter, Raw, quote};
use crate::wire::out::{CallNames, Out, Slots, is_unknown};

#[derive(Debug)]
pub(in crate::wire) struct ChatWriter {
    rules: Rules,
    /// What every chunk begins with, up to its choices.
    head: String,
    slots: Slots<Slot>,
    names: CallNames,
    course: Course,
    began: bool,
    /// Thinking was a part of the content array.
    chunked: bool,
    n_calls: u64,
    n_entries: u64,
    thinking_pace: Pace,
    content_pace: Pace,
    /// The marker that belongs behind the answer.
    tail: Option<String>,
    usage: Usage,
}

#[derive(Debug)]
enum Slot {
    Text { seal: Option<String> },
    Thinking(Box<Thought>),
    Call(Box<Call>),
    Unmodelled { native: String },
}

#[derive(Debug)]
struct Thought {
    place: Place,
    /// Its entry in a list: the place itself, or where its seals go.
    entry: Option<Entry>,
    native: Option<String>,
    /// The item of a summary that grows.
    items: u32,
    grew: bool,
    closed: bool,
    signature: Option<String>,
    encrypted: Option<String>,
}

#[derive(Debug)]
struct Call {
    index: u64,
    id: String,
    name: String,
    began: bool,
    seal: Option<String>,
    native: Option<String>,
}

impl ChatWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> ChatWriter {
        let mode = rules.read.delta_mode;
        ChatWriter {
            head: chunk_head(head, "chat.completion.chunk"),
            slots: Slots::default(),
            names: CallNames::default(),
            course: Course::default(),
            began: false,
            chunked: false,
            n_calls: 0,
            n_entries: 0,
            thinking_pace: Pace::new(mode),
            content_pace: Pace::new(mode),
            tail: None,
            usage: Usage::default(),
            rules,
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match event {
            Event::Grew { block, text } => {
                if let Some(slot) = self.slots.at(block) {
                    let mut slot = std::mem::replace(slot, Slot::Text { seal: None });
                    self.grow(&mut slot, text, out);
                    self.put_back(block, slot);
                }
            }
            Event::Opened { opening, .. } => {
                self.begin(out);
                let slot = self.opened(opening);
                self.slots.open(slot);
            }
            Event::Closed { block } => {
                if let Some(slot) = self.slots.at(block) {
                    let mut slot = std::mem::replace(slot, Slot::Text { seal: None });
                    self.close(&mut slot, out);
                    self.put_back(block, slot);
                }
            }
            Event::Item { block, .. }
            | Event::Sealed { block, .. }
            | Event::Identified { block, .. }
            | Event::Kept { block, .. }
            | Event::Refiled { block, .. } => {
                if let Some(slot) = self.slots.at(block) {
                    let mut slot = std::mem::replace(slot, Slot::Text { seal: None });
                    self.learn(&mut slot, event, out);
                    self.put_back(block, slot);
                }
            }
            Event::Seen { field } => {
                self.begin(out);
                self.seen(field, out);
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            // The deltas have said it; a stream of deltas has no last word.
            Event::Restated { .. } | Event::Noted(_) => (),
            Event::Started { .. } => self.begin(out),
        }
    }

    fn put_back(&mut self, block: crate::event::BlockId, slot: Slot) {
        if let Some(place) = self.slots.at(block) {
            *place = slot;
        }
    }

    fn begin(&mut self, out: &mut Out) {
        if !std::mem::replace(&mut self.began, true) {
            self.delta(r#"{"role":"assistant","content":""}"#, out);
        }
    }

    fn opened(&mut self, opening: Opening<'_>) -> Slot {
        match opening {
            Opening::Text => Slot::Text { seal: None },
            Opening::Thinking { source, id } => {
                let place = place(&self.rules, source, &self.course);
                let entry = match &place {
                    Place::Details(family) => Some(self.entry(*family, id)),
                    Place::Field(_) | Place::Chunk | Place::Tags(_) | Place::Opaque(_) => None,
                };
                Slot::Thinking(Box::new(Thought {
                    place,
                    entry,
                    native: None,
                    items: 0,
                    grew: false,
                    closed: false,
                    signature: None,
                    encrypted: None,
                }))
            }
            Opening::ToolCall { id, name } => {
                let index = self.n_calls;
                self.n_calls += 1;
                let (id, name) = (self.names.of(id), name.to_owned());
                Slot::Call(Box::new(Call { index, id, name, began: false, seal: None, native: None }))
            }
            Opening::Unmodelled => Slot::Unmodelled { native: String::new() },
        }
    }

    fn entry(&mut self, family: super::details::Family, id: Option<&str>) -> Entry {
        let index = self.n_entries;
        self.n_entries += 1;
        Entry::new(family, index, self.rules.read.delta_mode, id)
    }

    fn grow(&mut self, slot: &mut Slot, text: &str, out: &mut Out) {
        match slot {
            Slot::Text { .. } => self.answer(text, out),
            Slot::Thinking(thought) => self.think(thought, text, out),
            Slot::Call(call) => {
                self.begin_call(call, out);
                let function = object([("arguments", &quote(text))]);
                let entry = object([("index", &call.index.to_string()), ("function", &function)]);
                self.delta(&object([("tool_calls", &format!("[{entry}]"))]), out);
            }
            Slot::Unmodelled { .. } => (),
        }
    }

    fn answer(&mut self, text: &str, out: &mut Out) {
        self.course.content_began |= !text.trim().is_empty();
        self.content(text, out);
    }

    fn content(&mut self, text: &str, out: &mut Out) {
        let mut pace = std::mem::take(&mut self.content_pace);
        pace.deltas(text, |delta| self.delta(&object([("content", &quote(delta))]), out));
        self.content_pace = pace;
    }

    fn think(&mut self, thought: &mut Thought, text: &str, out: &mut Out) {
        let first = !std::mem::replace(&mut thought.grew, true);
        match (&thought.place, &mut thought.entry) {
            (Place::Details(_), Some(entry)) => {
                self.course.tags_are_literal = true;
                let field = entry.field();
                entry.grow(text, |entry| self.delta(&object([(field, &format!("[{entry}]"))]), out));
            }
            (Place::Field(field), _) => {
                self.course.tags_are_literal = true;
                let mut pace = std::mem::take(&mut self.thinking_pace);
                pace.deltas(text, |delta| self.delta(&object([(field, &quote(delta))]), out));
                self.thinking_pace = pace;
            }
            (Place::Chunk, _) => {
                self.course.tags_are_literal = true;
                let part = format!("[{}]", object([("type", "\"text\""), ("text", &quote(text))]));
                self.chunk(&object([("type", "\"thinking\""), ("thinking", &part)]), out);
            }
            (Place::Tags(tags), _) => {
                if first && !tags.open.is_empty() {
                    self.content(&tags.open, out);
                }
                self.course.tagged = true;
                self.content(text, out);
            }
            (Place::Opaque(_) | Place::Details(_), _) => (),
        }
    }

    /// One element of the content array.
    fn chunk(&mut self, element: &str, out: &mut Out) {
        self.chunked = true;
        self.delta(&object([("content", &format!("[{element}]"))]), out);
    }

    fn learn(&mut self, slot: &mut Slot, event: Event<'_>, out: &mut Out) {
        match (slot, event) {
            (Slot::Thinking(thought), Event::Refiled { to: Side::Text, .. }) => {
                // The template's tag was none after all: what stands there is
                // the answer, and no close tag follows.
                if let Place::Tags(tags) = &mut thought.place {
                    tags.close.clear();
                }
            }
            (slot @ Slot::Text { .. }, Event::Refiled { to: Side::Thinking, .. }) => {
                let pair = self.rules.read.tags.pairs.first();
                let close = pair.and_then(|pair| pair.close.first()).cloned().unwrap_or_default();
                let tags = Tags { open: String::new(), close, tail: None };
                let mut thought = Thought::tagged(tags);
                thought.grew = true;
                self.course = Course { tagged: true, ..Course::default() };
                *slot = Slot::Thinking(Box::new(thought));
            }
            (Slot::Thinking(thought), event) => {
                thought.learn(event);
                if let Event::Item { .. } = event {
                    if thought.items > 0 {
                        self.think(thought, "\n\n", out);
                    }
                    thought.items += 1;
                }
                let is_seal = matches!(event, Event::Sealed { .. });
                if thought.closed && (is_seal || matches!(thought.place, Place::Details(_))) {
                    self.seal(thought, out);
                }
            }
            (Slot::Text { seal }, Event::Sealed { payload, .. }) => *seal = Some(payload.to_owned()),
            (Slot::Call(call), Event::Sealed { payload, .. }) => call.seal = Some(payload.to_owned()),
            (Slot::Call(call), Event::Kept { json, .. }) => call.native = Some(json.to_owned()),
            (Slot::Unmodelled { native }, Event::Kept { json, .. }) => json.clone_into(native),
            (Slot::Text { .. } | Slot::Call(_) | Slot::Unmodelled { .. }, _) => (),
        }
    }

    fn close(&mut self, slot: &mut Slot, out: &mut Out) {
        match slot {
            Slot::Text { seal: Some(seal) } => {
                if let Some(extra) = self.seal_extra(seal) {
                    self.delta(&extra, out);
                }
            }
            Slot::Text { seal: None } => (),
            Slot::Thinking(thought) => {
                thought.closed = true;
                if let (Place::Tags(tags), true) = (&thought.place, thought.grew) {
                    self.tail = tags.tail.clone().filter(|_| !tags.close.is_empty());
                    if !tags.close.is_empty() {
                        self.content(&tags.close, out);
                    } else {
                        self.course.content_began = true;
                    }
                }
                self.seal(thought, out);
            }
            Slot::Call(call) => {
                self.begin_call(call, out);
                if let Some(extra) = self.call_extra(call) {
                    let mut entry = ObjectWriter::default();
                    entry.push_raw("index", &call.index.to_string());
                    entry.push_members(&extra);
                    self.delta(&object([("tool_calls", &format!("[{}]", entry.finish()))]), out);
                }
            }
            Slot::Unmodelled { native } => {
                let chunks = self.chunked || self.rules.echo.carrier == Carrier::ContentChunks;
                if chunks && self.rules.read.content_chunks && !native.is_empty() {
                    self.chunk(native, out);
                }
            }
        }
    }

    /// Whatever of a thought is not its text, where this dialect has a place for it.
    fn seal(&mut self, thought: &mut Thought, out: &mut Out) {
        if let Place::Opaque(name) = &thought.place {
            let seal = thought.encrypted.take().or(thought.signature.take());
            let kept = thought.native.take().filter(|native| Raw::of(native).is_ok());
            let delta = kept.or_else(|| seal.map(|seal| opaque(&self.rules, name, &seal)));
            if let Some(delta) = delta {
                self.delta(&delta, out);
            }
            return;
        }
        if let (Place::Chunk, Some(signature)) = (&thought.place, &thought.signature) {
            let members = [("type", "\"thinking\""), ("thinking", "[]"), ("signature", &quote(signature))];
            self.chunk(&object(members), out);
            thought.signature = None;
        }
        let sealed = thought.signature.is_some() || thought.encrypted.is_some();
        if thought.entry.is_none() && sealed {
            thought.entry = family(&self.rules).map(|family| self.entry(family, None));
        }
        match (&mut thought.entry, self.rules.read.opaque.first()) {
            (Some(entry), _) => {
                entry.hold(thought.signature.take(), thought.encrypted.take());
                if let Some(rest) = entry.rest() {
                    self.course.tags_are_literal = true;
                    let field = entry.field();
                    self.delta(&object([(field, &format!("[{rest}]"))]), out);
                }
            }
            (None, Some(field)) => {
                if let Some(payload) = thought.encrypted.take().or(thought.signature.take()) {
                    self.delta(&object([(field, &quote(&payload))]), out);
                }
            }
            (None, None) => (),
        }
    }

    /// A call begins with its id and name, and with its seal where that is
    /// known by then.
    fn begin_call(&mut self, call: &mut Call, out: &mut Out) {
        if std::mem::replace(&mut call.began, true) {
            return;
        }
        let function = object([("name", &quote(&call.name)), ("arguments", "\"\"")]);
        let mut entry = ObjectWriter::default();
        entry.push_raw("index", &call.index.to_string());
        entry.push_raw("id", &quote(&call.id));
        entry.push_raw("type", "\"function\"");
        entry.push_raw("function", &function);
        if let Some(extra) = self.call_extra(call) {
            entry.push_members(&extra);
        }
        self.delta(&object([("tool_calls", &format!("[{}]", entry.finish()))]), out);
    }

    /// The members that carry the seal of a call, told once.
    fn call_extra(&self, call: &mut Call) -> Option<String> {
        let (native, seal) = (call.native.take(), call.seal.take());
        kept_extra(&self.rules, native.as_deref()).or_else(|| self.seal_extra(&seal?))
    }

    fn seal_extra(&self, seal: &str) -> Option<String> {
        seal_extra(&self.rules, seal)
    }

    /// A thinking field that stays empty.
    fn seen(&mut self, field: &str, out: &mut Out) {
        let tags = super::place::tags(&self.rules, field, &self.course);
        if self.rules.read.text.iter().any(|known| known == field) {
            self.delta(&object([(field, "\"\"")]), out);
        } else if matches!(place(&self.rules, field, &self.course), Place::Details(family) if family.field() == field) {
            self.delta(&object([(field, "[]")]), out);
        } else if let Some(Tags { open, close, .. }) = tags.filter(|_| self.rules.read.tags.start == Start::Explicit) {
            self.course.tagged = true;
            self.content(&format!("{open}{close}"), out);
        }
    }

    fn delta(&self, delta: &str, out: &mut Out) {
        self.choice(delta, "null", out);
    }

    fn choice(&self, delta: &str, finish: &str, out: &mut Out) {
        let head = &self.head;
        out.data(&format!(
            r#"{head},"choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}]}}"#
        ));
    }

    fn end(&mut self, end: &End, out: &mut Out) {
        let reads_tags = self.course.content_began && !self.course.tags_are_literal;
        if let Some(tail) = self.tail.take().filter(|_| reads_tags) {
            self.content(&tail, out);
        }
        let word = finish_word(&end.ending);
        // Some dialects fail by the finish word alone.
        let by_word = |code: &Option<String>| {
            let failed = word.filter(|word| self.rules.finish.errors.iter().any(|known| known == word));
            failed.is_some() && code.as_deref() == failed
        };
        let error = end.error.as_ref().filter(|error| !by_word(&error.code));
        if let Some(error) = error {
            out.data(&object([("error", &error_in_stream(error))]));
        }
        if let Some(word) = word {
            self.begin(out);
            self.choice("{}", &quote(word), out);
        }
        if !is_unknown(self.usage) {
            let usage = usage(&self.rules, self.usage);
            out.data(&format!(r#"{},"choices":[],"usage":{usage}}}"#, self.head));
        }
        match &end.ending {
            Ending::CutOff => (),
            Ending::Unsaid if error.is_some() => (),
            Ending::Unsaid
            | Ending::Stop
            | Ending::Length
            | Ending::ToolCalls
            | Ending::ContentFilter
            | Ending::Refusal
            | Ending::Pause
            | Ending::Error
            | Ending::Unrecognized(_) => out.data("[DONE]"),
        }
    }
}

impl Thought {
    fn tagged(tags: Tags) -> Thought {
        Thought {
            place: Place::Tags(tags),
            entry: None,
            native: None,
            items: 0,
            grew: false,
            closed: false,
            signature: None,
            encrypted: None,
        }
    }

    fn learn(&mut self, event: Event<'_>) {
        match event {
            Event::Sealed { kind: SealKind::Signature, payload, .. } => self.signature = Some(payload.to_owned()),
            Event::Sealed { kind: SealKind::Encrypted, payload, .. } => self.encrypted = Some(payload.to_owned()),
            Event::Kept { json, text_member, .. } => match &mut self.entry {
                Some(entry) => entry.keep(json, text_member),
                None => self.native = Some(json.to_owned()),
            },
            Event::Identified { id, .. } => {
                if let Some(entry) = &mut self.entry {
                    entry.identify(id);
                }
            }
            Event::Item { .. } => {
                if let Some(entry) = &mut self.entry {
                    entry.summarize();
                }
            }
            Event::Started { .. }
            | Event::Opened { .. }
            | Event::Grew { .. }
            | Event::Refiled { .. }
            | Event::Restated { .. }
            | Event::Closed { .. }
            | Event::Seen { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => (),
        }
    }
}
