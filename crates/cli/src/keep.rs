//! Sessions that outlive the process: what the engine tells is written as it
//! comes, beside whatever shows it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aside_core::block::{Origin, Time};
use aside_core::conversation::Conversation;
use aside_core::event::{Event, Sink};
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, Settings};
use aside_engine::{Front, Update};
use aside_store::session::{Change, NewReply, NewSession, Parent, title_of};
use aside_store::{Lease, MessageId, Recorder, SessionId, SqliteStore, Store, StoreError};

use crate::report::Report;
use crate::{log, user_files};

/// Which session a command goes on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which<'a> {
    New,
    /// The one used last.
    Last,
    /// By id, title, or the beginning of either.
    Named(&'a str),
}

/// The store of this user. One that cannot be written can still be read; who
/// writes to it is told.
pub(crate) fn store() -> Result<Arc<SqliteStore>, Report> {
    let folder = data_folder()?;
    let opened = match SqliteStore::open(&folder) {
        Err(StoreError::ReadOnly { path, detail }) => {
            SqliteStore::open_read_only(&folder).map_err(|_| StoreError::ReadOnly { path, detail })
        }
        opened => opened,
    };
    opened.map(Arc::new).map_err(|error| trouble(&error))
}

/// The store, if sessions can be kept in it.
pub(crate) fn writable_store() -> Result<SqliteStore, Report> {
    SqliteStore::open(&data_folder()?).map_err(|error| trouble(&error))
}

fn data_folder() -> Result<PathBuf, Report> {
    user_files::data_folder()
        .ok_or_else(|| Report::new("there is no data folder").hint("set HOME, or ASIDE_DATA_DIR to a folder"))
}

/// The session a person means.
pub(crate) fn find(store: &SqliteStore, which: Which<'_>) -> Result<Option<SessionId>, Report> {
    match which {
        Which::New => Ok(None),
        Which::Named(word) => store.find(word).map(Some).map_err(|error| trouble(&error)),
        Which::Last => match store.sessions(1).map_err(|error| trouble(&error))?.into_iter().next() {
            Some(last) => Ok(Some(last.id)),
            None => Err(Report::new("there is no session yet").hint("aside ask begins one")),
        },
    }
}

/// A failure of the store, which says what to do about it.
pub(crate) fn trouble(error: &StoreError) -> Report {
    Report::new(error.to_string())
}

/// A session that goes on.
pub(crate) struct Resumed {
    pub(crate) id: SessionId,
    pub(crate) conversation: Conversation,
    /// The id of each entry of the history, in its order.
    pub(crate) ids: Vec<MessageId>,
}

pub(crate) fn resume(store: &SqliteStore, which: Which<'_>) -> Result<Option<Resumed>, Report> {
    let Some(id) = find(store, which)? else { return Ok(None) };
    let loaded = store.load(&id).map_err(|error| trouble(&error))?;
    Ok(Some(Resumed { id, conversation: loaded.conversation, ids: loaded.ids }))
}

/// Writes a session while another front end shows it.
pub(crate) struct Keeper<'a> {
    inner: &'a mut dyn Front,
    desk: Option<&'a mut Desk>,
}

/// Something that could not be written. The turn goes on, and it is said once.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    None,
    New(String),
    Said,
}

/// A session of the store, held by this process.
pub(crate) struct Desk {
    store: Arc<SqliteStore>,
    id: SessionId,
    lease: Lease,
    origin: Origin,
    recorder: Option<Recorder>,
    /// What the entries of the history are here, in their order.
    ids: Vec<MessageId>,
    now: Option<Time>,
    trouble: Trouble,
}

impl Desk {
    /// Holds the session, or begins one with what is said so far.
    pub(crate) fn open(
        store: Arc<SqliteStore>,
        known: Option<(SessionId, Vec<MessageId>)>,
        new: NewSession,
        history: &History,
        origin: Origin,
    ) -> Result<Desk, StoreError> {
        let is_new = known.is_none();
        let (id, mut ids) = match known {
            Some(known) => known,
            None => (store.create(&new)?, Vec::new()),
        };
        let lease = store.lease(&id)?;
        if is_new {
            for (_, message) in history.branch() {
                ids.push(store.append(&lease, Parent::Head, message)?);
            }
        } else if new.model.is_some() {
            store.change(&id, &Change::Model(new.model))?;
        }
        Ok(Desk { store, id, lease, origin, recorder: None, ids, now: None, trouble: Trouble::None })
    }

