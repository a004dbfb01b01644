//! Decodes reply bytes into events and writes events as bytes: one decoder and
//! one writer for all protocols, streamed or whole.
//!
//! To add a protocol, add a folder here and a variant of [`Protocol`],
//! `ProtocolDecoder` and `ProtocolWriter`; the compiler lists the rest.

mod body_edit;
mod body_splice;
mod bounded;
mod broken_off;
mod cache_points;
mod call_ids;
mod chat;
mod client_request;
mod cohere;
mod converse;
mod detect;
mod encode;
mod encode_cache;
mod end_of_input;
mod error_in;
mod error_out;
mod error_words;
mod extra_in;
mod gemini;
mod http_call;
mod implicit_blocks;
mod media_in;
mod media_out;
mod messages;
mod ollama;
mod parameter_paths;
mod parameters_in;
mod parameters_out;
mod reply_events;
mod reply_writer;
mod request_draft;
mod responses;
mod restated;
mod stream_parts;
mod thinking_demand;
mod token_breakdown;
mod tool_markup;
mod unread_members;
mod usage_in;

use std::borrow::Cow;

use bounded::ReplyBudget;
use broken_off::{FinishProgress, FinishReasonWatch};

use crate::dialect::Rules;
use crate::event::{Ending, Event, Note, NoteCode, ReplyEnd, Sink};
use crate::frame::{DEFAULT_FRAME_LIMIT, Frame, Framed, Framer};
use crate::json_text::NotJson;
use crate::protocol::Protocol;
pub use body_splice::{with_model, with_turns_of};
pub use client_request::{ClientRequest, UnreadableRequest, read_request};
pub use detect::detect_protocol;
pub use encode::{Encoded, Encoder, Request, encode, request_path};
pub use error_out::error_reply;
pub use error_words::error_words;
pub use http_call::{Destination, HttpCall, http_call, http_get, merge_body};
pub use reply_events::emit_reply;
pub use reply_writer::{ReplyHead, StreamWriter, whole_reply};
pub use thinking_demand::{ThinkingDemand, ThinkingDemands};
pub use token_breakdown::{TokenBreakdown, WithheldTokens};
use tool_markup::ToolMarkupDetector;

/// How much of a frame an error message quotes.
const MAX_QUOTED_BYTES: usize = 200;

/// How many broken frames are reported one by one.
const MAX_BROKEN_NOTES: u64 = 20;

/// Even with a tiny reply limit, a provider's error message can be read.
const MIN_FRAME_LIMIT: usize = 1 << 20;

/// Decodes one response. Push bytes in chunks of any size, then finish.
#[derive(Debug)]
pub struct Decoder {
    framer: Framer,
    state: DecoderState,
}

#[derive(Debug)]
struct DecoderState {
    codec: ProtocolDecoder,
    tool_markup: ToolMarkupDetector,
    protocol: Protocol,
    n_frames: u64,
    n_understood: u64,
    n_broken: u64,
    bytes: u64,
    /// The input ended inside a frame that could not be read.
    cut: bool,
    oversized: bool,
    budget: ReplyBudget,
    reason_watch: FinishReasonWatch,
}

/// How the input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputEnd {
    /// As the sender ends it.
    Closed,
    /// The connection failed.
    BrokenOff,
}

#[derive(Debug)]
enum ProtocolDecoder {
    Chat(Box<chat::ChatDecoder>),
    Responses(Box<responses::ResponsesDecoder>),
    Messages(Box<messages::MessagesDecoder>),
    Gemini(Box<gemini::GeminiDecoder>),
    Ollama(Box<ollama::OllamaDecoder>),
    Converse(Box<converse::ConverseDecoder>),
    Cohere(Box<cohere::CohereDecoder>),
}

/// Nothing in the input belongs to the expected protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; expected {expected}")]
#[non_exhaustive]
pub struct NotUnderstood {
    /// How the input begins, in words.
    pub found: String,
    /// The expected protocol, in words.
    pub expected: &'static str,
}

struct Finished(ReplyEnd);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Understood {
    Yes,
    No,
}

impl From<bool> for Understood {
    fn from(yes: bool) -> Understood {
        if yes { Understood::Yes } else { Understood::No }
    }
}

impl Decoder {
    /// A decoder for one response. The rules come from
    /// [`crate::dialect::Dialect::rules`].
    pub fn new(protocol: Protocol, rules: &Rules) -> Decoder {
        Decoder::with_limit(protocol, rules, DEFAULT_FRAME_LIMIT)
    }

