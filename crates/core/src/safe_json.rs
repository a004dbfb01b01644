//! JSON that can be printed anywhere. What a terminal would obey, or what makes
//! a text read differently from what it says, is written as an escape: inside a
//! string of JSON that means the same.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

use crate::screen::is_harmless;

/// A value on one line.
pub fn to_string(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    // Serializing plain data into memory does not fail, and it is UTF-8.
    drop(write(&mut out, value));
    String::from_utf8(out).unwrap_or_default()
}

/// The same, written as it is made: a long text is not held twice.
pub fn write(out: impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, Safe(CompactFormatter));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// JSON that somebody else wrote, with the same meaning.
pub fn escaped(json: &str) -> Cow<'_, str> {
    let Some(first) = find(json) else { return Cow::Borrowed(json) };
    let mut out = String::with_capacity(json.len() + 64);
    let (mut rest, mut at) = (json, first);
    loop {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut letters = special.chars();
        if let Some(letter) = letters.next() {
            push_escape(letter, &mut out);
        }
        rest = letters.as_str();
        match find(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a letter stands in JSON only as an escape.
fn is_escaped(letter: char) -> bool {
    match letter {
        // White space between values; inside strings JSON escapes it anyway.
        '\n' | '\r' | '\t' => false,
        // Letters without a width, and those that only some terminals draw.
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' => true,
        letter => !is_harmless(letter),
    }
}

/// Where the first letter stands that must be escaped.
fn find(text: &str) -> Option<usize> {
    // Most text is ASCII, of which only DEL and what JSON escapes anyway count.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')) {
        return None;
    }
    text.char_indices().find(|(_, letter)| is_escaped(*letter)).map(|(at, _)| at)
}

fn push_escape(letter: char, out: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Writes as another formatter does, with escapes.
struct Safe<F>(F);

impl<F: Formatter> Formatter for Safe<F> {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        writer.write_all(escaped(fragment).as_bytes())
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        writer.write_all(escaped(fragment).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    const NASTY: &str = "a\u{7f}b\u{9b}31m\u{202e}c\u{200b}\u{2028}\u{2029}\u{feff}\u{e0041}é😀\u{1b}]0;x\u{7}";

    #[test]
    fn whatever_is_in_a_text_it_is_escaped_and_means_the_same() {
        let json = to_string(&NASTY);
        let expected =
            concat!(r#""a\u007fb\u009b31m\u202ec\u200b\u2028\u2029\ufeff\udb40\udc41"#, "é😀", r#"\u001b]0;x\u0007""#);
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), NASTY);
    }

    #[test]
    fn json_of_others_is_escaped_where_it_stands() {
        let raw = "{\"a \u{9b}\":[\"\u{202e}\", 1]}";
        let value: Box<RawValue> = RawValue::from_string(raw.to_owned()).expect("it is JSON");
        let json = to_string(&value);
        assert_eq!(json, r#"{"a \u009b":["\u202e", 1]}"#);
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
        assert_eq!(read(&json), read(raw));
        assert_eq!(escaped(raw), json);
        assert!(matches!(escaped("{\n\t\"a\": \"é\"\r\n}"), Cow::Borrowed(_)), "lines stay lines");
    }
}
