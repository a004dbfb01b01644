//! What the next request would be, for the status line.

use aside_core::message::Role;
use aside_front::{NextRequest, Update};

use super::Driver;

/// Whether the provider's last count is still valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastCount {
    /// It counted what the next request begins with.
    Holds,
    /// Something changed since: a summary, the model, its tools or a setting.
    Outdated,
}

impl Driver {
    /// Tells the front end the status, with the next request.
    pub(super) fn send_status(&mut self) {
        let mut status = self.status();
        status.next = Some(self.next_request());
        self.front.send(Update::Status(Box::new(status)));
    }

    /// The same after a change that makes the provider's count obsolete.
    pub(super) fn send_changed_status(&mut self) {
        self.last_count = LastCount::Outdated;
        self.send_status();
    }

    fn next_request(&mut self) -> NextRequest {
        let effort = self.active.session.next_effort().level;
        let counted = (self.last_count == LastCount::Holds).then(|| self.counted_tokens()).flatten();
        let tokens = counted.unwrap_or_else(|| self.active.session.next_tokens());
        NextRequest { effort, tokens, is_exact: counted.is_some() }
    }

    /// The provider's count of the last request and its reply; none if a message follows it.
    fn counted_tokens(&self) -> Option<u64> {
        let session = &self.active.session;
        let last = session.history.get(session.history.head()?)?;
        session.last_counted_tokens().filter(|_| last.message.role == Role::Assistant)
    }
}
