//! Text that is no Markdown: what the user said, what a tool gave back, a notice.

use aside_core::screen::neutral;

use super::hunks::Diff;
use crate::text::{Break, Face, Ink, Margin, Row, Shade, Span, wrap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// What the user said, behind a prompt.
    User,
    Output,
    /// Output with a diff in it.
    Diff,
    Notice(Ink),
}

#[derive(Debug)]
pub struct Plain {
    source: String,
    manner: Manner,
    laid: Option<(usize, Vec<Row>)>,
}

impl Plain {
    pub fn new(text: &str, manner: Manner) -> Plain {
        Plain { source: neutral(text).into_owned(), manner, laid: None }
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

    pub fn forget_rows(&mut self) {
        self.laid = None;
    }

    pub fn rows(&mut self, width: usize) -> &[Row] {
        let laid = match self.laid.take() {
            Some(laid) if laid.0 == width => laid,
            _ => (width, lay(&self.source, self.manner, width)),
        };
        &self.laid.insert(laid).1
    }
}

fn lay(source: &str, manner: Manner, width: usize) -> Vec<Row> {
    let mut out = Vec::new();
    let lines = source.trim_end_matches('\n').split('\n');
    match manner {
        Manner::User => lines.enumerate().for_each(|(index, line)| {
            let lead = if index == 0 { "❯ " } else { "  " };
            let margin = Margin {
                first: vec![Span::new(Ink::Accent, lead).faced(Face::BOLD)],
                rest: vec![Span::new(Ink::Accent, "  ")],
            };
            wrap(&[Span::new(Ink::Plain, line)], width, Break::Words, &margin, Shade::User, &mut out);
        }),
        Manner::Output => lines.for_each(|line| {
            wrap(&[Span::new(Ink::Muted, line)], width, Break::Words, &Margin::default(), Shade::None, &mut out);
        }),
        Manner::Diff => {
            let mut diff = Diff::default();
            for line in lines {
                wrap(&[Span::new(diff.ink(line), line)], width, Break::Words, &diff_margin(), Shade::None, &mut out);
            }
        }
        Manner::Notice(ink) => lines.enumerate().for_each(|(index, line)| {
            let lead = if index == 0 { notice_mark(ink) } else { "  " };
            let margin = Margin { first: vec![Span::new(ink, lead)], rest: vec![Span::new(ink, "  ")] };
            let ink = if index == 0 { ink } else { Ink::Muted };
            wrap(&[Span::new(ink, line)], width, Break::Words, &margin, Shade::None, &mut out);
        }),
    }
    out
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
        | Ink::Found => "· ",
    }
}

/// The rest of a long line must not look like a line of its own.
fn diff_margin() -> Margin {
    Margin { first: Vec::new(), rest: vec![Span::new(Ink::Muted, "  ")] }
}

/// Whether a text has a unified diff in it.
pub fn has_diff(text: &str) -> bool {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("--- ") && lines.next().is_some_and(|next| next.starts_with("+++ ")) {
            return true;
        }
    }
    false
}
