//! Files that an editor has open, whose text may not be saved yet.

use std::fmt;
use std::path::Path;

use tokio_util::sync::CancellationToken;

/// The files that an editor has open.
pub trait OpenFiles: Send + Sync + fmt::Debug {
    /// The text of a file in the editor; none if the editor does not provide it. The path is absolute.
    fn text(&self, path: &Path, stop: &CancellationToken) -> Option<String>;
}

/// Whether the editor's text is what is on disk. Editors may store line endings separately from the text.
pub(crate) fn is_saved(text: &str, saved: &[u8]) -> bool {
    let lines = |bytes: &[u8]| -> Vec<u8> { bytes.iter().copied().filter(|byte| *byte != b'\r').collect() };
    let (text, saved) = (lines(text.as_bytes()), lines(saved));
    text.strip_suffix(b"\n").unwrap_or(&text) == saved.strip_suffix(b"\n").unwrap_or(&saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_line_ends_are_no_unsaved_change() {
        #[rustfmt::skip]
        let cases = [
            ("the same",           "a\nb\n", &b"a\nb\n"[..],   true),
            ("other line ends",    "a\nb\n", b"a\r\nb\r\n",   true),
            ("no last line end",   "a\nb",   b"a\nb\n",       true),
            ("nothing",            "",       b"",             true),
            ("a changed letter",   "a\nc\n", b"a\nb\n",       false),
            ("one more line",      "a\nb\n\n", b"a\nb\n",     false),
        ];
        for (name, text, saved, expected) in cases {
            assert_eq!(is_saved(text, saved), expected, "{name}");
        }
    }
}
