//! The status line and the completion lists.

use aside_core::permission_question::Tier;
use aside_core::settings::{Notify, ScreenTheme, ThinkingDisplay};
use aside_core::tool_mode::ToolMode;
use serde::{Deserialize, Serialize};

use crate::command::MouseMode;

/// What the status line shows. Sent as a whole whenever part of it changes, so that a loaded
/// profile changes the view at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Status {
    pub model: String,
    pub profile: Option<String>,
    pub title: Option<String>,
    /// The id of the stored session; `None` before the first message.
    #[serde(default)]
    pub session: Option<String>,
    pub limit: Option<u64>,
    /// The effort setting; the request may use another one.
    pub effort: Option<String>,
    /// Computed from `reasoning.display` and `reasoning.includeInResponse`.
    pub view: ThinkingDisplay,
    /// The effort levels that the model accepts; empty if none is ever sent to it.
    #[serde(default)]
    pub efforts: Vec<String>,
    /// The user switched thinking off.
    #[serde(default)]
    pub thinking_is_off: bool,
    /// The sandbox tier of commands; `None` if the user switched the sandbox off.
    pub tier: Option<Tier>,
    /// What tools may do without a question; `None` if there are no tools.
    #[serde(default)]
    pub mode: Option<ToolMode>,
    /// What the requests of this run have cost; `None` if no price is known.
    #[serde(default)]
    pub cost: Option<CostSoFar>,
    /// The name of the working directory.
    #[serde(default)]
    pub folder: Option<String>,
    /// The git branch that is checked out there.
    #[serde(default)]
    pub branch: Option<String>,
    /// What the next request would be; `None` if nothing new is known about it, such as while a turn runs.
    #[serde(default)]
    pub next: Option<NextRequest>,
    #[serde(default)]
    pub screen: ScreenSettings,
}

/// What the next request would be if it were sent now.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextRequest {
    /// The effort in the request, which may differ from the setting.
    pub effort: Option<String>,
    /// The tokens of the conversation so far.
    pub tokens: u64,
    /// Whether the provider counted them.
    pub is_exact: bool,
}

/// The settings of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenSettings {
    pub notify: Notify,
    /// The widest line of text, in columns.
    pub prose_width: u64,
    pub theme: ScreenTheme,
    pub mouse: MouseMode,
}

impl Default for ScreenSettings {
    fn default() -> ScreenSettings {
        ScreenSettings {
            notify: Notify::default(),
            prose_width: 100,
            theme: ScreenTheme::default(),
            mouse: MouseMode::Captured,
        }
    }
}

/// A sum of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CostSoFar {
    /// Millionths of a US dollar.
    pub microdollars: u64,
    /// False if some requests had no price.
    pub is_exact: bool,
}

impl std::fmt::Display for CostSoFar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let over = if self.is_exact { "" } else { "over " };
        write!(f, "{over}${:.4}", self.microdollars as f64 / 1e6)
    }
}

/// Completions that only the session can list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompletionLists {
    pub models: Vec<String>,
    /// Those of them whose provider has no key.
    #[serde(default)]
    pub models_without_key: Vec<String>,
    pub profiles: Vec<String>,
    pub files: Vec<String>,
    pub sessions: Vec<SessionCompletion>,
    /// Tools and their servers.
    pub tools: Vec<String>,
    /// Permissions that can be revoked.
    pub rules: Vec<String>,
    /// The effort levels of the model, as in the status.
    #[serde(default)]
    pub efforts: Vec<String>,
    /// The user's own commands.
    #[serde(default)]
    pub commands: Vec<OwnCommand>,
}

/// A command that the user wrote: a file in `commands/` of the config folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OwnCommand {
    /// Without the slash.
    pub name: String,
    pub about: String,
}

/// A session id with a description, because ids say little.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionCompletion {
    pub name: String,
    pub about: String,
    /// When it was used last, in the user's time zone. Empty if unknown.
    #[serde(default)]
    pub when: String,
    /// Where it began, if it belongs to another project.
    #[serde(default)]
    pub folder: Option<String>,
}
