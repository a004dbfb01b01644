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
    /// A word of code, by what it is there.
    Token(Token, Tone),
}

/// What a piece of code is to its language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    Keyword,
    Type,
    Function,
    /// Text in quotes.
    Quoted,
    /// A number or another constant.
    Constant,
    Comment,
    /// A line of a diff.
    Added,
    Removed,
}

impl Token {
    pub const ALL: [Token; 8] = [
        Token::Keyword,
        Token::Type,
        Token::Function,
        Token::Quoted,
        Token::Constant,
        Token::Comment,
        Token::Added,
        Token::Removed,
    ];
}

/// How loud the colours of code are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tone {
    #[default]
    Full,
    /// Inside a thought, which never looks like an answer.
    Muted,
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
    /// A line that a change brings or takes away.
    Added,
    Removed,
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

/// How a row goes on from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Join {
    /// It does not: a line begins.
    #[default]
    Line,
    /// The line was broken at spaces, which are not shown.
    Space,
    /// The line was broken inside a word.
    Word,
}

/// What a row is to the text it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A heading, or a line that is bold as a whole.
    Title,
    /// Part of a line of code.
    Code(CodeAt),
}

/// Where a row stands in a block of code; its colours are found by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeAt {
    // Rows are many; a block of more lines than this counts is plain anyway.
    block: u32,
    line: u32,
    from: u32,
    pub tone: Tone,
}

impl CodeAt {
    pub fn new(block: usize, line: usize, tone: Tone) -> CodeAt {
        CodeAt { block: small(block), line: small(line), from: 0, tone }
    }

    /// Further behind in the same line.
    pub fn from(self, from: usize) -> CodeAt {
        CodeAt { from: small(from), ..self }
    }

    pub fn block(self) -> usize {
        self.block as usize
    }

    pub fn line(self) -> usize {
        self.line as usize
    }

    /// The first byte of the line that is on this row, tabs as spaces.
    pub fn first_byte(self) -> usize {
        self.from as usize
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub spans: Vec<Span>,
    pub shade: Shade,
    /// How many of the spans are margin: a marker, an indent, a bar.
    pub(crate) lead: u16,
    pub join: Join,
    pub mark: Option<Mark>,
}

impl Row {
    pub fn new(spans: Vec<Span>) -> Row {
        Row { spans, ..Row::default() }
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

    /// Says how many of its spans are margin.
    pub fn led_by(self, spans: usize) -> Row {
        Row { lead: u16::try_from(spans).unwrap_or(u16::MAX), ..self }
    }

    /// The spans of the margin.
    pub fn lead(&self) -> &[Span] {
        self.spans.get(..usize::from(self.lead)).unwrap_or(&self.spans)
    }

    /// The spans behind the margin.
    pub fn own(&self) -> &[Span] {
        self.spans.get(usize::from(self.lead)..).unwrap_or(&[])
    }
}
