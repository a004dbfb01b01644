//! AWS Bedrock: Converse, and Anthropic's own events through InvokeModel.

mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod types;

pub(super) use request_in::read_request;
pub(super) use request_out::write_request;
pub(super) use stream_in::ConverseDecoder;
pub(super) use stream_out::{ConverseWriter, whole};
