//! Scans JSON without building a tree: members and elements in order, without
//! allocation at any nesting depth.
//!
//! The structure is checked (brackets, quotes, commas, colons); numbers and
//! escapes are checked only where a value is read.

use std::borrow::Cow;
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
pub(crate) struct NotJson {
    at: usize,
}

impl<'a> Raw<'a> {
    /// Scans a text that holds one value.
    pub(crate) fn of(text: &'a str) -> Result<Raw<'a>, NotJson> {
        JsonWalker::over(text, JsonWalker::value)
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
    // A `Raw` was scanned before, so its structure is valid.
    let _ = JsonWalker::new(object.0).object(|key, walk| walk.value().map(|value| take(key, value)));
}

/// Visits every element of an array, in order; does nothing for any other value.
pub(crate) fn each_element<'a>(array: Raw<'a>, mut take: impl FnMut(Raw<'a>)) {
    let _ = JsonWalker::new(array.0).array(|walk| walk.value().map(&mut take));
}

/// A position in a JSON text. Each method consumes exactly one syntax element.
pub(crate) struct JsonWalker<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonWalker<'a> {
    fn new(text: &'a str) -> JsonWalker<'a> {
        JsonWalker { text, at: 0 }
    }

    /// Scans a text that holds one value and nothing else.
    pub(crate) fn over<T>(
        text: &'a str,
        step: impl FnOnce(&mut JsonWalker<'a>) -> Result<T, NotJson>,
    ) -> Result<T, NotJson> {
        let mut walk = JsonWalker::new(text);
        walk.skip_space();
        let result = step(&mut walk)?;
        walk.skip_space();
        if walk.peek().is_some() { walk.fail() } else { Ok(result) }
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
            let quoted = self.string()?;
            self.skip_space();
            if !self.eat(b':') {
                return self.fail();
            }
            self.skip_space();
            let key = quoted.get(1..quoted.len() - 1).unwrap_or("");
            step(&unescaped(key), self)?;
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
            Some(b'"') => self.string().map(drop),
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

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
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

    /// Consumes a string and returns it with its quotes.
    fn string(&mut self) -> Result<&'a str, NotJson> {
        let start = self.at;
        if !self.eat(b'"') {
            return self.fail();
        }
        self.rest_of_string()?;
        Ok(self.text.get(start..self.at).unwrap_or(""))
    }

    /// Consumes a string after its opening quote, including the closing one.
    fn rest_of_string(&mut self) -> Result<(), NotJson> {
        let bytes = self.text.as_bytes();
        match after_string(bytes, self.at) {
            Some(at) => {
                self.at = at;
                Ok(())
            }
            None => {
                self.at = bytes.len();
                self.fail()
            }
        }
    }

    fn scalar(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' | b'a'..=b'z')) {
            self.at += 1;
        }
        let token = self.text.get(start..self.at).unwrap_or("");
        match token.as_bytes().first() {
            Some(b'0'..=b'9' | b'-') => Ok(()),
            _ if matches!(token, "true" | "false" | "null") => Ok(()),
            _ => Err(NotJson { at: start }),
        }
    }

    /// Consumes an object or array, however deeply nested.
    fn container(&mut self) -> Result<(), NotJson> {
        // One bit per open bracket tells its type, the innermost last. Deeper
        // than 64 levels, bracket types are not checked.
        let (mut depth, mut kinds, mut trusted) = (0usize, 0u64, false);
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'"' => self.rest_of_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    trusted |= depth > 64;
                    kinds = kinds << 1 | u64::from(byte == b'{');
                }
                b'}' | b']' => {
                    if !trusted && (kinds & 1 == 1) != (byte == b'}') {
                        self.at -= 1;
                        return self.fail();
                    }
                    kinds >>= 1;
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

fn unescaped(key: &str) -> Cow<'_, str> {
    let text = JsonText::escaped(key);
    text.as_plain().map_or_else(|| Cow::Owned(text.to_owned_text()), Cow::Borrowed)
}

/// Counts the bytes before the first quote or backslash, eight at a time: most
/// strings are too short for a call into `memchr` to pay off.
fn before_quote_or_backslash(bytes: &[u8]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero_bytes = |word: u64| word.wrapping_sub(LOW) & !word & HIGH;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let found = zero_bytes(word ^ (LOW * b'"' as u64)) | zero_bytes(word ^ (LOW * b'\\' as u64));
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
            ("\"a\\\"", 4), ("hello", 0),
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
