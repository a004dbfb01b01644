//! Renders one Markdown block as rows: a paragraph, a heading or a table cell. Line ends are kept:
//! models write for a chat, and thinking written in lines reads better in lines.

use aside_markdown::tree::{link_definitions, options};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};

use super::base_style::BaseStyle;
use super::code::{code_head, code_line};
use super::row::{FontStyle, Row, RowMark, Span, TextRole};
use super::table::Table;
use super::wrap::{Break, Margin, wrap};

/// Renders a block after a margin whose first part is used once.
pub(super) fn render(source: &str, base: BaseStyle, width: usize, margin: Margin, out: &mut Vec<Row>) {
    let parser = Parser::new_ext(source, options());
    let definitions = link_definitions(&parser, source);
    let began = out.len();
    let mut writer = MarkdownWriter::new(base, width, margin, out);
    for event in parser {
        writer.take(event);
    }
    for definition in definitions {
        writer.begin_block();
        for line in definition.lines() {
            writer.push(line);
            writer.end_line();
        }
    }
    // A marker must not disappear with the text after it.
    if writer.out.len() == began && !writer.outer.first.is_empty() {
        writer.end_line();
    }
}

/// The cells of one table line, one per column of the line, so that none is lost.
pub(super) fn cells(row: &str, base: BaseStyle) -> Vec<Vec<Span>> {
    let columns = row.matches('|').count() + 1;
    let source = format!("{}|\n{}|\n{row}\n", "|x".repeat(columns), "|-".repeat(columns));
    let mut rows = Vec::new();
    let mut writer = MarkdownWriter::new(base, usize::MAX, Margin::default(), &mut rows);
    let mut found = Vec::new();
    for event in Parser::new_ext(&source, options()) {
        let is_end = matches!(event, Event::End(TagEnd::TableRow));
        writer.take(event);
        if is_end {
            found = writer.table.as_mut().map(Table::last_row).unwrap_or_default();
        }
    }
    while found.len() > 1 && found.last().is_some_and(Vec::is_empty) {
        found.pop();
    }
    if found.iter().all(Vec::is_empty) && !row.replace('|', "").trim().is_empty() {
        // The parser sees no table row, so the line is shown unchanged.
        found = vec![vec![Span { role: base.role, font: base.font, text: row.to_owned() }]];
    }
    found
}

/// One nesting level of quotes and lists.
struct NestingLevel {
    /// Written once, then replaced by `rest`.
    marker: Option<Span>,
    rest: Span,
    kind: LevelKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LevelKind {
    Quote,
    Item,
}

struct MarkdownWriter<'a> {
    base: BaseStyle,
    width: usize,
    /// The margin around the block.
    outer: Margin,
    out: &'a mut Vec<Row>,
    began: usize,
    line: Vec<Span>,
    levels: Vec<NestingLevel>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    fonts: Vec<FontStyle>,
    heading: bool,
    links: Vec<(String, usize)>,
    code: Option<OpenCode>,
    table: Option<Table>,
    /// Whether anything was written since the innermost item or quote began.
    written: bool,
}

struct OpenCode {
    info: String,
    text: String,
}

