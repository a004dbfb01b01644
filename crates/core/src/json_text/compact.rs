//! JSON on one line: whitespace between tokens is left out, and nothing else.

use std::borrow::Cow;

use super::string::PieceWriter;
use super::walker::after_string;
use crate::safe_json::escaped;

/// Passes on the text in runs that contain no whitespace between tokens.
fn runs<'a>(json: &'a str, mut take: impl FnMut(&'a str)) {
    let bytes = json.as_bytes();
    let (mut run, mut at) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => at = after_string(bytes, at).unwrap_or(bytes.len()),
            b' ' | b'\n' | b'\r' | b'\t' => {
                if at - 1 > run {
                    take(json.get(run..at - 1).unwrap_or(""));
                }
                run = at;
            }
            _ => (),
        }
    }
    if bytes.len() > run {
        take(json.get(run..).unwrap_or(""));
    }
}

/// JSON on one line.
pub(crate) fn compact(json: &str) -> Cow<'_, str> {
    let mut first = "";
    runs(json, |run| {
        if first.is_empty() {
            first = run;
        }
    });
    // Most items need no change.
    if first.len() == json.len() {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    runs(json, |run| out.push_str(run));
    Cow::Owned(out)
}

/// Appends JSON on one line.
pub(crate) fn compact_into(out: &mut String, json: &str) {
    if json.len() > out.capacity() - out.len() && json.len() > 1 << 20 {
        out.reserve_exact(json.len() + 1024);
    }
    runs(json, |run| out.push_str(run));
}

/// Passes on JSON on one line, in as few pieces as its length allows, without a
/// copy of the whole. `scratch` is a reusable buffer.
pub(crate) fn compact_pieces(json: &str, scratch: &mut String, mut take: impl FnMut(&str)) {
    let mut pieces = PieceWriter::new(scratch, &mut take);
    runs(json, |run| pieces.push_str(run));
    pieces.finish();
}

/// JSON as our own files hold it: compact, with characters escaped that a
/// terminal should not see. Values read from a file are kept in this form, so
/// that a round trip does not change them.
pub(crate) fn canonical(json: &str) -> Cow<'_, str> {
    match compact(json) {
        Cow::Borrowed(json) => escaped(json),
        Cow::Owned(json) => match escaped(&json) {
            Cow::Owned(json) => Cow::Owned(json),
            Cow::Borrowed(_) => Cow::Owned(json),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_touches_nothing_inside_strings() {
        let cases = [
            ("{ \"a b\" : [ 1,\n 2 ] , \"c\\\" \" : \" \" }", r#"{"a b":[1,2],"c\" ":" "}"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("\t[ ]\r\n", "[]"),
            (" \"é \\\\\" ", "\"é \\\\\""),
            ("", ""),
        ];
        for (json, expected) in cases {
            assert_eq!(compact(json), expected);
            let mut out = String::new();
            compact_into(&mut out, json);
            assert_eq!(out, expected);
            let (mut scratch, mut pieces) = (String::new(), String::new());
            compact_pieces(json, &mut scratch, |piece| pieces.push_str(piece));
            assert_eq!(pieces, expected);
        }
        assert!(matches!(compact(r#"{"a":1}"#), Cow::Borrowed(_)));
    }
}
