//! Decodes Gemini. A signature belongs to the part it came on: a signed part is a
//! block of its own, and adjacent unsigned parts form one block.

use super::types::{Candidate, FunctionCall, GeminiChunk};
use crate::block::SealKind;
use crate::dialect::Rules;
use crate::event::{BlockOpening, Event, Note, NoteCode, ProviderError, Sink};
use crate::json_text::{
    JsonText, NotJson, ObjectWriter, Raw, compact_pieces, each_element, each_member, is_empty_value, member, parse,
    read, text_member, text_of,
};
use crate::wire::broken_off::FinishProgress;
use crate::wire::end_of_input::EndOfInput;
use crate::wire::error_in::keep_error;
use crate::wire::extra_in::{ExtraNames, ExtraReader};
use crate::wire::implicit_blocks::{ImplicitBlocks, emit_unmodelled};
use crate::wire::usage_in::{CounterNames, UsageReader, ending_from_reason};
use crate::wire::{Finished, Understood};

const COUNTERS: CounterNames = CounterNames {
    input: &["promptTokenCount"],
    output: &["candidatesTokenCount"],
    reasoning: &["thoughtsTokenCount"],
    cached: &["cachedContentTokenCount"],
    cache_write: &[],
    derived: &["totalTokenCount"],
    container: Some("usageMetadata"),
};

const EXTRA: ExtraNames = ExtraNames {
    lists: &[],
    members: &[
        ("citationMetadata", "citationSources"),
        ("citationMetadata", "citations"),
        ("logprobsResult", "topCandidates"),
        ("logprobsResult", "chosenCandidates"),
    ],
};

#[derive(Debug)]
pub(in crate::wire) struct GeminiDecoder {
    blocks: ImplicitBlocks,
    usage_reader: UsageReader,
    extra: ExtraReader,
    finish_reason: Option<String>,
    error: Option<ProviderError>,
    called: bool,
    model_known: bool,
    others_noted: bool,
    scratch: String,
}

/// The members of one part.
#[derive(Default)]
struct PartMembers<'a> {
    text: Option<Raw<'a>>,
    call: Option<Raw<'a>>,
    signature: Option<String>,
    is_thinking: bool,
    /// Has content that the block model does not cover.
    other: bool,
    /// Has members next to its text that the block model does not cover.
    has_unread: bool,
}

impl GeminiDecoder {
    pub(in crate::wire) fn new(rules: &Rules) -> GeminiDecoder {
        GeminiDecoder {
            blocks: ImplicitBlocks::new(&rules.read),
            usage_reader: UsageReader::new(&COUNTERS, rules.usage.clone()),
            extra: ExtraReader::new(&EXTRA),
            finish_reason: None,
            error: None,
            called: false,
            model_known: false,
            others_noted: false,
            scratch: String::new(),
        }
    }

    pub(in crate::wire) fn frame(&mut self, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        let chunk: GeminiChunk<'_> = parse(text)?;
        let known = chunk.candidates.present || chunk.usage_metadata.is_some() || chunk.prompt_feedback.is_some();
        if let Some(model) = chunk.model_version.non_empty().filter(|_| !self.model_known) {
            self.model_known = true;
            sink.take(Event::Started { model });
        }
        if let Some(usage) = chunk.usage_metadata {
            self.usage_reader.read(usage, &mut self.extra, sink);
        }
        if chunk.candidates.others && !std::mem::replace(&mut self.others_noted, true) {
            let message = "the response has several candidates; only candidate 0 is read".to_owned();
            sink.take(Event::Noted(&Note { code: NoteCode::OtherChoices, message }));
        }
        let mut unread = chunk.unread;
        if let Some(candidate) = chunk.candidates.element {
            unread |= candidate.unread;
            self.candidate(&candidate, sink);
        }
        if known && unread {
            self.unread_members(Raw::checked(text), sink);
        }
        if let Some(feedback) = chunk.prompt_feedback {
            self.extra.keep("promptFeedback", feedback, sink);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| text_member(feedback, "blockReason")) {
            self.finish_reason = Some("SAFETY".to_owned());
            let message = format!("the provider blocked the prompt: {reason}");
            sink.take(Event::Noted(&Note { code: NoteCode::Blocked, message }));
        }
        if chunk.error.is_some() || !known {
            return Ok(keep_error(&mut self.error, Raw::checked(text), known));
        }
        Ok(Understood::Yes)
    }

    pub(in crate::wire) fn finish_progress(&self) -> FinishProgress {
        FinishProgress { has_reason: self.finish_reason.is_some(), n_usages: self.usage_reader.n_usages() }
    }

