//! Wire types, with the provider's own names.

use crate::json_text::{FirstChoice, Indexed, JsonString, Raw, kept_members};

kept_members! {
    ChatChunk {
        "model" => model: JsonString<'a>,
        "choices" => choices: FirstChoice<ChatChoice<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        /// Groq puts its usage here.
        "x_groq" => x_groq: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
        // Kept, and repeated in almost every chunk.
        "system_fingerprint" => system_fingerprint: Option<Raw<'a>>,
        "service_tier" => service_tier: Option<Raw<'a>>,
        "provider" => provider: Option<Raw<'a>>,
    // Ids and padding, and an echo of the request.
    } else "id" | "object" | "created" | "request_id" | "generationId" | "obfuscation" | "p" | "stream_options";
    ChatChoice {
        "index" => index: Option<u64>,
        "delta" => delta: Option<Raw<'a>>,
        "message" => message: Option<Raw<'a>>,
        "finish_reason" => finish_reason: JsonString<'a>,
        "error" => error: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
    // One server repeats the delta's text in `text`.
    } else "role" | "text" | "obfuscation";
    /// One entry of `tool_calls`.
    CallDelta {
        "index" => index: Option<u64>,
        "id" => id: JsonString<'a>,
        "function" => function: ChatFunction<'a>,
        /// A free-form tool: its input is plain text.
        "custom" => custom: ChatFunction<'a>,
    } else "type";
    ChatFunction {
        "name" => name: JsonString<'a>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
    } else;
}

impl Indexed for ChatChoice<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}
