//! The normal form of visible text: what stays equal when a client stores a
//! reply and sends it back. Version `n1`; the version is part of every key, so a
//! new form needs a new version.

use std::borrow::Cow;

use aside_core::json_text::sorted_json;
use aside_core::{Arguments, Block};

/// The version of the normal form.
pub(crate) const VERSION: &[u8] = b"n1";

/// How programs put thinking in front of an answer in the history that they keep. No model writes these itself.
pub const SHOWN_THINKING: [(&str, &str); 2] = [
    ("<details type=\"reasoning\"", "</details>"),
    // aider, in the history that it restores.
    ("<thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>", "</thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>"),
];

/// Where thinking is in an answer's text.
const THINKING_TAGS: [(&str, &str); 4] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), SHOWN_THINKING[0], SHOWN_THINKING[1]];

/// Where programs put instructions that change with every request.
const REMINDER_TAGS: [(&str, &str); 1] = [("<system-reminder>", "</system-reminder>")];

/// The visible text of a reply.
pub(crate) fn answer_text(blocks: &[Block]) -> Cow<'_, str> {
    joined(blocks, &THINKING_TAGS)
}

/// The text of several user messages, as one.
pub(crate) fn user_text<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Cow<'a, str> {
    joined(blocks, &REMINDER_TAGS)
}

/// The text of a tool result.
pub(crate) fn result_text(content: &str) -> Cow<'_, str> {
    trimmed(with_unix_lines(without_regions(Cow::Borrowed(content), &REMINDER_TAGS)))
}

/// The arguments of a call.
pub(crate) fn arguments(arguments: &Arguments) -> Cow<'_, str> {
    match arguments {
        Arguments::Json(json) => match sorted_json(json) {
            Some(sorted) => Cow::Owned(sorted),
            None => Cow::Borrowed(json.trim()),
        },
        Arguments::Broken(text) => Cow::Borrowed(text.trim()),
    }
}

/// Parts are joined without a separator, because clients split and merge them.
fn joined<'a>(blocks: impl IntoIterator<Item = &'a Block>, tags: &[(&str, &str)]) -> Cow<'a, str> {
    let mut whole: Cow<'_, str> = Cow::Borrowed("");
    for block in blocks {
        let Block::Text(text) = block else { continue };
        if whole.is_empty() {
            whole = Cow::Borrowed(&text.text);
        } else {
            whole.to_mut().push_str(&text.text);
        }
    }
    trimmed(with_unix_lines(without_regions(whole, tags)))
}

/// Leaves out everything between these tags, in one pass for each pair. A tag
/// that is never closed stays.
fn without_regions<'a>(text: Cow<'a, str>, tags: &[(&str, &str)]) -> Cow<'a, str> {
    let mut text = text;
    for (open, close) in tags {
        if !text.contains(open) {
            continue;
        }
        let mut out = String::with_capacity(text.len());
        let mut rest: &str = &text;
        while let Some((before, region)) = rest.split_once(open) {
            let Some((_, after)) = region.split_once(close) else { break };
            out.push_str(before);
            rest = after;
        }
        out.push_str(rest);
        text = Cow::Owned(out);
    }
    text
}

fn with_unix_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { text }
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
        Cow::Owned(text) if text.trim().len() == text.len() => Cow::Owned(text),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use aside_core::Text;

    use super::*;

    fn text(text: &str) -> Block {
        Block::Text(Text { text: text.to_owned(), ..Text::default() })
    }

    #[test]
    fn g2_what_clients_change_does_not_count() {
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], &str)] = &[
            ("as it is",       &["Four metres."],                               "Four metres."),
            ("space around",   &["\n Four metres. \n"],                         "Four metres."),
            ("Windows lines",  &["a\r\nb"],                                     "a\nb"),
            ("split parts",    &["Four ", "metres."],                           "Four metres."),
            ("leading tag",    &["<think>deep?</think>\n\nFour metres."],       "Four metres."),
            ("details",        &["<details type=\"reasoning\" done=\"true\">\n> deep?\n</details>\nFour metres."], "Four metres."),
            ("aider's tag",    &["\n<thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>\n\ndeep?\n\n</thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b>\n\nFour metres.\n\n"], "Four metres."),
            ("other details",  &["<details>kept</details>"],                    "<details>kept</details>"),
            ("never closed",   &["a <think>b"],                                 "a <think>b"),
            ("twice",          &["<think>1</think>a<think>2</think>b"],         "ab"),
            ("empty",          &[],                                             ""),
        ];
        for (name, parts, expected) in cases {
            let blocks: Vec<Block> = parts.iter().map(|part| text(part)).collect();
            assert_eq!(answer_text(&blocks), *expected, "{name}");
        }
        let asked = [text("How deep?\n<system-reminder>day 1</system-reminder>")];
        assert_eq!(user_text(&asked), "How deep?");
    }
}
