//! Wire types, with the provider's own names.

use crate::json_text::{FirstChoice, Indexed, JsonString, Raw, kept_members, members};

kept_members! {
    GeminiChunk {
        "candidates" => candidates: FirstChoice<Candidate<'a>>,
        "usageMetadata" => usage_metadata: Option<Raw<'a>>,
        "modelVersion" => model_version: JsonString<'a>,
        "promptFeedback" => prompt_feedback: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    } else "responseId" | "createTime";
    Candidate {
        "index" => index: Option<u64>,
        "content" => content: GeminiContent<'a>,
        "finishReason" => finish_reason: JsonString<'a>,
    } else;
}

members! {
    GeminiContent {
        "parts" => parts: Option<Raw<'a>>,
    }
    FunctionCall {
        "id" => id: JsonString<'a>,
        "name" => name: JsonString<'a>,
        "args" => args: Option<Raw<'a>>,
    }
}

impl Indexed for Candidate<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}
