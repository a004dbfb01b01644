//! The agent's side of the protocol, without IO: lines and updates in, effects out.

mod dispatch;
mod open_session;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use aside_core::message::Message;
use aside_front::{Command, QuestionId, Status, Update};
use serde_json::json;

use crate::requests::McpServer;
use crate::rpc::{self, RequestId, RpcError};
use crate::session_update::SessionUpdate;
use crate::slash_commands;
use crate::translator::Notices;
use open_session::OpenSession;

/// Names a session within this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// What the owner of the peer has to do, in order.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Write this line.
    Send(String),
    /// Open a session, then call [`Peer::opened`].
    Open(Box<OpenRequest>),
    Command(SessionKey, Command),
    /// End the session, then call [`Peer::done`].
    Close(SessionKey, RequestId),
    /// End the session if it is open, delete it, then call [`Peer::done`].
    Delete {
        id: String,
        open: Option<SessionKey>,
        request: RequestId,
    },
    /// List stored sessions, then call [`Peer::listed`].
    List {
        folder: Option<PathBuf>,
        cursor: Option<String>,
        request: RequestId,
    },
}

/// A session to open.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenRequest {
    pub key: SessionKey,
    pub session: SessionToOpen,
    /// The working directory, absolute.
    pub folder: PathBuf,
    pub mcp_servers: Vec<McpServer>,
    /// A session to end first: the same one, opened before.
    pub replaces: Option<SessionKey>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionToOpen {
    New,
    Stored(String),
}

/// A session that was opened.
#[derive(Debug)]
pub struct OpenedSession {
    pub id: String,
    pub status: Status,
    /// The models that can be chosen.
    pub models: Vec<String>,
    /// The messages of a stored session, with their stored ids.
    pub messages: Vec<(Option<i64>, Arc<Message>)>,
    pub access: SessionAccess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionAccess {
    Writable,
    /// Another process has it open.
    OpenElsewhere,
}

/// A stored session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    pub id: String,
    pub folder: String,
    pub title: Option<String>,
    /// RFC 3339.
    pub updated_at: String,
}

/// A session that is being opened.
#[derive(Debug)]
struct Opening {
    request: RequestId,
    folder: PathBuf,
    answer: OpenAnswer,
}

/// How the request to open a session is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenAnswer {
    /// With its new id.
    New,
    /// After the whole conversation.
    Replay,
    Resume,
}

/// The agent's side of one connection.
#[derive(Debug, Default)]
pub struct Peer {
    notices: Notices,
    next_key: u64,
    next_request: i64,
    opening: HashMap<SessionKey, Opening>,
    sessions: HashMap<SessionKey, OpenSession>,
    /// Questions that the client has not answered yet.
    questions: HashMap<RequestId, (SessionKey, QuestionId)>,
    effects: Vec<Effect>,
}

impl Peer {
    pub fn new() -> Peer {
        Peer::default()
    }

    /// Takes a line of the client.
    pub fn line(&mut self, line: &str, now: Instant) -> Vec<Effect> {
        match rpc::parse(line) {
            Ok(message) => self.dispatch(message, now),
            Err((id, error)) => self.fail(id.as_ref(), &error),
        }
        self.take_effects()
    }

    /// Takes an update of a session. An update of a session that was closed is ignored.
    pub fn update(&mut self, key: SessionKey, update: &Update, now: Instant) -> Vec<Effect> {
        let Peer { sessions, effects, questions, next_request, .. } = self;
        if let Some(session) = sessions.get_mut(&key) {
            if let Update::QuestionAsked(question) = update {
                *next_request += 1;
                let id = RequestId::Number(*next_request);
                session.ask(&id, question, effects);
                questions.insert(id, (key, question.id));
            }
            if let Update::QuestionWithdrawn(withdrawn) = update {
                questions.retain(|_, question| *question != (key, *withdrawn));
            }
            session.update(update, now, effects);
        }
        self.take_effects()
    }

    /// When [`Peer::tick`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.sessions.values().filter_map(OpenSession::deadline).min()
    }

    /// Sends what was held back until now.
    pub fn tick(&mut self, now: Instant) -> Vec<Effect> {
        let Peer { sessions, effects, .. } = self;
        sessions.values_mut().for_each(|session| session.tick(now, effects));
        self.take_effects()
    }

    /// A session was opened, or could not be.
    pub fn opened(&mut self, key: SessionKey, opened: Result<OpenedSession, String>, now: Instant) -> Vec<Effect> {
        let Some(Opening { request, folder, answer }) = self.opening.remove(&key) else { return Vec::new() };
        match opened {
            Err(what) => self.fail(Some(&request), &RpcError::internal(what)),
            Ok(opened) => {
                let id = opened.id.clone();
                let (mut session, messages) = OpenSession::new(opened, folder, self.notices, now);
                if answer == OpenAnswer::Replay {
                    session.replay(&messages, &mut self.effects);
                }
                let mut result = session.setup();
                if let (OpenAnswer::New, Some(members)) = (answer, result.as_object_mut()) {
                    members.insert("sessionId".to_owned(), json!(id));
                }
                self.effects.push(Effect::Send(rpc::response(&request, result)));
                let available_commands = slash_commands::available();
                session.send(SessionUpdate::AvailableCommandsUpdate { available_commands }, &mut self.effects);
                self.sessions.insert(key, session);
            }
        }
        self.take_effects()
    }

    /// A session was closed or deleted, or could not be.
    pub fn done(&mut self, request: &RequestId, result: Result<(), String>) -> Vec<Effect> {
        match result {
            Ok(()) => self.effects.push(Effect::Send(rpc::response(request, json!({})))),
            Err(what) => self.fail(Some(request), &RpcError::internal(what)),
        }
        self.take_effects()
    }

    /// The stored sessions of a page, and where the next one begins.
    pub fn listed(
        &mut self,
        request: &RequestId,
        listed: Result<(Vec<ListedSession>, Option<String>), String>,
    ) -> Vec<Effect> {
        match listed {
            Ok((sessions, next)) => {
                let row = |session: ListedSession| {
                    let ListedSession { id, folder, title, updated_at } = session;
                    json!({"sessionId": id, "cwd": folder, "title": title, "updatedAt": updated_at})
                };
                let rows: Vec<_> = sessions.into_iter().map(row).collect();
                let mut result = json!({"sessions": rows});
                if let (Some(next), Some(members)) = (next, result.as_object_mut()) {
                    members.insert("nextCursor".to_owned(), json!(next));
                }
                self.effects.push(Effect::Send(rpc::response(request, result)));
            }
            Err(what) => self.fail(Some(request), &RpcError::internal(what)),
        }
        self.take_effects()
    }

    fn fail(&mut self, request: Option<&RequestId>, error: &RpcError) {
        self.effects.push(Effect::Send(rpc::error_response(request, error)));
    }

    fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }
}
