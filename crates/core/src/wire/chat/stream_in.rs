//! Chat Completions, bytes to events. A whole body is a stream of one chunk
//! whose `message` is its only delta.

use std::collections::HashSet;
use std::sync::Arc;

use super::calls::{Calls, Place, seal_in, seal_path};
use super::details::{Details, Family};
use super::echo::Spoken;
use super::freshness::Freshness;
use super::types::{Choice, Chunk};
use crate::block::SealKind;
use crate::dialect::{Details as DetailsRule, ReadRules, Rules};
use crate::event::{End, Ending, Event, Note, NoteCode, Opening, ProviderError, Sink};
use crate::frame::Framing;
use crate::text::JsonText;
use crate::wire::failure::{bare_failure, keep_failure};
use crate::wire::json::{
    Kind, NotJson, ObjectWriter, Raw, compact, each_element, each_entry, is_void, member, parse, text_member,
};
use crate::wire::speech::{Speech, unmodelled};
use crate::wire::tally::{CounterNames, Tally, ending};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["prompt_tokens"],
    output: &["completion_tokens"],
    reasoning: &["completion_tokens_details.reasoning_tokens", "reasoning_tokens"],
    cached: &["prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"],
};

/// Where thinking in a content array comes from.
pub(super) const CHUNK_SOURCE: &str = "content.thinking";

/// More than the dialect loader lets through.
const SOURCES: usize = 8;

#[derive(Debug)]
pub(in crate::wire) struct ChatDecoder {
    rules: Arc<Rules>,
    speech: Speech,
    details: Details,
    calls: Calls,
    tally: Tally,
    freshness: Freshness,
    content_freshness: Freshness,
    /// Payloads of the whole message that were told.
    told_opaque: HashSet<String>,
    /// The best source that has spoken: 0 is `reasoning_details`, then the
    /// dialect's fields in order. A lower one repeats it and is not shown.
    rank: Option<usize>,
    /// What each source has said, by its rank.
    spoken: [Spoken; SOURCES + 1],
    finish_word: Option<String>,
    error: Option<ProviderError>,
    said: Said,
    scratch: String,
}

/// What is told or remembered only once; none of these excludes another.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, not one state")]
struct Said {
    model: bool,
    other_choices: bool,
    done: bool,
    refusal: bool,
}

