//! A tool needs the person's permission: the question, its answers, and the one
//! function that writes a question for every front end.
//!
//! What is approved must be what was read. So nothing of a question is ever
//! taken out: a character that would not be seen, or that a terminal would obey,
//! is shown as a token in its place, and the line it stands in is marked.

use std::fmt;

use unicode_width::UnicodeWidthChar;

use crate::screen::is_harmless;

/// Something that needs the person's permission before it is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The id of the tool call it is about.
    pub id: String,
    pub tool: String,
    /// What it is about: a path, a command.
    pub subject: String,
    pub risk: Risk,
    /// The command, the whole diff or the arguments, to be read before the answer.
    pub preview: Option<String>,
    /// What a yes for the session or the project would cover, as a key of
    /// `[permissions]`. None where every call asks again.
    pub covers: Option<String>,
    /// How the process it starts is confined. None if it starts none.
    pub confinement: Option<Confinement>,
    /// The protected path that it would change.
    pub protected: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    Reads,
    Writes,
    Runs,
    /// Reaches beyond the working directory, which always asks.
    Outside,
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permit {
    Once,
    /// For everything like it in this session.
    Session,
    /// For everything like it in this project, from now on.
    Project,
    /// No, with a message to the model if the person wrote one.
    No(Option<String>),
    /// There is nobody to ask, which is a no.
    Nobody,
}

impl Permit {
    /// As `ask --json` prints it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Permit::Once => "once",
            Permit::Session => "session",
            Permit::Project => "project",
            Permit::No(_) => "no",
            Permit::Nobody => "nobody",
        }
    }
}

/// How well a process is confined. The later, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    None,
    /// macOS's own sandbox.
    Seatbelt,
    /// Landlock and seccomp.
    Kernel,
    /// bubblewrap, with its own view of the file system.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Off,
    On,
}

/// What holds for one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub tier: Tier,
    pub network: Network,
    /// What this tier cannot prevent here, such as `can signal your processes`.
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

impl Question {
    /// With nothing to look at and no answer that holds on.
    pub fn new(tool: impl Into<String>, subject: impl Into<String>, risk: Risk) -> Question {
        let (tool, subject) = (tool.into(), subject.into());
        Question {
            id: String::new(),
            tool,
            subject,
            risk,
            preview: None,
            covers: None,
            confinement: None,
            protected: None,
        }
    }

    /// The path outside the working directory that it is about.
    pub fn outside(&self) -> Option<&str> {
        match self.risk {
            Risk::Outside => Some(&self.subject),
            Risk::Reads | Risk::Writes | Risk::Runs => None,
        }
    }

    /// What is read line by line. A command is its own preview.
    fn body(&self) -> &str {
        self.preview.as_deref().unwrap_or(&self.subject)
    }

    fn content(&self) -> Content {
        match self.risk {
            Risk::Runs => Content::Command,
            Risk::Reads | Risk::Writes | Risk::Outside => Content::File,
        }
    }

    /// Whether something in it had to be made visible. Such a question is asked
    /// every time: no answer to it holds on.
    pub fn is_marked(&self) -> bool {
        let has_marks = |text: &str, content| visible_lines(text, content).any(|line| line.is_marked);
        has_marks(&self.tool, Content::Command)
            || has_marks(&self.subject, Content::Command)
            || has_marks(self.body(), self.content())
    }

    /// What a longer yes would cover, where one may be offered.
    pub fn offered_cover(&self) -> Option<String> {
        let covers = self.covers.clone()?;
        (!self.is_marked() && !covers.contains(is_invisible)).then_some(covers)
    }
}

/// An answer that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Once,
    Session,
    Project,
    No,
    /// No, with a message to the model.
    Message,
}

impl Choice {
    /// The key that chooses it at once.
    pub fn key(self) -> char {
        match self {
            Choice::Once => 'y',
            Choice::Session => 's',
            Choice::Project => 'p',
            Choice::No => 'n',
            Choice::Message => 'w',
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Choice::Once => "once",
            Choice::Session => "this session",
            Choice::Project => "this project",
            Choice::No => "no",
            Choice::Message => "no, and why",
        }
    }
}

