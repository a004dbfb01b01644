//! One finished piece of Markdown as rows: a paragraph, a heading, a table's
//! cell. Line ends are kept where the writer put them: models write for a
//! chat, and a thought that was written in lines reads better in lines.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::base::Base;
use super::code::{code_head, code_line};
use super::row::{Face, Ink, Mark, Row, Span};
use super::table::Table;
use super::wrap::{Break, Margin, wrap};

pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Rows of a piece, behind a margin whose first part is used once.
pub(super) fn render(source: &str, base: Base, width: usize, margin: Margin, out: &mut Vec<Row>) {
    let parser = Parser::new_ext(source, options());
    // A definition of a link is no text to the parser, but its writer wrote it.
    let mut definitions: Vec<(usize, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| (definition.span.start, source.get(definition.span.clone()).unwrap_or("").to_owned()))
        .collect();
    definitions.sort();
    let began = out.len();
    let mut writer = Writer::new(base, width, margin, out);
    for event in parser {
        writer.take(event);
    }
    for (_, definition) in definitions {
        writer.begin_block();
        for line in definition.lines() {
            writer.push(line);
            writer.end_line();
        }
    }
    // A marker is not lost with what stood behind it.
    if writer.out.len() == began && !writer.outer.first.is_empty() {
        writer.end_line();
    }
}

/// The cells of one line of a table. There are as many columns as it has, so
/// that none is left out.
pub(super) fn cells(row: &str, base: Base) -> Vec<Vec<Span>> {
    let columns = row.matches('|').count() + 1;
    let source = format!("{}|\n{}|\n{row}\n", "|x".repeat(columns), "|-".repeat(columns));
    let mut rows = Vec::new();
    let mut writer = Writer::new(base, usize::MAX, Margin::default(), &mut rows);
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
        // Something else to the parser; it is shown as it is.
        found = vec![vec![Span { ink: base.ink, face: base.face, text: row.to_owned() }]];
    }
    found
}

/// One level of a quote or a list.
struct Level {
    /// Written once, then it is as wide as `rest`.
    marker: Option<Span>,
    rest: Span,
    kind: LevelKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LevelKind {
    Quote,
    Item,
}

struct Writer<'a> {
    base: Base,
    width: usize,
    /// What stands around the piece.
    outer: Margin,
    out: &'a mut Vec<Row>,
    began: usize,
    line: Vec<Span>,
    levels: Vec<Level>,
    /// The next number of each open list; nothing for bullets.
    lists: Vec<Option<u64>>,
    faces: Vec<Face>,
    heading: bool,
    links: Vec<(String, usize)>,
    code: Option<Code>,
    table: Option<Table>,
    /// Something was written since the innermost item or quote began.
    written: bool,
}

struct Code {
    info: String,
    text: String,
}

