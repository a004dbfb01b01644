//! Writes JSON straight into a buffer, without a tree and without a copy of the
//! parts.

use std::borrow::BorrowMut;
use std::ops::Range;

use super::compact::compact_into;
use super::string::split_within;
use super::walker::{Raw, each_member};

/// A length from which memory is reserved in advance. Growth by doubling would
/// need twice the memory of a long text.
const LONG: usize = 1 << 20;

/// Writes one object, member by member, into a buffer of its own or into the
/// middle of another text.
#[derive(Debug, Clone)]
pub(crate) struct ObjectWriter<B = String> {
    out: B,
    /// Where the object begins in the buffer.
    start: usize,
    begun: bool,
}

/// An object inside a longer text.
pub(crate) type NestedObject<'o> = ObjectWriter<&'o mut String>;

impl Default for ObjectWriter {
    fn default() -> ObjectWriter {
        ObjectWriter { out: String::new(), start: 0, begun: false }
    }
}

impl<B: BorrowMut<String>> ObjectWriter<B> {
    /// Writes a member's name and returns the buffer for its value.
    pub(crate) fn value(&mut self, name: &str) -> &mut String {
        let out = self.out.borrow_mut();
        out.push(if std::mem::replace(&mut self.begun, true) { ',' } else { '{' });
        quote_into(out, name);
        out.push(':');
        out
    }

    /// Adds a value that is JSON, without its whitespace.
    pub(crate) fn push(&mut self, name: &str, json: &str) {
        compact_into(self.value(name), json);
    }

    /// Adds a value that is already compact and may be long.
    pub(crate) fn push_raw(&mut self, name: &str, json: &str) {
        let out = self.value(name);
        reserve_if_long(out, json.len() + 1024);
        out.push_str(json);
    }

    /// Adds a string, which may be long.
    pub(crate) fn push_text(&mut self, name: &str, text: &str) {
        quote_into(self.value(name), text);
    }

    /// Adds a string that consists of several parts.
    pub(crate) fn push_text_parts<'t>(&mut self, name: &str, parts: impl IntoIterator<Item = &'t str>) {
        quote_parts_into(self.value(name), parts);
    }

    /// Adds a list of values that are already compact and may be long.
    pub(crate) fn push_list(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>>) {
        self.list(name, |list| values.into_iter().for_each(|value| list.next().push_str(value.as_ref())));
    }

    /// Adds an object, written in place.
    pub(crate) fn object(&mut self, name: &str, write: impl FnOnce(&mut NestedObject<'_>)) {
        object_into(self.value(name), write);
    }

    /// Adds a list, written in place.
    pub(crate) fn list(&mut self, name: &str, write: impl FnOnce(&mut ListWriter<'_>)) {
        let out = self.value(name);
        out.push('[');
        write(&mut ListWriter::new(out));
        out.push(']');
    }

    /// Adds the members of an object that are not present yet.
    pub(crate) fn push_new_members(&mut self, object: &str) {
        let Ok(object) = Raw::of(object) else { return };
        let known = self.names();
        each_member(object, |key, value| {
            if !known.iter().any(|known| known == key) {
                self.push(key, value.get());
            }
        });
    }

    /// Adds all members of an object.
    pub(crate) fn push_members(&mut self, object: &str) {
        if let Ok(object) = Raw::of(object) {
            each_member(object, |key, value| self.push(key, value.get()));
        }
    }

    /// The text so far; not yet valid JSON.
    pub(crate) fn written(&self) -> &str {
        self.out.borrow().get(self.start..).unwrap_or("")
    }

    pub(crate) fn finish(mut self) -> B {
        let out = self.out.borrow_mut();
        if !self.begun {
            out.push('{');
        }
        out.push('}');
        self.out
    }

    /// The names of the members so far.
    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        if self.begun {
            let (out, start) = (self.out.borrow_mut(), self.start);
            out.push('}');
            if let Some(Ok(object)) = out.get(start..).map(Raw::of) {
                each_member(object, |key, _| names.push(key.to_owned()));
            }
            out.pop();
        }
        names
    }
}

impl ObjectWriter {
    /// Opens a list of about `bytes` bytes as the last member and returns the
    /// text. The caller closes both the list and the object.
    pub(crate) fn into_list(mut self, name: &str, bytes: usize) -> String {
        self.out.reserve(bytes + name.len() + 8);
        self.push_raw(name, "[");
        self.out
    }
}

/// Writes the elements of a list.
#[derive(Debug)]
pub(crate) struct ListWriter<'o> {
    out: &'o mut String,
    begun: bool,
}

impl<'o> ListWriter<'o> {
    /// Starts behind the opening bracket, which the caller writes.
    pub(crate) fn new(out: &'o mut String) -> ListWriter<'o> {
        ListWriter { out, begun: false }
    }

    /// Writes a comma where one is needed and returns the buffer for the next
    /// element.
    pub(crate) fn next(&mut self) -> &mut String {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push(',');
        }
        self.out
    }

    /// Adds a value that is already compact and may be long.
    pub(crate) fn push_raw(&mut self, json: &str) {
        let out = self.next();
        reserve_if_long(out, json.len() + 1024);
        out.push_str(json);
    }

    pub(crate) fn push_text(&mut self, text: &str) {
        quote_into(self.next(), text);
    }

    /// Adds a member, already written as `"name":value`, to the object that was
    /// added last and is not empty.
    pub(crate) fn add_to_last(&mut self, member: &str) {
        if self.out.pop() == Some('}') {
            self.out.push(',');
            self.out.push_str(member);
        }
        self.out.push('}');
    }

