//! OpenAI Chat Completions, and the dialects of compatible servers.

mod block_out;
mod calls;
mod delta_members;
mod delta_mode_in;
mod delta_mode_out;
mod detail_out;
mod details;
mod reply_members;
mod request_in;
mod request_out;
mod source_digest;
mod stream_in;
mod stream_out;
mod thinking_carrier;
mod types;
mod whole_out;

pub(super) use request_in::read_request;
pub(super) use request_out::write_request;
pub(super) use stream_in::ChatDecoder;
pub(super) use stream_out::ChatWriter;
pub(super) use thinking_carrier::{ContentState, ThinkingTags, tags_for};
pub(super) use whole_out::whole;
