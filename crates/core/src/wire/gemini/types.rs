//! The provider's words, kept exactly.

use crate::wire::json::{Indexed, Raw, Word, Zeroth, members};

members! {
    Chunk {
        "candidates" => candidates: Zeroth<Candidate<'a>>,
        "usageMetadata" => usage_metadata: Option<Raw<'a>>,
        "modelVersion" => model_version: Word<'a>,
        "promptFeedback" => prompt_feedback: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    }
    Candidate {
        "index" => index: Option<u64>,
        "content" => content: Content<'a>,
        "finishReason" => finish_reason: Word<'a>,
    }
    Content {
        "parts" => parts: Option<Raw<'a>>,
    }
    FunctionCall {
        "id" => id: Word<'a>,
        "name" => name: Word<'a>,
        "args" => args: Option<Raw<'a>>,
    }
}

impl Indexed for Candidate<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}
