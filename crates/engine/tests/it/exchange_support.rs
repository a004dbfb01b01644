//! Shared helpers: one exchange without a session, and a sink that records updates and can hold back.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aside_core::event::Event;
use aside_core::message::Message;
use aside_core::parameters::Parameters;
use aside_core::rules::{AnswerMode, AppliedRepair};
use aside_core::settings::Settings;
use aside_core::wire::Encoder;
use aside_engine::exchange::{ExchangeOutcome, ExchangeRequest, ExchangeSink, ExchangeUpdate, StopSignals};
use aside_engine::{AnswerNowSignal, Endpoint, Exchange, Http, Redactor, Timeouts};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::session_support::{dialects, user};

/// Records a short line for each update, and takes as many chunks as it has permits.
pub(crate) struct TestSink {
    pub(crate) lines: Vec<String>,
    /// The number of lines, shared with the test.
    pub(crate) n_lines: Arc<AtomicUsize>,
    /// The text so far, shared with the test.
    pub(crate) text: Arc<Mutex<String>>,
    pub(crate) n_received: usize,
    pub(crate) largest_chunk: usize,
    permits: Arc<Semaphore>,
    /// A permit is needed once the text contains this.
    hold_at: &'static str,
}

impl Default for TestSink {
    fn default() -> TestSink {
        TestSink::with_permits(Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)))
    }
}

impl TestSink {
    pub(crate) fn with_permits(permits: Arc<Semaphore>) -> TestSink {
        let (lines, text) = (Vec::new(), Arc::default());
        TestSink { lines, n_lines: Arc::default(), text, n_received: 0, largest_chunk: 0, permits, hold_at: "" }
    }

    /// Needs permits only after this text.
    pub(crate) fn holding_at(hold_at: &'static str, permits: Arc<Semaphore>) -> TestSink {
        TestSink { hold_at, ..TestSink::with_permits(permits) }
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }
}

impl ExchangeSink for TestSink {
    fn on_update(&mut self, update: ExchangeUpdate<'_>) {
        let line = match update {
            ExchangeUpdate::Sending { encoded, body } => {
                assert_eq!(*encoded.body, body, "the user adds nothing here");
                "sending".to_owned()
            }
            ExchangeUpdate::Received(bytes) => {
                self.n_received += bytes.len();
                self.largest_chunk = self.largest_chunk.max(bytes.len());
                return;
            }
            ExchangeUpdate::Event { event: Event::Grew { block, text }, fold } => {
                assert!(fold.text(block).ends_with(text), "the fold includes the event");
                self.text.lock().unwrap().push_str(text);
                return;
            }
            ExchangeUpdate::Event { event: Event::Ended(_), .. } => "ended".to_owned(),
            ExchangeUpdate::AtEnd | ExchangeUpdate::Event { .. } => return,
            ExchangeUpdate::Retrying { attempt, why, .. } => format!("retrying {attempt}: {why}"),
            ExchangeUpdate::Repaired(notice) => format!("repaired {}", notice.repair.as_str()),
        };
        self.lines.push(line);
        self.n_lines.store(self.lines.len(), Ordering::Release);
    }

    async fn ready(&mut self) {
        if self.text().contains(self.hold_at) {
            self.permits.acquire().await.unwrap().forget();
        }
    }
}

/// One exchange, with everything that it borrows. Its future can be spawned.
#[derive(Clone)]
pub(crate) struct TestExchange {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) endpoint: Endpoint,
    pub(crate) settings: Settings,
    pub(crate) answer_mode: AnswerMode,
    pub(crate) repairs: Vec<AppliedRepair>,
    pub(crate) cancel: CancellationToken,
    pub(crate) answer_now: AnswerNowSignal,
}

impl TestExchange {
    pub(crate) fn new(endpoint: Endpoint) -> TestExchange {
        let timeouts =
            Timeouts { connect: Duration::from_secs(5), idle: Duration::from_secs(30), ..Timeouts::default() };
        let exchange = Exchange { dialects: dialects(), http: Http::new(timeouts), redactor: Redactor::default() };
        TestExchange {
            exchange: Arc::new(exchange),
            endpoint,
            settings: Settings::new(),
            answer_mode: AnswerMode::Normal,
            repairs: Vec::new(),
            cancel: CancellationToken::new(),
            answer_now: AnswerNowSignal::default(),
        }
    }

    pub(crate) async fn run(self, text: &str) -> (ExchangeOutcome, TestSink) {
        self.run_with(text, TestSink::default()).await
    }

    pub(crate) async fn run_with(self, text: &str, sink: TestSink) -> (ExchangeOutcome, TestSink) {
        self.run_messages(vec![user(text)], sink).await
    }

    async fn run_messages(self, messages: Vec<Message>, mut sink: TestSink) -> (ExchangeOutcome, TestSink) {
        let request = ExchangeRequest {
            endpoint: &self.endpoint,
            messages: messages.iter().collect(),
            entries: Vec::new(),
            tools: &[],
            settings: &self.settings,
            parameters: &Parameters::new(),
            answer_mode: self.answer_mode,
            repairs: &self.repairs,
        };
        let stop = StopSignals { cancel: &self.cancel, answer_now: Some(&self.answer_now) };
        let outcome = self.exchange.run(&request, &mut Encoder::new(), stop, &mut sink).await;
        (outcome, sink)
    }
}

/// Waits for a condition, for a minute at most.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(60), "still not: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
