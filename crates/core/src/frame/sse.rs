//! Server-sent events.
//!
//! An event that lies in one chunk is handed out without a copy. Lines may end
//! in LF, CRLF or CR, in any mixture and over any chunk boundary. An event that
//! the input ends in is handed out too: providers forget the last blank line.

use memchr::memchr2;

use super::{Frame, Framed, Framing, append, cut, release};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Longer than any field name we know, with a byte order mark before it.
const FIELD_ROOM: usize = 12;

/// Event names are short words; a longer one is cut.
const NAME_LIMIT: usize = 256;
const NAME_ROOM: usize = NAME_LIMIT + FIELD_ROOM;

#[derive(Debug)]
pub struct Sse {
    /// The line that the last chunk ended in, while it is not known for data.
    line: Vec<u8>,
    /// Data of the current event that came in earlier chunks.
    data: Vec<u8>,
    stored: Stored,
    /// The last line of `data` goes on in the next chunk. A long one is kept
    /// there from the start, so that it is never in memory twice.
    in_data: bool,
    name: Vec<u8>,
    /// A CR ended the last line; an LF right behind it belongs to it.
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

/// What is kept of the current event from earlier chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Nothing,
    /// At least one data line, perhaps an empty one.
    Data,
    /// The event is over the limit: wait for the next one.
    Skipping,
}

/// The part of the current event that lies in the current chunk.
#[derive(Default)]
struct Here<'a> {
    name: Option<&'a [u8]>,
    data: Option<&'a [u8]>,
}

impl Sse {
    pub fn new(limit: usize) -> Sse {
        Sse {
            line: Vec::new(),
            data: Vec::new(),
            stored: Stored::Nothing,
            in_data: false,
            name: Vec::new(),
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    pub fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        let mut here = Here::default();
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
                self.end_line(head, &mut here, take);
            } else {
                self.extend_line(head, take);
                // It was data if it is known for that only now.
                if !std::mem::take(&mut self.in_data) {
                    self.end_stored_line(&mut here, take);
                }
            }
        }
        self.store(here, take);
        if self.in_data {
            self.extend_data(rest, take);
        } else {
            self.extend_line(rest, take);
        }
    }

    pub fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        let mut here = Here::default();
        let cut = self.in_data || !self.line.is_empty();
        if !self.line.is_empty() {
            self.end_stored_line(&mut here, take);
        }
        if self.stored == Stored::Data {
            take(Framed::Frame(Frame { name: &self.name, data: &self.data, framing: Framing::Sse, cut }));
        }
        self.reset();
    }

    fn end_line<'a>(&mut self, line: &'a [u8], here: &mut Here<'a>, take: &mut dyn FnMut(Framed<'_>)) {
        let line = if std::mem::take(&mut self.at_start) { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        if line.is_empty() {
            self.end_event(here, take);
            return;
        }
        if let Some(value) = field(line, b"data") {
            if self.stored == Stored::Data || here.data.is_some() {
                self.store(std::mem::take(here), take);
                self.add_data(value, take);
            } else {
                here.data = Some(value);
            }
        } else if let Some(value) = field(line, b"event") {
            here.name = Some(value);
        }
        // Comments, `id`, `retry` and unknown fields say nothing to us.
    }

    /// A line that came in pieces does not live as long as the chunk.
    fn end_stored_line(&mut self, here: &mut Here<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        let mut line = std::mem::take(&mut self.line);
        let mut stored = Here { name: here.name.take(), data: here.data.take() };
        self.end_line(&line, &mut stored, take);
        self.store(stored, take);
        line.clear();
        self.line = line;
    }

    fn end_event(&mut self, here: &mut Here<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored != Stored::Skipping {
            let name = here.name.map_or(self.name.as_slice(), |name| name.get(..NAME_LIMIT).unwrap_or(name));
            if let Some(data) = here.data {
                if data.len() > self.limit {
                    self.store(std::mem::take(here), take);
                } else {
                    take(Framed::Frame(Frame { name, data, framing: Framing::Sse, cut: false }));
                }
            } else if self.stored == Stored::Data {
                take(Framed::Frame(Frame { name, data: &self.data, framing: Framing::Sse, cut: false }));
            }
        }
        *here = Here::default();
        if self.stored != Stored::Nothing || !self.name.is_empty() {
            self.reset();
        }
    }

    fn reset(&mut self) {
        release(&mut self.data);
        self.name.clear();
        self.stored = Stored::Nothing;
        self.in_data = false;
    }

    /// Keeps what lies in this chunk for the next one.
    fn store(&mut self, here: Here<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        if let Some(name) = here.name {
            self.name.clear();
            self.name.extend_from_slice(name.get(..name.len().min(NAME_LIMIT)).unwrap_or(name));
        }
        if let Some(data) = here.data {
            self.add_data(data, take);
        }
    }

    fn add_data(&mut self, value: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored == Stored::Data {
            append(&mut self.data, b"\n");
        }
        if self.stored == Stored::Nothing {
            self.stored = Stored::Data;
        }
        self.extend_data(value, take);
    }

    /// More of the line that `data` ends in.
    fn extend_data(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored == Stored::Skipping {
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
        // So much tells what the line is; of data, the rest is never stored here.
        let (head, rest) = bytes.split_at(bytes.len().min(NAME_ROOM));
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
        // Too short to tell, or a name, of which only the beginning counts.
        let is_name = line.starts_with(b"event");
        if line.len() < FIELD_ROOM || (is_name && line.len() < NAME_ROOM) {
            return;
        }
        if is_name {
            self.line.truncate(NAME_ROOM);
        } else {
            // The line goes on; something must show that it is not blank.
            self.at_start = false;
            self.line = b":".to_vec();
        }
    }

    fn skip(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        cut::close(&mut self.data);
        let start = Frame { name: &self.name, data: &self.data, framing: Framing::Sse, cut: true };
        take(Framed::Oversized { limit: self.limit, start });
        self.stored = Stored::Skipping;
        release(&mut self.data);
    }
}

/// The value of a line of this field; one space after the colon is not part of it.
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
    fn an_event_over_the_limit_is_said_and_the_next_one_is_read() {
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
