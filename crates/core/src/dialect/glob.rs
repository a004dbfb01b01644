//! Model patterns: `*` for any run of characters, `?` for one, case ignored.

/// It runs several times for each request, so it copies nothing.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    // Where the last `*` is, and the rest of the name that it has not matched yet. A mismatch backtracks to it.
    let mut star: Option<(&str, &str)> = None;
    let (mut pattern, mut name) = (pattern, name);
    while let Some((character, rest_of_name)) = first(name) {
        match first(pattern) {
            Some(('*', rest)) => {
                star = Some((rest, name));
                pattern = rest;
            }
            Some((wanted, rest)) if wanted == '?' || wanted.eq_ignore_ascii_case(&character) => {
                (pattern, name) = (rest, rest_of_name);
            }
            Some(_) | None => match &mut star {
                Some((after, from)) => {
                    let Some((_, shorter)) = first(from) else { return false };
                    *from = shorter;
                    (pattern, name) = (*after, shorter);
                }
                None => return false,
            },
        }
    }
    pattern.chars().all(|character| character == '*')
}

fn first(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    characters.next().map(|character| (character, characters.as_str()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks() {
        #[rustfmt::skip]
        let cases = [
            ("gpt-5",        "gpt-5",          true),
            ("gpt-5",        "gpt-5.1",        false),
            ("gpt-5*",       "GPT-5.1-codex",  true),
            ("*kimi*",       "moonshotai/kimi-k2", true),
            ("*-r1",         "deepseek-r1",    true),
            ("*-r1",         "deepseek-r1-x",  false),
            ("a?c",          "abc",            true),
            ("*",            "",               true),
            ("?",            "",               false),
            ("a*b*c",        "axxbyybzzc",     true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }
}
