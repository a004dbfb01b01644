//! Reads an Anthropic Messages request.

use crate::block::Block;
use crate::json_text::{JsonKind, Raw, member, text_member};
use crate::message::Role;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, elements, list_with_paths, tool_output, tool_result,
    typed_part, unknown_role,
};

pub(in crate::wire) fn read_request(body: Raw<'_>, reader: &mut ClientRequestReader) -> Result<(), UnreadableRequest> {
    reader.push_message(Role::System, content_blocks(member(body, "system"), typed_part));
    for (path, message) in list_with_paths(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some("user") => reader.push_user_turn(content_blocks(member(message, "content"), block)),
            Some("assistant") => reader.push_assistant(&answer(member(message, "content"))),
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
    Ok(())
}

/// In a request the content may be a string; in a reply it is a list.
fn answer(content: Option<Raw<'_>>) -> String {
    let content = match content {
        Some(text) if text.kind() == JsonKind::Text => format!(r#"[{{"type":"text","text":{}}}]"#, text.get()),
        Some(list) => list.get().to_owned(),
        None => "[]".to_owned(),
    };
    format!(r#"{{"type":"message","role":"assistant","content":{content}}}"#)
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
