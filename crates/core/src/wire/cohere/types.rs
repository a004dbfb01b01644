//! The provider's words, kept exactly.

use crate::wire::json::{Raw, Word, members};

members! {
    /// An event; a whole body carries its message at the top.
    Wire {
        "type" => kind: Word<'a>,
        "delta" => delta: Delta<'a>,
        "message" => message: Option<Raw<'a>>,
        "finish_reason" => finish_reason: Word<'a>,
        "usage" => usage: Option<Raw<'a>>,
    }
    Delta {
        "message" => message: Message<'a>,
        "finish_reason" => finish_reason: Word<'a>,
        "usage" => usage: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    }
    Message {
        "content" => content: Option<Raw<'a>>,
        "tool_calls" => tool_calls: Option<Raw<'a>>,
        "tool_plan" => tool_plan: Option<Raw<'a>>,
    }
}
