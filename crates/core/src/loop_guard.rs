//! Notices a thought that no longer gets anywhere: the same words again and
//! again, or the same few sentences in ever changing order.
//!
//! Text goes in as it comes. A delta costs its own length, and what is kept of
//! a thought does not grow with it, so every running thought can be watched.

use std::fmt;

/// How many words are looked back upon; a power of two.
const MEMORY: usize = 8192;
/// Words over which novelty is measured.
const WINDOW: usize = 256;
/// Of these, so many must have been said often before.
const STALE_AT: u32 = 200;
/// Fewer than this, and the thought has found its way out.
const FRESH_AT: u32 = 96;
/// Saying it a third time is a draft, a fourth is a habit.
const OFTEN: u16 = 3;
/// An exact repetition fills at least so many words.
const LEAST_RUN: u64 = 60;
/// Zeros of a matrix and rules of a table repeat too, so very short pieces
/// must go on for longer.
const SHORT_PERIOD: u64 = 4;
const LEAST_SHORT_RUN: u64 = 240;
/// Letters of a word without an end, such as a key or a picture in base64.
const LONGEST_WORD: u32 = 32;
/// Signs and blanks are no words, but so many of one kind in a row count as one.
const SIGN_RUN: u32 = 16;
const BLANK_RUN: u32 = 64;
/// How much text is kept for the quotation, and how long that may be.
const TAIL: usize = 1024;
const QUOTE: usize = 48;

/// What a thought is stuck on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: Kind,
    /// Words of it, to recognise it by.
    pub quote: String,
    /// How many words ago it began.
    pub words: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The same piece, word for word, so many times.
    Repeats { times: u64 },
    /// Hardly anything is new.
    Circles,
}

impl fmt::Display for Finding {
    /// What is found, in a sentence on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Repeats { times } => write!(f, "the thought says the same {times} times")?,
            Kind::Circles => write!(f, "hardly anything is new in the last {} words of the thought", self.words)?,
        }
        if self.quote.is_empty() {
            return Ok(());
        }
        write!(f, ": \"{}\"", self.quote.replace(['\n', '\r'], " "))
    }
}

/// Watches one running thought.
#[derive(Debug)]
pub struct LoopGuard {
    word: Word,
    /// What the last words of the sentence were.
    sentence: [u64; 2],
    /// The words so far.
    count: u64,
    /// The bytes so far, as far as they count: the tail is shorter than a turn of it.
    bytes: u32,
    /// Each word of the last [`MEMORY`], and where it began.
    ring: Vec<Said>,
    /// Three words in a row: how often they were said, and when last.
    seen: Vec<Seen>,
    /// The distance at which the text may be repeating itself, and for how long it does.
    period: u64,
    run: u64,
    stale: Stale,
    tail: String,
    found: Option<Finding>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Said {
    hash: u32,
    /// Where it began, in bytes; only its distance to the end is asked for.
    at: u32,
    begins_sentence: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    hash: u32,
    at: u32,
    times: u16,
}

/// The word that is being read.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    hash: u64,
    letters: u32,
    kind: Letters,
    began: u32,
    /// The next word begins a sentence.
    opens: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Letters {
    #[default]
    None,
    /// Between spaces.
    Spaced,
    /// Written without spaces between the words: two at a time.
    Dense,
    /// The same sign again and again.
    Sign(char),
    Blank,
}

/// Which of the last [`WINDOW`] words were stale.
#[derive(Debug, Clone, Default)]
struct Stale {
    bits: [u64; WINDOW / 64],
    count: u32,
}

impl Default for LoopGuard {
    fn default() -> LoopGuard {
        LoopGuard {
            word: Word { opens: true, ..Word::default() },
            sentence: [0; 2],
            count: 0,
            bytes: 0,
            ring: Vec::new(),
            seen: Vec::new(),
            period: 0,
            run: 0,
            stale: Stale::default(),
            tail: String::new(),
            found: None,
        }
    }
}

impl LoopGuard {
    pub fn new() -> LoopGuard {
        LoopGuard::default()
    }

    /// What a whole thought was stuck on when it ended.
    pub fn of(text: &str) -> Option<Finding> {
        let mut guard = LoopGuard::new();
        guard.push(text);
        guard.found
    }

