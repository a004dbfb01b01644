//! Server-sent events.
//!
//! An event within one chunk is passed on without a copy. Lines may end in LF,
//! CRLF or CR, in any mixture and across chunk boundaries. An event at the end
//! of the input is passed on too, because providers forget the last blank line.

use memchr::memchr2;

use super::{Frame, Framed, Framing, append, release};
use crate::json_text::close_truncated;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Longer than any known field name, including a byte order mark.
const FIELD_PREFIX: usize = 12;

/// Event names are short. A longer one is truncated.
const NAME_LIMIT: usize = 256;
const NAME_PREFIX: usize = NAME_LIMIT + FIELD_PREFIX;

/// Splits a stream of server-sent events.
#[derive(Debug)]
pub struct Sse {
    /// The incomplete line at the end of the last chunk, until it turns out to
    /// be data.
    line: Vec<u8>,
    /// Data of the current event from earlier chunks.
    data: Vec<u8>,
    stored: EventBuffer,
    /// The last line of `data` continues in the next chunk. Long data goes
    /// there directly, so that it is never in memory twice.
    in_data: bool,
    name: Vec<u8>,
    /// The last line ended with a CR. An LF directly after it belongs to it.
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

/// What is buffered of the current event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventBuffer {
    Nothing,
    /// At least one data line, possibly empty.
    Data,
    /// The event exceeds the limit and is skipped.
    Skipping,
}

/// The part of the current event that is in the current chunk.
#[derive(Default)]
struct ChunkPart<'a> {
    name: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
}

impl Sse {
    /// A splitter for one stream. `limit` is the most bytes one event may have.
    pub fn new(limit: usize) -> Sse {
        Sse {
            line: Vec::new(),
            data: Vec::new(),
            stored: EventBuffer::Nothing,
            in_data: false,
            name: Vec::new(),
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Splits the next bytes, and passes on each event that is complete.
    pub fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        let mut part = ChunkPart::default();
        while let Some(at) = memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(at);
            rest = match tail {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            if self.in_data {
                self.extend_data(head, take);
                self.in_data = false;
            } else if self.line.is_empty() {
                self.end_line(head, &mut part, take);
            } else {
                self.extend_line(head, take);
                // The line may have turned out to be data only now.
                if !std::mem::take(&mut self.in_data) {
                    self.end_stored_line(&mut part, take);
                }
            }
        }
        self.store(part, take);
        if self.in_data {
            self.extend_data(rest, take);
        } else {
            self.extend_line(rest, take);
        }
    }

    /// Ends the input. An incomplete event is passed on, marked as cut.
    pub fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        let mut part = ChunkPart::default();
        let cut = self.in_data || !self.line.is_empty();
        if !self.line.is_empty() {
            self.end_stored_line(&mut part, take);
        }
        if self.stored == EventBuffer::Data {
            take(Framed::Frame(Frame { name: &self.name, data: &self.data, framing: Framing::Sse, cut }));
        }
        self.reset();
    }

    fn end_line<'a>(&mut self, line: &'a [u8], part: &mut ChunkPart<'a>, take: &mut dyn FnMut(Framed<'_>)) {
        let line = if std::mem::take(&mut self.at_start) { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        if line.is_empty() {
            self.end_event(part, take);
            return;
        }
        if let Some(value) = field(line, b"data") {
            if self.stored == EventBuffer::Data || part.data.is_some() {
                self.store(std::mem::take(part), take);
                self.add_data(value, take);
            } else {
                part.data = Some(value);
            }
        } else if let Some(value) = field(line, b"event") {
            part.name = Some(value);
        }
        // Comments, `id`, `retry` and unknown fields are ignored.
    }

    /// Handles a line that arrived in several chunks and so cannot be borrowed.
    fn end_stored_line(&mut self, part: &mut ChunkPart<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        let mut line = std::mem::take(&mut self.line);
        let mut stored = ChunkPart { name: part.name.take(), data: part.data.take() };
        self.end_line(&line, &mut stored, take);
        self.store(stored, take);
        line.clear();
        self.line = line;
    }

    fn end_event(&mut self, part: &mut ChunkPart<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored != EventBuffer::Skipping {
            let name = part.name.map_or(self.name.as_slice(), |name| name.get(..NAME_LIMIT).unwrap_or(name));
            if let Some(data) = part.data {
                if data.len() > self.limit {
                    self.store(std::mem::take(part), take);
                } else {
                    take(Framed::Frame(Frame { name, data, framing: Framing::Sse, cut: false }));
                }
            } else if self.stored == EventBuffer::Data {
                take(Framed::Frame(Frame { name, data: &self.data, framing: Framing::Sse, cut: false }));
            }
        }
        *part = ChunkPart::default();
        if self.stored != EventBuffer::Nothing || !self.name.is_empty() {
            self.reset();
        }
    }

    fn reset(&mut self) {
        release(&mut self.data);
        self.name.clear();
        self.stored = EventBuffer::Nothing;
        self.in_data = false;
    }

    /// Buffers the part of the event in this chunk for the next one.
    fn store(&mut self, part: ChunkPart<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        if let Some(name) = part.name {
            self.name.clear();
            self.name.extend_from_slice(name.get(..name.len().min(NAME_LIMIT)).unwrap_or(name));
        }
        if let Some(data) = part.data {
            self.add_data(data, take);
        }
    }

    fn add_data(&mut self, value: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored == EventBuffer::Data {
            append(&mut self.data, b"\n");
        }
        if self.stored == EventBuffer::Nothing {
            self.stored = EventBuffer::Data;
        }
        self.extend_data(value, take);
    }

    /// Extends the last line of `data`.
    fn extend_data(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored == EventBuffer::Skipping {
            return;
        }
        let room = self.limit.saturating_sub(self.data.len());
        append(&mut self.data, bytes.get(..room).unwrap_or(bytes));
        if bytes.len() > room {
            self.skip(take);
        }
    }

    fn extend_line(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if bytes.is_empty() {
            return;
        }
        // This much identifies the line. The rest of a data line is never
        // stored here.
        let (head, rest) = bytes.split_at(bytes.len().min(NAME_PREFIX));
        self.line.extend_from_slice(head);
        let line = if self.at_start { self.line.strip_prefix(BOM).unwrap_or(&self.line) } else { &self.line };
        // Whether a space follows the colon decides where the value begins.
        if let Some(value) = field(line, b"data").filter(|value| !value.is_empty()) {
            let value_at = self.line.len() - value.len();
            let mut line = std::mem::take(&mut self.line);
            self.at_start = false;
            self.in_data = true;
            self.add_data(line.get(value_at..).unwrap_or(&[]), take);
            self.extend_data(rest, take);
            line.clear();
            self.line = line;
            return;
        }
        // Too short to identify, or a name, whose beginning is enough.
        let is_name = line.starts_with(b"event");
        if line.len() < FIELD_PREFIX || (is_name && line.len() < NAME_PREFIX) {
            return;
        }
        if is_name {
            self.line.truncate(NAME_PREFIX);
        } else {
            // The line continues. A colon marks it as not blank.
            self.at_start = false;
            self.line = b":".to_vec();
        }
    }

    fn skip(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        close_truncated(&mut self.data);
        let start = Frame { name: &self.name, data: &self.data, framing: Framing::Sse, cut: true };
        take(Framed::Oversized { limit: self.limit, start });
        self.stored = EventBuffer::Skipping;
        release(&mut self.data);
    }
}

