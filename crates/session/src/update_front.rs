//! Turns the engine's updates into the updates of a front end.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use aside_core::block::Block;
use aside_core::compaction::is_summary;
use aside_core::message::Message;
use aside_engine::{Front, Update};
use aside_front::{self as front, DeltaJoiner, PendingQuestion, QuestionId, Sending, UpdateDetail};

use crate::driver::{decision_rows, excerpt};

/// Receives a front end's updates.
pub trait UpdateSink {
    fn take(&mut self, update: front::Update);

    /// No more updates are pending: a good moment to write output.
    fn flush(&mut self) {}

    /// How often to call `tick` while waiting; `None` for never.
    fn tick_interval(&self) -> Option<Duration> {
        None
    }

    /// Called at intervals while nothing happens.
    fn tick(&mut self) {}
}

/// A front end on another thread. Send errors are ignored: the session notices that it ended because the command
/// channel is closed.
impl UpdateSink for Sender<front::Update> {
    fn take(&mut self, update: front::Update) {
        drop(self.send(update));
    }
}

impl<S: UpdateSink> UpdateSink for &mut S {
    fn take(&mut self, update: front::Update) {
        (**self).take(update);
    }

    fn flush(&mut self) {
        (**self).flush();
    }

    fn tick_interval(&self) -> Option<Duration> {
        (**self).tick_interval()
    }

    fn tick(&mut self) {
        (**self).tick();
    }
}

/// How updates reach the front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpdateDelivery {
    /// Deltas that follow each other closely are joined, and the asker sends the questions.
    Channel,
    /// The deltas of one read are joined. The asker uses the terminal itself, so the front end is told
    /// when a question begins and ends.
    Direct,
    /// Like `Direct`, but every delta is an update of its own, and the updates have all details.
    Detailed,
}

/// Forwards the engine's updates to a front end.
pub struct UpdateFront<S> {
    sink: S,
    delivery: UpdateDelivery,
    joiner: DeltaJoiner,
    questions_asked: u64,
    pub(crate) limit: Option<u64>,
    /// The user asked for thinking; not just a default.
    pub(crate) wants_thinking: bool,
    /// As PROVIDER/MODEL. A request has only the model, which is used if this is none.
    pub(crate) model: Option<String>,
    /// Excerpts of the messages sent, for the decision table.
    pub(crate) sent_messages: Vec<Message>,
}

impl<S: UpdateSink> UpdateFront<S> {
    /// For a front end on the thread of the session that prints everything at once.
    pub fn direct(sink: S) -> UpdateFront<S> {
        UpdateFront::new(sink, UpdateDelivery::Direct)
    }

    /// For a front end on the thread of the session that prints each event of a reply with its details.
    pub fn detailed(sink: S) -> UpdateFront<S> {
        UpdateFront::new(sink, UpdateDelivery::Detailed)
    }

    fn new(sink: S, delivery: UpdateDelivery) -> UpdateFront<S> {
        UpdateFront {
            sink,
            delivery,
            joiner: DeltaJoiner::default(),
            questions_asked: 0,
            limit: None,
            wants_thinking: false,
            model: None,
            sent_messages: Vec::new(),
        }
    }

    fn flush_deltas(&mut self) {
        self.joiner.flush(|update| self.sink.take(update));
    }
}

impl UpdateFront<Sender<front::Update>> {
    /// For a front end on another thread.
    pub(crate) fn channel(updates: Sender<front::Update>) -> UpdateFront<Sender<front::Update>> {
        UpdateFront::new(updates, UpdateDelivery::Channel)
    }

    /// Another sender for the same front end.
    pub(crate) fn updates(&self) -> Sender<front::Update> {
        self.sink.clone()
    }

    pub(crate) fn send(&self, update: front::Update) {
        drop(self.sink.send(update));
    }
}

impl<S: UpdateSink> Front for UpdateFront<S> {
    fn on_update(&mut self, update: Update<'_>) {
        let Update::Event { event, fold } = update else { return self.on_other_update(update) };
        if self.joiner.join(event, |update| self.sink.take(update)) {
            if self.delivery == UpdateDelivery::Detailed {
                self.flush_deltas();
            }
            return;
        }
        let update = match self.delivery {
            UpdateDelivery::Channel | UpdateDelivery::Direct => front::Update::of(event, fold),
            UpdateDelivery::Detailed => front::Update::detailed(event, fold),
        };
        if let Some(update) = update {
            self.sink.take(update);
        }
    }

