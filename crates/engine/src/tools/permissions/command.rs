//! The parts of a command line, as far as permission goes.
//!
//! Quotes are not understood, on purpose: what looks like an operator is taken
//! for one. That asks too often and never too seldom.

/// What a permission is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command<'a> {
    pub(crate) text: &'a str,
    /// Each command of the line.
    pub(crate) parts: Vec<&'a str>,
    /// Something in it runs or writes more than its words say.
    pub(crate) is_tangled: bool,
}

impl Command<'_> {
    /// Not a command: one subject, as it is.
    pub(crate) fn plain(text: &str) -> Command<'_> {
        Command { text, parts: vec![text], is_tangled: false }
    }

    pub(crate) fn parse(text: &str) -> Command<'_> {
        let text = text.trim();
        let harmless = Harmless::find(text);
        let operator = |(at, c): (usize, char)| {
            let separates = matches!(c, '\n' | '\r' | ';' | '|' | '&' | '(' | ')' | '`');
            (separates && !harmless.holds(at)).then_some((at, c))
        };
        let mut parts = Vec::new();
        let mut from = 0;
        for (at, c) in text.char_indices().filter_map(operator) {
            parts.push(text.get(from..at).unwrap_or(""));
            from = at + c.len_utf8();
        }
        parts.push(text.get(from..).unwrap_or(""));
        let mut parts: Vec<&str> = parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            parts.push(text);
        }
        let tangles = |(at, c): (usize, char)| matches!(c, '(' | ')' | '`' | '<' | '>') && !harmless.holds(at);
        let is_tangled = text.char_indices().any(tangles) || text.contains("\\\n") || text.contains("\\\r");
        Command { text, parts, is_tangled }
    }
}

/// Redirections that write nothing anywhere. Nearly every command of a model
/// ends in one.
struct Harmless(Vec<std::ops::Range<usize>>);

impl Harmless {
    fn find(text: &str) -> Harmless {
        const NOTHING: [&str; 5] = ["2>&1", "2>/dev/null", "1>/dev/null", ">/dev/null", "2> /dev/null"];
        let mut ranges = Vec::new();
        for word in NOTHING {
            for (at, _) in text.match_indices(word) {
                let end = at + word.len();
                let before = text.get(..at).and_then(|before| before.chars().next_back());
                let behind = text.get(end..).and_then(|behind| behind.chars().next());
                let stands_alone = before.is_none_or(char::is_whitespace)
                    && behind.is_none_or(|c| c.is_whitespace() || matches!(c, ';' | '|' | '&'));
                if stands_alone {
                    ranges.push(at..end);
                }
            }
        }
        Harmless(ranges)
    }

    fn holds(&self, at: usize) -> bool {
        self.0.iter().any(|range| range.contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    #[test]
    fn l3_a_line_falls_into_its_commands() {
        #[rustfmt::skip]
        let cases: [(&str, &[&str], bool); 10] = [
            ("make",                        &["make"],                    false),
            ("  make  ",                    &["make"],                    false),
            ("a && b || c; d | e & f",      &["a", "b", "c", "d", "e", "f"], false),
            ("a;;b;",                       &["a", "b"],                  false),
            ("a 2>&1 | tail -5",            &["a 2>&1", "tail -5"],       false),
            ("a 2>&1&b",                    &["a 2>&1", "b"],             false),
            ("a > x",                       &["a > x"],                   true),
            ("a $(b)",                      &["a $", "b"],                true),
            ("echo 'a;b'",                  &["echo 'a", "b'"],           false),
            (";",                           &[";"],                       false),
        ];
        for (text, parts, is_tangled) in cases {
            let command = Command::parse(text);
            assert_eq!((command.parts.as_slice(), command.is_tangled), (parts, is_tangled), "{text}");
        }
    }
}