/// The value of a line with this field name. One space after the colon is not
/// part of it.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(name)?;
    match rest {
        [] => Some(rest),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_at(input: &[u8], size: usize, limit: usize) -> Vec<String> {
        let mut sse = Sse::new(limit);
        let mut got = Vec::new();
        let mut take = |framed: Framed<'_>| {
            got.push(match framed {
                Framed::Frame(frame) => format!(
                    "{}{}{}",
                    String::from_utf8_lossy(frame.name),
                    if frame.name.is_empty() { "" } else { "=" },
                    String::from_utf8_lossy(frame.data)
                ),
                Framed::Oversized { limit, start } => format!("!over {limit}: {}", String::from_utf8_lossy(start.data)),
                Framed::Corrupt { what } => format!("!{what}"),
            });
        };
        for chunk in input.chunks(size) {
            sse.push(chunk, &mut take);
        }
        sse.finish(&mut take);
        got
    }

    #[test]
    fn d16_every_shape_of_an_event_in_any_chunking() {
        #[rustfmt::skip]
        let cases: &[(&str, &str, &[&str])] = &[
            ("two events",         "data: a\n\ndata: b\n\n",            &["a", "b"]),
            ("no space",           "data:a\n\n",                        &["a"]),
            ("second space stays", "data:  a\n\n",                      &[" a"]),
            ("crlf",               "data: a\r\n\r\ndata: b\r\n\r\n",    &["a", "b"]),
            ("cr",                 "data: a\r\rdata: b\r\r",            &["a", "b"]),
            ("mixed",              "data: a\r\n\ndata: b\n\r\n",        &["a", "b"]),
            ("byte order mark",    "\u{feff}data: a\n\n",               &["a"]),
            ("comments",           ": ping\n\n:\n\ndata: a\n: x\n\n",   &["a"]),
            ("multi-line data",    "data: a\ndata: b\n\n",              &["a\nb"]),
            ("three lines",        "data: a\ndata\ndata: b\n\n",        &["a\n\nb"]),
            ("event name",         "event: e\ndata: a\n\ndata: b\n\n",  &["e=a", "b"]),
            ("name without data",  "event: e\n\ndata: b\n\n",           &["b"]),
            ("name after data",    "data: a\nevent: e\n\n",             &["e=a"]),
            ("other fields",       "id: 7\nretry: 1\ndata: a\nx: y\n\n", &["a"]),
            ("empty data",         "data:\n\n",                         &[""]),
            ("no last blank line", "data: a\n\ndata: b\n",              &["a", "b"]),
            ("no last newline",    "data: a\n\ndata: b",                &["a", "b"]),
            ("leading blank lines", "\n\n\ndata: a\n\n",                &["a"]),
            ("nothing",            "",                                  &[]),
        ];
        for (name, input, expected) in cases {
            for size in [1, 2, 3, 5, 7, 64] {
                assert_eq!(&split_at(input.as_bytes(), size, 1000), expected, "{name}, chunks of {size}");
            }
        }
    }

    #[test]
    fn an_oversized_event_is_reported_and_the_next_one_is_read() {
        let big = format!("[\"{}", "x".repeat(50));
        let cases = [
            (format!("data: {big}\n\ndata: a\n\n"), "[\"xxxxxxxxxxxxxxxxxx\"]"),
            (format!("data: [12345,\ndata: {big}\ndata: y\n\ndata: a\n\n"), "[12345,\n[\"xxxxxxxxxx\"]]"),
        ];
        for (input, start) in cases {
            for size in [1, 7, 64, 1000] {
                let expected = [format!("!over 20: {start}"), "a".to_owned()];
                assert_eq!(split_at(input.as_bytes(), size, 20), expected, "chunks of {size}");
            }
        }
    }
}
