//! The user's request to stop thinking and answer now.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A handle for the front end. A request applies to the running reply only; it has no effect when there is
/// none or when the answer has begun.
#[derive(Debug, Clone, Default)]
pub struct AnswerNowSignal(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    is_requested: AtomicBool,
    notify: Notify,
}

impl AnswerNowSignal {
    pub fn request(&self) {
        self.0.is_requested.store(true, Ordering::Release);
        self.0.notify.notify_waiters();
    }

    /// Drops a request that was made for the previous reply.
    pub(crate) fn reset(&self) {
        self.0.is_requested.store(false, Ordering::Release);
    }

    /// Waits for a request. Cancel-safe: a request made in the meantime is not lost.
    pub(crate) async fn requested(&self) {
        loop {
            let notified = self.0.notify.notified();
            if self.0.is_requested.load(Ordering::Acquire) {
                return;
            }
            notified.await;
        }
    }
}
