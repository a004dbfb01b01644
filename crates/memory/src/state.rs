//! Whether the store works.

use std::fmt;

use serde::{Serialize, Serializer};

/// Whether the store did its part in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// It did.
    Ok,
    /// It did not answer before the deadline.
    Late,
    /// It does not answer.
    Down,
    /// There is none.
    None,
}

impl StoreState {
    /// The word for it in receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            StoreState::Ok => "ok",
            StoreState::Late => "late",
            StoreState::Down => "down",
            StoreState::None => "none",
        }
    }
}

impl fmt::Display for StoreState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for StoreState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
