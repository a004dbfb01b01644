//! How to open a session.

use std::path::PathBuf;
use std::sync::Arc;

use aside_core::tool_mode::ToolMode;
use aside_engine::tools::{OpenFiles, PermissionMode};
use aside_store::SessionId;

use crate::mcp_tables::McpTable;
use crate::settings::Overrides;
use crate::single_turn::RunLimits;
use crate::stored_session::{Continuation, SessionChoice};
use crate::trust::Trust;
use crate::user_files::UserFolders;

/// How to open a session.
#[derive(Debug)]
pub struct SessionOptions {
    /// The working directory, in which tools work and to which paths are relative.
    pub folder: PathBuf,
    pub user_folders: UserFolders,
    /// As PROVIDER/MODEL; by default the one of the stored session, the settings or the environment.
    pub model: Option<String>,
    pub choice: SessionChoice,
    /// The id for a new session, from `SqliteStore::unused_id`; by default one is chosen.
    pub new_id: Option<SessionId>,
    pub continuation: Continuation,
    /// The permission mode of tools; none offers no tools.
    pub tools: Option<PermissionMode>,
    /// What tools may do without a question; none for `[tools] mode` of the config.
    pub tool_mode: Option<ToolMode>,
    /// Whether the folder's `AGENTS.md` may be sent.
    pub trust: Trust,
    pub overrides: Overrides,
    pub saving: Saving,
    pub limits: RunLimits,
    /// MCP servers besides those of config.toml, such as those of an editor.
    pub mcp_servers: Vec<McpTable>,
    /// Folders in which tools work as in the working directory, such as those of an editor.
    pub additional_folders: Vec<PathBuf>,
    /// The files that an editor has open; `read` shows their unsaved text.
    pub open_files: Option<Arc<dyn OpenFiles>>,
    /// How many tokens per second the built-in simulator sends; none for no limit.
    pub simulator_rate: Option<f64>,
}

/// Whether turns are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Saving {
    #[default]
    On,
    Off,
}

impl SessionOptions {
    /// A new session that asks before its tools change anything.
    pub fn new(folder: PathBuf, user_folders: UserFolders) -> SessionOptions {
        SessionOptions {
            folder,
            user_folders,
            model: None,
            choice: SessionChoice::New,
            new_id: None,
            continuation: Continuation::Itself,
            tools: Some(PermissionMode::Ask),
            tool_mode: None,
            trust: Trust::AsBefore,
            overrides: Overrides::default(),
            saving: Saving::On,
            limits: RunLimits::default(),
            mcp_servers: Vec::new(),
            additional_folders: Vec::new(),
            open_files: None,
            simulator_rate: None,
        }
    }
}
