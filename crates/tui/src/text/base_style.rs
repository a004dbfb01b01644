//! The base style of a text, before Markdown is applied.

use super::row::{FontStyle, Row, RowBackground, Saturation, Span, TextRole};
use super::wrap::{Margin, width_of};
use aside_markdown::blocks::MarginLevel;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseStyle {
    pub role: TextRole,
    pub font: FontStyle,
    pub background: RowBackground,
    /// The widest line of prose, in columns. Code and tables may be wider.
    pub prose_width: usize,
}

impl BaseStyle {
    pub const TEXT: BaseStyle = BaseStyle {
        role: TextRole::Plain,
        font: FontStyle::PLAIN,
        background: RowBackground::None,
        prose_width: usize::MAX,
    };
    pub const THINKING: BaseStyle = BaseStyle {
        role: TextRole::Thinking,
        font: FontStyle::ITALIC,
        background: RowBackground::Thinking,
        prose_width: usize::MAX,
    };

    pub fn with_prose_width(self, prose_width: usize) -> BaseStyle {
        BaseStyle { prose_width, ..self }
    }

    pub(super) fn role_for(self, role: TextRole) -> TextRole {
        // Thinking stays in one colour, so that it never looks like an answer.
        if self.role == TextRole::Thinking { TextRole::Thinking } else { role }
    }

    pub(super) fn saturation(self) -> Saturation {
        if self.role == TextRole::Thinking { Saturation::Muted } else { Saturation::Full }
    }

    pub(super) fn code_background(self) -> RowBackground {
        if self.background == RowBackground::None { RowBackground::Code } else { self.background }
    }

    pub(super) fn quote_bar(self) -> Span {
        Span::new(self.role_for(TextRole::Quote), "▎ ")
    }

    /// A blank row between blocks: quote bars without trailing spaces, and no margin where there is
    /// no room for one.
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
        let margin_spans = margin.len();
        Row::new(margin).with_margin(margin_spans).with_background(self.background)
    }

    pub(super) fn margin(self, levels: &[MarginLevel]) -> Margin {
        let mut margin = Margin::default();
        for level in levels {
            match level {
                MarginLevel::Quote => {
                    margin.first.push(self.quote_bar());
                    margin.rest.push(self.quote_bar());
                }
                MarginLevel::Item { marker, width, .. } => {
                    let rest = Span::new(TextRole::Plain, " ".repeat(*width));
                    let marker =
                        marker.as_ref().map(|marker| Span::new(self.role_for(TextRole::Accent), marker.as_str()));
                    margin.first.push(marker.unwrap_or_else(|| rest.clone()));
                    margin.rest.push(rest);
                }
            }
        }
        margin
    }
}
