//! Stores the conversations of clients as sessions, so that they can be searched
//! and continued like any other session.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use aside_core::block::{Arguments, Block};
use aside_core::conversation::ToolSpec;
use aside_core::message::{Message, Role};
use aside_session::HintedError;
use aside_session::log::{self, LogLevel};
use aside_store::session::{NewSession, PageQuery, Parent, title_of};
use aside_store::{MessageId, SessionId, SqliteStore, Store};
use lru::LruCache;
use tokio::sync::oneshot;

use crate::ids;

/// Turns that wait to be written.
const MAX_WAITING: usize = 256;

/// How many ends of conversations are known without reading their session.
const KNOWN_ENDS: usize = 10_000;

/// Messages that are read at once to find the end of a conversation.
const PAGE: usize = 64;

/// The letters of a session's id.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const ID_LENGTH: usize = 10;

/// A reply, with the history that it answers.
#[derive(Debug)]
pub(crate) struct RecordedTurn {
    /// The id of the conversation's first reply.
    pub(crate) conversation: String,
    /// The reply before it, if that is certain.
    pub(crate) parent: Option<String>,
    pub(crate) reply_id: String,
    pub(crate) history: Vec<Message>,
    pub(crate) reply: Message,
    /// `PROVIDER/MODEL`
    pub(crate) model: String,
    pub(crate) tools: Vec<ToolSpec>,
}

enum Job {
    Turn(Box<RecordedTurn>),
    Flush(oneshot::Sender<()>),
}

/// Writes turns on a thread of its own.
#[derive(Debug)]
pub(crate) struct ConversationRecorder {
    jobs: SyncSender<Job>,
}

impl ConversationRecorder {
    /// Opens the sessions of a data folder.
    pub(crate) fn open(folder: &Path) -> Result<ConversationRecorder, HintedError> {
        let failed = |error: String| HintedError::new(format!("cannot record conversations: {error}"));
        let store = SqliteStore::open(folder).map_err(|error| failed(error.to_string()))?;
        let (jobs, queue) = sync_channel(MAX_WAITING);
        let writer = SessionWriter::new(Arc::new(store));
        let thread = std::thread::Builder::new().name("recorder".to_owned());
        thread.spawn(move || writer.run(&queue)).map_err(|error| failed(error.to_string()))?;
        Ok(ConversationRecorder { jobs })
    }

    /// Queues a turn. A reply never waits for it.
    pub(crate) fn record(&self, turn: RecordedTurn) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) =
            self.jobs.try_send(Job::Turn(Box::new(turn)))
        {
            log::write(LogLevel::Warn, || {
                "a reply was not recorded: the sessions cannot be written fast enough".to_owned()
            });
        }
    }

    /// Waits until everything queued so far is written.
    pub(crate) async fn flush(&self) {
        let (end, done) = oneshot::channel();
        let mut job = Job::Flush(end);
        while let Err(TrySendError::Full(full)) = self.jobs.try_send(job) {
            job = full;
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        // The thread answers or has ended.
        let _answered = done.await;
    }
}

/// Where a conversation ends in the sessions.
type ConversationEnd = (SessionId, MessageId);

struct SessionWriter {
    store: Arc<dyn Store>,
    /// By reply.
    ends: LruCache<String, ConversationEnd>,
}

impl SessionWriter {
    fn new(store: Arc<dyn Store>) -> SessionWriter {
        SessionWriter { store, ends: LruCache::new(NonZeroUsize::new(KNOWN_ENDS).unwrap_or(NonZeroUsize::MIN)) }
    }

    fn run(mut self, queue: &Receiver<Job>) {
        while let Ok(job) = queue.recv() {
            match job {
                Job::Turn(turn) => {
                    if let Err(error) = self.write(&turn) {
                        log::write(LogLevel::Warn, || format!("a reply was not recorded: {error}"));
                    }
                }
                Job::Flush(end) => {
                    // The caller may no longer be waiting.
                    let _gone = end.send(());
                }
            }
        }
    }

    fn write(&mut self, turn: &RecordedTurn) -> aside_store::Result<()> {
        let history: Vec<&Message> = turn.history.iter().filter(|message| message.role != Role::System).collect();
        let last = history.iter().rposition(|message| message.role == Role::Assistant);
        let known = match last.and_then(|last| history.get(last)) {
            Some(previous) => self.end_of(turn, previous)?,
            None => None,
        };
        let (session, mut parent, new) = match (known, last) {
            (Some((session, end)), Some(last)) => {
                (session, Parent::Message(end), history.get(last + 1..).unwrap_or_default())
            }
            (Some(_), None) | (None, _) => (self.create(turn, &history)?, Parent::Nothing, history.as_slice()),
        };
        let lock = self.store.lock_session(&session)?;
        for message in new {
            parent = Parent::Message(self.store.append(&lock, parent, message)?);
        }
        let end = self.store.append(&lock, parent, &turn.reply)?;
        self.ends.put(turn.reply_id.clone(), (session, end));
        Ok(())
    }

