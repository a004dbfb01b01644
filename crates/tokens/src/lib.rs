//! Exact token counts for models whose vocabulary is public.
//!
//! A vocabulary takes a tenth of a second and tens of megabytes to load, so it is
//! loaded when the first text is counted. If loading fails, core's estimate is
//! used, with a warning.

use std::sync::{Arc, OnceLock};

use aside_core::dialect::Tokenizer;
use aside_core::tokens::{EstimateCounter, TokenCount, TokenCounter, estimate};
use tiktoken::CoreBpe;

/// The token counter for models with this tokenizer.
pub fn counter(tokenizer: Tokenizer) -> Arc<dyn TokenCounter> {
    match tokenizer {
        Tokenizer::O200k | Tokenizer::Cl100k => Arc::new(Vocabulary::new(tokenizer.as_str(), VocabularyOf::ThisModel)),
        Tokenizer::None => Arc::new(EstimateCounter),
    }
}

/// A token counter for models with an unknown vocabulary, for use with a learned
/// calibration factor: another vocabulary is off by a factor, the letter estimate by
/// more. Without the factor it errs low.
pub fn approximate_counter() -> Arc<dyn TokenCounter> {
    Arc::new(Vocabulary::new(Tokenizer::O200k.as_str(), VocabularyOf::AnotherModel))
}

/// Whether the vocabulary is the model's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VocabularyOf {
    ThisModel,
    AnotherModel,
}

struct Vocabulary {
    name: &'static str,
    owner: VocabularyOf,
    load: fn(&str) -> Option<&'static CoreBpe>,
    loaded: OnceLock<Option<&'static CoreBpe>>,
}

impl Vocabulary {
    fn new(name: &'static str, owner: VocabularyOf) -> Vocabulary {
        Vocabulary { name, owner, load: tiktoken::get_encoding, loaded: OnceLock::new() }
    }
}

impl TokenCounter for Vocabulary {
    fn name(&self) -> &'static str {
        self.name
    }

    fn count(&self, text: &str) -> TokenCount {
        let Some(vocabulary) = self.loaded.get_or_init(|| (self.load)(self.name)) else {
            return TokenCount::Estimated(estimate(text));
        };
        let tokens = vocabulary.count(text) as u64;
        match self.owner {
            VocabularyOf::ThisModel => TokenCount::Exact(tokens),
            VocabularyOf::AnotherModel => TokenCount::Estimated(tokens),
        }
    }

    fn warning(&self) -> Option<String> {
        let failed = matches!(self.loaded.get(), Some(None));
        failed.then(|| format!("the vocabulary {} cannot be loaded; tokens are estimated by characters", self.name))
    }
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vocabulary({})", self.name)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails should fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn err_002_a_vocabulary_that_cannot_be_loaded_gives_a_warning_and_an_estimate() {
        let broken = Vocabulary { load: |_| None, ..Vocabulary::new("o200k_base", VocabularyOf::ThisModel) };
        assert_eq!(broken.warning(), None, "nothing was loaded yet");
        let text = "Some words to count.";
        assert_eq!(broken.count(text), TokenCount::Estimated(estimate(text)));
        let warning = "the vocabulary o200k_base cannot be loaded; tokens are estimated by characters";
        assert_eq!(broken.warning().as_deref(), Some(warning));
    }

    #[test]
    fn c4_a_vocabulary_is_loaded_by_the_first_count_and_not_before() {
        let vocabulary = Vocabulary::new("cl100k_base", VocabularyOf::ThisModel);
        assert!(vocabulary.loaded.get().is_none());
        assert_eq!(vocabulary.count(""), TokenCount::Exact(0));
        assert!(vocabulary.loaded.get().unwrap().is_some());
        assert_eq!(vocabulary.warning(), None);
    }
}
