//! The Responses protocol, whose conversation is one list of items.

use super::{JudgedCall, JudgedItem, JudgedMessage, JudgedResult, JudgedRole, SealFields, texts_in, thinking_at};
use crate::dialect::ItemText;
use crate::json_text::{ObjectMembers, Raw, each_element, member, text_member, text_of};

/// Combines consecutive items of the model into one message.
pub(super) fn responses(body: &ObjectMembers<'_>, place: ItemText) -> Vec<JudgedMessage> {
    let mut judged: Vec<JudgedMessage> = Vec::new();
    let mut at = 0;
    let Some(input) = body.get("input") else { return judged };
    let stores = body.get("store").is_none_or(|store| store.get() != "false");
    each_element(input, |item| {
        let here = format!("input[{at}]");
        let kind = text_member(item, "type").unwrap_or_else(|| "message".to_owned());
        let by_user = text_member(item, "role").is_some_and(|role| role != "assistant");
        let role = match kind.as_str() {
            "function_call_output" | "custom_tool_call_output" => JudgedRole::Tool,
            _ if by_user => JudgedRole::User,
            _ => JudgedRole::Assistant,
        };
        if judged.last().is_none_or(|last| last.role != role || role == JudgedRole::User) {
            judged.push(JudgedMessage::new(here.clone(), at, role));
        }
        if let Some(run) = judged.last_mut() {
            // The provider compares with its store: a message without an id
            // does not count as the one that followed the thinking.
            let made_up = stores && kind == "message" && text_member(item, "id").is_none();
            for earlier in run.thinking.iter_mut().filter(|_| !made_up) {
                earlier.is_last = false;
            }
            add(run, item, here, at, &kind, place);
        }
        at += 1;
    });
    judged
}

fn add(run: &mut JudgedMessage, item: Raw<'_>, here: String, at: usize, kind: &str, place: ItemText) {
    let text = |name: &str| text_member(item, name);
    if let Some(id) = text("id") {
        run.items.push(JudgedItem { path: here.clone(), id, kind: kind.to_owned() });
    }
    match kind {
        "reasoning" => {
            let content = member(item, "content").map(texts_in).filter(|text| !text.is_empty());
            let words = content.or_else(|| member(item, "summary").map(summary));
            let mut unit = match place {
                // This field holds the plain text if no other field does.
                ItemText::Encrypted if words.as_ref().is_none_or(String::is_empty) => {
                    thinking_at(here, text("encrypted_content"), SealFields::hidden(None))
                }
                ItemText::Encrypted | ItemText::Content => {
                    thinking_at(here, words, SealFields::hidden(text("encrypted_content")))
                }
            };
            unit.id = text("id");
            unit.is_last = true;
            run.begins_with_thinking |= run.calls.is_empty() && run.thinking.is_empty();
            run.thinking.push(unit);
        }
        "function_call" | "custom_tool_call" => {
            let call =
                JudgedCall { path: here, id: text("call_id"), name: text("name").unwrap_or_default(), seal: None };
            run.push_call(call);
        }
        "function_call_output" | "custom_tool_call_output" => {
            run.results.push(JudgedResult { path: here, at, id: text("call_id") });
        }
        "message" => {
            if let Some(content) = member(item, "content") {
                run.text.push_str(&text_of(content).unwrap_or_else(|| texts_in(content)));
            }
        }
        _ => (),
    }
}

/// The items of a summary, separated by blank lines.
fn summary(list: Raw<'_>) -> String {
    let mut texts = Vec::new();
    each_element(list, |part| texts.extend(text_member(part, "text")));
    texts.join("\n\n")
}
