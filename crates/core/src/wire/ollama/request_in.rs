//! An Ollama chat request, bytes to messages. Images have no type, and results
//! say whose they are by the name of the tool only.

use crate::block::Block;
use crate::message::Role;
use crate::wire::incoming::{
    Gather, UnreadableRequest, content, elements, image, listed, output, result, typed_part, unknown_role,
};
use crate::wire::json::{Raw, member, text_member, text_of};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    for (path, message) in listed(body, "messages")? {
        match text_member(message, "role").as_deref() {
            Some("system") => gather.say(Role::System, spoken(message)),
            Some("user") => gather.say(Role::User, spoken(message)),
            Some("assistant") => gather.answer(&format!(r#"{{"message":{},"done":true}}"#, message.get())),
            Some("tool") => {
                let (id, name) = (text_member(message, "tool_call_id"), text_member(message, "tool_name"));
                gather.say(Role::Tool, vec![result(id, name, output(member(message, "content")), false)]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    gather.function_tools(body);
    gather.limit(body, &["options.num_predict"]);
    Ok(())
}

fn spoken(message: Raw<'_>) -> Vec<Block> {
    let mut blocks = content(member(message, "content"), typed_part);
    let images = member(message, "images").map(elements).unwrap_or_default();
    blocks.extend(images.into_iter().filter_map(text_of).map(|data| image("image/*".to_owned(), data)));
    blocks
}
