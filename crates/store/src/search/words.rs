//! Splits text into words, in the same way for stored text and for queries.
//!
//! SQLite's tokenizers handle neither identifiers nor scripts without spaces. So it
//! gets text that is split here: words in lower case, parts of identifiers in a
//! second column, and scripts without spaces as pairs of letters.

use std::ops::Range;

/// Longer words are truncated. Hashes and payloads would otherwise fill the index.
const MAX_WORD_BYTES: usize = 64;

/// The range of a word in a text, and its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WordSpan {
    pub(crate) range: Range<usize>,
    pub(crate) kind: WordKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordKind {
    /// Letters, digits and underscores.
    Spaced,
    /// Two adjacent letters of a script without spaces.
    Pair,
    /// The last letter of such a run, so that it can be found by itself.
    LastOfRun,
}

/// The words of a text, in order.
#[derive(Debug, Clone)]
pub(crate) struct WordSpans<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> WordSpans<'a> {
    pub(crate) fn of(text: &'a str) -> WordSpans<'a> {
        WordSpans { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }
}

impl Iterator for WordSpans<'_> {
    type Item = WordSpan;

    fn next(&mut self) -> Option<WordSpan> {
        // Most text is ASCII, whose letters need no table.
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if byte.is_ascii() {
                if is_ascii_letter(byte) {
                    break;
                }
                self.at += 1;
            } else {
                let letter = self.rest().chars().next()?;
                if letter.is_alphanumeric() || is_unspaced(letter) {
                    break;
                }
                self.at += letter.len_utf8();
            }
        }
        let start = self.at;
        let first = self.rest().chars().next()?;
        if is_unspaced(first) {
            let end = start + first.len_utf8();
            let next = self.text.get(end..).and_then(|rest| rest.chars().next()).filter(|next| is_unspaced(*next));
            self.at = end;
            return Some(match next {
                Some(next) => WordSpan { range: start..end + next.len_utf8(), kind: WordKind::Pair },
                None => WordSpan { range: start..end, kind: WordKind::LastOfRun },
            });
        }
        self.at = end_of_word(self.text, start);
        Some(WordSpan { range: start..self.at, kind: WordKind::Spaced })
    }
}

fn end_of_word(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii() {
            if !is_ascii_letter(*byte) {
                break;
            }
            at += 1;
            continue;
        }
        let Some(letter) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
        if !letter.is_alphanumeric() || is_unspaced(letter) {
            break;
        }
        at += letter.len_utf8();
    }
    at
}

fn is_ascii_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Scripts that are written without spaces between words.
fn is_unspaced(letter: char) -> bool {
    matches!(u32::from(letter),
        0x0E00..=0x0EFF          // Thai, Lao
        | 0x1000..=0x109F        // Burmese
        | 0x1780..=0x17FF        // Khmer
        | 0x2E80..=0x2FDF        // radicals
        | 0x3005..=0x3007
        | 0x3040..=0x30FF        // Hiragana, Katakana
        | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF        // Han
        | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF        // Hangul: spaced, but its words carry endings
        | 0xF900..=0xFAFF
        | 0xFF66..=0xFF9F
        | 0x20000..=0x3FFFF)
}

/// A word in the form of the index.
pub(crate) fn normalize(word: &str) -> String {
    let mut out = String::with_capacity(word.len().min(MAX_WORD_BYTES));
    push_normalized(word, &mut out);
    out
}

fn push_normalized(word: &str, out: &mut String) {
    let start = out.len();
    if word.is_ascii() {
        let cut = word.get(..MAX_WORD_BYTES).unwrap_or(word);
        out.push_str(cut);
        if let Some(added) = out.get_mut(start..) {
            added.make_ascii_lowercase();
        }
        return;
    }
    for letter in word.chars().flat_map(char::to_lowercase) {
        if out.len() - start + letter.len_utf8() > MAX_WORD_BYTES {
            break;
        }
        out.push(letter);
    }
}

