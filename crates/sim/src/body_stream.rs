//! The bytes of a response body with the pauses between them. The sender does the
//! waiting.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use std::vec::IntoIter;

use aside_core::dialect::Rules;
use aside_core::event::{BlockId, Event, Sink};
use aside_core::protocol::Protocol;
use aside_core::wire::{ReplyHead, StreamWriter, whole_reply};

use crate::generated_text::TokenStream;
use crate::timeline::{TimelineStep, fold_timeline};

/// Shorter waits are accumulated, because timers are not that precise.
const MIN_WAIT: Duration = Duration::from_millis(2);

/// The next step in sending a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyStep {
    Bytes(Vec<u8>),
    Wait(Duration),
    /// Break the connection.
    Abort,
    End,
}

/// How to send the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SendOptions {
    /// The delay before each token.
    pub(crate) token_delay: Duration,
    /// Bytes per chunk.
    pub(crate) chunk: Option<usize>,
    /// Bytes until the connection breaks.
    pub(crate) cut: Option<u64>,
}

/// The body of an answer.
#[derive(Debug)]
pub struct BodyStream {
    source: BodySource,
    options: SendOptions,
    queued: VecDeque<Vec<u8>>,
    pending_wait: Duration,
    sent: u64,
}

#[derive(Debug)]
enum BodySource {
    Streamed {
        protocol: Protocol,
        writer: Box<StreamWriter>,
        timeline: IntoIter<TimelineStep>,
        in_progress: Option<TextInProgress>,
        break_next_frame: bool,
    },
    /// The whole body comes after the pauses and is built then.
    Whole { body: Option<WholeBody>, pauses: IntoIter<Duration> },
}

/// A text whose tokens are being sent.
struct TextInProgress {
    block: BlockId,
    tokens: TokenStream,
}

impl fmt::Debug for TextInProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextInProgress").field("block", &self.block).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum WholeBody {
    Ready(Vec<u8>),
    Deferred(Box<WholeReply>),
}

/// A reply to send as one body.
#[derive(Debug)]
pub(crate) struct WholeReply {
    pub(crate) protocol: Protocol,
    pub(crate) rules: Rules,
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) created: u64,
    /// Wrap it as the only element of a list.
    pub(crate) in_list: bool,
    pub(crate) timeline: Vec<TimelineStep>,
}

impl WholeReply {
    fn write(&self) -> Vec<u8> {
        let head = ReplyHead::new(&self.id, &self.model, self.created);
        let mut body = whole_reply(self.protocol, &self.rules, &head, &fold_timeline(&self.timeline));
        if self.in_list {
            body = format!("[{body}]");
        }
        let mut bytes = body.into_bytes();
        // A malformed frame truncates the whole body.
        if self.timeline.contains(&TimelineStep::Malformed) {
            bytes.truncate(bytes.len() * 2 / 3);
        }
        bytes
    }
}

impl WholeBody {
    fn bytes(self) -> Vec<u8> {
        match self {
            WholeBody::Ready(bytes) => bytes,
            WholeBody::Deferred(whole) => whole.write(),
        }
    }
}

impl BodyStream {
    /// A fixed body.
    pub(crate) fn from_text(body: String) -> BodyStream {
        let body = Some(WholeBody::Ready(body.into_bytes()));
        BodyStream::new(BodySource::Whole { body, pauses: Vec::new().into_iter() }, SendOptions::default())
    }

    pub(crate) fn streamed(
        protocol: Protocol,
        writer: StreamWriter,
        timeline: Vec<TimelineStep>,
        options: SendOptions,
    ) -> BodyStream {
        let source = BodySource::Streamed {
            protocol,
            writer: Box::new(writer),
            timeline: timeline.into_iter(),
            in_progress: None,
            break_next_frame: false,
        };
        BodyStream::new(source, options)
    }

    /// A whole body takes as long as streaming its tokens would.
    pub(crate) fn whole(whole: WholeReply, options: SendOptions) -> BodyStream {
        let n_tokens: usize = whole.timeline.iter().map(TimelineStep::n_tokens).sum();
        let mut pauses = vec![options.token_delay.saturating_mul(u32::try_from(n_tokens).unwrap_or(u32::MAX))];
        pauses.extend(whole.timeline.iter().filter_map(|step| match step {
            TimelineStep::Pause(time) => Some(*time),
            TimelineStep::Opened { .. }
            | TimelineStep::Item { .. }
            | TimelineStep::Text { .. }
            | TimelineStep::Sealed { .. }
            | TimelineStep::Kept { .. }
            | TimelineStep::Closed { .. }
            | TimelineStep::Usage(_)
            | TimelineStep::Ended(_)
            | TimelineStep::Malformed => None,
        }));
        pauses.retain(|pause| !pause.is_zero());
        // Without pauses, build it now so that its length is known.
        let body =
            if pauses.is_empty() { WholeBody::Ready(whole.write()) } else { WholeBody::Deferred(Box::new(whole)) };
        BodyStream::new(BodySource::Whole { body: Some(body), pauses: pauses.into_iter() }, options)
    }

