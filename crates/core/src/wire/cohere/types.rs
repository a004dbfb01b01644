//! Wire types, with the provider's own names.

use crate::json_text::{JsonString, Raw, members};

members! {
    /// An event. A whole body has its message at the top level.
    CohereEvent {
        "type" => kind: JsonString<'a>,
        "delta" => delta: CohereDelta<'a>,
        "message" => message: Option<Raw<'a>>,
        "finish_reason" => finish_reason: JsonString<'a>,
        "usage" => usage: Option<Raw<'a>>,
    }
    CohereDelta {
        "message" => message: CohereMessage<'a>,
        "finish_reason" => finish_reason: JsonString<'a>,
        "usage" => usage: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    }
    CohereMessage {
        "content" => content: Option<Raw<'a>>,
        "tool_calls" => tool_calls: Option<Raw<'a>>,
        "tool_plan" => tool_plan: Option<Raw<'a>>,
    }
}
