//! Estimates the number of tokens of a text while it streams.

use aside_core::tokens::estimate;

/// Text is counted in chunks of this size, so that the cost of a delta does not grow with the text.
const CHUNK: usize = 256;

#[derive(Debug, Clone, Default)]
pub struct StreamedTokens {
    tokens: u64,
    rest: String,
}

impl StreamedTokens {
    pub fn push(&mut self, text: &str) {
        self.rest.push_str(text);
        if self.rest.len() > CHUNK {
            self.tokens += estimate(&self.rest);
            self.rest.clear();
        }
    }

    pub fn tokens(&self) -> u64 {
        self.tokens + estimate(&self.rest)
    }
}
