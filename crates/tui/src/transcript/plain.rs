//! Text that is no Markdown: what the user said, what a tool gave back, a notice.

use aside_core::screen::neutral;

use super::{diff, hunks};
use crate::text::light::{CodeBlock, Job, Lights, Lit, Ticket};
use crate::text::{Body, Break, Face, Ink, Margin, Row, Shade, Span, wrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// What the user said, behind a prompt.
    User,
    Output,
    /// What is to be run, line by line.
    Script,
    /// A text with a diff in it.
    Diff,
    Notice(Ink),
}

/// How much of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    All,
    /// The first lines, and how many more there are.
    Part,
}

/// Lines of a text that is shown in part.
const PART: usize = 16;
/// And of what the user said, who knows it.
const PART_OF_USER: usize = 12;
/// And rows, if the lines are long.
const MOST_PART_ROWS: usize = 40;

#[derive(Debug)]
pub struct Plain {
    source: String,
    manner: Manner,
    lines: usize,
    laid: Option<Laid>,
    lights: Lights,
}

#[derive(Debug)]
struct Laid {
    width: usize,
    extent: Extent,
    rows: Vec<Row>,
    codes: Vec<CodeBlock>,
}

impl Plain {
    pub fn new(text: &str, manner: Manner) -> Plain {
        let source = neutral(text).into_owned();
        let lines = source.lines().count();
        Plain { source, manner, lines, laid: None, lights: Lights::default() }
    }

    /// What a tool gave back.
    pub fn output(text: &str) -> Plain {
        Plain::new(text, if hunks::has_diff(text) { Manner::Diff } else { Manner::Output })
    }

    /// What a tool wants to do.
    pub fn wish(text: &str) -> Plain {
        Plain::new(text, if hunks::has_diff(text) { Manner::Diff } else { Manner::Script })
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn is_blank(&self) -> bool {
        self.source.trim().is_empty()
    }

    pub fn manner(&self) -> Manner {
        self.manner
    }

    pub fn lines(&self) -> usize {
        self.lines
    }

    /// There is more than a part would show.
    pub fn is_long(&self) -> bool {
        // What a tool gives back may be one long line of data; what the user
        // said is to be no longer than a screen.
        let bytes_of_a_line = if self.manner == Manner::User { 240 } else { 1000 };
        self.lines > self.part() + 1 || self.source.len() > self.part() * bytes_of_a_line
    }

    fn part(&self) -> usize {
        if self.manner == Manner::User { PART_OF_USER } else { PART }
    }

    pub fn forget_rows(&mut self) {
        self.laid = None;
    }

    pub fn rows(&mut self, width: usize) -> &[Row] {
        self.body(width, Extent::All).rows
    }

    pub fn body(&mut self, width: usize, extent: Extent) -> Body<'_> {
        let laid = match self.laid.take() {
            Some(laid) if laid.width == width && laid.extent == extent => laid,
            Some(_) | None => self.lay(width, extent),
        };
        Body::new(&self.laid.insert(laid).rows, &self.lights)
    }

    fn lay(&self, width: usize, extent: Extent) -> Laid {
        let most = match extent {
            Extent::All => usize::MAX,
            Extent::Part => self.part(),
        };
        let (mut rows, codes) = lay(&self.source, self.manner, width, most);
        let cut = extent == Extent::Part && rows.len() > MOST_PART_ROWS;
        if cut {
            rows.truncate(MOST_PART_ROWS);
        }
        if extent == Extent::Part && (cut || self.lines > self.part()) {
            let more = match self.lines.saturating_sub(self.part()) {
                0 => "… more of this (click to expand)".to_owned(),
                1 => "… 1 more line (click to expand)".to_owned(),
                more => format!("… {more} more lines (click to expand)"),
            };
            let (margin, shade) = match self.manner {
                Manner::User => (Margin { first: vec![Span::new(Ink::Accent, "  ")], rest: Vec::new() }, Shade::User),
                Manner::Output | Manner::Script | Manner::Diff | Manner::Notice(_) => (Margin::default(), Shade::None),
            };
            wrap(&[Span::new(Ink::Accent, more)], width, Break::Words, &margin, shade, &mut rows);
        }
        Laid { width, extent, rows, codes }
    }

    /// Code that has no colours yet, as far as it is laid out.
    pub fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        let laid = self.laid.as_ref()?;
        let whole = (laid.codes.len(), laid.codes.last().map_or(0, |code| code.lines.len()));
        self.lights.wants(&self.source, &laid.codes, whole, next)
    }

    /// Takes an answer; false if it was not for this text.
    pub fn lit(&mut self, lit: &mut Lit) -> bool {
        self.lights.take(lit)
    }
}

fn lay(source: &str, manner: Manner, width: usize, most: usize) -> (Vec<Row>, Vec<CodeBlock>) {
    let mut out = Vec::new();
    let mut at = 0;
    let lines = source.trim_end_matches('\n').split('\n').take(most).map(|line| {
        let from = at;
        at += line.len() + 1;
        (from, line)
    });
    match manner {
        Manner::User => lines.for_each(|(at, line)| {
            let lead = if at == 0 { "❯ " } else { "  " };
            let margin = Margin {
                first: vec![Span::new(Ink::Accent, lead).faced(Face::BOLD)],
                rest: vec![Span::new(Ink::Accent, "  ")],
            };
            wrap(&[Span::new(Ink::Plain, line)], width, Break::Words, &margin, Shade::User, &mut out);
        }),
        Manner::Output => lines.for_each(|(_, line)| {
            wrap(&[Span::new(Ink::Muted, line)], width, Break::Words, &Margin::default(), Shade::None, &mut out);
        }),
        Manner::Script => lines.for_each(|(_, line)| {
            // The rest of a long line must not look like a line of its own.
            let margin = Margin { first: Vec::new(), rest: vec![Span::new(Ink::Muted, "  ")] };
            wrap(&[Span::new(Ink::Code, line)], width, Break::Words, &margin, Shade::None, &mut out);
        }),
        Manner::Diff => return diff::lay(source, lines, width),
        Manner::Notice(ink) => lines.for_each(|(at, line)| {
            let lead = if at == 0 { notice_mark(ink) } else { "  " };
            let margin = Margin { first: vec![Span::new(ink, lead)], rest: vec![Span::new(ink, "  ")] };
            let ink = if at == 0 { ink } else { Ink::Muted };
            wrap(&[Span::new(ink, line)], width, Break::Words, &margin, Shade::None, &mut out);
        }),
    }
    (out, Vec::new())
}

/// A notice is told apart without colour too.
fn notice_mark(ink: Ink) -> &'static str {
    match ink {
        Ink::Bad => "✗ ",
        Ink::Warn => "! ",
        Ink::Good => "✓ ",
        Ink::Plain
        | Ink::Muted
        | Ink::Thought
        | Ink::Accent
        | Ink::Heading
        | Ink::Code
        | Ink::Link
        | Ink::Quote
        | Ink::Added
        | Ink::Removed
        | Ink::Found
        | Ink::Token(..) => "· ",
    }
}
