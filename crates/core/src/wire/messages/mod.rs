//! Anthropic Messages, also for compatible servers and AWS.

mod blocks;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod types;
mod whole_out;

pub(super) use request_in::read_request;
pub(super) use request_out::{requires_leading_thinking, write_request};
pub(super) use stream_in::MessagesDecoder;
pub(super) use stream_out::MessagesWriter;
pub(super) use whole_out::whole;
