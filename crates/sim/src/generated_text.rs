//! Text generated from a seed: the same seed gives the same text.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use siphasher::sip::SipHasher13;

/// Sentences for the simulated thinking.
const SENTENCES: [&str; 20] = [
    "Let me see what is asked here.",
    "The question has two parts, and the second depends on the first.",
    "I should check the obvious reading before the clever one.",
    "If that holds, the rest follows; if not, I need another way.",
    "Wait, that is not quite right.",
    "There is an edge case: what if the list is empty?",
    "So the answer cannot be decided from the question alone.",
    "A short answer will do.",
    "Let me count again: one, two, three.",
    "That fits what was said before.",
    "I could look it up, but nothing here needs it.",
    "Naïve, perhaps, but it works.",
    "先检查一下输入。",
    "Both ways give the same result, which is a good sign 🙂.",
    "The units do not match, so one of them must be wrong.",
    "No, the first idea was better.",
    "It helps to write the steps down: `a`, then `b`, then `c`.",
    "What would make this false?",
    "I have seen this shape of problem before.",
    "That settles it.",
];

/// After this many sentences, a long text needs variation so that the repetition guard
/// does not fire.
const PLAIN_SENTENCES: usize = 12;

/// Words that vary a long text.
const NOUNS: [&str; 48] = [
    "amber", "anchor", "attic", "barley", "basin", "beacon", "birch", "bridge", "candle", "canvas", "cedar", "chalk",
    "cinder", "clover", "copper", "coral", "dune", "ember", "fennel", "ferry", "flint", "garnet", "ginger", "harbour",
    "heron", "indigo", "ivory", "juniper", "kettle", "lantern", "ledger", "linen", "maple", "marble", "meadow",
    "nickel", "orchard", "otter", "pebble", "pepper", "quarry", "raven", "saddle", "thimble", "velvet", "walnut",
    "willow", "zinc",
];

const REMARKS: [&str; 6] = [
    "First things first.",
    "That much is clear.",
    "One step further:",
    "So far, so good.",
    "Now to the rest.",
    "Here is what I make of it.",
];

pub(crate) const TITLES: [&str; 6] = [
    "Reading the question",
    "Checking the edges",
    "Weighing both ways",
    "Counting again",
    "Looking for a mistake",
    "Settling the answer",
];

/// The sentence that a looping reply repeats.
pub(crate) const LOOP_SENTENCE: &str = "Wait, let me think about that again. ";

const MAX_TOKEN_BYTES: usize = 8;

/// A deterministic random number generator (SplitMix64).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeededRng(u64);

impl SeededRng {
    /// `of` is everything that should make replies differ.
    pub(crate) fn new(seed: u64, of: impl Hash) -> SeededRng {
        let mut hasher = SipHasher13::new_with_keys(seed, 0x0061_7369_6465);
        of.hash(&mut hasher);
        SeededRng(hasher.finish())
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.next_u64() % from.len().max(1) as u64;
        usize::try_from(at).ok().and_then(|at| from.get(at)).copied().unwrap_or("")
    }

    /// An id that looks like a provider's.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:08x}", self.next_u64(), self.next_u64() >> 32)
    }

    /// Thinking of a few sentences.
    pub(crate) fn thinking_text(&mut self) -> String {
        let n = 2 + self.next_u64() % 3;
        (0..n).map(|_| self.pick(&SENTENCES)).collect::<Vec<_>>().join(" ")
    }

    /// A text of `n_tokens` tokens, generated lazily.
    pub(crate) fn long_text(&mut self, n_tokens: usize) -> GeneratedText {
        let text = GeneratedText::Long { rng: self.clone(), n_tokens };
        // The generator's next numbers must not depend on when the text is produced, so
        // draw the same numbers here as producing it does.
        let (mut n_sentences, mut n_counted) = (0, 0);
        while n_counted < n_tokens {
            n_sentences += 1;
            n_counted += token_count(&format!("{} ", self.pick(&SENTENCES)));
            if n_sentences > PLAIN_SENTENCES {
                n_counted += token_count(&self.varied_sentence());
            }
        }

        text
    }

    /// A sentence that is unlikely to repeat.
    fn varied_sentence(&mut self) -> String {
        let mut out = String::with_capacity(96);
        for at in 0..8 {
            out.push_str(if at == 0 { "Or " } else { ", " });
            out.push_str(self.pick(&NOUNS));
        }
        out.push_str("? ");
        out
    }

    pub(crate) fn remark(&mut self) -> &'static str {
        self.pick(&REMARKS)
    }
}

