//! `aside` without a command: the screen or the line prompt runs on the main
//! thread, the session on another.

mod interrupt_key;
mod plain;
mod signals;

use std::io::IsTerminal;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc;

use aside_front::{ToolMode, Update};
use aside_session::providers::env_var;
use aside_session::single_turn::RunLimits;
use aside_session::{HintedError, SessionOptions, SessionSetup, Trust, UserFolders, spawn_with_updates};
use aside_tui::app::{App, Msg, Setup};
use tokio_util::sync::CancellationToken;

use crate::ask::permission_prompt::terminal_asker;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;
use crate::session_arguments::SessionArguments;
use crate::{ExitStatus, key_bindings};
use signals::FrontKind;

/// The options of `aside` without a command.
#[derive(Debug, clap::Args)]
#[group(id = "chat")]
pub(crate) struct Arguments {
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    #[command(flatten)]
    pub(crate) session: SessionArguments,

    /// Plain lines of text instead of the screen, for screen readers, simple
    /// terminals and pipes: each line of input is a prompt. ASIDE_PLAIN=1 makes
    /// it the default, and so does TERM=dumb
    #[arg(long)]
    pub(crate) plain: bool,

    /// What tools may do without a question: ask, accept-edits (files in this
    /// folder, never commands) or read-only (the model gets no tool that can
    /// change anything)
    #[arg(long = "mode", value_name = "MODE", value_parser = crate::parse_tool_mode())]
    pub(crate) tool_mode: Option<ToolMode>,

    /// Stop each turn after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_steps: Option<u32>,

    /// Stop each turn once it has cost this much; the reply that reaches it is complete
    #[arg(long, value_name = "USD", value_parser = crate::ask::parse_dollars)]
    pub(crate) max_cost: Option<f64>,

    /// Trust this folder from now on: send its AGENTS.md to the model
    #[arg(long)]
    pub(crate) trust: bool,

    #[command(flatten)]
    pub(crate) overrides: OverrideArguments,
}

impl Arguments {
    /// The front end for this terminal, or why there is none.
    fn front(&self) -> Result<FrontKind, HintedError> {
        let variable = |name: &str| env_var(name).unwrap_or_default();
        let by_variable = !matches!(variable("ASIDE_PLAIN").as_str(), "" | "0");
        if self.plain || by_variable {
            return Ok(FrontKind::Lines);
        }
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            let hint = "aside ask \"your question\" answers once; aside --plain takes a line of input as a prompt";
            return Err(HintedError::new("the screen needs a terminal").hint(hint));
        }
        Ok(if variable("TERM") == "dumb" { FrontKind::Lines } else { FrontKind::Screen })
    }
}

impl Arguments {
    fn session_options(&self) -> Result<SessionOptions, HintedError> {
        // The screen is not up yet, so questions go to the plain terminal.
        let asker = terminal_asker(&CancellationToken::new());
        Ok(SessionOptions {
            model: self.model.clone(),
            choice: self.session.choice(),
            continuation: self.session.continuation(),
            tool_mode: self.tool_mode,
            trust: if self.trust { Trust::Given } else { Trust::Ask(asker) },
            overrides: self.overrides.overrides(),
            limits: RunLimits { max_steps: self.max_steps, max_cost: self.max_cost },
            simulator_rate: crate::simulator_rate(),
            ..SessionOptions::new(crate::working_directory()?, UserFolders::from_environment())
        })
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let front = arguments.front()?;
    let was_at_terminal = std::io::stdin().is_terminal();
    let (updates, to_front) = mpsc::channel();
    let watch = signals::watch(front, updates.clone())?;
    let ended = watch.clone();
    let session = spawn_with_updates(arguments.session_options()?, updates.clone(), move || ended.stop());
    // Errors in the config are reported before the screen takes over the terminal.
    let (commands, setup, session) = session?;
    let SessionSetup { status, lists, keys, restored, .. } = setup;
    let keys = key_bindings::parse(&keys)?;
    drop(updates);
    let restored = (!restored.is_empty()).then_some(Update::Restored(restored));
    watch.set_front_running(true);
    // A panic of the front end must not end the session in the middle of a write.
    let shown = std::panic::catch_unwind(AssertUnwindSafe(|| match front {
        FrontKind::Lines => plain::run(status, lists.commands, restored, to_front, commands),
        FrontKind::Screen => {
            let theme = aside_tui::detect_theme();
            let mut app = App::new(Setup { theme, status, lists, sent: Vec::new() });
            app.bind(keys);
            restored.map(|restored| app.update(Msg::Update(Box::new(restored))));
            aside_tui::run(app, to_front, commands).map(|()| ExitStatus::Done)
        }
    }));
    watch.set_front_running(false);
    interrupt_key::release();
    // The session ends when the front end is gone. Wait until it is stored.
    let saved_session = std::panic::catch_unwind(AssertUnwindSafe(|| session.join()));
    let shown = shown.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let saved_session = saved_session.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // Only for users at a terminal; a script does not need it.
    if let Some(id) = saved_session.filter(|_| was_at_terminal) {
        print_notice(&format!("aside -r {id} continues this session"));
    }
    // Writing to a terminal that hung up fails; that is not an error of its own.
    let hung_up = shown.is_err() && was_at_terminal && !std::io::stdin().is_terminal();
    match watch.outcome() {
        Some(outcome) => Ok(outcome),
        None if hung_up => Ok(ExitStatus::HungUp),
        None => Ok(shown?),
    }
}
