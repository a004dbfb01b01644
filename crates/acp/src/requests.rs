//! What the client asks for. Unknown members are ignored.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::prompt::PromptBlock;
use crate::rpc::{RequestId, RpcError};
use crate::translator::Notices;

/// Reads the parameters of a method.
pub(crate) fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, RpcError> {
    let params = if params.is_null() { Value::Object(Default::default()) } else { params };
    serde_json::from_value(params).map_err(|error| RpcError::invalid_params(format!("{method}: {error}")))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialize {
    #[serde(default)]
    client_capabilities: Value,
}

/// What the client can do besides what every client can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ClientAbilities {
    pub notices: Notices,
    /// It shows where older turns were replaced by a summary.
    pub compactions: bool,
    /// It shows forms, for an answer with a text.
    pub forms: bool,
    /// It reads files, including unsaved text.
    pub files: bool,
}

impl Initialize {
    /// A capability of an unknown form counts as absent.
    pub(crate) fn abilities(&self) -> ClientAbilities {
        let has =
            |path: &str| matches!(self.client_capabilities.pointer(path), Some(Value::Object(_) | Value::Bool(true)));
        ClientAbilities {
            notices: if has("/session/notices") { Notices::Shown } else { Notices::NotShown },
            compactions: has("/session/compaction"),
            forms: has("/elicitation/form"),
            files: has("/fs/readTextFile"),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NewSession {
    pub cwd: PathBuf,
    #[serde(default)]
    pub mcp_servers: Option<Vec<McpServer>>,
    #[serde(default)]
    pub additional_directories: Option<Vec<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoadSession {
    pub session_id: String,
    #[serde(flatten)]
    pub new: NewSession,
}

/// An MCP server that the editor configures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum McpServer {
    Http {
        name: String,
        url: String,
        #[serde(default)]
        headers: Vec<NameValue>,
        #[serde(rename = "type")]
        kind: String,
    },
    Stdio {
        name: String,
        command: String,
        #[serde(default)]
        args: Vec<String>,
        #[serde(default)]
        env: Vec<NameValue>,
    },
}

impl McpServer {
    pub(crate) fn check(&self) -> Result<(), RpcError> {
        match self {
            McpServer::Http { kind, name, .. } if kind != "http" => Err(RpcError::invalid_params(format!(
                "the MCP server `{name}` uses `{kind}`, which is not supported; use http or stdio"
            ))),
            McpServer::Http { .. } | McpServer::Stdio { .. } => Ok(()),
        }
    }
}

/// A variable or header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NameValue {
    pub name: String,
    pub value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OneSession {
    pub session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListSessions {
    pub cwd: Option<PathBuf>,
    pub cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Prompt {
    pub session_id: String,
    pub prompt: Vec<PromptBlock>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetConfigOption {
    pub session_id: String,
    pub config_id: String,
    pub value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetMode {
    pub session_id: String,
    pub mode_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequest {
    pub request_id: RequestId,
}
