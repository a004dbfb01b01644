//! Reports permission questions, their answers and the output of running commands to the front end.
//!
//! Tools run concurrently, but only the turn loop holds the front end. So a question is sent to the loop
//! first, and the user is asked once the front end has received the update.

use aside_core::permission_question::{PermissionAnswer, PermissionQuestion};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::tools::{Asker, LiveOutput};
use crate::update::{Front, Update};

/// An [`Asker`] that reports its questions to the front end.
pub(crate) struct ReportingAsker<'a> {
    asker: &'a dyn Asker,
    updates: UnboundedSender<RunningUpdate>,
}

#[derive(Debug)]
pub(crate) enum RunningUpdate {
    Asked {
        question: Box<PermissionQuestion>,
        delivered: oneshot::Sender<()>,
    },
    Answered {
        id: String,
        permit: PermissionAnswer,
    },
    /// The newest output of a running call.
    Output {
        call: String,
        tail: String,
        n_lines: u64,
    },
}

impl<'a> ReportingAsker<'a> {
    pub(crate) fn new(asker: &'a dyn Asker) -> (ReportingAsker<'a>, UnboundedReceiver<RunningUpdate>) {
        let (updates, receiver) = unbounded_channel();
        (ReportingAsker { asker, updates }, receiver)
    }
}

impl RunningUpdate {
    pub(crate) fn deliver(self, front: &mut dyn Front) {
        match self {
            RunningUpdate::Asked { question, delivered } => {
                front.on_update(Update::Asked(&question));
                front.flush();
                // The tool call may have been cancelled.
                let _: Result<(), ()> = delivered.send(());
            }
            RunningUpdate::Answered { id, permit } => {
                front.on_update(Update::Answered { id: &id, permit: &permit });
                front.flush();
            }
            RunningUpdate::Output { call, tail, n_lines } => {
                front.on_update(Update::ToolOutput { call: &call, tail: &tail, n_lines });
                front.flush();
            }
        }
    }
}

impl Asker for ReportingAsker<'_> {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let (delivered, confirmed) = oneshot::channel();
            let update = RunningUpdate::Asked { question: Box::new(question.clone()), delivered };
            if self.updates.send(update).is_ok() {
                // Fails only if the turn is over, and then nothing waits for the answer.
                let _: Result<(), oneshot::error::RecvError> = confirmed.await;
            }
            // A dropped question counts as denied.
            let mut answered =
                AnswerReporter { updates: &self.updates, id: question.id.clone(), permit: PermissionAnswer::No(None) };
            answered.permit = self.asker.ask(question).await;
            answered.permit.clone()
        })
    }

    fn live_output(&self, call: &str) -> Option<LiveOutput> {
        Some(LiveOutput::new(call, &self.updates))
    }

    fn warn(&self, what: &str) {
        self.asker.warn(what);
    }
}

/// Reports the answer when dropped, however the question ends.
struct AnswerReporter<'a> {
    updates: &'a UnboundedSender<RunningUpdate>,
    id: String,
    permit: PermissionAnswer,
}

impl Drop for AnswerReporter<'_> {
    fn drop(&mut self) {
        let (id, permit) = (std::mem::take(&mut self.id), self.permit.clone());
        drop(self.updates.send(RunningUpdate::Answered { id, permit }));
    }
}
