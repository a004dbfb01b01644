//! The screen as the engine sees it: somebody to tell, and somebody to ask.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use aside_core::message::Message;
use aside_engine::tools::{Asker, Permit, Question};
use aside_engine::{Front, Update};
use aside_tui::seam::{self, QuestionId, Sending};
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

/// Passes on what the engine tells. A screen that is gone hears nothing.
pub(crate) struct ToScreen {
    pub(crate) updates: Sender<seam::Update>,
    pub(crate) limit: Option<u64>,
    /// The user's word, not a default.
    pub(crate) wants_thinking: bool,
    /// As PROVIDER/MODEL; a request knows only the second half.
    pub(crate) model: String,
    /// The branch as it was sent, as far as the decision table quotes it.
    pub(crate) said: Vec<Message>,
}

impl ToScreen {
    pub(crate) fn send(&self, update: seam::Update) {
        drop(self.updates.send(update));
    }
}

impl Front for ToScreen {
    fn hear(&mut self, update: Update<'_>) {
        let update = match update {
            Update::Event { event, fold } => match seam::Update::of(event, fold) {
                Some(update) => update,
                None => return,
            },
            Update::Received(_) => return,
            Update::Sending { step, encoded, .. } => seam::Update::Sending(Box::new(Sending {
                step,
                model: self.model.clone(),
                effort: encoded.effort.clone(),
                tokens: encoded.tokens,
                limit: self.limit,
                wants_thinking: self.wants_thinking || encoded.effort.is_some(),
                notes: encoded.unmet.iter().chain(&encoded.notes).cloned().collect(),
                decisions: super::says::thoughts(&self.said, &encoded.decisions),
            })),
            Update::Retrying { after, attempt, why } => seam::Update::Retrying { after, attempt, why: why.to_owned() },
            Update::Told(told) => seam::Update::Told(told.clone()),
            Update::Noted(note) => seam::Update::Said(seam::Said::Line(note.to_owned())),
            Update::ToolStarted(call) => seam::Update::ToolStarted(Box::new(call.clone())),
            Update::ToolEnded { result, .. } => seam::Update::ToolEnded(Box::new(result.clone())),
            // It is asked on the screen itself.
            Update::Asked(_) | Update::Answered { .. } => return,
            Update::Recorded(message) => {
                self.said.push(super::says::gist(message));
                seam::Update::Recorded(Box::new(message.clone()))
            }
            Update::Compacted { branch, summarised } => {
                self.said = branch.iter().map(|message| super::says::gist(message)).collect();
                let line = crate::ask::say::compacted(summarised);
                seam::Update::Said(seam::Said::Line(line))
            }
            Update::Ended(end) => seam::Update::TurnEnded(end.clone()),
        };
        self.send(update);
    }
}

/// Asks on the screen; the answer comes back as a command.
pub(crate) struct OnScreen {
    updates: Mutex<Sender<seam::Update>>,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Permit>>>,
    next: Mutex<u64>,
}

impl OnScreen {
    pub(crate) fn new(updates: Sender<seam::Update>) -> OnScreen {
        OnScreen { updates: Mutex::new(updates), waiting: Mutex::default(), next: Mutex::default() }
    }

    pub(crate) fn answer(&self, QuestionId(id): QuestionId, permit: Permit) {
        if let Some(waiting) = locked(&self.waiting).remove(&id) {
            // Whoever asked may have stopped waiting.
            drop(waiting.send(permit));
        }
    }

    /// A command that came while a turn runs is carried out behind it.
    pub(crate) fn waits(&self, command: &seam::Command) {
        let name = match command {
            seam::Command::Other { name, .. } => name.as_str(),
            seam::Command::Set { .. } | seam::Command::Query(_) => "set",
            seam::Command::Unset(_) => "unset",
            seam::Command::Profile(_) => "profile",
            seam::Command::Model(_) => "model",
            seam::Command::Effort(_) => "effort",
            seam::Command::Compact => "compact",
            seam::Command::Fork => "fork",
            seam::Command::Undo => "undo",
            seam::Command::Retry => "retry",
            seam::Command::Export(_) => "export",
            // The screen queues what is said, and shows a view at once.
            seam::Command::Say(_)
            | seam::Command::View(_)
            | seam::Command::Interrupt
            | seam::Command::AnswerNow
            | seam::Command::Answer { .. }
            | seam::Command::Terminal(_)
            | seam::Command::Quit => return,
        };
        self.tell(seam::Update::Said(seam::Said::Line(format!("/{name} waits for the end of this turn"))));
    }

    fn tell(&self, update: seam::Update) {
        drop(locked(&self.updates).send(update));
    }
}

impl Asker for OnScreen {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(async move {
            let id = {
                let mut next = locked(&self.next);
                *next += 1;
                *next
            };
            let (sender, answer) = oneshot::channel();
            locked(&self.waiting).insert(id, sender);
            let asked = seam::Question { id: QuestionId(id), about: question };
            self.tell(seam::Update::Asked(Box::new(asked)));
            let _withdraws = Withdraws { asker: self, id };
            answer.await.unwrap_or(Permit::No(None))
        })
    }

    fn trouble(&self, what: &str) {
        self.tell(seam::Update::Said(seam::Said::Wrong { what: what.to_owned(), hint: None }));
    }
}

/// A question nobody waits for any more leaves the screen.
struct Withdraws<'a> {
    asker: &'a OnScreen,
    id: u64,
}

impl Drop for Withdraws<'_> {
    fn drop(&mut self) {
        if locked(&self.asker.waiting).remove(&self.id).is_some() {
            self.asker.tell(seam::Update::Withdrawn(QuestionId(self.id)));
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
