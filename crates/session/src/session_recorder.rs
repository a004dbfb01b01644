//! Stores a session while it runs: writes the engine's updates to the database and
//! passes them on to a front end.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aside_core::block::{Origin, Time};
use aside_core::conversation::Conversation;
use aside_core::event::{Event, Sink};
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, Settings};
use aside_engine::{Front, Update};
use aside_store::session::{NewReply, NewSession, Parent, SessionChange, title_of};
use aside_store::{MessageId, ReplyRecorder, SessionId, SqliteStore, Store, StoreError, WriteLock};

use crate::error::HintedError;
use crate::log;
use crate::user_files::UserFolders;

/// Which session a command continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionChoice {
    #[default]
    New,
    /// The most recently used one.
    Last,
    /// By id, title, or the beginning of either.
    Named(String),
}

/// Opens the user's store. A store that cannot be written is opened for reading;
/// writing to it fails later.
pub fn open_store(folders: &UserFolders) -> Result<Arc<SqliteStore>, HintedError> {
    let folder = folders.require_data()?;
    let opened = match SqliteStore::open(folder) {
        Err(StoreError::ReadOnly { path, detail }) => {
            SqliteStore::open_read_only(folder).map_err(|_| StoreError::ReadOnly { path, detail })
        }
        opened => opened,
    };
    opened.map(Arc::new).map_err(|error| store_error(&error))
}

/// Opens the store; fails if it cannot be written.
pub fn open_writable_store(folders: &UserFolders) -> Result<SqliteStore, HintedError> {
    SqliteStore::open(folders.require_data()?).map_err(|error| store_error(&error))
}

/// The id of the chosen session.
pub fn find_session(store: &SqliteStore, choice: &SessionChoice) -> Result<Option<SessionId>, HintedError> {
    match choice {
        SessionChoice::New => Ok(None),
        SessionChoice::Named(word) => store.find(word).map(Some).map_err(|error| store_error(&error)),
        SessionChoice::Last => match store.sessions(1).map_err(|error| store_error(&error))?.into_iter().next() {
            Some(last) => Ok(Some(last.id)),
            None => Err(HintedError::new("there is no session yet").hint("aside ask begins one")),
        },
    }
}

/// The message of a store error already includes the remedy.
pub fn store_error(error: &StoreError) -> HintedError {
    HintedError::new(error.to_string())
}

/// A stored session that is continued.
pub struct ResumedSession {
    pub id: SessionId,
    pub conversation: Conversation,
    /// The stored id of each history entry, in order.
    pub ids: Vec<MessageId>,
}

pub fn resume(store: &SqliteStore, choice: &SessionChoice) -> Result<Option<ResumedSession>, HintedError> {
    let Some(id) = find_session(store, choice)? else { return Ok(None) };
    let loaded = store.load(&id).map_err(|error| store_error(&error))?;
    Ok(Some(ResumedSession { id, conversation: loaded.conversation, ids: loaded.ids }))
}

/// Stores a session and passes all updates on to another front end.
pub struct StoringFront<'a> {
    inner: &'a mut dyn Front,
    recorder: Option<&'a mut SessionRecorder>,
}

/// A failed write. The turn continues, and the user is told once.
#[derive(Debug, PartialEq, Eq)]
enum SaveFailure {
    None,
    Unreported(String),
    Reported,
}

/// A session in the store that this process has locked for writing.
pub struct SessionRecorder {
    store: Arc<SqliteStore>,
    id: SessionId,
    write_lock: WriteLock,
    origin: Origin,
    reply_recorder: Option<ReplyRecorder>,
    /// The stored id of each history entry, in order.
    ids: Vec<MessageId>,
    now: Option<Time>,
    failure: SaveFailure,
}

impl SessionRecorder {
    /// Locks a stored session, or creates one with the history so far.
    pub fn open(
        store: Arc<SqliteStore>,
        stored: Option<(SessionId, Vec<MessageId>)>,
        new: NewSession,
        history: &History,
        origin: Origin,
    ) -> Result<SessionRecorder, StoreError> {
        let is_new = stored.is_none();
        let (id, mut ids) = match stored {
            Some(stored) => stored,
            None => (store.create(&new)?, Vec::new()),
        };
        let write_lock = store.lock_session(&id)?;
        if is_new {
            for (_, message) in history.branch() {
                ids.push(store.append(&write_lock, Parent::Head, message)?);
            }
        } else if new.model.is_some() {
            store.change(&id, &SessionChange::Model(new.model))?;
        }
        Ok(SessionRecorder {
            store,
            id,
            write_lock,
            origin,
            reply_recorder: None,
            ids,
            now: None,
            failure: SaveFailure::None,
        })
    }

