//! One session with its tabs: updates come in, frames go out to every tab.

mod state;
mod updates;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aside_front::{Command, CompletionLists, Status, Update};
use serde_json::json;
use tokio::sync::broadcast;

use crate::entry::{Body, Entry};
use crate::frames::{Frame, Position};
use crate::transcript::Transcript;
pub(crate) use state::now_ms;
use state::{HubState, Turn};

/// Deltas are sent this often: a tab draws a frame in half the time.
const FLUSH_AFTER: Duration = Duration::from_millis(30);
/// When text is sent again while it grows, a tab gets at most this many bytes of it per second.
const RESENT_BYTES_PER_SECOND: usize = 256 << 10;
/// Frames that a slow tab may lag behind before it starts over.
const MAX_LAG: usize = 1024;
/// Reads the messages of the session from the store, the newest ones.
pub(crate) type StoredEntries<'a> = dyn Fn(&str) -> Option<(Vec<Entry>, Option<i64>)> + 'a;

/// Why a command was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandRefusal {
    /// Another program has the session open.
    OpenElsewhere,
    /// The user cannot have read the question yet.
    TooEarly,
    /// The question is no longer open.
    Answered,
    /// The command makes no sense here, for this reason.
    Invalid(String),
}

/// A session that tabs can show.
pub(crate) struct Hub {
    state: Mutex<HubState>,
    frames: broadcast::Sender<Frame>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").finish_non_exhaustive()
    }
}

/// Who writes to the session.
#[derive(Debug)]
pub(crate) enum HubAccess {
    /// This process, through this channel.
    Writer(Sender<Command>),
    /// Another process; the store is read at intervals.
    Reader,
    /// The session has ended.
    Ended,
}

/// A connected tab: the frames it is missing, and those that follow.
pub(crate) struct Tab {
    pub first: Vec<Frame>,
    pub frames: broadcast::Receiver<Frame>,
    pub hub: Arc<Hub>,
}

impl Drop for Tab {
    fn drop(&mut self) {
        let mut state = self.hub.lock();
        state.n_tabs = state.n_tabs.saturating_sub(1);
        state.idle_since = Instant::now();
    }
}

impl Hub {
    pub(crate) fn new(
        id: String,
        transcript: Transcript,
        status: Status,
        lists: CompletionLists,
        access: HubAccess,
    ) -> Hub {
        let state = HubState {
            id,
            transcript,
            status,
            lists,
            prompts: Vec::new(),
            turn: Turn::default(),
            sent: json!([]),
            kept_from: None,
            notes: Vec::new(),
            n_notes: 0,
            questions: Vec::new(),
            access,
            n_tabs: 0,
            idle_since: Instant::now(),
        };
        Hub { state: Mutex::new(state), frames: broadcast::channel(MAX_LAG).0 }
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> String {
        self.lock().id.clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.lock().turn.is_running
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.lock().access, HubAccess::Ended)
    }

    /// Whether it has had no tab for this long, and nothing is running.
    pub(crate) fn is_idle(&self, long: Duration) -> bool {
        let state = self.lock();
        let is_busy = state.turn.is_running || !state.questions.is_empty() || state.n_tabs > 0;
        !is_busy && state.idle_since.elapsed() >= long
    }

    pub(crate) fn has_tabs(&self) -> bool {
        self.lock().n_tabs > 0
    }

    /// Connects a tab that has read up to `from`.
    pub(crate) fn connect(self: &Arc<Hub>, from: Option<Position>) -> Tab {
        let mut state = self.lock();
        state.n_tabs += 1;
        // Under the lock, so that no frame is lost or sent twice.
        if let Some(frame) = state.transcript.flush() {
            drop(self.frames.send(frame));
        }
        let frames = self.frames.subscribe();
        let first = state.first_frames(from);
        Tab { first, frames, hub: Arc::clone(self) }
    }

    /// What a tab that fell behind is missing.
    pub(crate) fn catch_up(&self, from: Position) -> (Vec<Frame>, broadcast::Receiver<Frame>) {
        let mut state = self.lock();
        if let Some(frame) = state.transcript.flush() {
            drop(self.frames.send(frame));
        }
        let frames = self.frames.subscribe();
        (state.first_frames(Some(from)), frames)
    }

