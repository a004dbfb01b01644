//! Bytes of any provider's stream into one neutral event stream, and from
//! there into blocks. Deterministic: no IO, no clock, no environment.
//!
//! Reading order: [`event`], [`block`], [`fold`], then `wire/chat`, then
//! [`dialect`].

pub mod block;
pub mod compact;
pub mod conversation;
pub mod dialect;
pub mod event;
pub mod exchange;
pub mod fold;
pub mod frame;
pub mod history;
pub mod json;
pub mod message;
pub mod protocol;
pub mod rules;
pub mod screen;
pub mod settings;
pub mod tags;
pub mod text;
pub mod tokens;
pub mod turn;
pub mod wire;
