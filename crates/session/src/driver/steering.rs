//! Messages that the user sends during a turn.

use std::path::Path;

use aside_core::message::{Message, Role};
use aside_engine::SteeringQueue;
use aside_front::SteeringError;

use crate::prompt_attachments;

/// The messages for one turn, as typed.
pub(super) struct Steering {
    queue: SteeringQueue,
    typed: Vec<String>,
}

impl Steering {
    pub(super) fn new(queue: SteeringQueue) -> Steering {
        Steering { queue, typed: Vec::new() }
    }

    /// Returns descriptions of the attached files.
    pub(super) fn add(&mut self, text: &str, folder: &Path) -> Result<Vec<String>, SteeringError> {
        let attached = prompt_attachments::attach(text, None, folder)
            .map_err(|error| SteeringError { what: error.to_string(), hint: error.hint_text().map(str::to_owned) })?;
        self.queue.push(Message::new(Role::User, attached.blocks));
        self.typed.push(text.to_owned());
        Ok(attached.descriptions)
    }

    /// Takes the newest message back, if it is this one and the turn does not have it yet.
    pub(super) fn take_back(&mut self, text: &str) -> bool {
        let is_waiting = self.typed.last().is_some_and(|typed| typed == text) && self.queue.take_last().is_some();
        if is_waiting {
            self.typed.pop();
        }
        is_waiting
    }

    /// The messages that were not sent before the turn ended. They are the newest ones.
    pub(super) fn take_unsent(mut self) -> Vec<String> {
        let n_unsent = self.queue.take_all().len();
        self.typed.split_off(self.typed.len().saturating_sub(n_unsent))
    }
}
