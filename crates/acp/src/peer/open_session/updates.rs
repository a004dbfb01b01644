//! What a session tells its client.

use std::time::Instant;

use aside_core::turn::TurnEnd;
use aside_front::wording::{HintStyle, compacted, turn_end};
use aside_front::{CommandOutput, Sending, Status, Update};
use serde_json::{Value, json};

use super::super::Effect;
use super::{CommandKind, ModeAnswer, OpenSession, RunningCommand, stop_reason, with_hint};
use crate::options;
use crate::rpc::{self, RpcError};
use crate::session_update::{NoticeSeverity, SessionUpdate};
use crate::slash_commands::markdown;

impl OpenSession {
    pub(in crate::peer) fn update(&mut self, update: &Update, now: Instant, effects: &mut Vec<Effect>) {
        let mut out = Vec::new();
        self.translator.update(update, now, &mut out);
        match update {
            Update::Sending(sending) => self.sent = Some(Sending::clone(sending)),
            Update::TurnEnded(end) => {
                if let Some(running) = self.running.front_mut() {
                    running.end = Some(end.clone());
                }
            }
            Update::NotSent { what, hint, .. } => {
                if let Some(running) = self.running.front_mut() {
                    running.error = Some(RpcError::invalid_params(with_hint(what, hint.as_deref())));
                }
            }
            Update::CommandOutput(output) => self.command_output(output, &mut out),
            Update::Compacted { summarised, trigger, .. } => {
                self.command_output(&CommandOutput::Line(compacted(*summarised, *trigger)), &mut out);
            }
            Update::Undone(_) => {
                let text = "The last turn is undone: the model no longer sees it. Your editor still shows it.";
                self.translator.output(text, &mut out);
            }
            Update::Status(status) => {
                self.status_changed(status, &mut out);
                self.send_all(std::mem::take(&mut out), effects);
                self.mode_changed_in_turn(effects);
            }
            Update::CompletionLists(lists) => self.models.clone_from(&lists.models),
            Update::Ready => {
                self.send_all(std::mem::take(&mut out), effects);
                self.ready(effects);
            }
            // The translator has sent what belongs to the transcript.
            Update::SessionStored(_)
            | Update::Models(_)
            | Update::MessageStored(_)
            | Update::Opened { .. }
            | Update::Item { .. }
            | Update::Grew { .. }
            | Update::Sealed { .. }
            | Update::Refiled { .. }
            | Update::ClosedAsStreamed { .. }
            | Update::Closed { .. }
            | Update::Emptied { .. }
            | Update::Usage(_)
            | Update::Noted(_)
            | Update::ReplyEnded(_)
            | Update::Retrying { .. }
            | Update::TurnNotice(_)
            | Update::ToolStarted(_)
            | Update::ToolOutput { .. }
            | Update::ToolEnded(_)
            | Update::Recorded(_)
            | Update::QuestionAsked(_)
            | Update::QuestionWithdrawn(_) => (),
            // An editor asks for no details.
            Update::Detail(_) => (),
            // What was sent cannot be taken back, and an editor has its own history and signals.
            Update::NotSteered { .. }
            | Update::TakenBack(_)
            | Update::NotTakenBack(_)
            | Update::Restored(_)
            | Update::GoTo { .. }
            | Update::PromptHistory(_)
            | Update::Interrupt
            | Update::Quit
            | Update::Suspend => (),
        }
        (self.last_sent, self.n_silences) = (now, 0);
        self.send_all(out, effects);
    }

    /// The output of the running command is its answer. Everything else is a notice.
    fn command_output(&mut self, output: &CommandOutput, out: &mut Vec<SessionUpdate>) {
        match (self.running.front_mut().map(|running| (running.kind, &mut running.error)), output) {
            (Some((CommandKind::SetOption | CommandKind::SetMode(..), error)), CommandOutput::Error { what, hint }) => {
                *error = Some(RpcError::invalid_params(with_hint(what, hint.as_deref())));
            }
            (Some((CommandKind::SetOption | CommandKind::SetMode(..), _)), _) => (),
            (Some((CommandKind::SlashCommand, _)), output) => self.translator.output(&markdown(output), out),
            (Some((CommandKind::Prompt, error)), CommandOutput::Error { what, hint }) => {
                // `/retry` fails like this if there is nothing to send again.
                *error = Some(RpcError::invalid_request(with_hint(what, hint.as_deref())));
                self.translator.warning(what, hint.as_deref(), out);
            }
            (None, CommandOutput::Error { what, hint }) => self.translator.warning(what, hint.as_deref(), out),
            (Some((CommandKind::Prompt, _)) | None, output) => {
                let line = output.lines().join("\n");
                self.translator.notice(NoticeSeverity::Info, &line, None, out);
            }
        }
    }

