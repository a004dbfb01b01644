//! Ranks the hits of one search with BM25.
//!
//! SQLite has a `bm25` too. It reads every block that contains any of the words, so
//! one common word makes it slow, and it counts the words of filters. This one
//! looks only at the hits.

use memchr::memmem::Finder;

use super::query::QueryTerm;

/// BM25's k1 and b, with their usual values.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// What the rank of one hit depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HitStats {
    pub(crate) row: i64,
    /// How often each term occurs.
    pub(crate) counts: Vec<u32>,
    pub(crate) n_bytes: u64,
}

/// Counts terms in many texts, fast rather than exact: for a phrase only its longest
/// word, at the boundaries of words and of identifier parts.
pub(crate) struct TermCounter {
    finders: Vec<WordFinder>,
    /// The text in lower case; reused.
    lower: Vec<u8>,
}

struct WordFinder {
    finder: Finder<'static>,
    /// Longer words that begin so count too.
    is_prefix: bool,
}

impl TermCounter {
    pub(crate) fn of(terms: &[QueryTerm]) -> TermCounter {
        let finder = |term: &QueryTerm| {
            let longest = term.words.iter().enumerate().max_by_key(|(_, word)| word.len());
            let is_prefix = term.open_end && longest.is_some_and(|(at, _)| at + 1 == term.words.len());
            let longest = longest.map_or("", |(_, word)| word.as_str());
            WordFinder { finder: Finder::new(longest.as_bytes()).into_owned(), is_prefix }
        };
        TermCounter { finders: terms.iter().map(finder).collect(), lower: Vec::new() }
    }

    /// How often each term occurs in the first `most` bytes of a text.
    pub(crate) fn counts(&mut self, text: &str, most: usize) -> Vec<u32> {
        let text = text.as_bytes().get(..most).unwrap_or(text.as_bytes());
        self.lower.clear();
        self.lower.extend_from_slice(text);
        self.lower.make_ascii_lowercase();
        let count = |WordFinder { finder, is_prefix }: &WordFinder| {
            let length = finder.needle().len();
            let found = finder.find_iter(&self.lower).filter(|at| is_word(text, *at, length, *is_prefix));
            u32::try_from(found.count()).unwrap_or(u32::MAX)
        };
        self.finders.iter().map(count).collect()
    }
}

/// Whether the match is a whole word or a part of an identifier, or the beginning of one.
fn is_word(text: &[u8], at: usize, length: usize, is_prefix: bool) -> bool {
    let byte = |at: usize| text.get(at).copied().unwrap_or(b' ');
    let (before, first, after) = (byte(at.wrapping_sub(1)), byte(at), byte(at + length));
    let begins = !before.is_ascii_alphanumeric() || first.is_ascii_uppercase() || !first.is_ascii();
    let ends = !after.is_ascii_alphanumeric() || after.is_ascii_uppercase();
    begins && (is_prefix || ends)
}

/// Best first; the newest first among equals.
///
/// `n_having` is the number of blocks, out of `n_blocks`, that contain each term.
pub(crate) fn best_first(mut hits: Vec<HitStats>, n_having: &[u64], n_blocks: u64) -> Vec<i64> {
    let weights: Vec<f64> = n_having.iter().map(|having| inverse_document_frequency(*having, n_blocks)).collect();
    let total: u64 = hits.iter().map(|hit| hit.n_bytes).sum();
    let mean = (total as f64 / hits.len().max(1) as f64).max(1.0);
    let score = |hit: &HitStats| -> f64 {
        let drag = K1 * (1.0 - B + B * hit.n_bytes as f64 / mean);
        let one = |(count, weight): (&u32, &f64)| {
            // It is a hit, so each term occurs in it somewhere.
            let count = f64::from((*count).max(1));
            weight * count * (K1 + 1.0) / (count + drag)
        };
        hit.counts.iter().zip(&weights).map(one).sum()
    };
    let mut scored: Vec<(f64, i64)> = hits.drain(..).map(|hit| (score(&hit), hit.row)).collect();
    scored.sort_by(|(a, row_a), (b, row_b)| b.total_cmp(a).then(row_b.cmp(row_a)));
    scored.into_iter().map(|(_, row)| row).collect()
}

/// Inverse document frequency. The `1 +` keeps it positive for very common words.
fn inverse_document_frequency(n_having: u64, n_blocks: u64) -> f64 {
    let (having, blocks) = (n_having as f64, n_blocks.max(n_having) as f64);
    (1.0 + (blocks - having + 0.5) / (having + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::super::query::parse_query;
    use super::*;

    #[test]
    fn p4_units_are_counted_at_the_borders_of_words_and_pieces() {
        #[rustfmt::skip]
        let cases = [
            ("words",       "art",        "Art, start; ART art_x artful",     vec![3]),
            ("prefix",      "art*",       "Art, start; ART art_x artful",     vec![4]),
            ("pieces",      "http",       "readHttp HTTP http_x xhttp",       vec![3]),
            ("two terms",   "the a",      "the a a",                          vec![1, 2]),
            ("phrase",      "\"to parse\"", "parse to parse",                 vec![2]),
            ("han",         "東京都",       "東京都 京都",                         vec![2]),
        ];
        for (name, query, text, expected) in cases {
            assert_eq!(TermCounter::of(&parse_query(query)).counts(text, 1000), expected, "{name}");
        }
        assert_eq!(TermCounter::of(&parse_query("a")).counts("a a a é", 3), [2], "of the beginning only");
        assert_eq!(TermCounter::of(&parse_query("a")).counts("é é", 1), [0], "a cut through a letter is none");
    }

    #[test]
    fn p4_rare_words_frequent_words_and_short_texts_come_first() {
        let hit = |row, counts: &[u32], n_bytes| HitStats { row, counts: counts.to_vec(), n_bytes };
        type Case<'a> = (&'a str, Vec<HitStats>, &'a [u64], &'a [i64]);
        #[rustfmt::skip]
        let cases: &[Case<'_>] = &[
            ("more often",      vec![hit(1, &[1], 100), hit(2, &[5], 100)],             &[10],     &[2, 1]),
            ("shorter",         vec![hit(1, &[2], 5000), hit(2, &[2], 100)],            &[10],     &[2, 1]),
            ("the rarer word",  vec![hit(1, &[4, 1], 100), hit(2, &[1, 4], 100)],       &[9000, 3], &[2, 1]),
            ("newest of equals", vec![hit(1, &[1], 100), hit(2, &[1], 100)],            &[10],     &[2, 1]),
            ("never seen",      vec![hit(1, &[0], 100), hit(2, &[1], 100)],             &[10],     &[2, 1]),
        ];
        for (name, hits, n_having, expected) in cases {
            assert_eq!(best_first(hits.clone(), n_having, 10_000), *expected, "{name}");
        }
    }
}
