//! Exact token counts where the vocabulary of a model is public.
//!
//! A vocabulary takes a tenth of a second and tens of megabytes to load, so it
//! is loaded when the first text is counted and never before. Where that fails,
//! core's estimate counts, and the warning says so.

use std::sync::{Arc, OnceLock};

use aside_core::dialect::Tokenizer;
use aside_core::tokens::{Count, Counter, Letters, estimate};
use tiktoken::CoreBpe;

/// What counts the tokens of models with this tokenizer.
pub fn counter(tokenizer: Tokenizer) -> Arc<dyn Counter> {
    match tokenizer {
        Tokenizer::O200k | Tokenizer::Cl100k => Arc::new(Vocabulary::of(tokenizer.as_str(), Reader::ItsOwn)),
        Tokenizer::None => Arc::new(Letters),
    }
}

/// What counts for models whose vocabulary nobody knows, once it was learned
/// how their counts differ: another family's vocabulary is off by a factor, the
/// letters are off by more. Without a learned factor it errs low.
pub fn stand_in() -> Arc<dyn Counter> {
    Arc::new(Vocabulary::of(Tokenizer::O200k.as_str(), Reader::Another))
}

/// Whether the model reads by the vocabulary that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    ItsOwn,
    Another,
}

struct Vocabulary {
    name: &'static str,
    reader: Reader,
    load: fn(&str) -> Option<&'static CoreBpe>,
    loaded: OnceLock<Option<&'static CoreBpe>>,
}

impl Vocabulary {
    fn of(name: &'static str, reader: Reader) -> Vocabulary {
        Vocabulary { name, reader, load: tiktoken::get_encoding, loaded: OnceLock::new() }
    }
}

impl Counter for Vocabulary {
    fn name(&self) -> &'static str {
        self.name
    }

    fn count(&self, text: &str) -> Count {
        let Some(vocabulary) = self.loaded.get_or_init(|| (self.load)(self.name)) else {
            return Count::Estimated(estimate(text));
        };
        let tokens = vocabulary.count(text) as u64;
        match self.reader {
            Reader::ItsOwn => Count::Exact(tokens),
            Reader::Another => Count::Estimated(tokens),
        }
    }

    fn warning(&self) -> Option<String> {
        let failed = matches!(self.loaded.get(), Some(None));
        failed.then(|| format!("the vocabulary {} cannot be loaded; tokens are estimated by letters", self.name))
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
    fn err_002_a_vocabulary_that_cannot_be_loaded_is_told_and_the_estimate_counts() {
        let broken = Vocabulary { load: |_| None, ..Vocabulary::of("o200k_base", Reader::ItsOwn) };
        assert_eq!(broken.warning(), None, "nothing was tried yet");
        let text = "Some words that want counting.";
        assert_eq!(broken.count(text), Count::Estimated(estimate(text)));
        let warning = "the vocabulary o200k_base cannot be loaded; tokens are estimated by letters";
        assert_eq!(broken.warning().as_deref(), Some(warning));
    }

    #[test]
    fn c4_a_vocabulary_is_loaded_by_the_first_count_and_not_before() {
        let vocabulary = Vocabulary::of("cl100k_base", Reader::ItsOwn);
        assert!(vocabulary.loaded.get().is_none());
        assert_eq!(vocabulary.count(""), Count::Exact(0));
        assert!(vocabulary.loaded.get().unwrap().is_some());
        assert_eq!(vocabulary.warning(), None);
    }
}
