//! Reads an Ollama chat request. Images have no media type, and tool results are
//! identified only by the tool's name.

use crate::block::{Block, Media};
use crate::json_text::{Raw, member, text_member, text_of};
use crate::message::Role;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, elements, list_with_paths, tool_output, tool_result,
    typed_part, unknown_role,
};

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    for (path, message) in list_with_paths(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some(role @ ("system" | "user")) => {
                let role = if role == "user" { Role::User } else { Role::System };
                reader.push_message(role, system_or_user(message));
                reader.keep_unread(message, "content", &["role", "content", "images"]);
            }
            Some("assistant") => reader.push_assistant(&format!(r#"{{"message":{},"done":true}}"#, message.get())),
            Some("tool") => {
                let (id, name) = (text_member(message, "tool_call_id"), text_member(message, "tool_name"));
                reader.push_message(
                    Role::Tool,
                    vec![tool_result(id, name, tool_output(member(message, "content")), false)],
                );
                reader.keep_unread(message, "content", &["role", "content", "tool_call_id", "tool_name"]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    reader.push_function_tools(body)
}

fn system_or_user(message: Raw<'_>) -> Vec<Block> {
    let mut blocks = content_blocks(member(message, "content"), typed_part);
    let images = member(message, "images").map(elements).unwrap_or_default();
    blocks.extend(
        images.into_iter().filter_map(text_of).map(|data| Block::Media(Media::image("image/*".to_owned(), data))),
    );
    blocks
}
