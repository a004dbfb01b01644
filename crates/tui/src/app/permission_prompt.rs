//! The permission questions that wait for an answer.
#![expect(clippy::wildcard_enum_match_arm, reason = "crossterm defines many keys; the others do nothing")]

use std::collections::VecDeque;

use aside_core::block::Time;
use aside_core::permission_question::{
    AnswerChoice, AnswerChoices, IGNORE_KEYS_MS, QuestionLayout, RenderedQuestion, render, visible, visible_body,
};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::input::editor::Editor;
use aside_front::{Command, PendingQuestion, PermissionAnswer, QuestionId};

#[derive(Debug, Default)]
pub struct PermissionPrompt {
    questions: VecDeque<PendingQuestion>,
    /// The choices for the current question.
    choices: Option<(QuestionId, AnswerChoices)>,
    /// The message to send with a denial. It has its own editor, so that the user's draft survives.
    message: Option<Editor>,
    shown: QuestionShown,
    /// The first frame that shows the question is being written.
    is_first_frame: bool,
    /// The user could read what would happen, on the screen or with `v`.
    was_read: bool,
    /// Why the last key did nothing.
    unused_key: Option<UnusedKey>,
    /// A letter that answers unless another key follows it at once.
    held: Option<HeldAnswer>,
    /// The current question as last laid out.
    rendered: Option<(QuestionId, QuestionLayout, RenderedQuestion)>,
}

/// How long a letter is held while the input has a draft: longer than between two letters of a word.
const HOLD_MS: u64 = 400;

#[derive(Debug, Clone, Copy)]
struct HeldAnswer {
    choice: AnswerChoice,
    /// When it counts.
    due: Time,
}

/// Whether the input has text. A user who was typing may go on, and these letters must not answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Draft {
    Empty,
    Begun,
}

/// Whether the question fits on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionFit {
    Whole,
    TooSmall,
}

/// Why a key did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnusedKey {
    /// It was typed before the question could be read.
    TooEarly,
    NoAnswer(char),
    /// Other letters followed at once.
    PartOfText,
    /// Enter, before an answer was selected.
    NothingSelected,
    /// It would allow what was not shown yet.
    NotRead,
}

/// Whether the current question is on the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum QuestionShown {
    #[default]
    NotYet,
    /// Shown; answers count from this time on.
    Since(Option<Time>),
}

/// The result of a key press.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptOutcome {
    Pending,
    Answer(Command),
    /// Deny, and stop the turn.
    AnswerAndStop(Command),
    /// The user wants to see everything that would happen.
    Preview {
        title: String,
        text: String,
    },
}

impl PermissionPrompt {
    pub fn question(&self) -> Option<&PendingQuestion> {
        self.questions.front()
    }

    pub fn is_waiting(&self) -> bool {
        !self.questions.is_empty()
    }

    /// The current question, laid out once per size.
    pub(crate) fn rendered(&mut self, layout: QuestionLayout) -> Option<&RenderedQuestion> {
        let question = self.questions.front()?;
        let is_laid_out =
            |(id, known, _): &(QuestionId, QuestionLayout, RenderedQuestion)| (*id, *known) == (question.id, layout);
        if !self.rendered.as_ref().is_some_and(is_laid_out) {
            self.rendered = Some((question.id, layout, render(&question.about, layout)));
        }
        self.rendered.as_ref().map(|(_, _, rendered)| rendered)
    }

    pub(crate) fn choices(&mut self) -> Option<&mut AnswerChoices> {
        let question = self.questions.front()?;
        if self.choices.as_ref().is_none_or(|(id, _)| *id != question.id) {
            self.choices = Some((question.id, AnswerChoices::new(&question.about)));
        }
        self.choices.as_mut().map(|(_, choices)| choices)
    }

    /// The editor for the denial message, if open.
    pub fn message(&self) -> Option<&Editor> {
        self.message.as_ref()
    }

    /// Why the last key did nothing, if it did not.
    pub(crate) fn unused_key(&self) -> Option<UnusedKey> {
        self.unused_key
    }

    pub(crate) fn push(&mut self, question: PendingQuestion) {
        self.questions.push_back(question);
    }

    /// The current question is part of a frame.
    pub(crate) fn drawn(&mut self, now: Option<Time>, fit: QuestionFit) {
        if fit == QuestionFit::Whole {
            self.was_read = true;
        }
        if self.shown == QuestionShown::NotYet {
            self.start_delay(now);
            self.is_first_frame = true;
        }
    }

    /// The frame reached the screen. The terminal may have taken a while to draw it.
    pub(crate) fn shown(&mut self, now: Option<Time>) {
        if std::mem::take(&mut self.is_first_frame) {
            self.start_delay(now);
        }
    }

    pub(crate) fn withdraw(&mut self, id: QuestionId) {
        if self.question().is_some_and(|question| question.id == id) {
            self.message = None;
            self.shown = QuestionShown::NotYet;
            self.was_read = false;
            self.unused_key = None;
            self.held = None;
        }
        self.questions.retain(|question| question.id != id);
    }

    pub(crate) fn clear(&mut self) {
        *self = PermissionPrompt::default();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        // A paste is not an answer, but it may be a message.
        if let Some(message) = &mut self.message {
            message.paste(text);
        }
    }

    fn start_delay(&mut self, now: Option<Time>) {
        self.shown = QuestionShown::Since(now.map(|now| Time(now.0 + IGNORE_KEYS_MS)));
    }

