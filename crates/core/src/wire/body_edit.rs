//! Changes to a body that was refused: members, blocks and messages are left
//! out, added or moved. All other bytes stay, seals included.

use crate::json_text::{
    JsonKind, JsonText, ListWriter, NestedObject, Raw, each_element, each_member, member, object_into, text_member,
};
use crate::rules::BodyEdit;

/// Applies the edits to a request body.
pub(super) fn edit_body(body: String, edits: &[BodyEdit]) -> String {
    if edits.is_empty() {
        return body;
    }
    let Ok(object) = Raw::of(&body) else { return body };
    let mut out = String::with_capacity(body.len());
    object_into(&mut out, |out| {
        each_member(object, |name, value| match (name, value.kind()) {
            ("messages" | "input" | "contents", JsonKind::Array) => {
                out.list(name, |list| each_element(value, |message| edit_message(message, edits, list)));
            }
            _ => out.push_raw(name, value.get()),
        });
    });
    out
}

fn edit_message(message: Raw<'_>, edits: &[BodyEdit], list: &mut ListWriter<'_>) {
    if message.kind() != JsonKind::Object || (edits.contains(&BodyEdit::DropEmptied) && is_emptied(message)) {
        if message.kind() != JsonKind::Object {
            list.push_raw(message.get());
        }
        return;
    }
    list.object(|out| edit_object(message, edits, out));
}

/// Writes a message, an item or a block, with its own blocks.
fn edit_object(object: Raw<'_>, edits: &[BodyEdit], out: &mut NestedObject<'_>) {
    let kind = text_member(object, "type").unwrap_or_default();
    let is_beside_text = edits.contains(&BodyEdit::DropBesideText) && has_text_and_calls(object);
    // Without a seal, the text is all that a thinking block has.
    let is_sealed = ["signature", "data", "encrypted_content"].iter().any(|seal| member(object, seal).is_some());
    let is_needed = |name: &str| {
        matches!(kind.as_str(), "thinking" | "reasoning")
            && matches!(name, "thinking" | "content" | "text")
            && !is_sealed
    };
    let omitted = |name: &str| {
        let is_named = |edit: &BodyEdit| matches!(edit, BodyEdit::OmitMember { kind: of, name: member } if *of == kind && member == name);
        (edits.iter().any(is_named) && !is_needed(name)) || (is_beside_text && THINKING_FIELDS.contains(&name))
    };
    let is_added = |name: &str| {
        edits.iter().any(
            |edit| matches!(edit, BodyEdit::AddMember { kind: of, name: added, .. } if *of == kind && added == name),
        )
    };
    each_member(object, |name, value| match (name, value.kind()) {
        _ if omitted(name) => (),
        (_, JsonKind::Null) if is_added(name) => (),
        // The documented dummy is words, not base64.
        ("thoughtSignature", JsonKind::Text)
            if edits.contains(&BodyEdit::StandardBase64)
                && value.get().bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) =>
        {
            out.push_raw(name, &value.get().replace('-', "+").replace('_', "/"));
        }
        // Blocks without a type are named after their only member.
        (_, JsonKind::Object) if paths_below(name, edits).next().is_some() => {
            let paths: Vec<&str> = paths_below(name, edits).collect();
            out.object(name, |out| without_paths(value, &paths, out));
        }
        ("content" | "parts", JsonKind::Array) => out.list(name, |list| edit_blocks(value, edits, list)),
        _ => out.push_raw(name, value.get()),
    });
    for edit in edits {
        if let BodyEdit::AddMember { kind: of, name, json } = edit
            && *of == kind
            && member(object, name).is_none_or(|value| value.kind() == JsonKind::Null)
        {
            out.push_raw(name, json);
        }
    }
}

/// The fields of a message that carry thinking.
const THINKING_FIELDS: [&str; 5] =
    ["reasoning_content", "reasoning", "reasoning_text", "thinking", "reasoning_details"];

fn has_text_and_calls(message: Raw<'_>) -> bool {
    let has_text = text_member(message, "content").is_some_and(|text| !text.trim().is_empty());
    has_text && member(message, "tool_calls").is_some()
}

/// The dotted paths that are left out below a member.
fn paths_below<'e>(kind: &'e str, edits: &'e [BodyEdit]) -> impl Iterator<Item = &'e str> {
    edits.iter().filter_map(move |edit| {
        let BodyEdit::OmitMember { kind: of, name } = edit else { return None };
        (of == kind && name.contains('.')).then_some(name.as_str())
    })
}

/// Writes the members of an object without those at some paths.
fn without_paths<'p>(object: Raw<'_>, paths: &[&'p str], out: &mut NestedObject<'_>) {
    each_member(object, |name, value| {
        if paths.contains(&name) {
            return;
        }
        let below = |path: &&'p str| path.strip_prefix(name)?.strip_prefix('.');
        let paths: Vec<&str> = paths.iter().filter_map(below).collect();
        match paths.is_empty() || value.kind() != JsonKind::Object {
            true => out.push_raw(name, value.get()),
            false => out.object(name, |out| without_paths(value, &paths, out)),
        }
    });
}

