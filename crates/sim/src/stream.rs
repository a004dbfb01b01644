//! The bytes of an answer, one piece after another, with the waits between
//! them. It says when to wait; whoever sends it waits.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use std::vec::IntoIter;

use aside_core::dialect::Rules;
use aside_core::event::{BlockId, Event, Sink};
use aside_core::protocol::Protocol;
use aside_core::wire::{ReplyHead, StreamWriter, whole_reply};

use crate::beats::{Beat, folded};
use crate::words::TokenStream;

/// Shorter waits than this are saved up: no timer is that fine.
const SHORTEST_WAIT: Duration = Duration::from_millis(2);

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    Bytes(Vec<u8>),
    Wait(Duration),
    /// The connection breaks.
    Abort,
    End,
}

/// How the bytes go out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Before each token.
    pub(crate) pace: Duration,
    /// Bytes that go out together.
    pub(crate) chunk: Option<usize>,
    /// Bytes until the connection breaks.
    pub(crate) cut: Option<u64>,
}

/// The body of an answer.
#[derive(Debug)]
pub struct Stream {
    source: Source,
    limits: Limits,
    ready: VecDeque<Vec<u8>>,
    owed: Duration,
    sent: u64,
}

#[derive(Debug)]
enum Source {
    Told {
        protocol: Protocol,
        writer: Box<StreamWriter>,
        beats: IntoIter<Beat>,
        saying: Option<Saying>,
        garble: bool,
    },
    /// Everything there is comes after the pauses, and is made then.
    AtOnce {
        body: Option<Body>,
        pauses: IntoIter<Duration>,
    },
}

/// Words that are being said.
struct Saying {
    block: BlockId,
    tokens: TokenStream,
}

impl fmt::Debug for Saying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Saying").field("block", &self.block).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Body {
    Ready(Vec<u8>),
    Whole(Box<Whole>),
}

/// A reply that is going to be sent as one body.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) protocol: Protocol,
    pub(crate) rules: Rules,
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: u64,
    /// As the only element of a list.
    pub(crate) listed: bool,
    pub(crate) beats: Vec<Beat>,
}

impl Whole {
    fn write(&self) -> Vec<u8> {
        let head = ReplyHead { id: &self.id, model: &self.model, created: self.created };
        let mut body = whole_reply(self.protocol, &self.rules, &head, &folded(&self.beats));
        if self.listed {
            body = format!("[{body}]");
        }
        let mut bytes = body.into_bytes();
        // A broken frame breaks it.
        if self.beats.contains(&Beat::Garbled) {
            bytes.truncate(bytes.len() * 2 / 3);
        }
        bytes
    }
}

impl Body {
    fn bytes(self) -> Vec<u8> {
        match self {
            Body::Ready(bytes) => bytes,
            Body::Whole(whole) => whole.write(),
        }
    }
}

impl Stream {
    /// A body that is what it is.
    pub(crate) fn of(body: String) -> Stream {
        let body = Some(Body::Ready(body.into_bytes()));
        Stream::new(Source::AtOnce { body, pauses: Vec::new().into_iter() }, Limits::default())
    }

    pub(crate) fn told(protocol: Protocol, writer: StreamWriter, beats: Vec<Beat>, limits: Limits) -> Stream {
        let source =
            Source::Told { protocol, writer: Box::new(writer), beats: beats.into_iter(), saying: None, garble: false };
        Stream::new(source, limits)
    }

    /// A whole body takes as long as its tokens.
    pub(crate) fn at_once(whole: Whole, limits: Limits) -> Stream {
        let n_tokens: usize = whole.beats.iter().map(Beat::n_tokens).sum();
        let mut pauses = vec![limits.pace.saturating_mul(u32::try_from(n_tokens).unwrap_or(u32::MAX))];
        pauses.extend(whole.beats.iter().filter_map(|beat| match beat {
            Beat::Pause(time) => Some(*time),
            Beat::Opened { .. }
            | Beat::Item { .. }
            | Beat::Said { .. }
            | Beat::Sealed { .. }
            | Beat::Kept { .. }
            | Beat::Closed { .. }
            | Beat::Usage(_)
            | Beat::Ended(_)
            | Beat::Garbled => None,
        }));
        pauses.retain(|pause| !pause.is_zero());
        // What is sent at once has a length that can be told before it.
        let body = if pauses.is_empty() { Body::Ready(whole.write()) } else { Body::Whole(Box::new(whole)) };
        Stream::new(Source::AtOnce { body: Some(body), pauses: pauses.into_iter() }, limits)
    }

