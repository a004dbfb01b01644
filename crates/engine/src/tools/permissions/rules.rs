//! The permission rules of `[permissions]`.
//!
//! Rules about commands prevent honest mistakes. They are not a security boundary: a command can be written
//! in more ways than a rule can name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use aside_core::permission_question::is_invisible;

use super::command::{CommandClass, ShellCommand, spellings};
use super::tool_names::{SERVER_SEPARATOR, server_pattern};
use crate::tools::{CallTarget, Risk};

/// The tool whose subject is a command line.
const SHELL: &str = "shell";

/// What to do with a call. Later variants are stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleVerdict {
    Allow,
    Ask,
    Deny,
}

/// All rules of a session. A deny rule with a pattern overrides everything else. Otherwise a rule with a
/// pattern comes before a bare one, which sets the default of its tool; the most specific pattern wins, and
/// among equals the strictest rule. The second list has the rules that also allow network access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PermissionRules(Vec<Rule>, Vec<Rule>);

/// `tool` or `tool:subject`; `*` matches any run of characters in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    tool: String,
    subject: SubjectPattern,
    verdict: RuleVerdict,
    made_by: MadeBy,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SubjectPattern {
    Any,
    Pattern(String),
    Exact(String),
}

/// An answer of the user overrides a general rule to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MadeBy {
    Config,
    Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("unknown verdict `{0}`; use allow, ask or deny")]
    RuleVerdict(String),
    #[error("`{0}` names no tool; use `tool` or `tool:pattern`, such as `shell:git status*`")]
    Key(String),
}

impl PermissionRules {
    pub fn new() -> PermissionRules {
        PermissionRules::default()
    }

    /// Adds the entry `key = "word"` of `[permissions]`.
    pub fn add(&mut self, key: &str, word: &str) -> Result<(), RuleError> {
        self.0.push(Rule::parse(key, word.parse()?)?);
        Ok(())
    }

    /// Allows every tool of a server, unless a rule names one of them.
    pub fn trust_server(&mut self, server: &str) {
        let tool = server_pattern(server);
        self.0.push(Rule { tool, subject: SubjectPattern::Any, verdict: RuleVerdict::Allow, made_by: MadeBy::Config });
    }

    /// Adds a rule that allows a command and gives it network access.
    pub fn add_with_network(&mut self, key: &str) -> Result<(), RuleError> {
        let rule = Rule::parse(key, RuleVerdict::Allow)?;
        self.0.push(rule.clone());
        self.1.push(rule);
        Ok(())
    }

    /// Whether rules with network access allow all of the command.
    pub(crate) fn opens_network(&self, tool: &str, subject: &str, risk: Risk) -> bool {
        strictest_verdict(&self.1, tool, subject, risk).0 == RuleVerdict::Allow
    }

    /// The files and folders that deny rules for `read` name. Commands may not read them either, where
    /// confinement can enforce that.
    pub fn unreadable(&self, root: &Path) -> Vec<PathBuf> {
        let denied = self.0.iter().filter(|rule| rule.verdict == RuleVerdict::Deny && rule.tool == "read");
        let path = |rule: &Rule| match &rule.subject {
            SubjectPattern::Exact(path) => Some(root.join(path)),
            SubjectPattern::Pattern(pattern) => {
                let folder = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*"))?;
                (!folder.contains('*')).then(|| root.join(folder))
            }
            SubjectPattern::Any => None,
        };
        denied.filter_map(path).collect()
    }

    /// The tools that the rules name, as written.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|rule| rule.tool.as_str())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }

