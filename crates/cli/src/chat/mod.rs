//! `aside` alone: the screen or the line prompt on the main thread, the engine
//! on another.

mod back;
mod driver;
mod filling;
mod more;
mod plain;
mod says;
mod screen;
mod signals;

use std::io::IsTerminal;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc;

use aside_core::message::Message;
use aside_store::SessionId;
use aside_tui::app::{App, Msg, Setup};
use aside_tui::bindings::Bindings;
use aside_tui::seam::{Command, Lists, Status, Update};

use crate::Outcome;
use crate::providers::environment;
use crate::report::{Report, tell};
use crate::settings::Overrides;
use driver::Driver;
use signals::Front;

/// What `aside` without a command takes.
#[derive(Debug, clap::Args)]
#[group(id = "chat")]
pub(crate) struct Arguments {
    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) model: Option<String>,

    /// Go on with the session used last
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub(crate) last: bool,

    /// Go on with this session, by id, title, or the beginning of either
    #[arg(short, long, value_name = "ID")]
    pub(crate) resume: Option<String>,

    /// Lines of words instead of the screen, for screen readers, simple
    /// terminals and pipes: a line of input is a prompt. ASIDE_PLAIN=1 makes it
    /// the default; a terminal of TERM=dumb gets it anyway
    #[arg(long)]
    pub(crate) plain: bool,

    /// Trust this folder: its AGENTS.md is sent, now and from now on
    #[arg(long)]
    pub(crate) trust: bool,

    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

impl Arguments {
    /// The front that fits, or why there is none.
    fn front(&self) -> Result<Front, Report> {
        let variable = |name: &str| environment(name).unwrap_or_default();
        let wanted = !matches!(variable("ASIDE_PLAIN").as_str(), "" | "0");
        if self.plain || wanted {
            return Ok(Front::Lines);
        }
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            let hint = "aside ask \"your question\" answers once; aside --plain takes a line of input as a prompt";
            return Err(Report::new("the screen needs a terminal").hint(hint));
        }
        Ok(if variable("TERM") == "dumb" { Front::Lines } else { Front::Screen })
    }
}

/// What a front must know before it begins.
struct Opening {
    status: Status,
    lists: Lists,
    keys: Bindings,
    restored: Vec<Message>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<Outcome> {
    let front = arguments.front()?;
    let was_at_terminal = std::io::stdin().is_terminal();
    let (updates, to_front) = mpsc::channel();
    let (to_engine, commands) = mpsc::channel();
    let (opened, opening) = mpsc::channel();
    let told = updates.clone();
    let watch = signals::watch(front, updates.clone())?;
    let watched = watch.clone();
    let engine = std::thread::Builder::new().name("engine".to_owned()).spawn(move || {
        let _ends = signals::EndsWith(watched);
        engine(&arguments, told, commands, &opened)
    })?;
    // A mistake in the config is said before the screen is taken.
    let Opening { status, lists, keys, restored } = match opening.recv() {
        Ok(Ok(opening)) => opening,
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(Report::new("the engine ended before it began").into()),
    };
    drop(updates);
    let restored = (!restored.is_empty()).then_some(Update::Restored(restored));
    watch.shown(true);
    // A front that fails must not take the engine down in the middle of a line.
    let shown = std::panic::catch_unwind(AssertUnwindSafe(|| match front {
        Front::Lines => plain::run(status, restored, to_front, to_engine),
        Front::Screen => {
            let theme = aside_tui::theme_of_terminal();
            let mut app = App::new(Setup { theme, status, lists, sent: Vec::new() });
            app.bind(keys);
            restored.map(|restored| app.update(Msg::Update(Box::new(restored))));
            aside_tui::run(app, to_front, to_engine).map(|()| Outcome::Done)
        }
    }));
    watch.shown(false);
    // The engine ends when nobody listens to it; what it kept is on disk then.
    let ended = engine.join();
    let shown = shown.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    let kept = ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    // A script has its own ways; whoever typed would have to look for it.
    if let Some(id) = kept.filter(|_| was_at_terminal) {
        tell(&format!("aside -r {id} goes on with this session"));
    }
    // A terminal that hung up cannot be written to; that is no news.
    let hung_up = shown.is_err() && was_at_terminal && !std::io::stdin().is_terminal();
    match watch.outcome() {
        Some(outcome) => Ok(outcome),
        None if hung_up => Ok(Outcome::HungUp),
        None => Ok(shown?),
    }
}

type Opened = mpsc::Sender<anyhow::Result<Opening>>;

/// The engine's thread: a runtime of its own until the screen is gone. The
/// session it kept comes back.
fn engine(
    arguments: &Arguments,
    updates: mpsc::Sender<Update>,
    commands: mpsc::Receiver<Command>,
    opened: &Opened,
) -> Option<SessionId> {
    let runtime = match crate::run::runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            drop(opened.send(Err(error)));
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
    let kept = runtime.block_on(async {
        match Driver::open(arguments, updates).await {
            Ok((mut driver, opening)) => {
                opened.send(Ok(opening)).ok()?;
                driver.run(&mut inbox).await;
                driver.close().await
            }
            Err(error) => {
                drop(opened.send(Err(error)));
                None
            }
        }
    });
    runtime.shutdown_background();
    kept
}
