//! Token counts: exact if the model's vocabulary is available, else an estimate
//! that errs high.

mod calibration;
mod display;
mod estimate;

use std::fmt;
use std::iter::Sum;

use crate::block::{Arguments, Block, Media, MediaKind, Seals};

pub use calibration::{Calibration, CalibrationKey, CountRatio, ReportedCount, reported_input};
pub use display::{context_limit, format_usage};
pub use estimate::{EstimateCounter, estimate};

/// The number of tokens, exact or estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCount {
    /// Counted with the model's own vocabulary.
    Exact(u64),
    /// Always shown with a `~`.
    Estimated(u64),
}

impl TokenCount {
    /// The number, however it was found.
    pub fn tokens(self) -> u64 {
        match self {
            TokenCount::Exact(tokens) | TokenCount::Estimated(tokens) => tokens,
        }
    }

    /// Whether it must be shown with a `~`.
    pub fn is_estimate(self) -> bool {
        match self {
            TokenCount::Exact(_) => false,
            TokenCount::Estimated(_) => true,
        }
    }
}

/// A sum is exact only if all parts are.
impl Sum for TokenCount {
    fn sum<I: Iterator<Item = TokenCount>>(counts: I) -> TokenCount {
        counts.fold(TokenCount::Exact(0), |sum, next| match (sum, next) {
            (TokenCount::Exact(sum), TokenCount::Exact(next)) => TokenCount::Exact(sum + next),
            (
                TokenCount::Exact(sum) | TokenCount::Estimated(sum),
                TokenCount::Exact(next) | TokenCount::Estimated(next),
            ) => TokenCount::Estimated(sum + next),
        })
    }
}

/// Counts tokens.
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// The name of the vocabulary. Calibration data of one counter does not
    /// apply to another.
    fn name(&self) -> &'static str;

    /// The tokens of a text on its own.
    fn count(&self, text: &str) -> TokenCount;

    /// What went wrong while counting, for the log. The counts are still
    /// usable.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// The tokens of one block, whether it is sent or not.
pub fn count_block(block: &Block, counter: &dyn TokenCounter) -> TokenCount {
    match block {
        Block::Text(text) => counter.count(&text.text),
        Block::Thinking(thinking) => match (counter.count(thinking.text()), sealed_tokens(thinking.seals())) {
            (count, 0) => count,
            (count, sealed) => TokenCount::Estimated(count.tokens() + sealed),
        },
        Block::ToolCall(call) => match &call.arguments {
            Arguments::Json(words) | Arguments::Broken(words) => counter.count(&format!("{} {words}", call.name)),
        },
        Block::ToolResult(result) if result.media.is_empty() => counter.count(&result.content),
        Block::ToolResult(result) => {
            let media: u64 = result.media.iter().map(media_tokens).sum();
            TokenCount::Estimated(counter.count(&result.content).tokens() + media)
        }
        Block::Media(media) => TokenCount::Estimated(media_tokens(media)),
        Block::Unmodelled(unmodelled) => counter.count(&unmodelled.native.json),
    }
}

fn sealed_tokens(seals: Option<&Seals>) -> u64 {
    let seals = seals.into_iter().flat_map(|seals| [&seals.signature, &seals.encrypted]).flatten();
    seals.map(|seal| estimate_sealed(seal.payload.len())).sum()
}

/// An estimate for an image or a document. A document costs about a token for
/// every three bytes of its content, and at least as much as an image.
pub(crate) fn media_tokens(media: &Media) -> u64 {
    match media.kind {
        MediaKind::Image => IMAGE_TOKENS,
        MediaKind::Document => media.data().map_or(0, |data| data.len() as u64 / 4).max(IMAGE_TOKENS),
    }
}

/// The highest price of one image among known providers.
pub(crate) const IMAGE_TOKENS: u64 = 4_800;

/// An estimate for sealed payloads: roughly what base64 text of that size would
/// hold, plus a margin.
pub(crate) fn estimate_sealed(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// No text has more tokens than bytes, in any vocabulary.
pub fn upper_bound(bytes: usize) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_a_sum_with_an_estimate_is_an_estimate() {
        use TokenCount::{Estimated, Exact};
        assert_eq!([].into_iter().sum::<TokenCount>(), Exact(0));
        assert_eq!([Exact(1), Exact(2)].into_iter().sum::<TokenCount>(), Exact(3));
        assert_eq!([Exact(1), Estimated(2), Exact(3)].into_iter().sum::<TokenCount>(), Estimated(6));
    }
}
