//! The text of JSON strings, read without making a second copy.

use memchr::memchr;

use super::walker::Raw;

/// How much is unescaped at a time. Text of any length passes through a buffer
/// of this size.
const PIECE: usize = 16 * 1024;

/// A string that may still contain JSON escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonText<'a> {
    /// The part between the quotes, or plain text.
    inner: &'a str,
    escaped: bool,
}

impl<'a> JsonText<'a> {
    /// Wraps text that is not escaped.
    pub fn plain(text: &'a str) -> JsonText<'a> {
        JsonText { inner: text, escaped: false }
    }

    /// The text of a JSON string. None for any other kind of value.
    pub(crate) fn of(value: Raw<'a>) -> Option<JsonText<'a>> {
        let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
        Some(JsonText::escaped(inner))
    }

    /// The part between the quotes of a JSON string, and whether it has escapes.
    pub(super) fn of_parts(inner: &'a str, escaped: bool) -> JsonText<'a> {
        JsonText { inner, escaped }
    }

    /// Wraps the part between the quotes of a JSON string.
    fn escaped(inner: &'a str) -> JsonText<'a> {
        JsonText { inner, escaped: memchr(b'\\', inner.as_bytes()).is_some() }
    }

    /// The text, if nothing in it is escaped.
    pub(crate) fn as_plain(self) -> Option<&'a str> {
        (!self.escaped).then_some(self.inner)
    }

    /// Whether there is no text at all.
    pub fn is_empty(self) -> bool {
        self.inner.is_empty()
    }

    /// The length of the unescaped text in bytes.
    pub fn len(self) -> u64 {
        if !self.escaped {
            return self.inner.len() as u64;
        }
        let (mut scratch, mut bytes) = (String::new(), 0);
        self.pieces(&mut scratch, |piece| bytes += piece.len() as u64);
        bytes
    }

    /// Passes on the unescaped text in order, in as few pieces as its length
    /// allows. `scratch` is a reusable buffer.
    pub fn pieces(self, scratch: &mut String, mut take: impl FnMut(&str)) {
        if !self.escaped {
            if !self.inner.is_empty() {
                take(self.inner);
            }
            return;
        }
        let mut pieces = PieceWriter::new(scratch, &mut take);
        let mut rest = self.inner;
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            let (literal, escape) = rest.split_at(at);
            pieces.push_str(literal);
            let (character, used) = unescape(escape);
            pieces.push(character);
            rest = escape.get(used..).unwrap_or("");
        }
        pieces.push_str(rest);
        pieces.finish();
    }

    /// The whole text. For short strings off the hot path.
    pub fn to_owned_text(self) -> String {
        let mut scratch = String::new();
        let mut out = String::new();
        self.pieces(&mut scratch, |piece| out.push_str(piece));
        out
    }
}

/// Splits a text after at most `most` bytes, at a character boundary.
pub fn split_within(text: &str, most: usize) -> (&str, &str) {
    let mut at = most.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.split_at(at)
}

/// Passes on text in as few pieces as possible. Long parts are passed on
/// directly, short ones are joined in a reusable buffer.
pub(super) struct PieceWriter<'a> {
    scratch: &'a mut String,
    take: &'a mut dyn FnMut(&str),
}

impl<'a> PieceWriter<'a> {
    pub(super) fn new(scratch: &'a mut String, take: &'a mut dyn FnMut(&str)) -> PieceWriter<'a> {
        scratch.clear();
        PieceWriter { scratch, take }
    }

    pub(super) fn push_str(&mut self, part: &str) {
        if part.len() > PIECE {
            self.flush();
            (self.take)(part);
        } else {
            self.scratch.push_str(part);
            self.flush_if_long();
        }
    }

    fn push(&mut self, character: char) {
        self.scratch.push(character);
        self.flush_if_long();
    }

    pub(super) fn finish(mut self) {
        self.flush();
    }

    fn flush_if_long(&mut self) {
        if self.scratch.len() > PIECE {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.scratch.is_empty() {
            (self.take)(self.scratch);
            self.scratch.clear();
        }
    }
}

/// Parses one escape at the start of `text`. Returns the character and the
/// number of bytes read. A lone surrogate becomes U+FFFD; the rest of the text
/// is kept.
fn unescape(text: &str) -> (char, usize) {
    let simple = |c| (c, 2);
    match text.as_bytes().get(1) {
        Some(b'n') => simple('\n'),
        Some(b't') => simple('\t'),
        Some(b'r') => simple('\r'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'u') => unescape_unicode(text),
        // `\"`, `\\` and `\/`. JSON has no others, and the parser has checked
        // that.
        Some(&other) if other.is_ascii() => simple(char::from(other)),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

fn unescape_unicode(text: &str) -> (char, usize) {
    let unit = |at: usize| text.get(at..at + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(first) = unit(2) else {
        return (char::REPLACEMENT_CHARACTER, 2);
    };
    let second = if text.get(6..8) == Some("\\u") { unit(8) } else { None };
    match char::decode_utf16([first].into_iter().chain(second)).next() {
        Some(Ok(c)) => (c, if c.len_utf16() == 2 { 12 } else { 6 }),
        _ => (char::REPLACEMENT_CHARACTER, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> String {
        let raw = Raw::of(json).expect("valid JSON");
        JsonText::of(raw).expect("a string").to_owned_text()
    }

    #[test]
    fn escapes_read_as_serde_reads_them() {
        for json in [r#""plain""#, r#""a\nb\t\"\\\/""#, r#""\u00e9\ud83d\ude00x""#, r#""""#, r#""\b\f\r""#] {
            let expected: String = serde_json::from_str(json).expect("valid JSON");
            assert_eq!(read(json), expected, "{json}");
        }
    }

    #[test]
    fn a_lone_surrogate_costs_one_character_not_the_chunk() {
        assert_eq!(read(r#""a\ud83db""#), "a\u{fffd}b");
        assert_eq!(read(r#""a\ude00b""#), "a\u{fffd}b");
        assert_eq!(read(r#""a\ud83d\n""#), "a\u{fffd}\n");
        assert_eq!(read(r#""\ud83d\ud83d\ude00""#), "\u{fffd}\u{1f600}");
    }

    #[test]
    fn long_text_comes_in_bounded_pieces() {
        let text = "word\n".repeat(20_000);
        let json = serde_json::to_string(&text).expect("serializable");
        let raw = Raw::of(&json).expect("valid JSON");
        let (mut scratch, mut out, mut pieces) = (String::new(), String::new(), 0);
        JsonText::of(raw).expect("a string").pieces(&mut scratch, |piece| {
            pieces += 1;
            assert!(piece.len() <= 2 * PIECE);
            out.push_str(piece);
        });
        assert_eq!(out, text);
        assert!(pieces > 1);
    }

    #[test]
    fn a_text_is_split_at_character_boundaries() {
        for (text, most, expected) in
            [("añb", 9, "añb"), ("añb", 3, "añ"), ("añb", 2, "a"), ("añb", 0, ""), ("", 3, "")]
        {
            let (head, rest) = split_within(text, most);
            assert_eq!((head, format!("{head}{rest}").as_str()), (expected, text));
        }
    }

    #[test]
    fn only_json_strings_are_text() {
        for json in ["1", "null", "[\"a\"]", "{}"] {
            let raw = Raw::of(json).expect("valid JSON");
            assert_eq!(JsonText::of(raw), None, "{json}");
        }
    }
}
