//! Wire types, with the provider's own names.

use crate::json_text::{JsonString, Raw, kept_members};

kept_members! {
    /// An event. A whole body has its message at the top level.
    CohereEvent {
        "type" => kind: JsonString<'a>,
        "delta" => delta: CohereDelta<'a>,
        "message" => message: Option<Raw<'a>>,
        "finish_reason" => finish_reason: JsonString<'a>,
        "usage" => usage: Option<Raw<'a>>,
    } else "id" | "index";
    CohereDelta {
        "message" => message: CohereMessage<'a>,
        "finish_reason" => finish_reason: JsonString<'a>,
        "usage" => usage: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
    } else;
    CohereMessage {
        "content" => content: Option<Raw<'a>>,
        "tool_calls" => tool_calls: Option<Raw<'a>>,
        "tool_plan" => tool_plan: Option<Raw<'a>>,
        /// One citation in a stream, all of them in a whole message.
        "citations" => citations: Option<Raw<'a>>,
    } else "role";
}
