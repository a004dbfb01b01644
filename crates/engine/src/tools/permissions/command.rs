//! The parts of a command line, as far as permission goes.
//!
//! This is no shell. Quotes hide nothing from it: what looks like an operator
//! is taken for one. And what it does not fully understand, no rule allows.
//! Both ask too often and never too seldom.

/// Longer lines are not taken apart. Linux runs none of more than half of it.
const MOST_BYTES: usize = 256 * 1024;

/// What a shell takes for the space between words; other spaces are letters.
const BLANK: [char; 4] = [' ', '\t', '\n', '\r'];

/// What a permission is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Command<'a> {
    pub(crate) text: &'a str,
    /// Each command of the line.
    pub(crate) parts: Vec<&'a str>,
    pub(crate) clarity: Clarity,
}

/// How much of what a line does can be told from its words. The later, the less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Clarity {
    /// Its commands are what its words say.
    Plain,
    /// It also reads or writes a file; only the whole line can be allowed.
    Redirects,
    /// What it runs is made while it runs, or is not understood here.
    Opaque,
}

impl Command<'_> {
    /// Not a command: one subject, as it is.
    pub(crate) fn plain(text: &str) -> Command<'_> {
        Command { text, parts: vec![text], clarity: Clarity::Plain }
    }

    pub(crate) fn parse(text: &str) -> Command<'_> {
        let text = text.trim_matches(BLANK);
        if text.len() > MOST_BYTES {
            return Command { text, parts: vec![text], clarity: Clarity::Opaque };
        }
        let mut parts = Vec::new();
        let mut clarity = quotes(text);
        let (mut from, mut passed) = (0, 0);
        let mut before = None;
        for (at, c) in text.char_indices() {
            let rest = text.get(at..).unwrap_or("");
            if at < passed {
                continue;
            }
            if let Some(length) = harmless(before, rest) {
                passed = at + length;
                before = rest.get(..length).and_then(|word| word.chars().next_back());
                continue;
            }
            clarity = clarity.max(clarity_of(rest));
            if matches!(c, '\n' | '\r' | ';' | '|' | '&' | '(' | ')' | '`') {
                parts.push(text.get(from..at).unwrap_or(""));
                from = at + c.len_utf8();
            }
            before = Some(c);
        }
        parts.push(text.get(from..).unwrap_or(""));
        let mut parts: Vec<&str> =
            parts.into_iter().map(|part| part.trim_matches(BLANK)).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            parts.push(text);
        }
        if parts.iter().any(|part| begins_oddly(part)) {
            clarity = Clarity::Opaque;
        }
        Command { text, parts, clarity }
    }
}

/// What the character that a rest begins with means for the whole line.
fn clarity_of(rest: &str) -> Clarity {
    let mut characters = rest.chars();
    match (characters.next(), characters.next()) {
        (Some('(' | ')' | '`'), _) | (Some('\\'), Some('\n' | '\r')) | (Some('<'), Some('<' | '(')) => Clarity::Opaque,
        // A variable is its value; everything else behind a `$` is a language.
        (Some('$'), Some(next)) if next.is_ascii_alphabetic() || next == '_' => Clarity::Plain,
        (Some('$'), _) => Clarity::Opaque,
        (Some('<' | '>'), _) => Clarity::Redirects,
        _ => Clarity::Plain,
    }
}

/// A quote that is not closed is not understood.
fn quotes(text: &str) -> Clarity {
    let (mut open, mut escaped) = (None, false);
    for c in text.chars() {
        match (open, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), _) if c == quote => open = None,
            _ => (),
        }
    }
    if open.is_some() || escaped { Clarity::Opaque } else { Clarity::Plain }
}

/// Words that are grammar and not commands, and commands that are a variable.
fn begins_oddly(part: &str) -> bool {
    const GRAMMAR: [&str; 19] = [
        "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
        "function", "coproc", "!", "[[", "time",
    ];
    let first = part.split(BLANK).next().unwrap_or("");
    GRAMMAR.contains(&first) || first.starts_with(['{', '}', '$', '#'])
}

/// The length of a redirection that writes nothing anywhere, if the rest begins
/// with one. Nearly every command of a model ends in one.
fn harmless(before: Option<char>, rest: &str) -> Option<usize> {
    const NOTHING: [&str; 5] = ["2>&1", "2>/dev/null", "1>/dev/null", ">/dev/null", "2> /dev/null"];
    if !before.is_none_or(|c| BLANK.contains(&c)) {
        return None;
    }
    let word = NOTHING.iter().find(|word| rest.starts_with(**word))?;
    let behind = rest.get(word.len()..).and_then(|behind| behind.chars().next());
    behind.is_none_or(|c| BLANK.contains(&c) || matches!(c, ';' | '|' | '&')).then_some(word.len())
}

