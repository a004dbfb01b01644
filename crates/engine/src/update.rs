//! What the engine reports to a front end.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{ToolCall, ToolResult};
use aside_core::compaction::CompactionTrigger;
use aside_core::event::Event;
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::permission_question::{PermissionAnswer, PermissionQuestion};
use aside_core::rules::LeftOut;
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_core::wire::Encoded;

#[derive(Debug)]
pub enum Update<'a> {
    /// A request is about to be sent. `body` includes what the user adds to it.
    Sending {
        step: u32,
        model: &'a str,
        encoded: &'a Encoded,
        body: &'a str,
    },
    /// A part of the request that is about to be sent is not in it. Reported once per kind in a session.
    LeftOut(&'a LeftOut),
    /// Raw bytes of the reply.
    Received(&'a [u8]),
    /// A decoded event. The fold already includes it.
    Event {
        event: Event<'a>,
        fold: &'a Fold,
    },
    /// The request will be sent again; nothing of a reply was shown yet.
    Retrying {
        after: Duration,
        attempt: u32,
        why: &'a str,
    },
    TurnNotice(&'a TurnNotice),
    /// A notice that does not stop the turn.
    Noted(&'a str),
    ToolStarted(&'a ToolCall),
    /// The newest output of a running command, at most every 100 ms.
    ToolOutput {
        /// The id of the call.
        call: &'a str,
        /// The last lines; the first of them may be cut.
        tail: &'a str,
        /// How many lines it has written so far.
        n_lines: u64,
    },
    ToolEnded {
        call: &'a ToolCall,
        result: &'a ToolResult,
    },
    /// The user is asked for permission; from now on the asker uses the terminal.
    Asked(&'a PermissionQuestion),
    /// The question with this id was answered, or its call was cancelled.
    Answered {
        id: &'a str,
        permit: &'a PermissionAnswer,
    },
    /// Older turns were replaced by a summary. `branch` is what is sent from now on; the original messages
    /// stay on the previous branch.
    Compacted {
        branch: &'a [&'a Message],
        summarised: usize,
        trigger: CompactionTrigger,
    },
    /// This message was added to the history.
    Recorded(&'a Arc<Message>),
    Ended(&'a TurnEnd),
}

/// A front end: a pipe, a terminal, a file of events.
pub trait Front {
    fn on_update(&mut self, update: Update<'_>);

    /// No more updates are pending: a good moment to write output.
    fn flush(&mut self) {}

    /// How often to call `tick` while waiting; `None` for never.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Called at intervals while nothing happens.
    fn tick(&mut self) {}
}
