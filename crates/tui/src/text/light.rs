//! What a highlighter made of blocks of code, and what it is still to do. The
//! work itself is done elsewhere and comes back; until then code is plain.

use std::borrow::Cow;
use std::ops::Range;

use super::row::{CodeAt, Ink, Mark, Row, Span, Token};

/// Lines longer than this are left plain.
pub const LONGEST_LINE: usize = 1_000;
/// From here on a block stays plain.
const MOST_LINES: usize = 50_000;
/// Lines that are asked for at once.
const BATCH: usize = 500;

/// A block of code: what it says it is, and where its lines are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeBlock {
    pub(crate) language: String,
    pub(crate) lines: Vec<Range<usize>>,
}

/// Tells an answer to one question from an answer to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Ticket(pub u64);

/// Lines that are to be highlighted, and where the lines before them left off.
#[derive(Debug, Clone)]
pub struct Job {
    pub ticket: Ticket,
    pub language: String,
    pub state: Option<Box<crate::syntax::State>>,
    pub lines: Vec<String>,
    /// A line that is still growing.
    pub peek: Option<String>,
}

/// Up to which byte of a line, tabs as spaces, the code is what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    pub to: u16,
    pub token: Option<Token>,
}

/// The answer to a job.
#[derive(Debug, Clone)]
pub struct Lit {
    pub ticket: Ticket,
    pub outcome: Outcome,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Lines {
        /// One for each line.
        lines: Vec<Vec<Run>>,
        peek: Option<Vec<Run>>,
        state: Box<crate::syntax::State>,
    },
    /// It stays plain: the language is not known, or it is too much.
    Plain,
}

/// The colours of one block.
#[derive(Debug, Default)]
struct Light {
    runs: Vec<Run>,
    /// Where the runs of each line end.
    ends: Vec<usize>,
    /// A line that was not whole when it was looked at: its number and runs.
    peek: Option<(usize, Vec<Run>)>,
    /// How much of the growing line was looked at.
    peeked: (usize, usize),
    state: Option<Box<crate::syntax::State>>,
    asked: Option<Ticket>,
    plain: bool,
}

/// The colours of a text, block by block.
#[derive(Debug, Default)]
pub(crate) struct Lights {
    blocks: Vec<Light>,
}

impl Lights {
    /// The next lines to highlight, if any are left. `whole` counts the
    /// blocks that are there for good and the whole lines of the last one.
    pub(crate) fn wants(
        &mut self,
        source: &str,
        codes: &[CodeBlock],
        whole: (usize, usize),
        next: &mut Ticket,
    ) -> Option<Job> {
        if self.blocks.len() < whole.0 {
            self.blocks.resize_with(whole.0, Light::default);
        }
        let is_last = |index: usize| index + 1 == whole.0;
        for (index, (light, code)) in self.blocks.iter_mut().zip(codes).enumerate() {
            let lines = if is_last(index) { whole.1 } else { code.lines.len() };
            if light.plain || light.asked.is_some() || code.language.is_empty() {
                continue;
            }
            if let Some(job) = light.wants(source, code, lines, next) {
                return Some(job);
            }
        }
        None
    }

    /// Takes an answer; false if it was not for this text.
    pub(crate) fn take(&mut self, lit: &mut Lit) -> bool {
        let Some(light) = self.blocks.iter_mut().find(|light| light.asked == Some(lit.ticket)) else { return false };
        light.asked = None;
        match std::mem::replace(&mut lit.outcome, Outcome::Plain) {
            Outcome::Plain => *light = Light { plain: true, ..Light::default() },
            Outcome::Lines { lines, peek, state } => {
                for line in lines {
                    light.runs.extend(line);
                    light.ends.push(light.runs.len());
                }
                light.peek = peek.map(|runs| (light.ends.len(), runs));
                light.state = Some(state);
            }
        }
        true
    }

    fn runs(&self, at: CodeAt) -> Option<&[Run]> {
        let light = self.blocks.get(at.block())?;
        match light.ends.get(at.line()) {
            Some(end) => {
                let from = at.line().checked_sub(1).and_then(|before| light.ends.get(before)).copied().unwrap_or(0);
                light.runs.get(from..*end)
            }
            None => light.peek.as_ref().filter(|(line, _)| *line == at.line()).map(|(_, runs)| runs.as_slice()),
        }
    }
}