    fn new(source: Source, limits: Limits) -> Stream {
        Stream { source, limits, ready: VecDeque::new(), owed: Duration::ZERO, sent: 0 }
    }

    /// Whether pieces are to arrive as pieces.
    pub fn is_fragmented(&self) -> bool {
        self.limits.chunk.is_some()
    }

    /// How long the body is, where that is known before it is sent.
    pub fn length(&self) -> Option<u64> {
        match &self.source {
            Source::AtOnce { body: Some(Body::Ready(body)), .. } if self.limits.cut.is_none() => {
                Some(body.len() as u64)
            }
            Source::AtOnce { .. } | Source::Told { .. } => None,
        }
    }

    pub fn step(&mut self) -> Next {
        loop {
            if self.limits.cut.is_some_and(|cut| self.sent >= cut) {
                return Next::Abort;
            }
            if let Some(piece) = self.ready.pop_front() {
                return Next::Bytes(self.count(piece));
            }
            match self.produce() {
                Some(Made::Bytes(bytes)) => self.fragment(bytes),
                Some(Made::Wait(time)) => return Next::Wait(time),
                None if self.owed >= SHORTEST_WAIT => return Next::Wait(std::mem::take(&mut self.owed)),
                None => return Next::End,
            }
        }
    }

    /// No byte more than the connection lives for.
    fn count(&mut self, mut piece: Vec<u8>) -> Vec<u8> {
        if let Some(cut) = self.limits.cut {
            let left = usize::try_from(cut - self.sent).unwrap_or(usize::MAX);
            piece.truncate(left);
        }
        self.sent += piece.len() as u64;
        piece
    }

    fn fragment(&mut self, bytes: Vec<u8>) {
        match self.limits.chunk {
            Some(size) => self.ready.extend(bytes.chunks(size).map(<[u8]>::to_vec)),
            None if bytes.is_empty() => (),
            None => self.ready.push_back(bytes),
        }
    }

    fn produce(&mut self) -> Option<Made> {
        match &mut self.source {
            Source::AtOnce { body, pauses } => match pauses.next() {
                Some(pause) => Some(Made::Wait(pause)),
                None => body.take().map(|body| Made::Bytes(body.bytes())),
            },
            Source::Told { protocol, writer, beats, saying, garble } => {
                let token = saying.as_mut().and_then(|said| Some((said.block, said.tokens.next()?)));
                let is_token = token.is_some();
                if let Some((block, text)) = token {
                    writer.take(Event::Grew { block, text: &text });
                } else {
                    let beat = beats.next()?;
                    *saying = None;
                    match (&beat, beat.event()) {
                        (_, Some(event)) => writer.take(event),
                        (Beat::Pause(time), None) => return Some(Made::Wait(*time)),
                        (Beat::Said { block, .. }, None) => {
                            *saying = Some(Saying { block: *block, tokens: beat.tokens() });
                            return Some(Made::Bytes(Vec::new()));
                        }
                        (_, None) => {
                            *garble = true;
                            return Some(Made::Bytes(Vec::new()));
                        }
                    }
                }
                let mut bytes = writer.drain();
                if *garble && !bytes.is_empty() {
                    *garble = false;
                    let mut both = broken(*protocol, &bytes);
                    both.append(&mut bytes);
                    bytes = both;
                }
                if is_token {
                    self.owed = self.owed.saturating_add(self.limits.pace);
                }
                if self.owed >= SHORTEST_WAIT {
                    self.fragment(bytes);
                    return Some(Made::Wait(std::mem::take(&mut self.owed)));
                }
                Some(Made::Bytes(bytes))
            }
        }
    }
}

enum Made {
    Bytes(Vec<u8>),
    Wait(Duration),
}

/// A frame like this one that nobody can read.
fn broken(protocol: Protocol, frame: &[u8]) -> Vec<u8> {
    match protocol {
        // The last bytes are a checksum of all that stands before them.
        Protocol::Bedrock => {
            let mut frame = frame.to_vec();
            if let Some(last) = frame.last_mut() {
                *last ^= 0xff;
            }
            frame
        }
        Protocol::Ollama => [half(frame), b"\n"].concat(),
        Protocol::OpenaiChat
        | Protocol::OpenaiResponses
        | Protocol::Anthropic
        | Protocol::Gemini
        | Protocol::Cohere => [half(frame), b"\n\n"].concat(),
    }
}

/// Most of a frame, without its end.
fn half(frame: &[u8]) -> &[u8] {
    let frame = frame.trim_ascii_end();
    frame.get(..frame.len() * 3 / 4).unwrap_or_default()
}
