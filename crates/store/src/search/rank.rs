//! Which hit is the better one: BM25 over the hits of one search.
//!
//! SQLite has a `bm25` too. It goes through every block that has any of the
//! words, so that one common word in a query makes it slow, and it counts the
//! words that only filter. Here only the hits are looked at.

use memchr::memmem::Finder;

use super::query::Unit;

/// How fast a repeated word stops counting, and how much a long text is held
/// against itself; the usual values.
const SATURATION: f64 = 1.2;
const LENGTH_SHARE: f64 = 0.75;

/// One hit, as far as its place in the list depends on it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Weighed {
    pub(crate) row: i64,
    /// How often each unit was seen.
    pub(crate) counts: Vec<u32>,
    pub(crate) n_bytes: u64,
}

/// Counts units in many texts, fast rather than exact: of a phrase its longest
/// word, at the borders of words and of pieces of identifiers.
pub(crate) struct Counter {
    finders: Vec<Finder<'static>>,
    /// The text in lower case.
    lower: Vec<u8>,
}

impl Counter {
    pub(crate) fn of(units: &[Unit]) -> Counter {
        let finder = |unit: &Unit| {
            let longest = unit.words.iter().max_by_key(|word| word.len());
            Finder::new(longest.map_or("", String::as_str).as_bytes()).into_owned()
        };
        Counter { finders: units.iter().map(finder).collect(), lower: Vec::new() }
    }

    /// How often each unit stands in the beginning of a text.
    pub(crate) fn counts(&mut self, text: &str, most: usize) -> Vec<u32> {
        let text = text.as_bytes().get(..most).unwrap_or(text.as_bytes());
        self.lower.clear();
        self.lower.extend_from_slice(text);
        self.lower.make_ascii_lowercase();
        let count = |finder: &Finder<'static>| {
            let length = finder.needle().len();
            let found = finder.find_iter(&self.lower).filter(|at| is_alone(text, *at, length));
            u32::try_from(found.count()).unwrap_or(u32::MAX)
        };
        self.finders.iter().map(count).collect()
    }
}

/// Whether what stands here is a word, or a piece of an identifier.
fn is_alone(text: &[u8], at: usize, length: usize) -> bool {
    let byte = |at: usize| text.get(at).copied().unwrap_or(b' ');
    let (before, first, after) = (byte(at.wrapping_sub(1)), byte(at), byte(at + length));
    let begins = !before.is_ascii_alphanumeric() || first.is_ascii_uppercase() || !first.is_ascii();
    let ends = !after.is_ascii_alphanumeric() || after.is_ascii_uppercase();
    begins && ends
}

/// Best first; of equals the newest.
///
/// `n_having` says in how many of `n_blocks` blocks each unit stands.
pub(crate) fn best_first(mut hits: Vec<Weighed>, n_having: &[u64], n_blocks: u64) -> Vec<i64> {
    let weights: Vec<f64> = n_having.iter().map(|having| weight(*having, n_blocks)).collect();
    let total: u64 = hits.iter().map(|hit| hit.n_bytes).sum();
    let mean = (total as f64 / hits.len().max(1) as f64).max(1.0);
    let score = |hit: &Weighed| -> f64 {
        let drag = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * hit.n_bytes as f64 / mean);
        let one = |(count, weight): (&u32, &f64)| {
            // It is a hit, so each unit stands in it somewhere.
            let count = f64::from((*count).max(1));
            weight * count * (SATURATION + 1.0) / (count + drag)
        };
        hit.counts.iter().zip(&weights).map(one).sum()
    };
    let mut scored: Vec<(f64, i64)> = hits.drain(..).map(|hit| (score(&hit), hit.row)).collect();
    scored.sort_by(|(a, row_a), (b, row_b)| b.total_cmp(a).then(row_b.cmp(row_a)));
    scored.into_iter().map(|(_, row)| row).collect()
}

/// A word that is everywhere says little; it never says less than nothing.
fn weight(n_having: u64, n_blocks: u64) -> f64 {
    let (having, blocks) = (n_having as f64, n_blocks.max(n_having) as f64);
    (1.0 + (blocks - having + 0.5) / (having + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::super::query::units;
    use super::*;

    #[test]
    fn p4_units_are_counted_at_the_borders_of_words_and_pieces() {
        #[rustfmt::skip]
        let cases = [
            ("words",       "art",        "Art, start; ART art_x artful",     vec![3]),
            ("pieces",      "http",       "readHttp HTTP http_x xhttp",       vec![3]),
            ("two units",   "the a",      "the a a",                          vec![1, 2]),
            ("phrase",      "\"to parse\"", "parse to parse",                 vec![2]),
            ("han",         "東京都",       "東京都 京都",                         vec![2]),
        ];
        for (name, query, text, expected) in cases {
            assert_eq!(Counter::of(&units(query)).counts(text, 1000), expected, "{name}");
        }
        assert_eq!(Counter::of(&units("a")).counts("a a a é", 3), [2], "of the beginning only");
        assert_eq!(Counter::of(&units("a")).counts("é é", 1), [0], "a cut through a letter is none");
    }

    #[test]
    fn p4_rare_words_frequent_words_and_short_texts_come_first() {
        let hit = |row, counts: &[u32], n_bytes| Weighed { row, counts: counts.to_vec(), n_bytes };
        type Case<'a> = (&'a str, Vec<Weighed>, &'a [u64], &'a [i64]);
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
