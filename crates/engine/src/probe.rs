//! Which model servers run on this machine, found by a fast look at their
//! usual ports.

use std::time::Duration;

use aside_core::protocol::Protocol;
use futures_util::future::join_all;

use crate::http::{Http, Timeouts};

/// A server on this machine answers at once or is not there.
const PATIENCE: Duration = Duration::from_millis(400);
/// A list of models is short; what is longer is none.
const MOST_BYTES: usize = 4 << 20;

/// Where a server may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The provider's id.
    pub id: String,
    pub protocol: Protocol,
    pub base_url: String,
}

/// A server that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub id: String,
    pub base_url: String,
    /// As the server knows them; it may have none loaded.
    pub models: Vec<String>,
}

/// Asks all at once; those that answer, in the order they were named.
pub async fn probe(candidates: &[Candidate]) -> Vec<Found> {
    let http = Http::new(Timeouts { connect: PATIENCE, idle: PATIENCE });
    let asked = candidates.iter().map(|candidate| ask(&http, candidate));
    let answered = tokio::time::timeout(PATIENCE * 2, join_all(asked)).await;
    answered.unwrap_or_default().into_iter().flatten().collect()
}

async fn ask(http: &Http, candidate: &Candidate) -> Option<Found> {
    let url = format!("{}{}", candidate.base_url.trim_end_matches('/'), list_path(candidate.protocol)?);
    let mut answer = http.get(&url, &[]).await.ok()?;
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = answer.bytes(http).await {
        body.extend_from_slice(&bytes);
        if body.len() > MOST_BYTES {
            return None;
        }
    }
    let models = models(&serde_json::from_slice(&body).ok()?)?;
    Some(Found { id: candidate.id.clone(), base_url: candidate.base_url.clone(), models })
}

/// Where a server lists its models, for protocols that local servers speak.
fn list_path(protocol: Protocol) -> Option<&'static str> {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => Some("/models"),
        Protocol::Ollama => Some("/api/tags"),
        Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock | Protocol::Cohere => None,
    }
}

/// `data[].id` or `models[].name`; anything else is some other server.
fn models(body: &serde_json::Value) -> Option<Vec<String>> {
    let names = |list: &str, name: &str| {
        let list = body.get(list)?.as_array()?;
        Some(list.iter().filter_map(|model| model.get(name)?.as_str().map(str::to_owned)).collect())
    };
    names("data", "id").or_else(|| names("models", "name"))
}
