//! The tools of a session.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use aside_core::block::{Arguments, Block, ToolCall, ToolResult};
use aside_core::conversation::ToolSpec;
use aside_core::message::{Message, Role};
use aside_core::tool_mode::ToolMode;
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::blocking::blocking;
use super::edit::EditTool;
use super::glob::GlobTool;
use super::grep::GrepTool;
use super::list::ListTool;
use super::permissions::{Denial, GrantedBy, PermissionMode, PermissionNeed, PermissionRules, Permissions};
use super::read::ReadTool;
use super::shell::ShellTool;
use super::working_dir::WorkingDir;
use super::write::WriteTool;
use super::{Asker, PermissionQuestion, PlannedCall, Tool, ToolEffect, ToolOutcome, ToolOutput};

pub struct Toolbox {
    tools: Vec<RegisteredTool>,
    /// The tools that are on, as offered to the model.
    specs: Vec<ToolSpec>,
    /// Those of them that only read.
    reading_specs: Vec<ToolSpec>,
    /// For tools that are added later.
    default_switch: Switch,
    permissions: Permissions,
    /// Calls run concurrently, but access a file in the order in which they were made.
    order: Mutex<()>,
}

struct RegisteredTool {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
    switch: Switch,
}

/// A tool call of a recorded message, shared with the thread that reads its arguments.
pub(crate) struct RecordedCall {
    pub(crate) message: Arc<Message>,
    /// The index of its block.
    pub(crate) at: usize,
}

impl RecordedCall {
    pub(crate) fn call(&self) -> Option<&ToolCall> {
        match self.message.blocks.get(self.at) {
            Some(Block::ToolCall(call)) => Some(call),
            _ => None,
        }
    }
}

/// Whether a tool is offered to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// A tool as shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolInfo<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// `None` for a built-in tool.
    pub server: Option<&'a str>,
    pub switch: Switch,
    pub effect: ToolEffect,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool `{0}`")]
pub struct UnknownTool(pub String);

/// A tool with this name already exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is already a tool `{0}`")]
pub struct DuplicateTool(pub String);

impl Toolbox {
    /// For a session without tools.
    pub fn empty() -> Toolbox {
        Toolbox::with_permissions(Permissions::new(PermissionRules::new(), PermissionMode::DenyAll))
    }

    /// A toolbox without tools.
    pub fn with_permissions(permissions: Permissions) -> Toolbox {
        Toolbox {
            tools: Vec::new(),
            specs: Vec::new(),
            reading_specs: Vec::new(),
            default_switch: Switch::On,
            permissions,
            order: Mutex::default(),
        }
    }

    /// The built-in tools, with those that only read first.
    pub fn standard(work: &WorkingDir, permissions: Permissions) -> Toolbox {
        let rules = permissions.rules();
        let tools: Vec<Box<dyn Tool>> = vec![
            Box::new(ReadTool(work.clone())),
            Box::new(ListTool(work.clone())),
            Box::new(GlobTool(work.clone())),
            Box::new(GrepTool { work: work.clone(), rules: Arc::clone(&rules) }),
            Box::new(EditTool(work.clone())),
            Box::new(WriteTool { work: work.clone(), rules: Arc::clone(&rules) }),
            Box::new(ShellTool::new(work.clone(), rules)),
        ];
        let mut toolbox = Toolbox::with_permissions(permissions);
        for tool in tools {
            toolbox.register(tool.spec(), tool);
        }
        toolbox
    }

    pub fn add(&mut self, tool: Box<dyn Tool>) -> Result<(), DuplicateTool> {
        let spec = tool.spec();
        if self.tools.iter().any(|known| known.spec.name == spec.name) {
            return Err(DuplicateTool(spec.name));
        }
        self.register(spec, tool);
        Ok(())
    }

    fn register(&mut self, spec: ToolSpec, tool: Box<dyn Tool>) {
        let registered = RegisteredTool { spec, tool: tool.into(), switch: self.default_switch };
        if self.default_switch == Switch::On {
            self.offer(&registered.spec, registered.tool.effect());
        }
        self.tools.push(registered);
    }

    fn offer(&mut self, spec: &ToolSpec, effect: ToolEffect) {
        self.specs.push(spec.clone());
        match effect {
            ToolEffect::Reads => self.reading_specs.push(spec.clone()),
            ToolEffect::Changes => (),
        }
    }

