//! Rules of permission, as they stand in `[permissions]`.
//!
//! Those about commands keep honest mistakes away. They are a seat belt, not a
//! wall: a command can be written in more ways than a rule can name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use aside_core::question::is_invisible;

use super::command::{Clarity, Command, spellings};
use super::names::{SERVER_MARK, server_pattern};
use crate::tools::{Risk, Target};

/// The tool whose subject is a command line.
const SHELL: &str = "shell";

/// What is done about something that needs permission. The later, the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// All rules of a session. One that denies a pattern wins over all that allow.
/// Else a rule with a pattern comes before a bare one, which is the default of
/// its tool; the more specific pattern counts, and of equals the strictest.
/// The second list has those that open the network too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>, Vec<Rule>);

/// `tool` or `tool:subject`; in both, `*` stands for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    tool: String,
    subject: Subject,
    verdict: Verdict,
    by: By,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Any,
    Like(String),
    Exactly(String),
}

/// A yes that the user gave when asked outweighs a general rule to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Config,
    Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("unknown verdict `{0}`; use allow, ask or deny")]
    Verdict(String),
    #[error("`{0}` names no tool; use `tool` or `tool:pattern`, such as `shell:git status*`")]
    Key(String),
}

impl Rules {
    pub fn new() -> Rules {
        Rules::default()
    }

    /// Adds `key = "word"` of `[permissions]`.
    pub fn add(&mut self, key: &str, word: &str) -> Result<(), RuleError> {
        self.0.push(Rule::parse(key, word.parse()?)?);
        Ok(())
    }

    /// Lets every tool of a server be used without a question, unless a rule
    /// names one of them.
    pub fn trust_server(&mut self, server: &str) {
        let tool = server_pattern(server);
        self.0.push(Rule { tool, subject: Subject::Any, verdict: Verdict::Allow, by: By::Config });
    }

    /// Adds a rule that switches network on for what it allows.
    pub fn add_with_network(&mut self, key: &str) -> Result<(), RuleError> {
        let rule = Rule::parse(key, Verdict::Allow)?;
        self.0.push(rule.clone());
        self.1.push(rule);
        Ok(())
    }

    /// Whether rules with network allow all of this.
    pub(crate) fn opens_network(&self, tool: &str, subject: &str, risk: Risk) -> bool {
        strictest(&self.1, tool, subject, risk).0 == Verdict::Allow
    }

    /// Files and folders that may not be read, as far as a rule names one: commands
    /// do not get to read them either, where that can be held.
    pub fn unreadable(&self, root: &Path) -> Vec<PathBuf> {
        let denied = self.0.iter().filter(|rule| rule.verdict == Verdict::Deny && rule.tool == "read");
        let path = |rule: &Rule| match &rule.subject {
            Subject::Exactly(path) => Some(root.join(path)),
            Subject::Like(pattern) => {
                let folder = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*"))?;
                (!folder.contains('*')).then(|| root.join(folder))
            }
            Subject::Any => None,
        };
        denied.filter_map(path).collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// What becomes of it, and by which rule if there is one.
    pub(crate) fn judge<'a>(&'a self, answers: &'a [Rule], tool: &str, target: &Target) -> (Verdict, Option<&'a Rule>) {
        let judged = self.judge_alone(answers, tool, target);
        match (judged.0, reveals(tool)) {
            (Verdict::Allow | Verdict::Ask, true) => {
                let reading = Target { risk: as_reading(target.risk), ..target.clone() };
                let read = self.judge_alone(&[], "read", &reading);
                if read.0 > judged.0 { read } else { judged }
            }
            (Verdict::Deny, _) | (Verdict::Allow | Verdict::Ask, false) => judged,
        }
    }

