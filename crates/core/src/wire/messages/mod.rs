//! Anthropic Messages, also as others imitate it and as AWS wraps it.

mod blocks;
mod request_in;
mod request_out;
mod stream_in;
mod types;

pub(super) use request_in::read_request;
pub(super) use request_out::{wants_leading_thought, write};
pub(super) use stream_in::MessagesDecoder;