    fn status_changed(&mut self, status: &Status, out: &mut Vec<SessionUpdate>) {
        let before = std::mem::replace(&mut self.status, status.clone());
        self.translator.limit = status.limit;
        self.translator.cost = status.cost;
        if status.title.is_some() && status.title != before.title {
            out.push(SessionUpdate::SessionInfoUpdate { title: status.title.clone(), meta: None });
        }
        let now = options::options(&self.status, &self.models);
        // The answer to the request that changes an option has all of them.
        let is_asked = self.running.front().is_some_and(|running| {
            matches!(running.kind, CommandKind::SetOption | CommandKind::SetMode(_, ModeAnswer::Options))
        });
        if let Some(mode) = status.mode.filter(|mode| Some(*mode) != before.mode) {
            out.push(SessionUpdate::CurrentModeUpdate { current_mode_id: mode.as_str() });
        }
        if !is_asked && now != options::options(&before, &self.models) {
            out.push(SessionUpdate::ConfigOptionUpdate { config_options: now });
        }
    }

    /// A running turn takes a new mode at once, without `Update::Ready`.
    fn mode_changed_in_turn(&mut self, effects: &mut Vec<Effect>) {
        let is_done = |command: &RunningCommand| matches!(command.kind, CommandKind::SetMode(mode, _) if Some(mode) == self.status.mode);
        let waiting = self.running.iter().skip(1).position(is_done);
        let Some(done) = waiting.and_then(|place| self.running.remove(place + 1)) else { return };
        if let CommandKind::SetMode(_, answer) = done.kind {
            effects.push(Effect::Send(self.mode_response(&done.request, answer)));
        }
    }

    /// The command in front is finished.
    fn ready(&mut self, effects: &mut Vec<Effect>) {
        let Some(done) = self.running.pop_front() else { return };
        let mut out = Vec::new();
        self.translator.flush(&mut out);
        let answer = match (done.kind, done.error) {
            (_, Some(error)) if !done.is_cancelled => Err(error),
            (CommandKind::SetOption | CommandKind::SetMode(_, ModeAnswer::Options), _) => Ok(self.all_options()),
            (CommandKind::SetMode(_, ModeAnswer::Empty), _) => Ok(json!({})),
            (CommandKind::Prompt | CommandKind::SlashCommand, _) if done.is_cancelled => Ok(stop_reason("cancelled")),
            (CommandKind::Prompt | CommandKind::SlashCommand, _) => match &done.end {
                None => Ok(stop_reason("end_turn")),
                Some(end) => self.turn_ended(end, &mut out),
            },
        };
        self.send_all(out, effects);
        effects.push(Effect::Send(match answer {
            Ok(result) => rpc::response(&done.request, result),
            Err(error) => rpc::error_response(Some(&done.request), &error),
        }));
    }

    fn turn_ended(&mut self, end: &TurnEnd, out: &mut Vec<SessionUpdate>) -> Result<Value, RpcError> {
        let notice = turn_end(end, HintStyle::Menus);
        let reason = match end {
            TurnEnd::Answered => "end_turn",
            TurnEnd::ThinkingOnly { for_length: true } | TurnEnd::Length => "max_tokens",
            TurnEnd::ThinkingOnly { for_length: false } => "end_turn",
            TurnEnd::Declined(_) => "refusal",
            TurnEnd::Interrupted => "cancelled",
            TurnEnd::OutOfSteps(_) | TurnEnd::OutOfMoney { .. } => "max_turn_requests",
            TurnEnd::Empty
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_) => {
                let (what, hint) = notice.map(|notice| (notice.what, notice.hint)).unwrap_or_default();
                let status = if let TurnEnd::Failed(error) = end { error.status } else { None };
                let data = json!({"what": what, "hint": hint, "status": status});
                return Err(RpcError::internal(with_hint(&what, hint.as_deref())).with_data(data));
            }
        };
        if let Some(notice) = notice.filter(|_| !matches!(end, TurnEnd::Interrupted)) {
            self.translator.warning(&notice.what, notice.hint.as_deref(), out);
        }
        let mut result = stop_reason(reason);
        if let (Some(sent), Some(members)) = (&self.sent, result.as_object_mut()) {
            let Sending { model, effort, tokens, decisions, .. } = sent;
            let sent = json!({"model": model, "effort": effort, "tokens": tokens, "decisions": decisions});
            members.insert("_meta".to_owned(), json!({"aside": {"sent": sent}}));
        }
        Ok(result)
    }
}