    /// The user may be typing and has not read the question yet.
    fn is_too_early(&mut self, now: Option<Time>) -> bool {
        let is_early = match (self.shown, now) {
            (QuestionShown::NotYet, _) => return true,
            (QuestionShown::Since(Some(from)), Some(now)) => now < from,
            (QuestionShown::Since(_), _) => false,
        };
        if is_early {
            self.start_delay(now);
        }
        is_early
    }

    /// Answers with the letter that was held, if no other key followed it.
    pub(crate) fn settle(&mut self, now: Time) -> PromptOutcome {
        match self.held.take_if(|held| held.due <= now) {
            Some(held) => self.choose(held.choice),
            None => PromptOutcome::Pending,
        }
    }

    pub(crate) fn holds_an_answer(&self) -> bool {
        self.held.is_some()
    }

    pub(crate) fn key(&mut self, key: KeyEvent, now: Option<Time>, width: usize, draft: Draft) -> PromptOutcome {
        if self.message.is_some() {
            return self.message_key(key, width);
        }
        // Denying and stopping is always safe.
        if key.code == KeyCode::Esc {
            return self.deny_and_stop();
        }
        self.unused_key = None;
        if self.is_too_early(now) {
            self.unused_key = Some(UnusedKey::TooEarly);
            return PromptOutcome::Pending;
        }
        // Caps Lock and Shift change nothing.
        let is_typed = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let is_letter = matches!(key.code, KeyCode::Char(_)) && is_typed;
        if self.held.take().is_some() && is_letter {
            self.start_delay(now);
            self.unused_key = Some(UnusedKey::PartOfText);
            return PromptOutcome::Pending;
        }
        let Some(choices) = self.choices() else { return PromptOutcome::Pending };
        let chosen = match key.code {
            KeyCode::Char('v' | 'V') if is_typed => {
                self.was_read = true;
                return self.preview();
            }
            KeyCode::Right | KeyCode::Down | KeyCode::Tab => {
                choices.select_next();
                None
            }
            KeyCode::Left | KeyCode::Up | KeyCode::BackTab => {
                choices.select_previous();
                None
            }
            KeyCode::Enter if key.modifiers.is_empty() => choices.selected(),
            KeyCode::Char(letter) if is_typed => choices.by_key(letter),
            _ => None,
        };
        match chosen {
            None => {
                self.unused_key = match key.code {
                    KeyCode::Char(letter) if is_typed => Some(UnusedKey::NoAnswer(letter)),
                    KeyCode::Enter => Some(UnusedKey::NothingSelected),
                    _ => None,
                };
                if is_letter {
                    // It may be the first one of a text.
                    self.start_delay(now);
                }
                PromptOutcome::Pending
            }
            Some(choice) => match now {
                Some(now) if is_letter && draft == Draft::Begun => {
                    self.held = Some(HeldAnswer { choice, due: Time(now.0 + HOLD_MS) });
                    PromptOutcome::Pending
                }
                Some(_) | None => self.choose(choice),
            },
        }
    }

    fn choose(&mut self, choice: AnswerChoice) -> PromptOutcome {
        match choice {
            // Nobody can allow what they have not seen.
            AnswerChoice::Once | AnswerChoice::Session | AnswerChoice::Project if !self.was_read => {
                self.unused_key = Some(UnusedKey::NotRead);
                PromptOutcome::Pending
            }
            AnswerChoice::Once => self.answer(PermissionAnswer::Once),
            AnswerChoice::Session => self.answer(PermissionAnswer::Session),
            AnswerChoice::Project => self.answer(PermissionAnswer::Project),
            AnswerChoice::No => self.answer(PermissionAnswer::No(None)),
            AnswerChoice::Message => {
                self.message = Some(Editor::default());
                PromptOutcome::Pending
            }
        }
    }

    fn preview(&self) -> PromptOutcome {
        let Some(question) = self.questions.front() else { return PromptOutcome::Pending };
        let title = format!("{}: {}", visible(&question.about.tool), visible(&question.about.subject));
        PromptOutcome::Preview { title, text: visible_body(&question.about) }
    }

    /// Denies the question and ends the turn.
    pub(crate) fn deny_and_stop(&mut self) -> PromptOutcome {
        match self.answer(PermissionAnswer::No(None)) {
            PromptOutcome::Answer(command) => PromptOutcome::AnswerAndStop(command),
            other => other,
        }
    }

    fn message_key(&mut self, key: KeyEvent, width: usize) -> PromptOutcome {
        let Some(message) = &mut self.message else { return PromptOutcome::Pending };
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = message.take();
                let text = text.trim();
                self.answer(PermissionAnswer::No((!text.is_empty()).then(|| text.to_owned())))
            }
            KeyCode::Esc => {
                self.message = None;
                PromptOutcome::Pending
            }
            _ => {
                message.key(key, width);
                PromptOutcome::Pending
            }
        }
    }

    fn answer(&mut self, permit: PermissionAnswer) -> PromptOutcome {
        self.message = None;
        let Some(question) = self.questions.pop_front() else { return PromptOutcome::Pending };
        // Keys meant for this question must not answer the next one.
        self.shown = QuestionShown::NotYet;
        self.was_read = false;
        self.unused_key = None;
        self.held = None;
        PromptOutcome::Answer(Command::Answer { id: question.id, answer: permit })
    }
}
