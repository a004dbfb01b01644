//! A session on a thread of its own, connected to a front end by two channels.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use aside_core::message::Message;
use aside_front::{Command, CompletionLists, Status, Update};
use aside_store::{MessageId, SessionId};

use crate::driver::Driver;
use crate::error::HintedError;
use crate::session_options::SessionOptions;
use crate::settings_file::KeyEntry;
use crate::start::runtime;

/// What a front end needs to start.
#[derive(Debug)]
pub struct SessionSetup {
    pub status: Status,
    pub lists: CompletionLists,
    /// The `[keys]` table of config.toml, as written.
    pub keys: Vec<KeyEntry>,
    /// The messages of a resumed session.
    pub restored: Vec<Arc<Message>>,
    /// The stored id of each restored message, in the same order.
    pub restored_ids: Vec<MessageId>,
    pub access: SetupAccess,
}

/// Whether the session itself can be continued, or only a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupAccess {
    Writable,
    /// Another process has it open: new prompts continue in a copy.
    OpenElsewhere,
}

/// A running session with its channels.
#[derive(Debug)]
pub struct SessionHandle {
    pub commands: mpsc::Sender<Command>,
    pub updates: mpsc::Receiver<Update>,
    pub setup: SessionSetup,
    pub session: RunningSession,
}

/// The thread of a session. It ends after [`Command::Quit`], or when the sender of
/// its commands is dropped.
#[derive(Debug)]
pub struct RunningSession(JoinHandle<Option<SessionId>>);

impl RunningSession {
    /// Waits until the session is stored and its tools have ended. Returns its id if it
    /// was saved and is not empty. A panic of the session is resumed here.
    pub fn join(self) -> Option<SessionId> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Opens a session and runs it on a thread of its own.
pub fn spawn(options: SessionOptions) -> Result<SessionHandle, HintedError> {
    let (sender, updates) = mpsc::channel();
    let (commands, setup, session) = spawn_with_updates(options, sender, || ())?;
    Ok(SessionHandle { commands, updates, setup, session })
}

/// The same for a front end that puts updates of its own into the channel, such as
/// signals. `on_end` is called when the session has ended, even by a panic.
pub fn spawn_with_updates(
    options: SessionOptions,
    updates: mpsc::Sender<Update>,
    on_end: impl FnOnce() + Send + 'static,
) -> Result<(mpsc::Sender<Command>, SessionSetup, RunningSession), HintedError> {
    let (commands, inbox) = mpsc::channel();
    let (setup_sender, setup) = mpsc::channel();
    let thread = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
        let _on_end = CallOnDrop(Some(on_end));
        run(&options, updates, inbox, &setup_sender)
    });
    let thread = thread.map_err(|error| HintedError::new(format!("cannot start the session: {error}")))?;
    match setup.recv() {
        Ok(Ok(setup)) => Ok((commands, setup, RunningSession(thread))),
        Ok(Err(error)) => Err(error),
        Err(mpsc::RecvError) => Err(HintedError::new("the session ended before it began")),
    }
}

struct CallOnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for CallOnDrop<F> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            call();
        }
    }
}

type SetupSender = mpsc::Sender<Result<SessionSetup, HintedError>>;

/// The session's thread, with its own runtime. Runs until the front end disconnects.
fn run(
    options: &SessionOptions,
    updates: mpsc::Sender<Update>,
    commands: mpsc::Receiver<Command>,
    setup_sender: &SetupSender,
) -> Option<SessionId> {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            drop(setup_sender.send(Err(HintedError::new(error.to_string()))));
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
        match Driver::open(options, updates).await {
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