impl<'a> Writer<'a> {
    fn new(base: Base, width: usize, outer: Margin, out: &'a mut Vec<Row>) -> Writer<'a> {
        let began = out.len();
        Writer {
            base,
            width,
            outer,
            out,
            began,
            line: Vec::new(),
            levels: Vec::new(),
            lists: Vec::new(),
            faces: Vec::new(),
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
            Event::Code(text) => self.span(Ink::Code, Face::PLAIN, &text),
            Event::InlineHtml(text) | Event::Html(text) => self.lines(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.push(&text),
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.begin_block();
                self.span(Ink::Muted, Face::PLAIN, &"─".repeat(self.width.min(40)));
                self.end_line();
            }
            Event::TaskListMarker(done) => self.span(Ink::Accent, Face::PLAIN, if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.heading = true;
                if matches!(level, HeadingLevel::H1 | HeadingLevel::H2) {
                    self.faces.push(Face::UNDERLINED);
                }
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.written = false;
                self.levels.push(Level { marker: None, rest: self.base.bar(), kind: LevelKind::Quote });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let info = match kind {
                    pulldown_cmark::CodeBlockKind::Fenced(info) => info.to_string(),
                    pulldown_cmark::CodeBlockKind::Indented => String::new(),
                };
                self.code = Some(Code { info, text: String::new() });
            }
            Tag::List(first) => {
                // A list inside an item belongs close to it.
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
            Tag::Emphasis => self.faces.push(Face::ITALIC),
            Tag::Strong => self.faces.push(Face::BOLD),
            Tag::Strikethrough => self.faces.push(Face::STRUCK),
            Tag::Link { dest_url, title, .. } => self.links.push((address(&dest_url, &title), self.line.len())),
            Tag::Image { dest_url, title, .. } => {
                self.span(Ink::Muted, Face::PLAIN, "image ");
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
                    self.faces.pop();
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
                // An item without a word still has its marker.
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
                self.faces.pop();
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
        let rest = Span::new(Ink::Plain, " ".repeat(super::wrap::width_of(&marker)));
        let marker = Some(Span::new(self.base.ink(Ink::Accent), marker));
        self.levels.push(Level { marker, rest, kind: LevelKind::Item });
    }

    /// Code that the lines did not show as such, as in a quote inside a cell.
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
        table.lay(self.width, self.base, margin, self.out);
        self.written = true;
    }

    /// The address stands behind the words, so that a link cannot pretend.
    fn end_link(&mut self) {
        let Some((address, from)) = self.links.pop() else { return };
        let words: String = self.line.iter().skip(from).map(|span| span.text.as_str()).collect();
        for span in self.line.iter_mut().skip(from) {
            span.ink = self.base.ink(Ink::Link);
            span.face = span.face.with(Face::UNDERLINED);
        }
        let shown = words == address || format!("mailto:{words}") == address;
        if !shown && !address.is_empty() {
            self.span(Ink::Muted, Face::PLAIN, &format!(" <{address}>"));
        }
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.text.push_str(text),
            None => self.push(text),
        }
    }

    /// Raw text with line ends of its own.
    fn lines(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            self.push(piece.trim_end_matches('\n'));
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn push(&mut self, text: &str) {
        let (ink, face) = if self.heading { (Ink::Heading, Face::BOLD) } else { (self.base.ink, Face::PLAIN) };
        self.span(ink, face, text);
    }

    fn span(&mut self, ink: Ink, face: Face, text: &str) {
        let face = self.faces.iter().fold(self.base.face.with(face), |face, one| face.with(*one));
        let ink = self.base.ink(ink);
        // Text comes in pieces around every letter that could have been markup.
        let begins_link = self.links.last().is_some_and(|(_, from)| *from == self.line.len());
        match self.line.last_mut() {
            Some(last) if last.ink == ink && last.face == face && !begins_link => last.text.push_str(text),
            _ => self.line.push(Span { ink, face, text: text.to_owned() }),
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

    /// A blank row between blocks, but none before the first of an item.
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
        wrap(&line, self.width, Break::Words, &margin, self.base.shade, self.out);
        let mut words = line.iter().filter(|span| !span.text.trim().is_empty()).peekable();
        let is_title = self.heading || words.peek().is_some() && words.all(|span| span.face.has(Face::BOLD));
        if let Some(row) = self.out.get_mut(from).filter(|_| is_title) {
            row.mark = Some(Mark::Title);
        }
        self.written = true;
    }

    /// What stands before the next row; markers are used up.
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

/// Where a link goes, with the title that stands beside it.
fn address(url: &str, title: &str) -> String {
    if title.is_empty() { url.to_owned() } else { format!("{url} \"{title}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t8_words_carry_their_face() {
        let mut rows = Vec::new();
        render("a **b *c* `d`** [e](f)", Base::TEXT, 40, Margin::default(), &mut rows);
        let spans: Vec<(&str, Ink, Face)> =
            rows[0].spans.iter().map(|span| (span.text.as_str(), span.ink, span.face)).collect();
        let both = Face::BOLD.with(Face::ITALIC);
        assert_eq!(
            spans,
            [
                ("a ", Ink::Plain, Face::PLAIN),
                ("b ", Ink::Plain, Face::BOLD),
                ("c", Ink::Plain, both),
                (" ", Ink::Plain, Face::BOLD),
                ("d", Ink::Code, Face::BOLD),
                (" ", Ink::Plain, Face::PLAIN),
                ("e", Ink::Link, Face::UNDERLINED),
                (" <f>", Ink::Muted, Face::PLAIN),
            ]
        );
    }
}
