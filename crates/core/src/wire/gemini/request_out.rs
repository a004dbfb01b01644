//! Writes a Gemini request. A signature goes back on the part it came on; a call
//! without one of Gemini's gets the documented dummy if one is required.

use crate::block::{Block, CallId};
use crate::json_text::{ListWriter, NestedObject, ObjectWriter};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::rules::{MessagePlan, fits_in_result, result_text};
use crate::wire::media_out::gemini_part;
use crate::wire::request_draft::{
    RequestDraft, ToolLevel, arguments_object, push_tool, sent_blocks, signature, system_reminder,
};

pub(in crate::wire) fn write_request(draft: &RequestDraft<'_>) -> String {
    let mut body = ObjectWriter::default();
    draft.push_parameters(&mut body);
    if draft.has_tools() {
        body.list("tools", |tools| {
            if !draft.tools.is_empty() {
                tools.object(|out| out.list("functionDeclarations", |list| functions(draft, list)));
            }
            draft.own_native_tools().for_each(|tool| tools.push_raw(&tool.json));
        });
    }
    if let Some(system) = draft.system() {
        body.object("systemInstruction", |instruction| {
            instruction.list("parts", |parts| parts.object(|part| part.push_text("text", &system)));
        });
    }
    draft.finish_merged(body, "contents", turn_opening, parts)
}

fn functions(draft: &RequestDraft<'_>, list: &mut ListWriter<'_>) {
    for tool in draft.tools {
        list.object(|out| {
            push_tool(out, tool, "parametersJsonSchema");
            draft.push_tool_members(out, tool, None, ToolLevel::Inner);
        });
    }
}

fn turn_opening(role: Role) -> Option<&'static str> {
    match role {
        Role::Assistant => Some(r#"{"role":"model","parts":["#),
        // One content must hold as many results as the previous one held calls.
        Role::User | Role::Tool | Role::System => Some(r#"{"role":"user","parts":["#),
    }
}

fn parts(draft: &RequestDraft<'_>, message: &Message, plan: &MessagePlan, list: &mut ListWriter<'_>) {
    // The system prompt is a separate member.
    if draft.is_prompt(message) {
        return;
    }
    if let Some(text) = system_reminder(message) {
        return list.object(|out| out.push_text("text", &text));
    }
    let mut first_call = true;
    for (block, _) in sent_blocks(message, plan) {
        match block {
            Block::Text(text) if text.text.is_empty() && !(plan.seals && text.seal.is_some()) => (),
            Block::Unmodelled(unmodelled) => list.push_raw(&unmodelled.native.json),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) => {
                list.object(|out| part(draft, block, plan, &mut first_call, out));
            }
        }
    }
}

fn part(
    draft: &RequestDraft<'_>,
    block: &Block,
    plan: &MessagePlan,
    first_call: &mut bool,
    out: &mut NestedObject<'_>,
) {
    match block {
        Block::Thinking(thinking) => {
            out.push_text("text", thinking.text());
            out.push_raw("thought", "true");
            push_signature(signature(thinking), out);
        }
        Block::Text(text) => {
            out.push_text("text", &text.text);
            push_signature(text.seal.as_ref().filter(|_| plan.seals).map(|seal| seal.payload.as_str()), out);
        }
        Block::ToolCall(call) => {
            out.object("functionCall", |function| {
                // The id is sent back only if the provider gave one.
                if let CallId::Given(id) = &call.id {
                    function.push_text("id", id);
                }
                function.push_text("name", &call.name);
                function.push("args", arguments_object(&call.arguments));
            });
            let first = std::mem::replace(first_call, false);
            let seal = call.seal.as_ref().filter(|_| plan.seals).map(|seal| seal.payload.as_str());
            let dummy = draft.dummy_seal().filter(|_| first);
            push_signature(seal.or(dummy), out);
        }
        Block::ToolResult(result) => out.object("functionResponse", |response| {
            if !result.id.starts_with(CallId::INVENTED) {
                response.push_text("id", &result.id);
            }
            response.push_text("name", &result.name);
            let member = if result.is_error { "error" } else { "result" };
            response.object("response", |inner| inner.push_text(member, &result_text(Protocol::Gemini, result)));
            let media = || result.media.iter().filter(|media| fits_in_result(Protocol::Gemini, media));
            if media().next().is_some() {
                response.list("parts", |parts| {
                    media().for_each(|media| parts.object(|part| gemini_part(media, part)));
                });
            }
        }),
        Block::Media(media) => gemini_part(media, out),
        Block::Unmodelled(_) => (),
    }
}

fn push_signature(payload: Option<&str>, out: &mut NestedObject<'_>) {
    if let Some(payload) = payload {
        out.push_text("thoughtSignature", payload);
    }
}
