//! Server-sent events.
//!
//! An event that lies in one chunk is handed out without a copy. Lines may end
//! in LF, CRLF or CR, in any mixture and over any chunk boundary. An event that
//! the input ends in is handed out too: providers forget the last blank line.

use memchr::memchr2;

use super::{Frame, Framed, Framing, KEPT_ROOM, append, release};

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Longer than any field name we know, with a byte order mark before it.
const FIELD_ROOM: usize = 12;

/// Event names are short words; a longer one is cut.
const NAME_LIMIT: usize = 256;
const NAME_ROOM: usize = NAME_LIMIT + FIELD_ROOM;

#[derive(Debug)]
pub struct Sse {
    /// The line that the last chunk ended in.
    line: Vec<u8>,
    /// Data lines of the current event that came in earlier chunks.
    data: Vec<u8>,
    stored: Stored,
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
            if self.line.is_empty() {
                self.end_line(head, &mut here, take);
            } else {
                self.extend_line(head, take);
                let line = std::mem::take(&mut self.line);
                self.end_stored_line(&line, &mut here, take);
                self.line = line;
                release(&mut self.line);
            }
        }
        self.extend_line(rest, take);
        self.store(here, take);
    }

    pub fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        let mut here = Here::default();
        let cut = !self.line.is_empty();
        if cut {
            let line = std::mem::take(&mut self.line);
            self.end_stored_line(&line, &mut here, take);
            self.line = line;
            release(&mut self.line);
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
    fn end_stored_line(&mut self, line: &[u8], here: &mut Here<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        let mut stored = Here { name: here.name.take(), data: here.data.take() };
        self.end_line(line, &mut stored, take);
        self.store(stored, take);
    }

    fn end_event(&mut self, here: &mut Here<'_>, take: &mut dyn FnMut(Framed<'_>)) {
        if self.stored != Stored::Skipping {
            let name = here.name.map_or(self.name.as_slice(), |name| name.get(..NAME_LIMIT).unwrap_or(name));
            if let Some(data) = here.data {
                if data.len() > self.limit {
                    take(Framed::Oversized { limit: self.limit });
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
        if self.stored == Stored::Skipping {
            return;
        }
        if self.data.len() + value.len() > self.limit {
            self.skip(take);
            return;
        }
        if self.stored == Stored::Data {
            append(&mut self.data, b"\n");
        }
        append(&mut self.data, value);
        self.stored = Stored::Data;
    }

    fn extend_line(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if bytes.is_empty() {
            return;
        }
        append(&mut self.line, bytes);
        let line = if self.at_start { self.line.strip_prefix(BOM).unwrap_or(&self.line) } else { &self.line };
        let is_data = match field(line, b"data") {
            Some(value) if value.len() <= self.limit => true,
            Some(_) => {
                if self.stored != Stored::Skipping {
                    self.skip(take);
                }
                false
            }
            // Too short to tell, or a name, of which only the beginning counts.
            None => line.len() < FIELD_ROOM || (line.starts_with(b"event") && line.len() < NAME_ROOM),
        };
        if !is_data {
            // The line goes on; something must show that it is not blank.
            let kept = if self.line.starts_with(b"event") { NAME_ROOM } else { 1 };
            self.line.truncate(kept);
            self.line.shrink_to(KEPT_ROOM);
            if kept == 1 {
                self.at_start = false;
                self.line.clear();
                self.line.push(b':');
            }
        }
    }

    fn skip(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        self.stored = Stored::Skipping;
        release(&mut self.data);
        take(Framed::Oversized { limit: self.limit });
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
                Framed::Oversized { limit } => format!("!over {limit}"),
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
        let big = "x".repeat(50);
        for input in
            [format!("data: {big}\n\ndata: a\n\n"), format!("data: 123456789\ndata: {big}\ndata: y\n\ndata: a\n\n")]
        {
            for size in [1, 7, 64, 1000] {
                assert_eq!(split_at(input.as_bytes(), size, 20), ["!over 20", "a"], "chunks of {size}");
            }
        }
    }
}
