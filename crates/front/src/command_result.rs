//! The result of a command, to which aside adds lines at the end.

use std::borrow::Cow;

use crate::overwritten_lines::without_overwritten;

/// The beginnings of the lines that aside adds after the output of a command.
const OUR_LINES: [&str; 9] = [
    "[exit code ",
    "[ended by ",
    "[timed out after ",
    "[not run: ",
    "[the supervisor process died",
    "[background processes were killed",
    "[still running, because",
    "[protected, and ",
    "[may be the sandbox: ",
];

/// The output of a command without the lines that aside added.
pub fn without_status(result: &str) -> &str {
    let ours = |line: &str| {
        line.starts_with('[') && line.ends_with(']') && OUR_LINES.iter().any(|begins| line.starts_with(begins))
    };
    let mut output = result;
    loop {
        let end = output.trim_end_matches('\n');
        let (before, last) = end.rsplit_once('\n').map_or(("", end), |(before, last)| (before, last));
        if !ours(last) {
            return output;
        }
        output = before;
    }
}

/// A result as a terminal would show it: without text that the command overwrote, and without blank lines at the end
/// of its output.
pub fn shown_result(result: &str) -> Cow<'_, str> {
    let result = without_overwritten(result);
    let output = without_status(&result);
    let kept = output.trim_end();
    if output == kept || !kept.is_empty() && output.strip_suffix('\n') == Some(kept) {
        return result;
    }
    let ours = result.get(output.len()..).unwrap_or_default().trim_start_matches('\n');
    let line_end = if kept.is_empty() || ours.is_empty() { "" } else { "\n" };
    Cow::Owned(format!("{kept}{line_end}{ours}"))
}

/// How many lines a command wrote, including those that were left out of the result. Blank lines at the end do not
/// count.
pub fn command_lines(result: &str) -> usize {
    let output = without_status(result);
    let written = || output.trim_end().lines().count();
    let Some((head, rest)) = output.split_once("\n[… ") else { return written() };
    let Some((marker, tail)) = rest.split_once(" left out …]\n") else { return written() };
    let tail = tail.trim_end();
    let left_out =
        marker.split_once(" with ").and_then(|(_, lines)| lines.split(' ').next()?.parse().ok()).unwrap_or(0);
    let line_ends = |text: &str| text.matches('\n').count();
    let last = usize::from(!tail.is_empty());
    line_ends(head) + left_out + line_ends(tail) + last
}

/// The size of what a call brought: the lines that a change added and removed, or the lines of the output.
pub fn result_size(n_lines: usize, changed: (usize, usize)) -> String {
    match (changed, n_lines) {
        ((0, 0), 0) => "no output".to_owned(),
        ((0, 0), 1) => "1 line".to_owned(),
        ((0, 0), lines) => format!("{lines} lines"),
        ((added, removed), _) => format!("+{added} -{removed}"),
    }
}

/// Why a command failed, with the last line that it wrote. None if aside added no line.
pub fn command_failure(result: &str) -> Option<String> {
    let output = without_status(result);
    let ours = result.get(output.len()..).unwrap_or_default().lines().filter(|line| !line.is_empty());
    let unbracketed = |line| str::strip_prefix(line, "[").and_then(|line| line.strip_suffix(']')).unwrap_or(line);
    let why = ours.map(unbracketed).collect::<Vec<_>>().join("; ");
    let last = output.lines().rev().map(str::trim).find(|line| !line.is_empty());
    (!why.is_empty()).then(|| last.map_or_else(|| why.clone(), |last| format!("{why}: {last}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t17_a_failed_command_names_its_exit_code_and_its_last_line() {
        #[rustfmt::skip]
        let cases = [
            ("with output",    "1\n2\nno such file\n[exit code 2]", Some("exit code 2: no such file")),
            ("without output", "[exit code 1]",                     Some("exit code 1")),
            ("a remark",       "a\n[background processes were killed]\n[exit code 1]",
             Some("background processes were killed; exit code 1: a")),
            ("a denial",       "denied by the user",                None),
        ];
        for (name, result, expected) in cases {
            assert_eq!(command_failure(result).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn t17_a_result_is_shown_without_blank_lines_at_its_end() {
        #[rustfmt::skip]
        let cases = [
            ("nothing to remove",  "a\n\nb\n[exit code 2]",       "a\n\nb\n[exit code 2]"),
            ("blank lines",        "a\nb\n\n\n[exit code 2]",     "a\nb\n[exit code 2]"),
            ("blank without ours", "a\n\n \n",                   "a"),
            ("only blank lines",   "\n\n[exit code 2]",          "[exit code 2]"),
            ("line ends of Windows", "a\r\n\r\n\r\n[exit code 2]", "a\n[exit code 2]"),
            ("a progress bar",     " 1%\r 2%\r\n[exit code 2]",   " 2%\n[exit code 2]"),
        ];
        for (name, result, expected) in cases {
            assert_eq!(shown_result(result), expected, "{name}");
        }
    }

    #[test]
    fn t17_lines_are_counted_as_the_command_wrote_them() {
        #[rustfmt::skip]
        let cases = [
            ("three lines",       "a\nb\nc\n[exit code 0]", 3),
            ("no output",         "[exit code 0]", 0),
            ("a remark of ours",  "a\n[background processes were killed]\n[exit code 1]", 1),
            ("brackets of its own", "[a]\n[exit code 0]", 1),
            ("left out",          "a\nb\n[… 900 bytes with 40 line ends left out …]\nc\nd\n[exit code 0]", 43),
            ("nothing of ours",   "a\nb", 2),
            ("blank lines at the end", "a\n\nb\n\n \n[exit code 0]", 3),
            ("only blank lines",  "\n\n[exit code 1]", 0),
            ("left out, then blank", "a\n[… 900 bytes with 40 line ends left out …]\nc\n\n\n", 41),
            ("a progress bar",    " 1%\r 2%\r 3%\r\nend\r\n", 2),
        ];
        for (name, result, expected) in cases {
            assert_eq!(command_lines(result), expected, "{name}");
        }
    }
}