    /// The verdict on a call, and the rule that decided it, if any.
    pub(crate) fn verdict_for<'a>(
        &'a self,
        answers: &'a [Rule],
        tool: &str,
        target: &CallTarget,
    ) -> (RuleVerdict, Option<&'a Rule>) {
        let judged = self.verdict_for_tool(answers, tool, target);
        match (judged.0, reveals_content(tool)) {
            (RuleVerdict::Allow | RuleVerdict::Ask, true) => {
                let reading = CallTarget { risk: as_reading(target.risk), ..target.clone() };
                let read = self.verdict_for_tool(&[], "read", &reading);
                if read.0 > judged.0 { read } else { judged }
            }
            (RuleVerdict::Deny, _) | (RuleVerdict::Allow | RuleVerdict::Ask, false) => judged,
        }
    }

    fn verdict_for_tool<'a>(
        &'a self,
        answers: &'a [Rule],
        tool: &str,
        target: &CallTarget,
    ) -> (RuleVerdict, Option<&'a Rule>) {
        if let Some(rule) = self.denying_rule(tool, &target.subject, target.path.as_deref()) {
            return (RuleVerdict::Deny, Some(rule));
        }
        let (subject, risk) = (target.subject.as_str(), target.risk);
        let (verdict, rule) = strictest_verdict(&self.0, tool, subject, risk);
        match (verdict, risk) {
            (RuleVerdict::Deny, _) => (verdict, rule),
            (RuleVerdict::Allow | RuleVerdict::Ask, Risk::Outside) => (RuleVerdict::Ask, None),
            (RuleVerdict::Allow, Risk::Reads | Risk::Writes | Risk::Runs) => (verdict, rule),
            (RuleVerdict::Ask, Risk::Reads | Risk::Writes | Risk::Runs) => {
                strictest_verdict(self.0.iter().chain(answers), tool, subject, risk)
            }
        }
    }

    /// The rule with a pattern that denies this, if any. Patterns can match a path relative to the working
    /// directory or an absolute path.
    fn denying_rule(&self, tool: &str, subject: &str, path: Option<&str>) -> Option<&Rule> {
        let mut rules =
            self.0.iter().filter(|rule| rule.verdict == RuleVerdict::Deny && rule.applies_to(tool)).peekable();
        rules.peek()?;
        let command = command_of(tool, subject);
        let mut names: Vec<String> = vec![command.text.to_owned()];
        names.extend(path.map(str::to_owned));
        if tool == SHELL {
            names.extend(command.parts.iter().flat_map(|part| spellings(part)));
            names.extend(command.parts.iter().map(|part| (*part).to_owned()));
        }
        rules.find(|rule| names.iter().any(|name| rule.subject.matches(name) || rule.subject.matches_folded(name)))
    }

    /// The rule that forbids one of these tools to show a file, if any.
    pub(crate) fn forbidding_rule(&self, tools: &[&str], name: &str, path: &str) -> Option<&Rule> {
        tools.iter().find_map(|tool| {
            let (verdict, rule) = strictest_verdict(&self.0, tool, name, Risk::Reads);
            self.denying_rule(tool, name, Some(path)).or_else(|| rule.filter(|_| verdict == RuleVerdict::Deny))
        })
    }

    /// Whether a tool may show the content of this file without a question.
    pub(crate) fn may_read(&self, tool: &str, name: &str, path: &str) -> bool {
        let allowed = |tool: &&str| strictest_verdict(&self.0, tool, name, Risk::Reads).0 == RuleVerdict::Allow;
        self.forbidding_rule(&["read", tool], name, path).is_none() && ["read", tool].iter().all(allowed)
    }

    /// Whether a rule without a star allows exactly this.
    pub(crate) fn allows_exactly(&self, tool: &str, target: &CallTarget) -> bool {
        let is_it = |subject: &SubjectPattern| match subject {
            SubjectPattern::Exact(subject) => *subject == target.subject || Some(subject) == target.path.as_ref(),
            SubjectPattern::Any | SubjectPattern::Pattern(_) => false,
        };
        let mut rules = self.0.iter().filter(|rule| rule.verdict == RuleVerdict::Allow && rule.names(tool));
        rules.any(|rule| is_it(&rule.subject))
    }
}

/// Other tools whose rules also apply to this tool.
fn governed_by(tool: &str) -> &'static [&'static str] {
    match tool {
        "edit" => &["write"],
        _ => &[],
    }
}

/// Whether the result of a tool shows content of the file.
fn reveals_content(tool: &str) -> bool {
    tool == "edit"
}

