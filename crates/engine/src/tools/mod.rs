//! The model's tools, and the permission they need.
//!
//! A [`Tool`] turns a tool call into a [`PlannedCall`], the [`Permissions`] decide whether it may run, and
//! the [`Toolbox`] runs it. Each built-in tool has its own file.

mod blocking;
mod bounded_output;
mod definition;
mod diff;
mod edit;
mod file_changes;
mod files;
mod gitignore;
mod glob;
mod grep;
mod list;
mod live_output;
mod open_files;
pub mod permissions;
mod process;
mod protected;
mod read;
mod shell;
mod supervisor_handle;
mod toolbox;
mod user_command;
mod walk;
mod working_dir;
mod write;

use aside_core::block::Media;
use aside_core::conversation::ToolSpec;
pub use aside_core::permission_question::{Confinement, PermissionAnswer, PermissionQuestion, ProposedChange, Risk};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub use bounded_output::BoundedOutput;
pub use diff::unified as unified_diff;
pub use file_changes::{ChangeObserver, FileChange, FileContent, FileRestorer, PriorFile};
pub(crate) use files::image_type;
pub use live_output::LiveOutput;
pub use open_files::OpenFiles;
pub use permissions::{
    ForgetError, KnownTools, ListedRule, PermissionMode, PermissionRules, Permissions, ProjectMemory, RuleSource,
    RuleVerdict, ToolModeSwitch, server_pattern,
};
pub use supervisor_handle::SupervisorHandle;
pub(crate) use toolbox::RecordedCall;
pub use toolbox::{DuplicateTool, Switch, ToolInfo, Toolbox, UnknownTool};
pub use user_command::NewestOutput;
pub use working_dir::WorkingDir;

/// Asks the user for permission. Dropping the future counts as a denial.
pub trait Asker: Sync {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer>;

    /// Where a running call reports its output, if a front end shows it.
    fn live_output(&self, _call: &str) -> Option<LiveOutput> {
        None
    }

    /// Shows a warning, for example that an answer could not be stored.
    fn warn(&self, _what: &str) {}
}

/// For runs without a terminal.
#[derive(Debug, Clone, Copy)]
pub struct NobodyToAsk;

impl Asker for NobodyToAsk {
    fn ask(&self, _question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async { PermissionAnswer::Nobody })
    }
}

/// What a tool returned, for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    pub text: String,
    /// Images and documents, which follow the text.
    pub media: Vec<Media>,
}

/// Output without images.
impl From<String> for ToolOutput {
    fn from(text: String) -> ToolOutput {
        ToolOutput { text, media: Vec::new() }
    }
}

/// What a tool returned, or why it failed, for the model.
pub type ToolOutcome = Result<ToolOutput, String>;

/// The same for a tool that returns only text.
pub(crate) type TextOutcome = Result<String, String>;

/// A tool that the model can call.
pub trait Tool: Send + Sync {
    fn spec(&self) -> ToolSpec;

    /// The MCP server that provides the tool; `None` for a built-in tool.
    fn server(&self) -> Option<&str> {
        None
    }

    /// Whether calls of this tool can change anything.
    fn effect(&self) -> ToolEffect {
        ToolEffect::Changes
    }

    /// Takes the notices for the user since the last call. The model does not see them.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Parses a call without opening or changing anything. An error tells the model which arguments are
    /// expected.
    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String>;
}

/// Whether a tool can change anything. In the mode `read-only`, only tools that read are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    Reads,
    Changes,
}

/// A parsed tool call that has not run yet.
pub trait PlannedCall: Send {
    fn target(&self) -> CallTarget;

    /// How the process would be confined; `None` if the call starts no process.
    fn confinement(&self) -> Option<Confinement> {
        None
    }

    /// Records that the user approved this very call.
    fn set_approved(&mut self) {}

    /// Reports output while the call runs.
    fn set_live_output(&mut self, _live: LiveOutput) {}

    /// What would happen, shown with the permission question.
    fn preview(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// The whole change of the file that was previewed; `None` if the call changes no file.
    fn change(&self) -> Option<ProposedChange> {
        None
    }

    /// Runs the call. Ends soon after `cancel` is triggered.
    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome>;
}

/// Tools that finished loading after the session started.
#[derive(Default)]
pub struct LoadedTools {
    pub tools: Vec<Box<dyn Tool>>,
    /// Which tools could not be loaded, and what to do about it.
    pub notes: Vec<String>,
}

/// What a call would act on, for the permission check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTarget {
    pub subject: String,
    pub risk: Risk,
    pub answer_scope: AnswerScope,
    /// The absolute path, if the subject is a path.
    pub path: Option<String>,
    /// The protected path that it would change. Such a call always asks.
    pub protected: Option<String>,
    pub prior_approval: PriorApproval,
}

impl CallTarget {
    /// For a subject that is not a path.
    pub fn new(subject: String, risk: Risk, answer_scope: AnswerScope) -> CallTarget {
        CallTarget { subject, risk, answer_scope, path: None, protected: None, prior_approval: PriorApproval::Suffices }
    }
}

/// Whether an earlier permission, from a rule or an answer, is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PriorApproval {
    Suffices,
    /// The user is asked, unless `--yes` is given.
    Asks,
    /// The user is asked, even with `--yes`.
    AlwaysAsks,
}

/// What a remembered permission covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerScope {
    /// Any use of the tool inside the working directory.
    Tool,
    /// Any tool of this MCP server.
    Server(String),
    /// Only the same subject.
    Subject,
}
