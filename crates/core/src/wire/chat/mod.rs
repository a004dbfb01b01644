//! OpenAI Chat Completions, in all the dialects of its imitators.

mod calls;
mod details;
mod echo;
mod freshness;
mod stream_in;
mod types;

pub(super) use stream_in::ChatDecoder;
