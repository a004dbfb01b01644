//! Walks JSON without building a tree: members and elements in order, without
//! allocation.
//!
//! The first walk over a text checks all of it, at every depth, by the same
//! grammar as serde. A [`Raw`] is a value that was checked; walking it again is
//! cheaper.

use std::fmt;

use super::string::JsonText;

/// One JSON value as written, without surrounding whitespace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a>(&'a str);

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The position where a text stops being JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {at}")]
pub struct NotJson {
    at: usize,
}

impl<'a> Raw<'a> {
    /// Checks a text that holds one value.
    pub(crate) fn of(text: &'a str) -> Result<Raw<'a>, NotJson> {
        JsonWalker::over(text, JsonWalker::value)
    }

    /// A text that was checked before.
    pub(crate) fn checked(text: &'a str) -> Raw<'a> {
        Raw(text.trim_ascii())
    }

    pub(crate) fn get(self) -> &'a str {
        self.0
    }

    pub(crate) fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'n') => JsonKind::Null,
            Some(b'"') => JsonKind::Text,
            Some(b'[') => JsonKind::Array,
            Some(b'{') => JsonKind::Object,
            _ => JsonKind::Other,
        }
    }
}

/// The type of a value, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonKind {
    Null,
    Text,
    Array,
    Object,
    Other,
}

/// A value that can be read during a scan. A value of the wrong type reads as the
/// default, so that one unexpected member does not lose the frame.
pub(crate) trait FromJson<'a>: Default {
    fn read(walk: &mut JsonWalker<'a>) -> Result<Self, NotJson>;
}

/// Visits every member of an object, in order; does nothing for any other value.
pub(crate) fn each_member<'a>(object: Raw<'a>, mut take: impl FnMut(&str, Raw<'a>)) {
    // A `Raw` was checked before, so this cannot fail.
    let _ = JsonWalker::again(object).object(|key, walk| walk.value().map(|value| take(key, value)));
}

/// Visits every element of an array, in order; does nothing for any other value.
pub(crate) fn each_element<'a>(array: Raw<'a>, mut take: impl FnMut(Raw<'a>)) {
    let _ = JsonWalker::again(array).array(|walk| walk.value().map(&mut take));
}

/// A position in a JSON text. Each method consumes exactly one syntax element.
pub(crate) struct JsonWalker<'a> {
    text: &'a str,
    at: usize,
    /// The text was checked before.
    checked: bool,
}

impl<'a> JsonWalker<'a> {
    /// Checks a text that holds one value and nothing else.
    pub(crate) fn over<T>(
        text: &'a str,
        step: impl FnOnce(&mut JsonWalker<'a>) -> Result<T, NotJson>,
    ) -> Result<T, NotJson> {
        let mut walk = JsonWalker { text, at: 0, checked: false };
        walk.skip_space();
        let result = step(&mut walk)?;
        walk.skip_space();
        if walk.peek().is_some() { walk.fail() } else { Ok(result) }
    }

    /// Walks a value that was checked before.
    pub(crate) fn again(value: Raw<'a>) -> JsonWalker<'a> {
        JsonWalker { text: value.0, at: 0, checked: true }
    }

    /// Consumes an object; `step` must consume each member's value. Any other
    /// value is skipped.
    pub(crate) fn object(
        &mut self,
        mut step: impl FnMut(&str, &mut JsonWalker<'a>) -> Result<(), NotJson>,
    ) -> Result<(), NotJson> {
        if !self.eat(b'{') {
            return self.skip();
        }
        self.skip_space();
        while !self.eat(b'}') {
            let name = self.string()?;
            self.colon()?;
            match name.as_plain() {
                Some(name) => step(name, self)?,
                None => step(&name.to_owned_text(), self)?,
            }
            self.separator(b'}')?;
        }
        Ok(())
    }

    /// Consumes an array; `step` must consume each element. Any other value is
    /// skipped.
    pub(crate) fn array(
        &mut self,
        mut step: impl FnMut(&mut JsonWalker<'a>) -> Result<(), NotJson>,
    ) -> Result<(), NotJson> {
        if !self.eat(b'[') {
            return self.skip();
        }
        self.skip_space();
        while !self.eat(b']') {
            step(self)?;
            self.separator(b']')?;
        }
        Ok(())
    }

    /// Consumes any value.
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, NotJson> {
        let start = self.at;
        self.skip()?;
        Ok(Raw(self.text.get(start..self.at).unwrap_or("")))
    }

    pub(crate) fn skip(&mut self) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'"') => self.skip_string().map(drop),
            Some(b'{' | b'[') if self.checked => self.skip_checked_container(),
            Some(b'{' | b'[') => self.container(),
            _ => self.scalar(),
        }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fail<T>(&self) -> Result<T, NotJson> {
        Err(NotJson { at: self.at })
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    fn skip_space(&mut self) {
        // Most JSON has none.
        while let Some(byte) = self.peek().filter(|byte| *byte <= b' ') {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return;
            }
            self.at += 1;
        }
    }

    /// Consumes a comma that is followed by another element, or stops at the
    /// closing bracket.
    fn separator(&mut self, close: u8) -> Result<(), NotJson> {
        self.skip_space();
        if self.eat(b',') {
            self.skip_space();
            return if self.peek() == Some(close) { self.fail() } else { Ok(()) };
        }
        if self.peek() == Some(close) { Ok(()) } else { self.fail() }
    }

    /// Consumes a string and returns its text.
    pub(crate) fn string(&mut self) -> Result<JsonText<'a>, NotJson> {
        let start = self.at + 1;
        let escaped = self.skip_string()?;
        Ok(JsonText::of_parts(self.text.get(start..self.at - 1).unwrap_or(""), escaped))
    }

    /// Consumes a string; returns whether it contains escapes.
    fn skip_string(&mut self) -> Result<bool, NotJson> {
        if !self.eat(b'"') {
            return self.fail();
        }
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        loop {
            self.at += plain_length(bytes.get(self.at..).unwrap_or(&[]));
            match bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => match escape_length(bytes.get(self.at + 1..).unwrap_or(&[])) {
                    Some(length) => self.at += 1 + length,
                    None => return self.fail(),
                },
                // A control character, or the end of the text.
                _ => return self.fail(),
            }
            escaped = true;
        }
    }

