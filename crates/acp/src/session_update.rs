//! The notifications of a session, as the protocol names them.

use serde::Serialize;
use serde_json::Value;

/// A `session/update`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum SessionUpdate {
    UserMessageChunk(Chunk),
    AgentMessageChunk(Chunk),
    AgentThoughtChunk(Chunk),
    ToolCall(ToolCallFields),
    ToolCallUpdate(ToolCallFields),
    AvailableCommandsUpdate {
        available_commands: Vec<AvailableCommand>,
    },
    CurrentModeUpdate {
        current_mode_id: &'static str,
    },
    ConfigOptionUpdate {
        config_options: Vec<ConfigOption>,
    },
    SessionInfoUpdate {
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<Meta>,
    },
    UsageUpdate {
        /// The tokens of the last request and its reply.
        used: u64,
        /// The context window.
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// Only for clients that show compactions.
    CompactionUpdate {
        compaction_id: String,
        status: &'static str,
        summary: Vec<Content>,
    },
    /// Only for clients that ask for notices.
    Notice {
        severity: NoticeSeverity,
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

/// A piece of a message or thought.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Chunk {
    pub content: Content,
    pub message_id: String,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum Content {
    Text { text: String },
    Image { data: String, mime_type: String },
    ResourceLink { name: String, uri: String },
}

/// What the protocol has no member for, under our own key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Meta {
    pub aside: AsideMeta,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AsideMeta {
    /// The message that the other members are about, where it is not named outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The position of the block in its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<ThoughtState>,
    /// The field or tag in which the thinking arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// RFC 3339, like `endedAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The item of a summary, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Whether `tokens` is an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<bool>,
    /// A line for a client that shows no notices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// For how many seconds nothing has arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_seconds: Option<u64>,
    /// How many lines a running command has written so far. Its content has only the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

impl AsideMeta {
    pub(crate) fn meta(self) -> Option<Meta> {
        Some(Meta { aside: self })
    }
}

/// How much of a thought can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ThoughtState {
    Open,
    Sealed,
    Hidden,
}

/// A tool call, or the members of it that change.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCallFields {
    pub tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ToolContent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<Value>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ToolContent {
    Content { content: Content },
    Diff { path: String, old_text: Option<String>, new_text: String },
}

impl ToolContent {
    pub(crate) fn text(text: impl Into<String>) -> ToolContent {
        ToolContent::Content { content: Content::Text { text: text.into() } }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Location {
    /// Absolute.
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AvailableCommand {
    pub name: &'static str,
    pub description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct CommandInput {
    pub hint: &'static str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cost {
    pub amount: f64,
    pub currency: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoticeSeverity {
    Info,
    Warning,
}

/// A menu of the session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOption {
    pub id: &'static str,
    pub name: &'static str,
    pub category: &'static str,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub current_value: String,
    pub options: Vec<ConfigValue>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ConfigValue {
    pub value: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'static str>,
}
