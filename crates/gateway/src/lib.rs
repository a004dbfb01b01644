//! The gateway: clients keep their own protocol and use any provider, which gets
//! the thinking that it needs. Everything that was changed is reported.
//!
//! [`Gateway`] answers requests, and [`serve`] does so over HTTP until it is told to
//! stop.
//!
//! Reading order: `route`, `gateway`, `generate`, `same_protocol`, `translate`,
//! `reply_shape`, `receipt`.

mod authentication;
mod client;
mod codex_catalogue;
mod config;
mod connection_threads;
mod conversation_recorder;
mod count_tokens;
mod error_response;
mod forwarded_headers;
mod gateway;
mod generate;
mod host_check;
mod ids;
mod key_admin;
mod limits;
mod memory_setup;
mod metrics;
mod model_lists;
mod pass;
mod provider_error;
mod recall;
mod receipt;
mod relay;
mod relay_buffer;
mod reply_shape;
mod request_body;
mod response_state;
mod route;
mod running_replies;
mod same_protocol;
mod server;
mod tool_names;
mod translate;
mod unchanged_bytes;
mod watched_reply;

pub use config::GatewayOptions;
pub use gateway::Gateway;
pub use ids::{hash_text, new_client_key};
pub use key_admin::{KeyAdmin, KeyListing, KeyOrigin, KeyRights, NewKey};
pub use memory_setup::RotatedKey;
pub use server::{Listening, serve};
