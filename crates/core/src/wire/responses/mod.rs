//! OpenAI Responses, also as others serve it.

mod items;
mod stream_in;
mod types;

pub(super) use stream_in::ResponsesDecoder;
