//! What the gateway remembers: the thinking of every reply, found again by what a
//! client sends back.
//!
//! A client may lose the thinking of a reply, rename its calls, trim its text,
//! cut the history or change the session. [`Memory::restore`] finds the reply by
//! the strongest [`Evidence`] there is, and puts its thinking back exactly. If
//! several replies fit and their thinking differs, nothing is put back: wrong
//! thinking is worse than none.
//!
//! Everything belongs to a [`Tenant`], whose keys hash and encrypt all of it.
//! All decisions are made without IO (`keys`, `evidence`, `restore`); a [`store::Store`]
//! keeps the rows.

mod cache;
mod error;
mod evidence;
mod journal;
mod keys;
mod memory;
mod normal_form;
mod options;
mod placeholders;
mod put_back;
pub mod random;
mod read_gate;
mod receipt;
mod reference;
mod reply_draft;
mod reply_id;
mod restore;
mod row_bytes;
mod spill;
mod state;
pub mod store;
mod store_key;
mod stored_reply;
mod tables;
mod tenant;
mod unstored;
mod write_queue;
mod writer;

pub use error::StoreError;
pub use evidence::Evidence;
pub use keys::{Key, KeyKind};
pub use memory::{Memory, StoreHealth};
pub use normal_form::SHOWN_THINKING;
pub use options::{MemoryOptions, StoreLocation};
pub use receipt::{ReceiptDecision, RepairCounts, decisions};
pub use reference::Reference;
pub use reply_draft::{PendingWrite, ReplyDraft};
pub use reply_id::ReplyId;
pub use restore::{Outcome, Restored, RestoredTurn};
pub use state::StoreState;
pub use store::{ClientKeyRow, Durability, ReceiptFilter, SpendRow};
pub use store_key::{KeyFile, StoreKey, StoreKeyError};
pub use stored_reply::StoredReply;
pub use tables::ReceiptRow;
pub use tenant::{Tenant, TenantId};