fn as_reading(risk: Risk) -> Risk {
    match risk {
        Risk::Outside => Risk::Outside,
        Risk::Reads | Risk::Writes | Risk::Runs => Risk::Reads,
    }
}

fn command_of<'a>(tool: &str, subject: &'a str) -> ShellCommand<'a> {
    if tool == SHELL { ShellCommand::parse(subject) } else { ShellCommand::plain(subject) }
}

/// Whether the subject has invisible or control characters. Only a command may have line breaks.
fn has_invisible(tool: &str, subject: &str) -> bool {
    subject.chars().any(|c| is_invisible(c) && !(c == '\n' && tool == SHELL))
}

/// A command line with several commands gets the strictest verdict of them.
fn strictest_verdict<'a>(
    rules: impl IntoIterator<Item = &'a Rule> + Clone,
    tool: &str,
    subject: &str,
    risk: Risk,
) -> (RuleVerdict, Option<&'a Rule>) {
    // Arguments of MCP tools may contain such characters; they matter only if a rule is about the arguments.
    let has_invisible_characters = has_invisible(tool, subject);
    let is_server_tool = tool.contains(SERVER_SEPARATOR);
    let subject = command_of(tool, subject);
    let judge = |part: &&str| {
        let fitting = rules.clone().into_iter().filter(|rule| rule.matches(tool, &subject, part));
        let fitting = fitting.filter(|rule| {
            !has_invisible_characters
                || rule.verdict != RuleVerdict::Allow
                || (is_server_tool && rule.subject == SubjectPattern::Any)
        });
        match fitting.max_by_key(|rule| rule.rank(tool)) {
            Some(rule) => (rule.verdict, Some(rule)),
            None => (default_verdict(risk), None),
        }
    };
    let judged = subject.parts.iter().map(judge).max_by_key(|(verdict, _)| *verdict);
    judged.unwrap_or((default_verdict(risk), None))
}

/// The verdict if no rule matches.
fn default_verdict(risk: Risk) -> RuleVerdict {
    match risk {
        Risk::Reads => RuleVerdict::Allow,
        Risk::Writes | Risk::Runs | Risk::Outside => RuleVerdict::Ask,
    }
}

impl Rule {
    /// Whether it names certain subjects, not the whole tool.
    pub(crate) fn has_pattern(&self) -> bool {
        self.subject != SubjectPattern::Any
    }

    fn parse(key: &str, verdict: RuleVerdict) -> Result<Rule, RuleError> {
        let (tool, subject) = match key.split_once(':') {
            None => (key, None),
            Some((tool, subject)) => (tool, Some(subject.trim())),
        };
        let tool = tool.trim().to_owned();
        if tool.is_empty() || subject == Some("") {
            return Err(RuleError::Key(key.to_owned()));
        }
        let subject = match subject {
            None => SubjectPattern::Any,
            Some(pattern) if pattern.contains('*') => SubjectPattern::Pattern(pattern.to_owned()),
            Some(exact) => SubjectPattern::Exact(exact.to_owned()),
        };
        Ok(Rule { tool, subject, verdict, made_by: MadeBy::Config })
    }

    /// A rule for an answer of the user.
    pub(crate) fn answer(tool: &str, subject: Option<&str>) -> Rule {
        let subject = subject.map_or(SubjectPattern::Any, |subject| SubjectPattern::Exact(subject.to_owned()));
        Rule { tool: tool.to_owned(), subject, verdict: RuleVerdict::Allow, made_by: MadeBy::Answer }
    }

    pub(super) fn verdict(&self) -> RuleVerdict {
        self.verdict
    }

    fn applies_to(&self, tool: &str) -> bool {
        matches_pattern(&self.tool, tool)
            || governed_by(tool)
                .iter()
                .any(|other| self.made_by == MadeBy::Config && matches_pattern(&self.tool, other))
    }

    /// Whether the rule names the tool, without a star.
    fn names(&self, tool: &str) -> bool {
        self.tool == tool || governed_by(tool).contains(&self.tool.as_str())
    }

