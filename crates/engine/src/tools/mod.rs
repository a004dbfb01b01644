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
mod ignored;
mod kept;
mod list;
pub mod permissions;
mod process;
mod protected;
mod read;
mod shell;
mod toolbox;
mod walk;
mod workplace;
mod write;

use aside_core::conversation::Tool as Spec;
pub use aside_core::question::{Confinement, Permit, Question, Risk};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub(crate) use files::image_type;
pub use group::Group;
pub use kept::Kept;
pub use permissions::{
    KnownTools, Mode, NotForgotten, Permissions, ProjectMemory, Ruled, Rules, Source, Verdict, server_pattern,
};
pub use toolbox::{Offered, Switch, Taken, Toolbox, UnknownTool};
pub use workplace::Workplace;

/// Whoever can ask the user. Dropping the answer's future counts as no.
pub trait Asker: Sync {
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

    /// What the person should be told since this was last asked, whatever the model
    /// is told.
    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    /// What this call would do. Nothing is opened or changed yet; arguments
    /// that do not fit are answered with what is expected.
    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String>;
}

/// One call, understood and not yet done.
pub trait Job: Send {
    fn target(&self) -> Target;

    /// How the process it would start is confined. None if it starts none.
    fn confinement(&self) -> Option<Confinement> {
        None
    }

    /// The person was asked about this very call and said yes.
    fn approved(&mut self) {}

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
    /// The whole path, where the subject is a path.
    pub path: Option<String>,
    /// The protected path that it would change, which always asks.
    pub protected: Option<String>,
    pub standing: Standing,
}

impl Target {
    /// About something that is no path.
    pub fn new(subject: String, risk: Risk, likeness: Likeness) -> Target {
        Target { subject, risk, likeness, path: None, protected: None, standing: Standing::Counts }
    }
}

/// Whether what was allowed before, by a rule or an answer, is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Counts,
    /// It asks, and `--yes` is an answer.
    Asks,
    /// It asks whatever was said before, `--yes` included.
    AlwaysAsks,
}

/// What counts as the same again when a yes is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Likeness {
    /// Any use of the tool inside the working directory.
    Tool,
    /// Any use of any tool of this server.
    Server(String),
    /// This very subject.
    Subject,
}
