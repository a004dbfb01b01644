//! An Anthropic Messages request, bytes to messages.

use crate::block::Block;
use crate::message::Role;
use crate::wire::incoming::{
    Gather, UnreadableRequest, content, elements, image, kept, listed, output, result, typed_part, unknown_role,
};
use crate::wire::json::{Kind, Raw, member, text_member};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    gather.say(Role::System, content(member(body, "system"), typed_part));
    for (path, message) in listed(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some("user") => gather.say_turn(content(member(message, "content"), block)),
            Some("assistant") => gather.answer(&answer(member(message, "content"))),
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    for tool in member(body, "tools").map(elements).unwrap_or_default() {
        // What the provider runs itself has no schema.
        if member(tool, "input_schema").is_some() {
            gather.tool(tool, &["input_schema"]);
        }
    }
    gather.choice_words(body);
    gather.limit(body, &["max_tokens"]);
    Ok(())
}

/// In a request the content may be a plain text; in an answer it is a list.
fn answer(content: Option<Raw<'_>>) -> String {
    let content = match content {
        Some(text) if text.kind() == Kind::Text => format!(r#"[{{"type":"text","text":{}}}]"#, text.get()),
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
            result(text("tool_use_id"), None, output(member(part, "content")), failed)
        }
        Some("image") => {
            let source = member(part, "source");
            let of = |name: &str| source.and_then(|source| text_member(source, name));
            of("media_type").zip(of("data")).map_or_else(|| kept(part), |(media_type, data)| image(media_type, data))
        }
        _ => typed_part(part),
    }
}