/// A given text. Its tokens resemble a model's: a word with the space before it, at most
/// a few characters long; characters outside ASCII are tokens of their own.
pub(crate) fn fixed_text(text: &str) -> GeneratedText {
    GeneratedText::Fixed(text.into())
}

/// Text to send. A long text is generated while it is sent, because storing it for many
/// slow streams would exhaust memory.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GeneratedText {
    Fixed(Arc<str>),
    /// Sentences generated from a seed.
    Long {
        rng: SeededRng,
        n_tokens: usize,
    },
    /// The same sentence repeated for this many tokens.
    Repeated {
        n_tokens: usize,
    },
    /// The concatenation of several texts, tokenized as a whole.
    Joined(Vec<GeneratedText>),
}

impl GeneratedText {
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            GeneratedText::Fixed(text) => Box::new(TokenSplitter::of(TextChars { text: Arc::clone(text), at: 0 })),
            GeneratedText::Long { rng, n_tokens } => Box::new(LongTextTokens::new(rng.clone(), *n_tokens)),
            GeneratedText::Repeated { n_tokens } => {
                let once: Vec<String> = TokenSplitter::of(LOOP_SENTENCE.chars()).collect();
                Box::new(once.into_iter().cycle().take(*n_tokens))
            }
            GeneratedText::Joined(parts) => {
                Box::new(TokenSplitter::of(parts.clone().into_iter().flat_map(|part| part.chars())))
            }
        }
    }

    fn chars(&self) -> Box<dyn Iterator<Item = char> + Send + Sync> {
        match self {
            GeneratedText::Fixed(text) => Box::new(TextChars { text: Arc::clone(text), at: 0 }),
            GeneratedText::Long { .. } | GeneratedText::Repeated { .. } | GeneratedText::Joined(_) => {
                Box::new(self.tokens().flat_map(|token| token.chars().collect::<Vec<_>>()))
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens().next().is_none()
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            GeneratedText::Long { n_tokens, .. } | GeneratedText::Repeated { n_tokens } => *n_tokens,
            GeneratedText::Fixed(text) => token_count(text),
            GeneratedText::Joined(_) => self.tokens().count(),
        }
    }
}

/// Counts tokens without allocating them.
fn token_count(text: &str) -> usize {
    let (mut n_tokens, mut length, mut is_blank) = (0, 0, true);
    for character in text.chars() {
        let begins = character.is_whitespace() || !character.is_ascii() || length >= MAX_TOKEN_BYTES;
        if begins && !is_blank {
            n_tokens += 1;
            (length, is_blank) = (0, true);
        }
        length += character.len_utf8();
        is_blank &= character.is_whitespace();
    }
    n_tokens + usize::from(length > 0)
}

/// A lazy sequence of tokens.
pub(crate) type TokenStream = Box<dyn Iterator<Item = String> + Send + Sync>;

/// The characters of a shared text.
struct TextChars {
    text: Arc<str>,
    at: usize,
}

impl Iterator for TextChars {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let character = self.text.get(self.at..)?.chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }
}

/// Splits characters into tokens.
struct TokenSplitter<I> {
    chars: I,
    piece: String,
}

impl<I: Iterator<Item = char>> TokenSplitter<I> {
    fn of(chars: I) -> TokenSplitter<I> {
        TokenSplitter { chars, piece: String::new() }
    }
}

