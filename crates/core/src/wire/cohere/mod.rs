//! Cohere v2 chat.

mod stream_in;
mod types;

pub(super) use stream_in::CohereDecoder;
