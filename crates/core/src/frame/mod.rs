//! Bytes into frames: the unit a codec reads.
//!
//! What a body is framed in is told by its first bytes, not by its headers:
//! servers answer a stream request with a JSON error, and a JSON request with
//! a stream. A whole body is a stream of one frame.

mod cut;
pub(crate) mod eventstream;
mod sse;
mod values;

pub use eventstream::EventStream;
pub use sse::Sse;
pub use values::Values;

/// Most bytes one frame may take unless the caller says otherwise.
pub const DEFAULT_FRAME_LIMIT: usize = 128 << 20;

/// Room kept between frames; a larger buffer is given back.
const KEPT_ROOM: usize = 1 << 20;

/// One unit of a body. It borrows from the chunk it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The name the framing gives it, if any (SSE `event:`, AWS `:event-type`).
    pub name: &'a [u8],
    pub data: &'a [u8],
    pub framing: Framing,
    /// The input ended inside this frame.
    pub cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framed<'a> {
    Frame(Frame<'a>),
    /// A frame is over the limit; what follows of it is passed over.
    Oversized {
        limit: usize,
        /// Its beginning, closed so that JSON in it can be read.
        start: Frame<'a>,
    },
    /// Bytes that belong to no frame were passed over.
    Corrupt {
        what: &'static str,
    },
}

/// Which framing a body turned out to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Sse,
    /// JSON values: a whole body, lines, or an array.
    Values,
    EventStream,
}

/// Splits a body of any framing.
#[derive(Debug)]
pub struct Framer {
    state: State,
    limit: usize,
    lines: values::Resync,
}

#[derive(Debug)]
enum State {
    /// Nothing but white space so far, or half a byte order mark.
    Start {
        held: Vec<u8>,
        blank: bool,
    },
    Sse(Sse),
    Values(Values),
    EventStream(EventStream),
}

impl Framer {
    pub fn new(limit: usize) -> Framer {
        Framer { state: State::Start { held: Vec::new(), blank: false }, limit, lines: values::Resync::Never }
    }

    /// For protocols that send one JSON value a line: a broken line does not
    /// take the next one with it.
    pub fn of_lines(limit: usize) -> Framer {
        Framer { lines: values::Resync::AtLineStart, ..Framer::new(limit) }
    }

    /// What the body is framed in, once its first bytes have told.
    pub fn framing(&self) -> Option<Framing> {
        match &self.state {
            State::Start { .. } => None,
            State::Sse(_) => Some(Framing::Sse),
            State::Values(_) => Some(Framing::Values),
            State::EventStream(_) => Some(Framing::EventStream),
        }
    }

    pub fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        match &mut self.state {
            State::Sse(sse) => sse.push(bytes, take),
            State::Values(values) => values.push(bytes, take),
            State::EventStream(stream) => stream.push(bytes, take),
            State::Start { held, .. } => {
                held.extend_from_slice(bytes);
                let Some(next) = self.sniff() else { return };
                let State::Start { held, .. } = std::mem::replace(&mut self.state, next) else { return };
                self.push(&held, take);
            }
        }
    }

    /// The input is over; what stands open is handed out as it is.
    pub fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        match &mut self.state {
            State::Start { .. } => (),
            State::Sse(sse) => sse.finish(take),
            State::Values(values) => values.finish(take),
            State::EventStream(stream) => stream.finish(take),
        }
    }

    fn sniff(&mut self) -> Option<State> {
        let State::Start { held, blank } = &mut self.state else { return None };
        const BOM: &[u8] = b"\xef\xbb\xbf";
        // The first byte of an AWS message is the top of its length; it is never text.
        if !*blank && matches!(held.first(), Some(0 | 1)) {
            return Some(State::EventStream(EventStream::new(self.limit)));
        }
        if held.len() < BOM.len() && BOM.starts_with(held) {
            return None;
        }
        let mark = if held.starts_with(BOM) { BOM.len() } else { 0 };
        let text = held.get(mark..).unwrap_or(&[]);
        let Some(at) = text.iter().position(|byte| !byte.is_ascii_whitespace()) else {
            // A provider may pad with blank lines for minutes; none is needed.
            *blank |= !text.is_empty();
            let lines = text.iter().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
            held.drain(mark..mark + lines);
            return None;
        };
        match text.get(at) {
            Some(b'{' | b'[' | b'"') => Some(State::Values(Values::new(self.limit, self.lines))),
            _ => Some(State::Sse(Sse::new(self.limit))),
        }
    }
}

/// Appends to a buffer whose content may become very large: past a megabyte
/// it grows by an eighth instead of doubling.
fn append(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let needed = buffer.len() + bytes.len();
    if needed > buffer.capacity() && needed > KEPT_ROOM {
        buffer.reserve_exact(bytes.len() + needed / 8);
    }
    buffer.extend_from_slice(bytes);
}

/// Empties a buffer and gives back room that one large frame took.
fn release(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT_ROOM);
}
