//! Values that other programs send in place of thinking that they have lost.

use serde::Deserialize;

use super::glob;

/// A longer value is real: every known sentinel is shorter.
const MAX_BYTES: usize = 256;

/// The known sentinels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sentinels {
    seals: Vec<String>,
    texts: Vec<String>,
}

impl Sentinels {
    pub(super) fn has_seal(&self, payload: &str) -> bool {
        matches_any(&self.seals, payload)
    }

    pub(super) fn has_text(&self, text: &str) -> bool {
        matches_any(&self.texts, text)
    }
}

fn matches_any(patterns: &[String], value: &str) -> bool {
    let value = value.trim();
    value.len() <= MAX_BYTES && patterns.iter().any(|pattern| glob::matches(pattern, value))
}

/// The file format.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SentinelsFile {
    #[serde(default)]
    seals: Vec<String>,
    #[serde(default)]
    texts: Vec<String>,
}

impl SentinelsFile {
    /// Adds to the known ones.
    pub(super) fn merge_into(self, known: &mut Sentinels) {
        known.seals.extend(self.seals);
        known.texts.extend(self.texts);
    }
}
