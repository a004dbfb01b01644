//! Typed nodes of a text that grows. Settled nodes are parsed once; only the last one and the
//! unfinished line are parsed again.

use serde::Serialize;

use crate::blocks::BlockScanner;
use crate::tree::{Node, TreeBuilder};

/// What to change in the nodes that were shown before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MarkdownChange {
    /// More text of the code block at `from - 1`, which was the last node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Nodes from this index on are replaced.
    pub from: usize,
    pub nodes: Vec<Node>,
}

/// A text that grows, as nodes.
#[derive(Debug, Clone, Default)]
pub struct MarkdownStream {
    source: String,
    scanner: BlockScanner,
    tree: TreeBuilder,
    /// The nodes that were shown from `shown_from` on: all that may still change.
    shown: Vec<Node>,
    shown_from: usize,
    is_finished: bool,
}

impl MarkdownStream {
    /// A finished text.
    pub fn finished(source: &str) -> MarkdownStream {
        let mut stream = MarkdownStream::default();
        stream.push(source);
        stream.finish();
        stream
    }

    pub fn push(&mut self, text: &str) {
        self.source.push_str(text);
        self.scanner.feed(&self.source, &mut self.tree);
    }

    /// The text is complete.
    pub fn finish(&mut self) {
        if !std::mem::replace(&mut self.is_finished, true) {
            std::mem::take(&mut self.scanner).finish(&self.source, &mut self.tree);
        }
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// The index of the first node that may still change, and the nodes from there on.
    fn tail(&self) -> (usize, Vec<Node>) {
        let from = self.tree.nodes.len().saturating_sub(1);
        let mut builder = self.tree.continued();
        if !self.is_finished {
            self.scanner.clone().finish(&self.source, &mut builder);
        }
        (from, builder.nodes)
    }

    /// All nodes, as if the text ended here.
    pub fn nodes(&self) -> Vec<Node> {
        let (from, tail) = self.tail();
        self.tree.nodes.iter().take(from).cloned().chain(tail).collect()
    }

    /// What changed since the last call; none if nothing did.
    pub fn change(&mut self) -> Option<MarkdownChange> {
        let (from, tail) = self.tail();
        let settled = self.tree.nodes.get(self.shown_from..from).unwrap_or_default();
        let now = settled.iter().chain(&tail);
        let kept = self.shown.iter().zip(now.clone()).take_while(|(old, new)| old == new).count();
        let mut nodes: Vec<Node> = now.skip(kept).cloned().collect();
        let mut at = self.shown_from + kept;
        let code = self.shown.get(kept).zip(nodes.first()).and_then(|(old, new)| more_code(old, new));
        let is_same = nodes.is_empty() && kept == self.shown.len();
        if code.is_some() {
            nodes.remove(0);
            at += 1;
        }
        (self.shown_from, self.shown) = (from, tail);
        (!is_same).then_some(MarkdownChange { code, from: at, nodes })
    }
}

/// The text that a code block grew by.
fn more_code(old: &Node, new: &Node) -> Option<String> {
    match (old, new) {
        (Node::Code { language: before, text: old }, Node::Code { language, text }) if before == language => {
            text.strip_prefix(old.as_str()).filter(|_| !old.is_empty()).map(str::to_owned)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse;

    /// What a front end does with a change.
    fn apply(shown: &mut Vec<Node>, change: MarkdownChange) {
        if let Some(code) = change.code {
            match shown.get_mut(change.from - 1) {
                Some(Node::Code { text, .. }) => {
                    text.push_str(&code);
                }
                other => panic!("no code block to extend: {other:?}"),
            }
        }
        shown.truncate(change.from);
        shown.extend(change.nodes);
    }

    const SAMPLE: &str = "# A *title*\n\nFirst **bold** and `code`.\nA second line with [a link](https://example.org).\n\n\
        - one\n- two\n  - inner\n\n1. first\n2. second\n\n> quoted\n> > deeper\n\n```rust\nfn main() {\n\n    x();\n}\n```\n\n\
        | a | b |\n|---|--:|\n| 1 | `2` |\n| 3 | 4 |\n\n<script>alert(1)</script>\n\n---\n\nThe end ~~not~~.";

    #[test]
    fn w4_html_of_a_model_is_text_in_typed_nodes() {
        let json = serde_json::to_string(&parse("a <b onclick=x>bold</b>\n\n<script>alert(1)</script>")).unwrap();
        assert_eq!(
            json,
            r#"[{"type":"paragraph","content":[{"type":"text","text":"a <b onclick=x>bold</b>"}]},{"type":"paragraph","content":[{"type":"text","text":"<script>alert(1)</script>"}]}]"#
        );
    }

    #[test]
    fn lists_and_quotes_nest_as_they_were_written() {
        let text = |text: &str| Node::Paragraph { content: vec![Inline::Text { text: text.to_owned() }] };
        use crate::Inline;
        let inner = Node::List { start: None, items: vec![vec![text("b")]] };
        let expected = vec![
            Node::List { start: None, items: vec![vec![text("a"), inner], vec![text("c")]] },
            Node::List { start: Some(3), items: vec![vec![text("d")], vec![text("e")]] },
            Node::Quote { nodes: vec![text("f"), Node::Quote { nodes: vec![text("g")] }] },
        ];
        assert_eq!(parse("- a\n  - b\n- c\n\n3. d\n4. e\n\n> f\n>\n> > g\n"), expected);
    }

    #[test]
    fn a_deep_nesting_is_flattened() {
        let nodes = parse(&format!("{} x", "> ".repeat(3000)));
        let json = serde_json::to_string(&nodes).unwrap();
        assert_eq!(json.matches("quote").count(), crate::tree::MAX_DEPTH);
    }

    #[test]
    fn code_that_grows_is_sent_once() {
        let mut stream = MarkdownStream::default();
        let mut sent = 0;
        stream.push("```\n");
        for number in 0..2_000 {
            stream.push(&format!("line {number}\n"));
            sent += serde_json::to_string(&stream.change()).unwrap().len();
        }
        assert!(sent < 5 * stream.source().len() + 200_000, "{sent} bytes for {}", stream.source().len());
    }

    proptest! {
        #[test]
        fn w6_any_chunks_of_a_text_give_the_nodes_of_the_whole(cuts in prop::collection::vec(0..SAMPLE.len(), 0..40)) {
            let mut cuts: Vec<usize> = cuts.into_iter().chain([0, SAMPLE.len()]).collect();
            cuts.sort_unstable();
            let (mut stream, mut shown) = (MarkdownStream::default(), Vec::new());
            for pair in cuts.windows(2) {
                stream.push(SAMPLE.get(pair[0]..pair[1]).unwrap());
                if let Some(change) = stream.change() {
                    apply(&mut shown, change);
                }
                prop_assert_eq!(&shown, &stream.nodes());
            }
            stream.finish();
            if let Some(change) = stream.change() {
                apply(&mut shown, change);
            }
            prop_assert_eq!(shown, parse(SAMPLE));
        }
    }
}
