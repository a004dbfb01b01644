//! Bytes into events, and events into bytes: one decoder and one writer for
//! every protocol, streamed or whole.
//!
//! A new protocol is a folder here, a variant of `Codec`, and a variant of
//! [`Protocol`]; the compiler lists the rest.

mod bounded;
mod call;
mod call_ids;
mod chat;
mod cohere;
mod converse;
mod draft;
mod encode;
mod failure;
mod failure_out;
mod filling;
mod gemini;
mod guess;
mod incoming;
pub(crate) mod json;
mod last_word;
mod messages;
mod ollama;
mod out;
mod pieces;
mod responses;
mod scan;
mod speech;
mod tally;
mod told;
mod watch;
mod write;

use std::borrow::Cow;

use bounded::Room;

use crate::dialect::Rules;
use crate::event::{End, Ending, Event, Note, NoteCode, Sink};
use crate::frame::{DEFAULT_FRAME_LIMIT, Frame, Framed, Framer};
use crate::protocol::Protocol;
pub use call::{Call, Destination, call, merge_body};
pub use encode::{Encoded, Encoder, Request, encode};
pub use failure_out::error_reply;
pub use filling::{Filling, HeldBack};
pub use guess::guess_protocol;
pub use incoming::{Incoming, ToolChoice, UnreadableRequest, read_request};
use json::NotJson;
pub use told::tell_reply;
use watch::MarkupWatch;
pub use write::{ReplyHead, StreamWriter, whole_reply};

/// How much of a frame an error quotes.
const QUOTE: usize = 200;

/// How many broken frames are told one by one.
const MOST_NOTES: u64 = 20;

/// However little of a reply is wanted, an error of its provider is read.
const SMALLEST_FRAME_LIMIT: usize = 1 << 20;

/// Reads one response. Feed it bytes in any pieces, then finish it.
#[derive(Debug)]
pub struct Decoder {
    framer: Framer,
    inner: Inner,
}

#[derive(Debug)]
struct Inner {
    codec: Codec,
    watch: MarkupWatch,
    protocol: Protocol,
    n_frames: u64,
    n_understood: u64,
    n_broken: u64,
    bytes: u64,
    /// The input ended inside a frame that could not be read.
    cut: bool,
    oversized: bool,
    room: Room,
}

#[derive(Debug)]
enum Codec {
    Chat(Box<chat::ChatDecoder>),
    Responses(Box<responses::ResponsesDecoder>),
    Messages(Box<messages::MessagesDecoder>),
    Gemini(Box<gemini::GeminiDecoder>),
    Ollama(Box<ollama::OllamaDecoder>),
    Converse(Box<converse::ConverseDecoder>),
    Cohere(Box<cohere::CohereDecoder>),
}

/// Nothing in the input was of the protocol it was read as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found}; expected {expected}")]
pub struct NotUnderstood {
    pub found: String,
    pub expected: &'static str,
}

struct Finished(End);

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
    pub fn new(protocol: Protocol, rules: &Rules) -> Decoder {
        Decoder::with_limit(protocol, rules, DEFAULT_FRAME_LIMIT)
    }

    /// A decoder that tells at most so many bytes of a reply; any number for
    /// none. What is too long is cut there and says so: nobody has to know how
    /// much of a reply fits into memory before it comes.
    pub fn bounded(protocol: Protocol, rules: &Rules, most: Option<u64>) -> Decoder {
        // Escapes make a text longer on its way, seldom twice as long.
        let frame = most.map_or(usize::MAX, |most| usize::try_from(most.saturating_mul(2)).unwrap_or(usize::MAX));
        let mut decoder = Decoder::with_limit(protocol, rules, frame.max(SMALLEST_FRAME_LIMIT));
        decoder.inner.room = Room::new(most);
        decoder
    }

    /// `limit` is the most bytes one frame may take; a longer one is passed
    /// over.
    pub fn with_limit(protocol: Protocol, rules: &Rules, limit: usize) -> Decoder {
        let codec = match protocol {
            Protocol::OpenaiChat => Codec::Chat(Box::new(chat::ChatDecoder::new(rules.clone()))),
            Protocol::OpenaiResponses => Codec::Responses(Box::new(responses::ResponsesDecoder::new(rules))),
            Protocol::Anthropic => Codec::Messages(Box::new(messages::MessagesDecoder::new(rules))),
            Protocol::Gemini => Codec::Gemini(Box::new(gemini::GeminiDecoder::new(rules))),
            Protocol::Ollama => Codec::Ollama(Box::new(ollama::OllamaDecoder::new(rules.clone()))),
            Protocol::Bedrock => Codec::Converse(Box::new(converse::ConverseDecoder::new(rules.clone()))),
            Protocol::Cohere => Codec::Cohere(Box::new(cohere::CohereDecoder::new(rules))),
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
        let inner = Inner {
            codec,
            watch: MarkupWatch::new(&rules.read.tool_markers),
            protocol,
            n_frames: 0,
            n_understood: 0,
            n_broken: 0,
            bytes: 0,
            cut: false,
            oversized: false,
            room: Room::new(None),
        };
        Decoder { framer, inner }
    }

    /// Whether the bound is reached: nothing more of this reply is told.
    pub fn is_full(&self) -> bool {
        self.inner.room.is_full()
    }

    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn Sink) {
        let Decoder { framer, inner } = self;
        if inner.room.is_full() {
            return;
        }
        inner.bytes += bytes.len() as u64;
        framer.push(bytes, &mut |framed| inner.take(framed, sink));
    }

    /// The input is over. What is open is closed, and the ending is said once.
    pub fn finish(self, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        let Decoder { mut framer, mut inner } = self;
        if !inner.room.is_full() {
            framer.finish(&mut |framed| inner.take(framed, sink));
        }
        inner.finish(sink)
    }
}

