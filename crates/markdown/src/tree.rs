//! Markdown as typed nodes. They hold text only, never HTML: a tag in the source is text.

use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde::Serialize;

use crate::blocks::{BlockScanner, BlockSink, MarginLevel};

/// Deeper quotes, lists and emphasis are flattened, so that no text can exhaust a stack.
pub(crate) const MAX_DEPTH: usize = 24;

/// The extensions that models use.
pub fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Node {
    Paragraph {
        content: Vec<Inline>,
    },
    Heading {
        level: u8,
        content: Vec<Inline>,
    },
    Code {
        language: String,
        text: String,
    },
    Quote {
        nodes: Vec<Node>,
    },
    List {
        /// The number of the first item; none for bullets.
        start: Option<u64>,
        items: Vec<Vec<Node>>,
    },
    Table {
        alignments: Vec<ColumnAlignment>,
        head: Vec<Vec<Inline>>,
        rows: Vec<Vec<Vec<Inline>>>,
    },
    Rule,
}

/// The text of the last code block, in quotes and lists too.
pub fn last_code(nodes: &[Node]) -> Option<&str> {
    nodes.iter().rev().find_map(|node| match node {
        Node::Code { text, .. } => Some(text.as_str()),
        Node::Quote { nodes } => last_code(nodes),
        Node::List { items, .. } => items.iter().rev().find_map(|nodes| last_code(nodes)),
        Node::Paragraph { .. } | Node::Heading { .. } | Node::Table { .. } | Node::Rule => None,
    })
}

/// The alignment of a table column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ColumnAlignment {
    Start,
    Center,
    End,
}

/// A part of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Inline {
    Text {
        text: String,
    },
    Code {
        text: String,
    },
    Strong {
        content: Vec<Inline>,
    },
    Emphasis {
        content: Vec<Inline>,
    },
    Strikethrough {
        content: Vec<Inline>,
    },
    Link {
        url: String,
        content: Vec<Inline>,
    },
    /// Never loaded; its description is shown as a link.
    Image {
        url: String,
        content: Vec<Inline>,
    },
    Break,
    Checkbox {
        checked: bool,
    },
}

/// The nodes of a whole text.
pub fn parse(source: &str) -> Vec<Node> {
    let mut tree = TreeBuilder::default();
    let mut scanner = BlockScanner::default();
    scanner.feed(source, &mut tree);
    scanner.finish(source, &mut tree);
    tree.nodes
}

/// How far the last code block is.
#[derive(Debug, Clone, Default)]
enum CodeBegin {
    /// It has no node yet; this is its language.
    Unseen(String),
    /// It has a node without a line.
    NoLine,
    #[default]
    Begun,
}

/// Builds the tree from the scanner's blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct TreeBuilder {
    pub(crate) nodes: Vec<Node>,
    code: CodeBegin,
    /// The containers of the open table.
    table_levels: Vec<MarginLevel>,
}

impl TreeBuilder {
    /// A builder that continues the last node of this one.
    pub(crate) fn continued(&self) -> TreeBuilder {
        let nodes = self.nodes.last().cloned().into_iter().collect();
        TreeBuilder { nodes, code: self.code.clone(), table_levels: self.table_levels.clone() }
    }

    /// The nodes inside these containers. A level with a marker begins an item.
    fn container(&mut self, levels: &[MarginLevel]) -> Option<&mut Vec<Node>> {
        let mut nodes = &mut self.nodes;
        for level in levels.iter().take(MAX_DEPTH) {
            nodes = match level {
                MarginLevel::Quote => quote(nodes)?,
                MarginLevel::Item { marker, number, first, .. } => {
                    let begins = match (marker, first) {
                        (None, _) => ItemBegin::Continues,
                        (Some(_), false) => ItemBegin::Item,
                        (Some(_), true) => ItemBegin::List,
                    };
                    item(nodes, *number, begins)?
                }
            };
        }
        Some(nodes)
    }

    fn push(&mut self, levels: &[MarginLevel], node: Node) {
        if let Some(nodes) = self.container(levels) {
            nodes.push(node);
        }
    }
}

/// What begins at a list item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemBegin {
    Continues,
    Item,
    List,
}

