//! Makes every character of a text visible.

use crate::terminal_text::is_terminal_safe;

/// The kind of text in the body. In a file, tabs and CRLF line ends are shown
/// but not marked; in a command they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Command,
    File,
}

pub(super) struct VisibleLine {
    pub(super) text: String,
    pub(super) is_marked: bool,
}

pub(super) fn visible_lines(text: &str, content: BodyKind) -> impl Iterator<Item = VisibleLine> + '_ {
    // A final line end does not start another line.
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(move |line| {
        let (shown, counted) = match (content, line.strip_suffix('\r')) {
            (BodyKind::File, Some(before)) => (line, before),
            (BodyKind::Command, _) | (BodyKind::File, None) => (line, line),
        };
        let is_suspicious = |c: char| is_invisible(c) && !(content == BodyKind::File && c == '\t');
        VisibleLine { text: visible(shown), is_marked: counted.chars().any(is_suspicious) }
    })
}

/// A text on one line, with invisible characters and line ends shown as tokens.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{0}'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => shown.push('\u{2421}'),
            c if is_invisible(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// Replaces only the characters that a terminal would interpret or that could
/// deceive the user.
pub fn escape_unsafe(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match is_terminal_safe(c) {
            true => shown.push(c),
            false => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
        shown
    })
}

/// Control and format characters, separators other than the space, and
/// everything else that is drawn as nothing or as a blank.
pub fn is_invisible(c: char) -> bool {
    match c {
        // Cc.
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        ' '..='~' => false,
        // Zs other than the space, which a shell does not treat as a space. The
        // ideographic space is wide enough to be visible in its own script.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => true,
        // Zl and Zp.
        '\u{2028}' | '\u{2029}' => true,
        // Cf.
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' => {
            true
        }
        '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Letters and marks that are drawn as nothing: fillers, joiners,
        // variation selectors, the empty braille cell.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' => true,
        _ => false,
    }
}