/// Other ways to say the same command, for rules that deny: behind `sudo` and
/// its like, behind variables set for it, without the folder of its program,
/// without quotes and backslashes, and what a shell is told to run. This finds
/// honest mistakes; who wants to hide a command can.
pub(crate) fn spellings(part: &str) -> Vec<String> {
    const BEFORE: [&str; 26] = [
        "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "nice", "ionice", "time", "timeout", "stdbuf",
        "setsid", "xargs", "busybox", "eval", "if", "then", "else", "elif", "while", "until", "do", "!", "{", "watch",
    ];
    const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
    const MOST: usize = 40;
    if part.len() > MOST_BYTES {
        return Vec::new();
    }
    let bare: String = part.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let mut found = Vec::new();
    let (mut rest, mut wrapped) = (bare.trim(), false);
    while found.len() < MOST && !rest.is_empty() {
        let (first, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let program = first.rsplit_once('/').map_or(first, |(_, program)| program);
        found.push(rest.to_owned());
        found.push(format!("{program} {behind}").trim_end().to_owned());
        let is_option = wrapped && (first.starts_with('-') || first.starts_with(|c: char| c.is_ascii_digit()));
        let sets = first.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
        wrapped |= BEFORE.contains(&program) || SHELLS.contains(&program);
        if !(sets || is_option || BEFORE.contains(&program) || SHELLS.contains(&program)) {
            break;
        }
        rest = behind.trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l3_a_line_falls_into_its_commands() {
        use Clarity::{Opaque, Plain, Redirects};
        #[rustfmt::skip]
        let cases: [(&str, &[&str], Clarity); 33] = [
            ("make",                        &["make"],                    Plain),
            ("  make  ",                    &["make"],                    Plain),
            ("a && b || c; d | e & f",      &["a", "b", "c", "d", "e", "f"], Plain),
            ("a;;b;",                       &["a", "b"],                  Plain),
            ("a 2>&1 | tail -5",            &["a 2>&1", "tail -5"],       Plain),
            ("a 2>&1&b",                    &["a 2>&1", "b"],             Plain),
            ("echo 'a;b'",                  &["echo 'a", "b'"],           Plain),
            ("ls $HOME",                    &["ls $HOME"],                Plain),
            (";",                           &[";"],                       Plain),
            ("a;\u{3000}b",                 &["a", "\u{3000}b"],          Plain),
            ("a > x",                       &["a > x"],                   Redirects),
            ("a >/dev/nullx",               &["a >/dev/nullx"],           Redirects),
            ("a < x",                       &["a < x"],                   Redirects),
            ("a 2>&1>x",                    &["a 2>", "1>x"],             Redirects),
            ("a $(b)",                      &["a $", "b"],                Opaque),
            ("a `b`",                       &["a", "b"],                  Opaque),
            ("a ${b}",                      &["a ${b}"],                  Opaque),
            ("a ${b:-$(c)}",                &["a ${b:-$", "c", "}"],      Opaque),
            ("a $'\\x3b'",                  &["a $'\\x3b'"],              Opaque),
            ("a $\"b\"",                    &["a $\"b\""],                Opaque),
            ("a $((1+1))",                  &["a $", "1+1"],              Opaque),
            ("a $1",                        &["a $1"],                    Opaque),
            ("a <(b)",                      &["a <", "b"],                Opaque),
            ("a <<EOF\nb\nEOF",             &["a <<EOF", "b", "EOF"],     Opaque),
            ("a <<<b",                      &["a <<<b"],                  Opaque),
            ("(a)",                         &["a"],                       Opaque),
            ("a() { b; }; a",               &["a", "{ b", "}", "a"],      Opaque),
            ("a \\\n b",                    &["a \\", "b"],               Opaque),
            ("a 'b",                        &["a 'b"],                    Opaque),
            ("a \\",                        &["a \\"],                    Opaque),
            ("if a; then b; fi",            &["if a", "then b", "fi"],    Opaque),
            ("$a b",                        &["$a b"],                    Opaque),
            ("{ a; }",                      &["{ a", "}"],                Opaque),
        ];
        for (text, parts, clarity) in cases {
            let command = Command::parse(text);
            assert_eq!((command.parts.as_slice(), command.clarity), (parts, clarity), "{text}");
        }
    }

    #[test]
    fn l4_a_line_of_any_length_is_taken_apart_in_bounded_time() {
        for line in ["2>&1 ".repeat(10_000_000), "a;".repeat(10_000_000), "sudo ".repeat(10_000_000)] {
            assert_eq!(Command::parse(&line).clarity, Clarity::Opaque);
        }
        let line = "2>&1 ".repeat(13_000);
        assert_eq!(Command::parse(&line).parts.len(), 1);
        assert!(spellings(&"sudo ".repeat(13_000)).len() < 50);
        assert!(spellings(&"sudo ".repeat(10_000_000)).is_empty());
    }

    #[test]
    fn l3_a_command_that_is_wrapped_is_still_found() {
        for line in [
            "rm -r x",
            "sudo rm -r x",
            "sudo -n rm -r x",
            "A=1 B=2 rm -r x",
            "/bin/rm -r x",
            "'rm' -r x",
            "r\\m -r x",
            "sh -c 'rm -r x'",
            "bash -lc \"rm -r x\"",
            "env -i A=1 /usr/bin/rm -r x",
            "timeout 5 rm -r x",
            "then rm -r x",
            "xargs rm -r x",
        ] {
            assert!(spellings(line).iter().any(|spelling| spelling == "rm -r x"), "{line}: {:?}", spellings(line));
        }
        assert!(!spellings("git commit -m 'rm -r x'").iter().any(|spelling| spelling.starts_with("rm")));
    }
}
