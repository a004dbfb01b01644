//! The answers that a question offers, and which one is selected.

use super::{PermissionQuestion, QuestionKind};

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