/// The quote at the end of these nodes.
fn quote(nodes: &mut Vec<Node>) -> Option<&mut Vec<Node>> {
    if !matches!(nodes.last(), Some(Node::Quote { .. })) {
        nodes.push(Node::Quote { nodes: Vec::new() });
    }
    match nodes.last_mut() {
        Some(Node::Quote { nodes }) => Some(nodes),
        _ => None,
    }
}

/// The item at the end of these nodes, or a new one.
fn item(nodes: &mut Vec<Node>, number: Option<u64>, begins: ItemBegin) -> Option<&mut Vec<Node>> {
    let continues = matches!(nodes.last(), Some(Node::List { start, .. }) if start.is_some() == number.is_some());
    if !continues || begins == ItemBegin::List {
        nodes.push(Node::List { start: number, items: Vec::new() });
    }
    match nodes.last_mut() {
        Some(Node::List { items, .. }) => {
            if begins != ItemBegin::Continues || items.is_empty() {
                items.push(Vec::new());
            }
            items.last_mut()
        }
        _ => None,
    }
}

impl BlockSink for TreeBuilder {
    fn gap(&mut self, _quotes: usize) {}

    fn prose(&mut self, text: &str, levels: &[MarginLevel]) {
        let parsed = prose(text);
        if let Some(nodes) = self.container(levels) {
            nodes.extend(parsed);
        }
    }

    fn code(&mut self, info: &str) {
        self.code = CodeBegin::Unseen(info.to_owned());
    }

    fn code_head(&mut self, info: &str, levels: &[MarginLevel]) {
        self.code = CodeBegin::NoLine;
        self.push(levels, Node::Code { language: info.to_owned(), text: String::new() });
    }

    fn code_line(&mut self, line: Range<usize>, source: &str, levels: &[MarginLevel]) {
        let line = source.get(line).unwrap_or("");
        let begin = std::mem::take(&mut self.code);
        let Some(nodes) = self.container(levels) else { return };
        match (begin, nodes.last_mut()) {
            (CodeBegin::Unseen(language), _) => nodes.push(Node::Code { language, text: line.to_owned() }),
            (CodeBegin::NoLine, Some(Node::Code { text, .. })) => text.push_str(line),
            (CodeBegin::Begun, Some(Node::Code { text, .. })) => {
                text.push('\n');
                text.push_str(line);
            }
            (CodeBegin::NoLine | CodeBegin::Begun, _) => {
                nodes.push(Node::Code { language: String::new(), text: line.to_owned() });
            }
        }
    }

    fn table(&mut self, head: &str, alignments: &str, levels: &[MarginLevel]) {
        let alignments = crate::markers::cells(alignments).map(alignment).collect();
        self.push(levels, Node::Table { alignments, head: cells(head), rows: Vec::new() });
        self.table_levels = levels.iter().map(without_marker).collect();
    }

    fn table_row(&mut self, row: &str) {
        let row = cells(row);
        let levels = std::mem::take(&mut self.table_levels);
        if let Some(Node::Table { rows, .. }) = self.container(&levels).and_then(|nodes| nodes.last_mut()) {
            rows.push(row);
        }
        self.table_levels = levels;
    }

    fn table_end(&mut self) {
        self.table_levels.clear();
    }

    fn marker(&mut self, levels: &[MarginLevel]) {
        let _item = self.container(levels);
    }
}

fn without_marker(level: &MarginLevel) -> MarginLevel {
    match level {
        MarginLevel::Quote => MarginLevel::Quote,
        MarginLevel::Item { width, number, first, .. } => {
            MarginLevel::Item { marker: None, width: *width, number: *number, first: *first }
        }
    }
}

fn alignment(cell: &str) -> ColumnAlignment {
    let cell = cell.trim();
    match (cell.starts_with(':'), cell.ends_with(':')) {
        (true, true) => ColumnAlignment::Center,
        (false, true) => ColumnAlignment::End,
        (true | false, false) => ColumnAlignment::Start,
    }
}

/// The cells of one table line.
fn cells(row: &str) -> Vec<Vec<Inline>> {
    let columns = row.matches('|').count() + 1;
    let source = format!("{}|\n{}|\n{row}\n", "|x".repeat(columns), "|-".repeat(columns));
    let mut found = match prose(&source).into_iter().next() {
        Some(Node::Table { rows, .. }) => rows.into_iter().next().unwrap_or_default(),
        _ => Vec::new(),
    };
    while found.len() > 1 && found.last().is_some_and(Vec::is_empty) {
        found.pop();
    }
    if found.iter().all(Vec::is_empty) && !row.replace('|', "").trim().is_empty() {
        // The parser sees no table row, so the line is shown unchanged.
        found = vec![vec![Inline::Text { text: row.to_owned() }]];
    }
    found
}

