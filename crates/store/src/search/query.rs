//! What a person typed, as units that can be looked up and found again in text.

use super::words::{Sort, Words, normal, pieces};

/// One thing that must occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Words that follow each other, as the index knows them.
    pub(crate) words: Vec<String>,
    /// The last one may go on: a single letter of a script without spaces is
    /// stored as the beginning of a pair.
    pub(crate) open_end: bool,
    /// The same as pieces of an identifier; empty where that makes no sense.
    pub(crate) pieces: Vec<String>,
}

/// Splits at spaces, keeps `"quoted words"` together. A quote that is never
/// closed quotes the rest.
pub(crate) fn units(text: &str) -> Vec<Unit> {
    let mut found = Vec::new();
    for (index, part) in text.split('"').enumerate() {
        if index % 2 == 1 {
            found.extend(unit(part));
        } else {
            found.extend(part.split_whitespace().filter_map(unit));
        }
    }
    found.dedup();
    found
}

fn unit(text: &str) -> Option<Unit> {
    let mut words = Vec::new();
    let mut sorts = Vec::new();
    let mut n_pieces = Vec::new();
    for word in Words::of(text) {
        let piece = text.get(word.range).unwrap_or("");
        words.push(normal(piece));
        sorts.push(word.sort);
        if word.sort == Sort::Spaced {
            n_pieces = pieces(piece).into_iter().map(normal).collect();
        }
    }
    // The text that is looked for may go on where the query stops.
    let open_end = match sorts.as_slice() {
        [.., Sort::Pair, Sort::Last] => {
            words.pop();
            false
        }
        [.., Sort::Last] => true,
        [.., Sort::Spaced | Sort::Pair] => false,
        [] => return None,
    };
    let pieces = match words.as_slice() {
        [word] if !open_end && sorts == [Sort::Spaced] => {
            if n_pieces.is_empty() {
                vec![word.clone()]
            } else {
                n_pieces
            }
        }
        _ => Vec::new(),
    };
    Some(Unit { words, open_end, pieces })
}

/// The expression for the index. Words hold nothing but letters, digits and
/// underscores, so quoting them is safe.
pub(crate) fn expression(units: &[Unit]) -> String {
    units.iter().map(unit_expression).collect::<Vec<_>>().join(" AND ")
}

/// What each word alone would find, to know which of them are common.
pub(crate) fn word_expressions(unit: &Unit) -> Vec<String> {
    match unit.words.as_slice() {
        [_] => vec![unit_expression(unit)],
        // A word with an open end is as rare as the words before it.
        words => words
            .iter()
            .take(words.len() - usize::from(unit.open_end))
            .map(|word| format!("words : \"{word}\""))
            .collect(),
    }
}

pub(crate) fn unit_expression(unit: &Unit) -> String {
    let star = if unit.open_end { " *" } else { "" };
    let words = format!("words : \"{}\"{star}", unit.words.join(" "));
    if unit.pieces.is_empty() { words } else { format!("({words} OR pieces : \"{}\")", unit.pieces.join(" ")) }
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
            ("nothing",       "!? \"\" *",           ""),
        ];
        for (name, text, expected) in cases {
            assert_eq!(expression(&units(text)), expected, "{name}");
        }
    }
}
