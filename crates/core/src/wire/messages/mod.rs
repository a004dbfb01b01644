//! Anthropic Messages, also as others imitate it and as AWS wraps it.

mod blocks;
mod stream_in;
mod types;

pub(super) use stream_in::MessagesDecoder;
