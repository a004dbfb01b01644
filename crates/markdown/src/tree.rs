//! Markdown as typed nodes. They hold text only, never HTML: a tag in the source is text.

mod prose;

use std::ops::Range;

use pulldown_cmark::{Options, Parser};
use serde::Serialize;

use crate::blocks::{BlockScanner, BlockSink, MarginLevel};
use prose::prose;

/// The link definitions of a text, in their order. The parser drops them, but they are part of the text.
pub fn link_definitions<'s>(parser: &Parser<'_>, source: &'s str) -> impl Iterator<Item = &'s str> + use<'s> {
    let mut spans: Vec<Range<usize>> =
        parser.reference_definitions().iter().map(|(_, definition)| definition.span.clone()).collect();
    spans.sort_by_key(|span| span.start);
    spans.into_iter().map(|span| source.get(span).unwrap_or(""))
}

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
