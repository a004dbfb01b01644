//! Generates sessions of any size, the same ones every time: words with natural
//! frequencies, code, a script without spaces, and needles whose number is known.

use aside_core::block::{
    Arguments, Block, CallId, Origin, Text, Thinking, ThinkingContent, Time, ToolCall, ToolResult,
};
use aside_core::conversation::Conversation;
use aside_core::event::{Ending, Usage};
use aside_core::history::History;
use aside_core::message::{Message, Role};

const COMMON: [&str; 24] = [
    "the", "of", "and", "to", "a", "in", "is", "that", "it", "for", "we", "this", "be", "with", "as", "not", "so",
    "but", "can", "are", "if", "then", "let", "which",
];
const SYLLABLES: [&str; 40] = [
    "ka", "ri", "to", "men", "sul", "dor", "be", "lin", "ga", "pre", "con", "ver", "ta", "nis", "or", "el", "um",
    "ist", "ent", "al", "ob", "ser", "fi", "na", "qu", "ex", "tra", "mo", "il", "pa", "co", "de", "re", "un", "sta",
    "ble", "ing", "tion", "er", "ness",
];
const VOCABULARY: u64 = 60_000;
/// A day between sessions.
const DAY: u64 = 86_400_000;
pub(crate) const START: u64 = 1_700_000_000_000;

/// A deterministic pseudo-random generator.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A rank with Zipf-like frequency, as in any language.
    fn rank(&mut self, n: u64) -> u64 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((n as f64).powf(unit) as u64).saturating_sub(1).min(n - 1)
    }
}

/// The word of a rank.
pub(crate) fn word(rank: u64) -> String {
    if let Some(word) = COMMON.get(rank as usize) {
        return (*word).to_owned();
    }
    let mut dice = Dice::new(rank + 77);
    let n = 2 + dice.below(3);
    (0..n).map(|_| SYLLABLES[dice.below(SYLLABLES.len() as u64) as usize]).collect()
}

fn han(dice: &mut Dice) -> char {
    char::from_u32(0x4E00 + dice.rank(3000) as u32).expect("a Han letter")
}

/// Writes about this many bytes of text.
pub(crate) fn prose(dice: &mut Dice, length: usize, words: &[String], out: &mut String) {
    let end = out.len() + length;
    while out.len() < end {
        match dice.below(100) {
            0..=2 => {
                for _ in 0..4 + dice.below(8) {
                    out.push(han(dice));
                }
            }
            3..=5 => {
                let (a, b) = (&words[dice.rank(VOCABULARY) as usize], &words[dice.rank(VOCABULARY) as usize]);
                out.push_str(a);
                out.push('_');
                out.push_str(b);
                out.push_str("()");
            }
            6..=7 => {
                let (a, b) = (&words[dice.rank(VOCABULARY) as usize], &words[dice.rank(VOCABULARY) as usize]);
                out.push_str(a);
                let mut letters = b.chars();
                out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
                out.push_str(letters.as_str());
            }
            _ => out.push_str(&words[dice.rank(VOCABULARY) as usize]),
        }
        out.push_str(match dice.below(14) {
            0 => ". ",
            1 => ", ",
            2 if dice.below(4) == 0 => "\n\n",
            _ => " ",
        });
    }
}

pub(crate) struct Generator {
    words: Vec<String>,
    dice: Dice,
    n_blocks: u64,
    pub(crate) n_bytes: usize,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator { words: (0..VOCABULARY).map(word).collect(), dice: Dice::new(seed), n_blocks: 0, n_bytes: 0 }
    }

    fn text(&mut self, length: usize) -> String {
        let length = length / 2 + self.dice.below(length as u64) as usize;
        let mut out = String::with_capacity(length + 64);
        prose(&mut self.dice, length, &self.words, &mut out);
        // Needles at fixed intervals.
        self.n_blocks += 1;
        for (every, needle) in [(97, " uncommonneedle"), (1009, " rarestneedle parseQuirkyHeader 珈琲豆腐屋")] {
            if self.n_blocks.is_multiple_of(every) {
                out.push_str(needle);
            }
        }
        self.n_bytes += out.len();
        out
    }

    /// A session of `n_exchanges`: prompt, thinking, a tool call with its result in
    /// every third, and an answer.
    pub(crate) fn session(&mut self, number: u64, n_exchanges: usize, thinking: usize) -> Conversation {
        let mut history = History::new();
        let start = START + number * DAY / 8;
        let model = format!("model-{}", number % 5);
        for exchange in 0..n_exchanges {
            let at = Some(Time(start + exchange as u64 * 60_000));
            let prompt = Text { text: self.text(200), ..Text::default() };
            history.append(Message { at, ..Message::new(Role::User, vec![Block::Text(prompt)]) });
            let mut blocks = vec![Block::Thinking(Thinking::new(
                ThinkingContent::Open { text: self.text(thinking) },
                "reasoning_content",
            ))];
            if exchange % 3 == 0 {
                let path = self.text(60);
                blocks.push(Block::ToolCall(ToolCall::new(
                    CallId::Given(format!("call_{exchange}")),
                    "read_file",
                    Arguments::Json(serde_json::json!({ "path": path }).to_string()),
                )));
                self.reply(&mut history, &model, at, std::mem::take(&mut blocks));
                let result = ToolResult {
                    id: format!("call_{exchange}"),
                    name: "read_file".to_owned(),
                    content: self.text(2500),
                    is_error: false,
                    media: Vec::new(),
                };
                history.append(Message { at, ..Message::new(Role::Tool, vec![Block::ToolResult(result)]) });
            }
            blocks.push(Block::Text(Text { text: self.text(1200), ..Text::default() }));
            self.reply(&mut history, &model, at, blocks);
        }
        Conversation { model: Some(model), history, ..Conversation::default() }
    }

    fn reply(&mut self, history: &mut History, model: &str, at: Option<Time>, blocks: Vec<Block>) {
        let origin = Origin::default()
            .with_provider("bench".to_owned())
            .with_dialect("bench".to_owned())
            .with_model(model.to_owned())
            .with_endpoint("http://127.0.0.1/v1".to_owned());
        let usage = Usage::default().with_input(1000).with_output(500).with_thinking(300).with_cached(800);
        history.append(Message {
            at,
            origin: Some(origin),
            usage: Some(usage),
            ending: Some(Ending::Stop),
            ..Message::new(Role::Assistant, blocks)
        });
    }
}
