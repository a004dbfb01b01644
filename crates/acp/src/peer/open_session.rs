//! One session of the connection: its prompt, its commands and its menus.

mod updates;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::message::Message;
use aside_core::turn::TurnEnd;
use aside_front::{Command, PendingQuestion, Sending, Status, ToolMode, sent_report};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Effect, OpenedSession, SessionAccess, SessionKey};
use crate::permission::WithForm;
use crate::prompt::Prompt;
use crate::requests::ClientAbilities;
use crate::rpc::{self, RequestId, RpcError};
use crate::session_update::{AsideMeta, SessionUpdate};
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
    /// The commands that the session is working on, in order. Each ends with `Update::Ready`.
    running: VecDeque<RunningCommand>,
    /// The last request to the provider.
    sent: Option<Sending>,
    has_messages: bool,
    /// When something was last sent to the client, and how often it was told about the silence since.
    last_sent: Instant,
    n_silences: u32,
}

/// A command that the session is working on.
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

    /// No prompt has been sent in it yet.
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

    /// Answers a prompt with our own text.
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

    /// The session is closed while it is working.
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
}

fn stop_reason(reason: &str) -> Value {
    json!({"stopReason": reason})
}

fn with_hint(what: &str, hint: Option<&str>) -> String {
    hint.map_or_else(|| what.to_owned(), |hint| format!("{what}; {hint}"))
}
