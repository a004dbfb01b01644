//! The database behind the memory: one trait, several implementations.
//!
//! A store sees only encrypted bodies and keyed hashes. Every write can be repeated
//! without harm, so a caller that does not know whether one succeeded tries
//! again.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use aside_core::block::Time;

use crate::error::StoreError;
use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::stored_reply::DAY;
use crate::tenant::TenantId;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use sqlite::{Durability, SqliteStore};

/// A result that arrives later.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// The version of the schema that this code writes.
pub(crate) const SCHEMA: i64 = 1;
/// Rows that are deleted in one statement or transaction.
pub(crate) const DELETE_BATCH: usize = 500;
/// The largest value in one row.
pub(crate) const PART_BYTES: usize = 512 << 10;
/// The kinds of the rows whose key is the reply's own id: they say that it was rejected or deleted. The numbers are stored
/// and never change.
pub(crate) const REJECTED: u8 = 9;
pub(crate) const DELETED: u8 = 10;
/// At most this many candidates of one key are read. More are ambiguous anyway.
pub(crate) const MAX_CANDIDATES: usize = 8;

/// A database of the memory.
pub trait Store: Send + Sync {
    /// Returns the tenant's row, after adding it if there is none.
    fn tenant(&self, new: TenantRow) -> StoreFuture<'_, TenantRow>;

    /// All tenants.
    fn tenants(&self) -> StoreFuture<'_, Vec<TenantRow>>;

    /// Replaces the encrypted keys of these tenants, all or none.
    fn reseal_tenants(&self, rows: Vec<TenantRow>) -> StoreFuture<'_, ()>;

    /// Deletes a tenant and everything that it owns. False if there was none.
    fn forget_tenant(&self, tenant: TenantId) -> StoreFuture<'_, bool>;

    /// Finds replies by keys and by id, in one round trip.
    fn find(&self, query: FindQuery) -> StoreFuture<'_, FoundRows>;

    /// Writes a batch, all or nothing.
    fn write(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()>;

    /// Writes rows that waited in a file. What was deleted since stays deleted.
    fn write_late(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()>;

    /// Deletes what expired before this day. Returns the number of rows.
    fn expire(&self, before_day: i64) -> StoreFuture<'_, u64>;

    /// Deletes the least recently used conversations of a tenant, until its
    /// replies have at most this many bytes before compression. Returns the number
    /// of deleted replies.
    fn trim(&self, tenant: TenantId, max_bytes: u64) -> StoreFuture<'_, u64>;

    /// One receipt.
    fn receipt(&self, tenant: TenantId, id: String) -> StoreFuture<'_, Option<SealedReceipt>>;

    /// Receipts, newest first.
    fn receipts(&self, tenant: TenantId, filter: ReceiptFilter) -> StoreFuture<'_, Vec<SealedReceipt>>;

    /// All keys of clients, by name.
    fn client_keys(&self) -> StoreFuture<'_, Vec<ClientKeyRow>>;

    /// Adds a key. False if there is one with that name or hash.
    fn add_client_key(&self, key: ClientKeyRow) -> StoreFuture<'_, bool>;

    /// Removes a key. False if there was none.
    fn revoke_client_key(&self, name: String) -> StoreFuture<'_, bool>;

    /// A number that grows with every change of tenants, client keys and learned
    /// repairs.
    fn revision(&self) -> StoreFuture<'_, i64>;

    /// The learned repairs that have not expired, as JSON.
    fn learned(&self, now: Time) -> StoreFuture<'_, Vec<String>>;

    /// Adds learned repairs, each with the endpoint it belongs to.
    fn learn(&self, rows: Vec<LearnedRow>) -> StoreFuture<'_, ()>;

    /// Removes all learned repairs. Returns their number.
    fn forget_learned(&self) -> StoreFuture<'_, u64>;

    /// Replaces the totals of a replica.
    fn put_spend(&self, rows: Vec<SpendRow>) -> StoreFuture<'_, ()>;

    /// The totals of all replicas, for windows that began at or after this time.
    fn spend(&self, since_window: i64) -> StoreFuture<'_, Vec<SpendRow>>;
}

/// Selects the conversations to delete, given their sizes, least recently used first.
pub(crate) fn over_quota<C>(conversations: Vec<(C, u64)>, max_bytes: u64) -> Vec<C> {
    let mut total = conversations.iter().fold(0, |total: u64, (_, size)| total.saturating_add(*size));
    let mut out = Vec::new();
    for (conversation, size) in conversations {
        if total <= max_bytes {
            break;
        }
        total = total.saturating_sub(size);
        out.push(conversation);
    }
    out
}

/// A tenant, with its data key encrypted with the store key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantRow {
    /// The id made from its name.
    pub id: TenantId,
    /// Its name.
    pub name: String,
    /// The encrypted data key.
    pub sealed: Vec<u8>,
    /// When it was added.
    pub created: Time,
}

/// A reply as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyRow {
    pub(crate) tenant: TenantId,
    pub(crate) reply: ReplyId,
    pub(crate) conversation: ReplyId,
    pub(crate) parent: Option<ReplyId>,
    pub(crate) dialect: String,
    pub(crate) model: String,
    pub(crate) issuer: Vec<u8>,
    pub(crate) is_interrupted: bool,
    pub(crate) created: Time,
    pub(crate) expires: Time,
    pub(crate) codec: i16,
    /// Before compression.
    pub(crate) size: usize,
    pub(crate) body: Vec<u8>,
    pub(crate) is_rejected: bool,
}

