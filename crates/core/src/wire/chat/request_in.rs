//! Reads a Chat Completions request.

use crate::json_text::{Raw, member, text_member};
use crate::message::Role;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, list_with_paths, tool_output, tool_result, typed_part,
    unknown_role,
};

pub(in crate::wire) fn read_request(body: Raw<'_>, reader: &mut ClientRequestReader) -> Result<(), UnreadableRequest> {
    for (path, message) in list_with_paths(body, "messages")? {
        let blocks = || content_blocks(member(message, "content"), typed_part);
        match text_member(message, "role").as_deref() {
            Some("system" | "developer") => reader.push_message(Role::System, blocks()),
            Some("user") => reader.push_message(Role::User, blocks()),
            Some("assistant") => reader.push_assistant(&format!(r#"{{"choices":[{{"message":{}}}]}}"#, message.get())),
            Some("tool") => {
                let content = tool_output(member(message, "content"));
                let (id, name) = (text_member(message, "tool_call_id"), text_member(message, "name"));
                reader.push_message(Role::Tool, vec![tool_result(id, name, content, false)]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    reader.push_function_tools(body)
}
