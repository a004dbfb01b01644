//! JSON that is safe to print anywhere. Characters that a terminal would
//! interpret, or that make text look different, are written as JSON escapes,
//! which mean the same inside a string.

use std::borrow::Cow;
use std::io;

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter};

use crate::terminal_text::is_terminal_safe;

/// Serializes a value on one line.
pub fn to_string(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    // Serializing plain data into memory cannot fail and gives UTF-8.
    drop(write(&mut out, value));
    String::from_utf8(out).unwrap_or_default()
}

/// The same, written directly, so that a long text is not in memory twice.
pub fn write(out: impl io::Write, value: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, EscapingFormatter(CompactFormatter));
    value.serialize(&mut serializer).map_err(io::Error::from)
}

/// Escapes JSON from other sources without changing its meaning.
pub fn escaped(json: &str) -> Cow<'_, str> {
    let Some(first) = find(json) else { return Cow::Borrowed(json) };
    let mut out = String::with_capacity(json.len() + 64);
    let (mut rest, mut at) = (json, first);
    loop {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut characters = special.chars();
        if let Some(character) = characters.next() {
            push_escape(character, &mut out);
        }
        rest = characters.as_str();
        match find(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a character must be escaped.
fn is_escaped(character: char) -> bool {
    match character {
        // White space between values. Inside strings, JSON escapes it anyway.
        '\n' | '\r' | '\t' => false,
        // Zero-width characters, and those that only some terminals draw.
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' => true,
        character => !is_terminal_safe(character),
    }
}

/// The position of the first character that must be escaped.
fn find(text: &str) -> Option<usize> {
    // Most text is ASCII, where only DEL needs an escape that JSON does not
    // require.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')) {
        return None;
    }
    text.char_indices().find(|(_, character)| is_escaped(*character)).map(|(at, _)| at)
}

fn push_escape(character: char, out: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        out.push_str(&format!("\\u{unit:04x}"));
    }
}

/// Wraps a formatter and adds escapes.
struct EscapingFormatter<F>(F);

impl<F: Formatter> Formatter for EscapingFormatter<F> {
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
    fn unsafe_text_is_escaped_without_changing_its_meaning() {
        let json = to_string(&NASTY);
        let expected =
            concat!(r#""a\u007fb\u009b31m\u202ec\u200b\u2028\u2029\ufeff\udb40\udc41"#, "é😀", r#"\u001b]0;x\u0007""#);
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<String>(&json).expect("it is JSON"), NASTY);
    }

    #[test]
    fn raw_json_is_escaped_in_place() {
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
