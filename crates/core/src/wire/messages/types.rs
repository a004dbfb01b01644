//! Wire types, with the provider's own names. One flat struct covers all events.

use crate::json_text::{JsonString, Raw, members};

members! {
    MessagesEvent {
        "type" => kind: JsonString<'a>,
        "index" => index: Option<u64>,
        "delta" => delta: MessagesDelta<'a>,
        "content_block" => content_block: Option<Raw<'a>>,
        "message" => message: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
    }
    MessagesDelta {
        "thinking" => thinking: Option<Raw<'a>>,
        "text" => text: Option<Raw<'a>>,
        "partial_json" => partial_json: Option<Raw<'a>>,
        "signature" => signature: Option<Raw<'a>>,
        "citation" => citation: Option<Raw<'a>>,
        "stop_reason" => stop_reason: JsonString<'a>,
    }
    /// A message: complete, or as in `message_start`.
    AnthropicMessage {
        "model" => model: JsonString<'a>,
        "content" => content: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        "stop_reason" => stop_reason: JsonString<'a>,
    }
}
