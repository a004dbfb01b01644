//! Permission questions as requests to the client.

use aside_core::permission_question::{AnswerChoice, AnswerChoices, ProposedChange, QuestionKind};
use aside_front::{PendingQuestion, PermissionAnswer};
use serde::Serialize;
use serde_json::{Value, json};

use crate::session_update::{ToolCallFields, ToolContent, ToolStatus};
use crate::tool_calls;
use crate::translator::{Translator, lines_content};

/// The option after which a form is shown.
const MESSAGE_OPTION: &str = "message";

/// Whether the client shows forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithForm {
    Yes,
    No,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionRequest<'a> {
    session_id: &'a str,
    tool_call: ToolCallFields,
    options: Vec<PermissionOption>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOption {
    option_id: &'static str,
    name: String,
    kind: &'static str,
}

/// The question with all that would happen: the whole change of a file, and the lines that every front end shows.
pub(crate) fn request<'a>(
    session_id: &'a str,
    question: &PendingQuestion,
    translator: &Translator,
    with_form: WithForm,
) -> PermissionRequest<'a> {
    let about = &question.about;
    let call = translator.call(&about.id);
    let mut tool_call = match call {
        Some((id, call)) => tool_calls::with_arguments(id.to_owned(), call, translator.folder()),
        None => ToolCallFields {
            tool_call_id: format!("question-{}", question.id.0),
            title: Some(format!("{} {}", about.tool, about.subject)),
            kind: Some(tool_calls::kind(&about.tool)),
            ..ToolCallFields::default()
        },
    };
    tool_call.status = Some(ToolStatus::Pending);
    if let Some(ProposedChange { path, before, after }) = &about.change {
        let (path, old_text, new_text) = (path.clone(), before.clone(), after.clone());
        tool_call.content.push(ToolContent::Diff { path, old_text, new_text });
    }
    tool_call.content.push(lines_content(&question.lines()));
    let scope = about.rememberable_scope().unwrap_or_default();
    let choices = AnswerChoices::new(about);
    let option = |(choice, _): (AnswerChoice, _)| {
        let (option_id, name, kind) = match choice {
            AnswerChoice::Once if about.kind != QuestionKind::Permission => {
                ("once", format!("Yes, {}", choice.label(about.kind)), "allow_once")
            }
            AnswerChoice::No if about.kind == QuestionKind::Undo => {
                ("no", format!("No, {}", choice.label(about.kind)), "reject_once")
            }
            AnswerChoice::Once => ("once", "Allow once".to_owned(), "allow_once"),
            AnswerChoice::Session => ("session", format!("Allow `{scope}` in this session"), "allow_always"),
            AnswerChoice::Project => ("project", format!("Always allow `{scope}` in this project"), "allow_always"),
            AnswerChoice::No => ("no", "Reject".to_owned(), "reject_once"),
            // The protocol has no answer with a text, so a form asks for it.
            AnswerChoice::Message if with_form == WithForm::No => return None,
            AnswerChoice::Message => (MESSAGE_OPTION, "Reject, and tell the model why".to_owned(), "reject_once"),
        };
        Some(PermissionOption { option_id, name, kind })
    };
    PermissionRequest { session_id, tool_call, options: choices.iter().filter_map(option).collect() }
}

/// Whether the user wants to write a message to the model.
pub(crate) fn wants_form(result: &Result<Value, Value>) -> bool {
    let outcome = result.as_ref().ok().and_then(|result| result.get("outcome"));
    let member = |name: &str| outcome.and_then(|outcome| outcome.get(name)).and_then(Value::as_str);
    (member("outcome"), member("optionId")) == (Some("selected"), Some(MESSAGE_OPTION))
}

/// The form for a message to the model.
pub(crate) fn form(session_id: &str) -> Value {
    let reason = json!({"type": "string", "title": "Message to the model", "minLength": 1});
    json!({
        "sessionId": session_id,
        "mode": "form",
        "message": "The call is rejected. What should the model know?",
        "requestedSchema": {"type": "object", "properties": {"message": reason}, "required": ["message"]},
    })
}

/// What the user wrote into the form. Without it, the answer is a plain no.
pub(crate) fn form_answer(result: &Result<Value, Value>) -> PermissionAnswer {
    let accepted = result.as_ref().ok().filter(|result| result.get("action").and_then(Value::as_str) == Some("accept"));
    let text = accepted.and_then(|result| result.pointer("/content/message")).and_then(Value::as_str);
    PermissionAnswer::No(text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned))
}

/// The client's answer. Everything but a clear yes is a no.
pub(crate) fn answer(result: &Result<Value, Value>) -> PermissionAnswer {
    let Ok(result) = result else { return PermissionAnswer::Nobody };
    let outcome = result.get("outcome");
    let member = |name: &str| outcome.and_then(|outcome| outcome.get(name)).and_then(Value::as_str);
    match (member("outcome"), member("optionId")) {
        (Some("selected"), Some("once")) => PermissionAnswer::Once,
        (Some("selected"), Some("session")) => PermissionAnswer::Session,
        (Some("selected"), Some("project")) => PermissionAnswer::Project,
        _ => PermissionAnswer::No(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_only_a_clear_yes_allows() {
        let selected = |id: &str| Ok(json!({"outcome": {"outcome": "selected", "optionId": id}}));
        #[rustfmt::skip]
        let cases = [
            (selected("once"),                              PermissionAnswer::Once),
            (selected("session"),                           PermissionAnswer::Session),
            (selected("project"),                           PermissionAnswer::Project),
            (selected("no"),                                PermissionAnswer::No(None)),
            (selected("sudo"),                              PermissionAnswer::No(None)),
            (Ok(json!({"outcome": {"outcome": "cancelled"}})), PermissionAnswer::No(None)),
            (Ok(json!({"outcome": "selected", "optionId": "once"})), PermissionAnswer::No(None)),
            (Ok(Value::Null),                               PermissionAnswer::No(None)),
            (Err(json!({"code": -32601})),                  PermissionAnswer::Nobody),
        ];
        for (result, expected) in cases {
            assert_eq!(answer(&result), expected, "{result:?}");
        }
    }

    #[test]
    fn a1_a_form_can_only_say_no() {
        let accept = |content: Value| Ok(json!({"action": "accept", "content": content}));
        #[rustfmt::skip]
        let cases = [
            (accept(json!({"message": " use git mv "})),   Some("use git mv")),
            (accept(json!({"message": "  "})),             None),
            (accept(json!({"message": 3})),                None),
            (accept(Value::Null),                          None),
            (Ok(json!({"action": "decline"})),             None),
            (Ok(json!({"action": "decline", "content": {"message": "x"}})), None),
            (Err(json!({"code": -32601})),                 None),
        ];
        for (result, expected) in cases {
            assert_eq!(form_answer(&result), PermissionAnswer::No(expected.map(str::to_owned)), "{result:?}");
        }
    }
}
