//! Reads a Cohere v2 chat request.

use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member, member, text_member};
use crate::message::Role;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, list_with_paths, tool_output, tool_result, typed_part,
    unknown_role,
};

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    for (path, message) in list_with_paths(body, "messages")? {
        let blocks = || content_blocks(member(message, "content"), typed_part);
        match text_member(message, "role").as_deref() {
            Some(role @ ("system" | "user")) => {
                reader.push_message(if role == "user" { Role::User } else { Role::System }, blocks());
                reader.keep_unread(message, "content", &["role", "content"]);
            }
            Some("assistant") => reader.push_assistant(&format!(r#"{{"message":{}}}"#, listed_content(message))),
            Some("tool") => {
                let content = tool_output(member(message, "content"));
                reader.push_message(
                    Role::Tool,
                    vec![tool_result(text_member(message, "tool_call_id"), None, content, false)],
                );
                reader.keep_unread(message, "content", &["role", "content", "tool_call_id"]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    reader.push_function_tools(body)
}

/// In a request the content may be a string; in a reply it is a list.
fn listed_content(message: Raw<'_>) -> String {
    let mut out = ObjectWriter::default();
    each_member(message, |key, value| match (key, value.kind()) {
        ("content", JsonKind::Text) => out.push_raw(key, &format!(r#"[{{"type":"text","text":{}}}]"#, value.get())),
        _ => out.push_raw(key, value.get()),
    });
    out.finish()
}
