//! The outside world: HTTP, tool processes, timers. One loop drives the turn
//! machine of `aside-core` for every front end.
//!
//! Reading order: [`update`], [`session`], `drive`, [`http`], [`tools`], [`prompt`].

mod announce;
pub mod atomic;
pub mod attach;
mod clock;
mod dir;
mod drive;
pub mod endpoint;
pub mod http;
mod hurry;
mod measure;
pub mod probe;
pub mod project_files;
pub mod prompt;
pub mod redact;
mod retry;
pub mod room;
#[cfg(test)]
mod scratch;
pub mod session;
pub mod tools;
pub mod update;

pub use endpoint::{Endpoint, Secret};
pub use http::{Http, Timeouts};
pub use hurry::Hurry;
pub use redact::Redactor;
pub use session::Session;
pub use update::{Front, Update};