    /// What it is stuck on right now.
    pub fn found(&self) -> Option<&Finding> {
        self.found.as_ref()
    }

    /// Takes what the thought grew by.
    pub fn push(&mut self, text: &str) {
        for letter in text.chars() {
            let began = self.bytes;
            self.bytes = self.bytes.wrapping_add(letter.len_utf8() as u32);
            self.tail.push(letter);
            self.letter(letter, began);
            if self.tail.len() > 2 * TAIL {
                let from = (TAIL..).find(|at| self.tail.is_char_boundary(*at)).unwrap_or(TAIL);
                self.tail.drain(..from);
            }
        }
    }

    fn letter(&mut self, letter: char, began: u32) {
        let kind = kind_of(letter);
        if kind != self.word.kind {
            self.end_word();
            (self.word.kind, self.word.began) = (kind, began);
        }
        self.word.hash = mixed(self.word.hash, u64::from(u32::from(letter.to_ascii_lowercase())));
        self.word.letters += 1;
        let most = match kind {
            Letters::None => u32::MAX,
            Letters::Spaced => LONGEST_WORD,
            Letters::Dense => 2,
            Letters::Sign(_) => SIGN_RUN,
            Letters::Blank => BLANK_RUN,
        };
        if self.word.letters >= most {
            self.end_word();
            (self.word.kind, self.word.began) = (kind, self.bytes);
        }
        if matches!(letter, '.' | '!' | '?' | '\n' | '。' | '！' | '？' | '…') {
            self.sentence = [0; 2];
            self.word.opens = true;
        }
    }

    fn end_word(&mut self) {
        let Word { hash, letters, kind, began, opens } = self.word;
        let is_whole = match kind {
            Letters::None => false,
            Letters::Spaced | Letters::Dense => letters > 0,
            // A few signs or blanks are what stands between words.
            Letters::Sign(_) => letters >= SIGN_RUN,
            Letters::Blank => letters >= BLANK_RUN,
        };
        self.word = Word { opens: opens && !is_whole, ..Word::default() };
        if is_whole {
            self.heard(hash, Said { hash: hash as u32, at: began, begins_sentence: opens });
        }
    }

    fn heard(&mut self, hash: u64, said: Said) {
        if self.ring.is_empty() {
            self.ring = vec![Said::default(); MEMORY];
            self.seen = vec![Seen::default(); MEMORY];
        }
        let [before, last] = self.sentence;
        let three = mixed(mixed(mixed(1, before), last), hash);
        self.sentence = [last, hash];
        let seen = self.remember(three);
        self.follow(&said, seen);
        self.stale.push(self.count, seen.times >= OFTEN);
        if let Some(slot) = self.ring.get_mut(self.count as usize % MEMORY) {
            *slot = said;
        }
        self.count += 1;
        self.conclude();
    }

    /// What was known of these words; from now on once more.
    fn remember(&mut self, three: u64) -> Seen {
        let Some(slot) = self.seen.get_mut(three as usize % MEMORY) else { return Seen::default() };
        let hash = (three >> 32) as u32;
        // Two that share a slot: the later one is what counts.
        let known = if slot.hash == hash { *slot } else { Seen::default() };
        *slot = Seen { hash, at: self.count as u32, times: known.times.saturating_add(1) };
        known
    }

    /// Whether this word is the one that stood a period ago.
    fn follow(&mut self, said: &Said, seen: Seen) {
        if self.period > 0 && self.said_ago(self.period).is_some_and(|then| then.hash == said.hash) {
            self.run += 1;
            return;
        }
        let ago = u64::from((self.count as u32).wrapping_sub(seen.at));
        let is_known = seen.times > 0 && ago < MEMORY as u64;
        (self.period, self.run) = if is_known { (ago, 1) } else { (0, 0) };
    }

    /// The word so many before the one that is being heard.
    fn said_ago(&self, ago: u64) -> Option<&Said> {
        let at = self.count.checked_sub(ago)?;
        self.ring.get(at as usize % MEMORY)
    }

