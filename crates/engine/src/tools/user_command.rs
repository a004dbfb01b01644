//! A command line that the user typed. It runs outside the sandbox, because the user chose it, not a model.

use std::io;
use std::time::Duration;

use aside_confine::{Approval, CommandInput, RequestedAccess};
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::TextOutcome;
use super::live_output::{CollectedOutput, LiveOutput};
use super::process;
use super::shell::{MAX_OUTPUT, SHELL, outcome_text};
use super::working_dir::WorkingDir;
use crate::running_updates::RunningUpdate;

/// The user can stop it at any time.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The newest output of a command, and how many lines it has written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewestOutput {
    pub tail: String,
    pub n_lines: u64,
}

impl WorkingDir {
    /// Runs a command line of the user in this folder, without input and without the keys of providers.
    pub async fn run_user_command(
        &self,
        command: &str,
        mut on_output: impl FnMut(NewestOutput),
        cancel: &CancellationToken,
    ) -> TextOutcome {
        let confine = self.confine();
        let arguments = ["-c", command];
        let launch = confine
            .launch(SHELL, &arguments, RequestedAccess::Unconfined, Approval::ByUser, CommandInput::Empty)
            .map_err(|refused| refused.to_string())?;
        let not_run = |error: io::Error| format!("the command could not be run: {error}");
        let helper = self.take_helper().map_err(not_run)?;
        let (updates, mut outputs) = unbounded_channel();
        let collected = CollectedOutput::new(MAX_OUTPUT, Some(LiveOutput::new("", &updates)));
        let mut run = std::pin::pin!(process::run(helper, &launch, LONGEST, collected, cancel));
        let ran = loop {
            tokio::select! {
                ran = &mut run => break ran,
                Some(update) = outputs.recv() => {
                    if let RunningUpdate::Output { tail, n_lines, .. } = update {
                        on_output(NewestOutput { tail, n_lines });
                    }
                }
            }
        };
        let ran = ran.map_err(not_run)?;
        outcome_text(&ran, ran.output.text(), LONGEST.as_secs())
    }
}
