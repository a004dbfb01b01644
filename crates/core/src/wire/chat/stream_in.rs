//! Decodes Chat Completions. A whole body is a stream of one chunk whose
//! `message` is its only delta.

use std::collections::HashSet;
use std::sync::Arc;

use super::calls::{CallAssembler, CallPosition, seal_in, seal_path};
use super::delta_members::{MAX_SOURCES, is_read, members};
use super::delta_mode_in::DeltaModeReader;
use super::details::{DetailList, DetailsReader};
use super::source_digest::SourceDigest;
use super::types::{ChatChoice, ChatChunk};
use crate::block::SealKind;
use crate::dialect::{FinishRules, ReadRules, Rules};
use crate::event::{BlockOpening, Ending, Event, Note, NoteCode, ProviderError, Sink};
use crate::frame::Framing;
use crate::json_text::{
    JsonKind, JsonText, NotJson, ObjectWriter, Raw, compact, each_element, each_member, member, parse, text_member,
};
use crate::wire::broken_off::FinishProgress;
use crate::wire::end_of_input::EndOfInput;
use crate::wire::error_in::{keep_error, read_bare_error};
use crate::wire::extra_in::{ExtraNames, ExtraReader, RepeatedMember};
use crate::wire::implicit_blocks::{ImplicitBlocks, emit_unmodelled};
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["prompt_tokens"],
    output: &["completion_tokens"],
    reasoning: &["completion_tokens_details.reasoning_tokens", "reasoning_tokens"],
    cached: &["prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens", "cached_tokens"],
    cache_write: &["prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens", "cache_creation.*"],
    // The second is the rest of the input; the others repeat the cached count.
    derived: &["total_tokens", "prompt_cache_miss_tokens", "num_cached_tokens", "cache_read_input_tokens"],
    container: Some("usage"),
};

const EXTRA: ExtraNames = ExtraNames {
    lists: &["annotations", "executed_tools"],
    members: &[("logprobs", "content"), ("logprobs", "refusal"), ("audio", "data"), ("audio", "transcript")],
};

/// The source name of thinking in a content array.
pub(super) const CHUNK_SOURCE: &str = "content.thinking";

#[derive(Debug)]
pub(in crate::wire) struct ChatDecoder {
    read: Arc<ReadRules>,
    finish: FinishRules,
    blocks: ImplicitBlocks,
    details: DetailsReader,
    calls: CallAssembler,
    usage_reader: UsageReader,
    extra: ExtraReader,
    repeated: [RepeatedMember; 3],
    thinking_mode: DeltaModeReader,
    content_mode: DeltaModeReader,
    /// Payloads of the whole message that were already emitted.
    emitted_opaque: HashSet<String>,
    /// The best source that sent text: 0 is `reasoning_details`, then come the
    /// dialect's fields in order. Sources after it repeat it and are not emitted.
    rank: Option<usize>,
    /// The text of each source, by rank.
    digests: [SourceDigest; MAX_SOURCES + 1],
    finish_reason: Option<String>,
    error: Option<ProviderError>,
    once: OnceFlags,
    scratch: String,
}

/// Facts that are emitted or remembered only once; they are independent of each
/// other.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts, not one state")]
struct OnceFlags {
    model: bool,
    other_choices: bool,
    /// A whole message came.
    whole: bool,
    /// The reply is at its end.
    done: bool,
    refusal: bool,
}

impl ChatDecoder {
    pub(in crate::wire) fn new(rules: &Rules) -> ChatDecoder {
        ChatDecoder {
            blocks: ImplicitBlocks::new(&rules.read),
            details: DetailsReader::new(rules.read.assemble_by, rules.read.delta_mode),
            calls: CallAssembler::default(),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            repeated: Default::default(),
            thinking_mode: DeltaModeReader::new(rules.read.delta_mode),
            content_mode: DeltaModeReader::new(rules.read.delta_mode),
            emitted_opaque: HashSet::new(),
            rank: None,
            digests: std::array::from_fn(|_| SourceDigest::new(rules.read.delta_mode)),
            finish_reason: None,
            error: None,
            once: OnceFlags::default(),
            scratch: String::new(),
            read: Arc::new(rules.read.clone()),
            finish: rules.finish.clone(),
        }
    }

