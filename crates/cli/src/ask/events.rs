//! `ask --json`: prints a turn as typed events, one JSON object per line.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Instant;

use aside_core::block::{Block, Seal, ToolCall, ToolResult};
use aside_core::event::{Event, ExtraValue};
use aside_core::json;
use aside_core::message::{Message, Role};
use aside_core::permission_question::PermissionQuestion;
use aside_core::safe_json;
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_front::wording::compacted;
use aside_front::{Sending, Update, UpdateDetail};
use aside_session::UpdateSink;
use aside_session::single_turn::RunStats;
use serde_json::json;
use serde_json::value::RawValue;

use super::outcome::TurnOutcome;
use super::{outcome, wording};
use crate::ExitStatus;

pub(crate) struct JsonEvents<O: Write> {
    out: O,
    started: Instant,
    /// The text of the last assistant message.
    answer: String,
    /// How the current line begins. Kept to reuse its memory.
    opening: String,
    write_error: Option<std::io::Error>,
}

impl<O: Write> JsonEvents<O> {
    pub(crate) fn new(out: O) -> JsonEvents<O> {
        JsonEvents { out, started: Instant::now(), answer: String::new(), opening: String::new(), write_error: None }
    }

    /// Writes the statistics, if they are wanted, and the last line: the answer, or why there is none.
    pub(crate) fn finish(
        mut self,
        end: &TurnOutcome,
        exit: ExitStatus,
        stats: Option<&RunStats>,
    ) -> std::io::Result<()> {
        if let Some(stats) = stats {
            self.write_value(&outcome::stats_json(stats));
        }
        if exit == ExitStatus::Done {
            if *end == TurnOutcome::Ended(TurnEnd::Length) {
                self.write_notice("length", &end_message(end));
            }
            let answer = std::mem::take(&mut self.answer);
            self.write_value(&json!({ "event": "answer", "text": answer }));
        } else {
            self.write_value(&outcome::failed(end, exit, &end_message(end)));
        }
        self.close()
    }

    /// Writes the last line for a mistake that was found before anything was sent.
    pub(crate) fn fail(mut self, message: &str) -> std::io::Result<()> {
        self.write_value(&outcome::failed_early(message));
        self.close()
    }

    fn close(mut self) -> std::io::Result<()> {
        self.flush();
        match self.write_error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Writes one object with its time on a line. Large objects are written
    /// directly, without a copy in memory.
    fn write_line(&mut self, write: impl FnOnce(&mut TimestampedWriter<'_, O>) -> std::io::Result<bool>) {
        let at = self.started.elapsed().as_millis();
        self.opening.clear();
        // Writing into memory does not fail.
        let _ = write!(self.opening, "{{\"at\":{at},");
        let mut writer = TimestampedWriter { out: &mut self.out, opening: Some(&self.opening) };
        let written = match write(&mut writer) {
            Ok(true) => self.out.write_all(b"\n"),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.write_error.get_or_insert(error);
        }
    }

    fn write_value(&mut self, value: &impl serde::Serialize) {
        self.write_line(|out| safe_json::write(out, value).map(|()| true));
    }

    fn write_notice(&mut self, code: &str, message: &str) {
        self.write_value(&json!({ "event": "notice", "code": code, "message": message }));
    }

    fn write_question(&mut self, question: &PermissionQuestion) {
        let PermissionQuestion { id, tool, subject, protected, .. } = question;
        let tier = question.confinement.as_ref().map(|confinement| confinement.tier.to_string());
        let outside = question.outside();
        self.write_value(&json!({
            "event": "question", "id": id, "tool": tool, "subject": subject,
            "tier": tier, "outside": outside, "protected": protected,
        }));
    }

    fn remember_answer(&mut self, message: &Message) {
        if message.role != Role::Assistant {
            return;
        }
        let texts = message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                None
            }
        });
        self.answer = texts.collect();
    }
}

fn end_message(end: &TurnOutcome) -> String {
    wording::turn_end(end).1.map_or_else(|| "interrupted".to_owned(), |notice| notice.what)
}

/// Fields in alphabetical order, as in the other events.
#[derive(serde::Serialize)]
struct ToolStarted<'a> {
    arguments: &'a RawValue,
    event: &'static str,
    id: &'a str,
    name: &'a str,
}

/// Inserts the time after the opening brace of an object.
struct TimestampedWriter<'a, O> {
    out: &'a mut O,
    opening: Option<&'a str>,
}

