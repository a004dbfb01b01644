//! The seam: what a place that keeps sessions has to do. Whoever implements it
//! is held to the tests in `tests/it/conformance.rs`.

use aside_core::block::Time;
use aside_core::conversation::Conversation;
use aside_core::message::Message;

use crate::error::Result;
use crate::journal::Batch;
use crate::lease::Lease;
use crate::ledger::{LedgerLine, LedgerQuery};
use crate::search::{Found, Query};
use crate::session::{
    Change, Loaded, MessageId, NewReply, NewSession, Parent, Session, SessionId, Summary, Tail, Window,
};

/// Keeps sessions. Every call is atomic: it happened whole or not at all.
pub trait Store: Send + Sync {
    fn create(&self, new: &NewSession) -> Result<SessionId>;

    /// A whole conversation at once, with its branches, names and head.
    fn import(&self, conversation: &Conversation, at: Option<Time>) -> Result<SessionId>;

    /// Sessions, the last one used first.
    fn sessions(&self, most: usize) -> Result<Vec<Summary>>;

    /// The session a person means: its id, its title, or the beginning of
    /// either where only one session has it.
    fn find(&self, word: &str) -> Result<SessionId>;

    fn session(&self, id: &SessionId) -> Result<Session>;

    fn change(&self, id: &SessionId, change: &Change) -> Result<()>;

    /// Deletes a session that nobody has open.
    fn delete(&self, id: &SessionId) -> Result<()>;

    /// The right to write to a session; one holder at a time, over all
    /// processes. A reply whose recorder died is closed as interrupted.
    fn lease(&self, id: &SessionId) -> Result<Lease>;

    /// Appends a message and moves the head to it.
    fn append(&self, lease: &Lease, parent: Parent, message: &Message) -> Result<MessageId>;

    /// Goes on from an earlier message; what came after it stays.
    fn set_head(&self, lease: &Lease, head: Option<MessageId>) -> Result<()>;

    /// A reply begins: its place is taken, and the head moves to it.
    fn begin(&self, lease: &Lease, reply: &NewReply) -> Result<MessageId>;

    /// What came since the last call. Stays readable if the process dies now.
    fn extend(&self, reply: MessageId, batch: &Batch) -> Result<()>;

    /// The reply is whole, or as whole as it gets. Without a time or an origin
    /// of its own it has those it began with.
    fn finish(&self, reply: MessageId, message: &Message, ended: Option<Time>) -> Result<()>;

    /// The end of the current branch, without reading the rest.
    fn tail(&self, id: &SessionId, window: Window) -> Result<Tail>;

    fn load(&self, id: &SessionId) -> Result<Loaded>;

    /// What the user said lately, in all sessions: the newest first, each once.
    fn prompts(&self, most: usize) -> Result<Vec<String>>;

    fn search(&self, query: &Query) -> Result<Found>;

    fn ledger(&self, query: &LedgerQuery<'_>) -> Result<Vec<LedgerLine>>;
}
