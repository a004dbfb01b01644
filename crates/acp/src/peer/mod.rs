//! The agent's side of the protocol, without IO: lines and updates in, effects out.

mod dispatch;
mod open_session;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use aside_core::message::Message;
use aside_front::{Command, QuestionId, Status, Update};
use serde_json::json;

use crate::permission::WithForm;
use crate::requests::{ClientAbilities, McpServer};
use crate::rpc::{self, RequestId, RpcError};
use crate::session_update::SessionUpdate;
use crate::slash_commands;
use open_session::OpenSession;

/// Names a session within this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// Names a file that a tool waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileTicket(pub u64);

/// What the owner of the peer has to do, in order.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Write this line.
    Send(String),
    /// Open a session, then call [`Peer::opened`].
    Open(Box<OpenRequest>),
    Command(SessionKey, Command),
    /// What the client answered to [`Peer::read_file`]; none if it cannot read the file.
    FileText(FileTicket, Option<String>),
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
    /// Folders in which tools work as in the working directory, absolute.
    pub additional_folders: Vec<PathBuf>,
    pub files: ClientFiles,
    /// A session to end first: the same one, opened before.
    pub replaces: Option<SessionKey>,
}

/// Whether the client can read files, including unsaved text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientFiles {
    Offered,
    NotOffered,
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
    client: ClientAbilities,
    next_key: u64,
    next_request: i64,
    opening: HashMap<SessionKey, Opening>,
    sessions: HashMap<SessionKey, OpenSession>,
    /// Requests that the client has not answered yet.
    asked: HashMap<RequestId, (SessionKey, AskedClient)>,
    effects: Vec<Effect>,
}

/// What the client was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskedClient {
    Permission(QuestionId),
    /// The text of an answer, in a form.
    Message(QuestionId),
    File(FileTicket),
}

impl AskedClient {
    fn is_about(self, question: QuestionId) -> bool {
        match self {
            AskedClient::Permission(id) | AskedClient::Message(id) => id == question,
            AskedClient::File(_) => false,
        }
    }
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
        let Peer { sessions, effects, asked, next_request, client, .. } = self;
        if let Some(session) = sessions.get_mut(&key) {
            if let Update::QuestionAsked(question) = update {
                *next_request += 1;
                let id = RequestId::Number(*next_request);
                let with_form = if client.forms { WithForm::Yes } else { WithForm::No };
                session.ask(&id, question, with_form, effects);
                asked.insert(id, (key, AskedClient::Permission(question.id)));
            }
            if let Update::QuestionWithdrawn(withdrawn) = update {
                asked.retain(|_, (asked_by, what)| *asked_by != key || !what.is_about(*withdrawn));
            }
            session.update(update, now, effects);
        }
        self.take_effects()
    }

    /// Asks the client for the text of a file; the answer is an [`Effect::FileText`].
    pub fn read_file(&mut self, key: SessionKey, ticket: FileTicket, path: &Path) -> Vec<Effect> {
        match self.sessions.get(&key).map(|session| session.id().to_owned()) {
            Some(session) => {
                let params = json!({"sessionId": session, "path": path.display().to_string()});
                self.ask_client(key, AskedClient::File(ticket), "fs/read_text_file", params);
            }
            None => self.effects.push(Effect::FileText(ticket, None)),
        }
        self.take_effects()
    }

    fn ask_client(&mut self, key: SessionKey, what: AskedClient, method: &str, params: serde_json::Value) {
        self.next_request += 1;
        let id = RequestId::Number(self.next_request);
        self.effects.push(Effect::Send(rpc::request(&id, method, params)));
        self.asked.insert(id, (key, what));
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
                let (mut session, messages) = OpenSession::new(opened, folder, self.client, now);
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
