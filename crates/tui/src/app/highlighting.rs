//! Sends visible code to the highlighter and applies the results.

use super::App;
use crate::text::highlight_jobs::{HighlightJob, HighlightResult};

impl App {
    /// Code in the last frame that is not highlighted yet.
    pub fn highlight_jobs(&mut self) -> Vec<HighlightJob> {
        let mut jobs = self.transcript.highlight_jobs();
        let highlight_id = self.transcript.highlight_id();
        if let Some(reader) = &mut self.reader {
            jobs.extend(std::iter::from_fn(|| reader.next_job(highlight_id)));
        }
        jobs
    }

    pub(super) fn apply_highlight(&mut self, result: &mut HighlightResult) {
        let is_read = self.reader.as_mut().is_some_and(|reader| reader.apply_highlight(result));
        if !is_read {
            self.transcript.apply_highlight(result);
        }
    }
}
