//! A turn as typed events, one JSON object a line (`ask --json`).

use std::io::Write;
use std::time::Instant;

use aside_core::block::Block;
use aside_core::json;
use aside_core::message::{Message, Role};
use aside_core::question::Question;
use aside_core::safe_json;
use aside_core::turn::{Told, TurnEnd};
use aside_engine::{Front, Update};
use serde_json::json;
use serde_json::value::RawValue;

use super::say;

pub(crate) struct Events<O: Write> {
    out: O,
    began: Instant,
    /// The text of the last message of the assistant.
    answer: String,
    broken: Option<std::io::Error>,
}

impl<O: Write> Events<O> {
    pub(crate) fn new(out: O) -> Events<O> {
        Events { out, began: Instant::now(), answer: String::new(), broken: None }
    }

    pub(crate) fn finish(mut self) -> std::io::Result<()> {
        self.rest();
        match self.broken {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Writes a line that holds an object, with the time in it. A long one is
    /// written as it is made.
    fn line(&mut self, write: impl FnOnce(&mut Timed<'_, O>) -> std::io::Result<bool>) {
        let at = self.began.elapsed().as_millis();
        let mut timed = Timed { out: &mut self.out, opening: Some(format!("{{\"at\":{at},")) };
        let written = match write(&mut timed) {
            Ok(true) => self.out.write_all(b"\n"),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.broken.get_or_insert(error);
        }
    }

    fn value(&mut self, value: &impl serde::Serialize) {
        self.line(|out| safe_json::write(out, value).map(|()| true));
    }

    fn notice(&mut self, code: &str, message: &str) {
        self.value(&json!({ "event": "notice", "code": code, "message": message }));
    }

    fn asked(&mut self, question: &Question) {
        let Question { id, tool, subject, protected, .. } = question;
        let tier = question.confinement.as_ref().map(|confinement| confinement.tier.to_string());
        let outside = question.outside();
        self.value(&json!({
            "event": "question", "id": id, "tool": tool, "subject": subject,
            "tier": tier, "outside": outside, "protected": protected,
        }));
    }

    fn recorded(&mut self, message: &Message) {
        if message.role != Role::Assistant {
            return;
        }
        let texts = message.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => {
                None
            }
        });
        self.answer = texts.collect();
    }

    fn ended(&mut self, end: &TurnEnd) {
        match end {
            TurnEnd::Answered | TurnEnd::Length => {
                let answer = std::mem::take(&mut self.answer);
                self.value(&json!({ "event": "answer", "text": answer }));
            }
            TurnEnd::ThinkingOnly { .. } => self.notice("thinking_only", say::THINKING_ONLY),
            TurnEnd::Empty
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_)
            | TurnEnd::Interrupted
            | TurnEnd::OutOfSteps(_) => {
                let (_, report) = say::ending(end);
                let message = report.map_or_else(|| "interrupted".to_owned(), |report| report.to_string());
                self.notice("failed", &message);
            }
        }
    }
}

/// Members in the order of the other events, by their names.
#[derive(serde::Serialize)]
struct ToolStarted<'a> {
    arguments: &'a RawValue,
    event: &'static str,
    id: &'a str,
    name: &'a str,
}

/// Puts the time behind the first bracket of an object.
struct Timed<'a, O> {
    out: &'a mut O,
    opening: Option<String>,
}

impl<O: Write> Write for Timed<'_, O> {
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

impl<O: Write> Front for Events<O> {
    fn hear(&mut self, update: Update<'_>) {
        match update {
            Update::Event { event, fold } => {
                self.line(|out| json::write_event(&event, fold, out));
            }
            Update::Sending { step, model, encoded, .. } => {
                let (effort, tokens) = (&encoded.effort, encoded.tokens);
                self.value(
                    &json!({ "event": "request", "step": step, "model": model, "effort": effort, "tokens": tokens }),
                );
                for note in &encoded.notes {
                    self.notice("request", note);
                }
            }
            Update::Received(_) => (),
            Update::Retrying { why, .. } => self.notice("retry", why),
            Update::Told(Told::Repaired { row, .. }) => self.value(&json!({ "event": "repaired", "rule": row })),
            Update::Told(told @ Told::BrokenCall { .. }) => self.notice("broken_call", &say::told(told)),
            Update::Noted(note) => self.notice("tools", note),
            Update::ToolStarted(call) => {
                let arguments = json::arguments(&call.arguments);
                self.value(&ToolStarted {
                    event: "toolStarted",
                    id: call.id.as_str(),
                    name: &call.name,
                    arguments: &arguments,
                });
            }
            Update::ToolEnded { result, .. } => {
                let (id, content) = (&result.id, &result.content);
                self.value(&json!({ "event": "toolEnded", "id": id, "isError": result.is_error, "content": content }));
            }
            Update::Asked(question) => self.asked(question),
            Update::Answered { id, permit } => {
                self.value(&json!({ "event": "answered", "id": id, "permit": permit.as_str() }));
            }
            Update::Recorded(message) => self.recorded(message),
            Update::Compacted { summarised, .. } => self.notice("compacted", &say::compacted(summarised)),
            Update::Ended(end) => self.ended(end),
        }
    }

    fn rest(&mut self) {
        if let Err(error) = self.out.flush() {
            self.broken.get_or_insert(error);
        }
    }
}