impl Inner {
    fn take(&mut self, framed: Framed<'_>, sink: &mut dyn Sink) {
        if self.room.is_full() {
            return;
        }
        match framed {
            Framed::Frame(frame) => self.frame(&frame, sink),
            Framed::Oversized { start, .. } if self.room.most().is_some() => {
                self.frame(&start, sink);
                self.room.fill();
            }
            Framed::Oversized { limit, .. } => {
                self.oversized = true;
                let message =
                    format!("an event of more than {limit} bytes was passed over; raise the limit to read it");
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
            text => match self.codec.frame(frame, text, &mut self.watch.over(&mut self.room.over(sink))) {
                Ok(understood) => self.n_understood += u64::from(understood == Understood::Yes),
                Err(_) if frame.cut => self.cut = true,
                Err(error) => {
                    let quoted = quote(text);
                    let message = format!("frame {} was passed over ({error}): {quoted}", self.n_frames);
                    self.note_broken(message, sink);
                }
            },
        }
    }

    fn note_broken(&mut self, message: String, sink: &mut dyn Sink) {
        self.n_broken += 1;
        if self.n_broken <= MOST_NOTES {
            sink.take(Event::Noted(&Note { code: NoteCode::Malformed, message }));
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        if self.n_broken > MOST_NOTES {
            let message = format!("{} more broken frames were passed over", self.n_broken - MOST_NOTES);
            sink.take(Event::Noted(&Note { code: NoteCode::Malformed, message }));
        }
        let Finished(mut end) = self.codec.finish(&mut self.watch.over(&mut self.room.over(sink)));
        if self.room.is_full() {
            return self.finish_full(end, sink);
        }
        if self.cut && end.error.is_none() && end.ending == Ending::Unsaid {
            end.ending = Ending::CutOff;
        }
        if end.ending == Ending::CutOff {
            let message = "the input stops before the provider said that it was done".to_owned();
            sink.take(Event::Noted(&Note { code: NoteCode::CutOff, message }));
        }
        sink.take(Event::Ended(&end));
        if self.n_understood == 0 {
            return Err(NotUnderstood { found: self.what_was_found(), expected: expected(self.protocol) });
        }
        Ok(())
    }

    /// The reply was longer than the bound. What came of it was understood.
    fn finish_full(&mut self, end: End, sink: &mut dyn Sink) -> Result<(), NotUnderstood> {
        let most = self.room.most().unwrap_or_default();
        let message = format!("the reply is larger than reply.maxBytes ({most}); what came up to there is kept");
        sink.take(Event::Noted(&Note { code: NoteCode::Oversized, message }));
        sink.take(Event::Ended(&End { ending: Ending::CutOff, ..end }));
        Ok(())
    }

    fn what_was_found(&self) -> String {
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

impl Codec {
    fn frame(&mut self, frame: &Frame<'_>, text: &str, sink: &mut dyn Sink) -> Result<Understood, NotJson> {
        match self {
            Codec::Chat(codec) => codec.frame(frame.framing, text, sink),
            Codec::Responses(codec) => codec.frame(text, sink),
            Codec::Messages(codec) => codec.frame(text, sink),
            Codec::Gemini(codec) => codec.frame(text, sink),
            Codec::Ollama(codec) => codec.frame(text, sink),
            Codec::Converse(codec) => codec.frame(frame.name, text, sink),
            Codec::Cohere(codec) => codec.frame(text, sink),
        }
    }

    /// `[DONE]`, which only some protocols know as an end.
    fn done(&mut self) {
        match self {
            Codec::Chat(codec) => codec.done(),
            Codec::Responses(codec) => codec.done(),
            Codec::Messages(_) | Codec::Gemini(_) | Codec::Ollama(_) | Codec::Converse(_) | Codec::Cohere(_) => (),
        }
    }

    fn finish(&mut self, sink: &mut dyn Sink) -> Finished {
        match self {
            Codec::Chat(codec) => codec.finish(sink),
            Codec::Responses(codec) => codec.finish(sink),
            Codec::Messages(codec) => codec.finish(sink),
            Codec::Gemini(codec) => codec.finish(sink),
            Codec::Ollama(codec) => codec.finish(sink),
            Codec::Converse(codec) => codec.finish(sink),
            Codec::Cohere(codec) => codec.finish(sink),
        }
    }
}

fn expected(protocol: Protocol) -> &'static str {
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
    let mut end = text.len().min(QUOTE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let dots = if end < text.len() { "…" } else { "" };
    format!("{}{dots}", text.get(..end).unwrap_or(""))
}
