//! Escaping, which keeps text and structure apart.

use std::borrow::Cow;

use crate::json_text::{JsonKind, Raw};

/// Prefixes of lines that are structure, that look like our structure to a
/// reader, or that would swallow the following lines in a viewer. Lower case.
const RESERVED_PREFIXES: &[&str] = &[
    "<!",
    "<?",
    "<details",
    "</details",
    "<summary",
    "</summary",
    "<script",
    "<style",
    "<pre",
    "<textarea",
    "> [!thinking]",
    ">[!thinking]",
    "## you",
    "## assistant",
    "## system",
    "## tools",
];

const COMMENT: &str = "<!-- aside:";

/// Escapes a line of text. A CR ends a line in viewers as well.
pub(super) fn escape(line: &str) -> Cow<'_, str> {
    map_lines(line, |line| match split_reserved(line) {
        Some((before, after)) => Cow::Owned(format!("{before}\\{after}")),
        None => Cow::Borrowed(line),
    })
}

/// The inverse of [`escape`].
pub(super) fn unescape(line: &str) -> Cow<'_, str> {
    map_lines(line, |line| {
        match split_reserved(line).and_then(|(before, after)| Some((before, after.strip_prefix('\\')?))) {
            Some((before, after)) => Cow::Owned(format!("{before}{after}")),
            None => Cow::Borrowed(line),
        }
    })
}

fn map_lines<'a>(line: &'a str, change: impl Fn(&'a str) -> Cow<'a, str>) -> Cow<'a, str> {
    if !line.contains('\r') {
        return change(line);
    }
    Cow::Owned(line.split('\r').map(change).collect::<Vec<_>>().join("\r"))
}

/// Quotes a line of thinking, including the parts after a CR.
pub(super) fn quoted(line: &str) -> String {
    let mark = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
    line.split('\r').map(mark).collect::<Vec<_>>().join("\r") + end
}

/// The inverse of [`quoted`]. None if the line is not quoted.
pub(super) fn unquoted(line: &str) -> Option<String> {
    let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
    line.strip_prefix('>')?;
    let bare = |line: &'_ str| {
        let inner = line.strip_prefix('>').unwrap_or(line);
        inner.strip_prefix(' ').unwrap_or(inner).to_owned()
    };
    Some(line.split('\r').map(bare).collect::<Vec<_>>().join("\r") + end)
}

/// Splits a line that could be structure after its indentation. Backslashes
/// before the prefix count as part of it, so that each escape adds exactly one.
fn split_reserved(line: &str) -> Option<(&str, &str)> {
    let after = line.trim_start_matches(' ');
    let bare = after.trim_start_matches('\\');
    let is_reserved = RESERVED_PREFIXES.iter().any(|prefix| {
        let start = bare.as_bytes().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    });
    is_reserved.then(|| line.split_at(line.len() - after.len()))
}

/// Whether a line of a file ends the text before it.
pub(super) fn is_structure(line: &str) -> bool {
    line.starts_with(COMMENT) || line.starts_with(super::CALLOUT) || line.starts_with("<details>")
}

/// A comment that describes what follows it.
pub(super) fn comment(kind: &str, json: &str) -> String {
    // In JSON these characters occur only in strings, where an escape is
    // equivalent.
    let json = json.replace('>', "\\u003e").replace('\n', "\\n").replace('\r', "\\r");
    if json == "{}" { format!("{COMMENT}{kind} -->") } else { format!("{COMMENT}{kind} {json} -->") }
}

/// The kind and the members of one of our comments.
pub(super) fn read_comment(line: &str) -> Option<(&str, String)> {
    let inner = line.strip_prefix(COMMENT)?.trim_end().strip_suffix("-->")?.trim_end();
    let (kind, json) = inner.split_once(' ').unwrap_or((inner, "{}"));
    let is_object = Raw::of(json).is_ok_and(|raw| raw.kind() == JsonKind::Object);
    Some((kind, if is_object { unescape_json(json) } else { "{}".to_owned() }))
}

/// Restores the brackets. An escaped backslash does not start an escape.
fn unescape_json(json: &str) -> String {
    const ESCAPED: &str = "u003e";
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix(ESCAPED) {
            out.push('>');
            rest = after;
        } else {
            let mut characters = after.chars();
            out.push('\\');
            out.extend(characters.next());
            rest = characters.as_str();
        }
    }
    out.push_str(rest);
    out
}

