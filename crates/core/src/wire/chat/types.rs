//! Wire types, with the provider's own names.

use crate::json_text::{FirstChoice, Indexed, JsonString, Raw, members};

members! {
    ChatChunk {
        "model" => model: JsonString<'a>,
        "choices" => choices: FirstChoice<ChatChoice<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        /// Groq puts its usage here.
        "x_groq" => x_groq: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    }
    ChatChoice {
        "index" => index: Option<u64>,
        "delta" => delta: Option<Raw<'a>>,
        "message" => message: Option<Raw<'a>>,
        "finish_reason" => finish_reason: JsonString<'a>,
        "error" => error: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
    }
    /// One entry of `tool_calls`.
    CallDelta {
        "index" => index: Option<u64>,
        "id" => id: JsonString<'a>,
        "function" => function: ChatFunction<'a>,
        /// A free-form tool: its input is plain text.
        "custom" => custom: ChatFunction<'a>,
    }
    ChatFunction {
        "name" => name: JsonString<'a>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
    }
}

impl Indexed for ChatChoice<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}
