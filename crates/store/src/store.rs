//! The interface of a session store. Every implementation must pass the tests
//! in `tests/it/conformance.rs`.

use std::collections::BTreeMap;

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::interchange::Program;
use aside_core::message::Message;
use aside_core::rules::LearnedRepair;
use aside_core::turn::TurnEnd;

use crate::error::Result;
use crate::journal::EventBatch;
use crate::search::{HitList, SearchQuery};
use crate::session::{
    BranchLength, ImportedSession, LoadedSession, MessageId, MessagePage, NewReply, NewSession, PageQuery, Parent,
    SessionChange, SessionDates, SessionId, SessionInfo, SessionSummary,
};
use crate::usage::{UsageQuery, UsageRow};
use crate::write_lock::WriteLock;

/// Stores sessions. Every call is atomic.
pub trait Store: Send + Sync {
    fn create(&self, new: &NewSession) -> Result<SessionId>;

    /// Stores a whole conversation, with its branches, names and head.
    fn import(&self, conversation: &Conversation, at: Option<Time>) -> Result<SessionId>;

    /// Stores a whole conversation among the sessions of its time, not as the
    /// most recently used one.
    fn import_dated(&self, conversation: &Conversation, dates: SessionDates) -> Result<SessionId>;

    /// The sessions that were imported from a program, by the program's own ids.
    fn imported_sessions(&self, program: Program) -> Result<BTreeMap<String, ImportedSession>>;

    /// Sessions, most recently used first.
    fn sessions(&self, limit: usize) -> Result<Vec<SessionSummary>>;

    /// The same, those of this root first and those without a folder last.
    fn sessions_by_folder(&self, root: &str, limit: usize) -> Result<Vec<SessionSummary>>;

    /// How many sessions there are.
    fn n_sessions(&self) -> Result<u64>;

    /// How long the current branch of each session is; 0 if there is no such session. Reads every message, so ask only
    /// for what is shown.
    fn branch_lengths(&self, ids: &[&SessionId]) -> Result<Vec<BranchLength>>;

    /// Finds a session by its id, its title, or an unambiguous prefix of either.
    fn find(&self, word: &str) -> Result<SessionId>;

    fn session(&self, id: &SessionId) -> Result<SessionInfo>;

    fn change(&self, id: &SessionId, change: &SessionChange) -> Result<()>;

    /// Deletes a session. Fails while another process has it open.
    fn delete(&self, id: &SessionId) -> Result<()>;

    /// Locks a session for writing; one holder at a time across all processes.
    /// Marks replies of a crashed recorder as interrupted.
    fn lock_session(&self, id: &SessionId) -> Result<WriteLock>;

    /// Appends a message and moves the head to it.
    fn append(&self, lock: &WriteLock, parent: Parent, message: &Message) -> Result<MessageId>;

    /// Moves the head to an earlier message; later messages stay stored.
    fn set_head(&self, lock: &WriteLock, head: Option<MessageId>) -> Result<()>;

    /// Notes with the head how its turn ended.
    fn end_turn(&self, lock: &WriteLock, end: &TurnEnd) -> Result<()>;

    /// Begins a reply: inserts an empty message and moves the head to it.
    fn begin(&self, lock: &WriteLock, reply: &NewReply) -> Result<MessageId>;

    /// Appends events to a reply's journal. They survive a crash from here on.
    fn extend(&self, reply: MessageId, batch: &EventBatch) -> Result<()>;

    /// Stores the final message of a reply. If it has no time or origin of its
    /// own, it keeps those given to `begin`.
    fn finish(&self, reply: MessageId, message: &Message, ended: Option<Time>) -> Result<()>;

    /// Reads part of the current branch, from its end, without loading the rest.
    fn page(&self, id: &SessionId, query: PageQuery) -> Result<MessagePage>;

    fn load(&self, id: &SessionId) -> Result<LoadedSession>;

    /// Recent prompts of all sessions: newest first, without duplicates.
    fn prompts(&self, limit: usize) -> Result<Vec<String>>;

    /// The repairs that endpoints accepted in the last seven days.
    fn learned_repairs(&self, now: Time) -> Result<Vec<LearnedRepair>>;

    /// Remembers repairs for seven days from now.
    fn learn_repairs(&self, repairs: &[LearnedRepair], now: Time) -> Result<()>;

    /// Forgets all repairs, and returns how many there were.
    fn forget_repairs(&self) -> Result<usize>;

    fn search(&self, query: &SearchQuery) -> Result<HitList>;

    fn usage(&self, query: &UsageQuery<'_>) -> Result<Vec<UsageRow>>;
}
