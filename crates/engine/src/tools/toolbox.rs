//! The tools of a session and what they may do.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use aside_core::block::{Arguments, ToolCall, ToolResult};
use aside_core::conversation::Tool as Spec;
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::edit::Edit;
use super::glob::Glob;
use super::grep::Grep;
use super::list::List;
use super::permissions::{Allowed, Denied, Mode, Need, Permissions, Rules};
use super::read::Read;
use super::shell::Shell;
use super::workplace::Workplace;
use super::write::Write;
use super::{Asker, Job, Outcome, Question, Tool};

pub struct Toolbox {
    tools: Vec<Held>,
    /// What is offered to the model: the tools that are on.
    specs: Vec<Spec>,
    /// Of tools that are still to come.
    usual: Switch,
    permissions: Permissions,
    /// Calls run side by side, but get at a file in the order they were made.
    order: Mutex<()>,
}

struct Held {
    spec: Spec,
    tool: Arc<dyn Tool>,
    switch: Switch,
}

/// Whether the model is offered a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// A tool as the user sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offered<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// None for one of our own.
    pub server: Option<&'a str>,
    pub switch: Switch,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{0}`")]
pub struct UnknownTool(pub String);

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
        Toolbox { tools: Vec::new(), specs: Vec::new(), usual: Switch::On, permissions, order: Mutex::default() }
    }

    /// The built-in tools, those that only read before the others.
    pub fn standard(work: &Workplace, permissions: Permissions) -> Toolbox {
        let rules = permissions.rules();
        let tools: Vec<Box<dyn Tool>> = vec![
            Box::new(Read(work.clone())),
            Box::new(List(work.clone())),
            Box::new(Glob(work.clone())),
            Box::new(Grep { work: work.clone(), rules: Arc::clone(&rules) }),
            Box::new(Edit(work.clone())),
            Box::new(Write { work: work.clone(), rules: Arc::clone(&rules) }),
            Box::new(Shell::new(work.clone(), rules)),
        ];
        let mut toolbox = Toolbox::with(permissions);
        for tool in tools {
            toolbox.hold(tool.spec(), tool);
        }
        toolbox
    }

    pub fn add(&mut self, tool: Box<dyn Tool>) -> Result<(), Taken> {
        let spec = tool.spec();
        if self.tools.iter().any(|known| known.spec.name == spec.name) {
            return Err(Taken(spec.name));
        }
        self.hold(spec, tool);
        Ok(())
    }

    fn hold(&mut self, spec: Spec, tool: Box<dyn Tool>) {
        if self.usual == Switch::On {
            self.specs.push(spec.clone());
        }
        self.tools.push(Held { spec, tool: tool.into(), switch: self.usual });
    }

    /// All of them, on or off.
    pub fn list(&self) -> impl Iterator<Item = Offered<'_>> {
        self.tools.iter().map(|held| Offered {
            name: &held.spec.name,
            about: &held.spec.description,
            server: held.tool.server(),
            switch: held.switch,
        })
    }

    /// Switches one tool, or the tools of one server; all of them without a
    /// name, and those that are still to come too.
    pub fn switch(&mut self, name: Option<&str>, to: Switch) -> Result<usize, UnknownTool> {
        let is_meant = |held: &Held| name.is_none_or(|name| held.spec.name == name || held.tool.server() == Some(name));
        let mut n_meant = 0;
        for held in self.tools.iter_mut().filter(|held| is_meant(held)) {
            held.switch = to;
            n_meant += 1;
        }
        match name {
            None => self.usual = to,
            Some(name) if n_meant == 0 => return Err(UnknownTool(name.to_owned())),
            Some(_) => (),
        }
        let on = self.tools.iter().filter(|held| held.switch == Switch::On);
        self.specs = on.map(|held| held.spec.clone()).collect();
        Ok(n_meant)
    }

    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// What is offered to the model: those that are on.
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
        let arguments = match &call.arguments {
            Arguments::Json(arguments) => arguments.clone(),
            Arguments::Broken(_) => return Err("the arguments are no JSON; nothing was done".to_owned()),
        };
        let planning = Arc::clone(&tool);
        let cleared = async {
            let in_order = self.order.lock().await;
            // Reading arguments and following links takes time too.
            let job = blocking(cancel, move |_| planning.plan(&arguments)).await?;
            self.clear(call, job, asker, in_order).await
        };
        let job = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Denied::Interrupted.to_string()),
            cleared = cleared => cleared?,
        };
        let outcome = job.run(cancel.clone()).await;
        tool.notices().iter().for_each(|notice| asker.trouble(notice));
        outcome
    }

    /// The job, if it may be done.
    async fn clear(
        &self,
        call: &ToolCall,
        mut job: Box<dyn Job>,
        asker: &dyn Asker,
        in_order: MutexGuard<'_, ()>,
    ) -> Result<Box<dyn Job>, String> {
        let target = job.target();
        let need = self.permissions.need(&call.name, &target).map_err(|denied| denied.to_string())?;
        let seen = look(job.as_mut(), in_order).await;
        let question = |preview: Option<String>| Question {
            id: call.id.as_str().to_owned(),
            tool: call.name.clone(),
            subject: target.subject.clone(),
            risk: target.risk,
            preview,
            covers: None,
            confinement: job.confinement(),
            protected: target.protected.clone(),
        };
        let ask = async |preview| {
            let asked = self.permissions.ask(&target, question(preview), asker).await;
            asked.map_err(|denied| denied.to_string())
        };
        match (need, seen) {
            (Need::Nothing, seen) => drop(seen?),
            (Need::Question, Ok(preview)) => {
                if ask(preview).await? == Allowed::Asked {
                    job.approved();
                }
            }
            // What stands in a file that may not be read is not told before the
            // user agreed.
            (Need::Question, Err(why)) if !self.permissions.may_tell(&target) => {
                let _: Allowed = ask(Some(why.clone())).await?;
                return Err(why);
            }
            (Need::Question, Err(why)) => return Err(why),
        }
        Ok(job)
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Tool>, String> {
        let found = self.tools.iter().find(|held| held.spec.name == name);
        match found {
            Some(Held { tool, switch: Switch::On, .. }) => return Ok(Arc::clone(tool)),
            Some(Held { switch: Switch::Off, .. }) => return Err(format!("the user has switched `{name}` off")),
            None => (),
        }
        let known: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        Err(match known.is_empty() {
            true => format!("there is no tool `{name}`; there are no tools in this conversation"),
            false => format!("there is no tool `{name}`; there are: {}", known.join(", ")),
        })
    }
}

/// Looks, and lets the next call begin once this one stands in the queue for its
/// file.
async fn look(job: &mut dyn Job, in_order: MutexGuard<'_, ()>) -> Result<Option<String>, String> {
    let mut looking = job.look();
    let begun = poll_fn(|context| Poll::Ready(looking.as_mut().poll(context))).await;
    drop(in_order);
    match begun {
        Poll::Ready(seen) => seen,
        Poll::Pending => looking.await,
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
