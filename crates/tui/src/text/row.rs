//! One row of the screen, without colours. A row records what its parts are, and the theme decides
//! how they look, so that a layout survives a theme change.

use super::wrap::width_of;

/// What a piece of text is; the theme maps it to a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TextRole {
    #[default]
    Plain,
    /// Less important than the text next to it.
    Muted,
    /// The model's thinking.
    Thinking,
    Accent,
    Heading,
    Code,
    Link,
    Quote,
    Success,
    Error,
    Warning,
    Added,
    Removed,
    /// A search match.
    SearchMatch,
    /// A token of code.
    Token(SyntaxToken, Saturation),
}

/// The kind of a code token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyntaxToken {
    Keyword,
    Type,
    Function,
    /// A string literal.
    Quoted,
    /// A number or another constant.
    Constant,
    Comment,
    /// A line of a diff.
    Added,
    Removed,
}

impl SyntaxToken {
    pub const ALL: [SyntaxToken; 8] = [
        SyntaxToken::Keyword,
        SyntaxToken::Type,
        SyntaxToken::Function,
        SyntaxToken::Quoted,
        SyntaxToken::Constant,
        SyntaxToken::Comment,
        SyntaxToken::Added,
        SyntaxToken::Removed,
    ];
}

/// How strong the colours of code are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Saturation {
    #[default]
    Full,
    /// Inside thinking, which must not look like an answer.
    Muted,
}

/// Bold, italic and the like, in addition to the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FontStyle(u8);

impl FontStyle {
    pub const PLAIN: FontStyle = FontStyle(0);
    pub const BOLD: FontStyle = FontStyle(1);
    pub const ITALIC: FontStyle = FontStyle(2);
    pub const UNDERLINED: FontStyle = FontStyle(4);
    pub const STRUCK: FontStyle = FontStyle(8);

    pub fn with(self, other: FontStyle) -> FontStyle {
        FontStyle(self.0 | other.0)
    }

    pub fn without(self, other: FontStyle) -> FontStyle {
        FontStyle(self.0 & !other.0)
    }

    pub fn has(self, other: FontStyle) -> bool {
        self.0 & other.0 != 0
    }
}

/// The background of a whole row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowBackground {
    #[default]
    None,
    Thinking,
    User,
    Code,
    /// The selected entry of a list.
    Selected,
    /// A line added or removed by a change.
    Added,
    Removed,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    pub role: TextRole,
    pub font: FontStyle,
    pub text: String,
}

impl Span {
    pub fn new(role: TextRole, text: impl Into<String>) -> Span {
        Span { role, font: FontStyle::PLAIN, text: text.into() }
    }

    pub fn with_font(self, font: FontStyle) -> Span {
        Span { font: self.font.with(font), ..self }
    }
}

/// How a row follows the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowStart {
    /// Begins a new line.
    #[default]
    NewLine,
    /// Wrapped at spaces, which are not shown.
    AfterSpaces,
    /// Wrapped inside a word.
    InsideWord,
}

/// The row's function in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowMark {
    /// A heading, or an entirely bold line.
    Title,
    /// Part of a line of code.
    Code(CodePosition),
}

/// The position of a row in a code block, used to find its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodePosition {
    // Rows are many, so these are small. Beyond this range a block is plain anyway.
    block: u32,
    line: u32,
    from: u32,
    pub saturation: Saturation,
}

impl CodePosition {
    pub fn new(block: usize, line: usize, saturation: Saturation) -> CodePosition {
        CodePosition { block: small(block), line: small(line), from: 0, saturation }
    }

    /// A later position in the same line.
    pub fn from(self, from: usize) -> CodePosition {
        CodePosition { from: small(from), ..self }
    }

    pub fn block(self) -> usize {
        self.block as usize
    }

    pub fn line(self) -> usize {
        self.line as usize
    }

    /// The first byte of the line on this row, with tabs expanded.
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
    pub background: RowBackground,
    /// How many leading spans are margin: a marker, an indent, a bar.
    pub(crate) margin_spans: u16,
    pub start: RowStart,
    pub mark: Option<RowMark>,
}

impl Row {
    pub fn new(spans: Vec<Span>) -> Row {
        Row { spans, ..Row::default() }
    }

    pub fn with_background(self, background: RowBackground) -> Row {
        Row { background, ..self }
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width_of(&span.text)).sum()
    }

    /// The text without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Sets how many leading spans are margin.
    pub fn with_margin(self, spans: usize) -> Row {
        Row { margin_spans: u16::try_from(spans).unwrap_or(u16::MAX), ..self }
    }

    /// The spans of the margin.
    pub fn margin(&self) -> &[Span] {
        self.spans.get(..usize::from(self.margin_spans)).unwrap_or(&self.spans)
    }

    /// The spans after the margin.
    pub fn content(&self) -> &[Span] {
        self.spans.get(usize::from(self.margin_spans)..).unwrap_or(&[])
    }
}
