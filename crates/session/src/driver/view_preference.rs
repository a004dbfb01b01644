//! Writes the chosen view of thinking to the config. A user who looks for a view presses
//! Ctrl+T several times, so it is written once, after the last press.

use std::path::PathBuf;
use std::time::Duration;

use aside_core::settings::ThinkingDisplay;
use tokio::time::Instant;

use super::blocking::blocking;
use crate::error::HintedError;
use crate::settings;

/// The choice is written when it has not changed for this long.
const QUIET: Duration = Duration::from_secs(1);

/// The chosen view, until it is in the config.
pub(super) struct ViewPreference {
    /// The config folder.
    folder: Option<PathBuf>,
    /// What to write, and when.
    unsaved: Option<(ThinkingDisplay, Instant)>,
}

impl ViewPreference {
    pub(super) fn new(folder: Option<PathBuf>) -> ViewPreference {
        ViewPreference { folder, unsaved: None }
    }

    pub(super) fn choose(&mut self, view: ThinkingDisplay) {
        self.unsaved = Some((view, Instant::now() + QUIET));
    }

    /// Waits until there is a choice to write and it has not changed for a while.
    pub(super) async fn settled(&self) {
        match self.unsaved {
            Some((_, at)) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Writes the choice, if it is not written yet.
    pub(super) async fn save(&mut self) -> Result<(), HintedError> {
        let (Some((view, _)), Some(folder)) = (self.unsaved.take(), self.folder.clone()) else { return Ok(()) };
        blocking(move || settings::save_view(&folder, view)).await
    }
}
