//! HTTP, tool processes and timers. One loop drives the turn machine of `aside-core` for every front end.
//!
//! Reading order: [`update`], [`session`], `turn_loop`, [`exchange`], [`http`], [`tools`], [`prompt`].

mod answer_now;
mod api_key;
pub mod atomic;
pub mod attachments;
mod clock;
pub mod compaction;
pub mod connection_failure;
mod dir;
pub mod endpoint;
mod exact_tokens;
pub mod exchange;
mod front_sink;
pub mod http;
pub mod joined_bytes;
pub mod model_list;
pub mod probe;
pub mod project_files;
pub mod prompt;
pub mod redact;
mod retry;
mod running_updates;
pub mod session;
mod steering;
#[cfg(test)]
mod test_dir;
mod token_calibration;
pub mod tools;
pub mod totals;
mod turn_loop;
pub mod update;

pub use answer_now::AnswerNowSignal;
pub use api_key::{ApiKey, ObtainKey, Secret};
pub use aside_core::connection_failure::ConnectionFailure;
pub use endpoint::Endpoint;
pub use exact_tokens::Vocabularies;
pub use exchange::Exchange;
pub use http::{Http, Timeouts};
pub use redact::Redactor;
pub use session::Session;
pub use steering::SteeringQueue;
pub use turn_loop::NextEffort;
pub use update::{Front, Update};
