//! Words out of a seed: the same seed gives the same words.

use std::hash::{Hash, Hasher};

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

/// Numbers out of a seed.
#[derive(Debug, Clone)]
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

    /// A thought of so many tokens.
    pub(crate) fn long(&mut self, n_tokens: usize) -> Vec<String> {
        let mut out = Vec::with_capacity(n_tokens);
        let mut n_said = 0;
        while out.len() < n_tokens {
            let sentence = format!("{} ", self.pick(&THOUGHTS));
            out.extend(tokens(&sentence));
            n_said += 1;
            // A long thought is no loop: there is something new in it.
            if n_said > FEW {
                let things: Vec<&str> = (0..8).map(|_| self.pick(&THINGS)).collect();
                out.extend(tokens(&format!("Or {}? ", things.join(", "))));
            }
        }
        out.truncate(n_tokens);
        out
    }

    pub(crate) fn remark(&mut self) -> &'static str {
        self.pick(&REMARKS)
    }
}

/// A text in pieces like a model's: a word with the space before it, at most a
/// few letters; letters outside ASCII one by one.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut piece = String::new();
    for letter in text.chars() {
        let begins = letter.is_whitespace() || !letter.is_ascii() || piece.len() >= 8;
        if begins && !piece.trim().is_empty() {
            out.push(std::mem::take(&mut piece));
        }
        piece.push(letter);
    }
    if !piece.is_empty() {
        out.push(piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_the_text_again() {
        for text in ["", "a", "Let me see.\n\n 先检查 🙂  indentation", "supercalifragilistic", "   "] {
            assert_eq!(tokens(text).concat(), text);
        }
        assert_eq!(tokens("Let me see."), ["Let", " me", " see."]);
    }

    #[test]
    fn x2_the_same_seed_gives_the_same_words() {
        let say = |seed: u64, of: &str| Dice::new(seed, of).thought();
        assert_eq!(say(1, "q"), say(1, "q"));
        assert_ne!(say(1, "q"), say(2, "q"));
        assert_ne!(say(1, "q"), say(1, "other"));
        assert_eq!(Dice::new(3, "q").long(1000).len(), 1000);
    }

    #[test]
    fn x2_a_long_thought_is_no_loop_and_a_refrain_is_one() {
        use aside_core::loop_guard::LoopGuard;
        for seed in 0..20 {
            let mut guard = LoopGuard::new();
            for token in Dice::new(seed, "q").long(20_000) {
                guard.push(&token);
                assert_eq!(guard.found(), None, "seed {seed}");
            }
        }
        assert!(LoopGuard::of(&REFRAIN.repeat(20)).is_some());
    }
}
