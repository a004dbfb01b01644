//! What the engine tells whoever shows it.

use std::time::Duration;

use aside_core::block::{ToolCall, ToolResult};
use aside_core::event::Event;
use aside_core::fold::Fold;
use aside_core::message::Message;
use aside_core::question::{Permit, Question};
use aside_core::turn::{Told, TurnEnd};
use aside_core::wire::Encoded;

#[derive(Debug)]
pub enum Update<'a> {
    /// A request goes out. `body` is what is sent, with what the user adds to it.
    Sending {
        step: u32,
        model: &'a str,
        encoded: &'a Encoded,
        body: &'a str,
    },
    /// Bytes of the answer, as they came.
    Received(&'a [u8]),
    /// What the bytes say. The fold has heard it already.
    Event {
        event: Event<'a>,
        fold: &'a Fold,
    },
    /// Nothing was shown yet, so the request is sent again.
    Retrying {
        after: Duration,
        attempt: u32,
        why: &'a str,
    },
    Told(&'a Told),
    /// Something worth knowing that does not stop the turn.
    Noted(&'a str),
    ToolStarted(&'a ToolCall),
    ToolEnded {
        call: &'a ToolCall,
        result: &'a ToolResult,
    },
    /// The person is asked about a call, and whoever asks now has the terminal.
    Asked(&'a Question),
    /// The question with this id is answered, or nobody waits for an answer.
    Answered {
        id: &'a str,
        permit: &'a Permit,
    },
    /// Older turns are a summary from here on. `branch` is all that is sent of the
    /// conversation now; what was said stays in the branch before.
    Compacted {
        branch: &'a [&'a Message],
        summarised: usize,
    },
    /// Into the history, as it is.
    Recorded(&'a Message),
    Ended(&'a TurnEnd),
}

/// Whoever shows a turn: a pipe, a terminal, a file of events.
pub trait Front {
    fn hear(&mut self, update: Update<'_>);

    /// Everything that had come is told: a good moment to write it out.
    fn rest(&mut self) {}

    /// How often to be called while nothing happens; never without one.
    fn beat(&self) -> Option<Duration> {
        None
    }

    /// Time has passed and nothing came.
    fn tick(&mut self) {}
}
