//! Splits bytes into frames, the unit that codecs read.
//!
//! The framing is detected from the first bytes, not from the headers: servers
//! answer a streaming request with a JSON error, or a JSON request with a
//! stream. A whole body is a stream of one frame.

pub(crate) mod eventstream;
mod json_values;
mod sse;

pub(crate) use eventstream::EventStream;
pub(crate) use json_values::JsonValues;
pub use sse::Sse;

/// The default limit for the size of one frame, in bytes.
pub const DEFAULT_FRAME_LIMIT: usize = 128 << 20;

/// Buffer capacity that is kept between frames. A larger buffer is shrunk.
const KEPT_CAPACITY: usize = 1 << 20;

/// One unit of a body. It borrows from the chunk that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// The name the framing gives it, if any (SSE `event:`, AWS `:event-type`).
    pub name: &'a [u8],
    /// The content without the framing.
    pub data: &'a [u8],
    /// How the body is framed.
    pub framing: Framing,
    /// The input ended inside this frame.
    pub cut: bool,
}

/// What a [`Framer`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A frame, complete unless it is marked as cut.
    Frame(Frame<'a>),
    /// A frame exceeds the limit. The rest of it is skipped.
    Oversized {
        /// The limit in bytes.
        limit: usize,
        /// Its beginning, closed so that its JSON can be parsed.
        start: Frame<'a>,
    },
    /// Bytes that belong to no frame were skipped.
    Corrupt {
        /// The kind of damage, in words.
        what: &'static str,
    },
}

/// The detected framing of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Server-sent events.
    Sse,
    /// JSON values: a whole body, lines, or an array.
    Values,
    /// Binary messages of AWS (`application/vnd.amazon.eventstream`).
    EventStream,
}

/// Splits a body with any framing.
#[derive(Debug)]
pub struct Framer {
    state: FramerState,
    limit: usize,
    lines: json_values::Resync,
}

#[derive(Debug)]
enum FramerState {
    /// Only white space so far, or part of a byte order mark.
    Start {
        held: Vec<u8>,
        blank: bool,
    },
    Sse(Sse),
    Values(JsonValues),
    EventStream(EventStream),
}

impl Framer {
    /// A framer for any framing. `limit` is the most bytes one frame may have.
    pub fn new(limit: usize) -> Framer {
        Framer {
            state: FramerState::Start { held: Vec::new(), blank: false },
            limit,
            lines: json_values::Resync::Never,
        }
    }

    /// For protocols that send one JSON value per line. A broken line does not
    /// affect the next one.
    pub fn of_lines(limit: usize) -> Framer {
        Framer { lines: json_values::Resync::AtLineStart, ..Framer::new(limit) }
    }

    /// The framing, once the first bytes are known.
    pub fn framing(&self) -> Option<Framing> {
        match &self.state {
            FramerState::Start { .. } => None,
            FramerState::Sse(_) => Some(Framing::Sse),
            FramerState::Values(_) => Some(Framing::Values),
            FramerState::EventStream(_) => Some(Framing::EventStream),
        }
    }

    /// Splits the next bytes, and passes on each frame that is complete.
    pub fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        match &mut self.state {
            FramerState::Sse(sse) => sse.push(bytes, take),
            FramerState::Values(values) => values.push(bytes, take),
            FramerState::EventStream(stream) => stream.push(bytes, take),
            FramerState::Start { held, .. } => {
                held.extend_from_slice(bytes);
                let Some(next) = self.sniff() else { return };
                let FramerState::Start { held, .. } = std::mem::replace(&mut self.state, next) else { return };
                self.push(&held, take);
            }
        }
    }

    /// Ends the input. An incomplete frame is passed on as it is.
    pub fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        match &mut self.state {
            FramerState::Start { .. } => (),
            FramerState::Sse(sse) => sse.finish(take),
            FramerState::Values(values) => values.finish(take),
            FramerState::EventStream(stream) => stream.finish(take),
        }
    }

    fn sniff(&mut self) -> Option<FramerState> {
        let FramerState::Start { held, blank } = &mut self.state else { return None };
        const BOM: &[u8] = b"\xef\xbb\xbf";
        // An AWS message starts with the high byte of its length, which is
        // never text.
        if !*blank && matches!(held.first(), Some(0 | 1)) {
            return Some(FramerState::EventStream(EventStream::new(self.limit)));
        }
        if held.len() < BOM.len() && BOM.starts_with(held) {
            return None;
        }
        let mark = if held.starts_with(BOM) { BOM.len() } else { 0 };
        let text = held.get(mark..).unwrap_or(&[]);
        let Some(at) = text.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            // A provider may send blank lines as keep-alive for minutes. They
            // are not needed.
            *blank |= !text.is_empty();
            let lines = text.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
            held.drain(mark..mark + lines);
            return None;
        };
        match text.get(at) {
            Some(b'{' | b'[' | b'"') => Some(FramerState::Values(JsonValues::new(self.limit, self.lines))),
            _ => Some(FramerState::Sse(Sse::new(self.limit))),
        }
    }
}

/// Appends to a buffer that may become very large. Beyond a megabyte it grows
/// by an eighth instead of doubling.
fn append(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let needed = buffer.len() + bytes.len();
    if needed > buffer.capacity() && needed > KEPT_CAPACITY {
        buffer.reserve_exact(bytes.len() + needed / 8);
    }
    buffer.extend_from_slice(bytes);
}

/// Clears a buffer and frees the capacity that one large frame took.
fn release(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT_CAPACITY);
}
