//! The methods of the protocol.

use std::path::PathBuf;
use std::time::Instant;

use aside_front::Command;
use serde_json::{Value, json};

use super::open_session::ModeAnswer;
use super::{Effect, OpenAnswer, OpenRequest, Opening, Peer, SessionKey, SessionToOpen};
use crate::requests::{
    CancelRequest, Initialize, ListSessions, LoadSession, NewSession, OneSession, Prompt, SetConfigOption, SetMode,
    read,
};
use crate::rpc::{self, Incoming, RequestId, RpcError};
use crate::{options, permission, prompt};

/// The version of the protocol.
const VERSION: u32 = 1;

impl Peer {
    pub(super) fn dispatch(&mut self, message: Incoming, now: Instant) {
        match message {
            Incoming::Request { id, method, params } => {
                if let Err(error) = self.request(&id, &method, params, now) {
                    self.fail(Some(&id), &error);
                }
            }
            Incoming::Notification { method, params } => self.notification(&method, params),
            Incoming::Response { id, result } => {
                // The question may have been withdrawn.
                if let Some((key, question)) = self.questions.remove(&id) {
                    let answer = permission::answer(&result);
                    self.effects.push(Effect::Command(key, Command::Answer { id: question, answer }));
                }
            }
        }
    }

    fn request(&mut self, id: &RequestId, method: &str, params: Value, now: Instant) -> Result<(), RpcError> {
        match method {
            "initialize" => {
                let request: Initialize = read(method, params)?;
                self.notices = request.notices();
                self.respond(id, initialized());
            }
            "session/new" => self.open(id, SessionToOpen::New, read(method, params)?, OpenAnswer::New)?,
            "session/load" | "session/resume" => {
                let answer = if method == "session/load" { OpenAnswer::Replay } else { OpenAnswer::Resume };
                let LoadSession { session_id, new } = read(method, params)?;
                self.open(id, SessionToOpen::Stored(session_id), new, answer)?;
            }
            "session/list" => {
                let ListSessions { cwd, cursor } = read(method, params)?;
                self.effects.push(Effect::List { folder: cwd, cursor, request: id.clone() });
            }
            "session/close" => {
                let OneSession { session_id } = read(method, params)?;
                let key = self.key(&session_id)?;
                self.end_session(key);
                self.effects.push(Effect::Close(key, id.clone()));
            }
            "session/delete" => {
                let OneSession { session_id } = read(method, params)?;
                let open = self.key(&session_id).ok();
                open.into_iter().for_each(|key| self.end_session(key));
                self.effects.push(Effect::Delete { id: session_id, open, request: id.clone() });
            }
            "session/prompt" => {
                let Prompt { session_id, prompt } = read(method, params)?;
                let prompt = prompt::read(prompt)?;
                let key = self.key(&session_id)?;
                let Peer { sessions, effects, .. } = self;
                if let Some(session) = sessions.get_mut(&key) {
                    session.prompt(key, id, prompt, now, effects)?;
                }
            }
            "session/set_config_option" => {
                let SetConfigOption { session_id, config_id, value } = read(method, params)?;
                let Some(value) = value.as_str() else {
                    return Err(RpcError::invalid_params(format!("the value of `{config_id}` is a text")));
                };
                let key = self.key(&session_id)?;
                let Peer { sessions, effects, .. } = self;
                if let Some(session) = sessions.get_mut(&key) {
                    session.set_option(key, id, &config_id, value, effects)?;
                }
            }
            "session/set_mode" => {
                let SetMode { session_id, mode_id } = read(method, params)?;
                let key = self.key(&session_id)?;
                let mode = options::mode_named(&mode_id)?;
                let Peer { sessions, effects, .. } = self;
                if let Some(session) = sessions.get_mut(&key) {
                    session.set_mode(key, id, mode, ModeAnswer::Empty, effects)?;
                }
            }
            "authenticate" => {
                let what = "there is nothing to log in to; set a provider's key with `aside key set` in a terminal";
                return Err(RpcError::invalid_params(what));
            }
            "logout" => self.respond(id, json!({})),
            _ => return Err(RpcError::method_not_found(method)),
        }
        Ok(())
    }

    fn notification(&mut self, method: &str, params: Value) {
        // A notification has no answer, so a wrong one cannot be reported.
        match method {
            "session/cancel" => {
                if let Ok(OneSession { session_id }) = read(method, params)
                    && let Ok(key) = self.key(&session_id)
                {
                    self.cancel(key);
                }
            }
            "$/cancel_request" => {
                if let Ok(CancelRequest { request_id }) = read(method, params) {
                    let running = self.sessions.iter().find(|(_, session)| session.runs(&request_id));
                    if let Some(key) = running.map(|(key, _)| *key) {
                        self.cancel(key);
                    }
                }
            }
            _ => (),
        }
    }

    fn cancel(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&key)
            && session.cancel()
        {
            self.effects.push(Effect::Command(key, Command::Interrupt));
        }
    }

    fn key(&self, id: &str) -> Result<SessionKey, RpcError> {
        let found = self.sessions.iter().find(|(_, session)| session.id() == id);
        found.map(|(key, _)| *key).ok_or_else(|| RpcError::no_such_session(id))
    }

    /// Forgets a session. Its running prompt is cancelled.
    fn end_session(&mut self, key: SessionKey) {
        if let Some(mut session) = self.sessions.remove(&key) {
            session.end(&mut self.effects);
        }
        self.questions.retain(|_, (asked_by, _)| *asked_by != key);
    }

    fn open(
        &mut self,
        request: &RequestId,
        session: SessionToOpen,
        NewSession { cwd, mcp_servers }: NewSession,
        answer: OpenAnswer,
    ) -> Result<(), RpcError> {
        let folder = absolute(cwd)?;
        let mcp_servers = mcp_servers.unwrap_or_default();
        mcp_servers.iter().try_for_each(|server| server.check())?;
        let mut replaces = None;
        if let SessionToOpen::Stored(id) = &session
            && let Ok(key) = self.key(id)
        {
            let Some(open) = self.sessions.get(&key) else { return Ok(()) };
            if open.is_busy() {
                return Err(RpcError::invalid_request("this session is working; cancel it first"));
            }
            if open.is_new() {
                // It has nothing to replay, and nothing is stored yet.
                let result = open.setup();
                self.respond(request, result);
                return Ok(());
            }
            self.end_session(key);
            replaces = Some(key);
        }
        self.next_key += 1;
        let key = SessionKey(self.next_key);
        self.opening.insert(key, Opening { request: request.clone(), folder: folder.clone(), answer });
        self.effects.push(Effect::Open(Box::new(OpenRequest { key, session, folder, mcp_servers, replaces })));
        Ok(())
    }

    fn respond(&mut self, id: &RequestId, result: Value) {
        self.effects.push(Effect::Send(rpc::response(id, result)));
    }
}

fn absolute(folder: PathBuf) -> Result<PathBuf, RpcError> {
    if folder.is_absolute() {
        return Ok(folder);
    }
    Err(RpcError::invalid_params(format!("cwd is `{}`; it must be an absolute path", folder.display())))
}

/// Whatever version the client asks for, this is the one we have.
fn initialized() -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {"list": {}, "delete": {}, "resume": {}, "close": {}},
        },
        "authMethods": [],
        "agentInfo": {"name": "aside", "title": "aside", "version": env!("CARGO_PKG_VERSION")},
    })
}
