//! Wire types, with the provider's own names. One flat struct covers all events.

use crate::json_text::{JsonString, Raw, kept_members, members};

kept_members! {
    ResponsesEvent {
        "type" => kind: JsonString<'a>,
        "output_index" => output_index: Option<u64>,
        "summary_index" => summary_index: Option<u64>,
        "content_index" => content_index: Option<u64>,
        "delta" => delta: Option<Raw<'a>>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
        "item" => item: Option<Raw<'a>>,
        "response" => response: Option<Raw<'a>>,
        "object" => object: JsonString<'a>,
        "output" => output: Option<Raw<'a>>,
        "item_id" => item_id: JsonString<'a>,
    } else "sequence_number" | "obfuscation";
    ResponseObject {
        "model" => model: JsonString<'a>,
        "status" => status: JsonString<'a>,
        "output" => output: Option<Raw<'a>>,
        "usage" => usage: Option<Raw<'a>>,
        "error" => error: Option<Raw<'a>>,
        "incomplete_details" => incomplete_details: Option<Raw<'a>>,
        /// The settings object; on one server, the thinking itself.
        "reasoning" => reasoning: Option<Raw<'a>>,
    // Ids and times, then the echo of the request.
    } else "id" | "object" | "created_at" | "completed_at" | "output_text" | "sequence_number"
        | "background" | "frequency_penalty" | "instructions" | "max_output_tokens" | "max_tool_calls" | "metadata"
        | "parallel_tool_calls" | "presence_penalty" | "previous_response_id" | "prompt" | "prompt_cache_key"
        | "prompt_cache_retention" | "safety_identifier" | "store" | "temperature" | "text" | "tool_choice" | "tools"
        | "top_logprobs" | "top_p" | "truncation" | "user";
}

members! {
    ResponsesItem {
        "type" => kind: JsonString<'a>,
        "id" => id: JsonString<'a>,
        "call_id" => call_id: JsonString<'a>,
        "name" => name: JsonString<'a>,
        "arguments" => arguments: Option<Raw<'a>>,
        "input" => input: Option<Raw<'a>>,
        "summary" => summary: Option<Raw<'a>>,
        "content" => content: Option<Raw<'a>>,
        "encrypted_content" => encrypted_content: Option<Raw<'a>>,
    }
}
