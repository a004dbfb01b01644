//! What a tab shows of messages and blocks, as JSON.

use aside_core::event::Usage;
use aside_core::permission_question::{AnswerChoices, QuestionKind, QuestionLayout, escape_unsafe, render};
use aside_front::PendingQuestion;
use aside_front::command_result::command_lines;
use aside_front::diff_lines::{DiffLine, DiffScanner, changed, has_diff};
use aside_front::tool_call::CallState;
use aside_markdown::Node;
use serde::Serialize;

/// Lines of a tool's output that a tab gets at first.
const FIRST_LINES: usize = 400;
/// Bytes of a tool's output that a tab gets at first: a line may be long.
const FIRST_BYTES: usize = 64 << 10;

/// Whether a message or a block is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Progress {
    Running,
    Done,
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
    /// aside itself: a summary of older turns, or a request for the answer.
    Aside,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryView {
    pub id: i64,
    pub role: Speaker,
    pub at: Option<u64>,
    pub model: Option<String>,
    pub state: Progress,
    pub usage: Option<UsageView>,
    pub blocks: Vec<BlockView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageView {
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub reasoning: Option<u64>,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> UsageView {
        UsageView { input: usage.input, output: usage.output, reasoning: usage.reasoning }
    }
}

/// A block of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum BlockView {
    Thinking(ThinkingView),
    /// An answer.
    Text {
        nodes: Vec<Node>,
    },
    /// What the user wrote, shown as written.
    Prompt {
        text: String,
    },
    Call(CallView),
    Result(ResultView),
    /// An image, a document, or an item that has no neutral form.
    Other {
        label: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThinkingView {
    pub state: Progress,
    /// Of the running item; afterwards the first one.
    pub title: Option<String>,
    /// The first words, for a folded block without a title.
    pub words: String,
    pub started_at: Option<u64>,
    pub ended_at: Option<u64>,
    pub bytes: usize,
    /// An estimate.
    pub tokens: u64,
    /// How many bytes the provider hides.
    pub hidden_bytes: usize,
    /// The whole text; none if the tab has it or asks for it when it is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallView {
    pub call: String,
    pub name: String,
    /// The most informative argument, on one line.
    pub subject: String,
    /// All arguments, with every character visible.
    pub arguments: String,
    pub state: CallState,
    pub started_at: Option<u64>,
    pub ended_at: Option<u64>,
    /// What it has written so far, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputView>,
}

/// The newest output of a running command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutputView {
    /// The last lines; the first of them is whole.
    pub tail: String,
    pub n_lines: u64,
}

impl OutputView {
    pub(crate) fn new(tail: &str, n_lines: u64) -> OutputView {
        // A tail of all lines begins with the first one. Otherwise its first line may be cut.
        let is_all = tail.lines().count() as u64 >= n_lines;
        let whole = if is_all { tail } else { tail.split_once('\n').map_or(tail, |(_, rest)| rest) };
        OutputView { tail: whole.to_owned(), n_lines }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultView {
    pub call: String,
    pub state: CallState,
    pub lines: Vec<LineView>,
    /// How many lines are left out of `lines`.
    pub more: usize,
    pub n_lines: usize,
    /// How many lines a command wrote, without those that aside added.
    pub n_written: usize,
    pub added: usize,
    pub removed: usize,
}

/// A line of a tool's output or of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LineView {
    /// `+`, `-`, `@`, or a space inside a diff; empty for other text.
    pub sign: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    pub text: String,
}

/// How much of an output a tab gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    First,
    Whole,
}

pub(crate) fn result(call: &str, state: CallState, text: &str, extent: Extent) -> ResultView {
    let is_diff = has_diff(text);
    let mut scanner = DiffScanner::default();
    let (mut lines, mut n_lines, mut bytes) = (Vec::new(), 0, 0);
    for line in text.lines() {
        n_lines += 1;
        bytes += line.len();
        if extent == Extent::First && (lines.len() >= FIRST_LINES || bytes > FIRST_BYTES && !lines.is_empty()) {
            continue;
        }
        lines.push(if is_diff { diff_line(&mut scanner, line) } else { plain_line(line, extent) });
    }
    let (added, removed) = if is_diff { changed(text) } else { (0, 0) };
    let (more, n_written) = (n_lines - lines.len(), command_lines(text));
    ResultView { call: call.to_owned(), state, more, lines, n_lines, n_written, added, removed }
}

fn plain_line(line: &str, extent: Extent) -> LineView {
    let text = match extent {
        Extent::Whole => line.to_owned(),
        Extent::First => aside_core::json_text::split_within(line, FIRST_BYTES).0.to_owned(),
    };
    LineView { sign: "", number: None, text }
}

fn diff_line(scanner: &mut DiffScanner, line: &str) -> LineView {
    let code = || line.get(1..).unwrap_or("").to_owned();
    match scanner.line(line) {
        DiffLine::Added(number) => LineView { sign: "+", number, text: code() },
        DiffLine::Removed(number) => LineView { sign: "-", number, text: code() },
        DiffLine::Unchanged(number) => LineView { sign: " ", number: Some(number), text: code() },
        DiffLine::HunkHeader => LineView { sign: "@", number: None, text: line.to_owned() },
        DiffLine::Other => LineView { sign: "", number: None, text: line.to_owned() },
    }
}

/// A permission question with every character visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionView {
    pub id: u64,
    /// The id of the call.
    pub call: String,
    pub head: String,
    pub body: Vec<QuestionLine>,
    pub facts: Vec<String>,
    /// What a lasting answer would cover; none if there is no such answer.
    pub covers: Option<String>,
    /// What the answers mean.
    pub kind: QuestionKind,
    /// How many more milliseconds answers are ignored.
    pub wait_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuestionLine {
    pub text: String,
    /// It contains a character that is shown as a token.
    pub is_marked: bool,
    pub sign: &'static str,
}

impl QuestionView {
    pub(crate) fn new(question: &PendingQuestion, wait_ms: u64) -> QuestionView {
        let about = &question.about;
        let rendered = render(about, QuestionLayout::default());
        let is_diff = about.preview.as_deref().is_some_and(has_diff);
        let mut scanner = DiffScanner::default();
        let mut sign = |line: &str| match (is_diff, scanner.line(line)) {
            (true, DiffLine::Added(_)) => "+",
            (true, DiffLine::Removed(_)) => "-",
            (true, DiffLine::HunkHeader) => "@",
            (true, DiffLine::Unchanged(_) | DiffLine::Other) | (false, _) => "",
        };
        let body = rendered.body.iter().map(|row| QuestionLine {
            sign: sign(&row.text),
            text: row.text.clone(),
            is_marked: row.is_marked,
        });
        let lasting = AnswerChoices::new(about).offers_lasting();
        QuestionView {
            id: question.id.0,
            call: about.id.clone(),
            head: rendered.head.clone(),
            body: body.collect(),
            facts: rendered.facts.clone(),
            kind: about.kind,
            covers: about.rememberable_scope().filter(|_| lasting).map(|scope| escape_unsafe(&scope)),
            wait_ms,
        }
    }
}
