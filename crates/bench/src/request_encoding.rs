//! Encodes a long conversation as a request, and again after one more turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aside_core::block::{Block, Origin, Text, Thinking, ThinkingContent};
use aside_core::dialect::Dialects;
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, Settings};
use aside_core::tokens::{TokenCount, TokenCounter};
use aside_core::wire::{Encoded, Encoder, Request};

const MESSAGES: usize = 2_000;
const THINKING_BYTES: usize = 4 << 20;

/// A history with its encoder.
pub struct EncodingBench {
    dialects: Dialects,
    settings: Settings,
    history: History,
    encoder: Encoder,
    counter: Arc<NamedCounter>,
}

/// Counts in functions with different names in the first and the second build, so
/// that the profile separates counting from building.
#[derive(Debug)]
struct NamedCounter {
    counter: Arc<dyn TokenCounter>,
    second: AtomicBool,
}

impl TokenCounter for NamedCounter {
    fn name(&self) -> &'static str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> TokenCount {
        if self.second.load(Ordering::Relaxed) {
            measured_second_count(self.counter.as_ref(), text)
        } else {
            measured_first_count(self.counter.as_ref(), text)
        }
    }
}

#[inline(never)]
fn measured_first_count(counter: &dyn TokenCounter, text: &str) -> TokenCount {
    std::hint::black_box("first");
    counter.count(text)
}

#[inline(never)]
fn measured_second_count(counter: &dyn TokenCounter, text: &str) -> TokenCount {
    std::hint::black_box("second");
    counter.count(text)
}

impl EncodingBench {
    pub fn new(counter: Arc<dyn TokenCounter>) -> EncodingBench {
        // Loads the vocabulary now, so that loading is not measured.
        std::hint::black_box(counter.count("once"));
        let mut history = History::new();
        let words = "Some \"words\" of a thought, with\nlines in it. ";
        let thought = words.repeat(THINKING_BYTES / (MESSAGES / 2) / words.len() + 1);
        for _ in 0..MESSAGES / 2 {
            append_turn(&mut history, &thought);
        }
        let dialects = Dialects::builtin().expect("the built-in dialects are valid");
        let mut settings = Settings::new();
        settings.set(Layer::Session, "reasoning.includeInContext", "true").expect("a setting");
        let counter = Arc::new(NamedCounter { counter, second: AtomicBool::new(false) });
        let encoder = Encoder::counting_with(Arc::<NamedCounter>::clone(&counter));
        EncodingBench { dialects, settings, history, encoder, counter }
    }

    pub fn start_second_build(&mut self) {
        append_turn(&mut self.history, "One more thought.");
        self.counter.second.store(true, Ordering::Relaxed);
    }

    fn encode(&mut self) -> Encoded {
        let branch = self.history.branch();
        let entries: Vec<EntryId> = branch.iter().map(|(entry, _)| *entry).collect();
        let messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
        let dialect = self.dialects.get(DIALECT).expect("built in");
        let target = origin();
        let request = Request::new(&self.dialects, dialect, MODEL, &target, &self.settings).with_messages(&messages);
        self.encoder.encode(&request, &entries)
    }
}

const DIALECT: &str = "generic";
const MODEL: &str = "some-model";

fn origin() -> Origin {
    Origin::default().with_dialect(DIALECT.to_owned()).with_model(MODEL.to_owned())
}

fn append_turn(history: &mut History, thought: &str) {
    let text = |words: &str| Block::Text(Text { text: words.to_owned(), ..Text::default() });
    let thought =
        Block::Thinking(Thinking::new(ThinkingContent::Open { text: thought.to_owned() }, "reasoning_content"));
    history.append(Message::new(Role::User, vec![text("A question.")]));
    let answer = Message::new(Role::Assistant, vec![thought, text("An answer of a few words.")]);
    history.append(Message { origin: Some(origin()), ..answer });
}

#[inline(never)]
pub fn measured_first_build(bench: &mut EncodingBench) -> Encoded {
    // The compiler would merge two functions with the same body.
    std::hint::black_box("first");
    bench.encode()
}

#[inline(never)]
pub fn measured_second_build(bench: &mut EncodingBench) -> Encoded {
    std::hint::black_box("second");
    bench.encode()
}
