//! OpenAI Responses, also as others serve it.

mod items;
mod request_out;
mod stream_in;
mod types;

pub(super) use request_out::write;
pub(super) use stream_in::ResponsesDecoder;
