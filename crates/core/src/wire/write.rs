//! Events into the bytes their provider would send: the way back of a decoder,
//! for whoever plays a provider.
//!
//! What a protocol has no place for is not written: a seal where it knows
//! none, a block of another protocol that we do not understand. What is
//! written is not taken back: a last word that contradicts its deltas is heard
//! only in the protocol that has last words.

use super::last_word::LastWord;
use super::out::Out;
use super::{chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::Reply;
use crate::dialect::Rules;
use crate::event::{Event, Sink};
use crate::protocol::Protocol;

/// What a reply says of itself besides its content.
#[derive(Debug, Clone, Copy)]
pub struct ReplyHead<'a> {
    pub id: &'a str,
    pub model: &'a str,
    /// Unix seconds, handed in.
    pub created: u64,
}

/// Writes a reply as its provider would stream it: events in, bytes out.
#[derive(Debug)]
pub struct StreamWriter {
    codec: Codec,
    last_word: LastWord,
    out: Out,
}

#[derive(Debug)]
enum Codec {
    Chat(Box<chat::ChatWriter>),
    Responses(Box<responses::ResponsesWriter>),
    Messages(Box<messages::MessagesWriter>),
    Gemini(Box<gemini::GeminiWriter>),
    Ollama(Box<ollama::OllamaWriter>),
    Converse(Box<converse::ConverseWriter>),
    Cohere(Box<cohere::CohereWriter>),
}

impl StreamWriter {
    pub fn new(protocol: Protocol, rules: &Rules, head: &ReplyHead<'_>) -> StreamWriter {
        let rules = rules.clone();
        let codec = match protocol {
            Protocol::OpenaiChat => Codec::Chat(Box::new(chat::ChatWriter::new(rules, head))),
            Protocol::OpenaiResponses => Codec::Responses(Box::new(responses::ResponsesWriter::new(rules, head))),
            Protocol::Anthropic => Codec::Messages(Box::new(messages::MessagesWriter::new(rules, head))),
            Protocol::Gemini => Codec::Gemini(Box::new(gemini::GeminiWriter::new(rules, head))),
            Protocol::Ollama => Codec::Ollama(Box::new(ollama::OllamaWriter::new(rules, head))),
            Protocol::Bedrock => Codec::Converse(Box::default()),
            Protocol::Cohere => Codec::Cohere(Box::new(cohere::CohereWriter::new(rules, head))),
        };
        StreamWriter { codec, last_word: LastWord::default(), out: Out::default() }
    }

    /// The bytes that are ready, since the last call. One call per event gives
    /// one write per frame.
    pub fn drain(&mut self) -> Vec<u8> {
        self.out.take()
    }

    /// The content type of the stream.
    pub fn content_type(&self) -> &'static str {
        match &self.codec {
            Codec::Chat(_) | Codec::Responses(_) | Codec::Messages(_) | Codec::Gemini(_) | Codec::Cohere(_) => {
                "text/event-stream"
            }
            Codec::Ollama(_) => "application/x-ndjson",
            Codec::Converse(_) => "application/vnd.amazon.eventstream",
        }
    }
}

impl Sink for StreamWriter {
    fn take(&mut self, event: Event<'_>) {
        let StreamWriter { codec, last_word, out } = self;
        match codec {
            // The one protocol that has last words itself.
            Codec::Responses(codec) => codec.take(event, out),
            Codec::Chat(_)
            | Codec::Messages(_)
            | Codec::Gemini(_)
            | Codec::Ollama(_)
            | Codec::Converse(_)
            | Codec::Cohere(_) => last_word.take(event, &mut |event: Event<'_>| codec.take(event, out)),
        }
    }
}

impl Codec {
    fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match self {
            Codec::Chat(codec) => codec.take(event, out),
            Codec::Responses(codec) => codec.take(event, out),
            Codec::Messages(codec) => codec.take(event, out),
            Codec::Gemini(codec) => codec.take(event, out),
            Codec::Ollama(codec) => codec.take(event, out),
            Codec::Converse(codec) => codec.take(event, out),
            Codec::Cohere(codec) => codec.take(event, out),
        }
    }
}

/// The same reply as one whole (not streamed) body.
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