impl ReplyRow {
    /// The day on which it may be deleted.
    pub(crate) fn day(&self) -> i64 {
        day_of(self.expires)
    }
}

/// Days since the Unix epoch.
pub(crate) fn day_of(time: Time) -> i64 {
    i64::try_from(time.0 / DAY).unwrap_or(i64::MAX)
}

pub(crate) fn millis(time: Time) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

pub(crate) fn time(millis: i64) -> Time {
    Time(u64::try_from(millis).unwrap_or(0))
}

/// One thing to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteRow {
    /// A reply with its keys.
    Reply {
        /// The row.
        row: ReplyRow,
        /// The keys that find it.
        keys: Vec<(KeyKind, Key)>,
    },
    /// A reply was used, and is kept longer.
    Touch {
        /// Its tenant.
        tenant: TenantId,
        /// The reply.
        reply: ReplyId,
        /// Its keys.
        keys: Vec<Key>,
        /// When it expires now.
        expires: Time,
    },
    /// The provider refused the seals of a reply.
    Rejected {
        /// Its tenant.
        tenant: TenantId,
        /// The reply.
        reply: ReplyId,
        /// When the reply expires.
        expires: Time,
    },
    /// A reply is deleted.
    Forget {
        /// Its tenant.
        tenant: TenantId,
        /// The reply.
        reply: ReplyId,
        /// Its keys.
        keys: Vec<Key>,
        /// When it would have expired. Until then it may wait in a file of another process.
        expires: Time,
    },
    /// What was done to a request.
    Receipt(SealedReceipt),
}

impl WriteRow {
    /// Whether a client, or the next request of a conversation, waits for it.
    pub(crate) fn is_awaited(&self) -> bool {
        match self {
            WriteRow::Reply { .. } | WriteRow::Rejected { .. } | WriteRow::Forget { .. } => true,
            WriteRow::Touch { .. } | WriteRow::Receipt(_) => false,
        }
    }

    /// Whose it is.
    pub(crate) fn tenant(&self) -> TenantId {
        match self {
            WriteRow::Reply { row, .. } => row.tenant,
            WriteRow::Touch { tenant, .. } | WriteRow::Rejected { tenant, .. } | WriteRow::Forget { tenant, .. } => {
                *tenant
            }
            WriteRow::Receipt(receipt) => receipt.tenant,
        }
    }

    /// The reply that it adds.
    pub(crate) fn new_reply(&self) -> Option<ReplyId> {
        match self {
            WriteRow::Reply { row, .. } => Some(row.reply),
            WriteRow::Touch { .. } | WriteRow::Rejected { .. } | WriteRow::Forget { .. } | WriteRow::Receipt(_) => None,
        }
    }

    /// The bytes that it takes while it waits.
    pub(crate) fn weight(&self) -> usize {
        256 + match self {
            WriteRow::Reply { row, keys } => row.body.len() + 64 * keys.len(),
            WriteRow::Touch { keys, .. } | WriteRow::Forget { keys, .. } => 16 * keys.len(),
            WriteRow::Rejected { .. } => 0,
            WriteRow::Receipt(receipt) => receipt.body.len(),
        }
    }
}

/// A receipt whose body is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedReceipt {
    pub(crate) tenant: TenantId,
    pub(crate) id: String,
    pub(crate) at: Time,
    pub(crate) expires: Time,
    pub(crate) client: String,
    pub(crate) model: String,
    pub(crate) status: u16,
    pub(crate) repaired: String,
    pub(crate) body: Vec<u8>,
}

/// Which receipts to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptFilter {
    /// Only of this client.
    pub client: Option<String>,
    /// Only older ones than this: its time and id.
    pub before: Option<(Time, String)>,
    /// At most this many.
    pub limit: usize,
}

/// What to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindQuery {
    /// Whose replies.
    pub tenant: Option<TenantId>,
    /// By these keys.
    pub keys: Vec<Key>,
    /// By these ids.
    pub replies: Vec<ReplyId>,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundRows {
    /// Every match of a key. A key that has more than [`MAX_CANDIDATES`] replies
    /// has one more match than that.
    pub matches: Vec<(Key, KeyKind, ReplyId)>,
    /// The rows of all matches, each once.
    pub rows: Vec<ReplyRow>,
}

/// The key of a client. The key itself is not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientKeyRow {
    /// Its name, which is unique.
    pub name: String,
    /// `sha256:` and the hash of the key in hexadecimal digits.
    pub hash: String,
    /// The tenant that it belongs to.
    pub tenant: String,
    /// What it may do, as JSON.
    pub settings: String,
    /// When it was added.
    pub created: Time,
}

/// A repair that an endpoint accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedRow {
    /// The endpoint, dialect and model, as one text.
    pub endpoint: String,
    /// The repair as JSON.
    pub repair: String,
    /// When it expires.
    pub expires: Time,
}

/// What one replica has counted for one key in one window of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpendRow {
    /// The client key.
    pub key: String,
    /// What was counted, such as `requests`.
    pub kind: String,
    /// When the window began, in seconds since the Unix epoch.
    pub window: i64,
    /// Who counted.
    pub replica: String,
    /// The total so far.
    pub total: u64,
}