    /// The stream ended with `[DONE]`.
    pub(in crate::wire) fn done(&mut self) {
        self.once.done = true;
    }

    pub(in crate::wire) fn frame(
        &mut self,
        framing: Framing,
        text: &str,
        sink: &mut dyn Sink,
    ) -> Result<Understood, NotJson> {
        let chunk: ChatChunk<'_> = parse(text)?;
        if !self.once.model
            && let Some(model) = chunk.model.non_empty()
        {
            self.once.model = true;
            sink.take(Event::Started { model });
        }
        if let Some(usage) = chunk.usage.or_else(|| member(chunk.x_groq?, "usage")) {
            self.usage(usage, sink);
        }
        if chunk.choices.others && !std::mem::replace(&mut self.once.other_choices, true) {
            let message = "the response has several choices; only choice 0 is read".to_owned();
            sink.take(Event::Noted(&Note { code: NoteCode::OtherChoices, message }));
        }
        if let Some(choice) = &chunk.choices.element {
            self.choice(choice, framing, sink);
        }
        self.repeated_members(&chunk, sink);
        if chunk.choices.present && (chunk.unread || chunk.choices.element.as_ref().is_some_and(|first| first.unread)) {
            self.unread_members(Raw::checked(text), sink);
        }
        // A frame without choices may be an error; some servers send a bare
        // string.
        if chunk.error.is_some() || !chunk.choices.present {
            return Ok(keep_error(&mut self.error, Raw::checked(text), chunk.choices.present));
        }
        Ok(Understood::Yes)
    }

    /// Whether the protocol's own end of a reply was read.
    pub(in crate::wire) fn is_at_end(&self) -> bool {
        self.once.done
    }

    pub(in crate::wire) fn finish_progress(&self) -> FinishProgress {
        FinishProgress { has_reason: self.finish_reason.is_some(), n_usages: self.usage_reader.n_usages() }
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        self.blocks.finish(sink);
        self.details.close_open(sink);
        let called = self.calls.any();
        self.calls.finish(&mut self.blocks.ids, sink);
        self.compare_sources(sink);
        self.extra.finish(sink);
        let reason = self.finish_reason.take();
        let is_refused = |ending: &Ending| *ending == Ending::Stop && self.once.refusal;
        let ending = reason.as_deref().map(ending_from_reason);
        let ending = ending.map(|ending| if is_refused(&ending) { Ending::Refusal } else { ending });
        let mut error = self.error.take();
        if let Some(reason) = reason.filter(|reason| self.finish.errors.contains(reason)) {
            error.get_or_insert_with(|| {
                ProviderError::new(format!("the provider ended the reply with `{reason}`")).with_code(reason)
            });
        }
        let called = called && self.finish.calls_override;
        EndOfInput { reason: ending, called, is_complete: self.once.done || self.once.whole, error }.finished()
    }

    fn usage(&mut self, usage: Raw<'_>, sink: &mut dyn Sink) {
        self.usage_reader.read(usage, &mut self.extra, sink);
    }

    fn repeated_members(&mut self, chunk: &ChatChunk<'_>, sink: &mut dyn Sink) {
        let members = [
            ("system_fingerprint", chunk.system_fingerprint),
            ("service_tier", chunk.service_tier),
            ("provider", chunk.provider),
        ];
        for (repeated, (name, value)) in self.repeated.iter_mut().zip(members) {
            if let Some(value) = repeated.changed(value) {
                self.extra.keep(name, value, sink);
            }
        }
    }

    /// Keeps the members of a chunk and its choice that are not understood.
    fn unread_members(&mut self, chunk: Raw<'_>, sink: &mut dyn Sink) {
        ChatChunk::each_unread(chunk, |name, value| self.extra.keep(name, value, sink));
        let Some(choices) = member(chunk, "choices") else { return };
        each_element(choices, |choice| {
            if member(choice, "index").is_none_or(|index| index.get() == "0") {
                ChatChoice::each_unread(choice, |name, value| self.extra.keep(name, value, sink));
            }
        });
    }

