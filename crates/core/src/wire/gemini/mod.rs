//! Gemini generateContent.

mod stream_in;
mod types;

pub(super) use stream_in::GeminiDecoder;
