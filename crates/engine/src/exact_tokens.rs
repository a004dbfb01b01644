//! Exact token counts of a request. A vocabulary takes a tenth of a second and tens of megabytes to load, so it
//! is loaded only where the estimate is not enough, and counting happens on a background thread.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aside_core::dialect::Tokenizer;
use aside_core::rules::AnswerMode;
use aside_core::tokens::{TokenCount, TokenCounter, estimate};
use aside_core::wire::{Encoder, TokenBreakdown};

use crate::session::Session;

/// The vocabularies, which this crate does not contain.
pub trait Vocabularies: fmt::Debug + Send + Sync {
    /// The counter of a vocabulary. It is called on a background thread, and so is the counter.
    fn counter(&self, tokenizer: Tokenizer) -> Arc<dyn TokenCounter>;

    /// A count failed, and the estimate is used. For the log.
    fn on_failure(&self, why: &str);
}

impl Session {
    /// The exact tokens of the next request. None if the model's vocabulary is unknown or cannot be loaded.
    pub(crate) async fn exact_tokens(&mut self) -> Option<u64> {
        let dialects = self.dialects();
        self.count_exactly(|session, encoder| {
            let (request, _) = session.request(AnswerMode::Normal, &[]);
            request.encode(&dialects, encoder, &[]).tokens
        })
        .await
    }

    /// The exact tokens of the next request by category. None as above.
    pub async fn exact_token_breakdown(&mut self) -> Option<TokenBreakdown> {
        let dialects = self.dialects();
        self.count_exactly(|session, encoder| {
            let (request, _) = session.request(AnswerMode::Normal, &[]);
            request.token_breakdown(&dialects, encoder).1
        })
        .await
    }

    /// Encodes twice: to learn which texts are counted, and again when their counts are known.
    async fn count_exactly<T>(&mut self, count: impl Fn(&mut Session, &mut Encoder) -> T) -> Option<T> {
        let vocabularies = Arc::clone(self.vocabularies.as_ref()?);
        let tokenizer = self.endpoint.dialect.rules(Some(&self.endpoint.model)).ask.tokenizer;
        if tokenizer == Tokenizer::None {
            return None;
        }
        let texts = Arc::new(CountedTexts::default());
        let encoder = || Encoder::counting_with(Arc::clone(&texts) as Arc<dyn TokenCounter>);
        count(self, &mut encoder());
        let work = (Arc::clone(&texts), Arc::clone(&vocabularies));
        let counted = tokio::task::spawn_blocking(move || work.0.count_all(work.1.counter(tokenizer).as_ref())).await;
        match counted.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => Some(count(self, &mut encoder())),
            Err(why) => {
                vocabularies.on_failure(&why);
                None
            }
        }
    }
}

/// Collects the texts that are counted, and then knows their counts.
#[derive(Default)]
struct CountedTexts(Mutex<HashMap<String, Option<u64>>>);

impl CountedTexts {
    fn count_all(&self, counter: &dyn TokenCounter) -> Result<(), String> {
        for (text, tokens) in self.lock().iter_mut() {
            *tokens = Some(counter.count(text).tokens());
        }
        counter.warning().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Option<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenCounter for CountedTexts {
    fn name(&self) -> &'static str {
        "counted texts"
    }

    fn count(&self, text: &str) -> TokenCount {
        let mut texts = self.lock();
        match texts.get(text) {
            Some(Some(tokens)) => TokenCount::Exact(*tokens),
            Some(None) => TokenCount::Estimated(estimate(text)),
            None => {
                texts.insert(text.to_owned(), None);
                TokenCount::Estimated(estimate(text))
            }
        }
    }
}

impl fmt::Debug for CountedTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountedTexts({})", self.lock().len())
    }
}