/// The nodes of one block: a paragraph, a heading, a rule.
fn prose(source: &str) -> Vec<Node> {
    let parser = Parser::new_ext(source, options());
    // The parser drops link definitions, but they are part of the text.
    let mut definitions: Vec<(usize, String)> = parser
        .reference_definitions()
        .iter()
        .map(|(_, definition)| (definition.span.start, source.get(definition.span.clone()).unwrap_or("").to_owned()))
        .collect();
    definitions.sort();
    let mut builder = ProseBuilder::default();
    for event in parser {
        builder.take(event);
    }
    let mut nodes = builder.finish();
    let paragraph = |(_, text)| Node::Paragraph { content: vec![Inline::Text { text }] };
    nodes.extend(definitions.into_iter().map(paragraph));
    nodes
}

/// What is open while the events of a block are read.
enum Open {
    /// A paragraph, a heading or a cell.
    Inlines(Vec<Inline>),
    Nodes(Vec<Node>),
    Items(Vec<Vec<Node>>),
    Code(String),
    Rows(Vec<Vec<Vec<Inline>>>),
    Row(Vec<Vec<Inline>>),
    /// Too deep: its content goes to what is around it.
    Flattened,
}

#[derive(Default)]
struct ProseBuilder {
    nodes: Vec<Node>,
    open: Vec<Open>,
    head: Vec<Vec<Inline>>,
    /// The start numbers of open lists, the alignments of tables, the languages of code, the addresses of links.
    starts: Vec<Option<u64>>,
    alignments: Vec<ColumnAlignment>,
    language: String,
    links: Vec<String>,
}

