//! HTTP, tool processes and timers. One loop drives the turn machine of `aside-core` for every front end.
//!
//! Reading order: [`update`], [`session`], `turn_loop`, [`http`], [`tools`], [`prompt`].

mod answer_now;
pub mod atomic;
pub mod attachments;
mod clock;
pub mod compaction;
mod dir;
pub mod endpoint;
pub mod http;
pub mod probe;
pub mod project_files;
pub mod prompt;
mod question_updates;
pub mod redact;
mod retry;
pub mod session;
#[cfg(test)]
mod test_dir;
mod token_calibration;
pub mod tools;
mod turn_loop;
pub mod update;

pub use answer_now::AnswerNowSignal;
pub use endpoint::{Endpoint, Secret};
pub use http::{Http, Timeouts};
pub use redact::Redactor;
pub use session::Session;
pub use update::{Front, Update};