    #[inline]
    fn colon(&mut self) -> Result<(), NotJson> {
        // Usually the next byte.
        if !self.eat(b':') {
            self.skip_space();
            if !self.eat(b':') {
                return self.fail();
            }
        }
        self.skip_space();
        Ok(())
    }

    fn scalar(&mut self) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.fail(),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), NotJson> {
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return self.fail();
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), NotJson> {
        self.eat(b'-');
        // A leading zero stands alone.
        if !self.eat(b'0') {
            self.digits()?;
        }
        if self.eat(b'.') {
            self.digits()?;
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            self.digits()?;
        }
        Ok(())
    }

    /// Consumes at least one digit.
    fn digits(&mut self) -> Result<(), NotJson> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.fail();
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    /// Consumes an object or array and checks it, however deeply nested.
    fn container(&mut self) -> Result<(), NotJson> {
        let mut open = OpenBrackets::default();
        loop {
            // A value begins here.
            match self.peek() {
                Some(b'"') => self.skip_string().map(drop)?,
                Some(b'{') => {
                    self.at += 1;
                    self.skip_space();
                    if !self.eat(b'}') {
                        open.push(true);
                        self.skip_string()?;
                        self.colon()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.skip_space();
                    if !self.eat(b']') {
                        open.push(false);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // It ended, and so may the ones around it.
            loop {
                let Some(in_object) = open.last_is_object() else { return Ok(()) };
                self.skip_space();
                match (self.peek(), in_object) {
                    (Some(b','), _) => {
                        self.at += 1;
                        self.skip_space();
                        if in_object {
                            self.skip_string()?;
                            self.colon()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return self.fail(),
                }
            }
        }
    }

    /// Consumes an object or array that was checked before: only brackets count.
    fn skip_checked_container(&mut self) -> Result<(), NotJson> {
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        while let Some(&byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => self.at = after_string(bytes, self.at).unwrap_or(bytes.len()),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => (),
            }
        }
        self.fail()
    }
}

/// The open brackets: one bit each, set for an object, the innermost last. Only
/// deeper levels need memory.
#[derive(Default)]
struct OpenBrackets {
    depth: usize,
    bits: u64,
    outer: Vec<u64>,
}

impl OpenBrackets {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.depth += 1;
        self.bits = self.bits << 1 | u64::from(is_object);
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().unwrap_or(0);
        }
    }

    fn last_is_object(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }
}

/// The length of an escape after its backslash; none if there is no such escape.
fn escape_length(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(1),
        b'u' => rest.get(1..5)?.iter().all(u8::is_ascii_hexdigit).then_some(5),
        _ => None,
    }
}

/// The position after the closing quote of a string that begins at `at`, after
/// its opening quote.
pub(super) fn after_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += bytes.get(at..).map_or(0, before_quote_or_backslash);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            // An escaped character never ends the string.
            _ => at += 2,
        }
    }
}

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks the first byte of a word that equals `byte`, and perhaps some after it.
fn marks_of(word: u64, byte: u8) -> u64 {
    let word = word ^ (LOW * u64::from(byte));
    word.wrapping_sub(LOW) & !word & HIGH
}

