//! Code in sight goes to whoever highlights it, and its colours come back.

use super::App;
use crate::text::light::{Job, Lit};

impl App {
    /// Code of the last frame that has no colours yet.
    pub fn unlit(&mut self) -> Vec<Job> {
        let mut jobs = self.transcript.wants();
        let ticket = self.transcript.ticket();
        if let Some(reader) = &mut self.reader {
            jobs.extend(std::iter::from_fn(|| reader.wants(ticket)));
        }
        jobs
    }

    pub(super) fn lit(&mut self, lit: &mut Lit) {
        let is_read = self.reader.as_mut().is_some_and(|reader| reader.lit(lit));
        if !is_read {
            self.transcript.lit(lit);
        }
    }
}
