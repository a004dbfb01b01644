//! Signals of `ask`.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::ExitStatus;

/// The first Ctrl+C stops the turn and keeps the partial reply; the second exits.
/// SIGTERM and SIGHUP do the same, and exit after a grace period.
pub(crate) struct Interrupts {
    pub(crate) stop: CancellationToken,
    /// Exit at once: drop everything, so that no child process is left behind.
    pub(crate) leave: CancellationToken,
    /// The exit status, if a signal ended the process.
    pub(crate) signal: Arc<OnceLock<ExitStatus>>,
}

/// How long an orderly shutdown may take after SIGTERM or SIGHUP.
const GRACE: Duration = Duration::from_secs(5);

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal. Returns its exit status; none for Ctrl+C, which only stops
    /// the turn.
    async fn next(&mut self) -> Option<ExitStatus> {
        tokio::select! {
            _ = self.interrupt.recv() => None,
            _ = self.terminate.recv() => Some(ExitStatus::Terminated),
            _ = self.hangup.recv() => Some(ExitStatus::HungUp),
        }
    }
}

pub(crate) fn interrupts() -> Interrupts {
    let interrupts =
        Interrupts { stop: CancellationToken::new(), leave: CancellationToken::new(), signal: Arc::default() };
    let (stop, leave, ended) = (interrupts.stop.clone(), interrupts.leave.clone(), Arc::clone(&interrupts.signal));
    tokio::spawn(async move {
        // Without handlers, signals end the process as usual.
        let Ok(mut signals) = Signals::listen() else { return };
        let first = signals.next().await;
        if let Some(outcome) = first {
            ended.get_or_init(|| outcome);
        }
        stop.cancel();
        match first {
            None => drop(signals.next().await),
            Some(_) => drop(tokio::time::timeout(GRACE, signals.next()).await),
        }
        leave.cancel();
    });
    interrupts
}