    /// All tools, on or off.
    pub fn list(&self) -> impl Iterator<Item = ToolInfo<'_>> {
        self.tools.iter().map(|registered| ToolInfo {
            name: &registered.spec.name,
            about: &registered.spec.description,
            server: registered.tool.server(),
            switch: registered.switch,
            effect: registered.tool.effect(),
        })
    }

    /// Switches one tool or the tools of one server. Without a name, switches all tools, including those
    /// added later.
    pub fn switch(&mut self, name: Option<&str>, to: Switch) -> Result<usize, UnknownTool> {
        let is_meant = |registered: &RegisteredTool| {
            name.is_none_or(|name| registered.spec.name == name || registered.tool.server() == Some(name))
        };
        let mut n_meant = 0;
        for registered in self.tools.iter_mut().filter(|registered| is_meant(registered)) {
            registered.switch = to;
            n_meant += 1;
        }
        match name {
            None => self.default_switch = to,
            Some(name) if n_meant == 0 => return Err(UnknownTool(name.to_owned())),
            Some(_) => (),
        }
        let on = self.tools.iter().filter(|registered| registered.switch == Switch::On);
        let on: Vec<(ToolSpec, ToolEffect)> =
            on.map(|registered| (registered.spec.clone(), registered.tool.effect())).collect();
        self.specs.clear();
        self.reading_specs.clear();
        for (spec, effect) in &on {
            self.offer(spec, *effect);
        }
        Ok(n_meant)
    }

    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// The tools that are on, as offered to the model in the current mode.
    pub fn specs(&self) -> &[ToolSpec] {
        match self.permissions.tool_mode().mode() {
            ToolMode::Ask | ToolMode::AcceptEdits => &self.specs,
            ToolMode::ReadOnly => &self.reading_specs,
        }
    }

    /// Runs one call. A failure is also a result.
    pub async fn run(&self, call: &ToolCall, asker: &dyn Asker, cancel: &CancellationToken) -> ToolResult {
        let message = Message::new(Role::Assistant, vec![Block::ToolCall(call.clone())]);
        self.run_recorded(call, RecordedCall { message: Arc::new(message), at: 0 }, asker, cancel).await
    }

    /// Runs one call of a recorded message. Its arguments may be long and are not copied.
    pub(crate) async fn run_recorded(
        &self,
        call: &ToolCall,
        recorded: RecordedCall,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> ToolResult {
        let outcome = self.execute(call, recorded, asker, cancel).await;
        let is_error = outcome.is_err();
        let ToolOutput { text: content, media } = outcome.unwrap_or_else(ToolOutput::from);
        ToolResult { id: call.id.as_str().to_owned(), name: call.name.clone(), content, is_error, media }
    }

    async fn execute(
        &self,
        call: &ToolCall,
        recorded: RecordedCall,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> ToolOutcome {
        let tool = self.find(&call.name)?;
        let planning = Arc::clone(&tool);
        let authorized = async {
            let in_order = self.order.lock().await;
            // Parsing arguments and following links may block.
            let plan = move |_: &CancellationToken| match recorded.call().map(|call| &call.arguments) {
                Some(Arguments::Json(arguments)) => planning.plan(arguments),
                Some(Arguments::Broken(_)) | None => {
                    Err("the arguments are not valid JSON; nothing was done".to_owned())
                }
            };
            let planned = blocking(cancel, plan).await?;
            self.authorize(call, planned, asker, in_order).await
        };
        let mut planned = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Denial::Interrupted.to_string()),
            authorized = authorized => authorized?,
        };
        if let Some(live) = asker.live_output(call.id.as_str()) {
            planned.set_live_output(live);
        }
        let outcome = planned.run(cancel.clone()).await;
        tool.notices().iter().for_each(|notice| asker.warn(notice));
        outcome
    }

    /// Returns the call if it may run.
    async fn authorize(
        &self,
        call: &ToolCall,
        mut planned: Box<dyn PlannedCall>,
        asker: &dyn Asker,
        in_order: MutexGuard<'_, ()>,
    ) -> Result<Box<dyn PlannedCall>, String> {
        let target = planned.target();
        let need = self.permissions.need(&call.name, &target).map_err(|denied| denied.to_string())?;
        let preview_result = preview_in_order(planned.as_mut(), in_order).await;
        let question = |preview: Option<String>| PermissionQuestion {
            id: call.id.as_str().to_owned(),
            preview,
            confinement: planned.confinement(),
            protected: target.protected.clone(),
            change: planned.change(),
            ..PermissionQuestion::new(call.name.clone(), target.subject.clone(), target.risk)
        };
        let ask = async |preview| {
            let asked = self.permissions.ask(&target, question(preview), asker).await;
            asked.map_err(|denied| denied.to_string())
        };
        match (need, preview_result) {
            (PermissionNeed::Nothing, preview_result) => drop(preview_result?),
            (PermissionNeed::Question, Ok(preview)) => {
                if ask(preview).await? == GrantedBy::ThisQuestion {
                    planned.set_approved();
                }
            }
            // The error may reveal the content of a file that may not be read, so ask the user first.
            (PermissionNeed::Question, Err(why)) if !self.permissions.may_reveal(&target) => {
                let _: GrantedBy = ask(Some(why.clone())).await?;
                return Err(why);
            }
            (PermissionNeed::Question, Err(why)) => return Err(why),
        }
        Ok(planned)
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Tool>, String> {
        let found = self.tools.iter().find(|registered| registered.spec.name == name);
        match found {
            Some(RegisteredTool { tool, switch: Switch::On, .. })
                if tool.effect() == ToolEffect::Changes
                    && self.permissions.tool_mode().mode() == ToolMode::ReadOnly =>
            {
                return Err(format!("this session is read-only, and `{name}` can change things; nothing was done"));
            }
            Some(RegisteredTool { tool, switch: Switch::On, .. }) => return Ok(Arc::clone(tool)),
            Some(RegisteredTool { switch: Switch::Off, .. }) => {
                return Err(format!("the user has switched `{name}` off"));
            }
            None => (),
        }
        let known: Vec<&str> = self.specs().iter().map(|spec| spec.name.as_str()).collect();
        Err(match known.is_empty() {
            true => format!("there is no tool `{name}`; there are no tools in this conversation"),
            false => format!("there is no tool `{name}`; there are: {}", known.join(", ")),
        })
    }
}

/// Previews a call, and lets the next call begin once this one waits for its file lock.
async fn preview_in_order(call: &mut dyn PlannedCall, in_order: MutexGuard<'_, ()>) -> Result<Option<String>, String> {
    let mut previewing = call.preview();
    let begun = poll_fn(|context| Poll::Ready(previewing.as_mut().poll(context))).await;
    drop(in_order);
    match begun {
        Poll::Ready(preview_result) => preview_result,
        Poll::Pending => previewing.await,
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