/// The parts of an identifier: `parseHttp_2xx` is parse, http, 2xx. Empty if there
/// is only one.
pub(crate) fn pieces(word: &str) -> Vec<&str> {
    let bytes = word.as_bytes();
    // Most words are plain; find that out without walking the letters.
    let plain = bytes.iter().skip(1).all(|byte| !byte.is_ascii_uppercase() && *byte != b'_');
    if plain && bytes.first() != Some(&b'_') {
        return Vec::new();
    }
    let mut found = Vec::new();
    for piece in word.split('_').filter(|piece| !piece.is_empty()) {
        split_case(piece, &mut found);
    }
    if found.len() == 1 && found.first() == Some(&word) {
        return Vec::new();
    }
    found
}

/// `HTTPServer` is HTTP and Server, `getUser` is get and User.
fn split_case<'a>(piece: &'a str, found: &mut Vec<&'a str>) {
    let letters: Vec<(usize, char)> = piece.char_indices().collect();
    let mut start = 0;
    for (index, window) in letters.windows(2).enumerate() {
        let [(at, before), (next_at, now)] = window else { continue };
        let after = letters.get(index + 2).map(|(_, letter)| *letter);
        let begins_word = !before.is_uppercase() && now.is_uppercase();
        let ends_acronym =
            before.is_uppercase() && now.is_uppercase() && after.is_some_and(|after| after.is_lowercase());
        let cut = if begins_word || ends_acronym { *next_at } else { continue };
        debug_assert!(*at < cut);
        found.extend(piece.get(start..cut));
        start = cut;
    }
    found.extend(piece.get(start..).filter(|rest| !rest.is_empty()));
}

/// A text as it is indexed: its words, and the parts of its identifiers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexText {
    pub(crate) words: String,
    pub(crate) pieces: String,
}

impl IndexText {
    /// Uses the memory of `buffer` for the words.
    pub(crate) fn written_into(mut buffer: Vec<u8>, text: &str) -> IndexText {
        buffer.clear();
        let mut words = String::from_utf8(buffer).unwrap_or_default();
        words.reserve_exact(text.len() + text.len() / 16);
        let mut indexed = IndexText { words, pieces: String::new() };
        for WordSpan { range, kind } in WordSpans::of(text) {
            let word = text.get(range).unwrap_or("");
            push_spaced(word, &mut indexed.words);
            if kind == WordKind::Spaced {
                for piece in pieces(word) {
                    push_spaced(piece, &mut indexed.pieces);
                }
            }
        }
        indexed
    }
}

fn push_spaced(word: &str, out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
    push_normalized(word, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p4_words_identifiers_and_scripts_without_spaces() {
        #[rustfmt::skip]
        let cases = [
            ("plain",       "Hello, World!",        "hello world",                 ""),
            ("snake",       "parse_http(x)",        "parse_http x",                "parse http"),
            ("camel",       "getUserName",          "getusername",                 "get user name"),
            ("acronym",     "HTTPServer v2",        "httpserver v2",               "http server"),
            ("leading _",   "_private",             "_private",                    "private"),
            ("screaming",   "MAX_SIZE",             "max_size",                    "max size"),
            ("han",         "東京都 x",               "東京 京都 都 x",                 ""),
            ("one han",     "a 東 b",                "a 東 b",                       ""),
            ("mixed",       "第3章abc",              "第 3 章 abc",                   ""),
            ("umlaut",      "Größe ÉTÉ",            "größe été",                   ""),
            ("digits",      "3.14 0xFF",            "3 14 0xff",                   "0x ff"),
            ("nothing",     "…—!?",                 "",                            ""),
            ("thai",        "กขค",                   "กข ขค ค",                      ""),
        ];
        for (name, text, words, pieces) in cases {
            let expected = IndexText { words: words.to_owned(), pieces: pieces.to_owned() };
            assert_eq!(IndexText::written_into(b"before".to_vec(), text), expected, "{name}");
        }
    }

    #[test]
    fn a_word_without_end_is_cut() {
        let long = "a".repeat(5000);
        assert_eq!(normalize(&long).len(), MAX_WORD_BYTES);
        let accents = "é".repeat(5000);
        assert_eq!(normalize(&accents).len(), MAX_WORD_BYTES);
    }
}
