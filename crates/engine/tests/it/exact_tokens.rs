//! Where exact token counts replace the estimate.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use aside_core::block::{Block, Text};
use aside_core::compaction::{CompactionTrigger, NoCompaction};
use aside_core::dialect::Tokenizer;
use aside_core::message::{Message, Role};
use aside_core::settings::Layer;
use aside_core::tokens::{EstimateCounter, TokenCount, TokenCounter};
use aside_engine::compaction::CompactionResult;
use aside_engine::{Session, Vocabularies};
use tokio_util::sync::CancellationToken;

use crate::session_support::{TestFront, session, user};

/// The real vocabularies. Counts how often one is loaded.
#[derive(Debug, Default)]
struct TestVocabularies {
    loads: AtomicUsize,
    threads: Mutex<Vec<ThreadId>>,
    failures: Mutex<Vec<String>>,
    is_broken: bool,
}

impl Vocabularies for TestVocabularies {
    fn counter(&self, tokenizer: Tokenizer) -> Arc<dyn TokenCounter> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.threads.lock().unwrap().push(std::thread::current().id());
        if self.is_broken { Arc::new(BrokenCounter) } else { aside_tokens::counter(tokenizer) }
    }

    fn on_failure(&self, why: &str) {
        self.failures.lock().unwrap().push(why.to_owned());
    }
}

#[derive(Debug)]
struct BrokenCounter;

impl TokenCounter for BrokenCounter {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn count(&self, text: &str) -> TokenCount {
        EstimateCounter.count(text)
    }

    fn warning(&self) -> Option<String> {
        Some("the vocabulary is broken".to_owned())
    }
}

/// A session of three turns whose estimate is this fraction of the compaction threshold. Its provider cannot be
/// reached, so compaction fails if it is tried.
fn session_at(fraction: f64, vocabularies: &Arc<TestVocabularies>) -> Session {
    let mut session = session("http://127.0.0.1:9", "openai", "gpt-5");
    for _ in 0..3 {
        session.history.append(user(&"Internationalisation considerations and representations. ".repeat(40)));
        let reply = Text { text: "An uncomplicated explanation of everything. ".repeat(40), ..Text::default() };
        session.history.append(Message::new(Role::Assistant, vec![Block::Text(reply)]));
    }
    let estimate = session.encode(&[]).tokens as f64;
    let limit = estimate / fraction / session.settings.compact_at().unwrap();
    session.settings.set(Layer::Session, "context.limit", &format!("{limit:.0}")).unwrap();
    session.vocabularies = Some(Arc::clone(vocabularies) as Arc<dyn Vocabularies>);
    session
}

async fn compact(session: &mut Session) -> CompactionResult {
    session.compact(CompactionTrigger::Full, &mut TestFront::default(), &CancellationToken::new()).await
}

#[tokio::test]
async fn c4_the_exact_count_decides_where_the_estimate_is_close_to_the_threshold() {
    let vocabularies = Arc::default();
    let mut session = session_at(1.05, &vocabularies);
    assert_eq!(compact(&mut session).await, CompactionResult::Skipped(NoCompaction::Fits));
    assert_eq!(vocabularies.loads.load(Ordering::Relaxed), 1);
    let here = std::thread::current().id();
    assert!(vocabularies.threads.lock().unwrap().iter().all(|thread| *thread != here), "on a background thread");
    // The estimate alone says that it is full.
    session.vocabularies = None;
    let estimated = compact(&mut session).await;
    assert!(matches!(estimated, CompactionResult::Failed(_)), "{estimated:?}");
}

#[tokio::test]
async fn c4_far_from_the_threshold_and_below_half_the_window_nothing_is_loaded() {
    for (fraction, is_full) in [(0.1, false), (0.6, false), (0.85, false), (1.2, true)] {
        let vocabularies = Arc::default();
        let mut session = session_at(fraction, &vocabularies);
        let result = compact(&mut session).await;
        assert_eq!(matches!(result, CompactionResult::Failed(_)), is_full, "{fraction}: {result:?}");
        assert_eq!(vocabularies.loads.load(Ordering::Relaxed), 0, "{fraction}");
    }
    // A low threshold is close, but the session fills less than half of the window.
    let vocabularies = Arc::default();
    let mut session = session_at(0.5, &vocabularies);
    session.settings.set(Layer::Session, "context.compactAt", "0.4").unwrap();
    compact(&mut session).await;
    assert_eq!(vocabularies.loads.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn err_002_a_vocabulary_that_fails_leaves_the_estimate_and_a_line_for_the_log() {
    let vocabularies = Arc::new(TestVocabularies { is_broken: true, ..TestVocabularies::default() });
    let mut session = session_at(1.05, &vocabularies);
    let result = compact(&mut session).await;
    assert!(matches!(result, CompactionResult::Failed(_)), "the estimate says that it is full: {result:?}");
    assert_eq!(*vocabularies.failures.lock().unwrap(), ["the vocabulary is broken"]);
    assert_eq!(session.exact_token_breakdown().await, None);
}

#[tokio::test]
async fn c2_the_breakdown_of_a_request_is_counted_with_the_models_vocabulary() {
    let vocabularies = Arc::default();
    let mut session = session_at(0.1, &vocabularies);
    let estimated = session.token_breakdown().1;
    let exact = session.exact_token_breakdown().await.unwrap();
    let prompt = "Internationalisation considerations and representations. ".repeat(40);
    let tokens = aside_tokens::counter(Tokenizer::O200k).count(&prompt).tokens();
    // Each message has some JSON around its text.
    assert!((3 * tokens..3 * tokens + 90).contains(&exact.prompts), "{tokens}: {exact:?}");
    assert!(exact.total() < estimated.total(), "{exact:?} {estimated:?}");
    // Without a known vocabulary there is only the estimate.
    session.endpoint = crate::session_support::endpoint("http://127.0.0.1:9", "deepseek", "deepseek-chat");
    assert_eq!(session.exact_token_breakdown().await, None);
    assert_eq!(vocabularies.loads.load(Ordering::Relaxed), 1);
}
