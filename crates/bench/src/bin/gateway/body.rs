//! The requests that are sent, and the texts that both ends agree on.

use aside_core::protocol::Protocol;
use serde_json::{Value, json};

/// How a reply is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Stream,
    Whole,
}

impl Delivery {
    pub(crate) fn parse(word: &str) -> Option<Delivery> {
        match word {
            "stream" => Some(Delivery::Stream),
            "whole" => Some(Delivery::Whole),
            _ => None,
        }
    }
}

/// A request as a path and a body.
#[derive(Debug, Clone)]
pub(crate) struct RequestText {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// What a user says in message `at`.
fn question(at: usize) -> String {
    format!(
        "Question number {at}: how deep is the harbour at berth {at}, and may a ship of class {} moor there?",
        at % 7
    )
}

/// What the model answers to a request of `n_messages` messages (model `turn`).
pub(crate) fn answer(n_messages: usize) -> String {
    format!(
        "Answer number {n_messages}: berth {n_messages} is {} metres deep, so it may, at high tide.",
        n_messages % 13
    )
}

/// What it thinks before that.
pub(crate) fn thought(n_messages: usize) -> String {
    format!("The question has {n_messages} messages before it. Depth first, then the class of the ship.")
}

/// A conversation of `n_messages` messages, the last one from the user. The thinking is lost.
pub(crate) fn request_body(protocol: Protocol, model: &str, delivery: Delivery, n_messages: usize) -> RequestText {
    let said = |at: usize| if at.is_multiple_of(2) { (true, question(at)) } else { (false, answer(at)) };
    let messages: Vec<(bool, String)> = (0..n_messages).map(said).collect();
    let stream = delivery == Delivery::Stream;
    let role = |is_user: bool, other: &'static str| if is_user { "user" } else { other };
    let plain = |other: &'static str| -> Vec<Value> {
        let row = |(is_user, text): &(bool, String)| json!({ "role": role(*is_user, other), "content": text });
        messages.iter().map(row).collect()
    };
    let (path, body) = match protocol {
        Protocol::OpenaiChat => (
            "/v1/chat/completions".to_owned(),
            json!({ "model": model, "stream": stream, "messages": plain("assistant") }),
        ),
        Protocol::OpenaiResponses => (
            "/v1/responses".to_owned(),
            json!({ "model": model, "stream": stream, "store": false, "input": plain("assistant") }),
        ),
        Protocol::Anthropic => (
            "/v1/messages".to_owned(),
            json!({ "model": model, "stream": stream, "max_tokens": 4096, "messages": plain("assistant") }),
        ),
        Protocol::Gemini => {
            let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
            let row = |(is_user, text): &(bool, String)| json!({ "role": role(*is_user, "model"), "parts": [{ "text": text }] });
            let contents: Vec<Value> = messages.iter().map(row).collect();
            (format!("/v1beta/models/{model}:{verb}"), json!({ "contents": contents }))
        }
        Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => {
            ("/api/chat".to_owned(), json!({ "model": model, "stream": stream, "messages": plain("assistant") }))
        }
    };
    RequestText { path, body: body.to_string() }
}
