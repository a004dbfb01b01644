//! What a tab shows besides the messages: the turn, the questions and the notes.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aside_core::permission_question::{AnswerChoices, IGNORE_KEYS_MS, PermissionAnswer};
use aside_core::tool_mode::ToolMode;
use aside_front::slash_commands::COMMANDS;
use aside_front::{CompletionLists, PendingQuestion, QuestionId, Sending, Status};
use serde_json::{Value, json};

use super::{CommandRefusal, HubAccess};
use crate::frames::{Frame, Position};
use crate::transcript::Transcript;
use crate::view::QuestionView;

/// Notes that are kept for tabs that open later.
const MAX_NOTES: usize = 200;

pub(super) struct HubState {
    /// The id in the store.
    pub(super) id: String,
    pub(super) transcript: Transcript,
    pub(super) status: Status,
    pub(super) lists: CompletionLists,
    pub(super) prompts: Vec<String>,
    pub(super) turn: Turn,
    /// What the last request did with thinking, by message and block.
    pub(super) sent: Value,
    /// The first message that is not part of the summary, after a compaction.
    pub(super) kept_from: Option<i64>,
    pub(super) notes: Vec<Value>,
    pub(super) n_notes: u64,
    pub(super) questions: Vec<(PendingQuestion, Instant)>,
    pub(super) access: HubAccess,
    pub(super) n_tabs: usize,
    /// When the last tab left, or the session was opened.
    pub(super) idle_since: Instant,
}

/// Whether a turn runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    pub(super) is_running: bool,
    pub(super) since: Option<u64>,
    pub(super) sending: Sending,
    pub(super) retry: Option<Value>,
}

impl Turn {
    fn view(&self) -> Value {
        let Sending { step, model, effort, tokens, limit, .. } = &self.sending;
        json!({
            "running": self.is_running, "since": self.since, "retry": self.retry,
            "step": step, "model": model, "effort": effort, "tokens": tokens, "limit": limit,
        })
    }
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl HubState {
    pub(super) fn first_frames(&self, from: Option<Position>) -> Vec<Frame> {
        let mut frames = vec![self.hello()];
        match from {
            Some(from) => frames.extend(self.transcript.since(from)),
            None => frames.push(self.transcript.whole()),
        }
        frames
    }

    /// Everything but the messages.
    pub(super) fn hello(&self) -> Frame {
        let data = json!({
            "session": self.id,
            "readOnly": matches!(self.access, HubAccess::Reader),
            "status": self.status,
            "lists": self.lists,
            "prompts": self.prompts,
            "turn": self.turn.view(),
            "sent": self.sent,
            "notes": self.notes,
            "modes": ToolMode::WORDS,
            "commands": COMMANDS.iter().map(|entry| [entry.name, entry.arguments, entry.doc]).collect::<Vec<_>>(),
            "questions": self.questions.iter().map(|(question, asked)| question_view(question, *asked)).collect::<Vec<_>>(),
            "now": now_ms(),
        });
        // It does not affect the messages, so a tab keeps its position.
        Frame { position: Position::default(), text: format!("event: hello\ndata: {data}\n\n").into() }
    }

    pub(super) fn frame(&self, event: &str, data: &Value) -> Frame {
        Frame::new(self.transcript.position(), event, data)
    }

    pub(super) fn turn_frame(&self) -> Frame {
        self.frame("turn", &self.turn.view())
    }

    /// Checks an answer and takes the question away.
    pub(super) fn answer(&mut self, id: QuestionId, answer: &PermissionAnswer) -> Result<Frame, CommandRefusal> {
        let at = self.questions.iter().position(|(question, _)| question.id == id).ok_or(CommandRefusal::Answered)?;
        let Some((question, asked)) = self.questions.get(at) else { return Err(CommandRefusal::Answered) };
        if asked.elapsed() < Duration::from_millis(IGNORE_KEYS_MS) {
            return Err(CommandRefusal::TooEarly);
        }
        let is_lasting = matches!(answer, PermissionAnswer::Session | PermissionAnswer::Project);
        if is_lasting && !AnswerChoices::new(&question.about).offers_lasting() {
            return Err(CommandRefusal::Invalid("this question has no lasting answer".to_owned()));
        }
        self.questions.remove(at);
        Ok(self.frame("answered", &json!({"id": id.0, "permit": answer.as_str()})))
    }

    /// Shows a line that is not part of the conversation.
    pub(super) fn note(&mut self, kind: &str, value: Value) -> Frame {
        self.n_notes += 1;
        let note =
            json!({"number": self.n_notes, "after": self.transcript.position().entry, "kind": kind, "value": value});
        let frame = self.frame("note", &note);
        self.notes.push(note);
        if self.notes.len() > MAX_NOTES {
            self.notes.remove(0);
        }
        frame
    }
}

pub(super) fn question_view(question: &PendingQuestion, asked: Instant) -> QuestionView {
    let passed = u64::try_from(asked.elapsed().as_millis()).unwrap_or(u64::MAX);
    QuestionView::new(question, IGNORE_KEYS_MS.saturating_sub(passed))
}
