//! One session of the connection: its prompt, its commands and its menus.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::message::Message;
use aside_core::turn::TurnEnd;
use aside_front::wording::{HintStyle, compacted, turn_end};
use aside_front::{Command, CommandOutput, PendingQuestion, Sending, Status, ToolMode, Update, sent_report};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Effect, OpenedSession, SessionAccess, SessionKey};
use crate::permission::WithForm;
use crate::prompt::Prompt;
use crate::requests::ClientAbilities;
use crate::rpc::{self, RequestId, RpcError};
use crate::session_update::{AsideMeta, NoticeSeverity, SessionUpdate};
use crate::slash_commands::{ParsedPrompt, markdown, parse_prompt};
use crate::translator::Translator;
use crate::{options, permission};

/// A client is told after this time that the provider has sent nothing.
const SILENCE: Duration = Duration::from_secs(10);

type Messages = Vec<(Option<i64>, Arc<Message>)>;

#[derive(Debug)]
pub(super) struct OpenSession {
    id: String,
    translator: Translator,
    status: Status,
    models: Vec<String>,
    access: SessionAccess,
    /// The commands that the session works on, in order. Each ends with `Update::Ready`.
    running: VecDeque<RunningCommand>,
    /// The last request to the provider.
    sent: Option<Sending>,
    has_messages: bool,
    /// When something was last sent to the client, and how often it was told about the silence since.
    last_sent: Instant,
    n_silences: u32,
}

/// A command that the session works on.
#[derive(Debug)]
struct RunningCommand {
    request: RequestId,
    kind: CommandKind,
    is_cancelled: bool,
    /// How its turn ended, if it began one.
    end: Option<TurnEnd>,
    error: Option<RpcError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandKind {
    /// A prompt for the model.
    Prompt,
    /// A slash command, which is a prompt for the client.
    SlashCommand,
    SetOption,
    SetMode(ToolMode, ModeAnswer),
}

/// How a change of the mode is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModeAnswer {
    Options,
    /// As older clients expect it.
    Empty,
}

