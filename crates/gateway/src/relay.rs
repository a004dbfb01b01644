//! Sends a reply to a client while it arrives, with bounded buffers and keep-alives;
//! the end of the reply is held back until it is recorded.

use std::io;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::Duration;

use aside_core::protocol::Protocol;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use memchr::memmem::Finder;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

pub(crate) use crate::relay_buffer::ClientGone;
use crate::relay_buffer::{RelaySender, relay_buffer};

/// Longer than any reply.
const MAX_SILENCE: Duration = Duration::from_secs(365 * 86_400);

/// The sending side of a reply.
#[derive(Debug)]
pub(crate) struct Relay {
    chunks: RelaySender,
    /// Dropped when something was sent.
    begun: Option<oneshot::Sender<()>>,
    framing: RelayFraming,
    /// The last byte sent was the end of a frame.
    between_frames: bool,
    silence: Silence,
}

/// Measures how long nothing was sent. A new timer for every chunk would cost more than passing the chunk on, so there
/// is one timer for the whole reply.
#[derive(Debug)]
struct Silence {
    since: Instant,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Silence {
    fn new(limit: Duration) -> Silence {
        // A longer limit could overflow the clock.
        let limit = limit.min(MAX_SILENCE);
        Silence { since: Instant::now(), limit, timer: Box::pin(tokio::time::sleep(limit)) }
    }

    fn end(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until the silence has lasted as long as the limit, and starts over.
    async fn lasts(&mut self) {
        loop {
            self.timer.as_mut().await;
            let now = Instant::now();
            let is_over = now.duration_since(self.since) >= self.limit;
            if is_over {
                self.since = now;
            }
            self.timer.as_mut().reset(self.since + self.limit);
            if is_over {
                return;
            }
        }
    }
}

/// How the parts of a reply are separated, and so where a keep-alive may be inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayFraming {
    /// Events; Anthropic's clients expect its ping.
    Events { ping: bool },
    /// Lines or one body, which have no room for a keep-alive.
    Plain,
}

impl RelayFraming {
    pub(crate) fn of(protocol: Protocol, content_type: &str) -> RelayFraming {
        match content_type.starts_with("text/event-stream") {
            true => RelayFraming::Events { ping: protocol == Protocol::Anthropic },
            false => RelayFraming::Plain,
        }
    }

    fn sign_of_life(self) -> Option<&'static [u8]> {
        match self {
            RelayFraming::Events { ping: true } => Some(b"event: ping\ndata: {\"type\": \"ping\"}\n\n"),
            RelayFraming::Events { ping: false } => Some(b": keep-alive\n\n"),
            RelayFraming::Plain => None,
        }
    }
}

/// A body, and the relay that feeds it.
pub(crate) fn relay(framing: RelayFraming, keep_alive: Duration) -> (Relay, Body) {
    let (chunks, mut received) = relay_buffer();
    let body = Body::from_stream(stream::poll_fn(move |context| received.poll_next(context)));
    (Relay { chunks, begun: None, framing, between_frames: true, silence: Silence::new(keep_alive) }, body)
}

impl Relay {
    /// Sends bytes, and waits while the client is slow.
    pub(crate) async fn send(&mut self, bytes: Bytes) -> Result<(), ClientGone> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.between_frames = bytes.ends_with(b"\n\n") || bytes.ends_with(b"\r\n\r\n");
        self.silence.end();
        self.chunks.send(bytes).await?;
        self.begun = None;
        Ok(())
    }

    /// Resolves when something was sent, or the relay is dropped.
    pub(crate) fn begun(&mut self) -> impl Future<Output = ()> + use<> {
        let (begun, waiting) = oneshot::channel();
        self.begun = Some(begun);
        async move {
            // It is only ever dropped.
            let _dropped = waiting.await;
        }
    }

    /// Breaks the connection, as the provider did.
    pub(crate) fn abort(&mut self, why: &str) {
        self.chunks.fail(io::Error::other(why.to_owned()));
    }

    /// Sends a keep-alive on a silent stream, if that is possible now.
    pub(crate) async fn sign_of_life(&mut self) -> Result<(), ClientGone> {
        match self.framing.sign_of_life().filter(|_| self.between_frames) {
            Some(bytes) => {
                self.begun = None;
                self.chunks.send(Bytes::from_static(bytes)).await
            }
            None => Ok(()),
        }
    }

    /// Waits until the client should get a keep-alive, or has disconnected.
    pub(crate) async fn silence(&mut self) -> Result<(), ClientGone> {
        tokio::select! {
            biased;
            () = self.chunks.closed() => Err(ClientGone),
            () = self.silence.lasts() => Ok(()),
        }
    }

    /// Waits for `work`, with keep-alives in between.
    pub(crate) async fn wait_for<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ClientGone> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                silent = self.silence() => silent?,
            }
            self.sign_of_life().await?;
        }
    }
}

