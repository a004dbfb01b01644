//! Sessions that are never lost: recorded as they arrive, resumed, searched.
//!
//! [`Store`] is the seam, [`SqliteStore`] the implementation. A [`Recorder`]
//! keeps a running reply safe while it streams.
//!
//! Reading order: [`store`], [`session`], [`recorder`], then `sqlite/schema.rs`.
//! ```
//! use std::sync::Arc;
//!
//! use aside_core::block::Reply;
//! use aside_core::event::{BlockId, Event, Opening, Sink};
//! use aside_core::message::Message;
//! use aside_store::session::{NewReply, NewSession, Parent};
//! use aside_store::{Recorder, SqliteStore, Store};
//!
//! # fn main() -> aside_store::Result<()> {
//! let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory()?);
//! let id = store.create(&NewSession::default())?;
//! let lease = store.lease(&id)?;
//! let reply = NewReply { parent: Parent::Head, origin: None, at: None };
//! let mut recorder = Recorder::begin(Arc::clone(&store), &lease, &reply)?;
//! // The decoder's events go to the recorder as they go to the fold.
//! recorder.take(Event::Opened { block: BlockId(0), opening: Opening::Text });
//! recorder.take(Event::Grew { block: BlockId(0), text: "Hello" });
//! recorder.finish(&Message::from_reply(Reply::default(), None), None)?;
//! # Ok(())
//! # }
//! ```
//!
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