impl Light {
    fn wants(&mut self, source: &str, code: &CodeBlock, whole: usize, next: &mut Ticket) -> Option<Job> {
        let from = self.ends.len();
        if from >= MOST_LINES {
            return None;
        }
        let to = whole.min(from + BATCH);
        let text = |range: &Range<usize>| source.get(range.clone()).unwrap_or("").to_owned();
        let growing = code.lines.get(to).filter(|_| to == whole);
        let seen = growing.map_or((to, 0), |line| (to, line.len()));
        if from >= to && (seen == self.peeked || growing.is_none()) {
            return None;
        }
        self.peeked = seen;
        next.0 += 1;
        self.asked = Some(*next);
        Some(Job {
            ticket: *next,
            language: code.language.clone(),
            state: self.state.take(),
            lines: code.lines.get(from..to).unwrap_or(&[]).iter().map(text).collect(),
            peek: growing.map(text),
        })
    }
}

/// Rows with the colours that are known for them.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    pub rows: &'a [Row],
    lights: Source<'a>,
}

/// Where the colours of rows are.
#[derive(Debug, Clone)]
enum Source<'a> {
    None,
    One(&'a Lights),
    /// Those of each section, with the row it begins on.
    Sections(Vec<(usize, &'a Lights)>),
}

impl<'a> Body<'a> {
    pub(crate) fn new(rows: &'a [Row], lights: &'a Lights) -> Body<'a> {
        Body { rows, lights: Source::One(lights) }
    }

    /// Rows of several texts, one behind the other.
    pub(crate) fn of_sections(rows: &'a [Row], lights: Vec<(usize, &'a Lights)>) -> Body<'a> {
        Body { rows, lights: Source::Sections(lights) }
    }

    /// Rows that have no code in them.
    pub fn plain(rows: &'a [Row]) -> Body<'a> {
        Body { rows, lights: Source::None }
    }

    /// Without the first rows of a text.
    pub(crate) fn behind(self, count: usize) -> Body<'a> {
        Body { rows: self.rows.get(count..).unwrap_or(&[]), ..self }
    }

    /// A row in its colours.
    pub fn row(&self, index: usize) -> Option<Cow<'a, Row>> {
        let row = self.rows.get(index)?;
        let Some(Mark::Code(at)) = row.mark else { return Some(Cow::Borrowed(row)) };
        Some(match self.lights_of(index).and_then(|lights| lights.runs(at)) {
            Some(runs) if !runs.is_empty() => Cow::Owned(coloured(row, at, runs)),
            Some(_) | None => Cow::Borrowed(row),
        })
    }

    fn lights_of(&self, index: usize) -> Option<&'a Lights> {
        match &self.lights {
            Source::None => None,
            Source::One(lights) => Some(lights),
            Source::Sections(all) => {
                let behind = all.partition_point(|(first, _)| *first <= index);
                all.get(behind.checked_sub(1)?).map(|(_, lights)| *lights)
            }
        }
    }
}

fn coloured(row: &Row, at: CodeAt, runs: &[Run]) -> Row {
    let mut spans: Vec<Span> = row.lead().to_vec();
    let mut place = at.first_byte();
    for span in row.own() {
        let mut rest = span.text.as_str();
        for run in runs {
            let to = usize::from(run.to);
            if to <= place || rest.is_empty() {
                continue;
            }
            // An end inside a letter is that of another text.
            let Some((own, after)) = rest.split_at_checked((to - place).min(rest.len())) else { break };
            let ink = run.token.map_or(span.ink, |token| Ink::Token(token, at.tone));
            spans.push(Span { ink, text: own.to_owned(), ..span.clone() });
            (place, rest) = (place + own.len(), after);
        }
        if !rest.is_empty() {
            place += rest.len();
            spans.push(Span { text: rest.to_owned(), ..span.clone() });
        }
    }
    Row { spans, ..row.clone() }
}
