//! Permission questions: the question, its answers, and the rendering that
//! every front end shares.
//!
//! The user must see exactly what they approve. So nothing in a question is
//! ever removed: invisible characters and terminal controls are shown as
//! visible tokens, and the lines that contain them are marked.

use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthChar;

use crate::terminal_text::is_terminal_safe;

/// An action that needs the user's permission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionQuestion {
    /// The id of the tool call.
    pub id: String,
    /// The name of the tool.
    pub tool: String,
    /// What the action is about, such as a path or a command.
    pub subject: String,
    /// What could go wrong.
    pub risk: Risk,
    /// The command, the full diff or the arguments, to be reviewed before
    /// answering.
    pub preview: Option<String>,
    /// What a yes for the session or the project would cover, as a key of
    /// `[permissions]`. None if every call must ask again.
    pub covers: Option<String>,
    /// How the started process is confined. None if the action starts no
    /// process.
    pub confinement: Option<Confinement>,
    /// The protected path that the action would change.
    pub protected: Option<String>,
    /// The whole change of a file, for front ends that show diffs themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<ProposedChange>,
    /// What the answers mean.
    #[serde(default, skip_serializing_if = "QuestionKind::is_permission")]
    pub kind: QuestionKind,
}

/// What a question is about. It decides the answers and their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuestionKind {
    /// Whether an action is allowed.
    #[default]
    Permission,
    /// Whether `/undo` puts files back, too. A no undoes only the conversation.
    Undo,
    /// Whether the instructions of a folder are sent to the model. A yes is remembered.
    Trust,
}

/// A file before and after an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProposedChange {
    /// The absolute path.
    pub path: String,
    /// The text before. None if there is no such file, or it is not text.
    pub before: Option<String>,
    /// The text afterwards.
    pub after: String,
}

/// The kind of access that an action needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Risk {
    /// Reads inside the working directory.
    Reads,
    /// Changes files inside the working directory.
    Writes,
    /// Starts a process.
    Runs,
    /// Accesses something outside the working directory, which always asks.
    Outside,
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "camelCase")]
pub enum PermissionAnswer {
    /// Yes, for this action only.
    Once,
    /// For all similar actions in this session.
    Session,
    /// For all similar actions in this project, from now on.
    Project,
    /// No, with an optional message to the model.
    No(Option<String>),
    /// No user can be asked, which counts as a no.
    Nobody,
}

impl PermissionAnswer {
    /// As `ask --json` prints it.
    pub fn as_str(&self) -> &'static str {
        match self {
            PermissionAnswer::Once => "once",
            PermissionAnswer::Session => "session",
            PermissionAnswer::Project => "project",
            PermissionAnswer::No(_) => "no",
            PermissionAnswer::Nobody => "nobody",
        }
    }
}

/// How well a process is confined. Later tiers are stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tier {
    /// Not confined.
    None,
    /// The sandbox of macOS.
    Seatbelt,
    /// Landlock and seccomp.
    Kernel,
    /// bubblewrap, with a separate view of the file system.
    Strong,
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tier::None => "none",
            Tier::Seatbelt => "seatbelt",
            Tier::Kernel => "kernel",
            Tier::Strong => "strong",
        })
    }
}

/// Whether a process may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// Connections are blocked.
    Off,
    /// Connections are allowed.
    On,
}

/// How one process is confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Confinement {
    /// The mechanism that confines it.
    pub tier: Tier,
    /// Whether it may use the network.
    pub network: Network,
    /// What this tier cannot prevent on this machine, such as `can signal your
    /// processes`.
    pub warnings: Vec<String>,
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = match self.network {
            Network::Off => "network off",
            Network::On => "network on",
        };
        write!(f, "{} ({network})", self.tier)?;
        self.warnings.iter().try_for_each(|warning| write!(f, ", {warning}"))
    }
}

impl PermissionQuestion {
    /// Without a preview and without lasting answers.
    pub fn new(tool: impl Into<String>, subject: impl Into<String>, risk: Risk) -> PermissionQuestion {
        let (tool, subject) = (tool.into(), subject.into());
        PermissionQuestion {
            id: String::new(),
            tool,
            subject,
            risk,
            preview: None,
            covers: None,
            confinement: None,
            protected: None,
            change: None,
            kind: QuestionKind::Permission,
        }
    }

    /// The path outside the working directory, if there is one.
    pub fn outside(&self) -> Option<&str> {
        match self.risk {
            Risk::Outside => Some(&self.subject),
            Risk::Reads | Risk::Writes | Risk::Runs => None,
        }
    }

