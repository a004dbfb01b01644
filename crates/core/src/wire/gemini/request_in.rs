//! A Gemini request, bytes to messages. Both spellings of names are taken, as
//! its server takes them.

use crate::block::Block;
use crate::message::Role;
use crate::wire::incoming::{
    Gather, ToolChoice, UnreadableRequest, content, elements, image, kept, listed, output, result, text, unknown_role,
};
use crate::wire::json::{Kind, ObjectWriter, Raw, at_path, each_entry, member, text_member, text_of};

pub(in crate::wire) fn read_request(body: Raw<'_>, gather: &mut Gather) -> Result<(), UnreadableRequest> {
    let system = either(body, "systemInstruction", "system_instruction");
    gather.say(Role::System, content(system.and_then(|system| member(system, "parts")), block));
    for (path, message) in listed(body, "contents")? {
        let parts = member(message, "parts");
        match text_member(message, "role").as_deref() {
            // A single question needs no role; results may have one of their own.
            None | Some("user" | "function") => gather.say_turn(content(parts, block)),
            Some("model") => gather.answer(&answer(parts)),
            role => return Err(unknown_role(&path, role.map(str::to_owned))),
        }
    }
    for tools in member(body, "tools").map(elements).unwrap_or_default() {
        let functions = either(tools, "functionDeclarations", "function_declarations");
        for function in functions.map(elements).unwrap_or_default() {
            gather.tool(function, &["parametersJsonSchema", "parameters"]);
        }
    }
    if let Some(choice) = at_path(body, "toolConfig.functionCallingConfig") {
        let names = member(choice, "allowedFunctionNames").map(elements).unwrap_or_default();
        gather.incoming.choice = match (text_member(choice, "mode").as_deref(), names.as_slice()) {
            (Some("ANY"), [one]) => text_of(*one).map_or(ToolChoice::Any, ToolChoice::Named),
            (Some("ANY"), _) => ToolChoice::Any,
            (Some("NONE"), _) => ToolChoice::Never,
            _ => ToolChoice::Free,
        };
    }
    gather.limit(body, &["generationConfig.maxOutputTokens"]);
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
    each_entry(part, |key, value| {
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
        let response = member(given, "response").filter(|response| response.kind() == Kind::Object);
        let of = |name: &str| response.and_then(|response| member(response, name));
        let failed = of("error").is_some();
        let said = of("error").or_else(|| of("result")).or_else(|| of("output")).or(response);
        return result(id, name, output(said), failed);
    }
    let data = either(part, "inlineData", "inline_data").and_then(|data| {
        let media_type = either(data, "mimeType", "mime_type").and_then(text_of)?;
        Some((media_type, text_member(data, "data")?))
    });
    match (member(part, "text"), data) {
        (Some(words), _) => text(text_of(words)),
        (None, Some((media_type, data))) => image(media_type, data),
        (None, None) => kept(part),
    }
}
