//! Splits a command line into its commands, for permission rules.
//!
//! This is not a shell parser. It ignores quoting: anything that looks like an operator counts as one. No
//! rule allows what it does not fully understand. Both can cause needless questions, but never skip one.

/// Longer lines are not parsed. Linux runs no command line longer than half of this.
const MAX_BYTES: usize = 256 * 1024;

/// The characters that a shell treats as whitespace. Other spaces are ordinary characters.
const WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// A subject to check against the rules.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ShellCommand<'a> {
    pub(crate) text: &'a str,
    /// The commands of the line.
    pub(crate) parts: Vec<&'a str>,
    pub(crate) class: CommandClass,
}

/// How well a rule can judge a command line. Later variants are harder to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommandClass {
    /// It runs exactly the commands that it names.
    Plain,
    /// It also reads or writes files; only the whole line can be allowed.
    Redirects,
    /// What it runs is decided at run time or not understood here.
    Opaque,
}

impl ShellCommand<'_> {
    /// For a subject that is not a command line.
    pub(crate) fn plain(text: &str) -> ShellCommand<'_> {
        ShellCommand { text, parts: vec![text], class: CommandClass::Plain }
    }

    pub(crate) fn parse(text: &str) -> ShellCommand<'_> {
        let text = text.trim_matches(WHITESPACE);
        if text.len() > MAX_BYTES {
            return ShellCommand { text, parts: vec![text], class: CommandClass::Opaque };
        }
        let mut parts = Vec::new();
        let mut class = quote_class(text);
        let (mut from, mut passed) = (0, 0);
        let mut before = None;
        for (at, c) in text.char_indices() {
            let rest = text.get(at..).unwrap_or("");
            if at < passed {
                continue;
            }
            if let Some(length) = harmless_redirect_len(before, rest) {
                passed = at + length;
                before = rest.get(..length).and_then(|word| word.chars().next_back());
                continue;
            }
            class = class.max(class_at(rest));
            if matches!(c, '\n' | '\r' | ';' | '|' | '&' | '(' | ')' | '`') {
                parts.push(text.get(from..at).unwrap_or(""));
                from = at + c.len_utf8();
            }
            before = Some(c);
        }
        parts.push(text.get(from..).unwrap_or(""));
        let mut parts: Vec<&str> =
            parts.into_iter().map(|part| part.trim_matches(WHITESPACE)).filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            parts.push(text);
        }
        if parts.iter().any(|part| begins_with_syntax(part)) {
            class = CommandClass::Opaque;
        }
        ShellCommand { text, parts, class }
    }
}

/// What the first character of `rest` means for the whole line.
fn class_at(rest: &str) -> CommandClass {
    let mut characters = rest.chars();
    match (characters.next(), characters.next()) {
        (Some('(' | ')' | '`'), _) | (Some('\\'), Some('\n' | '\r')) | (Some('<'), Some('<' | '(')) => {
            CommandClass::Opaque
        }
        // A variable expands to its value; any other `$` syntax is too complex.
        (Some('$'), Some(next)) if next.is_ascii_alphabetic() || next == '_' => CommandClass::Plain,
        (Some('$'), _) => CommandClass::Opaque,
        (Some('<' | '>'), _) => CommandClass::Redirects,
        _ => CommandClass::Plain,
    }
}

/// An unclosed quote cannot be judged.
fn quote_class(text: &str) -> CommandClass {
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
    if open.is_some() || escaped { CommandClass::Opaque } else { CommandClass::Plain }
}

/// Whether a command starts with a shell keyword or a variable.
fn begins_with_syntax(part: &str) -> bool {
    const KEYWORDS: [&str; 19] = [
        "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
        "function", "coproc", "!", "[[", "time",
    ];
    let first = part.split(WHITESPACE).next().unwrap_or("");
    KEYWORDS.contains(&first) || first.starts_with(['{', '}', '$', '#'])
}

/// The length of a redirection at the start of `rest` that writes no file. Most commands of models end in
/// one.
fn harmless_redirect_len(before: Option<char>, rest: &str) -> Option<usize> {
    const HARMLESS_REDIRECTS: [&str; 5] = ["2>&1", "2>/dev/null", "1>/dev/null", ">/dev/null", "2> /dev/null"];
    if !before.is_none_or(|c| WHITESPACE.contains(&c)) {
        return None;
    }
    let word = HARMLESS_REDIRECTS.iter().find(|word| rest.starts_with(**word))?;
    let after = rest.get(word.len()..).and_then(|after| after.chars().next());
    after.is_none_or(|c| WHITESPACE.contains(&c) || matches!(c, ';' | '|' | '&')).then_some(word.len())
}

/// Equivalent spellings of a command, for deny rules: without `sudo` and similar prefixes, variable
/// assignments, the program's folder, quotes and backslashes, and the command given to a shell. This catches
/// honest mistakes; a command can still be hidden on purpose.
pub(crate) fn spellings(part: &str) -> Vec<String> {
    const PREFIXES: [&str; 26] = [
        "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "nice", "ionice", "time", "timeout", "stdbuf",
        "setsid", "xargs", "busybox", "eval", "if", "then", "else", "elif", "while", "until", "do", "!", "{", "watch",
    ];
    const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "fish"];
    const MAX_SPELLINGS: usize = 40;
    if part.len() > MAX_BYTES {
        return Vec::new();
    }
    let bare: String = part.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let mut found = Vec::new();
    let (mut rest, mut wrapped) = (bare.trim(), false);
    while found.len() < MAX_SPELLINGS && !rest.is_empty() {
        let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let program = first.rsplit_once('/').map_or(first, |(_, program)| program);
        found.push(rest.to_owned());
        found.push(format!("{program} {after}").trim_end().to_owned());
        let is_option = wrapped && (first.starts_with('-') || first.starts_with(|c: char| c.is_ascii_digit()));
        let sets = first.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
        wrapped |= PREFIXES.contains(&program) || SHELLS.contains(&program);
        if !(sets || is_option || PREFIXES.contains(&program) || SHELLS.contains(&program)) {
            break;
        }
        rest = after.trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l3_a_line_is_split_into_its_commands() {
        use CommandClass::{Opaque, Plain, Redirects};
        #[rustfmt::skip]
        let cases: [(&str, &[&str], CommandClass); 33] = [
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
        for (text, parts, class) in cases {
            let command = ShellCommand::parse(text);
            assert_eq!((command.parts.as_slice(), command.class), (parts, class), "{text}");
        }
    }

    #[test]
    fn l4_a_line_of_any_length_is_parsed_in_bounded_time() {
        for line in ["2>&1 ".repeat(10_000_000), "a;".repeat(10_000_000), "sudo ".repeat(10_000_000)] {
            assert_eq!(ShellCommand::parse(&line).class, CommandClass::Opaque);
        }
        let line = "2>&1 ".repeat(13_000);
        assert_eq!(ShellCommand::parse(&line).parts.len(), 1);
        assert!(spellings(&"sudo ".repeat(13_000)).len() < 50);
        assert!(spellings(&"sudo ".repeat(10_000_000)).is_empty());
    }

    #[test]
    fn l3_a_wrapped_command_is_still_found() {
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