    /// The session, unless not all of it could be written.
    pub(crate) fn kept(&self) -> Option<&SessionId> {
        (self.trouble == Trouble::None).then_some(&self.id)
    }

    /// What comes from here on was made by somebody else.
    pub(crate) fn made_by(&mut self, origin: Origin, model: String) {
        self.origin = origin;
        let changed = self.store.change(&self.id, &Change::Model(Some(model)));
        self.check(changed);
    }

    pub(crate) fn change(&mut self, change: &Change) {
        let changed = self.store.change(&self.id, change);
        self.check(changed);
    }

    /// Goes on from an earlier entry of the history.
    pub(crate) fn go_to(&mut self, head: Option<EntryId>) {
        let head = match head.map(|EntryId(at)| self.ids.get(at).copied()) {
            None => None,
            Some(Some(id)) => Some(id),
            // It could not be written; nothing before it is given up for that.
            Some(None) => return,
        };
        let moved = self.store.set_head(&self.lease, head);
        self.check(moved);
    }

    /// Whatever happens to the disk, the turn goes on; the user is told once.
    fn check<T>(&mut self, result: Result<T, StoreError>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(error) => {
                if self.trouble == Trouble::None {
                    self.trouble = Trouble::New(format!("the session is not being saved: {error}"));
                }
                None
            }
        }
    }

    fn take(&mut self, event: Event<'_>) {
        if self.recorder.is_none() && matches!(event, Event::Opened { .. }) {
            let reply = NewReply { parent: Parent::Head, origin: Some(self.origin.clone()), at: self.now };
            let begun = Recorder::begin(Arc::clone(&self.store) as Arc<dyn Store>, &self.lease, &reply);
            self.recorder = self.check(begun);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.take(event);
        }
    }

    /// A shorter branch, beside the one it sums up.
    fn compacted(&mut self, branch: &[&Message]) {
        let moved = self.store.set_head(&self.lease, None);
        self.check(moved);
        for message in branch {
            let kept = self.store.append(&self.lease, Parent::Head, message);
            let id = self.check(kept);
            self.ids.extend(id);
        }
    }

    fn received(&mut self) {
        let now = now();
        self.now = Some(now);
        if let Some(recorder) = &mut self.recorder {
            recorder.set_now(now);
        }
    }

    fn recorded(&mut self, message: &Message) {
        let finished = match self.recorder.take().filter(|_| message.role == Role::Assistant) {
            Some(mut recorder) => recorder.finish(message, Some(now())),
            None => self.store.append(&self.lease, Parent::Head, message),
        };
        let id = self.check(finished);
        self.ids.extend(id);
    }
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(inner: &'a mut dyn Front, desk: Option<&'a mut Desk>) -> Keeper<'a> {
        Keeper { inner, desk }
    }
}

impl Front for Keeper<'_> {
    fn hear(&mut self, update: Update<'_>) {
        log::hear(&update);
        if let Some(desk) = &mut self.desk {
            match &update {
                Update::Event { event, .. } => desk.take(*event),
                Update::Received(_) => desk.received(),
                Update::Recorded(message) => desk.recorded(message),
                Update::Compacted { branch, .. } => desk.compacted(branch),
                // A reply that came to nothing leaves nothing behind but itself.
                Update::Ended(_) => drop(desk.recorder.take()),
                Update::Sending { .. }
                | Update::Retrying { .. }
                | Update::Told(_)
                | Update::Noted(_)
                | Update::ToolStarted(_)
                | Update::ToolEnded { .. }
                | Update::Asked(_)
                | Update::Answered { .. } => (),
            }
            if let Trouble::New(what) = &desk.trouble {
                log::note(log::Level::Warn, || what.clone());
                self.inner.hear(Update::Noted(what));
                desk.trouble = Trouble::Said;
            }
        }
        self.inner.hear(update);
    }

    fn rest(&mut self) {
        self.inner.rest();
    }

    fn beat(&self) -> Option<Duration> {
        self.inner.beat()
    }

    fn tick(&mut self) {
        self.inner.tick();
    }
}

/// What is known of a session before it begins.
pub(crate) fn new_session(model: String, settings: &Settings, first: &Message) -> NewSession {
    let said = settings.layer(Layer::Session).map(|(key, value)| (key.name().to_owned(), value.to_string()));
    NewSession {
        title: title_of(first),
        model: Some(model),
        settings: said.collect(),
        at: Some(now()),
        ..NewSession::default()
    }
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