    fn flush(&mut self) {
        match self.delivery {
            UpdateDelivery::Channel => self.joiner.flush_if_due(Instant::now(), |update| self.sink.take(update)),
            UpdateDelivery::Direct | UpdateDelivery::Detailed => self.flush_deltas(),
        }
        self.sink.flush();
    }

    fn tick_interval(&self) -> Option<Duration> {
        self.joiner.due().or_else(|| self.sink.tick_interval())
    }

    fn tick(&mut self) {
        self.flush_deltas();
        self.sink.tick();
    }
}

impl<S: UpdateSink> UpdateFront<S> {
    fn on_other_update(&mut self, update: Update<'_>) {
        if let Update::Received(_) = update {
            return;
        }
        self.flush_deltas();
        let update = match update {
            Update::Event { .. } | Update::Received(_) => return,
            Update::Sending { step, model, encoded, .. } => front::Update::Sending(Box::new(Sending {
                step,
                model: self.model.clone().unwrap_or_else(|| model.to_owned()),
                effort: encoded.effort.clone(),
                tokens: encoded.tokens,
                limit: self.limit,
                wants_thinking: self.wants_thinking || encoded.effort.is_some(),
                notes: encoded.unmet.iter().chain(&encoded.notes).cloned().collect(),
                messages: self.sent_messages.len(),
                decisions: decision_rows(&self.sent_messages, &encoded.decisions),
            })),
            Update::Retrying { after, attempt, why } => front::Update::Retrying { after, attempt, why: why.to_owned() },
            Update::TurnNotice(notice) => front::Update::TurnNotice(notice.clone()),
            Update::LeftOut(loss) if self.delivery == UpdateDelivery::Detailed => {
                front::Update::Detail(Box::new(UpdateDetail::LeftOut(loss.to_string())))
            }
            Update::LeftOut(loss) => front::Update::CommandOutput(front::CommandOutput::Line(loss.to_string())),
            Update::Noted(note) => front::Update::CommandOutput(front::CommandOutput::Line(note.to_owned())),
            Update::ToolStarted(call) => front::Update::ToolStarted(Box::new(call.clone())),
            Update::ToolOutput { call, tail, n_lines } => {
                front::Update::ToolOutput { call: call.to_owned(), tail: tail.to_owned(), n_lines }
            }
            Update::ToolEnded { result, .. } => front::Update::ToolEnded(Box::new(result.clone())),
            Update::Asked(_) | Update::Answered { .. } if self.delivery == UpdateDelivery::Channel => return,
            Update::Asked(question) => {
                self.questions_asked += 1;
                let id = QuestionId(self.questions_asked);
                front::Update::QuestionAsked(Box::new(PendingQuestion { id, about: question.clone() }))
            }
            Update::Answered { id, permit } if self.delivery == UpdateDelivery::Detailed => {
                let detail = UpdateDetail::Answered { call: id.to_owned(), permit: permit.clone() };
                front::Update::Detail(Box::new(detail))
            }
            Update::Answered { .. } => front::Update::QuestionWithdrawn(QuestionId(self.questions_asked)),
            Update::Recorded(message) => {
                self.sent_messages.push(excerpt(message));
                front::Update::Recorded(Arc::clone(message))
            }
            Update::Compacted { branch, summarised, trigger } => {
                self.sent_messages = branch.iter().map(|message| excerpt(message)).collect();
                let at = branch.iter().position(|message| is_summary(message));
                let kept = at.map_or(0, |at| branch.len() - at - 1);
                let text =
                    |block: &Block| if let Block::Text(text) = block { text.text.clone() } else { String::new() };
                let summary = at.and_then(|at| branch.get(at)).map(|message| message.blocks.iter().map(text).collect());
                let summary = summary.unwrap_or_default();
                front::Update::Compacted { summarised, kept, summary, trigger }
            }
            Update::Ended(end) => front::Update::TurnEnded(end.clone()),
        };
        self.sink.take(update);
    }
}
