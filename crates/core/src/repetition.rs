//! Detects thinking that makes no progress: the same words repeated, or the
//! same few sentences in changing order.
//!
//! Text is pushed as it arrives. A delta costs time proportional to its length,
//! and the memory does not grow with the text, so all running thinking can be
//! checked.

use std::fmt;

/// How many words are remembered. A power of two.
const MEMORY: usize = 8192;
/// The number of words over which novelty is measured.
const WINDOW: usize = 256;
/// How many of these must be stale to report a repetition.
const STALE_AT: u32 = 200;
/// Below this many stale words, the repetition is over.
const FRESH_AT: u32 = 96;
/// How often a trigram must have occurred before to be stale. Three allows for
/// drafts.
const STALE_COUNT: u32 = 3;
/// The minimum length of an exact repetition, in words.
const MIN_RUN: u64 = 60;
/// Matrices of zeros and table rules repeat too, so very short periods must
/// last longer.
const SHORT_PERIOD: u64 = 4;
const MIN_SHORT_RUN: u64 = 240;
/// The maximum length of a word, for text without spaces such as base64.
const MAX_WORD: u32 = 32;
/// Signs and blanks are not words, but this many in a row count as one.
const SIGN_RUN: u32 = 16;
const BLANK_RUN: u32 = 64;
/// How much text is kept for the quote, and the maximum length of the quote.
const TAIL: usize = 1024;
const MAX_QUOTE: usize = 48;

/// A detected repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repetition {
    /// How it repeats.
    pub kind: RepetitionKind,
    /// Text that identifies it to the user.
    pub quote: String,
    /// How many words ago it began.
    pub words: u64,
}

/// The two kinds of repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepetitionKind {
    /// The same text, word for word, this many times.
    Repeats {
        /// How often the text was written.
        times: u64,
    },
    /// Hardly any new words.
    LowNovelty,
}

impl fmt::Display for Repetition {
    /// A sentence on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            RepetitionKind::Repeats { times } => write!(f, "the thinking repeats the same text {times} times")?,
            RepetitionKind::LowNovelty => {
                write!(f, "hardly anything is new in the last {} words of the thinking", self.words)?
            }
        }
        if self.quote.is_empty() {
            return Ok(());
        }
        write!(f, ": \"{}\"", self.quote.replace(['\n', '\r'], " "))
    }
}

/// Watches one running thinking block.
#[derive(Debug)]
pub struct RepetitionGuard {
    word: CurrentWord,
    /// The last two words of the sentence.
    sentence: [u64; 2],
    /// The number of words so far.
    count: u64,
    /// The number of bytes so far. It may wrap around, since the tail is much
    /// shorter.
    bytes: u32,
    /// The last [`MEMORY`] words.
    ring: Vec<RecentWord>,
    /// How often each trigram occurred, and when last.
    trigrams: Vec<TrigramCount>,
    /// The distance at which the text seems to repeat, and for how many words
    /// it has.
    period: u64,
    run: u64,
    stale: StaleWindow,
    tail: String,
    found: Option<Repetition>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RecentWord {
    hash: u32,
    position: WordPosition,
}

/// Where a word began, in bytes, times two; odd if it begins a sentence. Only
/// the distance to the end is used, which is short.
#[derive(Debug, Clone, Copy, Default)]
struct WordPosition(u32);

impl WordPosition {
    fn new(at: u32, begins_sentence: bool) -> WordPosition {
        WordPosition(at << 1 | u32::from(begins_sentence))
    }

    fn begins_sentence(self) -> bool {
        self.0 & 1 == 1
    }

