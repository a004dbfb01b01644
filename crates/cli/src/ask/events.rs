//! `ask --json`: prints a turn as typed events, one JSON object per line.

use std::io::Write;
use std::time::Instant;

use aside_core::block::Block;
use aside_core::json;
use aside_core::message::{Message, Role};
use aside_core::permission_question::PermissionQuestion;
use aside_core::safe_json;
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_engine::{Front, Update};
use aside_front::wording::compacted;
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
    write_error: Option<std::io::Error>,
}

impl<O: Write> JsonEvents<O> {
    pub(crate) fn new(out: O) -> JsonEvents<O> {
        JsonEvents { out, started: Instant::now(), answer: String::new(), write_error: None }
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
        let mut writer = TimestampedWriter { out: &mut self.out, opening: Some(format!("{{\"at\":{at},")) };
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
    opening: Option<String>,
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

impl<O: Write> Front for JsonEvents<O> {
    fn on_update(&mut self, update: Update<'_>) {
        match update {
            Update::Event { event, fold } => {
                self.write_line(|out| json::write_event(&event, fold, out));
            }
            Update::Sending { step, model, encoded, .. } => {
                let (effort, tokens) = (&encoded.effort, encoded.tokens);
                self.write_value(
                    &json!({ "event": "request", "step": step, "model": model, "effort": effort, "tokens": tokens }),
                );
                for note in &encoded.notes {
                    self.write_notice("request", note);
                }
            }
            Update::Received(_) => (),
            Update::Retrying { why, .. } => self.write_notice("retry", why),
            Update::TurnNotice(TurnNotice::Repaired { row, .. }) => {
                self.write_value(&json!({ "event": "repaired", "rule": row }))
            }
            Update::TurnNotice(notice @ TurnNotice::BrokenCall { .. }) => {
                self.write_notice("broken_call", &wording::turn_notice(notice))
            }
            Update::LeftOut(loss) => self.write_notice("left_out", &loss.to_string()),
            Update::Noted(note) => self.write_notice("tools", note),
            Update::ToolStarted(call) => {
                let arguments = json::arguments(&call.arguments);
                self.write_value(&ToolStarted {
                    event: "toolStarted",
                    id: call.id.as_str(),
                    name: &call.name,
                    arguments: &arguments,
                });
            }
            // The result has all of it.
            Update::ToolOutput { .. } => (),
            Update::ToolEnded { result, .. } => {
                let (id, content) = (&result.id, result.described());
                self.write_value(
                    &json!({ "event": "toolEnded", "id": id, "isError": result.is_error, "content": content }),
                );
            }
            Update::Asked(question) => self.write_question(question),
            Update::Answered { id, permit } => {
                self.write_value(&json!({ "event": "answered", "id": id, "permit": permit.as_str() }));
            }
            Update::Recorded(message) => self.remember_answer(message),
            Update::Compacted { summarised, .. } => self.write_notice("compacted", &compacted(summarised)),
            // The last line follows the statistics.
            Update::Ended(_) => (),
        }
    }

    fn flush(&mut self) {
        if let Err(error) = self.out.flush() {
            self.write_error.get_or_insert(error);
        }
    }
}
