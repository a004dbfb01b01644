//! Text on its way out, word by word and line by line.

use aside_core::screen::{Neutral, neutral};

/// Longer than this nothing is held back, blank or not.
const LONGEST_WORD: usize = 60;

/// Who is being heard; a change of it is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Thinking,
    Answer,
}

impl Voice {
    fn announced(self) -> &'static str {
        match self {
            Voice::Thinking => "Thinking:",
            Voice::Answer => "Answer:",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Speech {
    out: String,
    voice: Option<Voice>,
    /// A word that may still grow: half a word is read out as another one.
    word: String,
    neutral: Neutral,
    at: At,
}

/// Where the cursor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum At {
    #[default]
    LineStart,
    InLine,
    /// Behind our prompt, where somebody may be typing.
    Prompt,
}

impl Speech {
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Streamed text of a model.
    pub(super) fn say(&mut self, voice: Voice, text: &str) {
        if self.voice != Some(voice) {
            // Blank text has no voice.
            if text.trim().is_empty() {
                return;
            }
            self.end();
            self.start_line();
            self.out.push_str(voice.announced());
            self.out.push('\n');
            self.voice = Some(voice);
            return self.stream(text.trim_start());
        }
        self.stream(text);
    }

    fn stream(&mut self, text: &str) {
        self.word.push_str(&self.neutral.take(text));
        let whole = match self.word.rfind(char::is_whitespace) {
            Some(at) => at + self.word.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8),
            None if self.word.len() > LONGEST_WORD => self.word.len(),
            None => 0,
        };
        let rest = self.word.split_off(whole);
        let whole = std::mem::replace(&mut self.word, rest);
        self.write(&whole);
    }

    fn write(&mut self, text: &str) {
        if !text.is_empty() {
            self.out.push_str(text);
            self.at = if text.ends_with('\n') { At::LineStart } else { At::InLine };
        }
    }

    /// The one who spoke is done.
    pub(super) fn end(&mut self) {
        let word = std::mem::take(&mut self.word);
        self.write(&word);
        self.neutral = Neutral::new();
        if self.voice.take().is_some() {
            self.start_line();
        }
    }

    /// A line of ours, or a few.
    pub(super) fn line(&mut self, text: &str) {
        self.end();
        self.start_line();
        self.out.push_str(neutral(text).trim_end());
        self.out.push('\n');
    }

    pub(super) fn start_line(&mut self) {
        if self.at != At::LineStart {
            self.out.push('\n');
        }
        self.at = At::LineStart;
    }

    pub(super) fn prompt(&mut self, text: &str) {
        if self.at != At::Prompt {
            self.end();
            self.start_line();
            self.out.push_str(text);
            self.at = At::Prompt;
        }
    }

    /// Somebody else wrote something into the line.
    pub(super) fn disturbed(&mut self) {
        self.at = At::InLine;
    }

    /// The terminal ended the line, since somebody pressed Enter.
    pub(super) fn entered(&mut self) {
        self.at = At::LineStart;
    }
}
