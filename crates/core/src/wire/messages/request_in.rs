//! Reads an Anthropic Messages request.

use crate::block::Block;
use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member, list_of, member, text_member};
use crate::message::Role;
use crate::wire::cache_points::{CACHE_CONTROL, marked_elements};
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, elements, list_with_paths, tool_output, tool_result,
    typed_part, unknown_role,
};

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    let system = member(body, "system");
    reader.push_message(Role::System, content_blocks(system, typed_part));
    reader.mark_last_message(marked_elements(system));
    reader.keep_unread_in_parts(system, "system");
    for (path, message) in list_with_paths(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some("user") => {
                let content = member(message, "content");
                reader.push_marked_user_turn(content_blocks(content, block), marked_elements(content));
                reader.keep_unread(message, "content", &["role", "content"]);
            }
            // Newer models accept further instructions in the middle.
            Some("system") => {
                let content = member(message, "content");
                reader.push_message(Role::System, content_blocks(content, typed_part));
                reader.mark_last_message(marked_elements(content));
                reader.keep_unread(message, "content", &["role", "content"]);
            }
            Some("assistant") => {
                let content = member(message, "content");
                reader.push_assistant(&answer(content));
                reader.mark_last_message(marked_elements(content));
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    for tool in member(body, "tools").map(elements).unwrap_or_default() {
        // Tools that the provider runs itself have no schema.
        match member(tool, "input_schema") {
            Some(_) => reader.push_tool(tool, None, &["input_schema"])?,
            None => reader.push_native_tool(tool.get()),
        }
    }
    reader.read_tools_mark();
    Ok(())
}

/// In a request the content may be a string; in a reply it is a list.
fn answer(content: Option<Raw<'_>>) -> String {
    let content = match content {
        Some(text) if text.kind() == JsonKind::Text => format!(r#"[{{"type":"text","text":{}}}]"#, text.get()),
        Some(list) => list_of(elements(list).into_iter().map(without_mark)),
        None => "[]".to_owned(),
    };
    format!(r#"{{"type":"message","role":"assistant","content":{content}}}"#)
}

/// A content block without its cache mark, which is a hint of the request.
fn without_mark(block: Raw<'_>) -> String {
    if member(block, CACHE_CONTROL).is_none() {
        return block.get().to_owned();
    }
    let mut out = ObjectWriter::default();
    each_member(block, |name, value| {
        if name != CACHE_CONTROL {
            out.push_raw(name, value.get());
        }
    });
    out.finish()
}

fn block(part: Raw<'_>) -> Block {
    let text = |name: &str| text_member(part, name);
    match text("type").as_deref() {
        Some("tool_result") => {
            let failed = member(part, "is_error").is_some_and(|value| value.get() == "true");
            tool_result(text("tool_use_id"), None, tool_output(member(part, "content")), failed)
        }
        _ => typed_part(part),
    }
}
