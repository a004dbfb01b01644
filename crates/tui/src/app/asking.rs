//! Tools that wait for the person's permission.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use std::collections::VecDeque;

use aside_core::block::Time;
use aside_core::question::{Choice, Choices, Layout, Rendered, TOO_EARLY_MS, render, visible, visible_body};
use crossterm::event::{KeyCode, KeyEvent};

use crate::input::editor::Editor;
use crate::seam::{Command, Permit, Question, QuestionId};

#[derive(Debug, Default)]
pub struct Asking {
    questions: VecDeque<Question>,
    /// The answers to the question in front.
    choices: Option<(QuestionId, Choices)>,
    /// The message that goes with a no. What was being written before is left alone.
    message: Option<Editor>,
    shown: Shown,
    /// The frame that shows it first is being written.
    is_first_frame: bool,
    /// What would be done could be read, on the screen or with `v`.
    was_read: bool,
    /// The question in front as it was laid out last.
    rendered: Option<(QuestionId, Layout, Rendered)>,
}

/// Whether there is room for the question on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readable {
    Yes,
    No,
}

/// Whether the question in front is on the screen.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Shown {
    #[default]
    NotYet,
    /// And answers count from this time on.
    Since(Option<Time>),
}

/// What a key led to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    NotYet,
    With(Command),
    /// No, and the turn is to stop.
    AndStop(Command),
    /// The user wants to see all of what would be done.
    Look {
        title: String,
        text: String,
    },
}

impl Asking {
    pub fn question(&self) -> Option<&Question> {
        self.questions.front()
    }

    pub fn is_waiting(&self) -> bool {
        !self.questions.is_empty()
    }

    /// The question in front, laid out once for each size.
    pub(crate) fn rendered(&mut self, layout: Layout) -> Option<&Rendered> {
        let question = self.questions.front()?;
        let is_laid_out = |(id, known, _): &(QuestionId, Layout, Rendered)| (*id, *known) == (question.id, layout);
        if !self.rendered.as_ref().is_some_and(is_laid_out) {
            self.rendered = Some((question.id, layout, render(&question.about, layout)));
        }
        self.rendered.as_ref().map(|(_, _, rendered)| rendered)
    }

    pub(crate) fn choices(&mut self) -> Option<&mut Choices> {
        let question = self.questions.front()?;
        if self.choices.as_ref().is_none_or(|(id, _)| *id != question.id) {
            self.choices = Some((question.id, Choices::new(&question.about)));
        }
        self.choices.as_mut().map(|(_, choices)| choices)
    }

    /// The message being written, if one is.
    pub fn message(&self) -> Option<&Editor> {
        self.message.as_ref()
    }

    pub(crate) fn ask(&mut self, question: Question) {
        self.questions.push_back(question);
    }

    /// The question in front is part of a frame.
    pub(crate) fn drawn(&mut self, now: Option<Time>, readable: Readable) {
        if readable == Readable::Yes {
            self.was_read = true;
        }
        if self.shown == Shown::NotYet {
            self.hold(now);
            self.is_first_frame = true;
        }
    }

    /// That frame is on the screen, however long the terminal took for it.
    pub(crate) fn shown(&mut self, now: Option<Time>) {
        if std::mem::take(&mut self.is_first_frame) {
            self.hold(now);
        }
    }

    pub(crate) fn withdraw(&mut self, id: QuestionId) {
        if self.question().is_some_and(|question| question.id == id) {
            self.message = None;
            self.shown = Shown::NotYet;
            self.was_read = false;
        }
        self.questions.retain(|question| question.id != id);
    }

    pub(crate) fn clear(&mut self) {
        *self = Asking::default();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        // A paste is no answer, but it may be a message.
        if let Some(message) = &mut self.message {
            message.paste(text);
        }
    }

    fn hold(&mut self, now: Option<Time>) {
        self.shown = Shown::Since(now.map(|now| Time(now.0 + TOO_EARLY_MS)));
    }

    /// Somebody is in the middle of a word and has not read the question.
    fn is_too_early(&mut self, now: Option<Time>) -> bool {
        let is_early = match (self.shown, now) {
            (Shown::NotYet, _) => return true,
            (Shown::Since(Some(from)), Some(now)) => now < from,
            (Shown::Since(_), _) => false,
        };
        if is_early {
            self.hold(now);
        }
        is_early
    }

    pub(crate) fn key(&mut self, key: KeyEvent, now: Option<Time>, width: usize) -> Answered {
        if self.message.is_some() {
            return self.message_key(key, width);
        }
        // To deny and stop is safe at any time.
        if key.code == KeyCode::Esc {
            return self.deny_and_stop();
        }
        if self.is_too_early(now) {
            return Answered::NotYet;
        }
        let Some(choices) = self.choices() else { return Answered::NotYet };
        let chosen = match key.code {
            KeyCode::Char('v') => {
                self.was_read = true;
                return self.look();
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
            KeyCode::Char(letter) if key.modifiers.is_empty() => choices.by_key(letter),
            _ => None,
        };
        match chosen {
            None => Answered::NotYet,
            // Nobody can say yes to what cannot be seen.
            Some(Choice::Once | Choice::Session | Choice::Project) if !self.was_read => Answered::NotYet,
            Some(Choice::Once) => self.answer(Permit::Once),
            Some(Choice::Session) => self.answer(Permit::Session),
            Some(Choice::Project) => self.answer(Permit::Project),
            Some(Choice::No) => self.answer(Permit::No(None)),
            Some(Choice::Message) => {
                self.message = Some(Editor::default());
                Answered::NotYet
            }
        }
    }

    fn look(&self) -> Answered {
        let Some(question) = self.questions.front() else { return Answered::NotYet };
        let title = format!("{}: {}", visible(&question.about.tool), visible(&question.about.subject));
        Answered::Look { title, text: visible_body(&question.about) }
    }

    /// The question is denied and the turn is to end.
    pub(crate) fn deny_and_stop(&mut self) -> Answered {
        match self.answer(Permit::No(None)) {
            Answered::With(command) => Answered::AndStop(command),
            other => other,
        }
    }

    fn message_key(&mut self, key: KeyEvent, width: usize) -> Answered {
        let Some(message) = &mut self.message else { return Answered::NotYet };
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = message.take();
                let text = text.trim();
                self.answer(Permit::No((!text.is_empty()).then(|| text.to_owned())))
            }
            KeyCode::Esc => {
                self.message = None;
                Answered::NotYet
            }
            _ => {
                message.key(key, width);
                Answered::NotYet
            }
        }
    }

    fn answer(&mut self, permit: Permit) -> Answered {
        self.message = None;
        let Some(question) = self.questions.pop_front() else { return Answered::NotYet };
        // The keys of this answer are not meant for the next question.
        self.shown = Shown::NotYet;
        self.was_read = false;
        Answered::With(Command::Answer { id: question.id, permit })
    }
}
