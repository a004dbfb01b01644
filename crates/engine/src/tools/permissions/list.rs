//! The rules in force, for the user to see and to take back.

use std::fmt;
use std::sync::PoisonError;

use super::{MemoryError, Permissions, Verdict};

/// One rule, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruled {
    /// As a key of `[permissions]`.
    pub rule: String,
    pub verdict: Verdict,
    pub source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An answer of this session.
    Session,
    /// An answer that is remembered for this project.
    Project,
    Config,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Source::Session => "this session",
            Source::Project => "this project",
            Source::Config => "config",
        })
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NotForgotten {
    #[error("there is no rule `{0}`")]
    Unknown(String),
    #[error("`{0}` stands in the config; change it there")]
    InConfig(String),
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl Permissions {
    /// What was said beyond the usual: answers first, then the config. Without
    /// a rule reading is allowed, and the rest asks.
    pub fn list(&self) -> Vec<Ruled> {
        let memory = self.memory.as_ref().map(|memory| memory.lock().unwrap_or_else(PoisonError::into_inner));
        let project: Vec<_> = memory.iter().flat_map(|memory| memory.rules()).collect();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<Ruled> = Vec::new();
        for rule in answers.iter() {
            let source = if project.contains(rule) { Source::Project } else { Source::Session };
            let ruled = Ruled { rule: rule.to_string(), verdict: rule.verdict(), source };
            if !list.contains(&ruled) {
                list.push(ruled);
            }
        }
        list.sort_by_key(|ruled| ruled.source);
        let config = self.rules.iter();
        list.extend(config.map(|rule| Ruled {
            rule: rule.to_string(),
            verdict: rule.verdict(),
            source: Source::Config,
        }));
        list
    }

    /// Takes an answer back, from this session and from the project.
    pub fn forget(&self, rule: &str) -> Result<Source, NotForgotten> {
        let mut source = None;
        if let Some(memory) = &self.memory
            && memory.lock().unwrap_or_else(PoisonError::into_inner).forget(rule)?
        {
            source = Some(Source::Project);
        }
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let before = answers.len();
        answers.retain(|answer| answer.to_string() != rule);
        if answers.len() < before {
            source.get_or_insert(Source::Session);
        }
        match source {
            Some(source) => Ok(source),
            None if self.rules.iter().any(|known| known.to_string() == rule) => {
                Err(NotForgotten::InConfig(rule.to_owned()))
            }
            None => Err(NotForgotten::Unknown(rule.to_owned())),
        }
    }
}