/// Content in a fence longer than any in the content.
pub(super) fn fenced(content: &str, language: &str) -> String {
    let fence = "`".repeat((longest_run(content) + 1).max(3));
    format!("{fence}{language}\n{content}\n{fence}")
}

fn longest_run(content: &str) -> usize {
    content.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// The line that closes a fence which the text leaves open.
pub(super) fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let Some((fence, info)) = fence_of(line) else { continue };
        match open {
            None if !(fence.starts_with('`') && info.contains('`')) => open = Some(fence),
            Some(opened) if fence.starts_with(opened) && info.trim().is_empty() => open = None,
            None | Some(_) => (),
        }
    }
    open.map(str::to_owned)
}

/// Three or more backticks or tildes, not indented like code.
fn fence_of(line: &str) -> Option<(&str, &str)> {
    let bare = line.trim_start_matches(' ');
    let first = bare.chars().next().filter(|first| matches!(first, '`' | '~'))?;
    let length = bare.len() - bare.trim_start_matches(first).len();
    (line.len() - bare.len() < 4 && length >= 3).then(|| bare.split_at(length))
}

/// A name on one line, in a code span.
pub(super) fn code_span(name: &str) -> String {
    let name = one_line(name);
    let ticks = "`".repeat(longest_run(&name) + 1);
    let room = if name.starts_with('`') || name.ends_with('`') { " " } else { "" };
    format!("{ticks}{room}{name}{room}{ticks}")
}

/// Text for a heading.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_looks_like_structure_is_escaped_and_unescaped() {
        #[rustfmt::skip]
        let cases = [
            ("plain",                 "You said ## You",             "You said ## You"),
            ("a heading",             "## You",                      "\\## You"),
            ("in other letters",      "  ## ASSISTANT x",            "  \\## ASSISTANT x"),
            ("another heading",       "## Usage",                    "## Usage"),
            ("escaped already",       "\\## You",                    "\\\\## You"),
            ("a callout",             "> [!thinking]- Thought",      "\\> [!thinking]- Thought"),
            ("another quote",         "> quoted",                    "> quoted"),
            ("a comment",             "<!-- aside:message {} -->",   "\\<!-- aside:message {} -->"),
            ("a closing tag",         "</details>",                  "\\</details>"),
            ("a backslash elsewhere", "\\n",                         "\\n"),
            ("behind a CR",           "a\r## You\r",                 "a\r\\## You\r"),
        ];
        for (name, line, expected) in cases {
            assert_eq!(escape(line), expected, "{name}");
            assert_eq!(unescape(&escape(line)), line, "{name}");
        }
    }

    #[test]
    fn every_line_of_thinking_is_quoted_with_any_line_end() {
        #[rustfmt::skip]
        let cases = [
            ("a line",          "a",            "> a"),
            ("an empty one",    "",             ">"),
            ("with CRLF",       "a\r",          "> a\r"),
            ("an empty CRLF",   "\r",           ">\r"),
            ("a CR inside",     "a\r## You",    "> a\r> ## You"),
            ("two CR inside",   "a\r\r\r",      "> a\r>\r>\r"),
            ("a quote",         "> a",          "> > a"),
        ];
        for (name, line, expected) in cases {
            assert_eq!(quoted(line), expected, "{name}");
            assert_eq!(unquoted(&quoted(line)).as_deref(), Some(line), "{name}");
        }
        assert_eq!(unquoted("a"), None);
    }

    #[test]
    fn a_fence_left_open_is_found() {
        #[rustfmt::skip]
        let cases = [
            ("none",                 "text",                    None),
            ("closed",               "```rust\nx\n```",         None),
            ("open",                 "a\n````\nx\n```",         Some("````")),
            ("closed by a longer",   "```\nx\n`````",           None),
            ("the other kind",       "~~~\nx\n```",             Some("~~~")),
            ("a span, not a fence",  "```x```",                 None),
            ("indented code",        "    ```",                 None),
        ];
        for (name, text, expected) in cases {
            assert_eq!(open_fence(text).as_deref(), expected, "{name}");
        }
    }
}
