//! The highlights of code blocks and the jobs that are still to do. Another thread runs the jobs;
//! until the results arrive, code is plain.

use std::borrow::Cow;
use std::ops::Range;

use super::row::{CodePosition, Row, RowMark, Span, SyntaxToken, TextRole};

/// Longer lines stay plain.
pub const MAX_LINE_BYTES: usize = 1_000;
/// Lines beyond this one stay plain.
const MAX_LINES: usize = 50_000;
/// Lines per job.
const BATCH: usize = 500;

/// A code block: its language, and the byte ranges of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeBlock {
    pub(crate) language: String,
    pub(crate) lines: Vec<Range<usize>>,
}

/// Identifies a job, to match its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct HighlightId(pub u64);

/// Lines to highlight, and the parser state before them.
#[derive(Debug, Clone)]
pub struct HighlightJob {
    pub id: HighlightId,
    pub language: String,
    pub state: Option<Box<crate::highlighter::SyntaxState>>,
    pub lines: Vec<String>,
    /// A line that is still growing.
    pub growing: Option<String>,
}

/// The token up to byte `to` of a line, with tabs expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRun {
    pub to: u16,
    pub token: Option<SyntaxToken>,
}

/// The result of a job.
#[derive(Debug, Clone)]
pub struct HighlightResult {
    pub id: HighlightId,
    pub outcome: HighlightOutcome,
}

#[derive(Debug, Clone)]
pub enum HighlightOutcome {
    Lines {
        /// One entry per line.
        lines: Vec<Vec<TokenRun>>,
        growing: Option<Vec<TokenRun>>,
        state: Box<crate::highlighter::SyntaxState>,
    },
    /// Stays plain: the language is unknown, or the block takes too long.
    Plain,
}

/// The highlights of one block.
#[derive(Debug, Default)]
struct BlockHighlight {
    runs: Vec<TokenRun>,
    /// Where the runs of each line end.
    ends: Vec<usize>,
    /// The index and runs of a line that was still growing.
    growing: Option<(usize, Vec<TokenRun>)>,
    /// How much of the growing line was sent.
    growing_sent: (usize, usize),
    state: Option<Box<crate::highlighter::SyntaxState>>,
    pending: Option<HighlightId>,
    plain: bool,
}

/// The highlights of a text, block by block.
#[derive(Debug, Default)]
pub(crate) struct Highlights {
    blocks: Vec<BlockHighlight>,
}

impl Highlights {
    /// The next lines to highlight, if any. `whole` counts the settled blocks and the complete
    /// lines of the last one.
    pub(crate) fn next_job(
        &mut self,
        source: &str,
        codes: &[CodeBlock],
        whole: (usize, usize),
        next: &mut HighlightId,
    ) -> Option<HighlightJob> {
        if self.blocks.len() < whole.0 {
            self.blocks.resize_with(whole.0, BlockHighlight::default);
        }
        let is_last = |index: usize| index + 1 == whole.0;
        for (index, (block, code)) in self.blocks.iter_mut().zip(codes).enumerate() {
            let lines = if is_last(index) { whole.1 } else { code.lines.len() };
            if block.plain || block.pending.is_some() || code.language.is_empty() {
                continue;
            }
            if let Some(job) = block.next_job(source, code, lines, next) {
                return Some(job);
            }
        }
        None
    }

    /// Applies a result; returns false if it belongs to another text.
    pub(crate) fn apply(&mut self, result: &mut HighlightResult) -> bool {
        let Some(block) = self.blocks.iter_mut().find(|block| block.pending == Some(result.id)) else { return false };
        block.pending = None;
        match std::mem::replace(&mut result.outcome, HighlightOutcome::Plain) {
            HighlightOutcome::Plain => *block = BlockHighlight { plain: true, ..BlockHighlight::default() },
            HighlightOutcome::Lines { lines, growing, state } => {
                for line in lines {
                    block.runs.extend(line);
                    block.ends.push(block.runs.len());
                }
                block.growing = growing.map(|runs| (block.ends.len(), runs));
                block.state = Some(state);
            }
        }
        true
    }

    fn runs(&self, at: CodePosition) -> Option<&[TokenRun]> {
        let block = self.blocks.get(at.block())?;
        match block.ends.get(at.line()) {
            Some(end) => {
                let from = at.line().checked_sub(1).and_then(|before| block.ends.get(before)).copied().unwrap_or(0);
                block.runs.get(from..*end)
            }
            None => block.growing.as_ref().filter(|(line, _)| *line == at.line()).map(|(_, runs)| runs.as_slice()),
        }
    }
}