    /// The text shown line by line. A command is its own preview.
    fn body(&self) -> &str {
        self.preview.as_deref().unwrap_or(&self.subject)
    }

    fn content(&self) -> BodyKind {
        match self.risk {
            Risk::Runs => BodyKind::Command,
            Risk::Reads | Risk::Writes | Risk::Outside => BodyKind::File,
        }
    }

    /// Whether it contains characters that had to be made visible. Such a
    /// question is always asked again: it offers no lasting answer.
    pub fn is_marked(&self) -> bool {
        let has_marks = |text: &str, content| visible_lines(text, content).any(|line| line.is_marked);
        has_marks(&self.tool, BodyKind::Command)
            || has_marks(&self.subject, BodyKind::Command)
            || has_marks(self.body(), self.content())
    }

    /// The rule that a lasting answer would remember, if one may be offered.
    pub fn rememberable_scope(&self) -> Option<String> {
        let covers = self.covers.clone()?;
        (!self.is_marked() && !covers.contains(is_invisible)).then_some(covers)
    }
}

/// An answer the user can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerChoice {
    /// Yes, for this action only.
    Once,
    /// Yes, for similar actions of this session.
    Session,
    /// Yes, for similar actions in this project.
    Project,
    /// No, without a message.
    No,
    /// No, with a message to the model.
    Message,
}

impl AnswerChoice {
    /// The key that selects it directly.
    pub fn key(self) -> char {
        match self {
            AnswerChoice::Once => 'y',
            AnswerChoice::Session => 's',
            AnswerChoice::Project => 'p',
            AnswerChoice::No => 'n',
            AnswerChoice::Message => 'w',
        }
    }

    /// The words on its button.
    pub fn label(self, kind: QuestionKind) -> &'static str {
        match (kind, self) {
            (QuestionKind::Undo, AnswerChoice::Once | AnswerChoice::Session | AnswerChoice::Project) => "the files too",
            (QuestionKind::Undo, AnswerChoice::No | AnswerChoice::Message) => "only the conversation",
            (QuestionKind::Trust, AnswerChoice::Once | AnswerChoice::Session | AnswerChoice::Project) => "from now on",
            (QuestionKind::Trust, AnswerChoice::No | AnswerChoice::Message) => "no",
            (QuestionKind::Permission, AnswerChoice::Once) => "once",
            (QuestionKind::Permission, AnswerChoice::Session) => "this session",
            (QuestionKind::Permission, AnswerChoice::Project) => "this project",
            (QuestionKind::Permission, AnswerChoice::No) => "no",
            (QuestionKind::Permission, AnswerChoice::Message) => "no, and why",
        }
    }
}

impl QuestionKind {
    fn is_permission(&self) -> bool {
        *self == QuestionKind::Permission
    }

    /// What the key does that stops.
    pub fn stop_label(self) -> &'static str {
        match self {
            QuestionKind::Permission | QuestionKind::Trust => "stops",
            QuestionKind::Undo => "undoes nothing",
        }
    }
}

/// The answers a question offers, and the selected one. Initially none is
/// selected, so that Enter alone does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerChoices {
    kind: QuestionKind,
    offered: Vec<AnswerChoice>,
    selected: Option<usize>,
}

impl AnswerChoices {
    /// The answers that fit a question. Unsafe text gets no lasting ones.
    pub fn new(question: &PermissionQuestion) -> AnswerChoices {
        let longer = question.rememberable_scope().map(|_| [AnswerChoice::Session, AnswerChoice::Project]);
        let longer = longer.into_iter().flatten();
        let offered = match question.kind {
            QuestionKind::Permission => std::iter::once(AnswerChoice::Once)
                .chain(longer)
                .chain([AnswerChoice::No, AnswerChoice::Message])
                .collect(),
            QuestionKind::Undo | QuestionKind::Trust => vec![AnswerChoice::Once, AnswerChoice::No],
        };
        AnswerChoices { kind: question.kind, offered, selected: None }
    }

    /// What the question is about.
    pub fn kind(&self) -> QuestionKind {
        self.kind
    }

    /// Removes the lasting answers, because what they cover cannot be shown.
    pub fn remove_lasting(&mut self) {
        self.offered.retain(|choice| !matches!(choice, AnswerChoice::Session | AnswerChoice::Project));
        self.selected = None;
    }