    fn choice(&mut self, choice: &ChatChoice<'_>, framing: Framing, sink: &mut dyn Sink) {
        // In a stream, a message next to a delta repeats it; in a whole body, the
        // delta is empty.
        match (choice.delta, choice.message) {
            (Some(delta), None) => self.message(delta, CallPosition::InStream, sink),
            (Some(delta), Some(_)) if framing == Framing::Sse => self.message(delta, CallPosition::InStream, sink),
            (_, Some(message)) => {
                self.once.whole = true;
                // In a stream, usage and `[DONE]` can follow.
                self.once.done |= framing != Framing::Sse;
                self.message(message, CallPosition::InList(0), sink);
            }
            (None, None) => (),
        }
        if let Some(usage) = choice.usage {
            self.usage(usage, sink);
        }
        if let Some(reason) = choice.finish_reason.non_empty() {
            self.blocks.end_reply(sink);
            self.details.close_open(sink);
            // Some servers send `stop` after `tool_calls`.
            if reason != "stop" || self.finish_reason.as_deref() != Some("tool_calls") {
                self.finish_reason = Some(reason.to_owned());
            }
        }
        if let Some(error) = choice.error {
            self.error = read_bare_error(error);
        }
    }

    /// Reads a delta or a whole message: thinking first, then content, then
    /// calls.
    fn message(&mut self, raw: Raw<'_>, position: CallPosition, sink: &mut dyn Sink) {
        let read = Arc::clone(&self.read);
        let members = members(&read, raw);
        if let Some((list_kind, list)) = members.details {
            self.detail_list(list_kind, list, sink);
        }
        for (rank, raw) in members.texts.iter().enumerate() {
            if let Some(raw) = raw {
                let source = read.text.get(rank).map_or("", String::as_str);
                self.thinking_field(rank + 1, source, *raw, sink);
            }
        }
        if members.unread {
            each_member(raw, |name, value| {
                if !is_read(&read, name) {
                    self.extra.keep(name, value, sink);
                }
            });
        }
        if let Some((name, raw, kind)) = members.opaque {
            self.opaque(name, raw, kind, sink);
        }
        if let Some(raw) = members.content {
            self.content(raw, sink);
        }
        if let Some(text) = members.refusal.and_then(JsonText::of).filter(|text| !text.is_empty()) {
            self.once.refusal = true;
            self.text_pieces(text, sink);
        }
        if let Some(list) = members.calls {
            let mut at = 0;
            each_element(list, |entry| {
                let position = if position == CallPosition::InStream { position } else { CallPosition::InList(at) };
                self.call(entry, position, sink);
                at += 1;
            });
        }
        if let Some(call) = members
            .function_call
            .filter(|call| !["name", "arguments"].into_iter().all(|part| text_member(*call, part).is_none()))
        {
            let wrapped = format!(r#"{{"function":{}}}"#, call.get());
            if let Ok(entry) = Raw::of(&wrapped) {
                self.call(entry, CallPosition::InStream, sink);
            }
        }
    }

    fn detail_list(&mut self, list_kind: DetailList, list: Raw<'_>, sink: &mut dyn Sink) {
        self.blocks.saw_field(list_kind.field());
        each_element(list, |entry| {
            let text = DetailsReader::text_of(entry);
            let show = text.is_none_or(|text| self.is_new(0, text));
            let emits_block = (text.is_some() && show) || (self.rank.is_none() && DetailsReader::is_sealed(entry));
            if emits_block {
                self.blocks.disable_tags(sink);
                self.blocks.close_block(sink);
            }
            if text.is_some() && show {
                self.rank = Some(0);
            }
            self.details.take(entry, list_kind, show, &mut self.blocks.ids, sink);
        });
        if self.details.is_open() {
            self.blocks.mark_thinking_emitted();
        }
    }

    /// Whether text is new. The first source with text is emitted; repetitions in
    /// other sources, in the same delta or later, are not.
    fn is_new(&mut self, rank: usize, text: JsonText<'_>) -> bool {
        let Some(digest) = self.digests.get_mut(rank) else { return false };
        digest.add_delta(text, &mut self.scratch);
        match self.rank {
            None => true,
            Some(best) if best == rank => true,
            Some(best) if best < rank => false,
            // A better source comes late: new, unless it repeats everything.
            Some(best) => match (self.digests.get(rank), self.digests.get(best)) {
                (Some(late), Some(shown)) => !late.equals(shown),
                _ => true,
            },
        }
    }

    fn compare_sources(&mut self, sink: &mut dyn Sink) {
        let Some(shown) = self.rank.and_then(|rank| self.digests.get(rank)) else { return };
        if let Some(other) = self.digests.iter().find(|other| other.has_text() && !other.equals(shown)) {
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
            self.blocks.saw_field(source);
            return;
        }
        if !self.is_new(rank, text) {
            return;
        }
        self.rank = Some(rank);
        self.details.close_open(sink);
        if self.thinking_mode.is_incremental() {
            let mut scratch = std::mem::take(&mut self.scratch);
            text.pieces(&mut scratch, |piece| self.blocks.thinking_text(source, piece, sink));
            self.scratch = scratch;
        } else {
            let text = text.to_owned_text();
            self.blocks.thinking_text(source, self.thinking_mode.new_text(&text), sink);
        }
    }

    /// Emits a payload of the message as a whole as sealed thinking.
    fn opaque(&mut self, name: &str, raw: Raw<'_>, kind: SealKind, sink: &mut dyn Sink) {
        let path = seal_path(&self.read.call_extra, name).unwrap_or("");
        let payload = seal_in(raw, path).unwrap_or_else(|| raw.get().to_owned());
        if self.emitted_opaque.contains(&payload) {
            return;
        }
        sink.buffered(payload.len());
        // It has no position within the message, so open text continues.
        self.blocks.end_thinking(sink);
        self.blocks.mark_thinking_emitted();
        let block = self.blocks.ids.next();
        sink.take(Event::Opened { block, opening: BlockOpening::Thinking { source: name, id: None } });
        sink.take(Event::Sealed { block, kind, payload: &payload });
        let mut native = ObjectWriter::default();
        native.push(name, raw.get());
        sink.take(Event::NativeItem { block, json: &native.finish(), text_member: None });
        sink.take(Event::Closed { block });
        self.emitted_opaque.insert(payload);
    }

    fn content(&mut self, raw: Raw<'_>, sink: &mut dyn Sink) {
        match raw.kind() {
            JsonKind::Text => {
                let Some(text) = JsonText::of(raw) else { return };
                if self.content_mode.is_incremental() {
                    self.text_pieces(text, sink);
                } else {
                    let text = text.to_owned_text();
                    let fresh = self.content_mode.new_text(&text);
                    self.text_pieces(JsonText::plain(fresh), sink);
                }
            }
            JsonKind::Array if self.read.content_chunks => each_element(raw, |chunk| self.content_chunk(chunk, sink)),
            // Structured output that the server did not turn into a string.
            JsonKind::Array | JsonKind::Object => self.text_pieces(JsonText::plain(&compact(raw.get())), sink),
            JsonKind::Null | JsonKind::Other => (),
        }
    }

    fn text_pieces(&mut self, text: JsonText<'_>, sink: &mut dyn Sink) {
        let mut scratch = std::mem::take(&mut self.scratch);
        text.pieces(&mut scratch, |piece| {
            if self.details.is_open() {
                // Whitespace does not end thinking.
                if piece.trim().is_empty() {
                    self.blocks.defer_whitespace(piece, sink);
                    return;
                }
                self.details.close_open(sink);
            }
            self.blocks.content_text(piece, sink);
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
                    self.blocks.seal_thinking(CHUNK_SOURCE, SealKind::Signature, &payload, sink);
                }
            }
            _ => {
                self.blocks.interrupt(sink);
                emit_unmodelled(&mut self.blocks.ids, chunk.get(), sink);
            }
        }
    }

    fn thinking_chunk(&mut self, thinking: Raw<'_>, sink: &mut dyn Sink) {
        // References and the like: no text, but part of the thinking.
        let mut others = Vec::new();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut grow = |text: JsonText<'_>| {
            text.pieces(&mut scratch, |piece| self.blocks.thinking_text(CHUNK_SOURCE, piece, sink));
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
            self.blocks.interrupt(sink);
            let native = format!(r#"{{"type":"thinking","thinking":[{}]}}"#, part.get());
            emit_unmodelled(&mut self.blocks.ids, &native, sink);
        }
    }

    fn call(&mut self, entry: Raw<'_>, position: CallPosition, sink: &mut dyn Sink) {
        self.details.close_open(sink);
        self.blocks.interrupt(sink);
        let extra_names = &self.read.call_extra;
        self.calls.take(entry, position, extra_names, &mut self.blocks.ids, &mut self.extra, sink);
    }
}
