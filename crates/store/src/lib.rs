//! Sessions that are never lost: recorded as they arrive, resumed, searched.
//!
//! [`Store`] is the seam, [`SqliteStore`] the implementation. A [`Recorder`]
//! keeps a running reply safe while it streams.
//!
//! Reading order: [`store`], [`session`], [`recorder`], then `sqlite/schema.rs`.
//! Synchronous, and on top of `aside-core` only. Policy never comes here: what
//! was received is stored, whatever the settings say.

pub mod error;
mod files;
pub mod journal;
pub mod lease;
pub mod ledger;
pub mod recorder;
pub mod search;
pub mod session;
mod sqlite;
pub mod store;
mod stored;

pub use error::{Result, StoreError};
pub use files::data_folder;
pub use journal::Batch;
pub use lease::Lease;
pub use recorder::Recorder;
pub use session::{MessageId, SessionId};
pub use sqlite::{FILE_NAME, Options, SqliteStore};
pub use store::Store;