    /// A decoder that emits at most `max_bytes` bytes of a reply; `None` means no
    /// limit. A longer reply is cut there, with a note.
    pub fn bounded(protocol: Protocol, rules: &Rules, max_bytes: Option<u64>) -> Decoder {
        // Escapes make text longer on the wire, rarely more than twice.
        let frame = max_bytes
            .map_or(usize::MAX, |max_bytes| usize::try_from(max_bytes.saturating_mul(2)).unwrap_or(usize::MAX));
        let mut decoder = Decoder::with_limit(protocol, rules, frame.max(MIN_FRAME_LIMIT));
        decoder.state.budget = ReplyBudget::new(max_bytes);
        decoder
    }

    /// `limit` is the most bytes one frame may have; a longer one is skipped.
    pub fn with_limit(protocol: Protocol, rules: &Rules, limit: usize) -> Decoder {
        let codec = match protocol {
            Protocol::OpenaiChat => ProtocolDecoder::Chat(Box::new(chat::ChatDecoder::new(rules))),
            Protocol::OpenaiResponses => ProtocolDecoder::Responses(Box::new(responses::ResponsesDecoder::new(rules))),
            Protocol::Anthropic => ProtocolDecoder::Messages(Box::new(messages::MessagesDecoder::new(rules))),
            Protocol::Gemini => ProtocolDecoder::Gemini(Box::new(gemini::GeminiDecoder::new(rules))),
            Protocol::Ollama => ProtocolDecoder::Ollama(Box::new(ollama::OllamaDecoder::new(rules))),
            Protocol::Bedrock => ProtocolDecoder::Converse(Box::new(converse::ConverseDecoder::new(rules.clone()))),
            Protocol::Cohere => ProtocolDecoder::Cohere(Box::new(cohere::CohereDecoder::new(rules))),
        };
        let framer = match protocol {
            Protocol::Ollama => Framer::of_lines(limit),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Bedrock
            | Protocol::Cohere => Framer::new(limit),
        };
        let state = DecoderState {
            codec,
            tool_markup: ToolMarkupDetector::new(&rules.read.tool_markers),
            protocol,
            n_frames: 0,
            n_understood: 0,
            n_broken: 0,
            bytes: 0,
            cut: false,
            oversized: false,
            budget: ReplyBudget::new(None),
            reason_watch: FinishReasonWatch::default(),
        };
        Decoder { framer, state }
    }

    /// Whether the reply limit is reached: no more content is emitted.
    pub fn is_full(&self) -> bool {
        self.state.budget.is_full()
    }

    /// Whether the protocol's own end of a stream was read, such as `[DONE]` or `message_stop`: nothing can follow.
    /// A finish reason is not enough. Gemini's streams have no end besides their connection's, and a body that is not
    /// streamed is read when it is finished.
    pub fn is_at_end(&self) -> bool {
        self.state.codec.is_at_end()
    }

    /// Decodes the next bytes, and emits the events that they complete.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        let Decoder { framer, state } = self;
        if state.budget.is_full() {
            return;
        }
        state.bytes += bytes.len() as u64;
        framer.push(bytes, &mut |framed| state.take(framed, sink));
    }

    /// Ends the input: closes open blocks and emits the ending once.
    pub fn finish(self, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        self.finish_as(InputEnd::Closed, sink)
    }

    /// Ends input whose connection failed. If the protocol's own end did not arrive before that, the reply counts as
    /// complete only if a finish reason followed all its content, and a note says if the usage is missing.
    pub fn finish_broken_off(self, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        self.finish_as(InputEnd::BrokenOff, sink)
    }

    fn finish_as(self, input_end: InputEnd, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        let Decoder { mut framer, mut state } = self;
        if !state.budget.is_full() {
            framer.finish(&mut |framed| state.take(framed, sink));
        }
        state.finish(input_end, sink)
    }
}

