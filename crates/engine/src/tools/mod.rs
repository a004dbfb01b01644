//! What the model may use, and who is asked before it does.
//!
//! A [`Tool`] makes a [`Job`] of a call, the [`Permissions`] say whether it may
//! be done, and the [`Toolbox`] does it. One file a tool.

mod blocking;
mod diff;
mod edit;
mod files;
mod form;
mod glob;
mod grep;
mod group;
mod kept;
mod list;
pub mod permissions;
mod process;
mod read;
mod shell;
mod toolbox;
mod walk;
mod workplace;
mod write;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub(crate) use files::image_type;
pub use group::Group;
pub use kept::Kept;
pub use permissions::{Mode, NotForgotten, Permissions, ProjectMemory, Ruled, Rules, Source, Verdict};
pub use toolbox::{Offered, Switch, Taken, Toolbox, UnknownTool};
pub use workplace::Workplace;

/// Something that wants the user's word before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub tool: String,
    /// What it is about: a path, a command.
    pub subject: String,
    pub risk: Risk,
    /// A diff or a command, for the user to look at.
    pub preview: Option<String>,
    /// What a yes for the session or the project would cover, as a key of
    /// `[permissions]`. Nothing where every time is asked.
    pub covers: Option<String>,
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
    /// There is nobody to ask, which is a no.
    Nobody,
}

/// Whoever can ask the user. Dropping the answer's future counts as no.
pub trait Asker {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit>;

    /// An answer could not be remembered; the user should know.
    fn trouble(&self, _what: &str) {}
}

/// For a run without a terminal.
#[derive(Debug, Clone, Copy)]
pub struct NobodyToAsk;

impl Asker for NobodyToAsk {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(async { Permit::Nobody })
    }
}

/// What a job came to, in words for the model; an error is a result too.
pub type Outcome = Result<String, String>;

/// Something the model can call.
pub trait Tool: Send + Sync {
    fn spec(&self) -> Spec;

    /// The server it belongs to; none for one of our own.
    fn server(&self) -> Option<&str> {
        None
    }

    /// What this call would do. Nothing is opened or changed yet; arguments
    /// that do not fit are answered with what is expected.
    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String>;
}

/// One call, understood and not yet done.
pub trait Job: Send {
    fn target(&self) -> Target;

    /// Looks at what would happen, for the user to see before the question.
    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async { Ok(None) })
    }

    /// Does it. It ends soon after the token is cancelled.
    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome>;
}

/// Tools that were not there when the session began.
#[derive(Default)]
pub struct Arrived {
    pub tools: Vec<Box<dyn Tool>>,
    /// What did not come, and what to do about it.
    pub notes: Vec<String>,
}

/// What a job is about, as far as permission goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub subject: String,
    pub risk: Risk,
    pub likeness: Likeness,
}

/// What counts as the same again when a yes is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// Any use of the tool inside the working directory.
    Tool,
    /// This very subject.
    Subject,
}