impl BlockHighlight {
    fn next_job(
        &mut self,
        source: &str,
        code: &CodeBlock,
        whole: usize,
        next: &mut HighlightId,
    ) -> Option<HighlightJob> {
        let from = self.ends.len();
        if from >= MAX_LINES {
            return None;
        }
        let to = whole.min(from + BATCH);
        let text = |range: &Range<usize>| source.get(range.clone()).unwrap_or("").to_owned();
        let growing = code.lines.get(to).filter(|_| to == whole);
        let seen = growing.map_or((to, 0), |line| (to, line.len()));
        if from >= to && (seen == self.growing_sent || growing.is_none()) {
            return None;
        }
        self.growing_sent = seen;
        next.0 += 1;
        self.pending = Some(*next);
        Some(HighlightJob {
            id: *next,
            language: code.language.clone(),
            state: self.state.take(),
            lines: code.lines.get(from..to).unwrap_or(&[]).iter().map(text).collect(),
            growing: growing.map(text),
        })
    }
}

/// Rows with the known highlights.
#[derive(Debug, Clone)]
pub struct HighlightedRows<'a> {
    pub rows: &'a [Row],
    highlights: HighlightSource<'a>,
}

/// Where the highlights of the rows are.
#[derive(Debug, Clone)]
enum HighlightSource<'a> {
    None,
    One(&'a Highlights),
    /// One per section, with the row where the section begins.
    Sections(Vec<(usize, &'a Highlights)>),
}

impl<'a> HighlightedRows<'a> {
    pub(crate) fn new(rows: &'a [Row], highlights: &'a Highlights) -> HighlightedRows<'a> {
        HighlightedRows { rows, highlights: HighlightSource::One(highlights) }
    }

    /// Rows of several texts in sequence.
    pub(crate) fn from_sections(rows: &'a [Row], highlights: Vec<(usize, &'a Highlights)>) -> HighlightedRows<'a> {
        HighlightedRows { rows, highlights: HighlightSource::Sections(highlights) }
    }

    /// Rows without code.
    pub fn plain(rows: &'a [Row]) -> HighlightedRows<'a> {
        HighlightedRows { rows, highlights: HighlightSource::None }
    }

    /// Drops the first rows.
    pub(crate) fn skip(self, count: usize) -> HighlightedRows<'a> {
        HighlightedRows { rows: self.rows.get(count..).unwrap_or(&[]), ..self }
    }

    /// A row in its colours.
    pub fn row(&self, index: usize) -> Option<Cow<'a, Row>> {
        let row = self.rows.get(index)?;
        let Some(RowMark::Code(at)) = row.mark else { return Some(Cow::Borrowed(row)) };
        Some(match self.highlights_at(index).and_then(|highlights| highlights.runs(at)) {
            Some(runs) if !runs.is_empty() => Cow::Owned(coloured(row, at, runs)),
            Some(_) | None => Cow::Borrowed(row),
        })
    }

    fn highlights_at(&self, index: usize) -> Option<&'a Highlights> {
        match &self.highlights {
            HighlightSource::None => None,
            HighlightSource::One(highlights) => Some(highlights),
            HighlightSource::Sections(all) => {
                let after = all.partition_point(|(first, _)| *first <= index);
                all.get(after.checked_sub(1)?).map(|(_, highlights)| *highlights)
            }
        }
    }
}

fn coloured(row: &Row, at: CodePosition, runs: &[TokenRun]) -> Row {
    let mut spans: Vec<Span> = row.margin().to_vec();
    let mut byte = at.first_byte();
    for span in row.content() {
        let mut rest = span.text.as_str();
        for run in runs {
            let to = usize::from(run.to);
            if to <= byte || rest.is_empty() {
                continue;
            }
            // A run that ends inside a character belongs to another text.
            let Some((own, after)) = rest.split_at_checked((to - byte).min(rest.len())) else { break };
            let role = run.token.map_or(span.role, |token| TextRole::Token(token, at.saturation));
            spans.push(Span { role, text: own.to_owned(), ..span.clone() });
            (byte, rest) = (byte + own.len(), after);
        }
        if !rest.is_empty() {
            byte += rest.len();
            spans.push(Span { text: rest.to_owned(), ..span.clone() });
        }
    }
    Row { spans, ..row.clone() }
}
