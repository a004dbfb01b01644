//! The wish for an answer instead of more thinking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Held by whoever shows a turn. A wish holds for the reply that is running;
/// where none is, and where the answer has begun, nothing happens.
#[derive(Debug, Clone, Default)]
pub struct Hurry(Arc<Wish>);

#[derive(Debug, Default)]
struct Wish {
    is_made: AtomicBool,
    made: Notify,
}

impl Hurry {
    pub fn answer_now(&self) {
        self.0.is_made.store(true, Ordering::Release);
        self.0.made.notify_waiters();
    }

    /// Whatever was wished was about the reply before.
    pub(crate) fn forget(&self) {
        self.0.is_made.store(false, Ordering::Release);
    }

    /// Waits for the wish. It is not lost when something else came first.
    pub(crate) async fn wanted(&self) {
        loop {
            let made = self.0.made.notified();
            if self.0.is_made.load(Ordering::Acquire) {
                return;
            }
            made.await;
        }
    }
}
