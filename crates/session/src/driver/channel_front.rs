//! Connects the engine to a front end's channel: forwards updates and asks permission questions.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aside_core::message::Message;
use aside_engine::tools::{Asker, PermissionAnswer, PermissionQuestion};
use aside_engine::{Front, Update};
use aside_front::{self as front, DeltaJoiner, QuestionId, Sending};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// Forwards the engine's updates to the front end. Ignores a closed channel.
pub(super) struct ChannelFront {
    updates: Sender<front::Update>,
    joiner: DeltaJoiner,
    pub(super) limit: Option<u64>,
    /// The user asked for thinking; not just a default.
    pub(super) wants_thinking: bool,
    /// As PROVIDER/MODEL; a request has only the model.
    pub(super) model: String,
    /// Excerpts of the messages sent, for the decision table.
    pub(super) sent_messages: Vec<Message>,
}

impl ChannelFront {
    pub(super) fn new(updates: Sender<front::Update>) -> ChannelFront {
        ChannelFront {
            updates,
            joiner: DeltaJoiner::default(),
            limit: None,
            wants_thinking: false,
            model: String::new(),
            sent_messages: Vec::new(),
        }
    }

    /// Another sender for the same front end.
    pub(super) fn updates(&self) -> Sender<front::Update> {
        self.updates.clone()
    }

    pub(super) fn send(&self, update: front::Update) {
        drop(self.updates.send(update));
    }
}

impl Front for ChannelFront {
    fn on_update(&mut self, update: Update<'_>) {
        let Update::Event { event, fold } = update else { return self.on_other_update(update) };
        if !self.joiner.join(event, |update| drop(self.updates.send(update)))
            && let Some(update) = front::Update::of(event, fold)
        {
            self.send(update);
        }
    }

    fn flush(&mut self) {
        self.joiner.flush_if_due(Instant::now(), |update| drop(self.updates.send(update)));
    }

    fn tick_interval(&self) -> Option<Duration> {
        self.joiner.due()
    }

    fn tick(&mut self) {
        self.joiner.flush(|update| drop(self.updates.send(update)));
    }
}

impl ChannelFront {
    fn on_other_update(&mut self, update: Update<'_>) {
        self.tick();
        let update = match update {
            Update::Event { .. } | Update::Received(_) => return,
            Update::Sending { step, encoded, .. } => front::Update::Sending(Box::new(Sending {
                step,
                model: self.model.clone(),
                effort: encoded.effort.clone(),
                tokens: encoded.tokens,
                limit: self.limit,
                wants_thinking: self.wants_thinking || encoded.effort.is_some(),
                notes: encoded.unmet.iter().chain(&encoded.notes).cloned().collect(),
                messages: self.sent_messages.len(),
                decisions: super::replies::decision_rows(&self.sent_messages, &encoded.decisions),
            })),
            Update::Retrying { after, attempt, why } => front::Update::Retrying { after, attempt, why: why.to_owned() },
            Update::TurnNotice(notice) => front::Update::TurnNotice(notice.clone()),
            Update::LeftOut(loss) => front::Update::CommandOutput(front::CommandOutput::Line(loss.to_string())),
            Update::Noted(note) => front::Update::CommandOutput(front::CommandOutput::Line(note.to_owned())),
            Update::ToolStarted(call) => front::Update::ToolStarted(Box::new(call.clone())),
            Update::ToolEnded { result, .. } => front::Update::ToolEnded(Box::new(result.clone())),
            // `ChannelAsker` shows questions.
            Update::Asked(_) | Update::Answered { .. } => return,
            Update::Recorded(message) => {
                self.sent_messages.push(super::replies::excerpt(message));
                front::Update::Recorded(Arc::clone(message))
            }
            Update::Compacted { branch, summarised } => {
                self.sent_messages = branch.iter().map(|message| super::replies::excerpt(message)).collect();
                let line = front::wording::compacted(summarised);
                front::Update::CommandOutput(front::CommandOutput::Line(line))
            }
            Update::Ended(end) => front::Update::TurnEnded(end.clone()),
        };
        self.send(update);
    }
}

/// Asks permission questions with updates. The answer arrives as a command.
pub(super) struct ChannelAsker {
    updates: Mutex<Sender<front::Update>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<PermissionAnswer>>>,
    next: Mutex<u64>,
}

impl ChannelAsker {
    pub(super) fn new(updates: Sender<front::Update>) -> ChannelAsker {
        ChannelAsker { updates: Mutex::new(updates), waiting: Mutex::default(), next: Mutex::default() }
    }

    pub(super) fn answer(&self, QuestionId(id): QuestionId, permit: PermissionAnswer) {
        if let Some(waiting) = lock(&self.waiting).remove(&id) {
            // The turn may have been cancelled.
            drop(waiting.send(permit));
        }
    }

    /// Tells the user that a command will run after the current turn.
    pub(super) fn announce_deferred(&self, command: &front::Command) {
        let name = match command {
            front::Command::Other { name, .. } => name.as_str(),
            front::Command::Set { .. } | front::Command::Query(_) => "set",
            front::Command::Unset(_) => "unset",
            front::Command::Profile(_) => "profile",
            front::Command::Model(_) => "model",
            front::Command::Effort(_) => "effort",
            front::Command::Compact => "compact",
            front::Command::Fork => "fork",
            front::Command::Undo => "undo",
            front::Command::Retry => "retry",
            front::Command::Export(_) => "export",
            // A front end queues prompts itself and changes its view at once.
            front::Command::Prompt(_)
            | front::Command::Steer(_)
            | front::Command::View(_)
            | front::Command::Mode(_)
            | front::Command::Interrupt
            | front::Command::AnswerNow
            | front::Command::Answer { .. }
            | front::Command::Terminal(_)
            | front::Command::Quit => return,
        };
        self.send(front::Update::CommandOutput(front::CommandOutput::Line(format!(
            "/{name} waits for the end of this turn"
        ))));
    }

    pub(super) fn send(&self, update: front::Update) {
        drop(lock(&self.updates).send(update));
    }
}

impl Asker for ChannelAsker {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let id = {
                let mut next = lock(&self.next);
                *next += 1;
                *next
            };
            let (sender, answer) = oneshot::channel();
            lock(&self.waiting).insert(id, sender);
            let pending = front::PendingQuestion { id: QuestionId(id), about: question };
            self.send(front::Update::QuestionAsked(Box::new(pending)));
            let _withdraw_on_drop = WithdrawOnDrop { asker: self, id };
            answer.await.unwrap_or(PermissionAnswer::No(None))
        })
    }

    fn warn(&self, what: &str) {
        self.send(front::Update::CommandOutput(front::CommandOutput::Error { what: what.to_owned(), hint: None }));
    }
}

/// Withdraws an unanswered question when it is dropped.
struct WithdrawOnDrop<'a> {
    asker: &'a ChannelAsker,
    id: u64,
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        if lock(&self.asker.waiting).remove(&self.id).is_some() {
            self.asker.send(front::Update::QuestionWithdrawn(QuestionId(self.id)));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
