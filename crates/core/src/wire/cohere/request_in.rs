//! A Cohere v2 chat request, bytes to messages.

use crate::message::Role;
use crate::wire::incoming::{Gather, UnreadableRequest, content, listed, output, result, typed_part, unknown_role};
use crate::wire::json::{Kind, ObjectWriter, Raw, each_entry, member, text_member};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    for (path, message) in listed(body, "messages")? {
        let said = || content(member(message, "content"), typed_part);
        match text_member(message, "role").as_deref() {
            Some("system") => gather.say(Role::System, said()),
            Some("user") => gather.say(Role::User, said()),
            Some("assistant") => gather.answer(&format!(r#"{{"message":{}}}"#, listed_content(message))),
            Some("tool") => {
                let content = output(member(message, "content"));
                gather.say(Role::Tool, vec![result(text_member(message, "tool_call_id"), None, content, false)]);
            }
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    gather.function_tools(body);
    gather.choice_words(body);
    gather.limit(body, &["max_tokens"]);
    Ok(())
}

/// In a request the content may be a plain text; in an answer it is a list.
fn listed_content(message: Raw<'_>) -> String {
    let mut out = ObjectWriter::default();
    each_entry(message, |key, value| match (key, value.kind()) {
        ("content", Kind::Text) => out.push_raw(key, &format!(r#"[{{"type":"text","text":{}}}]"#, value.get())),
        _ => out.push_raw(key, value.get()),
    });
    out.finish()
}
