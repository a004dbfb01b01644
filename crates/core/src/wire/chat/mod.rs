//! OpenAI Chat Completions, in all the dialects of its imitators.

mod calls;
mod details;
mod echo;
mod freshness;
mod request_in;
mod request_out;
mod stream_in;
mod types;

pub(super) use request_in::read_request;
pub(super) use request_out::write;
pub(super) use stream_in::ChatDecoder;
