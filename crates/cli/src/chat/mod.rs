//! `aside` without a command: the screen or the line prompt runs on the main
//! thread, the engine on another.

mod context_bars;
mod context_commands;
mod driver;
mod plain;
mod replies;
mod screen;
mod signals;
mod undo;

use std::io::IsTerminal;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc;

use aside_core::message::Message;
use aside_front::{Command, CompletionLists, Status, Update};
use aside_store::SessionId;
use aside_tui::app::{App, Msg, Setup};
use aside_tui::bindings::Bindings;

use crate::ExitStatus;
use crate::providers::env_var;
use crate::report::{Report, print_notice};
use crate::settings::Overrides;
use driver::Driver;
use signals::FrontKind;

/// The options of `aside` without a command.
#[derive(Debug, clap::Args)]
#[group(id = "chat")]
pub(crate) struct Arguments {
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Continue the most recent session
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) last: bool,

    /// Continue this session: its id, title, or the beginning of either
    #[arg(short, long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// Plain lines of text instead of the screen, for screen readers, simple
    /// terminals and pipes: each line of input is a prompt. ASIDE_PLAIN=1 makes
    /// it the default, and so does TERM=dumb
    #[arg(long)]
    pub(crate) plain: bool,

    /// Trust this folder from now on: send its AGENTS.md to the model
    #[arg(long)]
    pub(crate) trust: bool,

    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

impl Arguments {
    /// The front end for this terminal, or why there is none.
    fn front(&self) -> Result<FrontKind, Report> {
        let variable = |name: &str| env_var(name).unwrap_or_default();
        let by_variable = !matches!(variable("ASIDE_PLAIN").as_str(), "" | "0");
        if self.plain || by_variable {
            return Ok(FrontKind::Lines);
        }
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            let hint = "aside ask \"your question\" answers once; aside --plain takes a line of input as a prompt";
            return Err(Report::new("the screen needs a terminal").hint(hint));
        }
        Ok(if variable("TERM") == "dumb" { FrontKind::Lines } else { FrontKind::Screen })
    }
}

/// What a front end needs to start.
struct FrontSetup {
    status: Status,
    lists: CompletionLists,
    keys: Bindings,
    restored: Vec<Message>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitStatus> {
    let front = arguments.front()?;
    let was_at_terminal = std::io::stdin().is_terminal();
    let (updates, to_front) = mpsc::channel();
    let (to_engine, commands) = mpsc::channel();
    let (setup_sender, setup) = mpsc::channel();
    let engine_updates = updates.clone();
    let watch = signals::watch(front, updates.clone())?;
    let engine_watch = watch.clone();
    let engine = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
        let _stop_on_drop = signals::StopOnDrop(engine_watch);
        engine(&arguments, engine_updates, commands, &setup_sender)
    })?;
    // Report errors in the config before the screen takes over the terminal.
    let FrontSetup { status, lists, keys, restored } = match setup.recv() {
        Ok(Ok(setup)) => setup,
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(Report::new("the engine ended before it began").into()),
    };
    drop(updates);
    let restored = (!restored.is_empty()).then_some(Update::Restored(restored));
    watch.set_front_running(true);
    // A panic of the front end must not end the engine in the middle of a write.
    let shown = std::panic::catch_unwind(AssertUnwindSafe(|| match front {
        FrontKind::Lines => plain::run(status, restored, to_front, to_engine),
        FrontKind::Screen => {
            let theme = aside_tui::detect_theme();
            let mut app = App::new(Setup { theme, status, lists, sent: Vec::new() });
            app.bind(keys);
            restored.map(|restored| app.update(Msg::Update(Box::new(restored))));
            aside_tui::run(app, to_front, to_engine).map(|()| ExitStatus::Done)
        }
    }));
    watch.set_front_running(false);
    // The engine ends when the front end is gone. Wait until the session is stored.
    let ended = engine.join();
    let shown = shown.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let saved_session = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // Only for users at a terminal; a script does not need it.
    if let Some(id) = saved_session.filter(|_| was_at_terminal) {
        print_notice(&format!("aside -r {id} goes on with this session"));
    }
    // Writing to a terminal that hung up fails; that is not an error of its own.
    let hung_up = shown.is_err() && was_at_terminal && !std::io::stdin().is_terminal();
    match watch.outcome() {
        Some(outcome) => Ok(outcome),
        None if hung_up => Ok(ExitStatus::HungUp),
        None => Ok(shown?),
    }
}

type SetupSender = mpsc::Sender<anyhow::Result<FrontSetup>>;

/// The engine's thread, with its own runtime. Runs until the screen is gone and
/// returns the id of the saved session.
fn engine(
    arguments: &Arguments,
    updates: mpsc::Sender<Update>,
    commands: mpsc::Receiver<Command>,
    setup_sender: &SetupSender,
) -> Option<SessionId> {
    let runtime = match crate::start::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            drop(setup_sender.send(Err(error)));
            return None;
        }
    };
    let (forward, mut inbox) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for command in commands {
            if forward.send(command).is_err() {
                return;
            }
        }
    });
    let saved_session = runtime.block_on(async {
        match Driver::open(arguments, updates).await {
            Ok((mut driver, setup)) => {
                setup_sender.send(Ok(setup)).ok()?;
                driver.run(&mut inbox).await;
                driver.close().await
            }
            Err(error) => {
                drop(setup_sender.send(Err(error)));
                None
            }
        }
    });
    runtime.shutdown_background();
    saved_session
}
