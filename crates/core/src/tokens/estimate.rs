//! Estimates tokens from the characters alone. The estimate errs high: an early
//! warning costs a summary, a late one costs the request.

use super::{TokenCount, TokenCounter};

/// The counter that needs no vocabulary.
#[derive(Debug, Clone, Copy, Default)]
pub struct EstimateCounter;

impl TokenCounter for EstimateCounter {
    fn name(&self) -> &'static str {
        "letters"
    }

    fn count(&self, text: &str) -> TokenCount {
        TokenCount::Estimated(estimate(text))
    }
}

/// An estimate of the tokens in a text. It never fails.
pub fn estimate(text: &str) -> u64 {
    let mut sixths = 0;
    let mut word = WordRun::default();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => word.push(false),
            b'0'..=b'9' => word.push(true),
            _ => sixths += std::mem::take(&mut word).sixths() + ascii_sixths(byte),
        }
    }
    // Most text is ASCII, which is quick to check.
    if !text.is_ascii() {
        sixths += text.chars().map(non_ascii_sixths).sum::<u64>();
    }
    (sixths + word.sixths()).div_ceil(6)
}

/// Sixths of a token for an ASCII character outside of words. Bytes of other
/// characters only end a word; [`non_ascii_sixths`] counts these.
fn ascii_sixths(byte: u8) -> u64 {
    match byte {
        b' ' | b'\n' | b'\r' | b'\t' => 2,
        ..0x80 => 4,
        0x80.. => 0,
    }
}

/// Characters missing from most vocabularies are encoded byte by byte.
fn non_ascii_sixths(character: char) -> u64 {
    match character {
        '\0'..='\x7f' => 0,
        '\u{80}'..='\u{7ff}' => 6,
        // Indic scripts and Thai, then East Asia.
        '\u{900}'..='\u{eff}' | '\u{3000}'..='\u{d7ff}' | '\u{ff00}'..='\u{ffef}' => 6,
        '\u{800}'..='\u{ffff}' => 15,
        '\u{10000}'.. => 18,
    }
}

/// A run of letters and digits.
#[derive(Default)]
struct WordRun {
    length: u64,
    /// How often letters and digits alternate.
    turns: u64,
    digit: bool,
}

impl WordRun {
    fn push(&mut self, digit: bool) {
        self.turns += u64::from(self.length > 0 && digit != self.digit);
        self.digit = digit;
        self.length += 1;
    }

    /// Three letters per token. Base64, hashes and ids are not in any
    /// vocabulary and cost up to one token per letter.
    fn sixths(self) -> u64 {
        let of_each = match self {
            WordRun { turns: 2.., .. } => 6,
            WordRun { length: 25.., .. } => 5,
            WordRun { .. } => 2,
        };
        self.length * of_each
    }
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn err_002_the_estimate_errs_high() {
        // With the counts of o200k_base.
        #[rustfmt::skip]
        let cases = [
            ("",                                             0),
            ("Let me look at this carefully.",               7),
            ("fn main() { println!(\"hello\"); }",            9),
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("2f1c9e0a-77b4-4d1e-9a3b-5c0d8e7f6a21",         34),
            ("ሰላም ለዓለም",                                   15),
            ("👩\u{200d}👩\u{200d}👧 🎉🚀",                     12),
        ];
        for (text, real) in cases {
            assert!(estimate(text) >= real, "{text}: {} < {real}", estimate(text));
        }
    }

    #[test]
    fn c4_the_estimate_is_not_absurd_for_prose() {
        let prose = "The user wants the tide tables, so the harbour and the day come first. ".repeat(20);
        let characters = prose.len() as u64;
        assert!((characters / 4..characters / 2).contains(&estimate(&prose)), "{}", estimate(&prose));
    }
}
