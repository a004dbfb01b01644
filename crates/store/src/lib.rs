//! Stores sessions: records replies as they stream, resumes and searches.
//!
//! [`Store`] is the interface, [`SqliteStore`] the implementation. A
//! [`ReplyRecorder`] saves a reply while it streams.
//!
//! Reading order: [`store`], [`session`], [`recorder`], then `sqlite/schema.rs`.
//! ```
//! use std::sync::Arc;
//!
//! use aside_core::block::Reply;
//! use aside_core::event::{BlockId, Event, BlockOpening, Sink};
//! use aside_core::message::Message;
//! use aside_store::session::{NewReply, NewSession, Parent};
//! use aside_store::{ReplyRecorder, SqliteStore, Store};
//!
//! # fn main() -> aside_store::Result<()> {
//! let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory()?);
//! let id = store.create(&NewSession::default())?;
//! let lock = store.lock_session(&id)?;
//! let reply = NewReply { parent: Parent::Head, origin: None, at: None };
//! let mut recorder = ReplyRecorder::begin(Arc::clone(&store), &lock, &reply)?;
//! // The recorder takes the same events as the fold.
//! recorder.take(Event::Opened { block: BlockId(0), opening: BlockOpening::Text });
//! recorder.take(Event::Grew { block: BlockId(0), text: "Hello" });
//! recorder.finish(&Message::from_reply(Reply::default(), None), None)?;
//! # Ok(())
//! # }
//! ```
//!
//! Synchronous; depends on `aside-core` only. No setting applies here:
//! everything received is stored.

mod compression;
pub mod error;
pub mod file_changes;
mod files;
pub mod foreign_database;
pub mod journal;
pub mod recorder;
pub mod search;
pub mod session;
mod sqlite;
pub mod store;
mod stored;
pub mod usage;
pub mod write_lock;

pub use error::{Result, StoreError};
pub use files::data_folder;
pub use foreign_database::{ForeignDatabase, ForeignDatabaseError, ForeignSession};
pub use journal::EventBatch;
pub use recorder::ReplyRecorder;
pub use session::{MessageId, SessionId};
pub use sqlite::{FILE_NAME, SqliteStore, StoreOptions};
pub use store::Store;
pub use write_lock::WriteLock;
