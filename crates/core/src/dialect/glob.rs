//! Model patterns: `*` for any run of characters, `?` for one, case ignored.

pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().map(|c| c.to_ascii_lowercase()).collect();
    let name: Vec<char> = name.chars().map(|c| c.to_ascii_lowercase()).collect();
    // The last `*` and the position in the name where it matched. A mismatch
    // backtracks to it.
    let mut star: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while let Some(character) = name.get(n) {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || wanted == character => {
                p += 1;
                n += 1;
            }
            Some(_) | None => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    p = *at + 1;
                    n = *from;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_none_or(|rest| rest.iter().all(|c| *c == '*'))
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