    /// Whether a lasting yes can be chosen.
    pub fn offers_lasting(&self) -> bool {
        self.offered.contains(&AnswerChoice::Session)
    }

    /// The offered answers in order.
    pub fn iter(&self) -> impl Iterator<Item = (AnswerChoice, Selected)> + '_ {
        let is_selected = |at| if self.selected == Some(at) { Selected::Yes } else { Selected::No };
        self.offered.iter().enumerate().map(move |(at, choice)| (*choice, is_selected(at)))
    }

    /// The answer for a key, if it is offered.
    pub fn by_key(&self, key: char) -> Option<AnswerChoice> {
        self.offered.iter().copied().find(|choice| choice.key() == key.to_ascii_lowercase())
    }

    /// The answer that Enter would give. None if none is selected.
    pub fn selected(&self) -> Option<AnswerChoice> {
        self.selected.and_then(|at| self.offered.get(at)).copied()
    }

    /// Selects the next answer, the first after the last.
    pub fn select_next(&mut self) {
        self.selected = Some(self.selected.map_or(0, |at| (at + 1) % self.offered.len().max(1)));
    }

    /// Selects the answer before, the last before the first.
    pub fn select_previous(&mut self) {
        let last = self.offered.len().saturating_sub(1);
        self.selected = Some(self.selected.map_or(last, |at| at.checked_sub(1).unwrap_or(last)));
    }
}

/// Whether an answer is the selected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    /// Enter would choose it.
    Yes,
    /// Another one is selected, or none.
    No,
}

/// How long keys are ignored after a question appears, because the user cannot
/// have read it yet.
pub const IGNORE_KEYS_MS: u64 = 500;

/// The kind of text in the body. In a file, tabs and CRLF line ends are shown
/// but not marked; in a command they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Command,
    File,
}

/// The available space. `None` for output that is not a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuestionLayout {
    /// Columns of the whole question.
    pub width: Option<usize>,
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
    let head = truncated(&whole_head, layout.width);
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
    let line = format!("s and p also allow `{covers}`");
    let is_short = covers.chars().count() <= LONGEST_COVER && truncated(&line, width) == line;
    Some(if is_short { line } else { truncated("s and p also allow exactly this", width) })
}

/// Longer ones are not repeated, since the question shows them.
const LONGEST_COVER: usize = 60;

struct WrappedBody {
    rows: Vec<BodyRow>,
    hidden: usize,
    first_hidden: usize,
}

fn body(lines: &[VisibleLine], layout: QuestionLayout) -> WrappedBody {
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

struct VisibleLine {
    text: String,
    is_marked: bool,
}

fn visible_lines(text: &str, content: BodyKind) -> impl Iterator<Item = VisibleLine> + '_ {
    // A final line end does not start another line.
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(move |line| {
        let (shown, counted) = match (content, line.strip_suffix('\r')) {
            (BodyKind::File, Some(before)) => (line, before),
            (BodyKind::Command, _) | (BodyKind::File, None) => (line, line),
        };
        let is_suspicious = |c: char| is_invisible(c) && !(content == BodyKind::File && c == '\t');
        VisibleLine { text: visible(shown), is_marked: counted.chars().any(is_suspicious) }
    })
}

/// A text on one line, with invisible characters and line ends shown as tokens.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{0}'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            '\u{7f}' => shown.push('\u{2421}'),
            c if is_invisible(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

/// Replaces only the characters that a terminal would interpret or that could
/// deceive the user.
pub fn escape_unsafe(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match is_terminal_safe(c) {
            true => shown.push(c),
            false => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
        shown
    })
}

/// Control and format characters, separators other than the space, and
/// everything else that is drawn as nothing or as a blank.
pub fn is_invisible(c: char) -> bool {
    match c {
        // Cc.
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        ' '..='~' => false,
        // Zs other than the space, which a shell does not treat as a space. The
        // ideographic space is wide enough to be visible in its own script.
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' => true,
        // Zl and Zp.
        '\u{2028}' | '\u{2029}' => true,
        // Cf.
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}' | '\u{891}' | '\u{8e2}' => {
            true
        }
        '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        // Letters and marks that are drawn as nothing: fillers, joiners,
        // variation selectors, the empty braille cell.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180d}' | '\u{180f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' => true,
        _ => false,
    }
}

/// The maximum number of columns a character may take. Terminals disagree about
/// some, and a row that is too long would wrap without its gutter.
fn columns(c: char) -> usize {
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

#[cfg(test)]
#[path = "permission_question_tests.rs"]
mod tests;
