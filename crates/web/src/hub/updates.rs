//! Turns the updates of a session into frames for its tabs.

use std::sync::Arc;
use std::time::Instant;

use aside_core::compaction::CompactionTrigger;
use aside_core::message::Message;
use aside_core::turn::TurnEnd;
use aside_front::wording::{self, HintStyle, Severity};
use aside_front::{CommandOutput, DecisionRow, PendingQuestion, Sending, SteeringError, Update};
use serde_json::{Value, json};

use super::StoredEntries;
use super::state::{HubState, Turn, now_ms, question_view};
use crate::entry::{Body, Entry};
use crate::frames::Frame;
use crate::transcript::Transcript;
use crate::view::OutputView;

impl HubState {
    pub(super) fn take(&mut self, update: Update, stored: &StoredEntries<'_>) -> Vec<Frame> {
        let one = |frame: Frame| vec![frame];
        let optional = |frame: Option<Frame>| frame.into_iter().collect();
        match update {
            Update::Sending(sending) => self.sending(*sending),
            Update::Opened { block, opening } => {
                self.turn.retry = None;
                let model = self.turn.sending.model.clone();
                self.transcript.opened(block, &opening, now_ms(), &model)
            }
            Update::Item { block } => optional(self.transcript.item(block)),
            Update::Grew { block, text } => optional(self.transcript.grew(block, &text)),
            Update::Refiled { block, to } => optional(self.transcript.refiled(block, to, now_ms())),
            Update::ClosedAsStreamed { block, span, sealed_bytes } => {
                self.transcript.closed_as_streamed(block, span, sealed_bytes)
            }
            Update::Closed { block, value } => optional(self.transcript.closed(block, &value)),
            Update::Emptied { block } => optional(self.transcript.emptied(block)),
            Update::Retrying { after, attempt, why } => {
                let retry =
                    json!({"afterMs": after.as_millis() as u64, "attempt": attempt, "why": why, "at": now_ms()});
                self.turn.retry = Some(retry);
                one(self.turn_frame())
            }
            Update::TurnNotice(notice) => {
                let text = wording::turn_notice(&notice);
                one(self.note("notice", json!({"what": text.what, "hint": text.detail})))
            }
            Update::Noted(note) => one(self.note("notice", json!({"what": note.message}))),
            Update::ToolStarted(call) => optional(self.transcript.tool_started(&call, now_ms())),
            Update::ToolOutput { call, tail, n_lines } => {
                optional(self.transcript.tool_output(&call, OutputView::new(&tail, n_lines)))
            }
            Update::ToolEnded(result) => self.transcript.tool_ended(&result, now_ms()),
            Update::Recorded(message) => optional(self.transcript.recorded(&message)),
            Update::TurnEnded(end) => self.turn_ended(&end),
            Update::SessionStored(id) => self.stored_as(id),
            Update::MessageStored(id) => {
                self.transcript.set_next_id(id);
                Vec::new()
            }
            Update::QuestionAsked(question) => one(self.question_asked(*question)),
            Update::QuestionWithdrawn(id) => {
                self.questions.retain(|(question, _)| question.id != id);
                one(self.frame("answered", &json!({"id": id.0, "permit": "withdrawn"})))
            }
            Update::CommandOutput(output) => {
                let (kind, value) = output_view(&output);
                one(self.note(kind, value))
            }
            Update::Compacted { summarised, kept, trigger, .. } => one(self.compacted(summarised, kept, trigger)),
            Update::Restored(messages) => one(self.restored(&messages, stored)),
            Update::Undone(text) => one(self.frame("undone", &json!({"text": text}))),
            Update::NotSent { text, what, hint } => {
                self.turn = Turn::default();
                let mut frames = self.not_sent(&text, Some(SteeringError { what, hint }));
                frames.push(self.turn_frame());
                frames
            }
            Update::NotSteered { text, error } => self.not_sent(&text, error),
            Update::TakenBack(text) => self.not_sent(&text, None),
            Update::NotTakenBack(_) => Vec::new(),
            Update::Status(status) => {
                self.status = *status;
                one(self.frame("status", &json!(self.status)))
            }
            Update::CompletionLists(lists) => {
                self.lists = *lists;
                one(self.frame("lists", &json!(self.lists)))
            }
            // The page asks for no live lists.
            Update::Models(_) => Vec::new(),
            Update::PromptHistory(prompts) => {
                let newest = prompts.len().saturating_sub(100);
                self.prompts = prompts.into_iter().skip(newest).collect();
                one(self.frame("prompts", &json!(self.prompts)))
            }
            Update::Ready => {
                let was_running = std::mem::take(&mut self.turn.is_running);
                self.turn.since = None;
                if was_running { one(self.turn_frame()) } else { Vec::new() }
            }
            // The stored message has them; signals do not come this way.
            Update::Sealed { .. } | Update::Usage(_) | Update::ReplyEnded(_) | Update::GoTo { .. } => Vec::new(),
            Update::Interrupt | Update::Quit | Update::Suspend => Vec::new(),
            // The hub asks for none.
            Update::Detail(_) => Vec::new(),
        }
    }

