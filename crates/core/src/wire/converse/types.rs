//! Wire types, with the provider's own names.

use crate::json_text::{Raw, kept_members, members};

members! {
    BlockEvent {
        "contentBlockIndex" => index: Option<u64>,
        "start" => start: Option<Raw<'a>>,
        "delta" => delta: BlockDelta<'a>,
    }
}

kept_members! {
    BlockDelta {
        "text" => text: Option<Raw<'a>>,
        "reasoningContent" => reasoning_content: Option<ReasoningDelta<'a>>,
        "toolUse" => tool_use: Option<Raw<'a>>,
        "toolResult" => tool_result: Option<Raw<'a>>,
    } else;
}

members! {
    ReasoningDelta {
        "text" => text: Option<Raw<'a>>,
        "signature" => signature: Option<Raw<'a>>,
        "redactedContent" => redacted_content: Option<Raw<'a>>,
    }
}
