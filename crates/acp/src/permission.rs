//! Permission questions as requests to the client.

use aside_core::permission_question::{AnswerChoice, AnswerChoices, ProposedChange};
use aside_front::{PendingQuestion, PermissionAnswer};
use serde::Serialize;
use serde_json::Value;

use crate::session_update::{ToolCallFields, ToolContent, ToolStatus};
use crate::tool_calls;
use crate::translator::{Translator, lines_content};

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
    let option = |(choice, _)| {
        let (option_id, name, kind) = match choice {
            AnswerChoice::Once => ("once", "Allow once".to_owned(), "allow_once"),
            AnswerChoice::Session => ("session", format!("Allow `{scope}` in this session"), "allow_always"),
            AnswerChoice::Project => ("project", format!("Always allow `{scope}` in this project"), "allow_always"),
            AnswerChoice::No => ("no", "Reject".to_owned(), "reject_once"),
            // The protocol has no answer with a text.
            AnswerChoice::Message => return None,
        };
        Some(PermissionOption { option_id, name, kind })
    };
    PermissionRequest { session_id, tool_call, options: choices.iter().filter_map(option).collect() }
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
    use serde_json::json;

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
}
