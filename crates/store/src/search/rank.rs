//! Which hit is the better one: BM25 over the hits of one search.
//!
//! SQLite has a `bm25` too. It goes through every block that has any of the
//! words, so that one common word in a query makes it slow, and it counts the
//! words that only filter. Here only the hits are looked at.

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
    use super::*;

    #[test]
    fn p4_rare_words_frequent_words_and_short_texts_come_first() {
        let hit = |row, counts: &[u32], n_bytes| Weighed { row, counts: counts.to_vec(), n_bytes };
        #[rustfmt::skip]
        let cases: &[(&str, Vec<Weighed>, &[u64], &[i64])] = &[
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
