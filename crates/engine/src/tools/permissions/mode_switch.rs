//! The tool mode of a session, which the user can change at any time.

use std::sync::{Arc, Mutex, PoisonError};

use aside_core::tool_mode::ToolMode;

/// A handle to the tool mode. A change takes effect with the next call and the next request.
#[derive(Debug, Clone, Default)]
pub struct ToolModeSwitch(Arc<Mutex<ToolMode>>);

impl ToolModeSwitch {
    pub fn mode(&self) -> ToolMode {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, mode: ToolMode) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }
}
