//! `aside` alone: the terminal screen on the main thread, the engine on another.

mod driver;
mod filling;
mod more;
mod says;
mod screen;

use std::io::IsTerminal;
use std::sync::mpsc;

use aside_core::message::Message;
use aside_tui::app::{App, Setup};
use aside_tui::seam::{Command, Lists, Status, Update};

use crate::Outcome;
use crate::report::Report;
use crate::settings::Overrides;
use driver::Driver;

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

    #[command(flatten)]
    pub(crate) overrides: Overrides,
}

/// What the screen must know before it is drawn.
struct Opening {
    status: Status,
    lists: Lists,
    restored: Vec<Message>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<Outcome> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let hint = "aside ask \"your question\" answers once, in pipes too; aside --help lists the rest";
        return Err(Report::new("the screen needs a terminal").hint(hint).into());
    }
    let (updates, to_screen) = mpsc::channel();
    let (to_engine, commands) = mpsc::channel();
    let (opened, opening) = mpsc::channel();
    let told = updates.clone();
    let engine = std::thread::Builder::new()
        .name("engine".to_owned())
        .spawn(move || engine(&arguments, told, commands, &opened))?;
    // A mistake in the config is said before the screen is taken.
    let Opening { status, lists, restored } = match opening.recv() {
        Ok(Ok(opening)) => opening,
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(Report::new("the engine ended before it began").into()),
    };
    let theme = aside_tui::theme_of_terminal();
    let app = App::new(Setup { theme, status, lists, sent: Vec::new() });
    if !restored.is_empty() {
        // Nobody has left yet, so it arrives.
        drop(updates.send(Update::Restored(restored)));
    }
    drop(updates);
    let shown = aside_tui::run(app, to_screen, to_engine);
    // The engine ends when nobody listens to it; what it kept is on disk then.
    drop(engine.join());
    shown?;
    Ok(Outcome::Done)
}

type Opened = mpsc::Sender<anyhow::Result<Opening>>;

/// The engine's thread: a runtime of its own until the screen is gone.
fn engine(arguments: &Arguments, updates: mpsc::Sender<Update>, commands: mpsc::Receiver<Command>, opened: &Opened) {
    let runtime = match crate::run::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let (forward, mut inbox) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for command in commands {
            if forward.send(command).is_err() {
                return;
            }
        }
    });
    runtime.block_on(async {
        match Driver::open(arguments, updates).await {
            Ok((mut driver, opening)) => {
                if opened.send(Ok(opening)).is_ok() {
                    driver.run(&mut inbox).await;
                    driver.close().await;
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        }
    });
    runtime.shutdown_background();
}