fn edit_blocks(blocks: Raw<'_>, edits: &[BodyEdit], list: &mut ListWriter<'_>) {
    let mut elements: Vec<Raw<'_>> = Vec::new();
    each_element(blocks, |block| elements.push(block));
    if edits.contains(&BodyEdit::DropEmptied) && elements.iter().any(|block| !is_empty_text(*block)) {
        elements.retain(|block| !is_empty_text(*block));
    }
    if edits.contains(&BodyEdit::ThinkingFirst) {
        elements.sort_by_key(|block| !is_thinking(*block));
    }
    for block in elements {
        if block.kind() == JsonKind::Object {
            list.object(|out| edit_object(block, edits, out));
        } else {
            list.push_raw(block.get());
        }
    }
}

fn is_empty_text(block: Raw<'_>) -> bool {
    let text = member(block, "text").and_then(JsonText::of);
    text.is_some_and(|text| text.to_owned_text().trim().is_empty())
}

fn is_thinking(block: Raw<'_>) -> bool {
    let kind = text_member(block, "type");
    matches!(kind.as_deref(), Some("thinking" | "redacted_thinking")) || member(block, "reasoningContent").is_some()
}

/// An assistant message that has neither text nor calls.
fn is_emptied(message: Raw<'_>) -> bool {
    if text_member(message, "role").as_deref() != Some("assistant") || member(message, "tool_calls").is_some() {
        return false;
    }
    match member(message, "content") {
        None => true,
        Some(content) if content.kind() == JsonKind::Array => {
            let mut is_emptied = true;
            each_element(content, |block| is_emptied &= is_thinking(block) || is_empty_text(block));
            is_emptied
        }
        Some(_) => text_member(message, "content").is_none_or(|text| text.trim().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e11_an_edit_changes_what_it_names_and_nothing_else() {
        let omit = |kind: &str, name: &str| BodyEdit::OmitMember { kind: kind.to_owned(), name: name.to_owned() };
        let add = BodyEdit::AddMember { kind: "reasoning".into(), name: "summary".into(), json: "[]".into() };
        #[rustfmt::skip]
        let cases = [
            ("a member of a block", omit("thinking", "x"),
                r#"{"n":1.0,"messages":[{"role":"assistant","content":[{"type":"thinking","x":1,"signature":"\u0041"},{"type":"text","x":2}]}]}"#,
                r#"{"n":1.0,"messages":[{"role":"assistant","content":[{"type":"thinking","signature":"\u0041"},{"type":"text","x":2}]}]}"#),
            ("a member of an item", omit("reasoning", "content"),
                r#"{"input":[{"type":"reasoning","content":[],"encrypted_content":"e"},{"type":"reasoning","content":[1]},{"type":"message","content":[]}]}"#,
                r#"{"input":[{"type":"reasoning","encrypted_content":"e"},{"type":"reasoning","content":[1]},{"type":"message","content":[]}]}"#),
            ("a missing member", add,
                r#"{"input":[{"type":"reasoning","id":"r"},{"type":"reasoning","summary":[1]},{"type":"reasoning","summary":null}]}"#,
                r#"{"input":[{"type":"reasoning","id":"r","summary":[]},{"type":"reasoning","summary":[1]},{"type":"reasoning","summary":[]}]}"#),
            ("emptied messages", BodyEdit::DropEmptied,
                r#"{"messages":[{"role":"user","content":""},{"role":"assistant","content":""},{"role":"assistant","content":[{"type":"thinking"}]},{"role":"assistant","content":[{"type":"text","text":" "},{"type":"tool_use"}]},{"role":"assistant","content":null,"tool_calls":[]}]}"#,
                r#"{"messages":[{"role":"user","content":""},{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"assistant","content":null,"tool_calls":[]}]}"#),
            ("a member below a block", omit("reasoningContent", "reasoningText.signature"),
                r#"{"messages":[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"toolUse":{"input":{"signature":1}}}]}]}"#,
                r#"{"messages":[{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t"}}},{"toolUse":{"input":{"signature":1}}}]}]}"#),
            ("thinking beside text and calls", BodyEdit::DropBesideText,
                r#"{"messages":[{"role":"assistant","content":"a","reasoning_content":"t","tool_calls":[]},{"role":"assistant","content":null,"reasoning_content":"t","tool_calls":[]},{"role":"assistant","content":"a","reasoning_content":"t"}]}"#,
                r#"{"messages":[{"role":"assistant","content":"a","tool_calls":[]},{"role":"assistant","content":null,"reasoning_content":"t","tool_calls":[]},{"role":"assistant","content":"a","reasoning_content":"t"}]}"#),
            ("the order", BodyEdit::ThinkingFirst,
                r#"{"messages":[{"role":"assistant","content":[{"text":"a"},{"reasoningContent":{}},{"toolUse":{}}]}]}"#,
                r#"{"messages":[{"role":"assistant","content":[{"reasoningContent":{}},{"text":"a"},{"toolUse":{}}]}]}"#),
        ];
        for (name, edit, body, expected) in cases {
            assert_eq!(edit_body(body.to_owned(), &[edit]), expected, "{name}");
        }
    }
}
