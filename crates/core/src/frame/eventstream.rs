//! AWS's binary event stream: length-prefixed messages with typed headers and
//! two checksums.
//!
//! ```text
//! total length u32 | headers length u32 | CRC of these 8 bytes u32 | headers | payload | CRC of all before u32
//! ```

use super::{Frame, Framed, Framing, append, release};

const PRELUDE: usize = 12;
const TRAILER: usize = 4;
const STRING: u8 = 7;

/// The maximum length of a written name, in bytes.
const MAX_NAME: usize = 256;

#[derive(Debug)]
pub(crate) struct EventStream {
    held: Vec<u8>,
    /// Bytes of an oversized message that are still to be skipped.
    skip: usize,
    /// The prelude was corrupt, so the next message cannot be located.
    lost: bool,
    limit: usize,
}

/// The result of parsing the first bytes of a message.
enum PreludeState {
    Incomplete,
    Message { total: usize, headers: usize },
    Broken,
}

impl EventStream {
    pub(crate) fn new(limit: usize) -> EventStream {
        EventStream { held: Vec::new(), skip: 0, lost: false, limit }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let mut rest = bytes.get(skipped..).unwrap_or(&[]);
        while !rest.is_empty() && !self.lost {
            if self.held.is_empty() {
                rest = self.read_next(rest, take);
                continue;
            }
            // Complete the prelude first, then exactly the message.
            let wanted = match prelude(&self.held) {
                PreludeState::Incomplete => PRELUDE - self.held.len(),
                PreludeState::Message { total, .. } => total - self.held.len(),
                PreludeState::Broken => 0,
            };
            let (part, after) = rest.split_at(wanted.min(rest.len()));
            append(&mut self.held, part);
            rest = after;
            if part.len() < wanted {
                return;
            }
            match prelude(&self.held) {
                PreludeState::Incomplete => (),
                PreludeState::Broken => self.mark_lost(take),
                PreludeState::Message { total, .. } if total > self.limit => {
                    take(oversized(self.limit));
                    let skipped = (total - self.held.len()).min(rest.len());
                    self.skip = total - self.held.len() - skipped;
                    rest = rest.get(skipped..).unwrap_or(&[]);
                    release(&mut self.held);
                }
                PreludeState::Message { total, headers } => {
                    if self.held.len() == total {
                        read_message(&self.held, headers, take);
                        release(&mut self.held);
                    }
                }
            }
        }
    }

    fn mark_lost(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        self.lost = true;
        release(&mut self.held);
        take(Framed::Corrupt { what: "the length of an AWS event stream message fails its checksum" });
    }

    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        if !self.held.is_empty() || self.skip > 0 {
            take(Framed::Frame(Frame { name: b"", data: &[], framing: Framing::EventStream, cut: true }));
        }
        release(&mut self.held);
        self.skip = 0;
    }

    /// Reads one message, or buffers an incomplete one, and returns the rest.
    fn read_next<'a>(&mut self, bytes: &'a [u8], take: &mut dyn FnMut(Framed<'_>)) -> &'a [u8] {
        match prelude(bytes) {
            PreludeState::Broken => {
                self.mark_lost(take);
                &[]
            }
            PreludeState::Message { total, .. } if total > self.limit => {
                take(oversized(self.limit));
                let here = total.min(bytes.len());
                self.skip = total - here;
                bytes.get(here..).unwrap_or(&[])
            }
            PreludeState::Message { total, headers } if bytes.len() >= total => {
                let (message, rest) = bytes.split_at(total);
                read_message(message, headers, take);
                rest
            }
            PreludeState::Message { .. } | PreludeState::Incomplete => {
                append(&mut self.held, bytes);
                &[]
            }
        }
    }
}

/// A message is readable only as a whole, so none of it is passed on.
fn oversized(limit: usize) -> Framed<'static> {
    Framed::Oversized { limit, start: Frame { name: b"", data: &[], framing: Framing::EventStream, cut: true } }
}

fn prelude(bytes: &[u8]) -> PreludeState {
    let (Some(total), Some(headers), Some(crc)) = (number(bytes, 0), number(bytes, 4), number(bytes, 8)) else {
        return PreludeState::Incomplete;
    };
    let checked = bytes.get(..8).map(crc32fast::hash);
    let (total, headers) = (total as usize, headers as usize);
    if checked != Some(crc) || total < PRELUDE + TRAILER || headers > total - PRELUDE - TRAILER {
        return PreludeState::Broken;
    }
    PreludeState::Message { total, headers }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn read_message(message: &[u8], headers: usize, take: &mut dyn FnMut(Framed<'_>)) {
    let body_end = message.len() - TRAILER;
    let intact = message.get(..body_end).map(crc32fast::hash) == number(message, body_end);
    let (Some(headers_at), Some(payload)) =
        (message.get(PRELUDE..PRELUDE + headers), message.get(PRELUDE + headers..body_end))
    else {
        return;
    };
    if !intact {
        take(Framed::Corrupt { what: "an AWS event stream message fails its checksum" });
        return;
    }
    take(Framed::Frame(Frame { name: name_of(headers_at), data: payload, framing: Framing::EventStream, cut: false }));
}

/// The type of the event or of the exception.
fn name_of(mut headers: &[u8]) -> &[u8] {
    let mut name: &[u8] = b"";
    while let Some((key, kind, value, rest)) = header(headers) {
        let names = matches!(key, b":event-type" | b":exception-type" | b":error-code");
        if names && kind == STRING {
            name = value;
        }
        headers = rest;
    }
    name
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Event,
    Exception,
}

/// Writes one message with a JSON payload.
pub(crate) fn write_message(kind: MessageKind, name: &str, payload: &[u8], out: &mut Vec<u8>) {
    let (name_key, word) = match kind {
        MessageKind::Event => (":event-type", "event"),
        MessageKind::Exception => (":exception-type", "exception"),
    };
    let mut headers = Vec::new();
    for (key, value) in [(name_key, name), (":content-type", "application/json"), (":message-type", word)] {
        write_header(key, value, &mut headers);
    }
    let start = out.len();
    let total = PRELUDE + headers.len() + payload.len() + TRAILER;
    for length in [total, headers.len()] {
        // Every reader would refuse a message that long.
        out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    }
    write_checksum(start, out);
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload);
    write_checksum(start, out);
}

fn write_header(key: &str, value: &str, headers: &mut Vec<u8>) {
    headers.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
    headers.extend_from_slice(key.as_bytes());
    headers.push(STRING);
    // Names are short. A longer one is truncated so that the frame stays valid.
    let value = value.as_bytes().get(..MAX_NAME).unwrap_or(value.as_bytes());
    headers.extend_from_slice(&u16::try_from(value.len()).unwrap_or(0).to_be_bytes());
    headers.extend_from_slice(value);
}

fn write_checksum(start: usize, out: &mut Vec<u8>) {
    let crc = out.get(start..).map_or(0, crc32fast::hash);
    out.extend_from_slice(&crc.to_be_bytes());
}

type HeaderFields<'a> = (&'a [u8], u8, &'a [u8], &'a [u8]);

