//! How a reply ended, from what its decoder knows when the input ends.

use super::Finished;
use crate::event::{Ending, ProviderError, ReplyEnd};

/// What a decoder knows when the input ends.
pub(super) struct EndOfInput {
    /// From the provider's finish reason.
    pub(super) reason: Option<Ending>,
    /// The model called a tool. Some providers then give the same reason as for an answer.
    pub(super) called: bool,
    /// The provider said that the reply was complete.
    pub(super) is_complete: bool,
    pub(super) error: Option<ProviderError>,
}

impl EndOfInput {
    pub(super) fn finished(self) -> Finished {
        let EndOfInput { reason, called, is_complete, error } = self;
        let ending = match reason {
            Some(Ending::Stop) if called => Ending::ToolCalls,
            Some(ending) => ending,
            None if is_complete || error.is_some() => Ending::Unsaid,
            None => Ending::CutOff,
        };
        Finished(ReplyEnd { ending, error })
    }
}
