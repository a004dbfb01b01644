//! Whether a place in Markdown lies inside code.

/// Follows fenced and inline code through text that comes in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeWatch {
    place: Place,
    /// The run of backticks or tildes that is being read.
    run: Run,
    line: Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
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
struct Run {
    mark: char,
    length: usize,
    /// Nothing but spaces stands before it on its line.
    leads: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Blank,
    Written,
}

impl Default for CodeWatch {
    fn default() -> CodeWatch {
        CodeWatch { place: Place::Prose, run: Run::default(), line: Line::Blank }
    }
}

impl CodeWatch {
    pub(super) fn read(&mut self, text: &str) {
        for c in text.chars() {
            if self.run.length > 0 && c == self.run.mark {
                self.run.length += 1;
                continue;
            }
            self.end_run();
            match c {
                '`' | '~' => self.run = Run { mark: c, length: 1, leads: self.line == Line::Blank },
                '\n' => {
                    self.line = Line::Blank;
                    if let Place::Inline(_) = self.place {
                        self.place = Place::Prose;
                    }
                    continue;
                }
                ' ' => continue,
                _ => (),
            }
            self.line = Line::Written;
        }
    }

    /// Whether what comes next lies inside code.
    pub(super) fn inside(&mut self) -> bool {
        self.end_run();
        self.place != Place::Prose
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        if run.length == 0 {
            return;
        }
        let fence = run.leads && run.length >= 3;
        self.place = match self.place {
            Place::Prose if fence => Place::Fence { mark: run.mark, length: run.length },
            Place::Prose if run.mark == '`' => Place::Inline(run.length),
            Place::Inline(length) if run.mark == '`' && run.length == length => Place::Prose,
            Place::Fence { mark, length } if fence && run.mark == mark && run.length >= length => Place::Prose,
            place @ (Place::Prose | Place::Inline(_) | Place::Fence { .. }) => place,
        };
    }
}
