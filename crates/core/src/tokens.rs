//! How many tokens a text is, as far as that can be told without its model.

/// How many letters of plain text are counted as a token, to err high.
pub const LETTERS_A_TOKEN: u64 = 3;

/// An estimate that errs high: three letters a token, one for every letter
/// outside ASCII. It never fails, and it is never shown without a `~`.
pub fn estimate(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let others = text.chars().filter(|c| !c.is_ascii()).count() as u64;
    ascii.div_ceil(LETTERS_A_TOKEN) + others
}

#[cfg(test)]
mod tests {
    use super::estimate;

    #[test]
    fn err_002_the_estimate_errs_high() {
        // Counts of a common tokenizer for the same texts.
        #[rustfmt::skip]
        let cases = [
            ("",                                             0),
            ("Let me look at this carefully.",               7),
            ("fn main() { println!(\"hello\"); }",            10),
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("今日は良い天気ですね",                            8),
        ];
        for (text, real) in cases {
            assert!(estimate(text) >= real, "{text}: {} < {real}", estimate(text));
        }
    }
}
