//! Parses a query into terms for the index.

use super::words::{WordKind, WordSpans, normalize, pieces};

/// One term, which must occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryTerm {
    /// Consecutive words, in the form of the index.
    pub(crate) words: Vec<String>,
    /// The last word is a prefix: a `*` follows it, or it is a single letter of a script
    /// without spaces, which is indexed as the beginning of a pair.
    pub(crate) open_end: bool,
    /// The same term as parts of an identifier, the last one a prefix if the last word is;
    /// empty if it cannot be one.
    pub(crate) pieces: Vec<String>,
}

/// The shortest prefix that `*` may follow, in characters. Shorter ones would match a large part of the index.
const MIN_PREFIX: usize = 2;

/// Splits at spaces, keeps `"quoted words"` together. An unclosed quote extends to
/// the end.
pub(crate) fn parse_query(text: &str) -> Vec<QueryTerm> {
    let mut found = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        if index % 2 == 1 {
            found.extend(term(part));
        } else {
            found.extend(part.split_whitespace().filter_map(term));
        }
    }
    found.dedup();
    found
}

/// Whether a `*` after this word finds longer words too. In scripts without spaces, every part of a word is found anyway.
pub fn takes_star(word: &str) -> bool {
    word.chars().count() >= MIN_PREFIX && WordSpans::of(word).last().is_some_and(|last| last.kind == WordKind::Spaced)
}

fn term(text: &str) -> Option<QueryTerm> {
    let mut words = Vec::new();
    let mut kinds = Vec::new();
    let mut n_pieces = Vec::new();
    for word in WordSpans::of(text) {
        let piece = text.get(word.range).unwrap_or("");
        words.push(normalize(piece));
        kinds.push(word.kind);
        if word.kind == WordKind::Spaced {
            n_pieces = pieces(piece).into_iter().map(normalize).collect();
        }
    }
    let is_prefix = |word: &String| text.trim_end().ends_with('*') && word.chars().count() >= MIN_PREFIX;
    // The text may continue where the query ends.
    let open_end = match kinds.as_slice() {
        [.., WordKind::Pair, WordKind::LastOfRun] => {
            words.pop();
            false
        }
        [.., WordKind::LastOfRun] => true,
        [.., WordKind::Spaced] => words.last().is_some_and(is_prefix),
        [.., WordKind::Pair] => false,
        [] => return None,
    };
    let pieces = match words.as_slice() {
        [word] if kinds == [WordKind::Spaced] => {
            if n_pieces.is_empty() {
                vec![word.clone()]
            } else {
                n_pieces
            }
        }
        _ => Vec::new(),
    };
    Some(QueryTerm { words, open_end, pieces })
}

/// The expression for the index. Words consist of letters, digits and underscores,
/// so quoting them is safe.
pub(crate) fn expression(terms: &[QueryTerm]) -> String {
    terms.iter().map(term_expression).collect::<Vec<_>>().join(" AND ")
}

/// One expression for each word, to find out how common it is.
pub(crate) fn word_expressions(term: &QueryTerm) -> Vec<String> {
    match term.words.as_slice() {
        [_] => vec![term_expression(term)],
        // A prefix is at most as common as the words before it.
        words => words
            .iter()
            .take(words.len() - usize::from(term.open_end))
            .map(|word| format!("words : \"{word}\""))
            .collect(),
    }
}

pub(crate) fn term_expression(term: &QueryTerm) -> String {
    let star = if term.open_end { " *" } else { "" };
    let words = format!("words : \"{}\"{star}", term.words.join(" "));
    if term.pieces.is_empty() { words } else { format!("({words} OR pieces : \"{}\"{star})", term.pieces.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p4_any_query_is_a_valid_expression() {
        #[rustfmt::skip]
        let cases = [
            ("one word",      "Build",               r#"(words : "build" OR pieces : "build")"#),
            ("two words",     "fix  build",          r#"(words : "fix" OR pieces : "fix") AND (words : "build" OR pieces : "build")"#),
            ("quoted",        r#""fix the build""#,  r#"words : "fix the build""#),
            ("never closed",  r#"a "b c"#,           r#"(words : "a" OR pieces : "a") AND words : "b c""#),
            ("identifier",    "parse_http",          r#"(words : "parse_http" OR pieces : "parse http")"#),
            ("camel",         "parseHttp",           r#"(words : "parsehttp" OR pieces : "parse http")"#),
            ("path",          "src/main.rs",         r#"words : "src main rs""#),
            ("operators",     "NOT (a* OR -b) ^c:d", r#"(words : "not" OR pieces : "not") AND (words : "a" OR pieces : "a") AND (words : "or" OR pieces : "or") AND (words : "b" OR pieces : "b") AND words : "c d""#),
            ("han",           "東京都",                r#"words : "東京 京都""#),
            ("one han",       "東",                   r#"words : "東" *"#),
            ("han and latin", "東京2020",              r#"words : "東京 京 2020""#),
            ("prefix",        "Pars*",               r#"(words : "pars" * OR pieces : "pars" *)"#),
            ("camel prefix",  "parseHt*",            r#"(words : "parseht" * OR pieces : "parse ht" *)"#),
            ("phrase prefix", r#""fix the bui*""#,   r#"words : "fix the bui" *"#),
            ("path prefix",   "src/ma*",             r#"words : "src ma" *"#),
            ("star within",   "a*b *cd",             r#"words : "a b" AND (words : "cd" OR pieces : "cd")"#),
            ("short prefix",  "a*",                  r#"(words : "a" OR pieces : "a")"#),
            ("nothing",       "!? \"\" *",           ""),
        ];
        for (name, text, expected) in cases {
            assert_eq!(expression(&parse_query(text)), expected, "{name}");
        }
    }
}
