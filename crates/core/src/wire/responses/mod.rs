//! OpenAI Responses, also for compatible servers.

mod item_out;
mod items;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod types;
mod whole_out;

pub(super) use request_in::read_request;
pub(super) use request_out::write_request;
pub(super) use stream_in::ResponsesDecoder;
pub(super) use stream_out::ResponsesWriter;
pub(super) use whole_out::whole;
