//! Reads an OpenAI Responses request. Consecutive items of the model form one
//! message.

use crate::dialect::ItemText;
use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member, member, text_member, text_of};
use crate::message::Role;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, elements, list_with_paths, text_block, tool_output,
    tool_result, typed_part, unknown_role,
};

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    reader.push_message(Role::System, content_blocks(member(body, "instructions"), typed_part));
    match member(body, "input").filter(|input| input.kind() == JsonKind::Text) {
        Some(question) => reader.push_message(Role::User, vec![text_block(text_of(question))]),
        None => items(body, reader)?,
    }
    for tool in member(body, "tools").map(elements).unwrap_or_default() {
        match text_member(tool, "type").as_deref() {
            Some("function") => reader.push_tool(tool, None, &["parameters"])?,
            _ => reader.push_native_tool(tool.get()),
        }
    }
    Ok(())
}

fn items(body: Raw<'_>, reader: &mut ClientRequestReader<'_>) -> Result<(), UnreadableRequest> {
    let mut run: Vec<String> = Vec::new();
    for (path, item) in list_with_paths(body, "input")? {
        let kind = text_member(item, "type").unwrap_or_else(|| "message".to_owned());
        let role = text_member(item, "role");
        match (kind.as_str(), role.as_deref()) {
            ("message", Some("assistant")) => run.push(as_output_message(item)),
            ("message", Some(role @ ("user" | "system" | "developer"))) => {
                flush(&mut run, reader);
                let role = if role == "user" { Role::User } else { Role::System };
                reader.push_message(role, content_blocks(member(item, "content"), typed_part));
                reader.keep_unread(item, "content", &["type", "role", "content"]);
            }
            ("message", _) => return Err(unknown_role(&path, role)),
            ("function_call_output" | "custom_tool_call_output", _) => {
                flush(&mut run, reader);
                let given = tool_output(member(item, "output"));
                reader.push_message(Role::Tool, vec![tool_result(text_member(item, "call_id"), None, given, false)]);
                reader.keep_unread(item, "output", &["type", "call_id", "output"]);
            }
            ("reasoning", _) if reader.item_text() == ItemText::Encrypted => run.push(with_plain_text(item)),
            _ => run.push(item.get().to_owned()),
        }
    }
    flush(&mut run, reader);
    Ok(())
}

fn flush(run: &mut Vec<String>, reader: &mut ClientRequestReader<'_>) {
    if !run.is_empty() {
        reader.push_assistant(&format!(r#"{{"object":"response","output":[{}]}}"#, run.join(",")));
        run.clear();
    }
}

/// Some dialects send plain text as `encrypted_content`; moves it to `content`,
/// unless the item already has text.
fn with_plain_text(item: Raw<'_>) -> String {
    let is_empty = |name: &str| member(item, name).is_none_or(|list| elements(list).is_empty());
    let text = member(item, "encrypted_content").filter(|_| is_empty("summary") && is_empty("content"));
    let Some(text) = text else { return item.get().to_owned() };
    let mut out = ObjectWriter::default();
    each_member(item, |key, value| match key {
        "content" | "encrypted_content" => (),
        _ => out.push_raw(key, value.get()),
    });
    out.push_raw("content", &format!(r#"[{{"type":"reasoning_text","text":{}}}]"#, text.get()));
    out.finish()
}

/// In a request the content may be a string and the type omitted.
fn as_output_message(item: Raw<'_>) -> String {
    let mut out = ObjectWriter::default();
    out.push("type", "\"message\"");
    each_member(item, |key, value| match (key, value.kind()) {
        ("type", _) => (),
        ("content", JsonKind::Text) => {
            out.push_raw(key, &format!(r#"[{{"type":"output_text","text":{}}}]"#, value.get()))
        }
        _ => out.push_raw(key, value.get()),
    });
    out.finish()
}
