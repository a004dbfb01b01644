//! The provider's words, kept exactly.

use crate::wire::json::{Indexed, Raw, Word, Zeroth, members};

members! {
    Chunk {
        "model" => model: Word<'a>,
        "choices" => choices: Zeroth<Choice<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        /// One host has its usage in here.
        "x_groq" => x_groq: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    }
    Choice {
        "index" => index: Option<u64>,
        "delta" => delta: Option<Raw<'a>>,
        "message" => message: Option<Raw<'a>>,
        "finish_reason" => finish_reason: Word<'a>,
        "error" => error: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
    }
    /// One entry of `tool_calls`.
    CallDelta {
        "index" => index: Option<u64>,
        "id" => id: Word<'a>,
        "function" => function: Function<'a>,
        /// A free-form tool: its input is text, not JSON.
        "custom" => custom: Function<'a>,
    }
    Function {
        "name" => name: Word<'a>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
    }
}

impl Indexed for Choice<'_> {
    fn index(&self) -> Option<u64> {
        self.index
    }
}
