//! The status line and the lists for completion.

use aside_core::permission_question::Tier;
use aside_core::settings::ThinkingDisplay;
use serde::{Deserialize, Serialize};

/// What the status line shows. Sent as a whole whenever part of it changes, so that a loaded
/// profile changes the view at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Status {
    pub model: String,
    pub profile: Option<String>,
    pub title: Option<String>,
    pub limit: Option<u64>,
    /// The effort setting; the request may use another one.
    pub effort: Option<String>,
    /// Computed from `reasoning.display` and `reasoning.includeInResponse`.
    pub view: ThinkingDisplay,
    /// How strongly commands are confined; `None` if the user switched confinement off.
    pub tier: Option<Tier>,
}

/// Completions that only the session can list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompletionLists {
    pub models: Vec<String>,
    pub profiles: Vec<String>,
    pub files: Vec<String>,
    pub sessions: Vec<SessionCompletion>,
    /// Tools and their servers.
    pub tools: Vec<String>,
    /// Permissions that can be revoked.
    pub rules: Vec<String>,
}

/// A session id with a description, because ids say little.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionCompletion {
    pub name: String,
    pub about: String,
}
