//! Tools that wait for a word of the user.
#![expect(clippy::wildcard_enum_match_arm, reason = "keys are many and not ours; one we do not know does nothing")]

use std::collections::VecDeque;

use aside_core::block::Time;
use crossterm::event::{KeyCode, KeyEvent};

use crate::input::editor::Editor;
use crate::seam::{Command, Permit, Question, QuestionId};
use crate::text::Body;
use crate::text::light::{Job, Lit, Ticket};
use crate::transcript::plain::{Extent, Plain};

/// Keys this soon after a question, or after each other, are no answer.
const TYPING_MS: u64 = 500;

#[derive(Debug, Default)]
pub struct Asking {
    questions: VecDeque<Question>,
    /// The word that goes with a no. What was being written before is left alone.
    word: Option<Editor>,
    /// Answers count from here on.
    from: Option<Time>,
    /// What the question in front would do, as rows.
    preview: Option<(QuestionId, Plain)>,
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

    /// What would be done, at a width.
    pub(crate) fn preview(&mut self, width: usize) -> Option<Body<'_>> {
        let question = self.questions.front()?;
        let (_, text) = question.parts();
        let text = text?;
        if self.preview.as_ref().is_none_or(|(id, _)| *id != question.id) {
            self.preview = Some((question.id, Plain::wish(text)));
        }
        self.preview.as_mut().map(|(_, plain)| plain.body(width, Extent::All))
    }

    pub(crate) fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        self.preview.as_mut().and_then(|(_, plain)| plain.wants(next))
    }

    pub(crate) fn lit(&mut self, lit: &mut Lit) -> bool {
        self.preview.as_mut().is_some_and(|(_, plain)| plain.lit(lit))
    }

    /// The word being written, if one is.
    pub fn word(&self) -> Option<&Editor> {
        self.word.as_ref()
    }

    pub(crate) fn ask(&mut self, question: Question, now: Option<Time>) {
        if self.questions.is_empty() {
            self.hold(now);
        }
        self.questions.push_back(question);
    }

    pub(crate) fn withdraw(&mut self, id: QuestionId) {
        if self.question().is_some_and(|question| question.id == id) {
            self.word = None;
        }
        self.questions.retain(|question| question.id != id);
    }

    pub(crate) fn clear(&mut self) {
        self.questions.clear();
        self.word = None;
    }

    pub(crate) fn paste(&mut self, text: &str) {
        // A paste is no answer, but it may be a word.
        if let Some(word) = &mut self.word {
            word.paste(text);
        }
    }

    /// Keys of the last answer are not meant for the next question.
    fn hold(&mut self, now: Option<Time>) {
        self.from = now.map(|now| Time(now.0 + TYPING_MS));
    }

    pub(crate) fn key(&mut self, key: KeyEvent, now: Option<Time>, width: usize) -> Answered {
        if self.word.is_some() {
            return self.word_key(key, now, width);
        }
        // Somebody is in the middle of a word and has not seen the question.
        if let (Some(from), Some(at)) = (self.from, now)
            && at < from
        {
            self.hold(now);
            return Answered::NotYet;
        }
        let Some(question) = self.questions.front() else { return Answered::NotYet };
        let covers = question.covers.is_some();
        match key.code {
            KeyCode::Char('y') => self.answer(Permit::Once, now),
            KeyCode::Char('s') if covers => self.answer(Permit::Session, now),
            KeyCode::Char('p') if covers => self.answer(Permit::Project, now),
            KeyCode::Char('n') => self.answer(Permit::No(None), now),
            KeyCode::Char('w') => {
                self.word = Some(Editor::default());
                Answered::NotYet
            }
            KeyCode::Char('v') => Answered::Look {
                title: format!("{} {}", question.tool, question.subject),
                text: question.preview.clone().unwrap_or_else(|| question.subject.clone()),
            },
            KeyCode::Esc => match self.answer(Permit::No(None), now) {
                Answered::With(command) => Answered::AndStop(command),
                other => other,
            },
            _ => Answered::NotYet,
        }
    }

    fn word_key(&mut self, key: KeyEvent, now: Option<Time>, width: usize) -> Answered {
        let Some(word) = &mut self.word else { return Answered::NotYet };
        match key.code {
            KeyCode::Enter if key.modifiers.is_empty() => {
                let text = word.take();
                let text = text.trim();
                self.answer(Permit::No((!text.is_empty()).then(|| text.to_owned())), now)
            }
            KeyCode::Esc => {
                self.word = None;
                Answered::NotYet
            }
            _ => {
                word.key(key, width);
                Answered::NotYet
            }
        }
    }

    fn answer(&mut self, permit: Permit, now: Option<Time>) -> Answered {
        self.word = None;
        let Some(question) = self.questions.pop_front() else { return Answered::NotYet };
        self.hold(now);
        Answered::With(Command::Answer { id: question.id, permit })
    }
}
