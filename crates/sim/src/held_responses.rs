//! Responses that clients may continue or fetch by their id.

use std::collections::{HashMap, VecDeque};

use serde_json::{Map, Value, json};

/// How many responses are held, and how many bytes in all; the oldest are dropped first.
const MAX_RESPONSES: usize = 1000;
const MAX_BYTES: usize = 64 << 20;

/// The longest conversation that can be continued.
const MAX_CHAIN: usize = 1000;

/// The responses of one simulator.
#[derive(Debug, Default)]
pub(crate) struct HeldResponses {
    by_id: HashMap<String, HeldResponse>,
    oldest_first: VecDeque<String>,
    n_bytes: usize,
}

#[derive(Debug)]
struct HeldResponse {
    /// The response before it in the conversation.
    previous: Option<String>,
    /// The items that the client sent with this request.
    input: Vec<Value>,
    /// The body of the response.
    body: String,
}

impl HeldResponse {
    fn n_bytes(&self) -> usize {
        let input: usize = self.input.iter().map(|item| item.to_string().len()).sum();
        self.body.len() + input
    }

    fn output(&self) -> Vec<Value> {
        let body: Value = serde_json::from_str(&self.body).unwrap_or_default();
        body.get("output").and_then(Value::as_array).cloned().unwrap_or_default()
    }
}

impl HeldResponses {
    pub(crate) fn hold(&mut self, id: &str, request: &Map<String, Value>, body: String) {
        let previous = request.get("previous_response_id").and_then(Value::as_str).map(str::to_owned);
        let held = HeldResponse { previous, input: input_items(request), body };
        let size = held.n_bytes();
        if size > MAX_BYTES {
            return;
        }
        self.remove(id);
        while self.by_id.len() >= MAX_RESPONSES || self.n_bytes + size > MAX_BYTES {
            let Some(oldest) = self.oldest_first.front().cloned() else { break };
            self.remove(&oldest);
        }
        self.n_bytes += size;
        self.oldest_first.push_back(id.to_owned());
        self.by_id.insert(id.to_owned(), held);
    }

    /// False if there is no such response.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let Some(held) = self.by_id.remove(id) else { return false };
        self.n_bytes = self.n_bytes.saturating_sub(held.n_bytes());
        self.oldest_first.retain(|known| known != id);
        true
    }

    pub(crate) fn body(&self, id: &str) -> Option<&str> {
        self.by_id.get(id).map(|held| held.body.as_str())
    }

    /// All items before and in the request of a response, in the form of a list page.
    pub(crate) fn input_page(&self, id: &str) -> Option<Value> {
        let held = self.by_id.get(id)?;
        let before = held.previous.as_deref().map_or(Some(Vec::new()), |previous| self.conversation(previous))?;
        let items: Vec<Value> = before.into_iter().chain(held.input.iter().cloned()).collect();
        Some(json!({ "object": "list", "data": items, "has_more": false, "first_id": null, "last_id": null }))
    }

    /// The items of a conversation up to and including a response.
    fn conversation(&self, id: &str) -> Option<Vec<Value>> {
        let mut turns = Vec::new();
        let mut next = Some(id);
        while let Some(id) = next {
            let held = self.by_id.get(id).filter(|_| turns.len() < MAX_CHAIN)?;
            turns.push(held);
            next = held.previous.as_deref();
        }
        let items = turns.iter().rev().flat_map(|held| held.input.iter().cloned().chain(held.output()));
        Some(items.collect())
    }

    /// The request with everything that its `previous_response_id` refers to. None if that
    /// response is not held.
    pub(crate) fn with_previous(&self, request: &Map<String, Value>) -> Option<Map<String, Value>> {
        let id = request.get("previous_response_id").and_then(Value::as_str)?;
        let items: Vec<Value> = self.conversation(id)?.into_iter().chain(input_items(request)).collect();
        let mut whole = request.clone();
        whole.remove("previous_response_id");
        whole.insert("input".to_owned(), Value::Array(items));
        Some(whole)
    }
}

/// The items of a request. A plain text is a user message.
fn input_items(request: &Map<String, Value>) -> Vec<Value> {
    match request.get("input") {
        Some(Value::Array(items)) => items.clone(),
        Some(Value::String(text)) => vec![json!({ "type": "message", "role": "user", "content": text })],
        Some(_) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str, previous: Option<&str>) -> Map<String, Value> {
        let request = json!({ "model": "m", "input": text, "previous_response_id": previous });
        request.as_object().cloned().expect("an object")
    }

    fn response(text: &str) -> String {
        json!({ "output": [{ "type": "message", "content": text }] }).to_string()
    }

    #[test]
    fn x4_a_conversation_is_continued_by_id() {
        let mut held = HeldResponses::default();
        held.hold("r1", &request("one", None), response("1"));
        held.hold("r2", &request("two", Some("r1")), response("2"));
        let whole = held.with_previous(&request("three", Some("r2"))).expect("it is held");
        let texts: Vec<&str> =
            whole["input"].as_array().expect("a list").iter().filter_map(|item| item["content"].as_str()).collect();
        assert_eq!(texts, ["one", "1", "two", "2", "three"]);
        assert!(!whole.contains_key("previous_response_id"));
        assert!(held.remove("r1") && !held.remove("r1"));
        assert_eq!(held.with_previous(&request("three", Some("r2"))), None);
    }

    #[test]
    fn x4_only_so_many_responses_are_held() {
        let mut held = HeldResponses::default();
        for n in 0..MAX_RESPONSES + 10 {
            held.hold(&format!("r{n}"), &request("q", None), response("a"));
        }
        assert_eq!((held.by_id.len(), held.oldest_first.len()), (MAX_RESPONSES, MAX_RESPONSES));
        assert!(held.body("r0").is_none() && held.body("r1009").is_some());
        held.hold("long", &request("q", None), response(&"x".repeat(MAX_BYTES - 100)));
        assert!(held.n_bytes <= MAX_BYTES && held.body("long").is_some(), "{}", held.n_bytes);
        held.hold("too long", &request("q", None), response(&"x".repeat(MAX_BYTES)));
        assert!(held.body("too long").is_none() && held.body("long").is_some());
        let ids: Vec<String> = held.by_id.keys().cloned().collect();
        ids.iter().for_each(|id| assert!(held.remove(id)));
        assert_eq!(held.n_bytes, 0);
    }
}
