//! A Bedrock Converse request, bytes to messages.

use crate::block::Block;
use crate::message::Role;
use crate::wire::incoming::{
    Gather, ToolChoice, UnreadableRequest, content, elements, image, kept, listed, output, result, text, unknown_role,
};
use crate::wire::json::{Raw, at_path, member, text_member, text_of};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    gather.say(Role::System, content(member(body, "system"), block));
    for (path, message) in listed(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some("user") => gather.say_turn(content(member(message, "content"), block)),
            Some("assistant") => gather.answer(&format!(r#"{{"output":{{"message":{}}}}}"#, message.get())),
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    for tool in at_path(body, "toolConfig.tools").map(elements).unwrap_or_default() {
        if let Some(tool) = member(tool, "toolSpec") {
            gather.tool(tool, &["inputSchema.json"]);
        }
    }
    gather.incoming.choice = match at_path(body, "toolConfig.toolChoice") {
        Some(choice) if member(choice, "any").is_some() => ToolChoice::Any,
        Some(choice) => at_path(choice, "tool.name").and_then(text_of).map_or(ToolChoice::Free, ToolChoice::Named),
        None => ToolChoice::Free,
    };
    gather.limit(body, &["inferenceConfig.maxTokens"]);
    Ok(())
}

fn block(part: Raw<'_>) -> Block {
    if let Some(given) = member(part, "toolResult") {
        let failed = text_member(given, "status").as_deref() == Some("error");
        return result(text_member(given, "toolUseId"), None, output(member(given, "content")), failed);
    }
    let picture = member(part, "image").and_then(|image| {
        let format = text_member(image, "format")?;
        Some((format!("image/{format}"), at_path(image, "source.bytes").and_then(text_of)?))
    });
    match (member(part, "text"), picture) {
        (Some(words), _) => text(text_of(words)),
        (None, Some((media_type, data))) => image(media_type, data),
        (None, None) => kept(part),
    }
}
