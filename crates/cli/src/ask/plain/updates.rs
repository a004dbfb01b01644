//! What plain output makes of each update.

use std::io::Write;
use std::time::{Duration, Instant};

use aside_front::Update;
use aside_session::UpdateSink;

use super::PlainOutput;
use super::activity_line::Activity;
use crate::ask::wording;

/// How often the spinner moves.
const SPINNER_INTERVAL: Duration = Duration::from_millis(120);

impl<O: Write, E: Write> UpdateSink for PlainOutput<O, E> {
    fn take(&mut self, update: Update) {
        self.silence.on_update(&update, Instant::now());
        match update {
            Update::Grew { block, text } => self.grew(block, &text),
            Update::Opened { block, opening } => self.opened(block, &opening),
            Update::Item { block } => self.item(block),
            Update::ClosedAsStreamed { block, .. } | Update::Emptied { block } => self.closed(block, None),
            Update::Closed { block, value } => self.closed(block, Some(*value)),
            Update::Refiled { block, to } => self.refiled(block, to),
            Update::Noted(note) => self.print_line(&format!("note: {}", note.message)),
            Update::ReplyEnded(_) => self.reply_ended(),
            Update::Sending(sending) => {
                for note in sending.notes {
                    if !self.printed_notes.contains(&note) {
                        self.print_line(&format!("note: {note}"));
                        self.printed_notes.push(note);
                    }
                }
                self.set_activity(Activity::Waiting);
            }
            // It counts down, and goes away.
            Update::Retrying { after, attempt, why } if self.style.err_is_terminal => {
                let now = Instant::now();
                self.set_activity(Activity::Retrying { at: now.checked_add(after).unwrap_or(now), attempt, why });
            }
            Update::Retrying { after, why, .. } => {
                let wait = aside_front::wording::duration(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                let why = why.replace(['\n', '\r'], " ");
                self.print_line(&format!("{why}; trying again in {wait}"));
            }
            Update::TurnNotice(notice) => self.print_line(&wording::turn_notice(&notice)),
            Update::CommandOutput(output) => {
                output.lines().iter().for_each(|line| self.print_line(&format!("note: {line}")));
            }
            Update::Compacted { summarised, trigger, .. } => {
                self.print_line(&format!("note: {}", aside_front::wording::compacted(summarised, trigger)));
            }
            Update::QuestionAsked(_) => self.pause_for_question(),
            Update::QuestionWithdrawn(_) => self.resume_after_question(),
            Update::ToolStarted(call) => self.tool_started(&call),
            // The result shows it.
            Update::ToolOutput { .. } => (),
            Update::ToolEnded(result) => self.tool_ended(&result),
            // The exit code and its message tell how the turn ended.
            Update::TurnEnded(_) | Update::Sealed { .. } | Update::Usage(_) | Update::Recorded(_) => (),
            // A single turn has neither commands nor a screen, and ids are not printed.
            Update::SessionStored(_) | Update::MessageStored(_) => (),
            // Text has no room for details.
            Update::Detail(_) => (),
            Update::Restored(_)
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
        let written = self.out.flush().and_then(|()| self.err.flush());
        self.check(written);
    }

    fn tick_interval(&self) -> Option<Duration> {
        self.style.err_is_terminal.then_some(SPINNER_INTERVAL)
    }

    fn tick(&mut self) {
        self.draw_activity(Instant::now());
    }
}
