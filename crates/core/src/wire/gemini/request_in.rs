//! Reads a Gemini request. Names may be in camel case or snake case, as Google's
//! server accepts both.

use crate::block::Block;
use crate::json_text::{JsonKind, ObjectWriter, Raw, each_member, member, text_member, text_of};
use crate::message::Role;
use crate::wire::client_request::{
    ClientRequestReader, UnreadableRequest, content_blocks, elements, list_with_paths, media_or_unmodelled, text_block,
    tool_output, tool_result, unknown_role,
};
use crate::wire::media_in::read_media_part;

pub(in crate::wire) fn read_request(
    body: Raw<'_>,
    reader: &mut ClientRequestReader<'_>,
) -> Result<(), UnreadableRequest> {
    let system = either(body, "systemInstruction", "system_instruction");
    let instructions = system.and_then(|system| member(system, "parts"));
    reader.push_message(Role::System, content_blocks(instructions, block));
    reader.keep_unread_in_parts(instructions, "parts");
    for (path, message) in list_with_paths(body, "contents")? {
        let parts = member(message, "parts");
        match text_member(message, "role").as_deref() {
            // A single question needs no role; tool results may have the role
            // `function`.
            None | Some("user" | "function") => {
                reader.push_user_turn(content_blocks(parts, block));
                reader.keep_unread(message, "parts", &["role", "parts"]);
            }
            Some("model") => reader.push_assistant(&answer(parts)),
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    for tools in member(body, "tools").map(elements).unwrap_or_default() {
        let functions = either(tools, "functionDeclarations", "function_declarations");
        for function in functions.map(elements).unwrap_or_default() {
            reader.push_tool(function, None, &["parametersJsonSchema", "parameters"])?;
        }
        let mut others = ObjectWriter::default();
        each_member(tools, |name, value| {
            if !matches!(name, "functionDeclarations" | "function_declarations") {
                others.push(name, value.get());
            }
        });
        if !others.written().is_empty() {
            reader.push_native_tool(&others.finish());
        }
    }
    Ok(())
}

fn either<'a>(object: Raw<'a>, camel: &str, snake: &str) -> Option<Raw<'a>> {
    member(object, camel).or_else(|| member(object, snake))
}

fn answer(parts: Option<Raw<'_>>) -> String {
    let parts: Vec<String> = parts.map(elements).unwrap_or_default().into_iter().map(in_camel_case).collect();
    format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{}]}}}}]}}"#, parts.join(","))
}

fn in_camel_case(part: Raw<'_>) -> String {
    let mut out = ObjectWriter::default();
    each_member(part, |key, value| {
        let key = match key {
            "function_call" => "functionCall",
            "thought_signature" => "thoughtSignature",
            key => key,
        };
        out.push_raw(key, value.get());
    });
    out.finish()
}

fn block(part: Raw<'_>) -> Block {
    if let Some(given) = either(part, "functionResponse", "function_response") {
        let (id, name) = (text_member(given, "id"), text_member(given, "name"));
        let response = member(given, "response").filter(|response| response.kind() == JsonKind::Object);
        let of = |name: &str| response.and_then(|response| member(response, name));
        let failed = of("error").is_some();
        let output = of("error").or_else(|| of("result")).or_else(|| of("output")).or(response);
        let (text, mut media) = tool_output(output);
        media.extend(member(given, "parts").map(elements).unwrap_or_default().into_iter().filter_map(read_media_part));
        return tool_result(id, name, (text, media), failed);
    }
    match member(part, "text") {
        Some(text) => text_block(text_of(text)),
        None => media_or_unmodelled(part),
    }
}