    fn conclude(&mut self) {
        let least = if self.period < SHORT_PERIOD { LEAST_SHORT_RUN } else { LEAST_RUN };
        if self.period > 0 && self.run >= least.max(2 * self.period) {
            let kind = Kind::Repeats { times: self.run / self.period + 1 };
            // Twice the piece, so that all of its first sentence is in it.
            self.find(kind, self.run + self.period, 2 * self.period);
        } else if self.stale.count >= STALE_AT {
            let words = match &self.found {
                Some(found) => found.words + 1,
                None => WINDOW as u64,
            };
            self.find(Kind::Circles, words, WINDOW as u64);
        } else if let Some(found) = &mut self.found {
            found.words += 1;
            if self.stale.count < FRESH_AT && self.run < least {
                self.found = None;
            }
        }
    }

    /// What is found again keeps its words; one that turns out to be exact says so.
    fn find(&mut self, kind: Kind, words: u64, within: u64) {
        match &mut self.found {
            Some(found) if matches!((found.kind, kind), (Kind::Repeats { .. }, Kind::Circles)) => found.words += 1,
            Some(found) if std::mem::discriminant(&found.kind) == std::mem::discriminant(&kind) => {
                (found.kind, found.words) = (kind, found.words.max(words));
            }
            Some(_) | None => {
                let quote = self.quote(within);
                self.found = Some(Finding { kind, quote, words });
            }
        }
    }

    /// The first sentence that begins within the last words, as far as it is kept.
    fn quote(&self, within: u64) -> String {
        let recent = (1..=within.min(MEMORY as u64)).rev().filter_map(|ago| self.said_ago(ago));
        let back = |said: &Said| self.bytes.wrapping_sub(said.at) as usize;
        let mut kept = recent.filter(|said| back(said) <= self.tail.len());
        let first = kept.clone().find(|said| said.begins_sentence).or_else(|| kept.next());
        let from = first.map_or(0, |said| self.tail.len() - back(said));
        let text = self.tail.get(from..).unwrap_or("");
        let end = text.find(['.', '!', '?', '\n', '。', '！', '？']).unwrap_or(text.len());
        let sentence = text.get(..end).unwrap_or(text).trim();
        let sentence = if sentence.is_empty() { text.trim() } else { sentence };
        match sentence.char_indices().nth(QUOTE) {
            Some((cut, _)) => format!("{}…", sentence.get(..cut).unwrap_or("").trim_end()),
            None => sentence.to_owned(),
        }
    }
}

impl Stale {
    fn push(&mut self, at: u64, is_stale: bool) {
        let at = at as usize % WINDOW;
        let Some(bits) = self.bits.get_mut(at / 64) else { return };
        let bit = 1 << (at % 64);
        self.count -= u32::from(*bits & bit != 0);
        self.count += u32::from(is_stale);
        *bits = if is_stale { *bits | bit } else { *bits & !bit };
    }
}

fn kind_of(letter: char) -> Letters {
    match letter {
        _ if letter.is_whitespace() => Letters::Blank,
        '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => {
            Letters::Dense
        }
        '\u{20000}'..='\u{3ffff}' => Letters::Dense,
        _ if letter.is_alphanumeric() => Letters::Spaced,
        _ => Letters::Sign(letter),
    }
}

