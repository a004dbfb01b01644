//! Wire types, with the provider's own names.

use crate::json_text::{Raw, members};

members! {
    BlockEvent {
        "contentBlockIndex" => index: Option<u64>,
        "start" => start: Option<Raw<'a>>,
        "delta" => delta: BlockDelta<'a>,
    }
    BlockDelta {
        "text" => text: Option<Raw<'a>>,
        "reasoningContent" => reasoning_content: Option<ReasoningDelta<'a>>,
        "toolUse" => tool_use: Option<Raw<'a>>,
        "toolResult" => tool_result: Option<Raw<'a>>,
    }
    ReasoningDelta {
        "text" => text: Option<Raw<'a>>,
        "signature" => signature: Option<Raw<'a>>,
        "redactedContent" => redacted_content: Option<Raw<'a>>,
    }
}
