//! Work of a command that the user can interrupt.

use std::collections::VecDeque;
use std::future::Future;

use aside_front::{Command, Update};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::channel_asker::ChannelAsker;
use super::waiting_commands::{take_back, take_message};

/// What the front end asked for while the work went on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterWork {
    GoOn,
    Quit,
}

/// Completes `work`, which ends early once `cancel` is cancelled: by an interrupt, or because the front end quits.
/// Other commands wait in `deferred`; an interrupt gives those back that would run something else next.
pub(super) async fn interruptible<T>(
    work: impl Future<Output = T>,
    cancel: &CancellationToken,
    inbox: &mut UnboundedReceiver<Command>,
    deferred: &mut VecDeque<Command>,
    asker: &ChannelAsker,
) -> (T, AfterWork) {
    let mut work = std::pin::pin!(work);
    let mut after = AfterWork::GoOn;
    loop {
        tokio::select! {
            done = &mut work => return (done, after),
            command = inbox.recv(), if after == AfterWork::GoOn => match command {
                Some(Command::Interrupt) => {
                    cancel.cancel();
                    for text in take_back(deferred) {
                        asker.send(Update::NotSteered { text, error: None });
                    }
                }
                Some(Command::TakeBack(text)) => {
                    let is_waiting = take_message(deferred, &text);
                    asker.answer_take_back(text, is_waiting);
                }
                // The front end asks again.
                Some(Command::RefreshBranch(_)) => (),
                Some(Command::Quit) | None => {
                    after = AfterWork::Quit;
                    cancel.cancel();
                }
                Some(other) => deferred.push_back(other),
            },
        }
    }
}