    fn judge_alone<'a>(&'a self, answers: &'a [Rule], tool: &str, target: &Target) -> (Verdict, Option<&'a Rule>) {
        if let Some(rule) = self.denying(tool, &target.subject, target.path.as_deref()) {
            return (Verdict::Deny, Some(rule));
        }
        let (subject, risk) = (target.subject.as_str(), target.risk);
        let (verdict, rule) = strictest(&self.0, tool, subject, risk);
        match (verdict, risk) {
            (Verdict::Deny, _) => (verdict, rule),
            (Verdict::Allow | Verdict::Ask, Risk::Outside) => (Verdict::Ask, None),
            (Verdict::Allow, Risk::Reads | Risk::Writes | Risk::Runs) => (verdict, rule),
            (Verdict::Ask, Risk::Reads | Risk::Writes | Risk::Runs) => {
                strictest(self.0.iter().chain(answers), tool, subject, risk)
            }
        }
    }

    /// The rule with a pattern that denies this, if there is one. A path is
    /// known by its name below the working directory and by its whole path.
    fn denying(&self, tool: &str, subject: &str, path: Option<&str>) -> Option<&Rule> {
        let mut rules = self.0.iter().filter(|rule| rule.verdict == Verdict::Deny && rule.is_about(tool)).peekable();
        rules.peek()?;
        let command = command_of(tool, subject);
        let mut names: Vec<String> = vec![command.text.to_owned()];
        names.extend(path.map(str::to_owned));
        if tool == SHELL {
            names.extend(command.parts.iter().flat_map(|part| spellings(part)));
            names.extend(command.parts.iter().map(|part| (*part).to_owned()));
        }
        rules.find(|rule| names.iter().any(|name| rule.subject.is_like(name) || rule.subject.is_like_folded(name)))
    }

    /// The rule that forbids one of these tools to show a file, if there is one.
    pub(crate) fn forbids(&self, tools: &[&str], name: &str, path: &str) -> Option<&Rule> {
        tools.iter().find_map(|tool| {
            let (verdict, rule) = strictest(&self.0, tool, name, Risk::Reads);
            self.denying(tool, name, Some(path)).or_else(|| rule.filter(|_| verdict == Verdict::Deny))
        })
    }

    /// Whether a tool may show what stands in this file without a question.
    pub(crate) fn lets_be_read(&self, tool: &str, name: &str, path: &str) -> bool {
        let allowed = |tool: &&str| strictest(&self.0, tool, name, Risk::Reads).0 == Verdict::Allow;
        self.forbids(&["read", tool], name, path).is_none() && ["read", tool].iter().all(allowed)
    }

    /// Whether a rule without a star allows exactly this.
    pub(crate) fn allows_exactly(&self, tool: &str, target: &Target) -> bool {
        let is_it = |subject: &Subject| match subject {
            Subject::Exactly(subject) => *subject == target.subject || Some(subject) == target.path.as_ref(),
            Subject::Any | Subject::Like(_) => false,
        };
        let mut rules = self.0.iter().filter(|rule| rule.verdict == Verdict::Allow && rule.names(tool));
        rules.any(|rule| is_it(&rule.subject))
    }
}

/// Tools whose rules hold for this one too.
fn governed_by(tool: &str) -> &'static [&'static str] {
    match tool {
        "edit" => &["write"],
        _ => &[],
    }
}

/// Whether what a tool answers shows what stood in the file.
fn reveals(tool: &str) -> bool {
    tool == "edit"
}

fn as_reading(risk: Risk) -> Risk {
    match risk {
        Risk::Outside => Risk::Outside,
        Risk::Reads | Risk::Writes | Risk::Runs => Risk::Reads,
    }
}

fn command_of<'a>(tool: &str, subject: &'a str) -> Command<'a> {
    if tool == SHELL { Command::parse(subject) } else { Command::plain(subject) }
}

/// Characters that a reader does not see, or that a terminal obeys. A command
/// may have several lines; any other subject is one.
fn has_hidden(tool: &str, subject: &str) -> bool {
    subject.chars().any(|c| is_invisible(c) && !(c == '\n' && tool == SHELL))
}

/// A command of several parts is as dangerous as the worst of them.
fn strictest<'a>(
    rules: impl IntoIterator<Item = &'a Rule> + Clone,
    tool: &str,
    subject: &str,
    risk: Risk,
) -> (Verdict, Option<&'a Rule>) {
    // Arguments of a server's tool may well hold such characters; they matter
    // only where a rule is about the arguments.
    let hidden = has_hidden(tool, subject);
    let is_server_tool = tool.contains(SERVER_MARK);
    let subject = command_of(tool, subject);
    let judge = |part: &&str| {
        let fitting = rules.clone().into_iter().filter(|rule| rule.fits(tool, &subject, part));
        let fitting = fitting.filter(|rule| {
            !hidden || rule.verdict != Verdict::Allow || (is_server_tool && rule.subject == Subject::Any)
        });
        match fitting.max_by_key(|rule| rule.rank(tool)) {
            Some(rule) => (rule.verdict, Some(rule)),
            None => (usual(risk), None),
        }
    };
    let judged = subject.parts.iter().map(judge).max_by_key(|(verdict, _)| *verdict);
    judged.unwrap_or((usual(risk), None))
}

/// Without a rule.
fn usual(risk: Risk) -> Verdict {
    match risk {
        Risk::Reads => Verdict::Allow,
        Risk::Writes | Risk::Runs | Risk::Outside => Verdict::Ask,
    }
}

