//! Detects whether a position in Markdown is inside code.

/// Tracks fenced and inline code in text that arrives in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeTracker {
    place: CodeContext,
    /// The current run of backticks or tildes.
    run: MarkRun,
    line: LineContent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum CodeContext {
    #[default]
    Prose,
    /// Between two runs of this many backticks, on one line.
    Inline(usize),
    Fence {
        mark: char,
        length: usize,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct MarkRun {
    mark: char,
    length: usize,
    /// Only spaces come before it on its line.
    leads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineContent {
    Blank,
    Written,
}

impl Default for CodeTracker {
    fn default() -> CodeTracker {
        CodeTracker { place: CodeContext::Prose, run: MarkRun::default(), line: LineContent::Blank }
    }
}

impl CodeTracker {
    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            if self.run.length > 0 && c == self.run.mark {
                self.run.length += 1;
                continue;
            }
            self.end_run();
            match c {
                '`' | '~' => self.run = MarkRun { mark: c, length: 1, leads: self.line == LineContent::Blank },
                '\n' => {
                    self.line = LineContent::Blank;
                    if let CodeContext::Inline(_) = self.place {
                        self.place = CodeContext::Prose;
                    }
                    continue;
                }
                ' ' => continue,
                _ => (),
            }
            self.line = LineContent::Written;
        }
    }

    /// Whether the next character is inside code.
    pub(super) fn inside(&mut self) -> bool {
        self.end_run();
        self.place != CodeContext::Prose
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.length == 0 {
            return;
        }
        let fence = run.leads && run.length >= 3;
        self.place = match self.place {
            CodeContext::Prose if fence => CodeContext::Fence { mark: run.mark, length: run.length },
            CodeContext::Prose if run.mark == '`' => CodeContext::Inline(run.length),
            CodeContext::Inline(length) if run.mark == '`' && run.length == length => CodeContext::Prose,
            CodeContext::Fence { mark, length } if fence && run.mark == mark && run.length >= length => {
                CodeContext::Prose
            }
            place @ (CodeContext::Prose | CodeContext::Inline(_) | CodeContext::Fence { .. }) => place,
        };
    }
}
