//! Rules of permission, as they stand in `[permissions]`.
//!
//! Those about commands keep honest mistakes away. They are no wall: a command
//! that is allowed can do whatever the user can.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::command::Command;
use crate::tools::Risk;

/// What is done about something that needs permission. The later, the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// All rules of a session. The most specific one that fits wins; among equals
/// the strictest. The second list has those that open the network too.
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
    pub(crate) fn judge<'a>(
        &'a self,
        answers: &'a [Rule],
        tool: &str,
        subject: &str,
        risk: Risk,
    ) -> (Verdict, Option<&'a Rule>) {
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

    /// Whether a tool that goes through many files may show this one.
    pub(crate) fn lets_be_read(&self, tool: &str, path: &str) -> bool {
        ["read", tool].iter().all(|tool| strictest(&self.0, tool, path, Risk::Reads).0 == Verdict::Allow)
    }
}

/// A command of several parts is as dangerous as the worst of them.
fn strictest<'a>(
    rules: impl IntoIterator<Item = &'a Rule> + Clone,
    tool: &str,
    subject: &str,
    risk: Risk,
) -> (Verdict, Option<&'a Rule>) {
    let subject = match risk {
        Risk::Runs => Command::parse(subject),
        Risk::Reads | Risk::Writes | Risk::Outside => Command::plain(subject),
    };
    let judge = |part: &&str| {
        let fitting = rules.clone().into_iter().filter(|rule| rule.fits(tool, &subject, part));
        match fitting.max_by_key(|rule| rule.rank()) {
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
            None | Some("*") => Subject::Any,
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

    fn fits(&self, tool: &str, whole: &Command<'_>, part: &str) -> bool {
        if !like(&self.tool, tool) {
            return false;
        }
        // What is allowed for a command says nothing of what hides in it.
        let part_counts = self.verdict != Verdict::Allow || !whole.is_tangled;
        match &self.subject {
            Subject::Any => true,
            Subject::Exactly(subject) => subject == whole.text || (part_counts && subject == part),
            Subject::Like(pattern) => {
                (part_counts && like(pattern, part)) || (self.verdict != Verdict::Allow && like(pattern, whole.text))
            }
        }
    }

    /// How specific it is; among equals the strict one, but an answer of the
    /// user comes before a rule that only says to ask.
    fn rank(&self) -> (u8, usize, usize, u8) {
        let literal = |pattern: &str| pattern.chars().filter(|c| *c != '*').count();
        let (kind, length) = match &self.subject {
            Subject::Any => (0, 0),
            Subject::Like(pattern) => (1, literal(pattern)),
            Subject::Exactly(_) => (2, 0),
        };
        let weight = match (self.by, self.verdict) {
            (By::Config, Verdict::Allow) => 0,
            (By::Config, Verdict::Ask) => 1,
            (By::Answer, _) => 2,
            (By::Config, Verdict::Deny) => 3,
        };
        (kind, length, literal(&self.tool), weight)
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
fn like(pattern: &str, text: &str) -> bool {
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