fn header(bytes: &[u8]) -> Option<HeaderFields<'_>> {
    let (&key_length, rest) = bytes.split_first()?;
    let (key, rest) = rest.split_at_checked(usize::from(key_length))?;
    let (&kind, rest) = rest.split_first()?;
    let (length, rest) = match kind {
        0 | 1 => (0, rest),
        2 => (1, rest),
        3 => (2, rest),
        4 => (4, rest),
        5 | 8 => (8, rest),
        6 | STRING => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        9 => (16, rest),
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((key, kind, value, rest))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One message with a single string header.
    pub(crate) fn message(key: &str, value: &str, payload: &[u8]) -> Vec<u8> {
        let mut headers = vec![key.len() as u8];
        headers.extend_from_slice(key.as_bytes());
        headers.push(STRING);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
        let total = PRELUDE + headers.len() + payload.len() + TRAILER;
        let mut out = (total as u32).to_be_bytes().to_vec();
        out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out.extend_from_slice(&headers);
        out.extend_from_slice(payload);
        out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
        out
    }

    fn split_at(input: &[u8], size: usize, limit: usize) -> Vec<String> {
        let mut stream = EventStream::new(limit);
        let mut got = Vec::new();
        let mut take = |framed: Framed<'_>| {
            got.push(match framed {
                Framed::Frame(Frame { cut: true, .. }) => "!cut".to_owned(),
                Framed::Frame(frame) => {
                    format!("{}={}", String::from_utf8_lossy(frame.name), String::from_utf8_lossy(frame.data))
                }
                Framed::Oversized { .. } => "!over".to_owned(),
                Framed::Corrupt { what } => format!("!{what}"),
            });
        };
        for chunk in input.chunks(size) {
            stream.push(chunk, &mut take);
        }
        stream.finish(&mut take);
        got
    }

    #[test]
    fn written_messages_can_be_read_back() {
        let mut written = Vec::new();
        write_message(MessageKind::Event, "contentBlockDelta", b"{\"x\":1}", &mut written);
        write_message(MessageKind::Exception, "throttlingException", b"{}", &mut written);
        write_message(MessageKind::Event, &"n".repeat(300), b"", &mut written);
        for size in [1, 5, 64, 4000] {
            let name = "n".repeat(MAX_NAME);
            let expected =
                ["contentBlockDelta={\"x\":1}".to_owned(), "throttlingException={}".to_owned(), format!("{name}=")];
            assert_eq!(split_at(&written, size, 4000), expected, "chunks of {size}");
        }
    }

    #[test]
    fn any_chunking_gives_the_same_messages() {
        let mut input = message(":event-type", "a", b"{\"x\":1}");
        input.extend(message(":exception-type", "throttlingException", b"{}"));
        input.extend(message(":event-type", "b", b""));
        for size in 1..=input.len() {
            assert_eq!(
                split_at(&input, size, 1000),
                ["a={\"x\":1}", "throttlingException={}", "b="],
                "chunks of {size}"
            );
        }
    }

    #[test]
    fn corrupt_truncated_and_oversized_messages_are_reported() {
        let good = message(":event-type", "a", b"payload");
        let mut changed = good.clone();
        let last = changed.len() - 6;
        changed[last] ^= 1;
        changed.extend(&good);
        let mut broken = good.clone();
        broken[2] ^= 1;
        let mut giant = message(":event-type", "g", &[b'x'; 500]);
        giant.extend(&good);
        for size in [1, 3, 16, 2000] {
            assert_eq!(
                split_at(&changed, size, 1000),
                ["!an AWS event stream message fails its checksum", "a=payload"]
            );
            assert_eq!(split_at(&good[..good.len() - 1], size, 1000), ["!cut"]);
            assert_eq!(
                split_at(&broken, size, 1000),
                ["!the length of an AWS event stream message fails its checksum"]
            );
            assert_eq!(split_at(&giant, size, 100), ["!over", "a=payload"]);
        }
    }
}
