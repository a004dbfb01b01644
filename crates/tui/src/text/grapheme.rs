//! Splits text into grapheme clusters.

use unicode_segmentation::UnicodeSegmentation;

/// Grapheme clusters with their byte offsets. Most text is ASCII, where a character followed by
/// another one is a cluster of its own, without a table lookup.
pub fn graphemes(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let mut bytes = rest.bytes();
        let is_letter = |byte: u8| byte.is_ascii() && !byte.is_ascii_control();
        let alone = bytes.next().is_some_and(is_letter) && bytes.next().is_none_or(is_letter);
        let grapheme = if alone { rest.get(..1)? } else { rest.graphemes(true).next()? };
        let from = at;
        at += grapheme.len();
        Some((from, grapheme))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn graphemes_match_unicode_segmentation(text in "[a-c \r\n\t漢é👩\u{200d}💻🇩🇪\u{301}\u{600}ก\u{e33}]{0,30}") {
            prop_assert_eq!(graphemes(&text).collect::<Vec<_>>(), text.grapheme_indices(true).collect::<Vec<_>>());
        }
    }
}