/// The answers a question offers, and the one that is selected. None is at
/// first: Enter alone says nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choices {
    offered: Vec<Choice>,
    selected: Option<usize>,
}

impl Choices {
    pub fn new(question: &Question) -> Choices {
        let longer = question.offered_cover().map(|_| [Choice::Session, Choice::Project]);
        let longer = longer.into_iter().flatten();
        let offered = std::iter::once(Choice::Once).chain(longer).chain([Choice::No, Choice::Message]);
        Choices { offered: offered.collect(), selected: None }
    }

    /// Takes out the answers that hold on: what they cover cannot be shown.
    pub fn without_lasting(&mut self) {
        self.offered.retain(|choice| !matches!(choice, Choice::Session | Choice::Project));
        self.selected = None;
    }

    pub fn offers_lasting(&self) -> bool {
        self.offered.contains(&Choice::Session)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Choice, Selected)> + '_ {
        let is_selected = |at| if self.selected == Some(at) { Selected::Yes } else { Selected::No };
        self.offered.iter().enumerate().map(move |(at, choice)| (*choice, is_selected(at)))
    }

    /// The one this key chooses, if it is offered.
    pub fn by_key(&self, key: char) -> Option<Choice> {
        self.offered.iter().copied().find(|choice| choice.key() == key.to_ascii_lowercase())
    }

    pub fn selected(&self) -> Option<Choice> {
        self.selected.and_then(|at| self.offered.get(at)).copied()
    }

    pub fn select_next(&mut self) {
        self.selected = Some(self.selected.map_or(0, |at| (at + 1) % self.offered.len().max(1)));
    }

    pub fn select_previous(&mut self) {
        let last = self.offered.len().saturating_sub(1);
        self.selected = Some(self.selected.map_or(last, |at| at.checked_sub(1).unwrap_or(last)));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    Yes,
    No,
}

/// How long after a question is on the screen a key is not taken for its answer:
/// whoever pressed it had not read it.
pub const TOO_EARLY_MS: u64 = 500;

/// What kind of text a line belongs to. In a file, tabs and CRLF line ends are
/// shown but say nothing about the writer; in a command they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Command,
    File,
}

/// How much room there is. `None` is for text that is not shown on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    pub width: Option<usize>,
    /// Rows of the command or diff.
    pub rows: Option<usize>,
}

/// A question in words, without its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// `TOOL: FIRST LINE`.
    pub head: String,
    pub body: Vec<BodyRow>,
    /// The tier, the paths, and what is not shown, a line each.
    pub facts: Vec<String>,
    /// Lines of the body that are not shown whole.
    pub hidden: usize,
    /// What an answer that holds on would cover, on one line; none where there is
    /// no such answer.
    pub covers: Option<String>,
}

/// A row of a command or diff. It stands behind a gutter, so that no text in it
/// can pass for a line of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyRow {
    pub text: String,
    /// The line has a character in it that is shown as a token.
    pub is_marked: bool,
    /// The line began in a row above.
    pub is_continued: bool,
}

/// What a row begins with that goes on with the line above it.
const CONTINUED: &str = "↪ ";

impl BodyRow {
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

impl Rendered {
    /// All of it, a line each.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let body = self.body.iter().map(BodyRow::to_string);
        std::iter::once(self.head.clone()).chain(body).chain(self.facts.iter().cloned())
    }
}

/// The question as every front end shows it.
pub fn render(question: &Question, layout: Layout) -> Rendered {
    let subject = question.subject.split('\n').next().unwrap_or_default();
    let whole_head = format!("{}: {}", visible(&question.tool), visible(subject));
    let head = fit(&whole_head, layout.width);
    let mut lines: Vec<VisibleLine> = Vec::new();
    // A subject that does not fit its line is read in the gutter.
    let is_cut = head != whole_head || question.subject.contains('\n');
    if is_cut && question.body() != question.subject {
        lines.extend(visible_lines(&question.subject, Content::Command));
    }
    // A path alone is read in the head.
    if is_cut || question.preview.is_some() || question.risk == Risk::Runs || question.is_marked() {
        lines.extend(visible_lines(question.body(), question.content()));
    }
    let Body { rows, hidden, first_hidden } = body(&lines, layout);
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
        facts.push(format!("{hidden} lines not shown (v shows all), from line {first_hidden} on"));
    }
    let facts = facts.iter().map(|fact| fit(fact, layout.width)).collect();
    Rendered { head, body: rows, facts, hidden, covers: covers(question, layout.width) }
}

