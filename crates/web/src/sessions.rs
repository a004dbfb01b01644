//! The sessions that are open in this server, and the store behind them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aside_front::{CompletionLists, Status};
use aside_session::stored_session::session_folder;
use aside_session::{HintedError, SessionChoice, SessionHandle, SessionOptions, spawn};
use aside_store::search::{HitCount, SearchQuery};
use aside_store::session::{MessagePage, PageQuery, SessionMessage};
use aside_store::{MessageId, SessionId, SqliteStore, Store, StoreError};
use serde_json::{Value, json};

use crate::entry::{Body, Entry};
use crate::hub::{Hub, HubAccess};
use crate::transcript::{Transcript, WithText};
use crate::view::{BlockView, EntryView, Extent, Progress, result};

/// Messages that a tab gets at first, and more of them at a time.
const PAGE_MESSAGES: usize = 40;
/// A page of messages has at most this many bytes of text, but at least the messages of one turn.
const PAGE_BYTES: usize = 512 << 10;
const MIN_PAGE_MESSAGES: usize = 4;
/// A session without tabs is closed after this long, so that another program can continue it.
const IDLE: Duration = Duration::from_secs(8);
/// How often the store is read for a session that another process writes.
const FOLLOW_EVERY: Duration = Duration::from_millis(600);
/// Sessions that can be open at once. Each has a thread and its history in memory.
const MAX_OPEN: usize = 64;
const MAX_LISTED: usize = 200;
const MAX_HITS: usize = 50;

/// Creates the options of a session, except for which one to continue.
pub type OptionsMaker = dyn Fn() -> SessionOptions + Send + Sync;

/// Why a session cannot be shown.
#[derive(Debug)]
pub(crate) enum OpenError {
    NotFound,
    TooMany,
    Failed(HintedError),
}

