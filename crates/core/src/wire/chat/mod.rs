//! OpenAI Chat Completions, in all the dialects of its imitators.

mod calls;
mod details;
mod echo;
mod entry;
mod freshness;
mod pace;
mod phrases;
mod place;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod types;
mod whole_out;

pub(super) use place::{Course, Tags, tags};
pub(super) use request_in::read_request;
pub(super) use request_out::write;
pub(super) use stream_in::ChatDecoder;
pub(super) use stream_out::ChatWriter;
pub(super) use whole_out::whole;
