//! Ollama's own chat and generate endpoints.

mod stream_in;
mod types;

pub(super) use stream_in::OllamaDecoder;