/// The members of a delta or message that matter, found in one pass.
#[derive(Default)]
struct Members<'a> {
    content: Option<Raw<'a>>,
    texts: [Option<Raw<'a>>; SOURCES],
    details: Option<(Family, Raw<'a>)>,
    /// A payload beside the content, by the name of its field.
    opaque: Option<(&'a str, Raw<'a>, SealKind)>,
    calls: Option<Raw<'a>>,
    function_call: Option<Raw<'a>>,
    refusal: Option<Raw<'a>>,
}

impl ChatDecoder {
    pub(in crate::wire) fn new(rules: Rules) -> ChatDecoder {
        ChatDecoder {
            speech: Speech::new(&rules.read),
            details: Details::new(rules.read.assemble_by, rules.read.delta_mode),
            calls: Calls::default(),
            tally: Tally::new(&COUNTERS, rules.usage.clone()),
            freshness: Freshness::new(rules.read.delta_mode),
            content_freshness: Freshness::new(rules.read.delta_mode),
            told_opaque: HashSet::new(),
            rank: None,
            spoken: std::array::from_fn(|_| Spoken::new(rules.read.delta_mode)),
            finish_word: None,
            error: None,
            said: Said::default(),
            scratch: String::new(),
            rules: Arc::new(rules),
        }
    }

    /// The stream said that it is over.
    pub(in crate::wire) fn done(&mut self) {
        self.said.done = true;
    }

    pub(in crate::wire) fn frame(
        &mut self,
        framing: Framing,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<Understood, NotJson> {
        let chunk: Chunk<'_> = parse(text)?;
        if !self.said.model
            && let Some(model) = chunk.model.said()
        {
            self.said.model = true;
            sink.take(Event::Started { model });
        }
        if let Some(usage) = chunk.usage.or_else(|| member(chunk.x_groq?, "usage")) {
            self.usage(usage, sink);
        }
        if chunk.choices.others && !std::mem::replace(&mut self.said.other_choices, true) {
            let message = "the response has several choices; only choice 0 is read".to_owned();
            sink.take(Event::Noted(&Note { code: NoteCode::OtherChoices, message }));
        }
        if let Some(choice) = &chunk.choices.element {
            self.choice(choice, framing, sink);
        }
        // Where there are no choices, anything that reads like an error is
        // one; a bare string is how some servers fail.
        if chunk.error.is_some() || !chunk.choices.present {
            return Ok(keep_failure(&mut self.error, Raw::of(text)?, chunk.choices.present));
        }
        Ok(Understood::Yes)
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        self.speech.finish(sink);
        self.details.close_open(sink);
        let called = self.calls.any();
        self.calls.finish(&mut self.speech.ids, sink);
        self.compare_sources(sink);
        let word = self.finish_word.take();
        let clean = self.said.done || word.is_some();
        let ending = match word.as_deref().map(ending) {
            Some(Ending::Stop) if self.said.refusal => Ending::Refusal,
            Some(Ending::Stop) if called && self.rules.finish.calls_override => Ending::ToolCalls,
            Some(ending) => ending,
            None if clean || self.error.is_some() => Ending::Unsaid,
            None => Ending::CutOff,
        };
        let mut error = self.error.take();
        if let Some(word) = word.filter(|word| self.rules.finish.errors.contains(word)) {
            error.get_or_insert_with(|| ProviderError {
                message: format!("the provider ended the reply with `{word}`"),
                code: Some(word),
                status: None,
            });
        }
        Finished(End { ending, error })
    }

    fn usage(&mut self, usage: Raw<'_>, sink: &mut dyn Sink) {
        if let Some(usage) = self.tally.read(usage) {
            sink.take(Event::Usage(usage));
        }
    }

    fn choice(&mut self, choice: &Choice<'_>, framing: Framing, sink: &mut dyn Sink) {
        // In a stream a message beside a delta is a repetition; in a whole
        // body it is the delta that says nothing.
        match (choice.delta, choice.message) {
            (Some(delta), None) => self.message(delta, Place::InStream, sink),
            (Some(delta), Some(_)) if framing == Framing::Sse => self.message(delta, Place::InStream, sink),
            (_, Some(message)) => {
                self.said.done = true;
                self.message(message, Place::InList(0), sink);
            }
            (None, None) => (),
        }
        if let Some(usage) = choice.usage {
            self.usage(usage, sink);
        }
        if let Some(word) = choice.finish_reason.said() {
            self.speech.end_reply(sink);
            self.details.close_open(sink);
            // Some servers say `stop` after they said `tool_calls`.
            if word != "stop" || self.finish_word.as_deref() != Some("tool_calls") {
                self.finish_word = Some(word.to_owned());
            }
        }
        if let Some(error) = choice.error {
            self.error = bare_failure(error);
        }
    }

    /// One delta, or one whole message: thinking first, then content, then calls.
    fn message(&mut self, raw: Raw<'_>, place: Place, sink: &mut dyn Sink) {
        let rules = Arc::clone(&self.rules);
        let members = members(&rules.read, raw);
        if let Some((family, list)) = members.details {
            self.detail_list(family, list, sink);
        }
        for (rank, raw) in members.texts.iter().enumerate() {
            if let Some(raw) = raw {
                let source = rules.read.text.get(rank).map_or("", String::as_str);
                self.thinking_field(rank + 1, source, *raw, sink);
            }
        }
        if let Some((name, raw, kind)) = members.opaque {
            self.opaque(name, raw, kind, sink);
        }
        if let Some(raw) = members.content {
            self.content(raw, sink);
        }
        if let Some(text) = members.refusal.and_then(JsonText::of).filter(|text| !text.is_empty()) {
            self.said.refusal = true;
            self.text_pieces(text, sink);
        }
        if let Some(list) = members.calls {
            let mut at = 0;
            each_element(list, |entry| {
                let place = if place == Place::InStream { place } else { Place::InList(at) };
                self.call(entry, place, sink);
                at += 1;
            });
        }
        if let Some(call) = members
            .function_call
            .filter(|call| !["name", "arguments"].into_iter().all(|part| text_member(*call, part).is_none()))
        {
            let wrapped = format!(r#"{{"function":{}}}"#, call.get());
            if let Ok(entry) = Raw::of(&wrapped) {
                self.call(entry, Place::InStream, sink);
            }
        }
    }

    fn detail_list(&mut self, family: Family, list: Raw<'_>, sink: &mut dyn Sink) {
        self.speech.saw(family.field());
        each_element(list, |entry| {
            let text = Details::text_of(entry);
            let show = text.is_none_or(|text| self.is_news(0, text));
            let tells = (text.is_some() && show) || (self.rank.is_none() && Details::is_sealed(entry));
            if tells {
                self.speech.stand_down(sink);
                self.speech.end_prose(sink);
            }
            if text.is_some() && show {
                self.rank = Some(0);
            }
            self.details.take(entry, family, show, &mut self.speech.ids, sink);
        });
        if self.details.is_open() {
            self.speech.told_thought();
        }
    }

    /// The first source that yields text is shown; what another one repeats,
    /// in the same delta or later, is not.
    fn is_news(&mut self, rank: usize, text: JsonText<'_>) -> bool {
        let Some(spoken) = self.spoken.get_mut(rank) else { return false };
        spoken.hear(text, &mut self.scratch);
        match self.rank {
            None => true,
            Some(best) if best == rank => true,
            Some(best) if best < rank => false,
            // A better source comes late: new, unless it says it all again.
            Some(best) => match (self.spoken.get(rank), self.spoken.get(best)) {
                (Some(late), Some(shown)) => !late.equals(shown),
                _ => true,
            },
        }
    }

    fn compare_sources(&mut self, sink: &mut dyn Sink) {
        let Some(shown) = self.rank.and_then(|rank| self.spoken.get(rank)) else { return };
        if let Some(other) = self.spoken.iter().find(|other| other.any() && !other.equals(shown)) {
            let message = format!(
                "two thinking fields disagree: {} bytes shown, {} bytes of another field not",
                shown.bytes(),
                other.bytes()
            );
            sink.take(Event::Noted(&Note { code: NoteCode::SourcesDiffer, message }));
        }
    }

    fn thinking_field(&mut self, rank: usize, source: &str, raw: Raw<'_>, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(raw) else { return };
        if text.is_empty() {
            self.speech.saw(source);
            return;
        }
        if !self.is_news(rank, text) {
            return;
        }
        self.rank = Some(rank);
        self.details.close_open(sink);
        if self.freshness.is_plain() {
            let mut scratch = std::mem::take(&mut self.scratch);
            text.pieces(&mut scratch, |piece| self.speech.thought(source, piece, sink));
            self.scratch = scratch;
        } else {
            let text = text.to_owned_text();
            self.speech.thought(source, self.freshness.new_part(&text), sink);
        }
    }

    /// A payload that belongs to the message as a whole: a sealed thought.
    fn opaque(&mut self, name: &str, raw: Raw<'_>, kind: SealKind, sink: &mut dyn Sink) {
        let path = seal_path(&self.rules.read.call_extra, name).unwrap_or("");
        let payload = seal_in(raw, path).unwrap_or_else(|| raw.get().to_owned());
        if self.told_opaque.contains(&payload) {
            return;
        }
        sink.hold(payload.len());
        // It belongs to the message, not to a place in it: prose goes on.
        self.speech.end_thought(sink);
        self.speech.told_thought();
        let block = self.speech.ids.next();
        sink.take(Event::Opened { block, opening: Opening::Thinking { source: name, id: None } });
        sink.take(Event::Sealed { block, kind, payload: &payload });
        let mut native = ObjectWriter::default();
        native.push(name, raw.get());
        sink.take(Event::Kept { block, json: &native.finish(), text_member: None });
        sink.take(Event::Closed { block });
        self.told_opaque.insert(payload);
    }

    fn content(&mut self, raw: Raw<'_>, sink: &mut dyn Sink) {
        match raw.kind() {
            Kind::Text => {
                let Some(text) = JsonText::of(raw) else { return };
                if self.content_freshness.is_plain() {
                    self.text_pieces(text, sink);
                } else {
                    let text = text.to_owned_text();
                    let fresh = self.content_freshness.new_part(&text);
                    self.text_pieces(JsonText::plain(fresh), sink);
                }
            }
            Kind::Array if self.rules.read.content_chunks => each_element(raw, |chunk| self.content_chunk(chunk, sink)),
            // Structured output that a server forgot to turn into text.
            Kind::Array | Kind::Object => self.text_pieces(JsonText::plain(&compact(raw.get())), sink),
            Kind::Null | Kind::Other => (),
        }
    }

    fn text_pieces(&mut self, text: JsonText<'_>, sink: &mut dyn Sink) {
        let mut scratch = std::mem::take(&mut self.scratch);
        text.pieces(&mut scratch, |piece| {
            if self.details.is_open() {
                // White space does not end a thought.
                if piece.trim().is_empty() {
                    self.speech.defer(piece, sink);
                    return;
                }
                self.details.close_open(sink);
            }
            self.speech.content(piece, sink);
        });
        self.scratch = scratch;
    }

    /// One element of a content array: text, thinking, or something else.
    fn content_chunk(&mut self, chunk: Raw<'_>, sink: &mut dyn Sink) {
        match text_member(chunk, "type").as_deref() {
            Some("text") => {
                if let Some(text) = member(chunk, "text").and_then(JsonText::of) {
                    self.text_pieces(text, sink);
                }
            }
            Some("thinking") => {
                self.rank.get_or_insert(0);
                let Some(thinking) = member(chunk, "thinking") else { return };
                self.thinking_chunk(thinking, sink);
                if let Some(payload) = text_member(chunk, "signature") {
                    self.speech.seal_thought(CHUNK_SOURCE, SealKind::Signature, &payload, sink);
                }
            }
            _ => {
                self.speech.interrupt(sink);
                unmodelled(&mut self.speech.ids, chunk.get(), sink);
            }
        }
    }

    fn thinking_chunk(&mut self, thinking: Raw<'_>, sink: &mut dyn Sink) {
        // References and the like: no text, but part of the thought.
        let mut others = Vec::new();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut grow = |text: JsonText<'_>| {
            text.pieces(&mut scratch, |piece| self.speech.thought(CHUNK_SOURCE, piece, sink));
        };
        match JsonText::of(thinking) {
            Some(text) => grow(text),
            None => each_element(thinking, |part| match member(part, "text").and_then(JsonText::of) {
                Some(text) => grow(text),
                None => others.push(part),
            }),
        }
        self.scratch = scratch;
        for part in others {
            self.speech.interrupt(sink);
            let native = format!(r#"{{"type":"thinking","thinking":[{}]}}"#, part.get());
            unmodelled(&mut self.speech.ids, &native, sink);
        }
    }

    fn call(&mut self, entry: Raw<'_>, place: Place, sink: &mut dyn Sink) {
        self.details.close_open(sink);
        self.speech.interrupt(sink);
        self.calls.take(entry, place, &self.rules.read.call_extra, &mut self.speech.ids, sink);
    }
}

fn members<'a>(rules: &'a ReadRules, raw: Raw<'a>) -> Members<'a> {
    let mut members = Members::default();
    each_entry(raw, |key, value| {
        if value.kind() == Kind::Null {
            return;
        }
        match key {
            "content" => members.content = Some(value),
            "tool_calls" => members.calls = Some(value),
            "role" => (),
            _ => match rules.text.iter().position(|name| name == key).and_then(|at| members.texts.get_mut(at)) {
                Some(slot) => *slot = Some(value),
                None => rare_member(rules, key, value, &mut members),
            },
        }
    });
    members
}

fn rare_member<'a>(rules: &'a ReadRules, key: &str, value: Raw<'a>, members: &mut Members<'a>) {
    let wants = |rule| rules.details == rule || rules.details == DetailsRule::Any;
    match key {
        "reasoning_details" if wants(DetailsRule::Openrouter) => {
            members.details = Some((Family::ReasoningDetails, value))
        }
        "thinking_blocks" if wants(DetailsRule::Litellm) => members.details = Some((Family::ThinkingBlocks, value)),
        "function_call" => members.function_call = Some(value),
        "refusal" => members.refusal = Some(value),
        _ if is_void(value) => (),
        _ => {
            // The field's own name, without the path inside it.
            let field = |name: &'a String| name.get(..key.len()).unwrap_or("");
            if let Some(name) = rules.opaque.iter().find(|name| *name == key) {
                members.opaque = Some((name, value, SealKind::Encrypted));
            } else if let Some(name) =
                rules.call_extra.iter().find(|name| seal_path(std::slice::from_ref(*name), key).is_some())
            {
                members.opaque = Some((field(name), value, SealKind::Signature));
            }
        }
    }
}