impl ProseBuilder {
    fn finish(mut self) -> Vec<Node> {
        while let Some(open) = self.open.pop() {
            match open {
                Open::Inlines(content) => self.node(Node::Paragraph { content }),
                Open::Nodes(nodes) => nodes.into_iter().for_each(|node| self.node(node)),
                Open::Items(items) => items.into_iter().flatten().for_each(|node| self.node(node)),
                Open::Code(text) => self.node(Node::Code { language: String::new(), text }),
                Open::Rows(_) | Open::Row(_) | Open::Flattened => (),
            }
        }
        self.nodes
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.inline(Inline::Code { text: text.into_string() }),
            Event::InlineHtml(text) | Event::Html(text) => self.lines(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.inline(Inline::Break),
            Event::Rule => self.node(Node::Rule),
            Event::TaskListMarker(checked) => self.inline(Inline::Checkbox { checked }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let is_deep = self.open.len() >= MAX_DEPTH;
        let open = match tag {
            Tag::Paragraph | Tag::Heading { .. } | Tag::TableCell | Tag::HtmlBlock => Open::Inlines(Vec::new()),
            Tag::CodeBlock(kind) => {
                self.language = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                Open::Code(String::new())
            }
            Tag::Table(alignments) => {
                self.alignments = alignments.iter().map(column_alignment).collect();
                Open::Rows(Vec::new())
            }
            Tag::TableHead | Tag::TableRow => Open::Row(Vec::new()),
            Tag::List(start) if !is_deep => {
                self.starts.push(start);
                Open::Items(Vec::new())
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } if !is_deep => {
                self.links.push(dest_url.into_string());
                Open::Inlines(Vec::new())
            }
            Tag::Emphasis | Tag::Strong | Tag::Strikethrough if !is_deep => Open::Inlines(Vec::new()),
            Tag::BlockQuote(_) | Tag::Item if !is_deep => Open::Nodes(Vec::new()),
            Tag::List(_)
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::BlockQuote(_)
            | Tag::Item
            | Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => Open::Flattened,
        };
        self.open.push(open);
    }

    fn end(&mut self, tag: TagEnd) {
        let Some(open) = self.open.pop() else { return };
        match (tag, open) {
            (_, Open::Flattened) => (),
            (TagEnd::Heading(level), Open::Inlines(content)) => {
                self.node(Node::Heading { level: heading_level(level), content });
            }
            (TagEnd::TableCell, Open::Inlines(content)) => {
                if let Some(Open::Row(cells)) = self.open.last_mut() {
                    cells.push(content);
                }
            }
            (TagEnd::Emphasis, Open::Inlines(content)) => self.inline(Inline::Emphasis { content }),
            (TagEnd::Strong, Open::Inlines(content)) => self.inline(Inline::Strong { content }),
            (TagEnd::Strikethrough, Open::Inlines(content)) => self.inline(Inline::Strikethrough { content }),
            (TagEnd::Link, Open::Inlines(content)) => {
                let url = self.links.pop().unwrap_or_default();
                self.inline(Inline::Link { url, content });
            }
            (TagEnd::Image, Open::Inlines(content)) => {
                let url = self.links.pop().unwrap_or_default();
                self.inline(Inline::Image { url, content });
            }
            (_, Open::Inlines(content)) => self.node(Node::Paragraph { content }),
            (TagEnd::Item, Open::Nodes(nodes)) => match self.open.last_mut() {
                Some(Open::Items(items)) => items.push(nodes),
                _ => nodes.into_iter().for_each(|node| self.node(node)),
            },
            (_, Open::Nodes(nodes)) => self.node(Node::Quote { nodes }),
            (_, Open::Items(items)) => {
                let start = self.starts.pop().flatten();
                self.node(Node::List { start, items });
            }
            (_, Open::Code(text)) => {
                let language = std::mem::take(&mut self.language);
                self.node(Node::Code { language, text });
            }
            (TagEnd::TableHead, Open::Row(cells)) => self.head = cells,
            (_, Open::Row(cells)) => {
                if let Some(Open::Rows(rows)) = self.open.last_mut() {
                    rows.push(cells);
                }
            }
            (_, Open::Rows(rows)) => {
                let (head, alignments) = (std::mem::take(&mut self.head), std::mem::take(&mut self.alignments));
                self.node(Node::Table { alignments, head, rows });
            }
        }
    }

    fn text(&mut self, text: &str) {
        match self.open.last_mut() {
            Some(Open::Code(code)) => code.push_str(text),
            _ => self.inline(Inline::Text { text: text.to_owned() }),
        }
    }

    /// Raw text with its own line ends.
    fn lines(&mut self, text: &str) {
        for (index, line) in text.trim_end_matches('\n').split('\n').enumerate() {
            if index > 0 {
                self.inline(Inline::Break);
            }
            self.text(line);
        }
    }

    /// Adds to the innermost open text; a tight list item has none of its own.
    fn inline(&mut self, inline: Inline) {
        let content = self.open.iter_mut().rev().find(|open| !matches!(open, Open::Flattened));
        match content {
            Some(Open::Inlines(content)) => push_inline(content, inline),
            Some(Open::Nodes(nodes)) => push_text(nodes, inline),
            Some(Open::Items(_) | Open::Code(_) | Open::Rows(_) | Open::Row(_) | Open::Flattened) | None => {
                push_text(&mut self.nodes, inline);
            }
        }
    }

    fn node(&mut self, node: Node) {
        let around = self.open.iter_mut().rev().find(|open| !matches!(open, Open::Flattened));
        match around {
            Some(Open::Nodes(nodes)) => nodes.push(node),
            Some(Open::Items(items)) => items.push(vec![node]),
            Some(Open::Inlines(_) | Open::Code(_) | Open::Rows(_) | Open::Row(_) | Open::Flattened) | None => {
                self.nodes.push(node);
            }
        }
    }
}

fn push_text(nodes: &mut Vec<Node>, inline: Inline) {
    match nodes.last_mut() {
        Some(Node::Paragraph { content }) => push_inline(content, inline),
        _ => nodes.push(Node::Paragraph { content: vec![inline] }),
    }
}

/// The parser splits text at every character that could be markup; here it is joined again.
fn push_inline(content: &mut Vec<Inline>, inline: Inline) {
    match (content.last_mut(), inline) {
        (Some(Inline::Text { text }), Inline::Text { text: more }) => text.push_str(&more),
        (_, inline) => content.push(inline),
    }
}

fn column_alignment(alignment: &Alignment) -> ColumnAlignment {
    match alignment {
        Alignment::None | Alignment::Left => ColumnAlignment::Start,
        Alignment::Center => ColumnAlignment::Center,
        Alignment::Right => ColumnAlignment::End,
    }
}

fn heading_level(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}
