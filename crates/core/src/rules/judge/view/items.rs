//! The protocol whose conversation is one list of items.

use super::{Answer, Call, Item, Sealed, Seen, Speaker, texts_in, thought};
use crate::dialect::ItemText;
use crate::wire::json::{Raw, each_element, member, text_member, text_of};

/// Items in a row that the model made are one message.
pub(super) fn responses(body: Raw<'_>, place: ItemText) -> Vec<Seen> {
    let mut seen: Vec<Seen> = Vec::new();
    let mut at = 0;
    let Some(input) = member(body, "input") else { return seen };
    let stores = member(body, "store").is_none_or(|store| store.get() != "false");
    each_element(input, |item| {
        let here = format!("input[{at}]");
        let kind = text_member(item, "type").unwrap_or_else(|| "message".to_owned());
        let by_user = text_member(item, "role").is_some_and(|role| role != "assistant");
        let speaker = match kind.as_str() {
            "function_call_output" | "custom_tool_call_output" => Speaker::Tool,
            _ if by_user => Speaker::User,
            _ => Speaker::Assistant,
        };
        if seen.last().is_none_or(|last| last.speaker != speaker || speaker == Speaker::User) {
            seen.push(Seen::new(here.clone(), at, speaker));
        }
        if let Some(run) = seen.last_mut() {
            // What is stored is compared: a message without an id is another one
            // than the thought led to.
            let made_up = stores && kind == "message" && text_member(item, "id").is_none();
            for earlier in run.thinking.iter_mut().filter(|_| !made_up) {
                earlier.is_last = false;
            }
            add(run, item, here, at, &kind, place);
        }
        at += 1;
    });
    seen
}

fn add(run: &mut Seen, item: Raw<'_>, here: String, at: usize, kind: &str, place: ItemText) {
    let text = |name: &str| text_member(item, name);
    if let Some(id) = text("id") {
        run.items.push(Item { path: here.clone(), id, kind: kind.to_owned() });
    }
    match kind {
        "reasoning" => {
            let content = member(item, "content").map(texts_in).filter(|text| !text.is_empty());
            let words = content.or_else(|| member(item, "summary").map(summary));
            let mut unit = match place {
                // Plain words stand there, where nothing else holds them.
                ItemText::Encrypted if words.as_ref().is_none_or(String::is_empty) => {
                    thought(here, text("encrypted_content"), Sealed::hidden(None))
                }
                ItemText::Encrypted | ItemText::Content => {
                    thought(here, words, Sealed::hidden(text("encrypted_content")))
                }
            };
            unit.id = text("id");
            unit.is_last = true;
            run.begins_with_thinking |= run.calls.is_empty() && run.thinking.is_empty();
            run.thinking.push(unit);
        }
        "function_call" | "custom_tool_call" => {
            let call = Call { path: here, id: text("call_id"), name: text("name").unwrap_or_default(), seal: None };
            run.push_call(call);
        }
        "function_call_output" | "custom_tool_call_output" => {
            run.results.push(Answer { path: here, at, id: text("call_id") });
        }
        "message" => {
            if let Some(content) = member(item, "content") {
                run.text.push_str(&text_of(content).unwrap_or_else(|| texts_in(content)));
            }
        }
        _ => (),
    }
}

/// The items of a summary, with an empty line between them.
fn summary(list: Raw<'_>) -> String {
    let mut texts = Vec::new();
    each_element(list, |part| texts.extend(text_member(part, "text")));
    texts.join("\n\n")
}
