//! Lists the rules in force, and forgets answers.

use std::fmt;
use std::sync::PoisonError;

use super::{MemoryError, Permissions, RuleVerdict};

/// A rule and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRule {
    /// As a key of `[permissions]`.
    pub rule: String,
    pub verdict: RuleVerdict,
    pub source: RuleSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleSource {
    /// An answer given in this session.
    Session,
    /// An answer stored for this project.
    Project,
    Config,
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleSource::Session => "this session",
            RuleSource::Project => "this project",
            RuleSource::Config => "config",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    #[error("there is no rule `{0}`")]
    Unknown(String),
    #[error("`{0}` is in the config; change it there")]
    InConfig(String),
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Permissions {
    /// All rules beyond the defaults: answers first, then the config. Without a rule, reading is allowed and
    /// everything else asks.
    pub fn list(&self) -> Vec<ListedRule> {
        let memory = self.memory.as_ref().map(|memory| memory.lock().unwrap_or_else(PoisonError::into_inner));
        let project: Vec<_> = memory.iter().flat_map(|memory| memory.rules()).collect();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<ListedRule> = Vec::new();
        for rule in answers.iter() {
            let source = if project.contains(rule) { RuleSource::Project } else { RuleSource::Session };
            let listed = ListedRule { rule: rule.to_string(), verdict: rule.verdict(), source };
            if !list.contains(&listed) {
                list.push(listed);
            }
        }
        list.sort_by_key(|listed| listed.source);
        let config = self.rules.iter();
        list.extend(config.map(|rule| ListedRule {
            rule: rule.to_string(),
            verdict: rule.verdict(),
            source: RuleSource::Config,
        }));
        list
    }

    /// Forgets the answers of this session; another one begins.
    pub fn begin_session(&self) {
        let memory = self.memory.as_ref().map(|memory| memory.lock().unwrap_or_else(PoisonError::into_inner));
        let project = memory.iter().flat_map(|memory| memory.rules()).collect();
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = project;
    }

    /// Removes an answer from this session and from the project.
    pub fn forget(&self, rule: &str) -> Result<RuleSource, ForgetError> {
        let mut source = None;
        if let Some(memory) = &self.memory
            && memory.lock().unwrap_or_else(PoisonError::into_inner).forget(rule)?
        {
            source = Some(RuleSource::Project);
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = answers.len();
        answers.retain(|answer| answer.to_string() != rule);
        if answers.len() < before {
            source.get_or_insert(RuleSource::Session);
        }
        match source {
            Some(source) => Ok(source),
            None if self.rules.iter().any(|known| known.to_string() == rule) => {
                Err(ForgetError::InConfig(rule.to_owned()))
            }
            None => Err(ForgetError::Unknown(rule.to_owned())),
        }
    }
}