    pub(in crate::wire) fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        self.blocks.finish(sink);
        self.extra.finish(sink);
        let end = EndOfInput {
            reason: self.finish_reason.take().as_deref().map(ending_from_reason),
            called: self.called,
            // A complete reply has a finish reason.
            is_complete: false,
            error: self.error.take(),
        };
        end.finished()
    }

    /// Keeps the members of a chunk and its candidate that are not understood.
    fn unread_members(&mut self, chunk: Raw<'_>, sink: &mut dyn Sink) {
        GeminiChunk::each_unread(chunk, |name, value| self.extra.keep(name, value, sink));
        let Some(candidates) = member(chunk, "candidates") else { return };
        each_element(candidates, |candidate| {
            if member(candidate, "index").is_none_or(|index| index.get() == "0") {
                Candidate::each_unread(candidate, |name, value| self.extra.keep(name, value, sink));
            }
        });
    }

    fn candidate(&mut self, candidate: &Candidate<'_>, sink: &mut dyn Sink) {
        if let Some(parts) = candidate.content.parts {
            each_element(parts, |part| self.part(part, sink));
        }
        if let Some(reason) = candidate.finish_reason.non_empty() {
            self.blocks.end_reply(sink);
            self.finish_reason = Some(reason.to_owned());
        }
    }

    fn part(&mut self, raw: Raw<'_>, sink: &mut dyn Sink) {
        let part = PartMembers::read(raw);
        match (part.text, part.call) {
            _ if part.other => {
                self.blocks.interrupt(sink);
                emit_unmodelled(&mut self.blocks.ids, raw.get(), sink);
            }
            (_, Some(call)) => self.call(raw, call, part.signature.as_deref(), sink),
            (Some(text), None) => {
                match part.signature {
                    Some(signature) => self.signed_text(text, part.is_thinking, &signature, sink),
                    None => self.text(text, part.is_thinking, sink),
                }
                if part.has_unread {
                    self.unread_part(raw, sink);
                }
            }
            // Only a signature: an empty signed part.
            (None, None) => {
                if let Some(signature) = part.signature {
                    self.sealed(BlockOpening::Text, None, &signature, sink);
                }
            }
        }
    }

    /// Keeps the members next to a part's text, with the block that it went into.
    fn unread_part(&mut self, part: Raw<'_>, sink: &mut dyn Sink) {
        let block = self.blocks.ids.last();
        each_member(part, |name, value| {
            if !matches!(name, "text" | "thought" | "thoughtSignature") {
                self.extra.keep_in(block, name, value, sink);
            }
        });
    }

    fn text(&mut self, text: Raw<'_>, is_thinking: bool, sink: &mut dyn Sink) {
        let Some(text) = JsonText::of(text) else { return };
        let mut scratch = std::mem::take(&mut self.scratch);
        text.pieces(&mut scratch, |piece| match is_thinking {
            true => self.blocks.thinking_text("thought", piece, sink),
            false => self.blocks.grow_text(piece, sink),
        });
        self.scratch = scratch;
    }

    fn signed_text(&mut self, text: Raw<'_>, is_thinking: bool, signature: &str, sink: &mut dyn Sink) {
        let opening = match is_thinking {
            true => BlockOpening::Thinking { source: "thought", id: None },
            false => BlockOpening::Text,
        };
        self.sealed(opening, JsonText::of(text), signature, sink);
    }

    fn sealed(&mut self, opening: BlockOpening<'_>, text: Option<JsonText<'_>>, payload: &str, sink: &mut dyn Sink) {
        self.blocks.interrupt(sink);
        let block = self.blocks.ids.next();
        sink.take(Event::Opened { block, opening });
        if let Some(text) = text {
            text.pieces(&mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
        sink.take(Event::Sealed { block, kind: SealKind::Signature, payload });
        sink.take(Event::Closed { block });
    }

    fn call(&mut self, part: Raw<'_>, call: Raw<'_>, signature: Option<&str>, sink: &mut dyn Sink) {
        let function: FunctionCall<'_> = read(call);
        self.blocks.interrupt(sink);
        self.called = true;
        let block = self.blocks.ids.next();
        let name = function.name.non_empty().unwrap_or("");
        sink.take(Event::Opened { block, opening: BlockOpening::ToolCall { id: function.id.non_empty(), name } });
        if let Some(args) = function.args.filter(|args| !is_empty_value(*args)) {
            compact_pieces(args.get(), &mut self.scratch, |text| sink.take(Event::Grew { block, text }));
        }
        if let Some(payload) = signature {
            sink.take(Event::Sealed { block, kind: SealKind::Signature, payload });
        }
        if let Some(extra) = call_extra(part, call) {
            sink.take(Event::NativeItem { block, json: &extra, text_member: None });
        }
        sink.take(Event::Closed { block });
    }
}

/// The members of a call part besides name, id, arguments and signature.
fn call_extra(part: Raw<'_>, call: Raw<'_>) -> Option<String> {
    let mut out = ObjectWriter::default();
    let mut inner = ObjectWriter::default();
    let (mut any, mut any_inner) = (false, false);
    each_member(call, |key, value| {
        if !matches!(key, "id" | "name" | "args") && !is_empty_value(value) {
            inner.push(key, value.get());
            any_inner = true;
        }
    });
    if any_inner {
        out.push("functionCall", &inner.finish());
    }
    each_member(part, |key, value| {
        if !matches!(key, "functionCall" | "thoughtSignature") && !is_empty_value(value) {
            out.push(key, value.get());
            any = true;
        }
    });
    (any || any_inner).then(|| out.finish())
}

impl<'a> PartMembers<'a> {
    fn read(part: Raw<'a>) -> PartMembers<'a> {
        let mut members = PartMembers::default();
        let mut has_body = false;
        each_member(part, |key, value| match key {
            "text" => members.text = Some(value),
            "functionCall" => members.call = Some(value),
            "thoughtSignature" => members.signature = text_of(value),
            "thought" => members.is_thinking = value.get() == "true",
            _ => has_body |= !is_empty_value(value),
        });
        members.has_unread = has_body;
        members.other = has_body && members.text.is_none() && members.call.is_none();
        members
    }
}
