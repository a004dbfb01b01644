//! Buffers output and writes it word by word and line by line.

use aside_core::terminal_text::{TerminalFilter, terminal_safe};

/// A longer run without whitespace is written anyway.
const MAX_HELD_BACK: usize = 60;

/// What the streamed text is. A change prints a new heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputSection {
    Thinking,
    Answer,
}

impl OutputSection {
    fn heading(self) -> &'static str {
        match self {
            OutputSection::Thinking => "Thinking:",
            OutputSection::Answer => "Answer:",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct LineOutput {
    out: String,
    section: Option<OutputSection>,
    /// An unfinished word, held back because a screen reader would read half a word as another one.
    word: String,
    filter: TerminalFilter,
    at: CursorAt,
}

/// Where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CursorAt {
    #[default]
    LineStart,
    InLine,
    /// After our prompt, where the user may be typing.
    Prompt,
}

impl LineOutput {
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Writes streamed text of the model.
    pub(super) fn write_section(&mut self, section: OutputSection, text: &str) {
        if self.section != Some(section) {
            // Blank text needs no heading.
            if text.trim().is_empty() {
                return;
            }
            self.end();
            self.start_line();
            self.out.push_str(section.heading());
            self.out.push('\n');
            self.section = Some(section);
            return self.stream(text.trim_start());
        }
        self.stream(text);
    }

    fn stream(&mut self, text: &str) {
        self.word.push_str(&self.filter.take(text));
        let whole = match self.word.rfind(char::is_whitespace) {
            Some(at) => at + self.word.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8),
            None if self.word.len() > MAX_HELD_BACK => self.word.len(),
            None => 0,
        };
        let rest = self.word.split_off(whole);
        let whole = std::mem::replace(&mut self.word, rest);
        self.write(&whole);
    }

    fn write(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(text);
            self.at = if text.ends_with('\n') { CursorAt::LineStart } else { CursorAt::InLine };
        }
    }

    /// Ends the current section.
    pub(super) fn end(&mut self) {
        let word = std::mem::take(&mut self.word);
        self.write(&word);
        self.filter = TerminalFilter::new();
        if self.section.take().is_some() {
            self.start_line();
        }
    }

    /// Writes a line, or several, of our own.
    pub(super) fn line(&mut self, text: &str) {
        self.end();
        self.line_in_section(text);
    }

    /// Writes a line of our own, after which the streamed text goes on. An unfinished word stays held back.
    pub(super) fn line_in_section(&mut self, text: &str) {
        self.start_line();
        self.out.push_str(terminal_safe(text).trim_end());
        self.out.push('\n');
    }

    pub(super) fn start_line(&mut self) {
        if self.at != CursorAt::LineStart {
            self.out.push('\n');
        }
        self.at = CursorAt::LineStart;
    }

    pub(super) fn prompt(&mut self, text: &str) {
        if self.at != CursorAt::Prompt {
            self.end();
            self.start_line();
            self.out.push_str(text);
            self.at = CursorAt::Prompt;
        }
    }

    /// Something else was written into the line.
    pub(super) fn mark_mid_line(&mut self) {
        self.at = CursorAt::InLine;
    }

    /// The terminal ended the line when the user pressed Enter.
    pub(super) fn mark_line_start(&mut self) {
        self.at = CursorAt::LineStart;
    }
}
