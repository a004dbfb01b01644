//! Passes the updates of an exchange to a front end.

use std::convert::Infallible;

use aside_core::rules::LeftOut;

use crate::exchange::{ExchangeSink, ExchangeUpdate};
use crate::update::{Front, Update};

/// A front end is always ready: it is called on the engine's thread and returns when it is done.
pub(crate) struct FrontSink<'a> {
    pub(crate) front: &'a mut dyn Front,
    pub(crate) step: u32,
    pub(crate) model: &'a str,
    /// What the user was told is not sent.
    pub(crate) reported_losses: &'a mut Vec<LeftOut>,
}

impl ExchangeSink for FrontSink<'_> {
    fn on_update(&mut self, update: ExchangeUpdate<'_>) {
        let FrontSink { front, step, model, reported_losses } = self;
        match update {
            ExchangeUpdate::Sending { encoded, body } => {
                front.on_update(Update::Sending { step: *step, model, encoded, body });
                for loss in encoded.left_out.iter().filter(|loss| loss.needs_notice()) {
                    if !reported_losses.iter().any(|reported| reported.is_same_kind(loss)) {
                        front.on_update(Update::LeftOut(loss));
                        reported_losses.push(loss.clone());
                    }
                }
            }
            ExchangeUpdate::Received(bytes) => front.on_update(Update::Received(bytes)),
            ExchangeUpdate::AtEnd => (),
            ExchangeUpdate::Event { event, fold } => front.on_update(Update::Event { event, fold }),
            ExchangeUpdate::Retrying { after, attempt, why } => {
                front.on_update(Update::Retrying { after, attempt, why });
            }
            ExchangeUpdate::Repaired(notice) => front.on_update(Update::TurnNotice(&notice.clone().into())),
        }
    }

    async fn ready(&mut self) {
        self.front.flush();
    }

    async fn while_waiting(&mut self) -> Infallible {
        tick(self.front).await
    }
}

/// Waits for `work` while ticking the front end.
pub(crate) async fn with_ticks<T>(front: &mut dyn Front, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        never = tick(front) => match never {},
    }
}

async fn tick(front: &mut dyn Front) -> Infallible {
    loop {
        // The front end may have nothing left to do.
        let Some(interval) = front.tick_interval() else { return std::future::pending().await };
        tokio::time::sleep(interval).await;
        front.tick();
    }
}
