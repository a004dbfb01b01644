//! A Chat Completions request, bytes to messages.

use crate::message::Role;
use crate::wire::incoming::{Gather, UnreadableRequest, content, listed, output, result, typed_part, unknown_role};
use crate::wire::json::{Raw, member, text_member};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    for (path, message) in listed(body, "messages")? {
        let said = || content(member(message, "content"), typed_part);
        match text_member(message, "role").as_deref() {
            Some("system" | "developer") => gather.say(Role::System, said()),
            Some("user") => gather.say(Role::User, said()),
            Some("assistant") => gather.answer(&format!(r#"{{"choices":[{{"message":{}}}]}}"#, message.get())),
            Some("tool") => {
                let content = output(member(message, "content"));
                let (id, name) = (text_member(message, "tool_call_id"), text_member(message, "name"));
                gather.say(Role::Tool, vec![result(id, name, content, false)]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    gather.function_tools(body);
    gather.choice_words(body);
    gather.limit(body, &["max_completion_tokens", "max_tokens"]);
    Ok(())
}
