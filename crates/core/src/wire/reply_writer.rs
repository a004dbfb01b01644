//! Writes events as the bytes their provider would send: the inverse of a
//! decoder, for the simulator.
//!
//! Content that a protocol cannot express is not written: a seal where it has
//! none, or an unmodelled block of another protocol. Written text cannot be
//! changed: a restatement that contradicts its deltas is written only by the
//! protocol that restates (OpenAI Responses).

use super::restated::RestatedToGrowth;
use super::stream_parts::FrameWriter;
use super::{chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::Reply;
use crate::dialect::Rules;
use crate::event::{Event, Sink};
use crate::json_text::compact;
use crate::protocol::Protocol;

/// The metadata of a reply.
#[derive(Debug, Clone, Copy)]
pub struct ReplyHead<'a> {
    /// The id of the reply.
    pub id: &'a str,
    /// The model to name in it.
    pub model: &'a str,
    /// Unix seconds, given by the caller.
    pub created: u64,
    /// The id of the response that this one continues.
    pub previous: Option<&'a str>,
    /// Whether the client can fetch the response by its id.
    pub is_stored: bool,
}

impl<'a> ReplyHead<'a> {
    /// The head of a reply that continues none and is not stored.
    pub const fn new(id: &'a str, model: &'a str, created: u64) -> ReplyHead<'a> {
        ReplyHead { id, model, created, previous: None, is_stored: false }
    }
}

/// Writes a reply as its provider would stream it: events in, bytes out.
#[derive(Debug)]
pub struct StreamWriter {
    codec: ProtocolWriter,
    restated: RestatedToGrowth,
    out: FrameWriter,
}

#[derive(Debug)]
enum ProtocolWriter {
    Chat(Box<chat::ChatWriter>),
    Responses(Box<responses::ResponsesWriter>),
    Messages(Box<messages::MessagesWriter>),
    Gemini(Box<gemini::GeminiWriter>),
    Ollama(Box<ollama::OllamaWriter>),
    Converse(Box<converse::ConverseWriter>),
    Cohere(Box<cohere::CohereWriter>),
}

impl StreamWriter {
    /// A writer for one reply in the given protocol.
    pub fn new(protocol: Protocol, rules: &Rules, head: &ReplyHead<'_>) -> StreamWriter {
        let rules = rules.clone();
        let codec = match protocol {
            Protocol::OpenaiChat => ProtocolWriter::Chat(Box::new(chat::ChatWriter::new(rules, head))),
            Protocol::OpenaiResponses => {
                ProtocolWriter::Responses(Box::new(responses::ResponsesWriter::new(rules, head)))
            }
            Protocol::Anthropic => ProtocolWriter::Messages(Box::new(messages::MessagesWriter::new(rules, head))),
            Protocol::Gemini => ProtocolWriter::Gemini(Box::new(gemini::GeminiWriter::new(rules, head))),
            Protocol::Ollama => ProtocolWriter::Ollama(Box::new(ollama::OllamaWriter::new(rules, head))),
            Protocol::Bedrock => ProtocolWriter::Converse(Box::default()),
            Protocol::Cohere => ProtocolWriter::Cohere(Box::new(cohere::CohereWriter::new(rules, head))),
        };
        StreamWriter { codec, restated: RestatedToGrowth::default(), out: FrameWriter::default() }
    }

    /// The bytes written since the last call. Calling it after each event gives
    /// one write per frame.
    pub fn drain(&mut self) -> Vec<u8> {
        self.out.take()
    }

    /// The `content-type` of the stream.
    pub fn content_type(&self) -> &'static str {
        match &self.codec {
            ProtocolWriter::Chat(_)
            | ProtocolWriter::Responses(_)
            | ProtocolWriter::Messages(_)
            | ProtocolWriter::Gemini(_)
            | ProtocolWriter::Cohere(_) => "text/event-stream",
            ProtocolWriter::Ollama(_) => "application/x-ndjson",
            ProtocolWriter::Converse(_) => "application/vnd.amazon.eventstream",
        }
    }
}

impl Sink for StreamWriter {
    fn take(&mut self, event: Event<'_>) {
        // An item may contain line breaks, which would end a frame.
        let compacted;
        let mut event = event;
        if let Event::NativeItem { json, .. } = &mut event {
            compacted = compact(json);
            *json = &compacted;
        }
        let StreamWriter { codec, restated, out } = self;
        match codec {
            // The one protocol that restates text itself.
            ProtocolWriter::Responses(codec) => codec.take(event, out),
            ProtocolWriter::Chat(_)
            | ProtocolWriter::Messages(_)
            | ProtocolWriter::Gemini(_)
            | ProtocolWriter::Ollama(_)
            | ProtocolWriter::Converse(_)
            | ProtocolWriter::Cohere(_) => restated.take(event, &mut |event: Event<'_>| codec.take(event, out)),
        }
    }
}

impl ProtocolWriter {
    fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match self {
            ProtocolWriter::Chat(codec) => codec.take(event, out),
            ProtocolWriter::Responses(codec) => codec.take(event, out),
            ProtocolWriter::Messages(codec) => codec.take(event, out),
            ProtocolWriter::Gemini(codec) => codec.take(event, out),
            ProtocolWriter::Ollama(codec) => codec.take(event, out),
            ProtocolWriter::Converse(codec) => codec.take(event, out),
            ProtocolWriter::Cohere(codec) => codec.take(event, out),
        }
    }
}

/// The same reply as one body, not streamed.
pub fn whole_reply(protocol: Protocol, rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    match protocol {
        Protocol::OpenaiChat => chat::whole(rules, head, reply),
        Protocol::OpenaiResponses => responses::whole(rules, head, reply),
        Protocol::Anthropic => messages::whole(rules, head, reply),
        Protocol::Gemini => gemini::whole(rules, head, reply),
        Protocol::Ollama => ollama::whole(rules, head, reply),
        Protocol::Bedrock => converse::whole(reply),
        Protocol::Cohere => cohere::whole(rules, head, reply),
    }
}
