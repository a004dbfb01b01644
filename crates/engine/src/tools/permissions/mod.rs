//! Permissions: rules, the user's answers, and the question itself.

mod command;
mod list;
mod mode_switch;
mod remembered;
mod rules;
mod tool_names;

use std::sync::{Arc, Mutex, PoisonError};

use aside_core::tool_mode::ToolMode;

use super::{AnswerScope, Asker, CallTarget, PermissionAnswer, PermissionQuestion, PriorApproval, Risk};

pub use list::{ForgetError, ListedRule, RuleSource};
pub use mode_switch::ToolModeSwitch;
use remembered::StoredAnswer;
pub use remembered::{MemoryError, ProjectMemory};
pub(crate) use rules::Rule;
pub use rules::{PermissionRules, RuleError, RuleVerdict};
pub use tool_names::{KnownTools, server_pattern};

/// What to do when the rules say to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionMode {
    Ask,
    /// Allows everything inside the working directory. Paths outside and protected paths still ask.
    AllowAll,
    /// Denies everything that would ask.
    DenyAll,
}

/// The permissions of a session.
#[derive(Debug)]
pub struct Permissions {
    rules: Arc<PermissionRules>,
    mode: PermissionMode,
    tool_mode: ToolModeSwitch,
    /// The lasting answers, of this session and of the project.
    answers: Mutex<Vec<Rule>>,
    memory: Option<Mutex<ProjectMemory>>,
    /// Calls run concurrently, but the user is asked one question at a time.
    asking: tokio::sync::Mutex<()>,
}

/// Why a call was denied, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    #[error("denied by the rule `{0}`; nothing was done")]
    ByRule(String),
    #[error("denied: it needs permission, and this run denies everything that needs permission; nothing was done")]
    ByMode,
    #[error("denied: it needs permission and there is no one to ask; nothing was done")]
    NobodyToAsk,
    #[error("denied by the user{}; nothing was done", user_comment(.0))]
    ByUser(Option<String>),
    #[error("interrupted before it was allowed; nothing was done")]
    Interrupted,
}

fn user_comment(comment: &Option<String>) -> String {
    comment.as_ref().map(|comment| format!(", who says: {comment}")).unwrap_or_default()
}

/// Whether the user must be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PermissionNeed {
    Nothing,
    Question,
}

impl PriorApproval {
    /// Removes earlier permissions that are not enough.
    fn restrict(self, verdict: RuleVerdict, mode: PermissionMode) -> (RuleVerdict, PermissionMode) {
        let asks = match verdict {
            RuleVerdict::Allow | RuleVerdict::Ask => RuleVerdict::Ask,
            RuleVerdict::Deny => RuleVerdict::Deny,
        };
        match (self, mode) {
            (PriorApproval::Suffices, _) => (verdict, mode),
            (PriorApproval::Asks, _) => (asks, mode),
            (PriorApproval::AlwaysAsks, PermissionMode::Ask | PermissionMode::AllowAll) => (asks, PermissionMode::Ask),
            (PriorApproval::AlwaysAsks, PermissionMode::DenyAll) => (asks, PermissionMode::DenyAll),
        }
    }
}

/// Why a call is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrantedBy {
    /// The user approved this very call.
    ThisQuestion,
    /// An earlier answer covers it.
    EarlierAnswer,
}

