//! Words out of a seed: the same seed gives the same words.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use siphasher::sip::SipHasher13;

/// Thoughts that a model might have about anything.
const THOUGHTS: [&str; 20] = [
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

/// How many sentences in a row are no repetition yet.
const FEW: usize = 12;

/// What a long thought may be about.
const THINGS: [&str; 48] = [
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

/// What a model that is stuck says, for ever.
pub(crate) const REFRAIN: &str = "Wait, let me think about that again. ";

/// Letters of the longest token.
const LONGEST_TOKEN: usize = 8;

/// Numbers out of a seed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Everything that makes a reply another reply.
    pub(crate) fn new(seed: u64, of: impl Hash) -> Dice {
        let mut hasher = SipHasher13::new_with_keys(seed, 0x0061_7369_6465);
        of.hash(&mut hasher);
        Dice(hasher.finish())
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.roll() % from.len().max(1) as u64;
        usize::try_from(at).ok().and_then(|at| from.get(at)).copied().unwrap_or("")
    }

    /// An id as providers make them.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:08x}", self.roll(), self.roll() >> 32)
    }

    /// A thought of a few sentences.
    pub(crate) fn thought(&mut self) -> String {
        let n = 2 + self.roll() % 3;
        (0..n).map(|_| self.pick(&THOUGHTS)).collect::<Vec<_>>().join(" ")
    }

    /// A thought of so many tokens, each made when it is asked for.
    pub(crate) fn long(&mut self, n_tokens: usize) -> Words {
        let words = Words::Long { dice: self.clone(), n_tokens };
        // What is rolled next must not depend on when the words are said: the
        // same rolls as for them, without the words.
        let (mut n_said, mut n_made) = (0, 0);
        while n_made < n_tokens {
            n_said += 1;
            n_made += token_count(&format!("{} ", self.pick(&THOUGHTS)));
            if n_said > FEW {
                n_made += token_count(&self.doubt());
            }
        }
        words
    }

    /// A sentence that has not been said before.
    fn doubt(&mut self) -> String {
        let mut out = String::with_capacity(96);
        for at in 0..8 {
            out.push_str(if at == 0 { "Or " } else { ", " });
            out.push_str(self.pick(&THINGS));
        }
        out.push_str("? ");
        out
    }

    pub(crate) fn remark(&mut self) -> &'static str {
        self.pick(&REMARKS)
    }
}

/// A text in pieces like a model's: a word with the space before it, at most a
/// few letters; letters outside ASCII one by one.
pub(crate) fn tokens(text: &str) -> Words {
    Words::Text(text.into())
}

/// What is going to be said. A long text is not kept but made as it is said:
/// many slow streams would fill the memory otherwise.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Words {
    Text(Arc<str>),
    /// Sentences of a seed.
    Long {
        dice: Dice,
        n_tokens: usize,
    },
    /// The same sentence, for so many tokens.
    Refrain {
        n_tokens: usize,
    },
    /// One text, cut into tokens as a whole.
    Joined(Vec<Words>),
}

impl Words {
    /// One token after another.
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            Words::Text(text) => Box::new(Tokens::of(Letters { text: Arc::clone(text), at: 0 })),
            Words::Long { dice, n_tokens } => Box::new(Long::new(dice.clone(), *n_tokens)),
            Words::Refrain { n_tokens } => {
                let once: Vec<String> = Tokens::of(REFRAIN.chars()).collect();
                Box::new(once.into_iter().cycle().take(*n_tokens))
            }
            Words::Joined(parts) => Box::new(Tokens::of(parts.clone().into_iter().flat_map(|part| part.letters()))),
        }
    }

    fn letters(&self) -> Box<dyn Iterator<Item = char> + Send + Sync> {
        match self {
            Words::Text(text) => Box::new(Letters { text: Arc::clone(text), at: 0 }),
            Words::Long { .. } | Words::Refrain { .. } | Words::Joined(_) => {
                Box::new(self.tokens().flat_map(|token| token.chars().collect::<Vec<_>>()))
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens().next().is_none()
    }

    /// How many tokens they are.
    pub(crate) fn count(&self) -> usize {
        match self {
            Words::Long { n_tokens, .. } | Words::Refrain { n_tokens } => *n_tokens,
            Words::Text(text) => token_count(text),
            Words::Joined(_) => self.tokens().count(),
        }
    }
}

/// How many tokens a text is. Nothing is made of it but the number.
fn token_count(text: &str) -> usize {
    let (mut n_tokens, mut length, mut is_blank) = (0, 0, true);
    for letter in text.chars() {
        let begins = letter.is_whitespace() || !letter.is_ascii() || length >= LONGEST_TOKEN;
        if begins && !is_blank {
            n_tokens += 1;
            (length, is_blank) = (0, true);
        }
        length += letter.len_utf8();
        is_blank &= letter.is_whitespace();
    }
    n_tokens + usize::from(length > 0)
}

/// Tokens that are made one by one.
pub(crate) type TokenStream = Box<dyn Iterator<Item = String> + Send + Sync>;

/// The letters of a text that others may be reading too.
struct Letters {
    text: Arc<str>,
    at: usize,
}

impl Iterator for Letters {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let letter = self.text.get(self.at..)?.chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }
}

