//! Wire types, with the provider's own names.

use crate::json_text::{JsonString, Raw, kept_members};

kept_members! {
    OllamaLine {
        "model" => model: JsonString<'a>,
        "message" => message: Option<Raw<'a>>,
        /// `/api/generate` puts the answer here.
        "response" => response: Option<Raw<'a>>,
        "thinking" => thinking: Option<Raw<'a>>,
        "done" => done: Option<bool>,
        "done_reason" => done_reason: JsonString<'a>,
        "error" => error: Option<Raw<'a>>,
    } else "created_at" | "prompt_eval_count" | "eval_count";
}