impl CommandKind {
    fn answers_prompt(self) -> bool {
        matches!(self, CommandKind::Prompt | CommandKind::SlashCommand)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification<'a> {
    session_id: &'a str,
    update: &'a SessionUpdate,
}

impl OpenSession {
    pub(super) fn new(
        opened: OpenedSession,
        folder: PathBuf,
        client: ClientAbilities,
        now: Instant,
    ) -> (OpenSession, Messages) {
        let OpenedSession { id, status, models, messages, access } = opened;
        let mut translator = Translator::new(folder, client);
        translator.limit = status.limit;
        let has_messages = !messages.is_empty();
        let session = OpenSession {
            id,
            translator,
            status,
            models,
            access,
            running: VecDeque::new(),
            sent: None,
            has_messages,
            last_sent: now,
            n_silences: 0,
        };
        (session, messages)
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Nothing was asked in it yet.
    pub(super) fn is_new(&self) -> bool {
        !self.has_messages
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether the session works on this request.
    pub(super) fn runs(&self, request: &RequestId) -> bool {
        self.running.iter().any(|command| command.request == *request)
    }

    /// What the client needs to show the session.
    pub(super) fn setup(&self) -> Value {
        let config_options = options::options(&self.status, &self.models);
        match options::modes(&self.status) {
            Some(modes) => json!({"configOptions": config_options, "modes": modes}),
            None => json!({"configOptions": config_options}),
        }
    }

    /// The answer to a request that changed an option.
    fn all_options(&self) -> Value {
        json!({"configOptions": options::options(&self.status, &self.models)})
    }

    pub(super) fn replay(&mut self, messages: &Messages, effects: &mut Vec<Effect>) {
        let mut out = Vec::new();
        self.translator.replay(messages, &mut out);
        self.send_all(out, effects);
    }

    pub(super) fn send(&mut self, update: SessionUpdate, effects: &mut Vec<Effect>) {
        self.send_all(vec![update], effects);
    }

    fn send_all(&mut self, updates: Vec<SessionUpdate>, effects: &mut Vec<Effect>) {
        for update in &updates {
            let notification = Notification { session_id: &self.id, update };
            effects.push(Effect::Send(rpc::notification("session/update", notification)));
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let silence = self.running.front().map(|_| self.last_sent + SILENCE * (self.n_silences + 1));
        self.translator.deadline().into_iter().chain(silence).min()
    }

    pub(super) fn tick(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let mut out = Vec::new();
        self.translator.tick(now, &mut out);
        if self.running.front().is_some() && now >= self.last_sent + SILENCE * (self.n_silences + 1) {
            self.n_silences += 1;
            let silent_seconds = Some(now.saturating_duration_since(self.last_sent).as_secs());
            let meta = AsideMeta { silent_seconds, ..AsideMeta::default() };
            out.push(SessionUpdate::SessionInfoUpdate { title: None, meta: meta.meta() });
        }
        self.send_all(out, effects);
    }

    pub(super) fn prompt(
        &mut self,
        key: SessionKey,
        request: &RequestId,
        prompt: Prompt,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Result<(), RpcError> {
        if self.access == SessionAccess::OpenElsewhere {
            return Err(RpcError::open_elsewhere());
        }
        if self.running.iter().any(|command| command.kind.answers_prompt()) {
            return Err(RpcError::invalid_request("this session is working on a prompt; wait for it or cancel it"));
        }
        (self.last_sent, self.n_silences) = (now, 0);
        let parsed = match prompt.attachments.is_empty() {
            true => parse_prompt(&prompt.text),
            false => ParsedPrompt::Prompt,
        };
        let (kind, command) = match parsed {
            ParsedPrompt::Prompt => {
                self.has_messages = true;
                let Prompt { text, attachments } = prompt;
                (CommandKind::Prompt, Command::PromptWith { text, attachments })
            }
            ParsedPrompt::Command(Command::Retry) => (CommandKind::Prompt, Command::Retry),
            ParsedPrompt::Command(command) => (CommandKind::SlashCommand, command),
            ParsedPrompt::Sent => {
                let pages = sent_report(self.sent.as_ref());
                let text = pages.iter().map(markdown).collect::<Vec<_>>().join("\n\n");
                self.answer_with(request, &text, effects);
                return Ok(());
            }
            ParsedPrompt::Reply(text) => {
                self.answer_with(request, &text, effects);
                return Ok(());
            }
        };
        self.start(key, request, kind, command, effects);
        Ok(())
    }

    /// Answers a prompt with a text of our own.
    fn answer_with(&mut self, request: &RequestId, text: &str, effects: &mut Vec<Effect>) {
        let mut out = Vec::new();
        self.translator.output(text, &mut out);
        self.send_all(out, effects);
        effects.push(Effect::Send(rpc::response(request, json!({"stopReason": "end_turn"}))));
    }

    fn start(
        &mut self,
        key: SessionKey,
        request: &RequestId,
        kind: CommandKind,
        command: Command,
        effects: &mut Vec<Effect>,
    ) {
        let request = request.clone();
        self.running.push_back(RunningCommand { request, kind, is_cancelled: false, end: None, error: None });
        effects.push(Effect::Command(key, command));
    }

    pub(super) fn set_option(
        &mut self,
        key: SessionKey,
        request: &RequestId,
        option: &str,
        value: &str,
        effects: &mut Vec<Effect>,
    ) -> Result<(), RpcError> {
        if self.access == SessionAccess::OpenElsewhere {
            return Err(RpcError::open_elsewhere());
        }
        let command = options::command(option, value, &self.status, &self.models)?;
        if let Command::Mode(mode) = command {
            return self.set_mode(key, request, mode, ModeAnswer::Options, effects);
        }
        self.start(key, request, CommandKind::SetOption, command, effects);
        Ok(())
    }

    /// Changes the mode, also of a running turn.
    pub(super) fn set_mode(
        &mut self,
        key: SessionKey,
        request: &RequestId,
        mode: ToolMode,
        answer: ModeAnswer,
        effects: &mut Vec<Effect>,
    ) -> Result<(), RpcError> {
        if self.access == SessionAccess::OpenElsewhere {
            return Err(RpcError::open_elsewhere());
        }
        match self.status.mode {
            None => return Err(RpcError::invalid_params("this session has no tools, and so no modes")),
            Some(current) if current == mode => effects.push(Effect::Send(self.mode_response(request, answer))),
            Some(_) => self.start(key, request, CommandKind::SetMode(mode, answer), Command::Mode(mode), effects),
        }
        Ok(())
    }

    fn mode_response(&self, request: &RequestId, answer: ModeAnswer) -> String {
        match answer {
            ModeAnswer::Options => rpc::response(request, self.all_options()),
            ModeAnswer::Empty => rpc::response(request, json!({})),
        }
    }

    /// Cancels the prompt. Returns whether one was running.
    pub(super) fn cancel(&mut self) -> bool {
        let prompt = self.running.iter_mut().find(|command| command.kind.answers_prompt());
        prompt.map(|prompt| prompt.is_cancelled = true).is_some()
    }

    /// The session is closed while it works.
    pub(super) fn end(&mut self, effects: &mut Vec<Effect>) {
        let mut out = Vec::new();
        self.translator.flush(&mut out);
        self.send_all(out, effects);
        for command in std::mem::take(&mut self.running) {
            effects.push(Effect::Send(match command.kind {
                CommandKind::Prompt | CommandKind::SlashCommand => {
                    rpc::response(&command.request, json!({"stopReason": "cancelled"}))
                }
                CommandKind::SetOption | CommandKind::SetMode(..) => {
                    let closed = RpcError::invalid_request("the session was closed");
                    rpc::error_response(Some(&command.request), &closed)
                }
            }));
        }
    }

    pub(super) fn ask(
        &mut self,
        request: &RequestId,
        question: &PendingQuestion,
        with_form: WithForm,
        effects: &mut Vec<Effect>,
    ) {
        let mut out = Vec::new();
        self.translator.flush(&mut out);
        self.send_all(out, effects);
        let params = permission::request(&self.id, question, &self.translator, with_form);
        effects.push(Effect::Send(rpc::request(request, "session/request_permission", params)));
    }

    pub(super) fn update(&mut self, update: &Update, now: Instant, effects: &mut Vec<Effect>) {
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
            Update::Compacted { summarised, .. } => {
                self.command_output(&CommandOutput::Line(compacted(*summarised)), &mut out);
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

fn stop_reason(reason: &str) -> Value {
    json!({"stopReason": reason})
}

fn with_hint(what: &str, hint: Option<&str>) -> String {
    hint.map_or_else(|| what.to_owned(), |hint| format!("{what}; {hint}"))
}