    pub(crate) fn object(&mut self, write: impl FnOnce(&mut NestedObject<'_>)) {
        object_into(self.next(), write);
    }
}

/// Appends one object.
pub(crate) fn object_into(out: &mut String, write: impl FnOnce(&mut NestedObject<'_>)) {
    let start = out.len();
    let mut object = ObjectWriter { out, start, begun: false };
    write(&mut object);
    object.finish();
}

/// Reserves exactly as much as a long text needs.
fn reserve_if_long(out: &mut String, bytes: usize) {
    if bytes > LONG {
        out.reserve_exact(bytes);
    }
}

/// Text as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote_into(&mut out, text);
    out
}

/// Appends text as a JSON string, without an intermediate copy.
pub(crate) fn quote_into(out: &mut String, text: &str) {
    out.push('"');
    escape_into(out, text);
    out.push('"');
}

/// Appends several texts as one JSON string.
pub(crate) fn quote_parts_into<'t>(out: &mut String, parts: impl IntoIterator<Item = &'t str>) {
    out.push('"');
    parts.into_iter().for_each(|part| escape_into(out, part));
    out.push('"');
}

/// Appends text as it stands between the quotes of a JSON string.
pub fn escape_into(out: &mut String, text: &str) {
    reserve_if_long(out, text.len() + text.len() / 16);
    let mut rest = text;
    while let Some(at) = rest.bytes().position(is_escaped) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let byte = special.as_bytes().first().copied().unwrap_or_default();
        out.push('\\');
        match escape(byte) {
            b'u' => out.push_str(&format!("u{byte:04x}")),
            letter => out.push(char::from(letter)),
        }
        rest = special.get(1..).unwrap_or("");
    }
    out.push_str(rest);
}

/// Finds a text inside JSON, escaped as we and serde write it. A long text is
/// found only at the start of a string, without making the escaped copy.
pub fn find_escaped(json: &str, text: &str) -> Option<Range<usize>> {
    let (head, rest) = split_within(text, LONG_ESCAPED);
    let mut escaped = String::from(if rest.is_empty() { "" } else { "\"" });
    let begins = escaped.len();
    escape_into(&mut escaped, head);
    // A comparison ends with its string, so that each byte is compared once.
    memchr::memmem::find_iter(json.as_bytes(), &escaped).find_map(|at| {
        let after = without_escaped(json.get(at + escaped.len()..)?, rest)?;
        Some(at + begins..json.len() - after.len())
    })
}

/// Longer texts are compared in place.
const LONG_ESCAPED: usize = 1 << 16;

/// What follows the escaped text at the start of `json`.
fn without_escaped<'j>(json: &'j str, text: &str) -> Option<&'j str> {
    let (mut json, mut rest, mut escape) = (json, text, String::new());
    while let Some(at) = rest.bytes().position(is_escaped) {
        let (plain, special) = rest.split_at(at);
        let (first, after) = special.split_at(1);
        escape.clear();
        escape_into(&mut escape, first);
        json = json.strip_prefix(plain)?.strip_prefix(&escape)?;
        rest = after;
    }
    json.strip_prefix(rest)
}

/// The character after the backslash, or `PLAIN`.
fn escape(byte: u8) -> u8 {
    match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x00..0x20 => b'u',
        _ => PLAIN,
    }
}

fn is_escaped(byte: u8) -> bool {
    escape(byte) != PLAIN
}

/// Marks a byte that needs no escape.
const PLAIN: u8 = 0;

/// A list of values that are already JSON; each is dropped once written.
pub(crate) fn list_of(values: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut out = String::from("[");
    let mut list = ListWriter::new(&mut out);
    values.into_iter().for_each(|value| list.push_raw(value.as_ref()));
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_what_serde_writes() {
        let all: String = (0..0x100).filter_map(char::from_u32).chain(['\u{2028}', '\u{fffd}', '😀']).collect();
        for text in ["", "plain", "a\"b\\c\nd", &all] {
            assert_eq!(quote(text), serde_json::to_string(text).expect("serializable"));
            let mut parts = String::new();
            quote_parts_into(&mut parts, text.split_inclusive('a'));
            assert_eq!(parts, quote(text), "in parts");
        }
    }

    #[test]
    fn an_escaped_text_is_found_without_a_copy_of_it() {
        let long = "é\n\"x\u{1}".repeat(20_000);
        for text in ["plain", "a\"b\\c\nd", "\u{1}", &long] {
            let near = format!("{}!", text.get(..text.len() - 1).unwrap_or(""));
            let quoted = quote(text);
            let escaped = quoted.get(1..quoted.len() - 1).unwrap_or("");
            let json = format!("{{\"near\":{},\"a\":{quoted}}}", quote(&near));
            let found = find_escaped(&json, text);
            assert_eq!(found.and_then(|found| json.get(found)), Some(escaped), "{text}");
            assert_eq!(find_escaped(&json, "elsewhere"), None);
        }
    }

    #[test]
    fn objects_and_lists_are_written_in_place() {
        let mut out = "before ".to_owned();
        object_into(&mut out, |object| {
            object.push("a", " [ 1, 2 ] ");
            object.object("b", |inner| inner.push_text("c", "\""));
            object.object("empty", |_| ());
            object.list("d", |list| {
                list.push_text("x");
                list.object(|inner| inner.push_raw("y", "1"));
            });
            object.push_new_members(r#"{"a":9,"new":8,"b":7}"#);
            object.push_text_parts("e", ["1", "\n", "2"]);
        });
        let json = r#"{"a":[1,2],"b":{"c":"\""},"empty":{},"d":["x",{"y":1}],"new":8,"e":"1\n2"}"#;
        assert_eq!(out, format!("before {json}"));
        assert_eq!(list_of(["1", "2"]), "[1,2]");
        assert_eq!(ObjectWriter::default().finish(), "{}");
    }
}
