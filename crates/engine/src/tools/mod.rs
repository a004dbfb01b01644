//! What the model may use.

use aside_core::block::{ToolCall, ToolResult};
use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

/// Something that wants the user's word before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub tool: String,
    /// What it is about: a path, a command.
    pub subject: String,
    pub risk: Risk,
    /// A diff or a command, for the user to look at.
    pub preview: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    Reads,
    Writes,
    Runs,
    /// Reaches beyond the working directory, which is always asked.
    Outside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    Once,
    /// For everything like it in this session.
    Session,
    /// For everything like it in this project, from now on.
    Project,
    /// No, with a word to the model if the user has one.
    No(Option<String>),
}

/// Whoever can ask the user. Dropping the answer's future counts as no.
pub trait Asker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit>;
}

/// The tools of a session and what they may do.
#[derive(Debug, Default)]
pub struct Toolbox {
    specs: Vec<Spec>,
}

impl Toolbox {
    /// A session that only talks.
    pub fn empty() -> Toolbox {
        Toolbox::default()
    }

    /// What is offered to the model.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// Runs one call. It always comes to a result: a failure is one too.
    pub async fn run(&self, call: &ToolCall, _asker: &dyn Asker, _cancel: &CancellationToken) -> ToolResult {
        let known: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        let content = match known.is_empty() {
            true => format!("there is no tool `{}`; there are no tools in this conversation", call.name),
            false => format!("there is no tool `{}`; there are: {}", call.name, known.join(", ")),
        };
        ToolResult { id: call.id.as_str().to_owned(), name: call.name.clone(), content, is_error: true }
    }
}
