//! Applies updates from the engine.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Time, ToolCall, ToolResult};
use aside_core::event::{BlockId, ProseKind, Usage};
use aside_core::message::Message;
use aside_core::terminal_text::terminal_safe_line;
use aside_core::turn::TurnEnd;

use super::{App, ThinkingRequest, TurnActivity, TurnState, UserCommand};
use crate::input::composer::CurrentValues;
use crate::text::TextRole;
use crate::text::wrap::ellipsize;
use crate::token_estimate::TokenRate;
use crate::transcript::StartedCall;
use crate::transcript::item::TranscriptItem;
use aside_front::{Command, CommandOutput, OpenedBlock, Sending, Status, SteeringError, TerminalAction, Update};

impl App {
    pub(super) fn apply_update(&mut self, update: Update) -> Vec<Command> {
        if is_from_provider(&update) {
            self.heard_at = self.now;
        }
        match update {
            Update::Sending(sending) => self.request_sent(*sending),
            Update::Opened { block, opening } => self.block_opened(block, &opening),
            Update::Item { block } => self.transcript.item(block),
            Update::Grew { block, text } => {
                self.rate.push(&text, self.now);
                self.transcript.grew(block, &text);
            }
            // A seal changes nothing on the screen.
            Update::Sealed { .. } => (),
            Update::Refiled { block, to } => {
                if to == ProseKind::Thinking {
                    self.thinking_request = ThinkingRequest::Honoured;
                }
                self.transcript.refiled(block, to);
            }
            Update::ClosedAsStreamed { block, span, sealed_bytes } => {
                self.block_ended();
                self.transcript.closed_as_streamed(block, span, sealed_bytes);
            }
            Update::Closed { block, value } => {
                self.block_ended();
                self.transcript.closed(block, &value);
            }
            Update::Emptied { block } => self.transcript.emptied(block),
            Update::Usage(usage) => self.apply_usage(usage),
            Update::Noted(note) => self.transcript.push(TranscriptItem::notice(TextRole::Muted, &note.message)),
            Update::ReplyEnded(end) => {
                self.rate.end();
                self.transcript.reply_ended(&end);
            }
            Update::Retrying { after, attempt, why } => self.retrying(after, attempt, &why),
            Update::TurnNotice(notice) => self.transcript.push_notice(&notice),
            Update::ToolStarted(call) => self.tool_started(*call),
            Update::ToolOutput { call, tail, n_lines } => self.transcript.tool_output(&call, &tail, n_lines),
            Update::ToolEnded(result) => return self.tool_ended(&result),
            Update::Recorded(message) => self.recorded(&message),
            Update::TurnEnded(end) => return self.turn_ended(&end),
            Update::QuestionAsked(question) => {
                self.call_for_question(&question.about.tool);
                self.transcript.tool_asked(&question.about.tool, &question.about.subject);
                self.permission_prompt.push(*question);
            }
            Update::QuestionWithdrawn(id) => self.permission_prompt.withdraw(id),
            Update::CommandOutput(output) => self.command_output(&output),
            Update::Compacted { summarised, trigger, .. } => {
                let line = aside_front::wording::compacted(summarised, trigger);
                self.transcript.push_output(&CommandOutput::Line(line));
            }
            Update::Restored(messages) => self.restored(&messages),
            Update::NotSteered { text, error } => self.not_steered(&text, error),
            Update::TakenBack(text) => self.taken_back(&text),
            Update::NotTakenBack(_) => {
                self.taking_back = false;
                self.toast("too late to take it back: the model gets your message".to_owned());
            }
            Update::NotSent { text, what, hint } => self.not_sent(&text, what, hint),
            Update::Undone(question) => self.undone(&question),
            Update::GoTo { message, part } => self.show_search_hit(message, part),
            Update::Status(status) => return self.apply_status(*status),
            Update::CompletionLists(lists) => self.composer.set_lists(*lists),
            Update::Models(models) => self.composer.set_live_models(models),
            Update::PromptHistory(sent) => self.composer.prepend_history(sent),
            Update::Ready if self.user_command == Some(UserCommand::Compact) => return self.user_command_ended(),
            // The screen notices the end of a turn by itself.
            Update::Ready => (),
            // It shows no ids.
            Update::SessionStored(_) | Update::MessageStored(_) => (),
            // It asks for none.
            Update::Detail(_) => (),
            Update::Interrupt => return self.stop(),
            Update::Quit => return vec![Command::Quit],
            Update::Suspend => return vec![Command::Terminal(TerminalAction::Suspend)],
        }
        Vec::new()
    }

