//! Turns signals into updates, so that every exit is the same: the turn is
//! stopped, its partial reply is stored, the terminal is restored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aside_front::Update;
use tokio_util::sync::CancellationToken;

use crate::ExitStatus;

/// How long an orderly shutdown may take.
const GRACE: Duration = Duration::from_secs(5);

/// Handles signals on its own thread, so that a hanging session cannot block it.
#[derive(Clone)]
pub(crate) struct SignalWatch {
    stop: CancellationToken,
    outcome: Arc<OnceLock<ExitStatus>>,
    /// A front end is running and handles interrupts.
    front_is_running: Arc<AtomicBool>,
}

impl SignalWatch {
    /// The exit status, if a signal ended the process.
    pub(crate) fn outcome(&self) -> Option<ExitStatus> {
        self.outcome.get().copied()
    }

    /// Without a running front end, Ctrl+C ends the process.
    pub(crate) fn set_front_running(&self, front_is_running: bool) {
        self.front_is_running.store(front_is_running, Ordering::Relaxed);
    }

    /// Stops handling signals.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }
}

/// Which front end runs. SIGTSTP needs handling only for the screen; the line
/// prompt is suspended by the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrontKind {
    Screen,
    Lines,
}

pub(crate) fn watch(front: FrontKind, updates: Sender<Update>) -> anyhow::Result<SignalWatch> {
    let watch =
        SignalWatch { stop: CancellationToken::new(), outcome: Arc::default(), front_is_running: Arc::default() };
    let watching = watch.clone();
    let runtime = aside_session::start::runtime()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(watching.stop.clone().run_until_cancelled(listen(front, &watching, &updates)))
    })?;
    Ok(watch)
}

/// The number of SIGTSTP, which differs between systems. tokio has no name for it.
#[cfg(unix)]
fn stop_number() -> i32 {
    rustix::process::Signal::TSTP.as_raw()
}

#[cfg(unix)]
async fn listen(front: FrontKind, watch: &SignalWatch, updates: &Sender<Update>) -> std::io::Result<()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut stop: Option<Signal> = match front {
        FrontKind::Screen => Some(signal(SignalKind::from_raw(stop_number()))?),
        FrontKind::Lines => None,
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
                // While an editor has the terminal, Ctrl+C belongs to the editor.
                match watch.front_is_running.load(Ordering::Relaxed) {
                    _ if aside_tui::is_editor_running() => (),
                    true => drop(updates.send(Update::Interrupt)),
                    false => std::process::exit(ExitStatus::Interrupted as i32),
                }
                continue;
            }
            _ = stopped => {
                match aside_tui::is_editor_running() {
                    true => aside_tui::suspend_with_editor(),
                    false => drop(updates.send(Update::Suspend)),
                }
                continue;
            }
            _ = terminate.recv() => ExitStatus::Terminated,
            _ = hangup.recv() => ExitStatus::HungUp,
        };
        watch.outcome.get_or_init(|| outcome);
        drop(updates.send(Update::Quit));
        // A second SIGTERM, or the end of the grace period, exits at once.
        tokio::select! {
            _ = terminate.recv() => (),
            () = tokio::time::sleep(GRACE) => (),
        }
        match front {
            FrontKind::Screen => aside_tui::restore_terminal(),
            FrontKind::Lines => super::interrupt_key::release(),
        }
        std::process::exit(outcome as i32);
    }
}

#[cfg(not(unix))]
async fn listen(_front: FrontKind, _watch: &SignalWatch, updates: &Sender<Update>) -> std::io::Result<()> {
    loop {
        tokio::signal::ctrl_c().await?;
        drop(updates.send(Update::Interrupt));
    }
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn the_number_of_sigtstp_is_right_on_this_system() {
        let command = format!("kill -l {}", super::stop_number());
        let output = std::process::Command::new("sh").args(["-c", &command]).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "TSTP");
    }
}
