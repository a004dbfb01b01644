//! Signals from outside become updates, so that every way out is the same one:
//! the turn is stopped, what came is kept, the terminal is given back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aside_tui::seam::Update;
use tokio_util::sync::CancellationToken;

use crate::Outcome;

/// How long an orderly end may take.
const GRACE: Duration = Duration::from_secs(5);

/// Watches on a thread of its own: an engine that hangs cannot hold it up.
#[derive(Clone)]
pub(crate) struct Watch {
    stop: CancellationToken,
    outcome: Arc<OnceLock<Outcome>>,
    /// Somebody shows the session, and can be told of a stop.
    is_shown: Arc<AtomicBool>,
}

/// The watch ends with the engine, whatever ends that.
pub(crate) struct EndsWith(pub(crate) Watch);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Watch {
    /// What the process ends with, if a signal ended it.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.outcome.get().copied()
    }

    /// Whether there is a front to be told. Without one, Ctrl+C ends the process.
    pub(crate) fn shown(&self, is_shown: bool) {
        self.is_shown.store(is_shown, Ordering::Relaxed);
    }

    /// There is nobody to tell any more.
    fn stop(&self) {
        self.stop.cancel();
    }
}

/// Which of the two fronts is told; a line prompt is stopped by the terminal
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Front {
    Screen,
    Lines,
}

pub(crate) fn watch(front: Front, updates: Sender<Update>) -> anyhow::Result<Watch> {
    let watch = Watch { stop: CancellationToken::new(), outcome: Arc::default(), is_shown: Arc::default() };
    let watching = watch.clone();
    let runtime = crate::run::runtime()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(watching.stop.clone().run_until_cancelled(listen(front, &watching, &updates)))
    })?;
    Ok(watch)
}

/// Stop from the terminal, which tokio has no name for. Its number differs from
/// system to system.
#[cfg(unix)]
fn stop_number() -> i32 {
    rustix::process::Signal::TSTP.as_raw()
}

#[cfg(unix)]
async fn listen(front: Front, watch: &Watch, updates: &Sender<Update>) -> std::io::Result<()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stop: Option<Signal> = match front {
        Front::Screen => Some(signal(SignalKind::from_raw(stop_number()))?),
        Front::Lines => None,
    };
    loop {
        let stopped = async {
            match &mut stop {
                Some(stop) => stop.recv().await,
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::select! {
            _ = interrupt.recv() => {
                // What is typed in an editor is for the editor.
                match watch.is_shown.load(Ordering::Relaxed) {
                    _ if aside_tui::is_lent() => (),
                    true => drop(updates.send(Update::Interrupt)),
                    false => std::process::exit(Outcome::Interrupted as i32),
                }
                continue;
            }
            _ = stopped => {
                match aside_tui::is_lent() {
                    true => aside_tui::stop_with_the_editor(),
                    false => drop(updates.send(Update::Suspend)),
                }
                continue;
            }
            _ = terminate.recv() => Outcome::Terminated,
            _ = hangup.recv() => Outcome::HungUp,
        };
        watch.outcome.get_or_init(|| outcome);
        drop(updates.send(Update::Leave));
        // Whoever asks twice, or has waited long enough, is not kept waiting.
        tokio::select! {
            _ = terminate.recv() => (),
            () = tokio::time::sleep(GRACE) => (),
        }
        if front == Front::Screen {
            aside_tui::restore();
        }
        std::process::exit(outcome as i32);
    }
}

#[cfg(not(unix))]
async fn listen(_front: Front, _watch: &Watch, updates: &Sender<Update>) -> std::io::Result<()> {
    loop {
        tokio::signal::ctrl_c().await?;
        drop(updates.send(Update::Interrupt));
    }
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn the_number_of_a_signal_is_the_one_of_this_system() {
        let command = format!("kill -l {}", super::stop_number());
        let output = std::process::Command::new("sh").args(["-c", &command]).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "TSTP");
    }
}
