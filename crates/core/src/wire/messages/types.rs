//! The provider's words, kept exactly. One flat struct for every event.

use crate::wire::json::{Raw, Word, members};

members! {
    Wire {
        "type" => kind: Word<'a>,
        "index" => index: Option<u64>,
        "delta" => delta: Delta<'a>,
        "content_block" => content_block: Option<Raw<'a>>,
        "message" => message: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
    }
    Delta {
        "thinking" => thinking: Option<Raw<'a>>,
        "text" => text: Option<Raw<'a>>,
        "partial_json" => partial_json: Option<Raw<'a>>,
        "signature" => signature: Option<Raw<'a>>,
        "citation" => citation: Option<Raw<'a>>,
        "stop_reason" => stop_reason: Word<'a>,
    }
    /// A message: whole, or as far as its start tells it.
    Message {
        "model" => model: Word<'a>,
        "content" => content: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        "stop_reason" => stop_reason: Word<'a>,
    }
}