pub struct Sessions {
    store: Arc<SqliteStore>,
    options: Box<OptionsMaker>,
    open: Mutex<HashMap<String, Arc<Hub>>>,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    pub fn new(store: Arc<SqliteStore>, options: Box<OptionsMaker>) -> Sessions {
        Sessions { store, options, open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Hub>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session, if it is open here. A copy is found by its new id.
    fn open_hub(&self, id: &str) -> Option<Arc<Hub>> {
        let mut open = self.lock();
        if let Some(hub) = open.get(id).filter(|hub| !hub.has_ended() && hub.id() == id) {
            return Some(Arc::clone(hub));
        }
        let (key, hub) = open.iter().find(|(_, hub)| !hub.has_ended() && hub.id() == id)?;
        let (key, hub) = (key.clone(), Arc::clone(hub));
        open.remove(&key);
        open.insert(id.to_owned(), Arc::clone(&hub));
        Some(hub)
    }

    /// Starts a session and returns its id.
    pub(crate) fn begin(self: &Arc<Sessions>, model: Option<String>) -> Result<String, OpenError> {
        let id = self.store.unused_id().map_err(|error| failed(&error))?;
        let mut options = SessionOptions { choice: SessionChoice::New, new_id: Some(id.clone()), ..(self.options)() };
        options.model = model.or(options.model);
        self.spawn(id.as_str(), options, Transcript::default())?;
        Ok(id.as_str().to_owned())
    }

    /// Continues the session of a choice, and returns its id; none to start a new one.
    pub(crate) fn find(&self, choice: &SessionChoice) -> Result<Option<String>, HintedError> {
        use aside_session::stored_session::{FoundSession, find_session};
        let folder = (self.options)().folder;
        match find_session(&self.store, choice, &folder)? {
            FoundSession::New => Ok(None),
            FoundSession::Stored(id) => Ok(Some(id.as_str().to_owned())),
            FoundSession::NoneHere(none) => Err(none.error()),
        }
    }

    /// The session with this id: open here, or opened now.
    pub(crate) fn get(self: &Arc<Sessions>, id: &str) -> Result<Arc<Hub>, OpenError> {
        match self.open_hub(id) {
            Some(hub) => Ok(hub),
            None => self.open_stored(id),
        }
    }

    fn open_stored(self: &Arc<Sessions>, id: &str) -> Result<Arc<Hub>, OpenError> {
        let session = SessionId::new(id);
        let info = match self.store.session(&session) {
            Ok(info) => info,
            Err(StoreError::NoSuchSession { .. }) => return Err(OpenError::NotFound),
            Err(error) => return Err(failed(&error)),
        };
        match self.is_free(&session)? {
            true => {
                let (entries, earlier) = self.stored_entries(id).unwrap_or_default();
                self.spawn(id, self.resume_options(id), Transcript::new(entries, earlier))
            }
            false => {
                let (entries, earlier) = self.stored_entries(id).unwrap_or_default();
                let status = Status { model: info.model.unwrap_or_default(), title: info.title, ..Status::default() };
                let transcript = Transcript::new(entries, earlier);
                let hub = Hub::new(id.to_owned(), transcript, status, CompletionLists::default(), HubAccess::Reader);
                let hub = self.add(id, hub)?;
                self.follow(&hub);
                Ok(hub)
            }
        }
    }

    fn resume_options(&self, id: &str) -> SessionOptions {
        SessionOptions { choice: SessionChoice::Named(id.to_owned()), ..(self.options)() }
    }

    /// Whether no other process has the session open.
    fn is_free(&self, id: &SessionId) -> Result<bool, OpenError> {
        match self.store.lock_session(id) {
            Ok(_lock) => Ok(true),
            Err(StoreError::InUse { .. }) => Ok(false),
            // It can be read, and the session reports that it is not saved.
            Err(StoreError::ReadOnly { .. }) => Ok(true),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Keeps a hub, unless there are too many or another tab was faster.
    fn add(&self, id: &str, hub: Hub) -> Result<Arc<Hub>, OpenError> {
        let mut open = self.lock();
        if open.len() >= MAX_OPEN {
            return Err(OpenError::TooMany);
        }
        let hub = Arc::new(hub);
        open.insert(id.to_owned(), Arc::clone(&hub));
        Ok(hub)
    }

    fn spawn(
        self: &Arc<Sessions>,
        id: &str,
        options: SessionOptions,
        entries: Transcript,
    ) -> Result<Arc<Hub>, OpenError> {
        if self.lock().len() >= MAX_OPEN {
            return Err(OpenError::TooMany);
        }
        let SessionHandle { commands, updates, setup, session } = spawn(options).map_err(OpenError::Failed)?;
        let hub = Hub::new(id.to_owned(), entries, setup.status, setup.lists, HubAccess::Writer(commands));
        let hub = self.add(id, hub)?;
        self.run(&hub, updates, session);
        Ok(hub)
    }

    /// Feeds the hub from its session, on a thread of its own.
    fn run(
        self: &Arc<Sessions>,
        hub: &Arc<Hub>,
        updates: std::sync::mpsc::Receiver<aside_front::Update>,
        session: aside_session::RunningSession,
    ) {
        let (hub, sessions) = (Arc::clone(hub), Arc::clone(self));
        std::thread::spawn(move || {
            hub.pump(&updates, &|id| sessions.stored_entries(id));
            sessions.forget(&hub);
            let _saved = session.join();
        });
    }

    /// Reads the store at intervals, for a session that another process writes.
    fn follow(self: &Arc<Sessions>, hub: &Arc<Hub>) {
        let (hub, sessions) = (Arc::clone(hub), Arc::clone(self));
        std::thread::spawn(move || {
            while hub.is_reader() {
                std::thread::sleep(FOLLOW_EVERY);
                if !hub.has_tabs() {
                    continue;
                }
                if let Some((entries, earlier)) = sessions.stored_entries(&hub.id()).filter(|_| hub.is_reader()) {
                    hub.sync(entries, earlier);
                }
            }
        });
    }

    /// Writes to a session that was only read, if the other process has closed it.
    pub(crate) fn take_over(self: &Arc<Sessions>, hub: &Arc<Hub>) -> Result<bool, OpenError> {
        let id = hub.id();
        if !self.is_free(&SessionId::new(id.as_str()))? {
            return Ok(false);
        }
        let SessionHandle { commands, updates, setup, session } =
            spawn(self.resume_options(&id)).map_err(OpenError::Failed)?;
        hub.take_over(commands, setup.status, setup.lists);
        if let Some((entries, earlier)) = self.stored_entries(&id) {
            hub.sync(entries, earlier);
        }
        self.run(hub, updates, session);
        Ok(true)
    }

    fn forget(&self, hub: &Arc<Hub>) {
        self.lock().retain(|_, open| !Arc::ptr_eq(open, hub));
    }

    /// Closes the sessions without tabs.
    pub(crate) fn close_idle(&self) {
        self.lock().retain(|_, hub| {
            let is_over = hub.has_ended() || hub.is_idle(IDLE);
            if is_over {
                hub.end();
            }
            !is_over
        });
    }

    /// Ends all sessions. Their threads store what is open.
    pub(crate) fn close_all(&self) {
        self.lock().drain().for_each(|(_, hub)| hub.end());
    }

    /// The newest messages of a session.
    fn stored_entries(&self, id: &str) -> Option<(Vec<Entry>, Option<i64>)> {
        self.page(id, None).ok()
    }

    fn page(&self, id: &str, from: Option<i64>) -> Result<(Vec<Entry>, Option<i64>), StoreError> {
        let query = PageQuery { from: from.map(MessageId), limit: PAGE_MESSAGES };
        let MessagePage { messages, earlier } = self.store.page(&SessionId::new(id), query)?;
        let mut entries: Vec<Entry> = messages.iter().map(entry).collect();
        let mut earlier = earlier.map(|id| id.0);
        let size = |entry: &Entry| entry.blocks.iter().map(|body| body.text().len()).sum::<usize>();
        let (mut bytes, mut kept) = (0, 0);
        for entry in entries.iter().rev() {
            bytes += size(entry);
            if bytes > PAGE_BYTES && kept >= MIN_PAGE_MESSAGES {
                break;
            }
            kept += 1;
        }
        let n_left_out = entries.len() - kept;
        if let Some(last) = n_left_out.checked_sub(1).and_then(|last| entries.get(last)) {
            earlier = Some(last.id);
            entries.drain(..n_left_out);
        }
        Ok((entries, earlier))
    }

    /// The messages before one that a tab has.
    pub(crate) fn earlier(&self, id: &str, from: i64) -> Result<Value, OpenError> {
        let (entries, earlier) = self.page(id, Some(from)).map_err(|error| failed(&error))?;
        let views: Vec<EntryView> = entries.iter().map(|entry| entry.view(&mut 0)).collect();
        Ok(json!({"entries": views, "earlier": earlier}))
    }

    fn stored_block(&self, id: &str, entry_id: i64, block: usize) -> Result<Body, OpenError> {
        let query = PageQuery { from: Some(MessageId(entry_id)), limit: 1 };
        let page = self.store.page(&SessionId::new(id), query).map_err(|error| failed(&error))?;
        let found = page.messages.iter().find(|message| message.id.0 == entry_id).map(entry);
        let body = found.and_then(|mut entry| (block < entry.blocks.len()).then(|| entry.blocks.remove(block)));
        body.ok_or(OpenError::NotFound)
    }

    /// A whole block: thinking as Markdown, an output with all its lines.
    pub(crate) fn block(&self, id: &str, entry_id: i64, block: usize) -> Result<Value, OpenError> {
        // A reply that is still being received is complete here, and a little behind in the store.
        let live = self.open_hub(id).and_then(|hub| hub.block(entry_id, block));
        let body = match live {
            Some(body) => body,
            None => self.stored_block(id, entry_id, block)?,
        };
        Ok(match body {
            Body::Result { call, state, text } => json!(BlockView::Result(result(&call, state, &text, Extent::Whole))),
            body @ Body::Thinking(_) => {
                let mut value = json!(body.view(WithText::Yes));
                if let Some(members) = value.as_object_mut() {
                    members.insert("nodes".to_owned(), json!(aside_markdown::parse(body.text())));
                }
                value
            }
            body @ (Body::Answer(_) | Body::Prompt(_) | Body::Call(_) | Body::Other(_)) => {
                json!(body.view(WithText::Yes))
            }
        })
    }

    /// The stored sessions, those of this folder first.
    pub(crate) fn list(&self) -> Result<Value, OpenError> {
        let root = session_folder(&(self.options)().folder).root;
        let listed = self.store.sessions_by_folder(&root, MAX_LISTED).map_err(|error| failed(&error))?;
        let ids: Vec<&SessionId> = listed.iter().map(|session| &session.id).collect();
        let lengths = self.store.branch_lengths(&ids).map_err(|error| failed(&error))?;
        let open = self.lock();
        let running = |id: &str| open.values().any(|hub| hub.is_running() && hub.id() == id);
        let rows: Vec<Value> = listed
            .iter()
            .zip(lengths)
            .map(|(session, length)| {
                json!({
                    "id": session.id.as_str(), "title": session.title, "model": session.model,
                    "folder": session.folder.as_ref().map(|folder| &folder.path),
                    "here": session.folder.as_ref().is_some_and(|folder| folder.root == root),
                    "messages": length.n_messages, "changed": session.changed.0,
                    "running": running(session.id.as_str()),
                })
            })
            .collect();
        Ok(json!({"sessions": rows}))
    }

    pub(crate) fn search(&self, words: &str) -> Result<Value, OpenError> {
        let query = SearchQuery { limit: MAX_HITS, ..SearchQuery::new(words) };
        let found = self.store.search(&query).map_err(|error| failed(&error))?;
        let hits: Vec<Value> = found
            .hits
            .iter()
            .map(|hit| {
                // The page counts characters as JavaScript does.
                let utf16 = |at: usize| hit.snippet.get(..at).map_or(0, |before| before.encode_utf16().count());
                let marks: Vec<[usize; 2]> =
                    hit.marks.iter().map(|mark| [utf16(mark.start), utf16(mark.end)]).collect();
                json!({
                    "session": hit.session.as_str(), "title": hit.title, "entry": hit.message.0, "block": hit.block,
                    "kind": hit.kind.as_str(), "at": hit.at.map(|at| at.0), "snippet": hit.snippet, "marks": marks,
                })
            })
            .collect();
        let (count, is_exact) = match found.count {
            HitCount::Exactly(count) => (count, true),
            HitCount::AtLeast(count) => (count, false),
        };
        Ok(json!({"hits": hits, "count": count, "exact": is_exact}))
    }
}

/// A stored message. One that another process is receiving is running.
fn entry(stored: &SessionMessage) -> Entry {
    let mut entry = Entry::of(stored.id.0, &stored.message);
    if stored.is_running {
        entry.state = Progress::Running;
        if let Some(Body::Thinking(last)) = entry.blocks.last_mut() {
            last.state = Progress::Running;
        }
    }
    entry.mark_framed();
    entry
}

fn failed(error: &StoreError) -> OpenError {
    if matches!(error, StoreError::NoSuchSession { .. } | StoreError::NoSuchMessage { .. }) {
        return OpenError::NotFound;
    }
    OpenError::Failed(HintedError::new(error.to_string()))
}
