//! Anthropic Messages, also as others imitate it and as AWS wraps it.

mod blocks;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod types;
mod whole_out;

pub(super) use request_in::read_request;
pub(super) use request_out::{wants_leading_thought, write};
pub(super) use stream_in::MessagesDecoder;
pub(super) use stream_out::MessagesWriter;
pub(super) use whole_out::whole;