    fn matches(&self, tool: &str, command: &ShellCommand<'_>, part: &str) -> bool {
        if !self.applies_to(tool) {
            return false;
        }
        let plain = command.class == CommandClass::Plain;
        match (&self.subject, self.verdict, self.made_by) {
            (SubjectPattern::Any, _, _) => true,
            // The user approved the whole line, not a part of another one.
            (SubjectPattern::Exact(subject), RuleVerdict::Allow, MadeBy::Answer) => {
                subject == command.text && command.class != CommandClass::Opaque
            }
            (SubjectPattern::Exact(subject), RuleVerdict::Allow, MadeBy::Config) => {
                (subject == command.text && command.class != CommandClass::Opaque) || (plain && subject == part)
            }
            // A pattern for one command does not allow what is nested in it.
            (SubjectPattern::Pattern(pattern), RuleVerdict::Allow, _) => plain && matches_pattern(pattern, part),
            (SubjectPattern::Exact(_) | SubjectPattern::Pattern(_), RuleVerdict::Ask | RuleVerdict::Deny, _) => {
                self.subject.matches(part) || self.subject.matches(command.text)
            }
        }
    }

    /// Orders rules by how specific they are, then by strictness. An answer of the user comes before a rule
    /// to ask.
    fn rank(&self, tool: &str) -> (u8, usize, u8, usize, u8) {
        let literal = |pattern: &str| pattern.chars().filter(|c| *c != '*').count();
        let (kind, length) = match &self.subject {
            SubjectPattern::Any => (0, 0),
            SubjectPattern::Pattern(pattern) => (1, literal(pattern)),
            SubjectPattern::Exact(_) => (2, 0),
        };
        let of_the_tool = match self.tool == tool {
            true => 2,
            false => u8::from(self.names(tool)),
        };
        let weight = match (self.made_by, self.verdict) {
            (MadeBy::Config, RuleVerdict::Allow) => 0,
            (MadeBy::Config, RuleVerdict::Ask) => 1,
            (MadeBy::Answer, _) => 2,
            (MadeBy::Config, RuleVerdict::Deny) => 3,
        };
        (kind, length, of_the_tool, literal(&self.tool), weight)
    }
}

/// On a case-insensitive file system, a rule about one spelling applies to all.
const FOLDS_CASE: bool = cfg!(target_os = "macos");

impl SubjectPattern {
    fn matches_folded(&self, text: &str) -> bool {
        FOLDS_CASE
            && match self {
                SubjectPattern::Any => false,
                SubjectPattern::Pattern(pattern) | SubjectPattern::Exact(pattern) => {
                    matches_pattern(&pattern.to_lowercase(), &text.to_lowercase())
                }
            }
    }

    /// Whether the pattern matches. A bare rule has no pattern and never matches here.
    fn matches(&self, text: &str) -> bool {
        match self {
            SubjectPattern::Any => false,
            SubjectPattern::Pattern(pattern) => matches_pattern(pattern, text),
            SubjectPattern::Exact(subject) => subject == text,
        }
    }
}

/// Formats the rule as a key of `[permissions]`.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            SubjectPattern::Any => f.write_str(&self.tool),
            SubjectPattern::Pattern(subject) | SubjectPattern::Exact(subject) => write!(f, "{}:{subject}", self.tool),
        }
    }
}

impl fmt::Display for RuleVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleVerdict::Allow => "allow",
            RuleVerdict::Ask => "ask",
            RuleVerdict::Deny => "deny",
        })
    }
}

impl FromStr for RuleVerdict {
    type Err = RuleError;

    fn from_str(word: &str) -> Result<RuleVerdict, RuleError> {
        match word {
            "allow" => Ok(RuleVerdict::Allow),
            "ask" => Ok(RuleVerdict::Ask),
            "deny" => Ok(RuleVerdict::Deny),
            other => Err(RuleError::RuleVerdict(other.to_owned())),
        }
    }
}

/// `*` matches any run of characters, including slashes and line breaks.
pub(super) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(rest) = text.strip_prefix(pieces.next().unwrap_or("")) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    let mut rest = rest;
    for piece in pieces {
        // The first match is as good as any later one, because it leaves more text.
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