    fn request_sent(&mut self, sending: Sending) {
        self.returned = None;
        self.mark_running();
        self.rate.begin();
        // The old count belonged to the previous request.
        self.usage = Usage::default();
        self.activity = TurnActivity::Waiting;
        self.thinking_request = match (self.thinking_request, sending.wants_thinking) {
            (ThinkingRequest::None | ThinkingRequest::Ignored, true) => ThinkingRequest::Sent,
            (ThinkingRequest::None | ThinkingRequest::Ignored, false) => ThinkingRequest::None,
            (ThinkingRequest::Sent | ThinkingRequest::Honoured, _) => self.thinking_request,
        };
        self.transcript.sending(&sending);
        self.sending = Some(sending);
        // It was about this request.
        self.status.next = None;
    }

    fn retrying(&mut self, after: Duration, attempt: u32, why: &str) {
        self.mark_running();
        let wait = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let at = self.now.map(|now| Time(now.0.saturating_add(wait)));
        self.activity = TurnActivity::Retrying { at, attempt, why: terminal_safe_line(why) };
    }

    fn block_opened(&mut self, block: BlockId, opening: &OpenedBlock) {
        self.answer_requested = false;
        if *opening == OpenedBlock::Thinking {
            self.thinking_request = ThinkingRequest::Honoured;
        }
        self.activity = match opening {
            OpenedBlock::Text => TurnActivity::Writing,
            OpenedBlock::Thinking => TurnActivity::Thinking,
            OpenedBlock::ToolCall { name } => TurnActivity::Calling(name.clone()),
            OpenedBlock::Unmodelled => TurnActivity::None,
        };
        self.transcript.opened(block, opening);
    }

    fn tool_started(&mut self, call: ToolCall) {
        if self.transcript.tool_started(&call) == StartedCall::OfUser {
            self.mark_running();
            self.user_command = Some(UserCommand::Shell(call.id.as_str().to_owned()));
        }
        self.activity = TurnActivity::Running(call.name);
    }

    fn tool_ended(&mut self, result: &ToolResult) -> Vec<Command> {
        self.transcript.tool_ended(result);
        match matches!(&self.user_command, Some(UserCommand::Shell(call)) if *call == result.id) {
            true => self.user_command_ended(),
            false => Vec::new(),
        }
    }

    fn recorded(&mut self, message: &Arc<Message>) {
        if message.begins_turn() && !self.transcript.awaits_recording() {
            self.steering.pop_front();
        }
        self.transcript.recorded(message);
    }

    fn restored(&mut self, messages: &[Arc<Message>]) {
        let usage = messages.iter().rev().find_map(|message| message.usage);
        self.usage = usage.unwrap_or_default();
        // They were about another conversation.
        (self.sending, self.status.next) = (None, None);
        self.thinking_request = ThinkingRequest::None;
        self.rate = TokenRate::default();
        self.close_find();
        self.transcript.restore(messages);
    }

    /// What comes next is unknown until the next block begins.
    fn block_ended(&mut self) {
        if matches!(self.activity, TurnActivity::Thinking | TurnActivity::Writing) {
            self.activity = TurnActivity::Waiting;
        }
    }

    fn apply_usage(&mut self, usage: Usage) {
        self.usage.update(usage);
        let thinking_tokens = usage.reasoning.unwrap_or(0);
        // Hidden thinking took time that the rate does not include.
        let hidden = if self.thinking_request == ThinkingRequest::Honoured { 0 } else { thinking_tokens };
        if let Some(output) = usage.output {
            self.rate.set_reported(output.saturating_sub(hidden));
        }
        if thinking_tokens > 0 {
            self.thinking_request = ThinkingRequest::Honoured;
        }
    }

    fn apply_status(&mut self, status: Status) -> Vec<Command> {
        let before = self.status.screen;
        let is_old = self.requested_view.is_some_and(|view| view != status.view);
        if self.status.model != status.model {
            // The rate of another model says nothing about this one.
            self.rate = TokenRate::default();
        }
        let view = if is_old { self.status.view } else { status.view };
        // A status without it says nothing new about the next request.
        let next = status.next.or_else(|| self.status.next.take());
        self.status = Status { view, next, ..status };
        if !is_old {
            self.requested_view = None;
        }
        // A profile or a setting may have changed the view.
        if self.status.view != self.transcript.view() {
            self.transcript.set_view(self.status.view);
        }
        self.composer.set_efforts(&self.status.efforts);
        self.composer.set_current(CurrentValues::of(&self.status));
        let screen = self.status.screen;
        self.transcript.set_prose_width(screen.prose_width);
        if screen.theme != before.theme {
            self.theme = self.detected_theme.chosen(screen.theme);
        }
        match screen.mouse != before.mouse {
            true => vec![Command::Terminal(TerminalAction::Mouse(screen.mouse))],
            false => Vec::new(),
        }
    }

    /// The user's own command line has ended. The next queued prompt is sent, as after a turn.
    fn user_command_ended(&mut self) -> Vec<Command> {
        let since = self.turn_start();
        (self.user_command, self.turn, self.activity) = (None, TurnState::Idle, TurnActivity::None);
        self.call_for_end(since);
        match self.queue.pop_front() {
            Some(text) => self.begin_turn(text),
            None => Vec::new(),
        }
    }

