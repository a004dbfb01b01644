//! The rows of a question, for any front end.

use std::fmt;

use unicode_width::UnicodeWidthChar;

use super::visible_text::{BodyKind, VisibleLine, visible, visible_lines};
use super::{PermissionQuestion, Risk};

/// The available space. `None` for output that is not a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuestionLayout {
    /// Columns of the whole question.
    pub width: Option<usize>,
    /// Columns that the front end writes before the head.
    pub before_head: usize,
    /// Rows of the command or diff.
    pub rows: Option<usize>,
}

/// A rendered question, without its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RenderedQuestion {
    /// `TOOL: FIRST LINE`.
    pub head: String,
    /// The rows of the command or diff, as far as they fit.
    pub body: Vec<BodyRow>,
    /// The tier, the paths, and a note on hidden lines, one line each.
    pub facts: Vec<String>,
    /// The number of body lines that are not fully shown.
    pub hidden: usize,
    /// What a lasting answer would cover, on one line. None if there is no such
    /// answer.
    pub covers: Option<String>,
}

/// A row of a command or diff. It is shown after a gutter, so that its text
/// cannot imitate our own lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BodyRow {
    /// Without the gutter, with every character visible.
    pub text: String,
    /// The line contains a character that is shown as a token.
    pub is_marked: bool,
    /// The line started in a row above.
    pub is_continued: bool,
}

/// The start of a row that continues the line above.
const CONTINUED: &str = "↪ ";

impl BodyRow {
    /// What is shown before the text. It differs for marked rows.
    pub fn gutter(&self) -> &'static str {
        if self.is_marked { "│!" } else { "│ " }
    }
}

impl fmt::Display for BodyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let continued = if self.is_continued { CONTINUED } else { "" };
        write!(f, "{}{continued}{}", self.gutter(), self.text)
    }
}

impl RenderedQuestion {
    /// All lines of the question.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let body = self.body.iter().map(BodyRow::to_string);
        std::iter::once(self.head.clone()).chain(body).chain(self.facts.iter().cloned())
    }
}

/// Renders the question for any front end.
pub fn render(question: &PermissionQuestion, layout: QuestionLayout) -> RenderedQuestion {
    let subject = question.subject.split('\n').next().unwrap_or_default();
    let whole_head = format!("{}: {}", visible(&question.tool), visible(subject));
    let head = truncated(&whole_head, layout.width.map(|width| width.saturating_sub(layout.before_head)));
    let mut lines: Vec<VisibleLine> = Vec::new();
    // A subject that does not fit on the first line is shown in the body.
    let is_cut = head != whole_head || question.subject.contains('\n');
    if is_cut && question.body() != question.subject {
        lines.extend(visible_lines(&question.subject, BodyKind::Command));
    }
    // A path alone is shown in the first line.
    if is_cut || question.preview.is_some() || question.risk == Risk::Runs || question.is_marked() {
        lines.extend(visible_lines(question.body(), question.content()));
    }
    let WrappedBody { rows, hidden, first_hidden } = body(&lines, layout);
    let mut facts = Vec::new();
    if let Some(confinement) = &question.confinement {
        facts.push(format!("tier: {confinement}"));
    }
    if let Some(path) = question.outside() {
        facts.push(format!("outside this folder: {}", visible(path)));
    }
    if let Some(path) = &question.protected {
        facts.push(format!("protected: {}", visible(path)));
    }
    if question.covers.is_some() && question.is_marked() {
        // Says why the lasting answers are missing.
        facts.push("asked each time: invisible characters".to_owned());
    }
    if hidden > 0 {
        let lines = if hidden == 1 { "line" } else { "lines" };
        let short = format!("{hidden} {lines} not shown (v shows all)");
        let whole = format!("{short}, from line {first_hidden} on");
        // Which line it is matters less than the key.
        facts.push(if truncated(&whole, layout.width) == whole { whole } else { short });
    }
    let facts = facts.iter().map(|fact| truncated(fact, layout.width)).collect();
    RenderedQuestion { head, body: rows, facts, hidden, covers: covers(question, layout.width) }
}

/// Does not repeat a long command outside of its gutter, where it could push
/// the question off the screen and imitate another one.
fn covers(question: &PermissionQuestion, width: Option<usize>) -> Option<String> {
    let covers = question.rememberable_scope()?;
    let lines =
        [format!("s and p: aside will not ask again about `{covers}`"), format!("s, p: always allow `{covers}`")];
    let is_short = |line: &String| covers.chars().count() <= LONGEST_COVER && truncated(line, width) == *line;
    let whole = lines.into_iter().find(is_short);
    Some(whole.unwrap_or_else(|| truncated("s, p: always allow exactly this", width)))
}

/// Longer ones are not repeated, since the question shows them.
const LONGEST_COVER: usize = 60;

pub(super) struct WrappedBody {
    pub(super) rows: Vec<BodyRow>,
    hidden: usize,
    first_hidden: usize,
}

pub(super) fn body(lines: &[VisibleLine], layout: QuestionLayout) -> WrappedBody {
    let room = layout.rows.unwrap_or(usize::MAX);
    let mut rows: Vec<BodyRow> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let left = room.saturating_sub(rows.len());
        let mut wrapped = wrap(&line.text, layout.width).enumerate();
        rows.extend(wrapped.by_ref().take(left).map(|(nth, text)| BodyRow {
            text: text.to_owned(),
            is_marked: line.is_marked,
            is_continued: nth > 0,
        }));
        if wrapped.next().is_some() {
            return WrappedBody { rows, hidden: lines.len() - index, first_hidden: index + 1 };
        }
    }
    WrappedBody { rows, hidden: 0, first_hidden: 0 }
}

/// The text of the body without the gutter, with every character visible.
pub fn visible_body(question: &PermissionQuestion) -> String {
    let lines: Vec<String> = visible_lines(question.body(), question.content()).map(|line| line.text).collect();
    lines.join("\n")
}

/// The maximum number of columns a character may take. Terminals disagree about
/// some, and a row that is too long would wrap without its gutter.
pub(super) fn columns(c: char) -> usize {
    c.width_cjk().max(c.width()).unwrap_or(2)
}

/// Truncates a line with an ellipsis if it does not fit.
fn truncated(line: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return line.to_owned() };
    if line.chars().map(columns).sum::<usize>() <= width {
        return line.to_owned();
    }
    let mut used = 1;
    let kept = line.chars().take_while(|c| {
        used += columns(*c);
        used <= width
    });
    kept.chain(std::iter::once('…')).collect()
}

/// Wraps a line into rows after the gutter. An empty line is one row.
fn wrap(line: &str, width: Option<usize>) -> impl Iterator<Item = &str> {
    let gutter = 2 + CONTINUED.chars().map(columns).sum::<usize>();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(gutter).max(1));
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut used = 0;
        // A character wider than the available space gets its own row.
        let cut = line.char_indices().find(|(at, c)| {
            used += columns(*c);
            used > room && *at > 0
        });
        let (row, after) = match cut {
            Some((at, _)) => line.split_at_checked(at).map_or((line, None), |(row, after)| (row, Some(after))),
            None => (line, None),
        };
        rest = after;
        Some(row)
    })
}
