//! What a text is before Markdown says anything about it.

use super::blocks::Level;
use super::row::{Face, Ink, Row, Shade, Span, Tone};
use super::wrap::{Margin, width_of};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Base {
    pub ink: Ink,
    pub face: Face,
    pub shade: Shade,
}

impl Base {
    pub const TEXT: Base = Base { ink: Ink::Plain, face: Face::PLAIN, shade: Shade::None };
    pub const THOUGHT: Base = Base { ink: Ink::Thought, face: Face::ITALIC, shade: Shade::Thought };

    pub(super) fn ink(self, ink: Ink) -> Ink {
        // A thought stays one colour, so that it never looks like an answer.
        if self.ink == Ink::Thought { Ink::Thought } else { ink }
    }

    pub(super) fn tone(self) -> Tone {
        if self.ink == Ink::Thought { Tone::Muted } else { Tone::Full }
    }

    pub(super) fn code_shade(self) -> Shade {
        if self.shade == Shade::None { Shade::Code } else { self.shade }
    }

    pub(super) fn bar(self) -> Span {
        Span::new(self.ink(Ink::Quote), "▎ ")
    }

    /// A row between blocks: the bars of quotes, without spaces behind them,
    /// and none where there is no room for a margin.
    pub(super) fn blank_row(self, mut margin: Vec<Span>, width: usize) -> Row {
        while margin.last().is_some_and(|span| span.text.trim().is_empty()) {
            margin.pop();
        }
        if let Some(last) = margin.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        if margin.iter().map(|span| width_of(&span.text)).sum::<usize>() > width / 2 {
            margin.clear();
        }
        let lead = margin.len();
        Row::new(margin).led_by(lead).shaded(self.shade)
    }

    pub(super) fn margin(self, levels: &[Level]) -> Margin {
        let mut margin = Margin::default();
        for level in levels {
            match level {
                Level::Quote => {
                    margin.first.push(self.bar());
                    margin.rest.push(self.bar());
                }
                Level::Item { marker, width } => {
                    let rest = Span::new(Ink::Plain, " ".repeat(*width));
                    let marker = marker.as_ref().map(|marker| Span::new(self.ink(Ink::Accent), marker.as_str()));
                    margin.first.push(marker.unwrap_or_else(|| rest.clone()));
                    margin.rest.push(rest);
                }
            }
        }
        margin
    }
}
