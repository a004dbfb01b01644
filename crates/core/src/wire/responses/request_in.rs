//! An OpenAI Responses request, items to messages: items in a row that the
//! model made are one message.

use crate::dialect::ItemText;
use crate::message::Role;
use crate::wire::incoming::{
    Gather, UnreadableRequest, content, elements, listed, output, result, text, typed_part, unknown_role,
};
use crate::wire::json::{Kind, ObjectWriter, Raw, each_entry, member, text_member, text_of};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    gather.say(Role::System, content(member(body, "instructions"), typed_part));
    match member(body, "input").filter(|input| input.kind() == Kind::Text) {
        Some(question) => gather.say(Role::User, vec![text(text_of(question))]),
        None => items(body, gather)?,
    }
    for tool in member(body, "tools").map(elements).unwrap_or_default() {
        if text_member(tool, "type").as_deref() == Some("function") {
            gather.tool(tool, &["parameters"]);
        }
    }
    gather.choice_words(body);
    gather.limit(body, &["max_output_tokens"]);
    Ok(())
}

fn items(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    let mut run: Vec<String> = Vec::new();
    for (path, item) in listed(body, "input")? {
        let kind = text_member(item, "type").unwrap_or_else(|| "message".to_owned());
        let role = text_member(item, "role");
        match (kind.as_str(), role.as_deref()) {
            ("message", Some("assistant")) => run.push(as_answered(item)),
            ("message", Some(role @ ("user" | "system" | "developer"))) => {
                flush(&mut run, gather);
                let role = if role == "user" { Role::User } else { Role::System };
                gather.say(role, content(member(item, "content"), typed_part));
            }
            ("message", _) => return Err(unknown_role(&path, role)),
            ("function_call_output" | "custom_tool_call_output", _) => {
                flush(&mut run, gather);
                let given = output(member(item, "output"));
                gather.say(Role::Tool, vec![result(text_member(item, "call_id"), None, given, false)]);
            }
            ("reasoning", _) if gather.item_text() == ItemText::Encrypted => run.push(with_plain_words(item)),
            _ => run.push(item.get().to_owned()),
        }
    }
    flush(&mut run, gather);
    Ok(())
}

fn flush(run: &mut Vec<String>, gather: &mut Gather) {
    if !run.is_empty() {
        gather.answer(&format!(r#"{{"object":"response","output":[{}]}}"#, run.join(",")));
        run.clear();
    }
}

/// Plain words stand where others have an encrypted payload, unless the item
/// has words of its own.
fn with_plain_words(item: Raw<'_>) -> String {
    let is_empty = |name: &str| member(item, name).is_none_or(|list| elements(list).is_empty());
    let words = member(item, "encrypted_content").filter(|_| is_empty("summary") && is_empty("content"));
    let Some(words) = words else { return item.get().to_owned() };
    let mut out = ObjectWriter::default();
    each_entry(item, |key, value| match key {
        "content" | "encrypted_content" => (),
        _ => out.push_raw(key, value.get()),
    });
    out.push_raw("content", &format!(r#"[{{"type":"reasoning_text","text":{}}}]"#, words.get()));
    out.finish()
}

/// In a request the content may be a plain text and the type left out.
fn as_answered(item: Raw<'_>) -> String {
    let mut out = ObjectWriter::default();
    out.push("type", "\"message\"");
    each_entry(item, |key, value| match (key, value.kind()) {
        ("type", _) => (),
        ("content", Kind::Text) => out.push_raw(key, &format!(r#"[{{"type":"output_text","text":{}}}]"#, value.get())),
        _ => out.push_raw(key, value.get()),
    });
    out.finish()
}