    /// How many bytes ago it began.
    fn distance(self, end: u32) -> usize {
        (end.wrapping_sub(self.0 >> 1) & (u32::MAX >> 1)) as usize
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct TrigramCount {
    hash: u32,
    /// The number of its last word, times four, plus how often it occurred, up to
    /// [`STALE_COUNT`]. Only near distances are used.
    occurrence: u32,
}

impl TrigramCount {
    fn new(hash: u32, at: u64, times: u32) -> TrigramCount {
        TrigramCount { hash, occurrence: (at as u32) << 2 | times.min(STALE_COUNT) }
    }

    fn times(self) -> u32 {
        self.occurrence & 3
    }

    /// How many words ago it occurred.
    fn distance(self, now: u64) -> u64 {
        u64::from((now as u32).wrapping_sub(self.occurrence >> 2) & (u32::MAX >> 2))
    }
}

/// The word being read.
#[derive(Debug, Clone, Copy, Default)]
struct CurrentWord {
    hash: u64,
    characters: u32,
    kind: CharClass,
    began: u32,
    /// The next word starts a sentence.
    opens: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CharClass {
    #[default]
    None,
    /// Words separated by spaces.
    Spaced,
    /// Scripts without spaces between words. Two characters count as a word.
    Dense,
    /// A run of the same sign.
    Sign(char),
    Blank,
}

/// Which of the last [`WINDOW`] words were stale.
#[derive(Debug, Clone, Default)]
struct StaleWindow {
    bits: [u64; WINDOW / 64],
    count: u32,
}

impl Default for RepetitionGuard {
    fn default() -> RepetitionGuard {
        RepetitionGuard {
            word: CurrentWord { opens: true, ..CurrentWord::default() },
            sentence: [0; 2],
            count: 0,
            bytes: 0,
            ring: Vec::new(),
            trigrams: Vec::new(),
            period: 0,
            run: 0,
            stale: StaleWindow::default(),
            tail: String::new(),
            found: None,
        }
    }
}

impl RepetitionGuard {
    /// A guard for one block of text.
    pub fn new() -> RepetitionGuard {
        RepetitionGuard::default()
    }

    /// The repetition at the end of a complete text, if any.
    pub fn of(text: &str) -> Option<Repetition> {
        let mut guard = RepetitionGuard::new();
        guard.push(text);
        guard.found
    }

    /// The current repetition, if any.
    pub fn found(&self) -> Option<&Repetition> {
        self.found.as_ref()
    }

    /// Processes the next delta.
    pub fn push(&mut self, text: &str) {
        for character in text.chars() {
            let began = self.bytes;
            self.bytes = self.bytes.wrapping_add(character.len_utf8() as u32);
            self.tail.push(character);
            self.push_char(character, began);
            if self.tail.len() > 2 * TAIL {
                let from = (TAIL..).find(|at| self.tail.is_char_boundary(*at)).unwrap_or(TAIL);
                self.tail.drain(..from);
            }
        }
    }

    fn push_char(&mut self, character: char, began: u32) {
        let kind = char_class(character);
        if kind != self.word.kind {
            self.end_word();
            (self.word.kind, self.word.began) = (kind, began);
        }
        self.word.hash = mixed(self.word.hash, u64::from(u32::from(character.to_ascii_lowercase())));
        self.word.characters += 1;
        let most = match kind {
            CharClass::None => u32::MAX,
            CharClass::Spaced => MAX_WORD,
            CharClass::Dense => 2,
            CharClass::Sign(_) => SIGN_RUN,
            CharClass::Blank => BLANK_RUN,
        };
        if self.word.characters >= most {
            self.end_word();
            (self.word.kind, self.word.began) = (kind, self.bytes);
        }
        if matches!(character, '.' | '!' | '?' | '\n' | '。' | '！' | '？' | '…') {
            self.sentence = [0; 2];
            self.word.opens = true;
        }
    }

    fn end_word(&mut self) {
        let CurrentWord { hash, characters, kind, began, opens } = self.word;
        let is_whole = match kind {
            CharClass::None => false,
            CharClass::Spaced | CharClass::Dense => characters > 0,
            // A few signs or blanks only separate words.
            CharClass::Sign(_) => characters >= SIGN_RUN,
            CharClass::Blank => characters >= BLANK_RUN,
        };
        self.word = CurrentWord { opens: opens && !is_whole, ..CurrentWord::default() };
        if is_whole {
            self.add_word(hash, RecentWord { hash: hash as u32, position: WordPosition::new(began, opens) });
        }
    }

    fn add_word(&mut self, hash: u64, word: RecentWord) {
        if self.ring.is_empty() {
            self.ring = vec![RecentWord::default(); MEMORY];
            self.trigrams = vec![TrigramCount::default(); MEMORY];
        }
        let [before, last] = self.sentence;
        let trigram_hash = mixed(mixed(mixed(1, before), last), hash);
        self.sentence = [last, hash];
        let trigram = self.count_trigram(trigram_hash);
        self.track_period(&word, trigram);
        self.stale.push(self.count, trigram.times() >= STALE_COUNT);
        if let Some(slot) = self.ring.get_mut(self.count as usize % MEMORY) {
            *slot = word;
        }
        self.count += 1;
        self.update_finding();
    }

    /// Counts a trigram. Returns its previous count.
    fn count_trigram(&mut self, trigram_hash: u64) -> TrigramCount {
        let Some(slot) = self.trigrams.get_mut(trigram_hash as usize % MEMORY) else { return TrigramCount::default() };
        let hash = (trigram_hash >> 32) as u32;
        // On a hash collision, the later trigram wins.
        let known = if slot.hash == hash { *slot } else { TrigramCount::default() };
        *slot = TrigramCount::new(hash, self.count, known.times() + 1);
        known
    }

    /// Checks whether this word equals the one a period ago.
    fn track_period(&mut self, word: &RecentWord, trigram: TrigramCount) {
        if self.period > 0 && self.word_ago(self.period).is_some_and(|then| then.hash == word.hash) {
            self.run += 1;
            return;
        }
        let ago = trigram.distance(self.count);
        let is_known = trigram.times() > 0 && ago < MEMORY as u64;
        (self.period, self.run) = if is_known { (ago, 1) } else { (0, 0) };
    }

    /// The word this many words before the current one.
    fn word_ago(&self, ago: u64) -> Option<&RecentWord> {
        let at = self.count.checked_sub(ago)?;
        self.ring.get(at as usize % MEMORY)
    }

    fn update_finding(&mut self) {
        let least = if self.period < SHORT_PERIOD { MIN_SHORT_RUN } else { MIN_RUN };
        if self.period > 0 && self.run >= least.max(2 * self.period) {
            let kind = RepetitionKind::Repeats { times: self.run / self.period + 1 };
            // Twice the period, so that it contains the full first sentence.
            self.set_finding(kind, self.run + self.period, 2 * self.period);
        } else if self.stale.count >= STALE_AT {
            let words = match &self.found {
                Some(found) => found.words + 1,
                None => WINDOW as u64,
            };
            self.set_finding(RepetitionKind::LowNovelty, words, WINDOW as u64);
        } else if let Some(found) = &mut self.found {
            found.words += 1;
            if self.stale.count < FRESH_AT && self.run < least {
                self.found = None;
            }
        }
    }

    /// Updates the finding. A known one keeps its quote, unless it turns out to
    /// be exact.
    fn set_finding(&mut self, kind: RepetitionKind, words: u64, within: u64) {
        match &mut self.found {
            Some(found)
                if matches!((found.kind, kind), (RepetitionKind::Repeats { .. }, RepetitionKind::LowNovelty)) =>
            {
                found.words += 1
            }
            Some(found) if std::mem::discriminant(&found.kind) == std::mem::discriminant(&kind) => {
                (found.kind, found.words) = (kind, found.words.max(words));
            }
            Some(_) | None => {
                let quote = self.quote(within);
                self.found = Some(Repetition { kind, quote, words });
            }
        }
    }

    /// The first sentence that starts within the last words, as far as it is
    /// kept.
    fn quote(&self, within: u64) -> String {
        let recent = (1..=within.min(MEMORY as u64)).rev().filter_map(|ago| self.word_ago(ago));
        let back = |word: &RecentWord| word.position.distance(self.bytes);
        let mut kept = recent.filter(|word| back(word) <= self.tail.len());
        let first = kept.clone().find(|word| word.position.begins_sentence()).or_else(|| kept.next());
        let from = first.map_or(0, |word| self.tail.len() - back(word));
        let text = self.tail.get(from..).unwrap_or("");
        let end = text.find(['.', '!', '?', '\n', '。', '！', '？']).unwrap_or(text.len());
        let sentence = text.get(..end).unwrap_or(text).trim();
        let sentence = if sentence.is_empty() { text.trim() } else { sentence };
        match sentence.char_indices().nth(MAX_QUOTE) {
            Some((cut, _)) => format!("{}…", sentence.get(..cut).unwrap_or("").trim_end()),
            None => sentence.to_owned(),
        }
    }
}

impl StaleWindow {
    fn push(&mut self, at: u64, is_stale: bool) {
        let at = at as usize % WINDOW;
        let Some(bits) = self.bits.get_mut(at / 64) else { return };
        let bit = 1 << (at % 64);
        self.count -= u32::from(*bits & bit != 0);
        self.count += u32::from(is_stale);
        *bits = if is_stale { *bits | bit } else { *bits & !bit };
    }
}

fn char_class(character: char) -> CharClass {
    match character {
        _ if character.is_whitespace() => CharClass::Blank,
        '\u{0e00}'..='\u{0eff}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' => {
            CharClass::Dense
        }
        '\u{20000}'..='\u{3ffff}' => CharClass::Dense,
        _ if character.is_alphanumeric() => CharClass::Spaced,
        _ => CharClass::Sign(character),
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

    /// Only new words.
    fn fresh(n: usize) -> String {
        (0..n).map(|at| format!("thing{at} ")).collect()
    }

    #[test]
    fn thinking_that_makes_no_progress_is_detected() {
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
            let found = RepetitionGuard::of(&text).expect(name);
            let found_kind = match found.kind {
                RepetitionKind::Repeats { .. } => "repeats",
                RepetitionKind::LowNovelty => "circles",
            };
            assert_eq!((found_kind, found.quote.as_str()), (kind, quote), "{name}");
        }
    }

    #[test]
    fn thinking_that_makes_progress_is_not_reported() {
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
            assert_eq!(RepetitionGuard::of(text), None, "{name}");
        }
    }

    #[test]
    fn a_repetition_is_counted_from_its_beginning() {
        let found = RepetitionGuard::of(&(fresh(100) + "\n" + &"Wait, let me think. ".repeat(20))).expect("it repeats");
        assert_eq!(found.kind, RepetitionKind::Repeats { times: 20 });
        assert_eq!(found.words, 80);
    }

    #[test]
    fn a_repetition_that_ends_is_no_longer_reported() {
        let mut guard = RepetitionGuard::new();
        guard.push(&"Wait, let me think. ".repeat(30));
        assert!(guard.found().is_some());
        guard.push(&fresh(100));
        assert!(guard.found().is_some(), "a hundred new words are not enough");
        guard.push(&fresh(300));
        assert_eq!(guard.found(), None);
    }

    #[test]
    fn memory_does_not_grow_with_the_thinking() {
        let mut guard = RepetitionGuard::new();
        guard.push(&fresh(100_000));
        assert_eq!((guard.ring.len(), guard.trigrams.len()), (MEMORY, MEMORY));
        assert!(guard.tail.capacity() < 8 * TAIL, "{}", guard.tail.capacity());
    }

    proptest! {
        #[test]
        fn any_chunking_finds_the_same(text in "[ab .!\n等想]{0,2000}", times in 1..8usize, size in 1..50usize) {
            let text = text.repeat(times);
            let mut guard = RepetitionGuard::new();
            let characters: Vec<char> = text.chars().collect();
            for chunk in characters.chunks(size) {
                guard.push(&chunk.iter().collect::<String>());
            }
            prop_assert_eq!(guard.found.clone(), RepetitionGuard::of(&text));
        }
    }
}
