//! Cohere v2 chat.

mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod types;

pub(super) use request_in::read_request;
pub(super) use request_out::write_request;
pub(super) use stream_in::CohereDecoder;
pub(super) use stream_out::{CohereWriter, whole};
