//! The provider's words, kept exactly.

use crate::wire::json::{Raw, Word, members};

members! {
    Line {
        "model" => model: Word<'a>,
        "message" => message: Option<Raw<'a>>,
        /// `/api/generate` has the answer here.
        "response" => response: Option<Raw<'a>>,
        "thinking" => thinking: Option<Raw<'a>>,
        "done" => done: Option<bool>,
        "done_reason" => done_reason: Word<'a>,
        "error" => error: Option<Raw<'a>>,
    }
}