impl<'a> MarkdownWriter<'a> {
    fn new(base: BaseStyle, width: usize, outer: Margin, out: &'a mut Vec<Row>) -> MarkdownWriter<'a> {
        let began = out.len();
        MarkdownWriter {
            base,
            width,
            outer,
            out,
            began,
            line: Vec::new(),
            levels: Vec::new(),
            lists: Vec::new(),
            fonts: Vec::new(),
            heading: false,
            links: Vec::new(),
            code: None,
            table: None,
            written: false,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.span(TextRole::Code, FontStyle::PLAIN, &text),
            Event::InlineHtml(text) | Event::Html(text) => self.lines(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.push(&text),
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.begin_block();
                self.span(TextRole::Muted, FontStyle::PLAIN, &"─".repeat(self.width.min(40)));
                self.end_line();
            }
            Event::TaskListMarker(done) => {
                self.span(TextRole::Accent, FontStyle::PLAIN, if done { "[x] " } else { "[ ] " })
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.heading = true;
                if matches!(level, HeadingLevel::H1 | HeadingLevel::H2) {
                    self.fonts.push(FontStyle::UNDERLINED);
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.written = false;
                self.levels.push(NestingLevel { marker: None, rest: self.base.quote_bar(), kind: LevelKind::Quote });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let info = match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(info) => info.to_string(),
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(OpenCode { info, text: String::new() });
            }
            Tag::List(first) => {
                // A nested list follows its item without a blank row.
                self.end_line_if_any();
                if self.lists.is_empty() {
                    self.begin_block();
                }
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_row();
                }
            }
            Tag::Emphasis => self.fonts.push(FontStyle::ITALIC),
            Tag::Strong => self.fonts.push(FontStyle::BOLD),
            Tag::Strikethrough => self.fonts.push(FontStyle::STRUCK),
            Tag::Link { dest_url, title, .. } => self.links.push((address(&dest_url, &title), self.line.len())),
            Tag::Image { dest_url, title, .. } => {
                self.span(TextRole::Muted, FontStyle::PLAIN, "image ");
                self.links.push((address(&dest_url, &title), self.line.len()));
            }
            Tag::TableCell
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => (),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_line_if_any(),
            TagEnd::Heading(level) => {
                self.end_line_if_any();
                self.heading = false;
                if matches!(level, HeadingLevel::H1 | HeadingLevel::H2) {
                    self.fonts.pop();
                }
            }
            TagEnd::BlockQuote(_) => {
                self.end_line_if_any();
                self.levels.pop();
                self.written = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
                self.written = true;
            }
            TagEnd::Item => {
                // An item without text still shows its marker.
                if !self.line.is_empty() || self.levels.last().is_some_and(|level| level.marker.is_some()) {
                    self.end_line();
                }
                self.levels.pop();
                self.written = true;
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.line);
                if let Some(table) = &mut self.table {
                    table.push_cell(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.fonts.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => (),
        }
    }

    fn start_item(&mut self) {
        self.end_line_if_any();
        let is_inner = self.lists.len() > 1;
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None if is_inner => "◦ ".to_owned(),
            Some(None) | None => "• ".to_owned(),
        };
        let rest = Span::new(TextRole::Plain, " ".repeat(super::wrap::width_of(&marker)));
        let marker = Some(Span::new(self.base.role_for(TextRole::Accent), marker));
        self.levels.push(NestingLevel { marker, rest, kind: LevelKind::Item });
    }

    /// Code that the line scanner did not recognise, such as in a quote inside a cell.
    fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        if !code.info.is_empty() {
            let margin = self.margin();
            code_head(&code.info, self.base, self.width, margin, self.out);
        }
        for line in code.text.lines() {
            let margin = self.margin();
            code_line(line, self.base, self.width, margin, None, self.out);
        }
        self.written = true;
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let margin = self.margin();
        table.lay_out(self.width, self.base, margin, self.out);
        self.written = true;
    }

    /// Shows the address after the text, so that a link cannot mislead.
    fn end_link(&mut self) {
        let Some((address, from)) = self.links.pop() else { return };
        let words: String = self.line.iter().skip(from).map(|span| span.text.as_str()).collect();
        for span in self.line.iter_mut().skip(from) {
            span.role = self.base.role_for(TextRole::Link);
            span.font = span.font.with(FontStyle::UNDERLINED);
        }
        let shown = words == address || format!("mailto:{words}") == address;
        if !shown && !address.is_empty() {
            self.span(TextRole::Muted, FontStyle::PLAIN, &format!(" <{address}>"));
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.text.push_str(text),
            None => self.push(text),
        }
    }

    /// Raw text with its own line ends.
    fn lines(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.push(piece.trim_end_matches('\n'));
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn push(&mut self, text: &str) {
        let (role, font) =
            if self.heading { (TextRole::Heading, FontStyle::BOLD) } else { (self.base.role, FontStyle::PLAIN) };
        self.span(role, font, text);
    }

    fn span(&mut self, role: TextRole, font: FontStyle, text: &str) {
        let font = self.fonts.iter().fold(self.base.font.with(font), |font, one| font.with(*one));
        let role = self.base.role_for(role);
        // The parser splits text at every character that could be markup.
        let begins_link = self.links.last().is_some_and(|(_, from)| *from == self.line.len());
        match self.line.last_mut() {
            Some(last) if last.role == role && last.font == font && !begins_link => last.text.push_str(text),
            _ => self.line.push(Span { role, font, text: text.to_owned() }),
        }
    }

    fn break_line(&mut self) {
        if self.table.is_some() {
            self.push(" ");
        } else {
            self.end_line();
            for link in &mut self.links {
                link.1 = 0;
            }
        }
    }

    /// A blank row between blocks, but not before the first block of an item.
    fn begin_block(&mut self) {
        self.end_line_if_any();
        let fresh = self.levels.last().is_some_and(|level| level.marker.is_some());
        let first_of_level = fresh && !self.written;
        if self.out.len() == self.began || first_of_level {
            return;
        }
        if fresh && self.out.last().is_some_and(|row| row.spans.is_empty()) {
            return;
        }
        if !self.written {
            return;
        }
        let inner = self.levels.iter().filter(|level| level.kind == LevelKind::Quote).map(|level| &level.rest);
        let spans: Vec<Span> = self.outer.rest.iter().chain(inner).cloned().collect();
        self.out.push(self.base.blank_row(spans, self.width));
    }

    fn end_line_if_any(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let margin = self.margin();
        let from = self.out.len();
        let width = self.width.min(self.base.prose_width);
        wrap(&line, width, Break::Words, &margin, self.base.background, self.out);
        let mut words = line.iter().filter(|span| !span.text.trim().is_empty()).peekable();
        let is_title = self.heading || words.peek().is_some() && words.all(|span| span.font.has(FontStyle::BOLD));
        if let Some(row) = self.out.get_mut(from).filter(|_| is_title) {
            row.mark = Some(RowMark::Title);
        }
        self.written = true;
    }

    /// The margin of the next row. Each marker is used once.
    fn margin(&mut self) -> Margin {
        let mut margin = self.outer.clone();
        self.outer.first.clone_from(&self.outer.rest);
        for level in &mut self.levels {
            margin.first.push(level.marker.take().unwrap_or_else(|| level.rest.clone()));
            margin.rest.push(level.rest.clone());
        }
        margin
    }
}

/// The link target with its title.
fn address(url: &str, title: &str) -> String {
    if title.is_empty() { url.to_owned() } else { format!("{url} \"{title}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t8_words_keep_their_font_style() {
        let mut rows = Vec::new();
        render("a **b *c* `d`** [e](f)", BaseStyle::TEXT, 40, Margin::default(), &mut rows);
        let spans: Vec<(&str, TextRole, FontStyle)> =
            rows[0].spans.iter().map(|span| (span.text.as_str(), span.role, span.font)).collect();
        let both = FontStyle::BOLD.with(FontStyle::ITALIC);
        assert_eq!(
            spans,
            [
                ("a ", TextRole::Plain, FontStyle::PLAIN),
                ("b ", TextRole::Plain, FontStyle::BOLD),
                ("c", TextRole::Plain, both),
                (" ", TextRole::Plain, FontStyle::BOLD),
                ("d", TextRole::Code, FontStyle::BOLD),
                (" ", TextRole::Plain, FontStyle::PLAIN),
                ("e", TextRole::Link, FontStyle::UNDERLINED),
                (" <f>", TextRole::Muted, FontStyle::PLAIN),
            ]
        );
    }
}