impl Permissions {
    pub fn new(rules: PermissionRules, mode: PermissionMode) -> Permissions {
        Permissions {
            rules: Arc::new(rules),
            mode,
            tool_mode: ToolModeSwitch::default(),
            answers: Mutex::default(),
            memory: None,
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Uses the stored answers of the project, and stores new ones there. Without a memory, answers for the
    /// project apply to the session only.
    pub fn with_memory(mut self, memory: ProjectMemory) -> Permissions {
        self.answers.get_mut().unwrap_or_else(PoisonError::into_inner).extend(memory.rules());
        self.memory = Some(Mutex::new(memory));
        self
    }

    /// Starts in this tool mode.
    pub fn with_tool_mode(self, mode: ToolMode) -> Permissions {
        self.tool_mode.set(mode);
        self
    }

    /// A handle to change the tool mode, also during a turn.
    pub fn tool_mode(&self) -> &ToolModeSwitch {
        &self.tool_mode
    }

    pub(crate) fn rules(&self) -> Arc<PermissionRules> {
        Arc::clone(&self.rules)
    }

    pub(crate) fn need(&self, tool: &str, target: &CallTarget) -> Result<PermissionNeed, Denial> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.need_given(&answers, tool, target)
    }

    fn need_given(&self, answers: &[Rule], tool: &str, target: &CallTarget) -> Result<PermissionNeed, Denial> {
        let (verdict, rule) = self.rules.verdict_for(answers, tool, target);
        // Only a rule that names this exact path lifts the protection.
        let is_protected = target.protected.is_some() && !self.rules.allows_exactly(tool, target);
        let always_asks = is_protected || target.risk == Risk::Outside;
        let is_accepted_edit = self.is_accepted_edit(target, rule);
        let (verdict, mode) = target.prior_approval.restrict(verdict, self.mode);
        match (verdict, mode) {
            (RuleVerdict::Deny, _) => Err(Denial::ByRule(rule.map(ToString::to_string).unwrap_or_default())),
            (RuleVerdict::Allow, _) if !always_asks => Ok(PermissionNeed::Nothing),
            (RuleVerdict::Allow | RuleVerdict::Ask, PermissionMode::DenyAll) => Err(Denial::ByMode),
            (RuleVerdict::Ask, PermissionMode::AllowAll) if !always_asks => Ok(PermissionNeed::Nothing),
            (RuleVerdict::Ask, PermissionMode::Ask) if is_accepted_edit && !always_asks => Ok(PermissionNeed::Nothing),
            (RuleVerdict::Allow | RuleVerdict::Ask, PermissionMode::AllowAll | PermissionMode::Ask) => {
                Ok(PermissionNeed::Question)
            }
        }
    }

    /// Whether the tool mode allows this change of a file. A rule that asks about certain paths still asks.
    fn is_accepted_edit(&self, target: &CallTarget, rule: Option<&Rule>) -> bool {
        self.tool_mode.mode() == ToolMode::AcceptEdits
            && target.risk == Risk::Writes
            && target.path.is_some()
            && target.prior_approval == PriorApproval::Suffices
            && rule.is_none_or(|rule| !rule.has_pattern())
    }

    /// Whether an error may reveal the content of a file to the model without a question.
    pub(crate) fn may_reveal(&self, target: &CallTarget) -> bool {
        let may_be_read = |path: &String| self.rules.may_read("read", &target.subject, path);
        target.risk != Risk::Outside && target.path.as_ref().is_none_or(may_be_read)
    }

    /// Asks the user, unless the answer to the previous question already covers this call.
    pub(crate) async fn ask(
        &self,
        target: &CallTarget,
        question: PermissionQuestion,
        asker: &dyn Asker,
    ) -> Result<GrantedBy, Denial> {
        let _one_at_a_time = self.asking.lock().await;
        match self.need(&question.tool, target)? {
            PermissionNeed::Nothing => return Ok(GrantedBy::EarlierAnswer),
            PermissionNeed::Question => (),
        }
        // If the text was shown with marks, such as for invisible characters, the answer counts only once.
        let answer = lasting_answer(&question.tool, target).filter(|_| !question.is_marked());
        let answer = answer.filter(|answer| self.would_suffice(answer, &question.tool, target));
        let covers = answer.as_ref().map(|answer| Rule::answer(&answer.tool, answer.subject.as_deref()).to_string());
        match asker.ask(PermissionQuestion { covers, ..question }).await {
            PermissionAnswer::Once => (),
            PermissionAnswer::Session => self.remember_for_session(answer),
            PermissionAnswer::Project => self.remember_for_project(answer, asker),
            PermissionAnswer::No(comment) => return Err(Denial::ByUser(comment)),
            PermissionAnswer::Nobody => return Err(Denial::NobodyToAsk),
        }
        Ok(GrantedBy::ThisQuestion)
    }

    /// Whether this answer would prevent the same question. Some command lines cannot be allowed by any rule,
    /// so they always ask.
    fn would_suffice(&self, answer: &StoredAnswer, tool: &str, target: &CallTarget) -> bool {
        let answer = Rule::answer(&answer.tool, answer.subject.as_deref());
        self.need_given(&[answer], tool, target) == Ok(PermissionNeed::Nothing)
    }

    fn remember_for_session(&self, answer: Option<StoredAnswer>) {
        if let Some(StoredAnswer { tool, subject }) = answer {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.push(Rule::answer(&tool, subject.as_deref()));
        }
    }

    fn remember_for_project(&self, answer: Option<StoredAnswer>, asker: &dyn Asker) {
        if let Some(answer) = answer.clone() {
            let stored = match &self.memory {
                Some(memory) => {
                    let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
                    memory.remember(answer).map_err(|error| error.to_string())
                }
                None => Err("there is nowhere to store it".to_owned()),
            };
            if let Err(why) = stored {
                asker.warn(&format!("allowed for this session only: {why}"));
            }
        }
        self.remember_for_session(answer);
    }
}

/// What a lasting answer covers; `None` outside the working directory and for protected paths.
fn lasting_answer(tool: &str, target: &CallTarget) -> Option<StoredAnswer> {
    if target.protected.is_some() || target.prior_approval != PriorApproval::Suffices {
        return None;
    }
    let (tool, subject) = match (target.risk, &target.answer_scope) {
        (Risk::Outside, _) => return None,
        (Risk::Reads | Risk::Writes | Risk::Runs, AnswerScope::Tool) => (tool.to_owned(), None),
        (Risk::Reads | Risk::Writes | Risk::Runs, AnswerScope::Server(server)) => (server_pattern(server), None),
        (Risk::Reads | Risk::Writes | Risk::Runs, AnswerScope::Subject) => {
            (tool.to_owned(), Some(target.subject.clone()))
        }
    };
    Some(StoredAnswer { tool, subject })
}
