//! Messages that the user sends during a turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aside_core::message::Message;

/// A handle for the front end. A message is sent after the current step of the turn. What is left in the
/// queue when the turn has ended was not sent.
#[derive(Debug, Clone, Default)]
pub struct SteeringQueue(Arc<Mutex<Vec<Message>>>);

impl SteeringQueue {
    pub fn push(&self, message: Message) {
        self.lock().push(message);
    }

    pub fn take_all(&self) -> Vec<Message> {
        std::mem::take(&mut *self.lock())
    }

    /// Takes the newest message back, unless the turn has it already.
    pub fn take_last(&self) -> Option<Message> {
        self.lock().pop()
    }

    /// Returns messages that the turn did not record. They come before newer ones.
    pub(crate) fn give_back(&self, mut unsent: Vec<Message>) {
        let mut queue = self.lock();
        unsent.append(&mut queue);
        *queue = unsent;
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Message>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