/// The command itself is not written a second time, outside of its gutter: long
/// enough, it would push the question off the screen and put another in its place.
fn covers(question: &Question, width: Option<usize>) -> Option<String> {
    let covers = question.offered_cover()?;
    let line = format!("s and p cover `{covers}`");
    let is_short = covers.chars().count() <= LONGEST_COVER && fit(&line, width) == line;
    Some(if is_short { line } else { fit("s and p cover exactly this", width) })
}

/// Longer ones are told from the question itself.
const LONGEST_COVER: usize = 60;

struct Body {
    rows: Vec<BodyRow>,
    hidden: usize,
    first_hidden: usize,
}

fn body(lines: &[VisibleLine], layout: Layout) -> Body {
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
            return Body { rows, hidden: lines.len() - index, first_hidden: index + 1 };
        }
    }
    Body { rows, hidden: 0, first_hidden: 0 }
}

/// Every line of a text with all of its characters visible, for a question that
/// is shown whole.
pub fn whole_body(question: &Question, width: Option<usize>) -> Vec<BodyRow> {
    let lines: Vec<VisibleLine> = visible_lines(question.body(), question.content()).collect();
    body(&lines, Layout { width, rows: None }).rows
}

/// The text of the body, without gutter, with every character visible.
pub fn visible_body(question: &Question) -> String {
    let lines: Vec<String> = visible_lines(question.body(), question.content()).map(|line| line.text).collect();
    lines.join("\n")
}

struct VisibleLine {
    text: String,
    is_marked: bool,
}

fn visible_lines(text: &str, content: Content) -> impl Iterator<Item = VisibleLine> + '_ {
    // What ends with a line end has no empty line behind it.
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.split('\n').map(move |line| {
        let (shown, counted) = match (content, line.strip_suffix('\r')) {
            (Content::File, Some(before)) => (line, before),
            (Content::Command, _) | (Content::File, None) => (line, line),
        };
        let says_something = |c: char| is_invisible(c) && !(content == Content::File && c == '\t');
        VisibleLine { text: visible(shown), is_marked: counted.chars().any(says_something) }
    })
}

/// A text on one line with nothing in it that cannot be seen. A line end is
/// shown too.
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

/// A text with tokens for what a terminal would obey or be deceived by, for
/// places where the rest may stay as it is.
pub fn spelled_out(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match is_harmless(c) {
            true => shown.push(c),
            false => shown.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
        shown
    })
}

/// Controls, format characters, separators other than the space, and everything
/// else that is drawn as nothing or as a blank.
pub fn is_invisible(c: char) -> bool {
    match c {
        // Cc.
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        ' '..='~' => false,
        // Zs other than the space, which a shell does not take for one; the
        // ideographic space is wide enough to be seen in its own script.
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

/// Columns a character may take. Terminals disagree about some; the most counts,
/// since a row that is too long would go on without its gutter.
fn columns(c: char) -> usize {
    c.width_cjk().max(c.width()).unwrap_or(2)
}

/// Cut with a mark where it does not fit.
fn fit(line: &str, width: Option<usize>) -> String {
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

/// The rows of a line behind its gutter; an empty line is a row too.
fn wrap(line: &str, width: Option<usize>) -> impl Iterator<Item = &str> {
    let gutter = 2 + CONTINUED.chars().map(columns).sum::<usize>();
    let room = width.map_or(usize::MAX, |width| width.saturating_sub(gutter).max(1));
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let mut used = 0;
        // A character that is wider than all there is stands alone.
        let cut = line.char_indices().find(|(at, c)| {
            used += columns(*c);
            used > room && *at > 0
        });
        let (row, behind) = match cut {
            Some((at, _)) => line.split_at_checked(at).map_or((line, None), |(row, behind)| (row, Some(behind))),
            None => (line, None),
        };
        rest = behind;
        Some(row)
    })
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
