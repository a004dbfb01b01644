//! Closes a truncated JSON value so that it can be parsed.

/// Closes open strings, brackets and characters of a value that was truncated
/// anywhere. What cannot be closed, such as half a number or a name without a
/// value, is removed.
pub(crate) fn close_truncated(value: &mut Vec<u8>) {
    let whole = match std::str::from_utf8(value) {
        Ok(_) => value.len(),
        // Invalid bytes in the middle are left alone. An incomplete character
        // at the end is removed.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => value.len(),
    };
    value.truncate(whole);
    let TruncatedScan { mut open, string, last_complete } = scan(value);
    match string {
        StringState::Outside => {
            value.truncate(last_complete.at);
            open.truncate(last_complete.depth);
        }
        StringState::Value { escape: Some(begun) } => {
            value.truncate(begun);
            value.push(b'"');
        }
        StringState::Value { escape: None } => value.push(b'"'),
        StringState::Name => {
            value.truncate(last_complete.at);
            open.truncate(last_complete.depth);
        }
    }
    value.extend(open.iter().rev());
}

struct TruncatedScan {
    /// The missing closing brackets, outermost first.
    open: Vec<u8>,
    string: StringState,
    last_complete: CompletePoint,
}

/// A position up to which everything is complete.
#[derive(Clone, Copy)]
struct CompletePoint {
    at: usize,
    depth: usize,
}

enum StringState {
    Outside,
    /// With the start of an incomplete escape.
    Value {
        escape: Option<usize>,
    },
    Name,
}

fn scan(value: &[u8]) -> TruncatedScan {
    let mut open = Vec::new();
    let mut last_complete = CompletePoint { at: 0, depth: 0 };
    // Whether the next string in an object is a name.
    let mut names = false;
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match byte {
            b'"' => match string_end(value, at + 1) {
                Ok(end) => {
                    at = end;
                    if !names {
                        last_complete = CompletePoint { at: end + 1, depth: open.len() };
                    }
                }
                Err(escape) => {
                    let string = if names { StringState::Name } else { StringState::Value { escape } };
                    return TruncatedScan { open, string, last_complete };
                }
            },
            b'{' | b'[' => {
                open.push(if byte == b'{' { b'}' } else { b']' });
                names = byte == b'{';
                last_complete = CompletePoint { at: at + 1, depth: open.len() };
            }
            b'}' | b']' => {
                open.pop();
                names = false;
                last_complete = CompletePoint { at: at + 1, depth: open.len() };
            }
            b',' => {
                // The value before it is complete, even a number or a literal.
                last_complete = CompletePoint { at, depth: open.len() };
                names = open.last() == Some(&b'}');
            }
            b':' => names = false,
            _ => (),
        }
        at += 1;
    }
    TruncatedScan { open, string: StringState::Outside, last_complete }
}

/// The position of the closing quote; or, if the string continues, the start of
/// an incomplete escape.
fn string_end(value: &[u8], from: usize) -> Result<usize, Option<usize>> {
    let mut at = from;
    loop {
        let here = value.get(at..).unwrap_or(&[]);
        let Some(ahead) = memchr::memchr2(b'"', b'\\', here) else { return Err(None) };
        at += ahead;
        if value.get(at) == Some(&b'"') {
            return Ok(at);
        }
        let length = if value.get(at + 1) == Some(&b'u') { 6 } else { 2 };
        if at + length > value.len() {
            return Err(Some(at));
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(text: &str) -> String {
        let mut value = text.as_bytes().to_vec();
        close_truncated(&mut value);
        String::from_utf8(value).expect("UTF-8 stays UTF-8")
    }

    #[test]
    fn a_truncated_value_keeps_its_complete_parts() {
        #[rustfmt::skip]
        let cases = [
            ("in a string",          r#"{"a":[{"b":"tex"#,        r#"{"a":[{"b":"tex"}]}"#),
            ("in an escape",         r#"{"a":"te\"#,              r#"{"a":"te"}"#),
            ("in a long escape",     r#"{"a":"te\u00e"#,          r#"{"a":"te"}"#),
            ("behind an escape",     r#"{"a":"te\""#,             r#"{"a":"te\""}"#),
            ("behind a string",      r#"{"a":"text""#,            r#"{"a":"text"}"#),
            ("in a name",            r#"{"a":1,"b"#,              r#"{"a":1}"#),
            ("behind a name",        r#"{"a":"x","b""#,           r#"{"a":"x"}"#),
            ("before a value",       r#"{"a":"x","b":"#,          r#"{"a":"x"}"#),
            ("in a number",          r#"{"a":"x","b":12"#,        r#"{"a":"x"}"#),
            ("behind a comma",       r#"{"a":12,"#,               r#"{"a":12}"#),
            ("in a list",            r#"["a",["b","#,             r#"["a",["b"]]"#),
            ("behind a bracket",     r#"{"a":{"b":{}"#,           r#"{"a":{"b":{}}}"#),
            ("before everything",    r#"{"#,                      r#"{}"#),
            ("whole",                r#"{"a":1}"#,                r#"{"a":1}"#),
            ("brackets in a string", r#"{"a":"}]{["#,             r#"{"a":"}]{["}"#),
        ];
        for (name, cut, expected) in cases {
            assert_eq!(closed(cut), expected, "{name}");
        }
    }

    #[test]
    fn an_incomplete_character_is_removed() {
        let mut value = br#"{"a":"x"#.to_vec();
        value.extend([0xf0, 0x9f, 0x98]);
        close_truncated(&mut value);
        assert_eq!(value, br#"{"a":"x"}"#);
    }

    #[test]
    fn a_value_truncated_anywhere_can_be_parsed() {
        let whole = r#"{"a":[1,true,{"b":"x\n\u00e9","c":[null,-1.5e3]}],"d":"é😀","e":{"f":[]}}"#;
        for end in 1..whole.len() {
            let mut value = whole.as_bytes().get(..end).expect("within").to_vec();
            close_truncated(&mut value);
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&value);
            assert!(read.is_ok(), "cut at {end}: {}", String::from_utf8_lossy(&value));
        }
    }
}