    fn new(source: BodySource, options: SendOptions) -> BodyStream {
        BodyStream { source, options, queued: VecDeque::new(), pending_wait: Duration::ZERO, sent: 0 }
    }

    /// Whether chunks should arrive separately.
    pub fn is_fragmented(&self) -> bool {
        self.options.chunk.is_some()
    }

    /// The length of the body, if it is known in advance.
    pub fn length(&self) -> Option<u64> {
        match &self.source {
            BodySource::Whole { body: Some(WholeBody::Ready(body)), .. } if self.options.cut.is_none() => {
                Some(body.len() as u64)
            }
            BodySource::Whole { .. } | BodySource::Streamed { .. } => None,
        }
    }

    pub fn step(&mut self) -> BodyStep {
        loop {
            if self.options.cut.is_some_and(|cut| self.sent >= cut) {
                return BodyStep::Abort;
            }
            if let Some(piece) = self.queued.pop_front() {
                return BodyStep::Bytes(self.take_until_cut(piece));
            }
            match self.produce() {
                Some(Produced::Bytes(bytes)) => self.fragment(bytes),
                Some(Produced::Wait(time)) => return BodyStep::Wait(time),
                None if self.pending_wait >= MIN_WAIT => return BodyStep::Wait(std::mem::take(&mut self.pending_wait)),
                None => return BodyStep::End,
            }
        }
    }

    /// Truncates the chunk where the connection should break.
    fn take_until_cut(&mut self, mut piece: Vec<u8>) -> Vec<u8> {
        if let Some(cut) = self.options.cut {
            let left = usize::try_from(cut - self.sent).unwrap_or(usize::MAX);
            piece.truncate(left);
        }
        self.sent += piece.len() as u64;
        piece
    }

    fn fragment(&mut self, bytes: Vec<u8>) {
        match self.options.chunk {
            Some(size) => self.queued.extend(bytes.chunks(size).map(<[u8]>::to_vec)),
            None if bytes.is_empty() => (),
            None => self.queued.push_back(bytes),
        }
    }

    fn produce(&mut self) -> Option<Produced> {
        match &mut self.source {
            BodySource::Whole { body, pauses } => match pauses.next() {
                Some(pause) => Some(Produced::Wait(pause)),
                None => body.take().map(|body| Produced::Bytes(body.bytes())),
            },
            BodySource::Streamed { protocol, writer, timeline, in_progress, break_next_frame } => {
                let token = in_progress.as_mut().and_then(|text| Some((text.block, text.tokens.next()?)));
                let is_token = token.is_some();
                if let Some((block, text)) = token {
                    writer.take(Event::Grew { block, text: &text });
                } else {
                    let step = timeline.next()?;
                    *in_progress = None;
                    match (&step, step.event()) {
                        (_, Some(event)) => writer.take(event),
                        (TimelineStep::Pause(time), None) => return Some(Produced::Wait(*time)),
                        (TimelineStep::Text { block, .. }, None) => {
                            *in_progress = Some(TextInProgress { block: *block, tokens: step.tokens() });
                            return Some(Produced::Bytes(Vec::new()));
                        }
                        (_, None) => {
                            *break_next_frame = true;
                            return Some(Produced::Bytes(Vec::new()));
                        }
                    }
                }
                let mut bytes = writer.drain();
                if *break_next_frame && !bytes.is_empty() {
                    *break_next_frame = false;
                    let mut both = broken_frame(*protocol, &bytes);
                    both.append(&mut bytes);
                    bytes = both;
                }
                if is_token {
                    self.pending_wait = self.pending_wait.saturating_add(self.options.token_delay);
                }
                if self.pending_wait >= MIN_WAIT {
                    self.fragment(bytes);
                    return Some(Produced::Wait(std::mem::take(&mut self.pending_wait)));
                }
                Some(Produced::Bytes(bytes))
            }
        }
    }
}

enum Produced {
    Bytes(Vec<u8>),
    Wait(Duration),
}

/// A malformed copy of this frame.
fn broken_frame(protocol: Protocol, frame: &[u8]) -> Vec<u8> {
    match protocol {
        // The last bytes are a checksum of everything before them.
        Protocol::Bedrock => {
            let mut frame = frame.to_vec();
            if let Some(last) = frame.last_mut() {
                *last ^= 0xff;
            }
            frame
        }
        Protocol::Ollama => [truncated(frame), b"\n"].concat(),
        Protocol::OpenaiChat
        | Protocol::OpenaiResponses
        | Protocol::Anthropic
        | Protocol::Gemini
        | Protocol::Cohere => [truncated(frame), b"\n\n"].concat(),
    }
}

/// Most of a frame, without its end.
fn truncated(frame: &[u8]) -> &[u8] {
    let frame = frame.trim_ascii_end();
    frame.get(..frame.len() * 3 / 4).unwrap_or_default()
}
