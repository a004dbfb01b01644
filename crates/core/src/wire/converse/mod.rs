//! AWS Bedrock: Converse, and Anthropic's own events through InvokeModel.

mod stream_in;
mod types;

pub(super) use stream_in::ConverseDecoder;