impl<I: Iterator<Item = char>> Iterator for TokenSplitter<I> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        for character in self.chars.by_ref() {
            let begins = character.is_whitespace() || !character.is_ascii() || self.piece.len() >= MAX_TOKEN_BYTES;
            let whole = begins && !self.piece.trim().is_empty();
            let token = whole.then(|| std::mem::take(&mut self.piece));
            self.piece.push(character);
            if token.is_some() {
                return token;
            }
        }
        let last = std::mem::take(&mut self.piece);
        (!last.is_empty()).then_some(last)
    }
}

/// The tokens of a long text.
struct LongTextTokens {
    rng: SeededRng,
    left: usize,
    n_sentences: usize,
    sentence: std::vec::IntoIter<String>,
}

impl LongTextTokens {
    fn new(rng: SeededRng, n_tokens: usize) -> LongTextTokens {
        LongTextTokens { rng, left: n_tokens, n_sentences: 0, sentence: Vec::new().into_iter() }
    }
}

impl Iterator for LongTextTokens {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        if self.sentence.len() == 0 {
            let sentence = format!("{} ", self.rng.pick(&SENTENCES));
            let mut sentence_tokens: Vec<String> = TokenSplitter::of(sentence.chars()).collect();
            self.n_sentences += 1;
            // Add variation, so that a long text is not mistaken for a loop.
            if self.n_sentences > PLAIN_SENTENCES {
                sentence_tokens.extend(TokenSplitter::of(self.rng.varied_sentence().chars()));
            }
            self.sentence = sentence_tokens.into_iter();
        }
        self.left -= 1;
        self.sentence.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_add_up_to_the_text() {
        for text in ["", "a", "Let me see.\n\n 先检查 🙂  indentation", "supercalifragilistic", "   "] {
            assert_eq!(fixed_text(text).tokens().collect::<String>(), text);
        }
        assert_eq!(fixed_text("Let me see.").tokens().collect::<Vec<_>>(), ["Let", " me", " see."]);
    }

    #[test]
    fn x2_the_same_seed_gives_the_same_text() {
        let generate = |seed: u64, of: &str| SeededRng::new(seed, of).thinking_text();
        assert_eq!(generate(1, "q"), generate(1, "q"));
        assert_ne!(generate(1, "q"), generate(2, "q"));
        assert_ne!(generate(1, "q"), generate(1, "other"));
        assert_eq!(SeededRng::new(3, "q").long_text(1000).tokens().count(), 1000);
    }

    #[test]
    fn the_generator_s_state_after_a_long_text_does_not_depend_on_producing_it() {
        for n_tokens in [0, 1, 7, 100, 5000] {
            let mut rng = SeededRng::new(9, "q");
            let GeneratedText::Long { rng: before, .. } = rng.long_text(n_tokens) else {
                panic!("long texts are lazy")
            };
            let mut tokens = LongTextTokens::new(before, n_tokens);
            assert_eq!(tokens.by_ref().count(), n_tokens);
            assert_eq!(rng, tokens.rng, "{n_tokens}");
        }
        for text in ["", " ", "a", "Let me see.\n\n 先检查 🙂  indentation", "supercalifragilistic", "   "] {
            assert_eq!(token_count(text), fixed_text(text).tokens().count(), "{text:?}");
        }
    }

    #[test]
    fn x2_a_long_text_is_not_a_loop_and_a_repeated_sentence_is() {
        use aside_core::repetition::RepetitionGuard;
        for seed in 0..20 {
            let mut guard = RepetitionGuard::new();
            for token in SeededRng::new(seed, "q").long_text(20_000).tokens() {
                guard.push(&token);
                assert_eq!(guard.found(), None, "seed {seed}");
            }
        }
        assert!(RepetitionGuard::of(&LOOP_SENTENCE.repeat(20)).is_some());
    }
}