    /// Ends the session. Its thread stores what is open.
    pub(crate) fn end(&self) {
        if let HubAccess::Writer(commands) = std::mem::replace(&mut self.lock().access, HubAccess::Ended) {
            drop(commands.send(Command::Quit));
        }
    }

    /// Another process has closed the session: from now on this one writes it.
    pub(crate) fn take_over(&self, commands: Sender<Command>, status: Status, lists: CompletionLists) {
        let mut state = self.lock();
        state.access = HubAccess::Writer(commands);
        (state.status, state.lists) = (status, lists);
        let hello = state.hello();
        drop(self.frames.send(hello));
    }

    /// A block of a message that a tab may have.
    pub(crate) fn block(&self, entry: i64, block: usize) -> Option<Body> {
        let state = self.lock();
        state.transcript.entries().iter().find(|one| one.id == entry)?.blocks.get(block).cloned()
    }

    pub(crate) fn is_reader(&self) -> bool {
        matches!(self.lock().access, HubAccess::Reader)
    }

    /// Carries out a command.
    pub(crate) fn command(&self, command: Command) -> Result<(), CommandRefusal> {
        let mut state = self.lock();
        let commands = match &state.access {
            HubAccess::Writer(commands) => commands.clone(),
            HubAccess::Reader => return Err(CommandRefusal::OpenElsewhere),
            HubAccess::Ended => return Err(CommandRefusal::Invalid("the session has ended".to_owned())),
        };
        if matches!(command, Command::Terminal(_) | Command::Shell { .. }) {
            return Err(CommandRefusal::Invalid("this command is for a terminal".to_owned()));
        }
        if let Command::Answer { id, answer } = &command {
            let frame = state.answer(*id, answer)?;
            self.send([frame]);
        }
        if matches!(
            command,
            Command::Prompt(_) | Command::PromptWith { .. } | Command::Steer(_) | Command::Retry | Command::Compact
        ) {
            state.turn.is_running = true;
            state.turn.since.get_or_insert_with(now_ms);
            let frame = state.turn_frame();
            self.send([frame]);
        }
        commands.send(command).map_err(|_| CommandRefusal::Invalid("the session has ended".to_owned()))
    }

    /// Takes the updates of a session until it ends.
    pub(crate) fn pump(&self, updates: &Receiver<Update>, stored: &StoredEntries<'_>) {
        let mut flushed = Instant::now();
        loop {
            let resent = self.lock().transcript.resent_bytes();
            let update = match resent {
                None => updates.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(bytes) => {
                    let delay = Duration::from_millis((bytes * 1000 / RESENT_BYTES_PER_SECOND) as u64).max(FLUSH_AFTER);
                    match (flushed + delay).checked_duration_since(Instant::now()) {
                        Some(left) => updates.recv_timeout(left),
                        // Even if more updates are waiting: a fast reply must not delay the frame.
                        None => Err(RecvTimeoutError::Timeout),
                    }
                }
            };
            let mut state = self.lock();
            match update {
                Ok(update) => {
                    let grows = matches!(update, Update::Grew { .. } | Update::Item { .. });
                    if !grows || resent.is_none() {
                        flushed = Instant::now();
                    }
                    if !grows {
                        self.send(state.transcript.flush());
                    }
                    let frames = state.take(update, stored);
                    self.send(frames);
                }
                Err(RecvTimeoutError::Timeout) => {
                    flushed = Instant::now();
                    self.send(state.transcript.flush());
                }
                Err(RecvTimeoutError::Disconnected) => {
                    if matches!(state.access, HubAccess::Writer(_)) {
                        state.access = HubAccess::Ended;
                    }
                    self.send([Frame::new(state.transcript.position(), "ended", &json!({}))]);
                    return;
                }
            }
        }
    }

    /// Updates from the store, for a session that another process writes.
    pub(crate) fn sync(&self, entries: Vec<Entry>, earlier: Option<i64>) {
        let mut state = self.lock();
        let frames = state.transcript.sync(entries, earlier);
        self.send(frames);
    }

    /// Without a tab there is no receiver.
    fn send(&self, frames: impl IntoIterator<Item = Frame>) {
        for frame in frames {
            drop(self.frames.send(frame));
        }
    }
}
