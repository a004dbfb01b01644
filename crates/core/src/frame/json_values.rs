//! A sequence of JSON values: a whole body, one value per line, or the elements
//! of one long array. Only the brackets separate them.

use memchr::{memchr2, memchr3};

use super::{Frame, Framed, Framing, append, release};
use crate::json_text::close_truncated;

/// How to recover from a value that never ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resync {
    Never,
    /// A line that starts with `{` starts a new value. The one before was
    /// broken.
    AtLineStart,
}

#[derive(Debug)]
pub(crate) struct JsonValues {
    /// The incomplete value at the end of the last chunk.
    held: Vec<u8>,
    scan: ScanState,
    resync: Resync,
    layout: Layout,
    skipping: bool,
    limit: usize,
}

/// How the values are arranged, which the first byte tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Unknown,
    /// One value, or one per line. A value must be alone in its line.
    Lines,
    /// The elements of an array. Each counts as soon as its brackets close,
    /// because what follows comes only with the next one.
    Array,
}

/// The position of the scanner within a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    Between,
    /// Inside brackets, outside strings.
    Open {
        depth: usize,
        line_start: bool,
    },
    InString {
        depth: usize,
    },
    AfterBackslash {
        depth: usize,
    },
    /// A bare word or number at top level.
    Bare,
    /// A complete value whose line continues.
    Complete,
    /// More than white space follows a value in its line. Together they are not
    /// JSON.
    Garbage {
        line_start: bool,
    },
}

