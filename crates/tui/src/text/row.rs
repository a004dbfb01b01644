//! One row of the screen before it has colours. A row says what its parts
//! are; the theme says what that looks like, so a layout outlives a theme.

use super::wrap::width_of;

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ink {
    #[default]
    Plain,
    /// Less important than what stands beside it.
    Muted,
    /// What a model thinks.
    Thought,
    Accent,
    Heading,
    Code,
    Link,
    Quote,
    Good,
    Bad,
    Warn,
    Added,
    Removed,
    /// Found by a search.
    Found,
}

/// How letters stand, on top of their ink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Face(u8);

impl Face {
    pub const PLAIN: Face = Face(0);
    pub const BOLD: Face = Face(1);
    pub const ITALIC: Face = Face(2);
    pub const UNDERLINED: Face = Face(4);
    pub const STRUCK: Face = Face(8);

    pub fn with(self, other: Face) -> Face {
        Face(self.0 | other.0)
    }

    pub fn without(self, other: Face) -> Face {
        Face(self.0 & !other.0)
    }

    pub fn has(self, other: Face) -> bool {
        self.0 & other.0 != 0
    }
}

/// What lies behind a whole row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Shade {
    #[default]
    None,
    Thought,
    User,
    Code,
    /// The chosen one of a list.
    Picked,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    pub ink: Ink,
    pub face: Face,
    pub text: String,
}

impl Span {
    pub fn new(ink: Ink, text: impl Into<String>) -> Span {
        Span { ink, face: Face::PLAIN, text: text.into() }
    }

    pub fn faced(self, face: Face) -> Span {
        Span { face: self.face.with(face), ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub spans: Vec<Span>,
    pub shade: Shade,
}

impl Row {
    pub fn new(spans: Vec<Span>) -> Row {
        Row { spans, shade: Shade::None }
    }

    pub fn shaded(self, shade: Shade) -> Row {
        Row { shade, ..self }
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width_of(&span.text)).sum()
    }

    /// The letters alone.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