impl DecoderState {
    fn take(&mut self, framed: Framed<'_>, sink: &mut dyn Sink) {
        if self.budget.is_full() {
            return;
        }
        match framed {
            Framed::Frame(frame) => self.frame(&frame, sink),
            Framed::Oversized { start, .. } if self.budget.max_bytes().is_some() => {
                self.frame(&start, sink);
                self.budget.set_full();
            }
            Framed::Oversized { limit, .. } => {
                self.oversized = true;
                let message = format!("an event of more than {limit} bytes was skipped; raise the limit to read it");
                sink.take(Event::Noted(&Note { code: NoteCode::Oversized, message }));
            }
            Framed::Corrupt { what } => self.note_broken(what.to_owned(), sink),
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, sink: &mut dyn Sink) {
        self.n_frames += 1;
        let json = match std::str::from_utf8(frame.data) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) if frame.cut => {
                self.cut = true;
                return;
            }
            Err(_) => {
                let message = format!("frame {} is not UTF-8; the bad bytes were replaced", self.n_frames);
                sink.take(Event::Noted(&Note { code: NoteCode::InvalidUtf8, message }));
                String::from_utf8_lossy(frame.data)
            }
        };
        match json.trim_ascii() {
            "" => self.cut |= frame.cut,
            "[DONE]" => self.codec.done(),
            text => match self.codec_frame(frame, text, sink) {
                Ok(understood) => self.n_understood += u64::from(understood == Understood::Yes),
                Err(_) if frame.cut => self.cut = true,
                Err(error) => {
                    let quoted = quote(text);
                    let message = format!("frame {} was skipped ({error}): {quoted}", self.n_frames);
                    self.note_broken(message, sink);
                }
            },
        }
    }

    fn codec_frame(&mut self, frame: &Frame<'_>, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        self.reason_watch.start_frame(self.codec.finish_progress());
        let mut bounded = self.budget.wrap(sink);
        let mut watched = self.reason_watch.wrap(&mut bounded);
        self.codec.frame(frame, text, &mut self.tool_markup.wrap(&mut watched))
    }

    fn note_broken(&mut self, message: String, sink: &mut dyn Sink) {
        self.n_broken += 1;
        if self.n_broken <= MAX_BROKEN_NOTES {
            sink.take(Event::Noted(&Note { code: NoteCode::Malformed, message }));
        }
    }

    fn finish(&mut self, input_end: InputEnd, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        if self.n_broken > MAX_BROKEN_NOTES {
            let message = format!("{} more broken frames were skipped", self.n_broken - MAX_BROKEN_NOTES);
            sink.take(Event::Noted(&Note { code: NoteCode::Malformed, message }));
        }
        let (is_at_end, progress) = (self.codec.is_at_end(), self.codec.finish_progress());
        let mut bounded = self.budget.wrap(sink);
        let mut watched = self.reason_watch.wrap_last_events(&mut bounded);
        let Finished(mut end) = self.codec.finish(&mut self.tool_markup.wrap(&mut watched));
        if self.budget.is_full() {
            return self.finish_full(end, sink);
        }
        if self.cut && end.error.is_none() && end.ending == Ending::Unsaid {
            end.ending = Ending::CutOff;
        }
        let missing = match input_end {
            InputEnd::BrokenOff if !is_at_end => self.reason_watch.break_off(&mut end, progress, self.cut),
            InputEnd::BrokenOff | InputEnd::Closed => None,
        };
        if end.ending == Ending::CutOff && missing.is_none() {
            let message = "the input stops before the provider said that it was done".to_owned();
            sink.take(Event::Noted(&Note { code: NoteCode::CutOff, message }));
        }
        if let Some(note) = missing {
            sink.take(Event::Noted(&note));
        }
        sink.take(Event::Ended(&end));
        if self.n_understood == 0 {
            return Err(NotUnderstood { found: self.describe_input(), expected: expected_input(self.protocol) });
        }
        Ok(())
    }

    /// Ends a reply that was longer than the limit; the content so far counts as
    /// understood.
    fn finish_full(&mut self, end: ReplyEnd, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        let max_bytes = self.budget.max_bytes().unwrap_or_default();
        let message = format!("the reply is larger than reply.maxBytes ({max_bytes}); the part up to there is kept");
        sink.take(Event::Noted(&Note { code: NoteCode::Oversized, message }));
        sink.take(Event::Ended(&ReplyEnd { ending: Ending::CutOff, ..end }));
        Ok(())
    }

    fn describe_input(&self) -> String {
        match (self.bytes, self.n_frames) {
            (0, _) => "the input is empty".to_owned(),
            _ if self.oversized => "the input is one event over the size limit".to_owned(),
            (bytes, _) if self.cut => {
                format!("the input is cut off after {bytes} bytes, before anything could be read")
            }
            (bytes, 0) => format!("nothing in these {bytes} bytes is an event or a JSON value"),
            (_, frames) if self.n_broken > 0 => format!("none of {frames} frames is valid JSON of this protocol"),
            (_, frames) => format!("none of {frames} frames is of this protocol"),
        }
    }
}