/// Counts the bytes before the first quote or backslash, eight at a time: most
/// strings are too short for a call into `memchr` to pay off.
fn before_quote_or_backslash(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let found = marks_of(word, b'"') | marks_of(word, b'\\');
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        // A long string is worth the call.
        if at == 64 {
            let rest = bytes.get(at..).unwrap_or(&[]);
            return at + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        }
    }
    let rest = bytes.get(at..).unwrap_or(&[]);
    at + rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len())
}

/// Counts the bytes that a string may contain as they are: all before the first
/// quote, backslash or control character.
#[inline]
fn plain_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        // A byte below 0x20 stays below it when its second bit is flipped, and a
        // quote becomes 0x20: one comparison finds both.
        let flipped = word ^ (LOW * 2);
        let quote_or_control = flipped.wrapping_sub(LOW * 0x21) & !flipped & HIGH;
        let found = quote_or_control | marks_of(word, b'\\');
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        if at == 64 {
            return at + long_plain_length(bytes.get(at..).unwrap_or(&[]));
        }
    }
    let rest = bytes.get(at..).unwrap_or(&[]);
    at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

/// As above, in blocks, which the compiler turns into vector code.
#[inline(never)]
fn long_plain_length(bytes: &[u8]) -> usize {
    let is_plain = |block: &[u8; 64]| !block.iter().fold(false, |found, byte| found | is_special(*byte));
    let mut at = 0;
    while bytes.get(at..).and_then(|rest| rest.first_chunk::<64>()).is_some_and(is_plain) {
        at += 64;
    }
    let rest = bytes.get(at..).unwrap_or(&[]);
    at + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_with_their_bytes() {
        let mut seen = Vec::new();
        let raw = Raw::of(" {\"b\": 1, \"a\": {\"x\": [ 2 ]}, \"b\": \"two\", \"\\u0063\":-1.5e3 } ").expect("JSON");
        each_member(raw, |key, value| seen.push(format!("{key}={}", value.get())));
        assert_eq!(seen, ["b=1", "a={\"x\": [ 2 ]}", "b=\"two\"", "c=-1.5e3"]);
        let mut seen = Vec::new();
        each_element(Raw::of("[1, [2,\"]\"] ,{\"a\":null}]").expect("JSON"), |value| seen.push(value.get()));
        assert_eq!(seen, ["1", "[2,\"]\"]", "{\"a\":null}"]);
        each_member(Raw::of("[1]").expect("JSON"), |_, _| panic!("an array has no members"));
        each_element(Raw::of("{}").expect("JSON"), |_| panic!("an object has no elements"));
        each_member(Raw::of("{}").expect("JSON"), |_, _| panic!("it is empty"));
        each_element(Raw::of("[]").expect("JSON"), |_| panic!("it is empty"));
    }

    #[test]
    fn invalid_json_is_reported_with_its_position() {
        #[rustfmt::skip]
        let cases = [
            ("", 0), ("{", 1), ("{\"a\":1", 6), ("[1,2", 4), ("\"abc", 4), ("{]", 1), ("[}", 1), ("nope", 0), ("{} x", 3), ("[{]}", 2),
            ("\"a\\\"", 4), ("hello", 0), ("[1 2]", 3), ("{\"a\"::1}", 5), ("{\"a\" 1}", 5), ("[[1 2]]", 4), ("[{\"a\"::1}]", 6),
            ("[[1,]]", 4), ("[01]", 2), ("[1.]", 3), ("[-]", 2), ("[1e]", 3), ("[1a]", 2), ("[nul]", 1), ("[truefalse]", 5), ("[\"\\x\"]", 2),
            ("[\"\\u12g4\"]", 2), ("[\"a\tb\"]", 3), ("[{\"a\":1,}]", 8), ("{,}", 1), ("{\"a\"}", 4), ("[\"0123456789\n\"]", 12),
        ];
        for (text, at) in cases {
            assert_eq!(Raw::of(text), Err(NotJson { at }), "{text}");
        }
    }

    #[test]
    fn everything_that_serde_accepts_is_accepted() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Raw::of(&deep).is_ok());
        let mixed = format!("{}{}1{}{}", "{\"a\":".repeat(99), "[".repeat(200), "]".repeat(200), "}".repeat(99));
        assert!(Raw::of(&mixed).is_ok());
        for json in [r#"{"a":[true,false,null,-0.1E+2,"\\\"",{"b":{}}]}"#, "0", "\"\"", " [ ] ", "{\"\":{\"\":[]}}"] {
            assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{json}");
            assert!(Raw::of(json).is_ok(), "{json}");
        }
    }
}
