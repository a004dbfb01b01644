//! The methods of the protocol.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use aside_front::Command;
use serde_json::{Value, json};

use super::open_session::ModeAnswer;
use super::{AskedClient, ClientFiles, Effect, OpenAnswer, OpenRequest, Opening, Peer, SessionKey, SessionToOpen};
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
                if let Some((key, what)) = self.asked.remove(&id) {
                    self.answered(key, what, &result);
                }
            }
        }
    }

    /// The client has answered what it was asked for.
    fn answered(&mut self, key: SessionKey, what: AskedClient, result: &Result<Value, Value>) {
        let (id, answer) = match what {
            AskedClient::Permission(question) if self.client.forms && permission::wants_form(result) => {
                let Some(session) = self.sessions.get(&key).map(|session| session.id().to_owned()) else { return };
                let params = permission::form(&session);
                return self.ask_client(key, AskedClient::Message(question), "elicitation/create", params);
            }
            AskedClient::Permission(question) => (question, permission::answer(result)),
            AskedClient::Message(question) => (question, permission::form_answer(result)),
            AskedClient::File(ticket) => {
                let text = result.as_ref().ok().and_then(|result| result.get("content")?.as_str().map(str::to_owned));
                return self.effects.push(Effect::FileText(ticket, text));
            }
        };
        self.effects.push(Effect::Command(key, Command::Answer { id, answer }));
    }

    fn request(&mut self, id: &RequestId, method: &str, params: Value, now: Instant) -> Result<(), RpcError> {
        match method {
            "initialize" => {
                let request: Initialize = read(method, params)?;
                self.client = request.abilities();
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

    /// Removes a session. Its running prompt is cancelled.
    fn end_session(&mut self, key: SessionKey) {
        if let Some(mut session) = self.sessions.remove(&key) {
            session.end(&mut self.effects);
        }
        let (of_session, others) = self.asked.drain().partition(|(_, (asked_by, _))| *asked_by == key);
        self.asked = others;
        let of_session: HashMap<RequestId, (SessionKey, AskedClient)> = of_session;
        for (_, what) in of_session.into_values() {
            if let AskedClient::File(ticket) = what {
                self.effects.push(Effect::FileText(ticket, None));
            }
        }
    }

    fn open(
        &mut self,
        request: &RequestId,
        session: SessionToOpen,
        NewSession { cwd, mcp_servers, additional_directories }: NewSession,
        answer: OpenAnswer,
    ) -> Result<(), RpcError> {
        let folder = absolute(cwd)?;
        let additional = additional_directories.unwrap_or_default().into_iter();
        let additional_folders = additional.map(additional_folder).collect::<Result<Vec<_>, _>>()?;
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
        let files = if self.client.files { ClientFiles::Offered } else { ClientFiles::NotOffered };
        let request = OpenRequest { key, session, folder, mcp_servers, additional_folders, files, replaces };
        self.effects.push(Effect::Open(Box::new(request)));
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

/// A folder besides the working directory. The root is refused: with it, nothing would need permission.
fn additional_folder(folder: PathBuf) -> Result<PathBuf, RpcError> {
    let what = match folder.components().count() {
        _ if !folder.is_absolute() => "must be an absolute path",
        ..=1 => "is the whole disk; name a folder",
        _ => return Ok(folder),
    };
    Err(RpcError::invalid_params(format!("the additional directory `{}` {what}", folder.display())))
}

/// We support only this version, whichever one the client asks for.
fn initialized() -> Value {
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {"list": {}, "delete": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
        },
        "authMethods": [],
        "agentInfo": {"name": "aside", "title": "aside", "version": env!("CARGO_PKG_VERSION")},
    })
}