/// Cuts letters into tokens.
struct Tokens<I> {
    letters: I,
    piece: String,
}

impl<I: Iterator<Item = char>> Tokens<I> {
    fn of(letters: I) -> Tokens<I> {
        Tokens { letters, piece: String::new() }
    }
}

impl<I: Iterator<Item = char>> Iterator for Tokens<I> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        for letter in self.letters.by_ref() {
            let begins = letter.is_whitespace() || !letter.is_ascii() || self.piece.len() >= LONGEST_TOKEN;
            let whole = begins && !self.piece.trim().is_empty();
            let token = whole.then(|| std::mem::take(&mut self.piece));
            self.piece.push(letter);
            if token.is_some() {
                return token;
            }
        }
        let last = std::mem::take(&mut self.piece);
        (!last.is_empty()).then_some(last)
    }
}

/// The tokens of a long thought.
struct Long {
    dice: Dice,
    left: usize,
    n_said: usize,
    sentence: std::vec::IntoIter<String>,
}

impl Long {
    fn new(dice: Dice, n_tokens: usize) -> Long {
        Long { dice, left: n_tokens, n_said: 0, sentence: Vec::new().into_iter() }
    }
}

impl Iterator for Long {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        if self.left == 0 {
            return None;
        }
        if self.sentence.len() == 0 {
            let sentence = format!("{} ", self.dice.pick(&THOUGHTS));
            let mut said: Vec<String> = Tokens::of(sentence.chars()).collect();
            self.n_said += 1;
            // A long thought is no loop: there is something new in it.
            if self.n_said > FEW {
                said.extend(Tokens::of(self.dice.doubt().chars()));
            }
            self.sentence = said.into_iter();
        }
        self.left -= 1;
        self.sentence.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_text_again() {
        for text in ["", "a", "Let me see.\n\n 先检查 🙂  indentation", "supercalifragilistic", "   "] {
            assert_eq!(tokens(text).tokens().collect::<String>(), text);
        }
        assert_eq!(tokens("Let me see.").tokens().collect::<Vec<_>>(), ["Let", " me", " see."]);
    }

    #[test]
    fn x2_the_same_seed_gives_the_same_words() {
        let say = |seed: u64, of: &str| Dice::new(seed, of).thought();
        assert_eq!(say(1, "q"), say(1, "q"));
        assert_ne!(say(1, "q"), say(2, "q"));
        assert_ne!(say(1, "q"), say(1, "other"));
        assert_eq!(Dice::new(3, "q").long(1000).tokens().count(), 1000);
    }

    #[test]
    fn what_is_rolled_after_a_long_thought_does_not_depend_on_its_being_said() {
        for n_tokens in [0, 1, 7, 100, 5000] {
            let mut dice = Dice::new(9, "q");
            let Words::Long { dice: before, .. } = dice.long(n_tokens) else { panic!("long words are made later") };
            let mut said = Long::new(before, n_tokens);
            assert_eq!(said.by_ref().count(), n_tokens);
            assert_eq!(dice, said.dice, "{n_tokens}");
        }
        for text in ["", " ", "a", "Let me see.\n\n 先检查 🙂  indentation", "supercalifragilistic", "   "] {
            assert_eq!(token_count(text), tokens(text).tokens().count(), "{text:?}");
        }
    }

    #[test]
    fn x2_a_long_thought_is_no_loop_and_a_refrain_is_one() {
        use aside_core::loop_guard::LoopGuard;
        for seed in 0..20 {
            let mut guard = LoopGuard::new();
            for token in Dice::new(seed, "q").long(20_000).tokens() {
                guard.push(&token);
                assert_eq!(guard.found(), None, "seed {seed}");
            }
        }
        assert!(LoopGuard::of(&REFRAIN.repeat(20)).is_some());
    }
}
