//! What an exchange reports while it runs.

use std::convert::Infallible;
use std::time::Duration;

use aside_core::event::Event;
use aside_core::fold::Fold;
use aside_core::rules::RepairNotice;
use aside_core::wire::Encoded;
use bytes::Bytes;

use super::request::{ReplyPhase, StopSignals, StoppedBy};

#[derive(Debug)]
pub enum ExchangeUpdate<'a> {
    /// A request is about to be sent, for the first time or repaired. `body` includes what the user adds to
    /// it.
    Sending { encoded: &'a Encoded, body: &'a str },
    /// Raw bytes of the reply.
    Received(&'a Bytes),
    /// The provider has said that the reply ends here. Little or nothing follows.
    AtEnd,
    /// A decoded event. The fold already includes it.
    Event { event: Event<'a>, fold: &'a Fold },
    /// The same bytes will be sent again; there was no reply.
    Retrying { after: Duration, attempt: u32, why: &'a str },
    /// The provider refused the request, which is repaired and sent again. If it refused within a stream, the
    /// events of that stream came before; none of them opened a block.
    Repaired(&'a RepairNotice),
}

/// Receives updates. While it is not ready for more, nothing is read from the provider.
///
/// The futures need not be `Send`. If they are, the future of the exchange is `Send` too.
pub trait ExchangeSink {
    /// Takes an update without waiting. Between two calls of `ready` come the updates of at most one chunk of
    /// the reply.
    fn on_update(&mut self, update: ExchangeUpdate<'_>);

    /// Waits until more updates can be taken. Nothing is read from the provider meanwhile. Also called after
    /// the last update; a stop signal ends the wait.
    fn ready(&mut self) -> impl Future<Output = ()>;

    /// Runs while the exchange waits for the provider or for a retry, and is dropped when the wait ends.
    fn while_waiting(&mut self) -> impl Future<Output = Infallible> {
        std::future::pending()
    }
}

/// Waits for `work` unless a signal arrives first.
pub(super) async fn wait_for<T>(
    work: impl Future<Output = T>,
    phase: ReplyPhase,
    stop: StopSignals<'_>,
    sink: &mut impl ExchangeSink,
) -> Result<T, StoppedBy> {
    tokio::select! {
        biased;
        by = stop.received(phase) => Err(by),
        done = work => Ok(done),
        never = sink.while_waiting() => match never {},
    }
}

/// Waits for the sink unless a signal arrives first. The sink is polled at least once.
pub(super) async fn wait_for_sink(
    phase: ReplyPhase,
    stop: StopSignals<'_>,
    sink: &mut impl ExchangeSink,
) -> Result<(), StoppedBy> {
    tokio::select! {
        biased;
        () = sink.ready() => Ok(()),
        by = stop.received(phase) => Err(by),
    }
}
