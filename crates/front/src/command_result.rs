//! The result of a command, to which aside adds lines at the end.

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

/// How many lines a command wrote, including those that were left out of the result.
pub fn command_lines(result: &str) -> usize {
    let output = without_status(result);
    let Some((head, rest)) = output.split_once("\n[… ") else { return output.lines().count() };
    let Some((marker, tail)) = rest.split_once(" left out …]\n") else { return output.lines().count() };
    let left_out =
        marker.split_once(" with ").and_then(|(_, lines)| lines.split(' ').next()?.parse().ok()).unwrap_or(0);
    let line_ends = |text: &str| text.matches('\n').count();
    let last = usize::from(!tail.is_empty() && !tail.ends_with('\n'));
    line_ends(head) + left_out + line_ends(tail) + last
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
        for (name, result, expected) in cases {
            assert_eq!(command_lines(result), expected, "{name}");
        }
    }
}
