//! Writes a Gemini request. A signature goes back on the part it came on; a call
//! without one of Gemini's gets the documented dummy if one is required.

use crate::block::{Block, CallId};
use crate::message::{Message, Role};
use crate::rules::MessagePlan;
use crate::wire::json::{ObjectWriter, quote};
use crate::wire::request_draft::{
    RequestDraft, ToolJson, arguments_object, join_with_commas, list, object, sent_blocks, signature,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = ObjectWriter::default();
    draft.push_parameters(&mut body);
    let tools = draft.tools(|tool| {
        let ToolJson { name, description, parameters } = tool;
        object([("name", name), ("description", description), ("parametersJsonSchema", parameters)])
    });
    if let Some(tools) = tools {
        body.push_raw("tools", &list(&[object([("functionDeclarations", &tools)])]));
    }
    if let Some(system) = draft.system() {
        body.push_raw("systemInstruction", &format!(r#"{{"parts":[{{"text":{}}}]}}"#, quote(&system)));
    }
    draft.finish_merged(body, "contents", turn_opening, parts)
}

fn turn_opening(role: Role) -> Option<&'static str> {
    match role {
        Role::Assistant => Some(r#"{"role":"model","parts":["#),
        // One content must hold as many results as the previous one held calls.
        Role::User | Role::Tool | Role::System => Some(r#"{"role":"user","parts":["#),
    }
}

fn parts(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan) -> String {
    // The system prompt is a separate member.
    if message.role == Role::System {
        return String::new();
    }
    let mut first_call = true;
    join_with_commas(sent_blocks(message, plan).filter_map(|(block, _)| part(draft, block, plan, &mut first_call)))
}

fn part(draft: &RequestDraft<'_>, block: &Block, plan: &MessagePlan, first_call: &mut bool) -> Option<String> {
    let mut out = ObjectWriter::default();
    match block {
        Block::Thinking(thinking) => {
            out.push_raw("text", &quote(thinking.text()));
            out.push("thought", "true");
            push_signature(signature(thinking), &mut out);
        }
        Block::Text(text) => {
            let seal = text.seal.as_ref().filter(|_| plan.seals).map(|seal| seal.payload.as_str());
            if text.text.is_empty() && seal.is_none() {
                return None;
            }
            out.push_text("text", &text.text);
            push_signature(seal, &mut out);
        }
        Block::ToolCall(call) => {
            let mut function = ObjectWriter::default();
            // The id is sent back only if the provider gave one.
            if let CallId::Given(id) = &call.id {
                function.push("id", &quote(id));
            }
            function.push("name", &quote(&call.name));
            function.push("args", arguments_object(&call.arguments));
            out.push_raw("functionCall", &function.finish());
            let first = std::mem::replace(first_call, false);
            let seal = call.seal.as_ref().filter(|_| plan.seals).map(|seal| seal.payload.as_str());
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