    fn turn_start(&self) -> Option<Time> {
        match self.turn {
            TurnState::Running { since } | TurnState::Stopping { since } => since,
            TurnState::Idle => None,
        }
    }

    fn mark_running(&mut self) {
        if self.turn == TurnState::Idle {
            self.turn = TurnState::Running { since: self.now };
        }
    }

    fn turn_ended(&mut self, end: &TurnEnd) -> Vec<Command> {
        // A stop may come too late for the turn, but not for the queue.
        let is_stopped = *end == TurnEnd::Interrupted || matches!(self.turn, TurnState::Stopping { .. });
        let since = self.turn_start().filter(|_| !is_stopped && self.queue.is_empty());
        self.turn = TurnState::Idle;
        self.call_for_end(since);
        self.activity = TurnActivity::None;
        self.answer_requested = false;
        self.rate.end();
        self.thinking_request = match (self.thinking_request, end) {
            (ThinkingRequest::Sent, TurnEnd::Answered | TurnEnd::Length) => ThinkingRequest::Ignored,
            _ => ThinkingRequest::None,
        };
        self.permission_prompt.clear();
        self.transcript.turn_ended(end);
        if is_stopped {
            // The queued prompts expected an answer that did not come.
            self.unqueue();
            return Vec::new();
        }
        match self.queue.pop_front() {
            Some(text) => self.begin_turn(text),
            None => Vec::new(),
        }
    }

    /// Puts the prompt back into the input, before anything written since.
    fn not_sent(&mut self, text: &str, what: String, hint: Option<String>) {
        (self.turn, self.activity) = (TurnState::Idle, TurnActivity::None);
        self.transcript.not_sent();
        self.put_back(text);
        self.show_output(CommandOutput::Error { what, hint });
    }

    /// Puts a message for the turn back into the input.
    fn not_steered(&mut self, text: &str, error: Option<SteeringError>) {
        if let Some(at) = self.steering.iter().position(|waiting| waiting == text) {
            self.steering.remove(at);
        }
        if let Some(SteeringError { what, hint }) = error {
            self.put_back(text);
            return self.show_output(CommandOutput::Error { what, hint });
        }
        if !self.put_back_below_others(text) {
            let line = "the turn ended before your message went in; it is back in the input";
            self.transcript.push_output(&CommandOutput::Line(line.to_owned()));
        }
    }

    /// Puts a text back below those that came back before it, which were written earlier. Returns whether there are any.
    fn put_back_below_others(&mut self, text: &str) -> bool {
        let written = self.composer.editor.take();
        let before = self.returned.take().filter(|returned| written.starts_with(returned.as_str()));
        let follows_others = before.is_some();
        let below = written.get(before.as_ref().map_or(0, String::len)..).unwrap_or_default().trim_start_matches('\n');
        let returned = before.map_or_else(|| text.to_owned(), |before| format!("{before}\n{text}"));
        self.composer.editor.fill(&joined(&returned, below));
        self.returned = Some(returned);
        follows_others
    }

    fn taken_back(&mut self, text: &str) {
        self.taking_back = false;
        if let Some(at) = self.steering.iter().rposition(|waiting| waiting == text) {
            self.steering.remove(at);
        }
        self.put_back(text);
    }

    fn put_back(&mut self, text: &str) {
        let written = self.composer.editor.take();
        self.composer.editor.fill(&joined(text, &written));
    }

    /// Puts the prompt back into the input to be rephrased, unless the input is in use.
    fn undone(&mut self, question: &str) {
        let mut line = undone_message(question);
        if self.composer.editor.is_empty() {
            self.composer.editor.fill(question);
            self.undone_prompt = Some(question.to_owned());
            line.push_str(" · it is back in the input");
        } else {
            line.push_str(" · /retry asks it again");
        }
        self.transcript.push_output(&CommandOutput::Line(line));
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
        self.transcript.push_output(&CommandOutput::Line("queued messages are back in the input".to_owned()));
    }
}

/// Two texts of the input, one below the other.
fn joined(text: &str, below: &str) -> String {
    if below.is_empty() { text.to_owned() } else { format!("{text}\n{below}") }
}

/// Whether the update shows that the provider is alive, or that a wait for it begins.
fn is_from_provider(update: &Update) -> bool {
    matches!(
        update,
        Update::Sending(_)
            | Update::Opened { .. }
            | Update::Item { .. }
            | Update::Grew { .. }
            | Update::Sealed { .. }
            | Update::ClosedAsStreamed { .. }
            | Update::Closed { .. }
            | Update::Usage(_)
            | Update::Retrying { .. }
    )
}

/// How much of a prompt is quoted, in columns.
const QUOTE_WIDTH: usize = 40;

pub(crate) fn undone_message(question: &str) -> String {
    format!("undone: \"{}\"", ellipsize(&terminal_safe_line(question.trim()), QUOTE_WIDTH))
}