    fn sending(&mut self, sending: Sending) -> Vec<Frame> {
        self.transcript.sending();
        let mut frames: Vec<Frame> = Vec::new();
        for note in &sending.notes {
            frames.push(self.note("notice", json!({"what": note})));
        }
        let entries = self.transcript.entries();
        // Both lists end with the same message, but the transcript may begin later.
        let row = |row: &DecisionRow| {
            let from_end = sending.messages.checked_sub(row.message)?;
            let entry = entries.get(entries.len().checked_sub(from_end)?)?;
            let block = row.block.filter(|block| matches!(entry.blocks.get(*block), Some(Body::Thinking(_))))?;
            Some(json!({"entry": entry.id, "block": block, "action": row.action, "why": row.why}))
        };
        let mut known: Vec<Value> = sending.decisions.iter().filter_map(row).collect();
        known.extend(self.kept_from.into_iter().flat_map(|kept_from| summarised(entries, kept_from)));
        let rows = &sending.decisions;
        self.sent = json!({"blocks": known, "rows": rows});
        frames.push(self.frame("sent", &self.sent));
        self.turn = Turn {
            is_running: true,
            since: self.turn.since.or_else(|| Some(now_ms())),
            sending: Sending { notes: Vec::new(), decisions: Vec::new(), ..sending },
            retry: None,
        };
        frames.push(self.turn_frame());
        frames
    }

    fn turn_ended(&mut self, end: &TurnEnd) -> Vec<Frame> {
        let mut frames = self.transcript.turn_ended(now_ms());
        self.turn = Turn { sending: std::mem::take(&mut self.turn.sending), ..Turn::default() };
        self.questions.clear();
        if let Some(notice) = wording::turn_end(end, HintStyle::SlashCommands) {
            let kind = match notice.severity {
                Severity::Warning => "warning",
                Severity::Error => "error",
            };
            frames.push(self.note(kind, json!({"what": notice.what, "hint": notice.hint})));
        }
        frames.push(self.turn_frame());
        frames
    }

    fn question_asked(&mut self, question: PendingQuestion) -> Frame {
        let view = question_view(&question, Instant::now());
        self.questions.push((question, Instant::now()));
        self.frame("question", &json!(view))
    }

    fn compacted(&mut self, summarised: usize, kept: usize, trigger: CompactionTrigger) -> Frame {
        let entries = self.transcript.entries();
        let first_kept = entries.len().checked_sub(kept).and_then(|at| entries.get(at));
        self.kept_from = Some(first_kept.map_or(i64::MAX, |entry| entry.id));
        self.note("line", json!({"what": wording::compacted(summarised, trigger)}))
    }

    /// The store has the messages with their ids; without it they are numbered.
    fn restored(&mut self, messages: &[Arc<Message>], stored: &StoredEntries<'_>) -> Frame {
        let local = || messages.iter().zip(1..).map(|(message, id)| Entry::of(id, message)).collect();
        let (entries, earlier) = stored(&self.id).unwrap_or_else(|| (local(), None));
        self.transcript = Transcript::new(entries, earlier);
        self.kept_from = None;
        self.transcript.whole()
    }

    /// A message goes back into the input, with the reason if there is one.
    fn not_sent(&mut self, text: &str, error: Option<SteeringError>) -> Vec<Frame> {
        let mut frames = vec![self.frame("notSent", &json!({"text": text}))];
        if let Some(SteeringError { what, hint }) = error {
            frames.push(self.note("error", json!({"what": what, "hint": hint})));
        }
        frames
    }

    /// The session continues in a copy, under another id.
    fn stored_as(&mut self, id: String) -> Vec<Frame> {
        if self.id == id {
            return Vec::new();
        }
        self.id = id;
        vec![self.hello()]
    }
}

/// The thinking of messages that are replaced by a summary.
fn summarised(entries: &[Entry], kept_from: i64) -> impl Iterator<Item = Value> {
    let of_entry = |entry: &Entry| {
        let (id, blocks) = (entry.id, entry.blocks.iter().enumerate());
        let thinking = blocks.filter(|(_, body)| matches!(body, Body::Thinking(_))).map(|(block, _)| block);
        thinking.map(move |block| (id, block)).collect::<Vec<_>>()
    };
    let older = entries.iter().take_while(move |entry| entry.id != kept_from);
    older.flat_map(of_entry).map(|(entry, block)| {
        json!({"entry": entry, "block": block, "action": "summarised", "why": "this turn was replaced by a summary"})
    })
}

/// The output of a command, with Markdown as nodes.
fn output_view(output: &CommandOutput) -> (&'static str, Value) {
    match output {
        CommandOutput::Line(text) => ("line", json!({"what": text})),
        CommandOutput::Error { what, hint } => ("error", json!({"what": what, "hint": hint})),
        CommandOutput::Table { head, rows } => ("table", json!({"head": head, "rows": rows})),
        CommandOutput::Markdown(text) => ("markdown", json!({"nodes": aside_markdown::parse(text)})),
        CommandOutput::Titled { command, page } => {
            let (kind, mut value) = output_view(page);
            if let Some(members) = value.as_object_mut() {
                members.insert("command".to_owned(), json!(command));
            }
            (kind, value)
        }
    }
}
