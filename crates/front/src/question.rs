//! Permission questions with their id.

use aside_core::permission_question::PermissionQuestion;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QuestionId(pub u64);

/// A question that needs the user's permission before the session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingQuestion {
    pub id: QuestionId,
    pub about: PermissionQuestion,
}
