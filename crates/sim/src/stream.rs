//! The bytes of an answer, one piece after another, with the waits between
//! them. It says when to wait; whoever sends it waits.

use std::collections::VecDeque;
use std::time::Duration;
use std::vec::IntoIter;

use aside_core::event::Sink;
use aside_core::protocol::Protocol;
use aside_core::wire::StreamWriter;

use crate::beats::Beat;

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
        garble: bool,
    },
    /// Everything there is comes after the pauses.
    AtOnce {
        body: Option<Vec<u8>>,
        pauses: IntoIter<Duration>,
    },
}

impl Stream {
    /// A body that is what it is.
    pub(crate) fn of(body: String) -> Stream {
        Stream::at_once(body, &[], Limits::default())
    }

    pub(crate) fn told(protocol: Protocol, writer: StreamWriter, beats: Vec<Beat>, limits: Limits) -> Stream {
        let source = Source::Told { protocol, writer: Box::new(writer), beats: beats.into_iter(), garble: false };
        Stream::new(source, limits)
    }

    /// A whole body takes as long as its tokens; a broken frame breaks it.
    pub(crate) fn at_once(body: String, beats: &[Beat], limits: Limits) -> Stream {
        let n_tokens = beats.iter().filter(|beat| beat.is_token()).count();
        let mut pauses = vec![limits.pace.saturating_mul(u32::try_from(n_tokens).unwrap_or(u32::MAX))];
        let mut bytes = body.into_bytes();
        for beat in beats {
            match beat {
                Beat::Pause(time) => pauses.push(*time),
                Beat::Garbled => bytes.truncate(bytes.len() * 2 / 3),
                Beat::Opened { .. }
                | Beat::Item { .. }
                | Beat::Grew { .. }
                | Beat::Sealed { .. }
                | Beat::Kept { .. }
                | Beat::Closed { .. }
                | Beat::Usage(_)
                | Beat::Ended(_) => (),
            }
        }
        pauses.retain(|pause| !pause.is_zero());
        Stream::new(Source::AtOnce { body: Some(bytes), pauses: pauses.into_iter() }, limits)
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
            Source::AtOnce { body: Some(body), .. } if self.limits.cut.is_none() => Some(body.len() as u64),
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
                None => body.take().map(Made::Bytes),
            },
            Source::Told { protocol, writer, beats, garble } => {
                let beat = beats.next()?;
                let Some(event) = beat.event() else {
                    if let Beat::Pause(time) = beat {
                        return Some(Made::Wait(time));
                    }
                    *garble = true;
                    return Some(Made::Bytes(Vec::new()));
                };
                writer.take(event);
                let mut bytes = writer.drain();
                if *garble && !bytes.is_empty() {
                    *garble = false;
                    let mut both = broken(*protocol, &bytes);
                    both.append(&mut bytes);
                    bytes = both;
                }
                if beat.is_token() {
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
