//! The provider's words, kept exactly. One flat struct for every event.

use crate::wire::json::{Raw, Word, members};

members! {
    Wire {
        "type" => kind: Word<'a>,
        "output_index" => output_index: Option<u64>,
        "summary_index" => summary_index: Option<u64>,
        "content_index" => content_index: Option<u64>,
        "delta" => delta: Option<Raw<'a>>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
        "item" => item: Option<Raw<'a>>,
        "response" => response: Option<Raw<'a>>,
        "object" => object: Word<'a>,
        "output" => output: Option<Raw<'a>>,
    }
    Response {
        "model" => model: Word<'a>,
        "status" => status: Word<'a>,
        "output" => output: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
        "incomplete_details" => incomplete_details: Option<Raw<'a>>,
        /// The settings object; on one server the thinking itself.
        "reasoning" => reasoning: Option<Raw<'a>>,
    }
    Item {
        "type" => kind: Word<'a>,
        "id" => id: Word<'a>,
        "call_id" => call_id: Word<'a>,
        "name" => name: Word<'a>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
        "summary" => summary: Option<Raw<'a>>,
        "content" => content: Option<Raw<'a>>,
        "encrypted_content" => encrypted_content: Option<Raw<'a>>,
    }
}
