//! Who may do what: rules, answers of the user, and the question itself.

mod command;
mod list;
mod memory;
mod names;
mod rules;

use std::sync::{Arc, Mutex, PoisonError};

use super::{Asker, Likeness, Permit, Question, Risk, Standing, Target};

pub use list::{NotForgotten, Ruled, Source};
use memory::Answer;
pub use memory::{MemoryError, ProjectMemory};
pub use names::{KnownTools, server_pattern};
pub(crate) use rules::Rule;
pub use rules::{RuleError, Rules, Verdict};

/// What is done about what the rules leave to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Ask,
    /// Everything inside the working directory is allowed; outside and protected
    /// paths still ask.
    AllowAll,
    /// Whatever would ask is denied.
    DenyAll,
}

/// The permissions of a session.
#[derive(Debug)]
pub struct Permissions {
    rules: Arc<Rules>,
    mode: Mode,
    /// Answers that hold on, of this session and of the project.
    answers: Mutex<Vec<Rule>>,
    memory: Option<Mutex<ProjectMemory>>,
    /// Calls run side by side, but the user reads one question at a time.
    asking: tokio::sync::Mutex<()>,
}

/// Why something is not done, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    #[error("denied by the rule `{0}`; nothing was done")]
    ByRule(String),
    #[error("denied: it needs permission, and this run allows nothing that would have to be asked; nothing was done")]
    ByMode,
    #[error("denied: it needs permission and there is nobody to ask; nothing was done")]
    NobodyToAsk,
    #[error("denied by the user{}; nothing was done", said(.0))]
    ByUser(Option<String>),
    #[error("interrupted before it was allowed; nothing was done")]
    Interrupted,
}

fn said(word: &Option<String>) -> String {
    word.as_ref().map(|word| format!(", who says: {word}")).unwrap_or_default()
}

/// Whether a question is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    Question,
}

impl Standing {
    /// What is left of a permission that was given beforehand.
    fn limits(self, verdict: Verdict, mode: Mode) -> (Verdict, Mode) {
        let asks = match verdict {
            Verdict::Allow | Verdict::Ask => Verdict::Ask,
            Verdict::Deny => Verdict::Deny,
        };
        match (self, mode) {
            (Standing::Counts, _) => (verdict, mode),
            (Standing::Asks, _) => (asks, mode),
            (Standing::AlwaysAsks, Mode::Ask | Mode::AllowAll) => (asks, Mode::Ask),
            (Standing::AlwaysAsks, Mode::DenyAll) => (asks, Mode::DenyAll),
        }
    }
}

/// How something came to be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// The person was asked about this very call.
    Asked,
    /// An answer to another question covers it.
    Covered,
}

impl Permissions {
    pub fn new(rules: Rules, mode: Mode) -> Permissions {
        Permissions {
            rules: Arc::new(rules),
            mode,
            answers: Mutex::default(),
            memory: None,
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// With what was allowed in this project before; answers for the project
    /// are added to it. Without it they hold for the session.
    pub fn remembering(mut self, memory: ProjectMemory) -> Permissions {
        self.answers.get_mut().unwrap_or_else(PoisonError::into_inner).extend(memory.rules());
        self.memory = Some(Mutex::new(memory));
        self
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.rules)
    }

    pub(crate) fn need(&self, tool: &str, target: &Target) -> Result<Need, Denied> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.need_with(&answers, tool, target)
    }

    fn need_with(&self, answers: &[Rule], tool: &str, target: &Target) -> Result<Need, Denied> {
        let (verdict, rule) = self.rules.judge(answers, tool, target);
        // Nothing but a rule that names the very path lifts the protection.
        let is_protected = target.protected.is_some() && !self.rules.allows_exactly(tool, target);
        let always_asks = is_protected || target.risk == Risk::Outside;
        let (verdict, mode) = target.standing.limits(verdict, self.mode);
        match (verdict, mode) {
            (Verdict::Deny, _) => Err(Denied::ByRule(rule.map(ToString::to_string).unwrap_or_default())),
            (Verdict::Allow, _) if !always_asks => Ok(Need::Nothing),
            (Verdict::Allow | Verdict::Ask, Mode::DenyAll) => Err(Denied::ByMode),
            (Verdict::Ask, Mode::AllowAll) if !always_asks => Ok(Need::Nothing),
            (Verdict::Allow | Verdict::Ask, Mode::AllowAll | Mode::Ask) => Ok(Need::Question),
        }
    }

    /// Whether the model may learn something of a file without a question.
    pub(crate) fn may_tell(&self, target: &Target) -> bool {
        let may_be_read = |path: &String| self.rules.lets_be_read("read", &target.subject, path);
        target.risk != Risk::Outside && target.path.as_ref().is_none_or(may_be_read)
    }

    /// Asks, unless the answer to the question before covers this one too.
    pub(crate) async fn ask(&self, target: &Target, question: Question, asker: &dyn Asker) -> Result<Allowed, Denied> {
        let _one_at_a_time = self.asking.lock().await;
        match self.need(&question.tool, target)? {
            Need::Nothing => return Ok(Allowed::Covered),
            Need::Question => (),
        }
        // What could not be read as it is, is answered for this once.
        let answer = lasting(&question.tool, target).filter(|_| !question.is_marked());
        let answer = answer.filter(|answer| self.would_do(answer, &question.tool, target));
        let covers = answer.as_ref().map(|answer| Rule::answer(&answer.tool, answer.subject.as_deref()).to_string());
        match asker.ask(Question { covers, ..question }).await {
            Permit::Once => (),
            Permit::Session => self.hold(answer),
            Permit::Project => self.keep(answer, asker),
            Permit::No(word) => return Err(Denied::ByUser(word)),
            Permit::Nobody => return Err(Denied::NobodyToAsk),
        }
        Ok(Allowed::Asked)
    }

    /// Whether the same question would not be asked again with this answer. A
    /// line that no rule can allow is asked about every time.
    fn would_do(&self, answer: &Answer, tool: &str, target: &Target) -> bool {
        let answer = Rule::answer(&answer.tool, answer.subject.as_deref());
        self.need_with(&[answer], tool, target) == Ok(Need::Nothing)
    }

    fn hold(&self, answer: Option<Answer>) {
        if let Some(Answer { tool, subject }) = answer {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.push(Rule::answer(&tool, subject.as_deref()));
        }
    }

    fn keep(&self, answer: Option<Answer>, asker: &dyn Asker) {
        if let Some(answer) = answer.clone() {
            let kept = match &self.memory {
                Some(memory) => {
                    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                    memory.remember(answer).map_err(|error| error.to_string())
                }
                None => Err("there is no place to remember it".to_owned()),
            };
            if let Err(why) = kept {
                asker.trouble(&format!("allowed for this session only: {why}"));
            }
        }
        self.hold(answer);
    }
}

/// What a yes for longer covers. Outside the working directory, and for
/// protected paths, there is none.
fn lasting(tool: &str, target: &Target) -> Option<Answer> {
    if target.protected.is_some() || target.standing != Standing::Counts {
        return None;
    }
    let (tool, subject) = match (target.risk, &target.likeness) {
        (Risk::Outside, _) => return None,
        (Risk::Reads | Risk::Writes | Risk::Runs, Likeness::Tool) => (tool.to_owned(), None),
        (Risk::Reads | Risk::Writes | Risk::Runs, Likeness::Server(server)) => (server_pattern(server), None),
        (Risk::Reads | Risk::Writes | Risk::Runs, Likeness::Subject) => (tool.to_owned(), Some(target.subject.clone())),
    };
    Some(Answer { tool, subject })
}
