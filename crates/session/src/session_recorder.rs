//! Stores a session while it runs: writes the engine's updates to the database and
//! passes them on to a front end.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aside_core::block::{Origin, Time};
use aside_core::event::{Event, Sink};
use aside_core::history::EntryId;
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, Settings};
use aside_core::turn::TurnEnd;
use aside_engine::{Front, Update};
use aside_front as front;
use aside_store::session::{NewReply, NewSession, Parent, SessionChange, title_of};
use aside_store::{MessageId, ReplyRecorder, SessionId, SqliteStore, Store, StoreError, WriteLock};

use crate::active_session::ActiveSession;
use crate::error::HintedError;
use crate::file_changes::ChangeRecorder;
use crate::log;
use crate::stored_session::{SessionAccess, StoredSession, session_folder};
use crate::user_files::UserFolders;

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

/// The message of a store error already includes the remedy.
pub fn store_error(error: &StoreError) -> HintedError {
    HintedError::new(error.to_string())
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
    /// Is told which turn the file changes belong to.
    changes: Arc<ChangeRecorder>,
    now: Option<Time>,
    failure: SaveFailure,
    /// A front end that is told the ids of the session and its messages.
    updates: Option<Sender<front::Update>>,
}

impl SessionRecorder {
    /// Records into a stored session, or creates one with the history so far.
    pub fn open(
        store: Arc<SqliteStore>,
        stored: Option<StoredSession>,
        new: NewSession,
        active: &ActiveSession,
    ) -> Result<SessionRecorder, StoreError> {
        let (history, origin) = (&active.session.history, active.session.endpoint.origin());
        let is_new = stored.is_none();
        let (id, mut ids, write_lock) = match stored {
            None => {
                let id = store.create(&new)?;
                let lock = store.lock_session(&id)?;
                (id, Vec::new(), lock)
            }
            Some(StoredSession { id, ids, access }) => {
                let lock = match access {
                    SessionAccess::Locked(lock) => lock,
                    SessionAccess::Refused(error) => return Err(error),
                    SessionAccess::NotLocked => store.lock_session(&id)?,
                };
                (id, ids, lock)
            }
        };
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
            changes: Arc::clone(&active.change_recorder),
            now: None,
            failure: SaveFailure::None,
            updates: None,
        })
    }

    /// Tells a front end the ids under which the session and its messages are stored.
    pub(crate) fn with_updates(mut self, updates: Sender<front::Update>) -> SessionRecorder {
        self.updates = Some(updates);
        self.announce(front::Update::SessionStored(self.id.to_string()));
        self
    }

    fn announce(&self, update: front::Update) {
        // The front end may be gone.
        let _sent = self.updates.as_ref().map(|updates| updates.send(update));
    }

    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session's id; none if a write failed.
    pub(crate) fn saved_id(&self) -> Option<&SessionId> {
        (self.failure == SaveFailure::None).then_some(&self.id)
    }

    /// The stored id of a history entry.
    pub(crate) fn stored_id(&self, EntryId(at): EntryId) -> Option<MessageId> {
        self.ids.get(at).copied()
    }

    /// The history entry with this stored id.
    pub(crate) fn entry_of(&self, id: MessageId) -> Option<EntryId> {
        self.ids.iter().position(|stored| *stored == id).map(EntryId)
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
    pub(crate) fn move_head(&mut self, head: Option<EntryId>) {
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
            if let Some(recorder) = &self.reply_recorder {
                self.announce(front::Update::MessageStored(recorder.id().0));
            }
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

    fn end_turn(&mut self, end: &TurnEnd) {
        // An unfinished reply stays in the journal only.
        drop(self.reply_recorder.take());
        let noted = self.store.end_turn(&self.write_lock, end);
        self.check(noted);
    }

    fn update_time(&mut self) {
        let now = now();
        self.now = Some(now);
        if let Some(recorder) = &mut self.reply_recorder {
            recorder.set_now(now);
        }
    }

    fn record_message(&mut self, message: &Message) {
        if let Some(at) = message.at.filter(|_| message.begins_turn()) {
            let forgotten = self.store.forget_undone(&self.id);
            self.check(forgotten);
            self.changes.begin_turn(&self.store, &self.id, at);
        }
        let recorder = self.reply_recorder.take().filter(|_| message.role == Role::Assistant);
        let is_announced = recorder.is_some();
        let finished = match recorder {
            Some(mut recorder) => recorder.finish(message, Some(now())),
            None => self.store.append(&self.write_lock, Parent::Head, message),
        };
        let id = self.check(finished);
        if let Some(MessageId(id)) = id.filter(|_| !is_announced) {
            self.announce(front::Update::MessageStored(id));
        }
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
                Update::Ended(end) => recorder.end_turn(end),
                Update::Sending { .. }
                | Update::Retrying { .. }
                | Update::TurnNotice(_)
                | Update::Noted(_)
                | Update::LeftOut(_)
                | Update::ToolStarted(_)
                | Update::ToolOutput { .. }
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
pub fn new_session(model: String, settings: &Settings, first: &Message, here: &Path) -> NewSession {
    let session_settings =
        settings.layer(Layer::Session).map(|(key, value)| (key.name().to_owned(), value.to_string()));
    NewSession {
        title: title_of(first),
        model: Some(model),
        settings: session_settings.collect(),
        folder: Some(session_folder(here)),
        at: Some(now()),
        ..NewSession::default()
    }
}

pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
