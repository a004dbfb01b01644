//! Tells the front end of every question before it is asked, and of its answer.
//!
//! Tools run side by side while the front end belongs to the loop that drives
//! them, so a question goes to that loop first and is asked once it was told.

use aside_core::question::{Permit, Question};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::tools::Asker;
use crate::update::{Front, Update};

/// An [`Asker`] whose questions the front end hears of.
pub(crate) struct Announcing<'a> {
    asker: &'a dyn Asker,
    loop_: UnboundedSender<Announced>,
}

pub(crate) enum Announced {
    Asked { question: Box<Question>, told: oneshot::Sender<()> },
    Answered { id: String, permit: Permit },
}

impl<'a> Announcing<'a> {
    pub(crate) fn new(asker: &'a dyn Asker) -> (Announcing<'a>, UnboundedReceiver<Announced>) {
        let (loop_, announced) = unbounded_channel();
        (Announcing { asker, loop_ }, announced)
    }
}

impl Announced {
    pub(crate) fn tell(self, front: &mut dyn Front) {
        match self {
            Announced::Asked { question, told } => {
                front.hear(Update::Asked(&question));
                front.rest();
                // Whoever asked may have been stopped.
                let _: Result<(), ()> = told.send(());
            }
            Announced::Answered { id, permit } => {
                front.hear(Update::Answered { id: &id, permit: &permit });
                front.rest();
            }
        }
    }
}

impl Asker for Announcing<'_> {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(async move {
            let (told, hears) = oneshot::channel();
            let announced = Announced::Asked { question: Box::new(question.clone()), told };
            if self.loop_.send(announced).is_ok() {
                // It only fails if the turn is over, and then nobody waits.
                let _: Result<(), oneshot::error::RecvError> = hears.await;
            }
            // A question that is dropped was not answered with yes.
            let mut answered = Answered { loop_: &self.loop_, id: question.id.clone(), permit: Permit::No(None) };
            answered.permit = self.asker.ask(question).await;
            answered.permit.clone()
        })
    }

    fn trouble(&self, what: &str) {
        self.asker.trouble(what);
    }
}

/// Tells of the answer however the question ends.
struct Answered<'a> {
    loop_: &'a UnboundedSender<Announced>,
    id: String,
    permit: Permit,
}

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        let (id, permit) = (std::mem::take(&mut self.id), self.permit.clone());
        drop(self.loop_.send(Announced::Answered { id, permit }));
    }
}
