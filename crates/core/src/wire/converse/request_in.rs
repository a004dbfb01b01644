//! Reads a Bedrock Converse request.

use crate::block::Block;
use crate::json_text::{Raw, at_path, member, text_member, text_of};
use crate::message::Role;
use crate::parameters::CachePosition;
use crate::wire::cache_points::without_cache_points;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, elements, list_with_paths, media_or_unmodelled, text_block, tool_output,
    tool_result, unknown_role,
};

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    let (system, marks) = without_cache_points(member(body, "system"));
    reader.push_message(Role::System, system.into_iter().map(block).collect());
    reader.mark_last_message(marks);
    reader.keep_unread_in_parts(member(body, "system"), "system");
    for (path, message) in list_with_paths(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some("user") => {
                let (content, marks) = without_cache_points(member(message, "content"));
                reader.push_marked_user_turn(content.into_iter().map(block).collect(), marks);
                reader.keep_unread(message, "content", &["role", "content"]);
            }
            Some("assistant") => reader.push_assistant(&format!(r#"{{"output":{{"message":{}}}}}"#, message.get())),
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    for tool in at_path(body, "toolConfig.tools").map(elements).unwrap_or_default() {
        if let Some(point) = member(tool, "cachePoint") {
            reader.hint_at(CachePosition::Tools, text_member(point, "ttl"));
            continue;
        }
        reader.push_tool(tool, Some("toolSpec"), &["inputSchema.json"])?;
    }
    Ok(())
}

fn block(part: Raw<'_>) -> Block {
    if let Some(given) = member(part, "toolResult") {
        let failed = text_member(given, "status").as_deref() == Some("error");
        return tool_result(text_member(given, "toolUseId"), None, tool_output(member(given, "content")), failed);
    }
    match member(part, "text") {
        Some(text) => text_block(text_of(text)),
        None => media_or_unmodelled(part),
    }
}
