//! The nodes of one block: a paragraph, a heading, a rule.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Parser, Tag, TagEnd};

use super::{ColumnAlignment, Inline, MAX_DEPTH, Node, link_definitions, options};

/// The nodes of one block: a paragraph, a heading, a rule.
pub(super) fn prose(source: &str) -> Vec<Node> {
    let parser = Parser::new_ext(source, options());
    let definitions: Vec<String> = link_definitions(&parser, source).map(str::to_owned).collect();
    let mut builder = ProseBuilder::default();
    for event in parser {
        builder.take(event);
    }
    let mut nodes = builder.finish();
    let paragraph = |text| Node::Paragraph { content: vec![Inline::Text { text }] };
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