/// Where the last frame of a reply begins in a chunk, if the chunk seems to contain it. A wrong guess only delays
/// the rest of the chunk until the next one arrives.
pub(crate) fn terminal_frame(protocol: Protocol, chunk: &[u8]) -> Option<usize> {
    let at = TerminalMarkers::of(protocol).iter().filter_map(|marker| marker.find(chunk)).min()?;
    let before = chunk.get(..at)?;
    // The frame begins after the last empty line before the marker, or after the last line.
    let separator: &[u8] = if protocol == Protocol::Ollama { b"\n" } else { b"\n\n" };
    Some(rfind(before, separator).map_or(0, |found| found + separator.len()))
}

/// What the last frames of the protocols contain. Each is searched for in every chunk, so the searchers are made once.
struct TerminalMarkers;

impl TerminalMarkers {
    fn of(protocol: Protocol) -> &'static [Finder<'static>] {
        static OPENAI_CHAT: LazyLock<[Finder<'static>; 2]> =
            LazyLock::new(|| [Finder::new(b"data: [DONE]"), Finder::new(b"data:[DONE]")]);
        static OPENAI_RESPONSES: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
            [Finder::new(b"response.completed"), Finder::new(b"response.incomplete"), Finder::new(b"response.failed")]
        });
        static ANTHROPIC: LazyLock<[Finder<'static>; 1]> = LazyLock::new(|| [Finder::new(b"message_stop")]);
        static GEMINI: LazyLock<[Finder<'static>; 1]> = LazyLock::new(|| [Finder::new(b"\"finishReason\"")]);
        static OLLAMA: LazyLock<[Finder<'static>; 2]> =
            LazyLock::new(|| [Finder::new(b"\"done\":true"), Finder::new(b"\"done\": true")]);
        static BEDROCK: LazyLock<[Finder<'static>; 1]> = LazyLock::new(|| [Finder::new(b"messageStop")]);
        static COHERE: LazyLock<[Finder<'static>; 1]> = LazyLock::new(|| [Finder::new(b"message-end")]);
        match protocol {
            Protocol::OpenaiChat => &*OPENAI_CHAT,
            Protocol::OpenaiResponses => &*OPENAI_RESPONSES,
            Protocol::Anthropic => &*ANTHROPIC,
            Protocol::Gemini => &*GEMINI,
            Protocol::Ollama => &*OLLAMA,
            Protocol::Bedrock => &*BEDROCK,
            Protocol::Cohere => &*COHERE,
        }
    }
}

fn rfind(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::rfind(bytes, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g7_the_last_frame_is_found_in_a_chunk() {
        #[rustfmt::skip]
        let cases: [(&str, Protocol, &str, Option<&str>); 6] = [
            ("chat",      Protocol::OpenaiChat, "data: {}\n\ndata: [DONE]\n\n", Some("data: [DONE]\n\n")),
            ("messages",  Protocol::Anthropic, "event: a\ndata: {}\n\nevent: message_stop\ndata: {}\n\n", Some("event: message_stop\ndata: {}\n\n")),
            ("ollama",    Protocol::Ollama, "{\"done\":false}\n{\"done\":true}\n", Some("{\"done\":true}\n")),
            ("alone",     Protocol::OpenaiChat, "data: [DONE]\n\n", Some("data: [DONE]\n\n")),
            ("none",      Protocol::OpenaiChat, "data: {}\n\n", None),
            ("responses", Protocol::OpenaiResponses, "x\n\nevent: response.completed\n\n", Some("event: response.completed\n\n")),
        ];
        for (name, protocol, chunk, expected) in cases {
            let at = terminal_frame(protocol, chunk.as_bytes());
            assert_eq!(at.and_then(|at| chunk.get(at..)), expected, "{name}");
        }
    }
}
