//! Messages with their parents, while a session is read.

use std::sync::Arc;

use crate::block::{Block, Time};
use crate::history::{EntryId, History};
use crate::message::{Message, Role};

#[derive(Default)]
pub(super) struct MessageLog {
    messages: Vec<LoggedMessage>,
    pub(super) head: Option<usize>,
}

struct LoggedMessage {
    name: Option<String>,
    parent: Option<usize>,
    message: Arc<Message>,
}

impl MessageLog {
    /// Appends a message below the head.
    pub(super) fn append(&mut self, name: Option<String>, message: impl Into<Arc<Message>>) {
        self.messages.push(LoggedMessage { name, parent: self.head, message: message.into() });
        self.head = Some(self.messages.len() - 1);
    }

    /// Appends the result of a tool. Results of parallel calls become one message.
    pub(super) fn append_result(&mut self, name: Option<String>, at: Option<Time>, result: Block) {
        let head = self.head.and_then(|head| self.messages.get_mut(head));
        match head.filter(|head| head.message.role == Role::Tool) {
            Some(head) => Arc::make_mut(&mut head.message).blocks.push(result),
            None => self.append(name, Message { at, ..Message::new(Role::Tool, vec![result]) }),
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<&Arc<Message>> {
        self.messages.get(at).map(|logged| &logged.message)
    }

    /// The messages from the first one to the head.
    pub(super) fn branch(&self) -> Vec<usize> {
        let parent = |at: &usize| self.messages.get(*at).and_then(|logged| logged.parent);
        let mut branch: Vec<usize> = std::iter::successors(self.head, parent).collect();
        branch.reverse();
        branch
    }

    /// Whether anything was said besides instructions.
    pub(super) fn has_conversation(&self) -> bool {
        self.messages.iter().any(|logged| logged.message.role != Role::System)
    }

    pub(super) fn messages_mut(&mut self) -> impl Iterator<Item = &mut Message> {
        self.messages.iter_mut().map(|logged| Arc::make_mut(&mut logged.message))
    }

    pub(super) fn into_history(self) -> History {
        let mut history = History::new();
        for LoggedMessage { name, parent, message } in self.messages {
            history.insert(name, parent.map(EntryId), message);
        }
        // The head is always in the log.
        let _exists = history.fork(self.head.map(EntryId));
        history
    }
}