fn mixed(hash: u64, with: u64) -> u64 {
    let mut z = (hash ^ with).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SENTENCES: [&str; 6] = [
        "Wait, let me reconsider the second condition.",
        "The function returns early when the list is empty.",
        "Hmm, but that would contradict what was measured.",
        "So the cache must be invalidated before the write.",
        "Let me look at the order of the two calls again.",
        "Actually, the lock is held the whole time.",
    ];

    /// The same few sentences, in an order that does not repeat.
    fn shuffled(n: usize) -> String {
        let mut dice: u64 = 7;
        let mut roll = || {
            dice = mixed(dice, 1);
            SENTENCES[(dice >> 33) as usize % SENTENCES.len()]
        };
        (0..n).map(|_| roll()).collect::<Vec<_>>().join(" ")
    }

    /// Words that are all new.
    fn fresh(n: usize) -> String {
        (0..n).map(|at| format!("thing{at} ")).collect()
    }

    #[test]
    fn a_thought_that_is_stuck_is_noticed() {
        let paragraph = format!("{}\n\n", fresh(300));
        #[rustfmt::skip]
        let cases = [
            ("one sentence",        "Wait, let me think. ".repeat(20),        "repeats", "Wait, let me think"),
            ("one word",            "the ".repeat(300),                       "repeats", "the the"),
            ("one sign",            "!".repeat(5000),                         "repeats", "!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!"),
            ("empty lines",         "\n".repeat(20_000),                     "repeats", ""),
            ("letters in a row",    "ab".repeat(8000),                        "repeats", "abababababababababababababababababababababababab…"),
            ("a long paragraph",    paragraph.repeat(3) + "thing0 ",          "repeats", "thing119 thing120 thing121 thing122 thing123 thi…"),
            ("in Chinese",          "等等，让我再想一想这个问题。".repeat(30),   "repeats", "等等，让我再想一想这个问题"),
            ("a refrain in it",     "No. Yes. No. Maybe, or not at all. ".repeat(20), "repeats", "No"),
            ("sentences in turn",   shuffled(150),                            "circles", "Actually, the lock is held the whole time"),
            ("after a good start",  fresh(9000) + &"Wait, let me think. ".repeat(20), "repeats", "Wait, let me think"),
        ];
        for (name, text, kind, quote) in cases {
            let found = LoopGuard::of(&text).expect(name);
            let found_kind = match found.kind {
                Kind::Repeats { .. } => "repeats",
                Kind::Circles => "circles",
            };
            assert_eq!((found_kind, found.quote.as_str()), (kind, quote), "{name}");
        }
    }

    #[test]
    fn a_thought_that_gets_somewhere_is_left_alone() {
        let zeros = "[0, 0, 0, 0, 0, 0, 0, 0]\n".repeat(10);
        let rule = "|---|---|---|---|---|---|\n".repeat(5);
        let draft = format!("{}\n\n", fresh(400));
        let counting: String = (1..400).map(|n| format!("For n = {n} the rest is {}. ", n * 37 % 91)).collect();
        #[rustfmt::skip]
        let cases: &[(&str, String)] = &[
            ("nothing",            String::new()),
            ("all new",            fresh(20_000)),
            ("a draft twice",      draft.repeat(2)),
            ("zeros of a matrix",  zeros),
            ("rules of tables",    rule),
            ("counting",           counting),
            ("a few waits",        format!("{0}Wait. {0}Wait. {0}", "Let me see. ".repeat(5))),
        ];
        for (name, text) in cases {
            assert_eq!(LoopGuard::of(text), None, "{name}");
        }
    }

    #[test]
    fn what_repeats_is_counted_from_its_beginning() {
        let found = LoopGuard::of(&(fresh(100) + "\n" + &"Wait, let me think. ".repeat(20))).expect("it repeats");
        assert_eq!(found.kind, Kind::Repeats { times: 20 });
        assert_eq!(found.words, 80);
    }

    #[test]
    fn who_finds_a_way_out_is_not_blamed_for_ever() {
        let mut guard = LoopGuard::new();
        guard.push(&"Wait, let me think. ".repeat(30));
        assert!(guard.found().is_some());
        guard.push(&fresh(100));
        assert!(guard.found().is_some(), "a hundred words are no way out yet");
        guard.push(&fresh(300));
        assert_eq!(guard.found(), None);
    }

    #[test]
    fn memory_does_not_grow_with_the_thought() {
        let mut guard = LoopGuard::new();
        guard.push(&fresh(100_000));
        assert_eq!((guard.ring.len(), guard.seen.len()), (MEMORY, MEMORY));
        assert!(guard.tail.capacity() < 8 * TAIL, "{}", guard.tail.capacity());
    }

    proptest! {
        #[test]
        fn any_chunking_finds_the_same(text in "[ab .!\n等想]{0,2000}", times in 1..8usize, size in 1..50usize) {
            let text = text.repeat(times);
            let mut guard = LoopGuard::new();
            let letters: Vec<char> = text.chars().collect();
            for chunk in letters.chunks(size) {
                guard.push(&chunk.iter().collect::<String>());
            }
            prop_assert_eq!(guard.found.clone(), LoopGuard::of(&text));
        }
    }
}
