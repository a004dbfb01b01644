//! Finds model servers on this machine by querying their default ports.

use std::time::Duration;

use aside_core::dialect::Access;
use aside_core::protocol::Protocol;
use aside_core::wire::Destination;
use futures_util::future::join_all;
use serde_json::Map;

use crate::http::{Http, Timeouts};
use crate::model_list;

/// A local server answers at once or does not exist.
const TIMEOUT: Duration = Duration::from_millis(400);

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
    let http = Http::new(Timeouts { connect: TIMEOUT, idle: TIMEOUT, ..Timeouts::default() });
    let asked = candidates.iter().map(|candidate| query(&http, candidate));
    let answered = tokio::time::timeout(TIMEOUT * 2, join_all(asked)).await;
    answered.unwrap_or_default().into_iter().flatten().collect()
}

async fn query(http: &Http, candidate: &ServerCandidate) -> Option<LocalServer> {
    let to = Destination {
        base_url: &candidate.base_url,
        access: &Access::default(),
        key: None,
        headers: &[],
        extra_body: &Map::new(),
    };
    let body = model_list::query(http, candidate.protocol, &to, None).await.ok()?;
    let models = model_list::read_list(&body)?.into_iter().map(|model| model.name).collect();
    Some(LocalServer { id: candidate.id.clone(), base_url: candidate.base_url.clone(), models })
}