    /// The session's id; none if a write failed.
    pub fn saved_id(&self) -> Option<&SessionId> {
        (self.failure == SaveFailure::None).then_some(&self.id)
    }

    /// Sets the origin and model of the replies that follow.
    pub fn set_origin(&mut self, origin: Origin, model: String) {
        self.origin = origin;
        let changed = self.store.change(&self.id, &SessionChange::Model(Some(model)));
        self.check(changed);
    }

    pub fn change(&mut self, change: &SessionChange) {
        let changed = self.store.change(&self.id, change);
        self.check(changed);
    }

    /// Makes an earlier history entry the head.
    pub fn move_head(&mut self, head: Option<EntryId>) {
        let head = match head.map(|EntryId(at)| self.ids.get(at).copied()) {
            None => None,
            Some(Some(id)) => Some(id),
            // That entry was never stored; the stored head stays where it is.
            Some(None) => return,
        };
        let moved = self.store.set_head(&self.write_lock, head);
        self.check(moved);
    }

    /// Keeps the first store error for the user. The turn continues.
    fn check<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) => {
                if self.failure == SaveFailure::None {
                    self.failure = SaveFailure::Unreported(format!("the session is not being saved: {error}"));
                }
                None
            }
        }
    }

    fn record_event(&mut self, event: Event<'_>) {
        if self.reply_recorder.is_none() && matches!(event, Event::Opened { .. }) {
            let reply = NewReply { parent: Parent::Head, origin: Some(self.origin.clone()), at: self.now };
            let reply_recorder =
                ReplyRecorder::begin(Arc::clone(&self.store) as Arc<dyn Store>, &self.write_lock, &reply);
            self.reply_recorder = self.check(reply_recorder);
        }
        if let Some(recorder) = &mut self.reply_recorder {
            recorder.take(event);
        }
    }

    /// Stores the compacted branch. The original branch stays in the store.
    fn write_compacted_branch(&mut self, branch: &[&Message]) {
        let moved = self.store.set_head(&self.write_lock, None);
        self.check(moved);
        for message in branch {
            let appended = self.store.append(&self.write_lock, Parent::Head, message);
            let id = self.check(appended);
            self.ids.extend(id);
        }
    }

    fn update_time(&mut self) {
        let now = now();
        self.now = Some(now);
        if let Some(recorder) = &mut self.reply_recorder {
            recorder.set_now(now);
        }
    }

    fn record_message(&mut self, message: &Message) {
        let finished = match self.reply_recorder.take().filter(|_| message.role == Role::Assistant) {
            Some(mut recorder) => recorder.finish(message, Some(now())),
            None => self.store.append(&self.write_lock, Parent::Head, message),
        };
        let id = self.check(finished);
        self.ids.extend(id);
    }
}

impl<'a> StoringFront<'a> {
    pub fn new(inner: &'a mut dyn Front, recorder: Option<&'a mut SessionRecorder>) -> StoringFront<'a> {
        StoringFront { inner, recorder }
    }
}

impl Front for StoringFront<'_> {
    fn on_update(&mut self, update: Update<'_>) {
        log::write_update(&update);
        if let Some(recorder) = &mut self.recorder {
            match &update {
                Update::Event { event, .. } => recorder.record_event(*event),
                Update::Received(_) => recorder.update_time(),
                Update::Recorded(message) => recorder.record_message(message),
                Update::Compacted { branch, .. } => recorder.write_compacted_branch(branch),
                // An unfinished reply stays in the journal only.
                Update::Ended(_) => drop(recorder.reply_recorder.take()),
                Update::Sending { .. }
                | Update::Retrying { .. }
                | Update::TurnNotice(_)
                | Update::Noted(_)
                | Update::LeftOut(_)
                | Update::ToolStarted(_)
                | Update::ToolEnded { .. }
                | Update::Asked(_)
                | Update::Answered { .. } => (),
            }
            if let SaveFailure::Unreported(what) = &recorder.failure {
                log::write(log::LogLevel::Warn, || what.clone());
                self.inner.on_update(Update::Noted(what));
                recorder.failure = SaveFailure::Reported;
            }
        }
        self.inner.on_update(update);
    }

    fn flush(&mut self) {
        self.inner.flush();
    }

    fn tick_interval(&self) -> Option<Duration> {
        self.inner.tick_interval()
    }

    fn tick(&mut self) {
        self.inner.tick();
    }
}

/// The metadata of a new session.
pub fn new_session(model: String, settings: &Settings, first: &Message) -> NewSession {
    let session_settings =
        settings.layer(Layer::Session).map(|(key, value)| (key.name().to_owned(), value.to_string()));
    NewSession {
        title: title_of(first),
        model: Some(model),
        settings: session_settings.collect(),
        at: Some(now()),
        ..NewSession::default()
    }
}

pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
