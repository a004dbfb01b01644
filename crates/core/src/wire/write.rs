//! Events into the bytes their provider would send: the way back of a decoder,
//! for whoever plays a provider.
//!
//! What a protocol has no place for is not written: a seal where it knows
//! none, a block of another protocol that we do not understand.

use super::chat;
use super::out::Out;
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
    out: Out,
}

#[derive(Debug)]
enum Codec {
    Chat(Box<chat::ChatWriter>),
}

impl StreamWriter {
    pub fn new(protocol: Protocol, rules: &Rules, head: &ReplyHead<'_>) -> StreamWriter {
        let codec = match protocol {
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Ollama
            | Protocol::Bedrock
            | Protocol::Cohere => Codec::Chat(Box::new(chat::ChatWriter::new(rules.clone(), head))),
        };
        StreamWriter { codec, out: Out::default() }
    }

    /// The bytes that are ready, since the last call. One call per event gives
    /// one write per frame.
    pub fn drain(&mut self) -> Vec<u8> {
        self.out.take()
    }

    /// The content type of the stream.
    pub fn content_type(&self) -> &'static str {
        match &self.codec {
            Codec::Chat(_) => "text/event-stream",
        }
    }
}

impl Sink for StreamWriter {
    fn take(&mut self, event: Event<'_>) {
        match &mut self.codec {
            Codec::Chat(codec) => codec.take(event, &mut self.out),
        }
    }
}

/// The same reply as one whole (not streamed) body.
pub fn whole_reply(protocol: Protocol, rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    match protocol {
        Protocol::OpenaiChat
        | Protocol::OpenaiResponses
        | Protocol::Anthropic
        | Protocol::Gemini
        | Protocol::Ollama
        | Protocol::Bedrock
        | Protocol::Cohere => chat::whole(rules, head, reply),
    }
}
