//! How many tokens a text is: exactly where the vocabulary of its model is at
//! hand, else by an estimate that errs high.

mod calibration;
mod letters;
mod shown;

use std::fmt;
use std::iter::Sum;

use crate::block::{Arguments, Block, Seals};

pub use calibration::{Answered, Calibration, Learned, Who, reported_input};
pub use letters::{Letters, estimate};
pub use shown::{context_limit, shown};

/// Tokens of a text, and how far that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Counted with the model's own vocabulary.
    Exact(u64),
    /// Never shown without a `~`.
    Estimated(u64),
}

impl Count {
    pub fn tokens(self) -> u64 {
        match self {
            Count::Exact(tokens) | Count::Estimated(tokens) => tokens,
        }
    }

    pub fn is_estimate(self) -> bool {
        match self {
            Count::Exact(_) => false,
            Count::Estimated(_) => true,
        }
    }
}

/// A sum is as good as the worst of its parts.
impl Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::Exact(0), |sum, next| match (sum, next) {
            (Count::Exact(sum), Count::Exact(next)) => Count::Exact(sum + next),
            (Count::Exact(sum) | Count::Estimated(sum), Count::Exact(next) | Count::Estimated(next)) => {
                Count::Estimated(sum + next)
            }
        })
    }
}

/// Whoever can count tokens.
pub trait Counter: fmt::Debug + Send + Sync {
    /// What it counts by. What was learned about one counter does not hold for
    /// another.
    fn name(&self) -> &'static str;

    fn count(&self, text: &str) -> Count;

    /// What went wrong while counting, for the log. The counts are usable all
    /// the same.
    fn warning(&self) -> Option<String> {
        None
    }
}

/// The tokens of one block, whether it is sent or not.
pub fn of_block(block: &Block, counter: &dyn Counter) -> Count {
    match block {
        Block::Text(text) => counter.count(&text.text),
        Block::Thinking(thinking) => match (counter.count(thinking.text()), sealed_in(thinking.seals())) {
            (count, 0) => count,
            (count, sealed) => Count::Estimated(count.tokens() + sealed),
        },
        Block::ToolCall(call) => match &call.arguments {
            Arguments::Json(words) | Arguments::Broken(words) => counter.count(&format!("{} {words}", call.name)),
        },
        Block::ToolResult(result) => counter.count(&result.content),
        Block::Image(_) => Count::Estimated(IMAGE_TOKENS),
        Block::Unmodelled(unmodelled) => counter.count(&unmodelled.native.json),
    }
}

fn sealed_in(seals: Option<&Seals>) -> u64 {
    let seals = seals.into_iter().flat_map(|seals| [&seals.signature, &seals.encrypted]).flatten();
    seals.map(|seal| sealed_bytes(seal.payload.len())).sum()
}

/// The most that any provider we know charges for one image.
pub(crate) const IMAGE_TOKENS: u64 = 4_800;

/// Bytes that only their maker reads are no text: about what they hold if they
/// are somebody's words in base64, and a little more.
pub(crate) fn sealed_bytes(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

/// No text has more tokens than bytes, whatever the vocabulary.
pub fn upper_bound(bytes: usize) -> u64 {
    bytes as u64
}

/// Whether a body is long enough that its tokens are worth counting before it
/// is sent. A vocabulary takes time and memory to load; a request that cannot
/// come near the point of compaction needs none.
pub fn needs_exact(body_bytes: usize, limit: Option<u64>, compact_at: Option<f64>) -> bool {
    let Some((limit, compact_at)) = limit.zip(compact_at) else { return false };
    upper_bound(body_bytes) as f64 > limit as f64 * compact_at / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c2_a_sum_with_an_estimate_in_it_is_one() {
        use Count::{Estimated, Exact};
        assert_eq!([].into_iter().sum::<Count>(), Exact(0));
        assert_eq!([Exact(1), Exact(2)].into_iter().sum::<Count>(), Exact(3));
        assert_eq!([Exact(1), Estimated(2), Exact(3)].into_iter().sum::<Count>(), Estimated(6));
    }

    #[test]
    fn c4_a_short_request_needs_no_vocabulary() {
        #[rustfmt::skip]
        let cases = [
            ("far below",         10_000, Some(200_000), Some(0.8), false),
            ("at half",           80_000, Some(200_000), Some(0.8), false),
            ("just above half",   80_001, Some(200_000), Some(0.8), true),
            ("no limit known",    80_001, None,          Some(0.8), false),
            ("compaction is off", 80_001, Some(200_000), None,      false),
            ("empty",             0,      Some(1),       Some(0.8), false),
        ];
        for (name, bytes, limit, compact_at, expected) in cases {
            assert_eq!(needs_exact(bytes, limit, compact_at), expected, "{name}");
        }
    }
}
