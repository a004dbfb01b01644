//! Tokens told from the letters alone. It errs high: an early warning costs a
//! summary, a late one costs the request.

use super::{Count, Counter};

/// The counter that is always there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Letters;

impl Counter for Letters {
    fn name(&self) -> &'static str {
        "letters"
    }

    fn count(&self, text: &str) -> Count {
        Count::Estimated(estimate(text))
    }
}

/// About how many tokens a text is. It never fails.
pub fn estimate(text: &str) -> u64 {
    let mut sixths = 0;
    let mut word = Word::default();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => word.push(false),
            b'0'..=b'9' => word.push(true),
            _ => sixths += std::mem::take(&mut word).sixths() + of_ascii(byte),
        }
    }
    // A text of ASCII letters alone is common, and quickly known.
    if !text.is_ascii() {
        sixths += text.chars().map(of_other).sum::<u64>();
    }
    (sixths + word.sixths()).div_ceil(6)
}

/// Sixths of a token for an ASCII letter that is in no word. The bytes of
/// other letters only end a word; [`of_other`] weighs the letters.
fn of_ascii(byte: u8) -> u64 {
    match byte {
        b' ' | b'\n' | b'\r' | b'\t' => 2,
        ..0x80 => 4,
        0x80.. => 0,
    }
}

/// Scripts that few vocabularies know are spelled byte by byte.
fn of_other(letter: char) -> u64 {
    match letter {
        '\0'..='\x7f' => 0,
        '\u{80}'..='\u{7ff}' => 6,
        // Indic scripts and Thai, then East Asia.
        '\u{900}'..='\u{eff}' | '\u{3000}'..='\u{d7ff}' | '\u{ff00}'..='\u{ffef}' => 6,
        '\u{800}'..='\u{ffff}' => 15,
        '\u{10000}'.. => 18,
    }
}

/// Letters and digits with nothing between them.
#[derive(Default)]
struct Word {
    length: u64,
    /// How often digits follow letters or letters digits.
    turns: u64,
    digit: bool,
}

impl Word {
    fn push(&mut self, digit: bool) {
        self.turns += u64::from(self.length > 0 && digit != self.digit);
        self.digit = digit;
        self.length += 1;
    }

    /// Three letters a token; what is no word (base64, a hash, an id) is in no
    /// vocabulary and costs up to a token a letter.
    fn sixths(self) -> u64 {
        let of_each = match self {
            Word { turns: 2.., .. } => 6,
            Word { length: 25.., .. } => 5,
            Word { .. } => 2,
        };
        self.length * of_each
    }
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn err_002_the_estimate_errs_high() {
        // What o200k_base counts.
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
        let letters = prose.len() as u64;
        assert!((letters / 4..letters / 2).contains(&estimate(&prose)), "{}", estimate(&prose));
    }
}
