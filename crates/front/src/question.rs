//! Permission questions with their id.

use aside_core::permission_question::{PermissionQuestion, QuestionLayout, render};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QuestionId(pub u64);

/// A question that needs the user's permission before the session continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingQuestion {
    pub id: QuestionId,
    pub about: PermissionQuestion,
}

impl PendingQuestion {
    /// The whole question as lines that are safe to print: nothing in them can hide or change what is asked.
    pub fn lines(&self) -> Vec<String> {
        let rendered = render(&self.about, QuestionLayout::default());
        rendered.lines().chain(rendered.covers.clone()).collect()
    }
}
