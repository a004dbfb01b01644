//! Finds model servers on this machine by querying their default ports.

use std::time::Duration;

use aside_core::protocol::Protocol;
use futures_util::future::join_all;

use crate::http::{Http, Timeouts};

/// A local server answers at once or does not exist.
const TIMEOUT: Duration = Duration::from_millis(400);
/// A longer response is not a list of models.
const MAX_BYTES: usize = 4 << 20;

/// A server that may be running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCandidate {
    /// The provider's id.
    pub id: String,
    pub protocol: Protocol,
    pub base_url: String,
}

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    pub id: String,
    pub base_url: String,
    /// The names that the server uses; empty if no model is loaded.
    pub models: Vec<String>,
}

/// Queries all candidates at once. Returns those that answer, in the given order.
pub async fn probe(candidates: &[ServerCandidate]) -> Vec<LocalServer> {
    let http = Http::new(Timeouts { connect: TIMEOUT, idle: TIMEOUT });
    let asked = candidates.iter().map(|candidate| query(&http, candidate));
    let answered = tokio::time::timeout(TIMEOUT * 2, join_all(asked)).await;
    answered.unwrap_or_default().into_iter().flatten().collect()
}

async fn query(http: &Http, candidate: &ServerCandidate) -> Option<LocalServer> {
    let url = format!("{}{}", candidate.base_url.trim_end_matches('/'), list_path(candidate.protocol)?);
    let mut answer = http.get(&url, &[]).await.ok()?;
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = answer.next_bytes(http).await {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_BYTES {
            return None;
        }
    }
    let models = models(&serde_json::from_slice(&body).ok()?)?;
    Some(LocalServer { id: candidate.id.clone(), base_url: candidate.base_url.clone(), models })
}

/// The path of the model list, for protocols that local servers use.
fn list_path(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => Some("/models"),
        Protocol::Ollama => Some("/api/tags"),
        Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock | Protocol::Cohere => None,
    }
}

/// Reads `data[].id` or `models[].name`; anything else is not a model server.
fn models(body: &serde_json::Value) -> Option<Vec<String>> {
    let names = |list: &str, name: &str| {
        let list = body.get(list)?.as_array()?;
        Some(list.iter().filter_map(|model| model.get(name)?.as_str().map(str::to_owned)).collect())
    };
    names("data", "id").or_else(|| names("models", "name"))
}