impl<O: Write> Write for TimestampedWriter<'_, O> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let rest = match self.opening.take_if(|_| !bytes.is_empty()) {
            Some(opening) => {
                self.out.write_all(opening.as_bytes())?;
                bytes.strip_prefix(b"{").unwrap_or(bytes)
            }
            None => bytes,
        };
        self.out.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl<O: Write> JsonEvents<O> {
    /// Writes an event of the reply. `value` is its block, if that is complete.
    fn write_event(&mut self, event: &Event<'_>, value: Option<&Block>) {
        self.write_line(|out| json::write_event_with_block(event, value, out));
    }

    fn write_detail(&mut self, detail: &UpdateDetail) {
        match detail {
            UpdateDetail::Opened { block, opening } => {
                self.write_event(&Event::Opened { block: *block, opening: opening.as_event() }, None);
            }
            UpdateDetail::Item { block, index } => {
                self.write_event(&Event::Item { block: *block, index: *index }, None)
            }
            UpdateDetail::Sealed { block, seal: Seal { kind, payload }, value } => {
                self.write_event(&Event::Sealed { block: *block, kind: *kind, payload }, value.as_deref());
            }
            UpdateDetail::Closed { block, value } => {
                self.write_event(&Event::Closed { block: *block }, value.as_deref());
            }
            UpdateDetail::Extra { block, name } => {
                let value = ExtraValue { name, member: None, json: "", continues: false };
                self.write_event(&Event::Extra { block: *block, value }, None);
            }
            UpdateDetail::LeftOut(what) => self.write_notice("left_out", what),
            UpdateDetail::Answered { call, permit } => {
                self.write_value(&json!({ "event": "answered", "id": call, "permit": permit.as_str() }));
            }
        }
    }

    fn write_sending(&mut self, sending: &Sending) {
        let Sending { step, model, effort, tokens, notes, .. } = sending;
        self.write_value(
            &json!({ "event": "request", "step": step, "model": model, "effort": effort, "tokens": tokens }),
        );
        for note in notes {
            self.write_notice("request", note);
        }
    }

    fn write_tool_started(&mut self, call: &ToolCall) {
        let arguments = json::arguments(&call.arguments);
        self.write_value(&ToolStarted {
            event: "toolStarted",
            id: call.id.as_str(),
            name: &call.name,
            arguments: &arguments,
        });
    }

    fn write_tool_ended(&mut self, result: &ToolResult) {
        let (id, content) = (&result.id, result.described());
        self.write_value(&json!({ "event": "toolEnded", "id": id, "isError": result.is_error, "content": content }));
    }
}

impl<O: Write> UpdateSink for JsonEvents<O> {
    fn take(&mut self, update: Update) {
        match update {
            Update::Grew { block, text } => self.write_event(&Event::Grew { block, text: &text }, None),
            Update::Detail(detail) => self.write_detail(&detail),
            Update::Refiled { block, to } => self.write_event(&Event::Refiled { block, to }, None),
            Update::Usage(usage) => self.write_event(&Event::Usage(usage), None),
            Update::Noted(note) => self.write_event(&Event::Noted(&note), None),
            Update::ReplyEnded(end) => self.write_event(&Event::Ended(&end), None),
            Update::Sending(sending) => self.write_sending(&sending),
            Update::Retrying { why, .. } => self.write_notice("retry", &why),
            Update::TurnNotice(TurnNotice::Repaired { row, .. }) => {
                self.write_value(&json!({ "event": "repaired", "rule": row }))
            }
            Update::TurnNotice(notice @ TurnNotice::BrokenCall { .. }) => {
                self.write_notice("broken_call", &wording::turn_notice(&notice))
            }
            Update::CommandOutput(output) => output.lines().iter().for_each(|line| self.write_notice("tools", line)),
            Update::ToolStarted(call) => self.write_tool_started(&call),
            Update::ToolEnded(result) => self.write_tool_ended(&result),
            Update::QuestionAsked(question) => self.write_question(&question.about),
            Update::Recorded(message) => self.remember_answer(&message),
            Update::Compacted { summarised, trigger, .. } => {
                self.write_notice("compacted", &compacted(summarised, trigger))
            }
            // The result has all of it.
            Update::ToolOutput { .. } => (),
            // The last line follows the statistics.
            Update::TurnEnded(_) => (),
            // Details replace these.
            Update::Opened { .. }
            | Update::Item { .. }
            | Update::Sealed { .. }
            | Update::ClosedAsStreamed { .. }
            | Update::Closed { .. }
            | Update::Emptied { .. }
            | Update::QuestionWithdrawn(_) => (),
            // A single turn has neither commands nor a screen, and ids are not printed.
            Update::SessionStored(_)
            | Update::MessageStored(_)
            | Update::Restored(_)
            | Update::Undone(_)
            | Update::NotSent { .. }
            | Update::NotSteered { .. }
            | Update::TakenBack(_)
            | Update::NotTakenBack(_)
            | Update::GoTo { .. }
            | Update::Status(_)
            | Update::CompletionLists(_)
            | Update::Models(_)
            | Update::PromptHistory(_)
            | Update::Ready
            | Update::Interrupt
            | Update::Quit
            | Update::Suspend => (),
        }
    }

    fn flush(&mut self) {
        if let Err(error) = self.out.flush() {
            self.write_error.get_or_insert(error);
        }
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
