//! What the engine tells.

use aside_core::event::{Side, Usage};
use aside_core::screen::neutral_line;
use aside_core::turn::TurnEnd;

use super::{App, Doing, Turn, Wish};
use crate::seam::{Command, Opening, Said, Status, TerminalAct, Update};
use crate::text::Ink;
use crate::text::wrap::cut;
use crate::transcript::item::Item;
use crate::transcript::thought::duration;

impl App {
    pub(super) fn hear(&mut self, update: Update) -> Vec<Command> {
        match update {
            Update::Sending(sending) => {
                self.running();
                self.rate.begin();
                // What was counted was the request before.
                self.usage = Usage::default();
                self.doing = Doing::Waiting;
                self.wish = match (self.wish, sending.wants_thinking) {
                    (Wish::None | Wish::Ignored, true) => Wish::Sent,
                    (Wish::None | Wish::Ignored, false) => Wish::None,
                    (Wish::Sent | Wish::Heard, _) => self.wish,
                };
                self.transcript.sending(&sending);
                self.sending = Some(*sending);
            }
            Update::Opened { block, opening } => {
                self.hurried = false;
                if opening == Opening::Thinking {
                    self.wish = Wish::Heard;
                }
                self.doing = match &opening {
                    Opening::Text => Doing::Writing,
                    Opening::Thinking => Doing::Thinking,
                    Opening::ToolCall { name } => Doing::Calling(name.clone()),
                    Opening::Unmodelled => Doing::Nothing,
                };
                self.transcript.opened(block, &opening);
            }
            Update::Item { block } => self.transcript.item(block),
            Update::Grew { block, text } => {
                self.rate.push(&text, self.now);
                self.transcript.grew(block, &text);
            }
            // The seal is the engine's; what can be read stays as it is.
            Update::Sealed { .. } => (),
            Update::Refiled { block, to } => {
                if to == Side::Thinking {
                    self.wish = Wish::Heard;
                }
                self.transcript.refiled(block, to);
            }
            Update::Closed { block, value } => {
                // Until the next block begins, nobody knows what the model does.
                if matches!(self.doing, Doing::Thinking | Doing::Writing) {
                    self.doing = Doing::Waiting;
                }
                self.transcript.closed(block, &value);
            }
            Update::Emptied { block } => self.transcript.emptied(block),
            Update::Usage(usage) => self.counted(usage),
            Update::Noted(note) => self.transcript.push(Item::notice(Ink::Muted, &note.message)),
            Update::ReplyEnded(end) => {
                self.rate.end();
                self.transcript.reply_ended(&end);
            }
            Update::Retrying { after, attempt, why } => {
                let wait = duration(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                let text = format!("{why}\ntrying again in {wait} (attempt {attempt})");
                self.transcript.push(Item::notice(Ink::Warn, &text));
            }
            Update::Told(told) => self.transcript.told(&told),
            Update::ToolStarted(call) => {
                self.transcript.tool_started(call.id.as_str());
                self.doing = Doing::Running(call.name);
            }
            Update::ToolEnded(result) => self.transcript.tool_ended(&result),
            Update::Recorded(message) => self.transcript.recorded(&message),
            Update::TurnEnded(end) => return self.turn_ended(&end),
            Update::Asked(question) => self.asking.ask(*question),
            Update::Withdrawn(id) => self.asking.withdraw(id),
            // Whoever typed the command is at the end already; whoever scrolled
            // away since stays where he is.
            Update::Said(said) => self.transcript.said(&said),
            Update::Restored(messages) => {
                let usage = messages.iter().rev().find_map(|message| message.usage);
                self.usage = usage.unwrap_or_default();
                self.transcript.restore(messages);
            }
            Update::NotSent { text, what, hint } => self.not_sent(&text, what, hint),
            Update::TakenBack(question) => self.taken_back(&question),
            Update::GoTo { message, part } => self.transcript.go_to(message, part),
            Update::Status(status) => self.hear_status(*status),
            Update::Lists(lists) => self.composer.lists = *lists,
            Update::Earlier(sent) => self.composer.recall_from(sent),
            // The screen sees for itself when a turn is over.
            Update::Ready => (),
            Update::Interrupt => return self.stop(),
            Update::Leave => return vec![Command::Quit],
            Update::Suspend => return vec![Command::Terminal(TerminalAct::Suspend)],
        }
        Vec::new()
    }

    fn counted(&mut self, usage: Usage) {
        self.usage.update(usage);
        let thought = usage.reasoning.unwrap_or(0);
        // What was thought out of sight took time that nobody saw.
        let unseen = if self.wish == Wish::Heard { 0 } else { thought };
        if let Some(output) = usage.output {
            self.rate.counted(output.saturating_sub(unseen));
        }
        if thought > 0 {
            self.wish = Wish::Heard;
        }
    }

    fn hear_status(&mut self, status: Status) {
        let is_old = self.asked_view.is_some_and(|view| view != status.view);
        self.status = Status { view: if is_old { self.status.view } else { status.view }, ..status };
        if !is_old {
            self.asked_view = None;
        }
        // A profile or a setting may have changed the view.
        if self.status.view != self.transcript.view() {
            self.transcript.set_view(self.status.view);
        }
    }

    fn running(&mut self) {
        if self.turn == Turn::Idle {
            self.turn = Turn::Running { since: self.now };
        }
    }

    fn turn_ended(&mut self, end: &TurnEnd) -> Vec<Command> {
        // A stop may come too late for the turn, but not for what waits behind it.
        let is_stopped = *end == TurnEnd::Interrupted || matches!(self.turn, Turn::Stopping { .. });
        self.turn = Turn::Idle;
        self.doing = Doing::Nothing;
        self.hurried = false;
        self.rate.end();
        self.wish = match (self.wish, end) {
            (Wish::Sent, TurnEnd::Answered | TurnEnd::Length) => Wish::Ignored,
            _ => Wish::None,
        };
        self.asking.clear();
        self.transcript.turn_ended(end);
        if is_stopped {
            // What waited was written for an answer that did not come.
            self.unqueue();
            return Vec::new();
        }
        match self.queue.pop_front() {
            Some(text) => self.begin(text),
            None => Vec::new(),
        }
    }

    /// The prompt goes back into the input, before what was written since.
    fn not_sent(&mut self, text: &str, what: String, hint: Option<String>) {
        (self.turn, self.doing) = (Turn::Idle, Doing::Nothing);
        self.transcript.not_sent();
        let written = self.composer.editor.take();
        let text = if written.is_empty() { text.to_owned() } else { format!("{text}\n{written}") };
        self.composer.editor.fill(&text);
        self.said(Said::Wrong { what, hint });
    }

    /// The question comes back to be asked in other words, unless something is
    /// written there already.
    fn taken_back(&mut self, question: &str) {
        let mut line = taken_back_words(question);
        if self.composer.editor.is_empty() {
            self.composer.editor.fill(question);
            line.push_str(" · it is back in the input");
        } else {
            line.push_str(" · /retry asks it again");
        }
        self.transcript.said(&Said::Line(line));
    }

    fn unqueue(&mut self) {
        let mut texts: Vec<String> = self.queue.drain(..).collect();
        if texts.is_empty() {
            return;
        }
        let written = self.composer.editor.take();
        if !written.is_empty() {
            texts.push(written);
        }
        self.composer.editor.fill(&texts.join("\n"));
        self.transcript.said(&Said::Line("what was queued is back in the input".to_owned()));
    }
}

/// So much of a question is quoted.
const QUOTED: usize = 40;

pub(crate) fn taken_back_words(question: &str) -> String {
    format!("taken back: \"{}\"", cut(&neutral_line(question.trim()), QUOTED))
}
