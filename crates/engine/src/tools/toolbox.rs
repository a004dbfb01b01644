//! The tools of a session and what they may do.

use std::fmt;

use aside_core::block::{Arguments, ToolCall, ToolResult};
use aside_core::conversation::Tool as Spec;
use tokio_util::sync::CancellationToken;

use super::edit::Edit;
use super::glob::Glob;
use super::grep::Grep;
use super::list::List;
use super::permissions::{Denied, Mode, Need, Permissions, Rules};
use super::read::Read;
use super::shell::Shell;
use super::workplace::Workplace;
use super::write::Write;
use super::{Asker, Job, Outcome, Risk, Target, Tool};

pub struct Toolbox {
    specs: Vec<Spec>,
    tools: Vec<Box<dyn Tool>>,
    permissions: Permissions,
}

/// A tool of this name is there already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool `{0}`")]
pub struct Taken(pub String);

impl Toolbox {
    /// A session that only talks.
    pub fn empty() -> Toolbox {
        Toolbox::with(Permissions::new(Rules::new(), Mode::DenyAll))
    }

    /// No tools yet.
    pub fn with(permissions: Permissions) -> Toolbox {
        Toolbox { specs: Vec::new(), tools: Vec::new(), permissions }
    }

    /// The built-in tools, those that only read before the others.
    pub fn standard(work: &Workplace, permissions: Permissions) -> Toolbox {
        let rules = permissions.rules();
        let tools: Vec<Box<dyn Tool>> = vec![
            Box::new(Read(work.clone())),
            Box::new(List(work.clone())),
            Box::new(Glob(work.clone())),
            Box::new(Grep { work: work.clone(), rules }),
            Box::new(Edit(work.clone())),
            Box::new(Write(work.clone())),
            Box::new(Shell(work.clone())),
        ];
        Toolbox { specs: tools.iter().map(|tool| tool.spec()).collect(), tools, permissions }
    }

    pub fn add(&mut self, tool: Box<dyn Tool>) -> Result<(), Taken> {
        let spec = tool.spec();
        if self.specs.iter().any(|known| known.name == spec.name) {
            return Err(Taken(spec.name));
        }
        self.specs.push(spec);
        self.tools.push(tool);
        Ok(())
    }

    /// What is offered to the model.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }

    /// Runs one call. It always comes to a result: a failure is one too.
    pub async fn run(&self, call: &ToolCall, asker: &dyn Asker, cancel: &CancellationToken) -> ToolResult {
        let outcome = self.carry_out(call, asker, cancel).await;
        let is_error = outcome.is_err();
        let content = match outcome {
            Ok(content) | Err(content) => content,
        };
        ToolResult { id: call.id.as_str().to_owned(), name: call.name.clone(), content, is_error }
    }

    async fn carry_out(&self, call: &ToolCall, asker: &dyn Asker, cancel: &CancellationToken) -> Outcome {
        let tool = self.find(&call.name)?;
        let job = match &call.arguments {
            Arguments::Json(arguments) => tool.plan(arguments)?,
            Arguments::Broken(_) => return Err("the arguments are no JSON; nothing was done".to_owned()),
        };
        let job = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Denied::Interrupted.to_string()),
            cleared = self.clear(&call.name, job, asker) => cleared?,
        };
        job.run(cancel.clone()).await
    }

    /// The job, if it may be done.
    async fn clear(&self, tool: &str, mut job: Box<dyn Job>, asker: &dyn Asker) -> Result<Box<dyn Job>, String> {
        let target = job.target();
        let need = self.permissions.need(tool, &target).map_err(|denied| denied.to_string())?;
        let seen = job.look().await;
        match (need, seen) {
            (Need::Nothing, seen) => drop(seen?),
            (Need::Question, Ok(preview)) => self.question(tool, target, preview, asker).await?,
            // What stands in a file outside is not told before the user agreed.
            (Need::Question, Err(why)) if target.risk == Risk::Outside => {
                self.question(tool, target, Some(why.clone()), asker).await?;
                return Err(why);
            }
            (Need::Question, Err(why)) => return Err(why),
        }
        Ok(job)
    }

    async fn question(
        &self,
        tool: &str,
        target: Target,
        preview: Option<String>,
        asker: &dyn Asker,
    ) -> Result<(), String> {
        self.permissions.ask(tool, target, preview, asker).await.map_err(|denied| denied.to_string())
    }

    fn find(&self, name: &str) -> Result<&dyn Tool, String> {
        let found = self.specs.iter().zip(&self.tools).find(|(spec, _)| spec.name == name);
        found.map(|(_, tool)| tool.as_ref()).ok_or_else(|| {
            let known: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
            match known.is_empty() {
                true => format!("there is no tool `{name}`; there are no tools in this conversation"),
                false => format!("there is no tool `{name}`; there are: {}", known.join(", ")),
            }
        })
    }
}

impl Default for Toolbox {
    fn default() -> Toolbox {
        Toolbox::empty()
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs.iter().map(|spec| &spec.name)).finish()
    }
}