impl ProtocolDecoder {
    fn frame(&mut self, frame: &Frame<'_>, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        match self {
            ProtocolDecoder::Chat(codec) => codec.frame(frame.framing, text, sink),
            ProtocolDecoder::Responses(codec) => codec.frame(text, sink),
            ProtocolDecoder::Messages(codec) => codec.frame(text, sink),
            ProtocolDecoder::Gemini(codec) => codec.frame(text, sink),
            ProtocolDecoder::Ollama(codec) => codec.frame(text, sink),
            ProtocolDecoder::Converse(codec) => codec.frame(frame.name, text, sink),
            ProtocolDecoder::Cohere(codec) => codec.frame(text, sink),
        }
    }

    /// `[DONE]`, which only some protocols use as an end marker.
    fn done(&mut self) {
        match self {
            ProtocolDecoder::Chat(codec) => codec.done(),
            ProtocolDecoder::Responses(codec) => codec.done(),
            ProtocolDecoder::Messages(_)
            | ProtocolDecoder::Gemini(_)
            | ProtocolDecoder::Ollama(_)
            | ProtocolDecoder::Converse(_)
            | ProtocolDecoder::Cohere(_) => (),
        }
    }

    /// Whether the protocol's own end of a reply was read.
    fn is_at_end(&self) -> bool {
        match self {
            ProtocolDecoder::Chat(codec) => codec.is_at_end(),
            ProtocolDecoder::Responses(codec) => codec.is_at_end(),
            ProtocolDecoder::Messages(codec) => codec.is_at_end(),
            ProtocolDecoder::Gemini(_) => false,
            ProtocolDecoder::Ollama(codec) => codec.is_at_end(),
            ProtocolDecoder::Converse(codec) => codec.is_at_end(),
            ProtocolDecoder::Cohere(codec) => codec.is_at_end(),
        }
    }

    fn finish_progress(&self) -> FinishProgress {
        match self {
            ProtocolDecoder::Chat(codec) => codec.finish_progress(),
            ProtocolDecoder::Messages(codec) => codec.finish_progress(),
            ProtocolDecoder::Gemini(codec) => codec.finish_progress(),
            ProtocolDecoder::Converse(codec) => codec.finish_progress(),
            // Their reason is a part of the end.
            ProtocolDecoder::Responses(_) | ProtocolDecoder::Ollama(_) | ProtocolDecoder::Cohere(_) => {
                FinishProgress::default()
            }
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        match self {
            ProtocolDecoder::Chat(codec) => codec.finish(sink),
            ProtocolDecoder::Responses(codec) => codec.finish(sink),
            ProtocolDecoder::Messages(codec) => codec.finish(sink),
            ProtocolDecoder::Gemini(codec) => codec.finish(sink),
            ProtocolDecoder::Ollama(codec) => codec.finish(sink),
            ProtocolDecoder::Converse(codec) => codec.finish(sink),
            ProtocolDecoder::Cohere(codec) => codec.finish(sink),
        }
    }
}

fn expected_input(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => "chat completion chunks (`data: {\"choices\":[…]}`) or one chat completion body",
        Protocol::OpenaiResponses => "Responses events (`data: {\"type\":\"response.…\"}`) or one response body",
        Protocol::Anthropic => "Messages events (`data: {\"type\":\"message_start\",…}`) or one message body",
        Protocol::Gemini => "generateContent chunks (`{\"candidates\":[…]}`) as events, as an array or alone",
        Protocol::Ollama => "one JSON object a line (`{\"model\":…,\"message\":…,\"done\":…}`)",
        Protocol::Bedrock => "an AWS event stream of Converse events or one Converse body",
        Protocol::Cohere => "v2 chat events (`data: {\"type\":\"message-start\",…}`) or one v2 chat body",
    }
}

fn quote(text: &str) -> String {
    let mut end = text.len().min(MAX_QUOTED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let dots = if end < text.len() { "…" } else { "" };
    format!("{}{dots}", text.get(..end).unwrap_or(""))
}
