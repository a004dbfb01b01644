//! Wire types, with the provider's own names. One flat struct covers all events.

use crate::json_text::{JsonString, Raw, kept_members};

kept_members! {
    MessagesEvent {
        "type" => kind: JsonString<'a>,
        "index" => index: Option<u64>,
        "delta" => delta: MessagesDelta<'a>,
        "content_block" => content_block: Option<Raw<'a>>,
        "message" => message: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
    // Padding of a gateway. A whole message is read as such.
    } else "p" | "id" | "role" | "model" | "content" | "stop_reason" | "stop_sequence";
    MessagesDelta {
        "thinking" => thinking: Option<Raw<'a>>,
        "text" => text: Option<Raw<'a>>,
        "partial_json" => partial_json: Option<Raw<'a>>,
        "signature" => signature: Option<Raw<'a>>,
        "citation" => citation: Option<Raw<'a>>,
        "stop_reason" => stop_reason: JsonString<'a>,
    } else "type";
    /// A message: complete, or as in `message_start`.
    AnthropicMessage {
        "model" => model: JsonString<'a>,
        "content" => content: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        "stop_reason" => stop_reason: JsonString<'a>,
    } else "id" | "type" | "role";
}
