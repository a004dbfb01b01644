//! Asks permission questions over the channel of a front end.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use aside_engine::tools::{Asker, PermissionAnswer, PermissionQuestion};
use aside_front::{self as front, QuestionId};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

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

    /// Tells whether a message for the turn is taken back.
    pub(super) fn answer_take_back(&self, text: String, is_waiting: bool) {
        self.send(if is_waiting { front::Update::TakenBack(text) } else { front::Update::NotTakenBack(text) });
    }

    /// Tells the user that a command will run after the current turn.
    pub(super) fn announce_deferred(&self, command: &front::Command) {
        let name = match command {
            front::Command::Other { name, .. } | front::Command::Own { name, .. } => name.as_str(),
            front::Command::Shell { command, .. } => {
                return self.say(format!("`{command}` waits for the end of this turn"));
            }
            front::Command::Set { .. } | front::Command::Query(_) => "set",
            front::Command::Unset(_) => "unset",
            front::Command::Profile(_) => "profile",
            front::Command::Model(_) => "model",
            front::Command::Effort(_) => "effort",
            front::Command::Compact => "compact",
            front::Command::Fork => "fork",
            front::Command::Undo | front::Command::UndoOnly { .. } => "undo",
            front::Command::Redo => "redo",
            front::Command::Diff(_) => "diff",
            front::Command::Retry => "retry",
            front::Command::Export(_) => "export",
            // A front end queues prompts itself and changes its view at once.
            front::Command::Prompt(_)
            | front::Command::PromptWith { .. }
            | front::Command::Steer(_)
            | front::Command::TakeBack(_)
            | front::Command::RefreshBranch(_)
            | front::Command::View(_)
            | front::Command::Theme(_)
            | front::Command::Mouse(_)
            | front::Command::ListModels
            | front::Command::Mode(_)
            | front::Command::Interrupt
            | front::Command::AnswerNow
            | front::Command::Answer { .. }
            | front::Command::Terminal(_)
            | front::Command::Quit => return,
        };
        self.say(format!("/{name} waits for the end of this turn"));
    }

    fn say(&self, line: String) {
        self.send(front::Update::CommandOutput(front::CommandOutput::Line(line)));
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
