//! Reads a Chat Completions request.

use crate::json_text::{Raw, member, text_member};
use crate::message::Role;
use crate::wire::cache_points::marked_elements;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, list_with_paths, tool_output, tool_result, typed_part,
    unknown_role,
};

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    for (path, message) in list_with_paths(body, "messages")? {
        let content = member(message, "content");
        let blocks = || content_blocks(content, typed_part);
        match text_member(message, "role").as_deref() {
            Some(role @ ("system" | "developer" | "user")) => {
                let role = if role == "user" { Role::User } else { Role::System };
                reader.push_message(role, blocks());
                reader.keep_unread(message, "content", &["role", "content"]);
            }
            Some("assistant") => reader.push_assistant(&format!(r#"{{"choices":[{{"message":{}}}]}}"#, message.get())),
            Some("tool") => {
                let (id, name) = (text_member(message, "tool_call_id"), text_member(message, "name"));
                reader.push_message(Role::Tool, vec![tool_result(id, name, tool_output(content), false)]);
                reader.keep_unread(message, "content", &["role", "content", "tool_call_id", "name"]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
        reader.mark_last_message(marked_elements(content));
    }
    reader.push_function_tools(body)
}
