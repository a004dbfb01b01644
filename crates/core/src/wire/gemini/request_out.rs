//! A Gemini request. A signature goes back on the very part it came on; a
//! call that has none of ours gets the documented dummy where one is needed.

use crate::block::{Block, CallId};
use crate::message::{Message, Role};
use crate::rules::Step;
use crate::wire::draft::{Draft, ToolWords, arguments_object, joined, list, object, sent, signature};
use crate::wire::json::{ObjectWriter, quote};

pub(in crate::wire) fn write(draft: &Draft<'_>) -> String {
    let mut body = ObjectWriter::default();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolWords { name, description, parameters } = tool;
        object([("name", name), ("description", description), ("parametersJsonSchema", parameters)])
    });
    if let Some(tools) = tools {
        body.push_raw("tools", &list(&[object([("functionDeclarations", &tools)])]));
    }
    if let Some(system) = draft.system() {
        body.push_raw("systemInstruction", &format!(r#"{{"parts":[{{"text":{}}}]}}"#, quote(&system)));
    }
    draft.finish_runs(body, "contents", speaker, parts)
}

fn speaker(role: Role) -> Option<&'static str> {
    match role {
        Role::Assistant => Some(r#"{"role":"model","parts":["#),
        // As many results in one content as there were calls in the last.
        Role::User | Role::Tool | Role::System => Some(r#"{"role":"user","parts":["#),
    }
}

fn parts(draft: &Draft<'_>, message: &Message, step: &Step) -> String {
    // The system prompt has a place of its own.
    if message.role == Role::System {
        return String::new();
    }
    let mut first_call = true;
    joined(sent(message, step).filter_map(|(block, _)| part(draft, block, step, &mut first_call)))
}

fn part(draft: &Draft<'_>, block: &Block, step: &Step, first_call: &mut bool) -> Option<String> {
    let mut out = ObjectWriter::default();
    match block {
        Block::Thinking(thinking) => {
            out.push_raw("text", &quote(thinking.text()));
            out.push("thought", "true");
            push_signature(signature(thinking), &mut out);
        }
        Block::Text(text) => {
            let seal = text.seal.as_ref().filter(|_| step.seals).map(|seal| seal.payload.as_str());
            if text.text.is_empty() && seal.is_none() {
                return None;
            }
            out.push_text("text", &text.text);
            push_signature(seal, &mut out);
        }
        Block::ToolCall(call) => {
            let mut function = ObjectWriter::default();
            // An id is echoed only where one was given.
            if let CallId::Given(id) = &call.id {
                function.push("id", &quote(id));
            }
            function.push("name", &quote(&call.name));
            function.push("args", arguments_object(&call.arguments));
            out.push_raw("functionCall", &function.finish());
            let first = std::mem::replace(first_call, false);
            let seal = call.seal.as_ref().filter(|_| step.seals).map(|seal| seal.payload.as_str());
            let dummy = draft.dummy_seal().filter(|_| first);
            push_signature(seal.or(dummy), &mut out);
        }
        Block::ToolResult(result) => {
            let mut response = ObjectWriter::default();
            if !result.id.starts_with(CallId::INVENTED) {
                response.push("id", &quote(&result.id));
            }
            response.push("name", &quote(&result.name));
            let member = if result.is_error { "error" } else { "result" };
            response.push_raw("response", &object([(member, &quote(&result.content))]));
            out.push_raw("functionResponse", &response.finish());
        }
        Block::Image(image) => {
            let data = object([("mimeType", &quote(&image.media_type)), ("data", &quote(&image.data))]);
            out.push_raw("inlineData", &data);
        }
        Block::Unmodelled(unmodelled) => return Some(unmodelled.native.json.clone()),
    }
    Some(out.finish())
}

fn push_signature(payload: Option<&str>, out: &mut ObjectWriter) {
    if let Some(payload) = payload {
        out.push("thoughtSignature", &quote(payload));
    }
}