    /// The end of the conversation that a turn continues. None if it is not recorded.
    fn end_of(&mut self, turn: &RecordedTurn, previous: &Message) -> aside_store::Result<Option<ConversationEnd>> {
        let Some(parent) = &turn.parent else { return Ok(None) };
        if let Some(end) = self.ends.get(parent) {
            return Ok(Some(end.clone()));
        }
        // Another process may have recorded it.
        let session = session_id(&turn.conversation);
        if self.store.session(&session).is_err() {
            return Ok(None);
        }
        let mut from = None;
        loop {
            let page = self.store.page(&session, PageQuery { from, limit: PAGE })?;
            let found = page.messages.iter().rev().find(|stored| shows_the_same(&stored.message, previous));
            match (found, page.earlier) {
                (Some(found), _) => return Ok(Some((session, found.id))),
                (None, Some(earlier)) => from = Some(earlier),
                (None, None) => return Ok(None),
            }
        }
    }

    /// A session for a conversation. It gets a new id if the usual one is already taken.
    fn create(&self, turn: &RecordedTurn, history: &[&Message]) -> aside_store::Result<SessionId> {
        let id = session_id(&turn.conversation);
        let id = if self.store.session(&id).is_ok() { None } else { Some(id) };
        self.store.create(&NewSession {
            id,
            title: history.iter().find_map(|message| title_of(message)),
            model: Some(turn.model.clone()),
            tools: turn.tools.clone(),
            ..NewSession::default()
        })
    }
}

/// The id of a conversation's session, the same in every process.
fn session_id(conversation: &str) -> SessionId {
    let letter = |byte: &u8| LETTERS.get(usize::from(byte & 31)).copied().map_or('0', char::from);
    SessionId::new(ids::hash(conversation).iter().take(ID_LENGTH).map(letter).collect::<String>())
}

/// Whether two messages of a model have the same text and calls.
fn shows_the_same(stored: &Message, sent: &Message) -> bool {
    let shown = |message: &Message| {
        let (mut words, mut calls) = (String::new(), Vec::new());
        for block in &message.blocks {
            match block {
                Block::Text(text) => words.push_str(text.text.trim()),
                Block::ToolCall(call) => {
                    let (Arguments::Json(arguments) | Arguments::Broken(arguments)) = &call.arguments;
                    calls.push((call.name.clone(), arguments.clone()));
                }
                Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
        (words, calls)
    };
    stored.role == sent.role && shown(stored) == shown(sent)
}

#[cfg(test)]
mod tests {
    use aside_core::block::Text;

    use super::*;

    fn message(role: Role, words: &str) -> Message {
        Message::new(role, vec![Block::Text(Text { text: words.to_owned(), ..Text::default() })])
    }

    fn turn(parent: Option<&str>, reply_id: &str, history: &[Message], words: &str) -> RecordedTurn {
        RecordedTurn {
            conversation: "c1".to_owned(),
            parent: parent.map(str::to_owned),
            reply_id: reply_id.to_owned(),
            history: history.to_vec(),
            reply: message(Role::Assistant, words),
            model: "sim/kimi".to_owned(),
            tools: Vec::new(),
        }
    }

    fn texts(store: &dyn Store) -> Vec<Vec<String>> {
        let text = |message: &Message| match message.blocks.as_slice() {
            [Block::Text(text)] => text.text.clone(),
            blocks => format!("{blocks:?}"),
        };
        let sessions = store.sessions(10).expect("sessions");
        let page = |id: &SessionId| store.page(id, PageQuery { from: None, limit: 100 }).expect("a page").messages;
        sessions.iter().map(|each| page(&each.id).iter().map(|stored| text(&stored.message)).collect()).collect()
    }

    #[test]
    fn g3_a_conversation_becomes_one_session_also_after_a_restart() {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().expect("a store"));
        let system = message(Role::System, "be kind");
        let (a, b) = (message(Role::User, "one?"), message(Role::User, "two?"));
        let mut writer = SessionWriter::new(Arc::clone(&store));
        writer.write(&turn(None, "r1", &[system.clone(), a.clone()], "one.")).expect("written");
        let history = [system, a.clone(), message(Role::Assistant, "one."), b.clone()];
        writer.write(&turn(Some("r1"), "r2", &history, "two.")).expect("written");
        assert_eq!(texts(store.as_ref()), [["one?", "one.", "two?", "two."]]);
        // The same question again is a branch. This writer does not know what the first one kept in memory.
        let mut writer = SessionWriter::new(Arc::clone(&store));
        writer.write(&turn(Some("r1"), "r3", &history, "2.")).expect("written");
        assert_eq!(texts(store.as_ref()), [["one?", "one.", "two?", "2."]]);
        // A history that is not recorded becomes a session of its own.
        let other = [a, message(Role::Assistant, "elsewhere"), b];
        writer
            .write(&RecordedTurn { conversation: "c2".to_owned(), ..turn(None, "r4", &other, "x") })
            .expect("written");
        assert_eq!(texts(store.as_ref()).len(), 2);
        let newest = store.sessions(1).expect("sessions").remove(0);
        assert_eq!((newest.title.as_deref(), newest.model.as_deref()), (Some("one?"), Some("sim/kimi")));
    }
}