impl Rule {
    fn parse(key: &str, verdict: Verdict) -> Result<Rule, RuleError> {
        let (tool, subject) = match key.split_once(':') {
            None => (key, None),
            Some((tool, subject)) => (tool, Some(subject.trim())),
        };
        let tool = tool.trim().to_owned();
        if tool.is_empty() || subject == Some("") {
            return Err(RuleError::Key(key.to_owned()));
        }
        let subject = match subject {
            None => Subject::Any,
            Some(pattern) if pattern.contains('*') => Subject::Like(pattern.to_owned()),
            Some(exact) => Subject::Exactly(exact.to_owned()),
        };
        Ok(Rule { tool, subject, verdict, by: By::Config })
    }

    /// What the user allowed when asked.
    pub(crate) fn answer(tool: &str, subject: Option<&str>) -> Rule {
        let subject = subject.map_or(Subject::Any, |subject| Subject::Exactly(subject.to_owned()));
        Rule { tool: tool.to_owned(), subject, verdict: Verdict::Allow, by: By::Answer }
    }

    pub(super) fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn is_about(&self, tool: &str) -> bool {
        like(&self.tool, tool) || governed_by(tool).iter().any(|other| self.by == By::Config && like(&self.tool, other))
    }

    /// Without a star.
    fn names(&self, tool: &str) -> bool {
        self.tool == tool || governed_by(tool).contains(&self.tool.as_str())
    }

    fn fits(&self, tool: &str, whole: &Command<'_>, part: &str) -> bool {
        if !self.is_about(tool) {
            return false;
        }
        let plain = whole.clarity == Clarity::Plain;
        match (&self.subject, self.verdict, self.by) {
            (Subject::Any, _, _) => true,
            // What the user said yes to is the whole line, not a part of another.
            (Subject::Exactly(subject), Verdict::Allow, By::Answer) => {
                subject == whole.text && whole.clarity != Clarity::Opaque
            }
            (Subject::Exactly(subject), Verdict::Allow, By::Config) => {
                (subject == whole.text && whole.clarity != Clarity::Opaque) || (plain && subject == part)
            }
            // What is allowed for a command says nothing of what hides in it.
            (Subject::Like(pattern), Verdict::Allow, _) => plain && like(pattern, part),
            (Subject::Exactly(_) | Subject::Like(_), Verdict::Ask | Verdict::Deny, _) => {
                self.subject.is_like(part) || self.subject.is_like(whole.text)
            }
        }
    }

    /// How specific it is; among equals the strict one, but an answer of the
    /// user comes before a rule that only says to ask.
    fn rank(&self, tool: &str) -> (u8, usize, u8, usize, u8) {
        let literal = |pattern: &str| pattern.chars().filter(|c| *c != '*').count();
        let (kind, length) = match &self.subject {
            Subject::Any => (0, 0),
            Subject::Like(pattern) => (1, literal(pattern)),
            Subject::Exactly(_) => (2, 0),
        };
        let of_the_tool = match self.tool == tool {
            true => 2,
            false => u8::from(self.names(tool)),
        };
        let weight = match (self.by, self.verdict) {
            (By::Config, Verdict::Allow) => 0,
            (By::Config, Verdict::Ask) => 1,
            (By::Answer, _) => 2,
            (By::Config, Verdict::Deny) => 3,
        };
        (kind, length, of_the_tool, literal(&self.tool), weight)
    }
}

/// Where two cases of a name are one file, a rule about one is about both.
const FOLDS_CASE: bool = cfg!(target_os = "macos");

impl Subject {
    fn is_like_folded(&self, text: &str) -> bool {
        FOLDS_CASE
            && match self {
                Subject::Any => false,
                Subject::Like(pattern) | Subject::Exactly(pattern) => {
                    like(&pattern.to_lowercase(), &text.to_lowercase())
                }
            }
    }

    /// Whether a pattern fits; a bare rule has none.
    fn is_like(&self, text: &str) -> bool {
        match self {
            Subject::Any => false,
            Subject::Like(pattern) => like(pattern, text),
            Subject::Exactly(subject) => subject == text,
        }
    }
}

/// As a key of `[permissions]`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Any => f.write_str(&self.tool),
            Subject::Like(subject) | Subject::Exactly(subject) => write!(f, "{}:{subject}", self.tool),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        })
    }
}

impl FromStr for Verdict {
    type Err = RuleError;

    fn from_str(word: &str) -> Result<Verdict, RuleError> {
        match word {
            "allow" => Ok(Verdict::Allow),
            "ask" => Ok(Verdict::Ask),
            "deny" => Ok(Verdict::Deny),
            other => Err(RuleError::Verdict(other.to_owned())),
        }
    }
}

/// `*` is any run of characters, slashes and line ends too.
pub(super) fn like(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = text.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    let mut rest = rest;
    for piece in pieces {
        // The first place is as good as any: a later one leaves less.
        let Some((_, behind)) = rest.split_once(piece) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
