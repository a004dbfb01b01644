//! How gateways and proxies pass a provider's refusal on.

use serde_json::{Value, json};

/// Puts a refusal into another body, with another status where the wrapper changes it.
pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    body: fn(&str) -> String,
    status: Option<u16>,
}

pub(crate) const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "plain", body: str::to_owned, status: None },
    Wrapper { name: "openrouter", body: openrouter, status: None },
    Wrapper { name: "litellm", body: litellm, status: None },
    Wrapper { name: "go proxy", body: go_proxy, status: None },
    Wrapper { name: "stream", body: stream, status: None },
    Wrapper { name: "all accounts failed", body: exhausted, status: Some(429) },
    Wrapper { name: "bad gateway", body: bad_gateway, status: Some(502) },
];

impl Wrapper {
    pub(crate) fn wrap(&self, status: u16, body: &str) -> (u16, String) {
        (self.status.unwrap_or(status), (self.body)(body))
    }
}

/// The body as a string, next to a message that says nothing.
fn openrouter(body: &str) -> String {
    let error = json!({"message": "Provider returned error", "code": 400,
        "metadata": {"raw": body, "provider_name": "Some"}});
    json!({"error": error, "user_id": "user_1"}).to_string()
}

/// The body inside a sentence.
fn litellm(body: &str) -> String {
    let message = format!("litellm.BadRequestError: SomeException - {body}. Received Model Group=m\nFallbacks=None");
    json!({"error": {"message": message, "type": null, "param": null, "code": "400"}}).to_string()
}

/// The body as the message of another.
fn go_proxy(body: &str) -> String {
    let inner: Value = json!({"error": {"message": body, "type": "<nil>", "param": "", "code": null}});
    json!({"error": {"code": 400, "message": inner.to_string(), "status": "Bad Request"}}).to_string()
}

fn stream(body: &str) -> String {
    format!("data: {body}\n\n")
}

fn exhausted(body: &str) -> String {
    json!({"error": {"message": format!("All accounts exhausted. Last error: HTTP 400: {body}"), "code": 429}})
        .to_string()
}

/// No JSON at all around it.
fn bad_gateway(body: &str) -> String {
    format!("upstream returned 400 Bad Request: {body}")
}