impl JsonValues {
    pub(crate) fn new(limit: usize, resync: Resync) -> JsonValues {
        JsonValues {
            held: Vec::new(),
            scan: ScanState::Between,
            resync,
            layout: Layout::Unknown,
            skipping: false,
            limit,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        let mut rest = bytes;
        loop {
            if self.scan == ScanState::Between {
                rest = self.skip_separators(rest);
                self.scan = match (rest.first(), self.layout) {
                    (None, _) => return,
                    (Some(b'{'), _) | (Some(b'"'), Layout::Lines) => ScanState::Open { depth: 0, line_start: false },
                    _ => ScanState::Bare,
                };
            }
            match self.value_end(rest) {
                Some(at) => {
                    let (value, after) = rest.split_at(at);
                    self.emit(value, take);
                    rest = after;
                }
                None => {
                    self.hold(rest, take);
                    return;
                }
            }
        }
    }

    /// What remains after white space, and after the brackets and commas of an
    /// array.
    fn skip_separators<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0xef | 0xbb | 0xbf);
        let skip = |bytes: &'b [u8], is_skipped: &dyn Fn(&u8) -> bool| {
            let at = bytes.iter().position(|byte| !is_skipped(byte)).unwrap_or(bytes.len());
            bytes.get(at..).unwrap_or(&[])
        };
        let rest = skip(bytes, &is_space);
        if self.layout == Layout::Unknown {
            self.layout = match rest.first() {
                None => Layout::Unknown,
                Some(b'[') => Layout::Array,
                Some(_) => Layout::Lines,
            };
        }
        match self.layout {
            Layout::Unknown | Layout::Lines => rest,
            Layout::Array => skip(rest, &|byte| is_space(byte) || matches!(byte, b'[' | b']' | b',')),
        }
    }

    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(Framed<'_>)) {
        if !self.held.is_empty() && !self.skipping {
            let cut = match self.scan {
                ScanState::Open { .. } | ScanState::InString { .. } | ScanState::AfterBackslash { .. } => true,
                ScanState::Between | ScanState::Bare | ScanState::Complete | ScanState::Garbage { .. } => false,
            };
            take(self.frame_of(&self.held, cut));
        }
        release(&mut self.held);
        self.scan = ScanState::Between;
    }

    fn emit(&mut self, value: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if self.held.is_empty() && !self.skipping && value.len() <= self.limit {
            take(self.frame_of(value, false));
        } else {
            self.hold(value, take);
            if !self.skipping {
                take(self.frame_of(&self.held, false));
            }
            release(&mut self.held);
        }
        self.skipping = false;
        self.scan = ScanState::Between;
    }

    fn frame_of<'a>(&self, data: &'a [u8], cut: bool) -> Framed<'a> {
        let data = if self.scan == ScanState::Complete { data.trim_ascii_end() } else { data };
        Framed::Frame(Frame { name: b"", data, framing: Framing::Values, cut })
    }

    fn hold(&mut self, bytes: &[u8], take: &mut dyn FnMut(Framed<'_>)) {
        if self.skipping {
            return;
        }
        let room = self.limit.saturating_sub(self.held.len());
        if bytes.len() > room {
            append(&mut self.held, bytes.get(..room).unwrap_or(&[]));
            close_truncated(&mut self.held);
            let start = Frame { name: b"", data: &self.held, framing: Framing::Values, cut: true };
            take(Framed::Oversized { limit: self.limit, start });
            self.skipping = true;
            release(&mut self.held);
            return;
        }
        append(&mut self.held, bytes);
    }

    /// Where the current value ends in `bytes`. None if it continues.
    fn value_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            self.scan = match self.scan {
                ScanState::Between => return Some(at),
                ScanState::Bare => match (byte, self.layout) {
                    (b'\n', _) => return Some(at),
                    (b' ' | b'\t' | b'\r' | b',' | b']', Layout::Array) => return Some(at),
                    (b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.' | b'E', Layout::Array) => ScanState::Bare,
                    (_, Layout::Array) => ScanState::Garbage { line_start: false },
                    (_, Layout::Lines | Layout::Unknown) => ScanState::Bare,
                },
                ScanState::Complete => match byte {
                    b'\n' | b'{' => return Some(at),
                    b' ' | b'\t' | b'\r' => ScanState::Complete,
                    _ => ScanState::Garbage { line_start: false },
                },
                ScanState::Garbage { line_start: true } if byte == b'{' => return Some(at),
                ScanState::Garbage { .. } if byte == b'\n' && self.layout == Layout::Array => return Some(at),
                ScanState::Garbage { .. } => ScanState::Garbage { line_start: byte == b'\n' },
                // Strings cannot span lines, so this one was never closed.
                ScanState::AfterBackslash { depth } if byte == b'\n' && self.resync == Resync::AtLineStart => {
                    ScanState::Open { depth, line_start: true }
                }
                ScanState::AfterBackslash { depth } => ScanState::InString { depth },
                ScanState::InString { depth } => {
                    let here = bytes.get(at..).unwrap_or(&[]);
                    let found = match self.resync {
                        Resync::Never => memchr2(b'"', b'\\', here),
                        Resync::AtLineStart => memchr3(b'"', b'\\', b'\n', here),
                    };
                    match found {
                        None => return None,
                        Some(ahead) => at += ahead,
                    }
                    match bytes.get(at) {
                        Some(b'\\') => ScanState::AfterBackslash { depth },
                        Some(b'\n') => ScanState::Open { depth, line_start: true },
                        _ if depth == 0 && self.layout == Layout::Array => return Some(at + 1),
                        _ if depth == 0 => ScanState::Complete,
                        _ => ScanState::Open { depth, line_start: false },
                    }
                }
                ScanState::Open { depth, line_start } => match byte {
                    b'{' if line_start && self.resync == Resync::AtLineStart => return Some(at),
                    b'{' | b'[' => ScanState::Open { depth: depth + 1, line_start: false },
                    b'}' | b']' if depth <= 1 && self.layout == Layout::Array => return Some(at + 1),
                    b'}' | b']' if depth <= 1 => ScanState::Complete,
                    b'}' | b']' => ScanState::Open { depth: depth - 1, line_start: false },
                    b'"' => ScanState::InString { depth },
                    _ => ScanState::Open { depth, line_start: byte == b'\n' },
                },
            };
            at += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_at(input: &str, size: usize, limit: usize, resync: Resync) -> Vec<String> {
        let mut values = JsonValues::new(limit, resync);
        let mut got = Vec::new();
        let mut take = |framed: Framed<'_>| {
            got.push(match framed {
                Framed::Frame(frame) => {
                    format!("{}{}", String::from_utf8_lossy(frame.data), if frame.cut { "!cut" } else { "" })
                }
                Framed::Oversized { limit, start } => format!("!over {limit}: {}", String::from_utf8_lossy(start.data)),
                Framed::Corrupt { what } => format!("!{what}"),
            });
        };
        for chunk in input.as_bytes().chunks(size) {
            values.push(chunk, &mut take);
        }
        values.finish(&mut take);
        got
    }

    #[test]
    fn values_end_where_their_brackets_close() {
        #[rustfmt::skip]
        let cases: &[(&str, &str, &[&str])] = &[
            ("one body",            "\n\n {\"a\":[1,{\"b\":2}]} \n",      &["{\"a\":[1,{\"b\":2}]}"]),
            ("one a line",          "{\"a\":1}\n{\"b\":2}\n",             &["{\"a\":1}", "{\"b\":2}"]),
            ("crlf lines",          "{\"a\":1}\r\n{\"b\":2}\r\n",         &["{\"a\":1}", "{\"b\":2}"]),
            ("array stream",        "[{\"a\":1}\n,\r\n{\"b\":2}]\n",      &["{\"a\":1}", "{\"b\":2}"]),
            ("brackets in strings", "{\"a\":\"}]\\\"{\"}{\"b\":\"\\\\\"}", &["{\"a\":\"}]\\\"{\"}", "{\"b\":\"\\\\\"}"]),
            ("a bare string",       "\"unavailable\"",                    &["\"unavailable\""]),
            ("cut off",             "{\"a\":1}\n{\"b\":",                 &["{\"a\":1}", "{\"b\":!cut"]),
            ("printed wide",        "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", &["{\n  \"a\": {\n    \"b\": 1\n  }\n}"]),
            ("byte order mark",     "\u{feff}{}",                         &["{}"]),
            ("no JSON at all",      "hello {\"a\":1}\n{\"b\":2}",        &["hello {\"a\":1}", "{\"b\":2}"]),
            ("words in an array",   "[null,1,{\"a\":1}, true ]",           &["null", "1", "{\"a\":1}", "true"]),
        ];
        for (name, input, expected) in cases {
            for size in [1, 2, 3, 7, 64] {
                assert_eq!(&split_at(input, size, 1000, Resync::Never), expected, "{name}, chunks of {size}");
                assert_eq!(
                    &split_at(input, size, 1000, Resync::AtLineStart),
                    expected,
                    "{name} by lines, chunks of {size}"
                );
            }
        }
    }

    #[test]
    fn d16_a_broken_line_does_not_affect_the_next_one() {
        for size in [1, 5, 64] {
            assert_eq!(
                split_at("{\"a\":1}\n{\"b\":[\n{\"c\":3}\n", size, 1000, Resync::AtLineStart),
                ["{\"a\":1}", "{\"b\":[\n", "{\"c\":3}"]
            );
            assert_eq!(
                split_at("{\"b\":\"x\n{\"c\":3}\n{\"d\":\"y\\\n{\"e\":4}\n", size, 1000, Resync::AtLineStart),
                ["{\"b\":\"x\n", "{\"c\":3}", "{\"d\":\"y\\\n", "{\"e\":4}"]
            );
        }
    }

    #[test]
    fn d19_a_value_and_what_follows_it_in_its_line_are_one_frame() {
        #[rustfmt::skip]
        let cases: &[(&str, &str, &[&str])] = &[
            ("one brace too many", "{\"a\":{}}},\"b\":2}\n{\"c\":3}\n", &["{\"a\":{}}},\"b\":2}\n", "{\"c\":3}"]),
            ("over several lines", "{\"a\":{}}},\n  \"b\": {}\n}\n",    &["{\"a\":{}}},\n  \"b\": {}\n}\n"]),
            ("at the end",         "{\"a\":{}} x",                      &["{\"a\":{}} x"]),
            ("white space",        "{\"a\":{}} \r\n \n",                &["{\"a\":{}}"]),
        ];
        for (name, input, expected) in cases {
            for size in [1, 2, 3, 7, 64] {
                for resync in [Resync::Never, Resync::AtLineStart] {
                    assert_eq!(&split_at(input, size, 1000, resync), expected, "{name}, chunks of {size}, {resync:?}");
                }
            }
        }
    }

    #[test]
    fn an_oversized_value_is_reported_and_the_next_one_is_read() {
        let input = format!("{{\"a\":\"{}\"}}\n{{}}", "x".repeat(50));
        for size in [1, 7, 64, 1000] {
            let expected = ["!over 20: {\"a\":\"xxxxxxxxxxxxxx\"}", "{}"];
            assert_eq!(split_at(&input, size, 20, Resync::Never), expected, "chunks of {size}");
        }
    }
}
