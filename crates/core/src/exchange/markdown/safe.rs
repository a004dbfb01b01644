//! What keeps text and structure apart.

use std::borrow::Cow;

use crate::wire::json::{Kind, Raw};

/// How a line begins that is structure, looks like ours to a person, or would
/// swallow what follows it in a viewer. In small letters.
const OURS: &[&str] = &[
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

/// A line of text as it is written. To a viewer a CR ends a line as well.
pub(super) fn escape(line: &str) -> Cow<'_, str> {
    each_of(line, |line| match split(line) {
        Some((before, after)) => Cow::Owned(format!("{before}\\{after}")),
        None => Cow::Borrowed(line),
    })
}

/// The way back of [`escape`].
pub(super) fn unescape(line: &str) -> Cow<'_, str> {
    each_of(line, |line| match split(line).and_then(|(before, after)| Some((before, after.strip_prefix('\\')?))) {
        Some((before, after)) => Cow::Owned(format!("{before}{after}")),
        None => Cow::Borrowed(line),
    })
}

fn each_of<'a>(line: &'a str, change: impl Fn(&'a str) -> Cow<'a, str>) -> Cow<'a, str> {
    if !line.contains('\r') {
        return change(line);
    }
    Cow::Owned(line.split('\r').map(change).collect::<Vec<_>>().join("\r"))
}

/// A line of a thought, quoted; so is what a CR inside it begins.
pub(super) fn quoted(line: &str) -> String {
    let mark = |line: &str| if line.is_empty() { ">".to_owned() } else { format!("> {line}") };
    let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
    line.split('\r').map(mark).collect::<Vec<_>>().join("\r") + end
}

/// The way back of [`quoted`]; none for a line that is not quoted.
pub(super) fn unquoted(line: &str) -> Option<String> {
    let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
    line.strip_prefix('>')?;
    let bare = |line: &'_ str| {
        let inner = line.strip_prefix('>').unwrap_or(line);
        inner.strip_prefix(' ').unwrap_or(inner).to_owned()
    };
    Some(line.split('\r').map(bare).collect::<Vec<_>>().join("\r") + end)
}

/// A line that could be ours, cut behind its indentation. Backslashes before
/// what is ours count as part of it, so that each escape adds exactly one.
fn split(line: &str) -> Option<(&str, &str)> {
    let after = line.trim_start_matches(' ');
    let bare = after.trim_start_matches('\\');
    let is_ours = OURS.iter().any(|ours| {
        let start = bare.as_bytes().get(..ours.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(ours.as_bytes()))
    });
    is_ours.then(|| line.split_at(line.len() - after.len()))
}

/// Whether a line, as it stands in a file, ends the text before it.
pub(super) fn is_structure(line: &str) -> bool {
    line.starts_with(COMMENT) || line.starts_with(super::CALLOUT) || line.starts_with("<details>")
}

/// A comment that says what follows it.
pub(super) fn comment(kind: &str, json: &str) -> String {
    // Inside JSON these stand in strings only, and there an escape means the same.
    let json = json.replace('>', "\\u003e").replace('\n', "\\n").replace('\r', "\\r");
    if json == "{}" { format!("{COMMENT}{kind} -->") } else { format!("{COMMENT}{kind} {json} -->") }
}

/// The kind and the members of one of our comments.
pub(super) fn read_comment(line: &str) -> Option<(&str, String)> {
    let inner = line.strip_prefix(COMMENT)?.trim_end().strip_suffix("-->")?.trim_end();
    let (kind, json) = inner.split_once(' ').unwrap_or((inner, "{}"));
    let is_object = Raw::of(json).is_ok_and(|raw| raw.kind() == Kind::Object);
    Some((kind, if is_object { plain_json(json) } else { "{}".to_owned() }))
}

/// Brackets as they were before the comment. A backslash that is itself
/// escaped begins nothing.
fn plain_json(json: &str) -> String {
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

/// Content between fences that nothing in it can close.
pub(super) fn fenced(content: &str, language: &str) -> String {
    let fence = "`".repeat((longest_run(content) + 1).max(3));
    format!("{fence}{language}\n{content}\n{fence}")
}

fn longest_run(content: &str) -> usize {
    content.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// The fence that a text leaves open, as the line that closes it.
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

/// Three or more of the same, not indented as code is.
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

/// Words for a heading.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_like_ours_gets_one_backslash_and_loses_it_again() {
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
    fn every_line_of_a_thought_is_quoted_whatever_ends_it() {
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
