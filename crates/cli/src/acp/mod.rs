//! `aside acp`: an editor drives sessions over standard input and output.
//!
//! One loop owns the protocol and the output. Threads read the input, open and close sessions, and forward their
//! updates, so that no session waits for another.

mod editor_files;
mod stored;

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use aside_acp::{
    ClientFiles, Effect, McpServer, NameValue, OpenRequest, OpenedSession, Peer, RequestId, SessionAccess, SessionKey,
    SessionToOpen,
};
use aside_confine::RequestedAccess;
use aside_engine::tools::{NobodyToAsk, OpenFiles};
use aside_front::{Command, Update};
use aside_session::mcp_tables::{McpTable, ServerTransport};
use aside_session::{
    HintedError, Overrides, RunningSession, SessionChoice, SessionHandle, SessionOptions, SetupAccess, Trust,
    UserFolders, spawn,
};

use crate::ExitStatus;
use crate::override_arguments::OverrideArguments;
use editor_files::{EditorFiles, FileRequest, WaitingTools};

/// Run as an editor's agent: the Agent Client Protocol on standard input and output
///
/// An editor such as Zed starts this command. Standard output carries only the
/// protocol. The sessions are ordinary ones: `aside -r ID` continues them, and
/// `aside search` finds them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Zed, in settings.json:
  \"agent_servers\": { \"aside\": { \"type\": \"custom\", \"command\": \"aside\", \"args\": [\"acp\"] } }

docs/editors.md has more editors.")]
pub(crate) struct Arguments {
    /// The model of new sessions, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    /// Trust the folders that the editor opens from now on: send their AGENTS.md to the model
    #[arg(long)]
    trust: bool,

    #[command(flatten)]
    overrides: OverrideArguments,
}

/// The longest line that is read. An image in a prompt may have megabytes.
const MAX_LINE: usize = 64 << 20;
/// Output is written once this many bytes are waiting, even if there is more to do.
const MAX_UNWRITTEN: usize = 64 << 10;

/// What the loop waits for.
enum Event {
    Line(String),
    /// A line that is longer than `MAX_LINE`, or not UTF-8.
    UnreadableLine(&'static str),
    EndOfInput,
    Opened(SessionKey, Result<Box<(OpenedSession, ConnectedSession)>, String>),
    Update(SessionKey, Update),
    /// A tool asks for the unsaved text that the editor has of a file.
    ReadFile(SessionKey, FileRequest),
    Done(RequestId, Result<(), String>),
}

/// A session and the channel for its commands.
struct ConnectedSession {
    commands: Sender<Command>,
    session: RunningSession,
}

impl ConnectedSession {
    /// Stops what it does, and waits until it is stored.
    fn end(self) {
        // It may have ended already.
        drop(self.commands.send(Command::Quit));
        drop(self.commands);
        // A panic of one session must not end the others.
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.session.join())));
    }
}

/// How sessions are opened, whatever the editor asks for.
#[derive(Clone)]
struct OpenOptions {
    model: Option<String>,
    trusts_folders: bool,
    overrides: Arc<Overrides>,
    user_folders: UserFolders,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let overrides = arguments.overrides.overrides();
    let user_folders = UserFolders::from_environment();
    // A mistake in the config is reported now, and not in every session.
    drop(overrides.load(&user_folders)?);
    let options = OpenOptions {
        model: arguments.model.clone(),
        trusts_folders: arguments.trust,
        overrides: Arc::new(overrides),
        user_folders,
    };
    let (events, inbox) = mpsc::channel();
    let reader = events.clone();
    std::thread::spawn(move || read_lines(io::stdin().lock(), &reader));
    let mut server = Server {
        peer: Peer::new(),
        sessions: HashMap::new(),
        n_opening: 0,
        events,
        options,
        waiting: WaitingTools::default(),
    };
    let served = server.serve(&inbox, &mut io::stdout().lock());
    server.end_sessions();
    served?;
    Ok(ExitStatus::Done)
}

fn read_lines(mut input: impl BufRead, events: &Sender<Event>) {
    loop {
        let event = match read_line(&mut input) {
            Ok(Some(Ok(line))) if line.trim().is_empty() => continue,
            Ok(Some(Ok(line))) => Event::Line(line),
            Ok(Some(Err(problem))) => Event::UnreadableLine(problem),
            Ok(None) | Err(_) => Event::EndOfInput,
        };
        let is_last = matches!(event, Event::EndOfInput);
        if events.send(event).is_err() || is_last {
            return;
        }
    }
}

/// The next line, or what is wrong with it; none at the end. A line that is too long is skipped.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, &'static str>>> {
    let (mut line, mut is_too_long) = (Vec::new(), false);
    loop {
        let available = input.fill_buf()?;
        let end = available.iter().position(|byte| *byte == b'\n');
        let (piece, used) = match end {
            Some(end) => (available.get(..end).unwrap_or_default(), end + 1),
            None => (available, available.len()),
        };
        let is_end_of_input = available.is_empty();
        is_too_long |= line.len() + piece.len() > MAX_LINE;
        if !is_too_long {
            line.extend_from_slice(piece);
        }
        input.consume(used);
        if is_end_of_input && line.is_empty() && !is_too_long {
            return Ok(None);
        }
        if end.is_some() || is_end_of_input {
            break;
        }
    }
    if is_too_long {
        return Ok(Some(Err("the line is longer than 64 MiB")));
    }
    Ok(Some(String::from_utf8(line).map_err(|_| "the line is not UTF-8")))
}

struct Server {
    peer: Peer,
    sessions: HashMap<SessionKey, ConnectedSession>,
    n_opening: usize,
    events: Sender<Event>,
    options: OpenOptions,
    waiting: WaitingTools,
}

impl Server {
    /// Runs until the input ends or the output is closed.
    fn serve(&mut self, inbox: &Receiver<Event>, output: &mut impl Write) -> io::Result<()> {
        let mut unwritten = Vec::new();
        let mut input_has_ended = false;
        while !input_has_ended || self.n_opening > 0 {
            let event = match inbox.try_recv() {
                Ok(event) => Some(event),
                Err(_) => {
                    output.write_all(&unwritten)?;
                    output.flush()?;
                    unwritten.clear();
                    self.wait(inbox)
                }
            };
            input_has_ended |= matches!(event, Some(Event::EndOfInput));
            let effects = match event {
                Some(event) => self.handle(event),
                None => self.peer.tick(Instant::now()),
            };
            self.apply(effects, &mut unwritten);
            if unwritten.len() >= MAX_UNWRITTEN {
                output.write_all(&unwritten)?;
                unwritten.clear();
            }
        }
        output.write_all(&unwritten)?;
        output.flush()
    }

    /// The next event; none if it is time to send what was held back.
    fn wait(&self, inbox: &Receiver<Event>) -> Option<Event> {
        match self.peer.deadline() {
            // We hold a sender ourselves, so the channel stays open.
            None => inbox.recv().ok(),
            Some(deadline) => inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok(),
        }
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let now = Instant::now();
        match event {
            Event::Line(line) => self.peer.line(&line, now),
            Event::UnreadableLine(problem) => {
                vec![Effect::Send(aside_acp::rpc::error_response(None, &aside_acp::rpc::RpcError::parse(problem)))]
            }
            Event::EndOfInput => Vec::new(),
            Event::Update(key, update) => self.peer.update(key, &update, now),
            Event::ReadFile(key, FileRequest { path, text }) => {
                let ticket = self.waiting.add(text);
                self.peer.read_file(key, ticket, &path)
            }
            Event::Done(request, result) => self.peer.done(&request, result),
            Event::Opened(key, opened) => {
                self.n_opening -= 1;
                let opened = opened.map(|opened| {
                    let (opened, session) = *opened;
                    self.sessions.insert(key, session);
                    opened
                });
                self.peer.opened(key, opened, now)
            }
        }
    }

    fn apply(&mut self, effects: Vec<Effect>, unwritten: &mut Vec<u8>) {
        let mut effects = std::collections::VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Send(line) => {
                    unwritten.extend_from_slice(line.as_bytes());
                    unwritten.push(b'\n');
                }
                Effect::Command(key, command) => {
                    if let Some(session) = self.sessions.get(&key) {
                        // A session that has ended reported that already.
                        drop(session.commands.send(command));
                    }
                }
                Effect::FileText(ticket, text) => self.waiting.answer(ticket, text),
                Effect::Open(request) => self.open(*request),
                Effect::Close(key, request) => {
                    let session = self.sessions.remove(&key);
                    self.in_background(request, move || {
                        session.into_iter().for_each(ConnectedSession::end);
                        Ok(())
                    });
                }
                Effect::Delete { id, open, request } => {
                    let session = open.and_then(|key| self.sessions.remove(&key));
                    let folders = self.options.user_folders.clone();
                    self.in_background(request, move || {
                        session.into_iter().for_each(ConnectedSession::end);
                        stored::delete(&folders, &id)
                    });
                }
                Effect::List { folder, cursor, request } => {
                    let listed = stored::list(&self.options.user_folders, folder.as_deref(), cursor.as_deref());
                    effects.extend(self.peer.listed(&request, listed.map_err(|error| one_line(&error))));
                }
            }
        }
    }

    /// Does something slow, then answers the request.
    fn in_background(&self, request: RequestId, work: impl FnOnce() -> Result<(), HintedError> + Send + 'static) {
        let events = self.events.clone();
        std::thread::spawn(move || {
            let result = work().map_err(|error| one_line(&error));
            drop(events.send(Event::Done(request, result)));
        });
    }

    /// Opens a session on a thread of its own, which then forwards its updates.
    fn open(&mut self, request: OpenRequest) {
        let replaced = request.replaces.and_then(|key| self.sessions.remove(&key));
        let (events, options) = (self.events.clone(), self.options.clone());
        self.n_opening += 1;
        std::thread::spawn(move || {
            replaced.into_iter().for_each(ConnectedSession::end);
            let key = request.key;
            let (opened, updates) = match open_session(request, &options, &events) {
                Ok((opened, session, updates)) => (Ok(Box::new((opened, session))), Some(updates)),
                Err(error) => (Err(one_line(&error)), None),
            };
            if events.send(Event::Opened(key, opened)).is_err() {
                return;
            }
            for update in updates.into_iter().flatten() {
                if events.send(Event::Update(key, update)).is_err() {
                    return;
                }
            }
        });
    }

    /// Stops all sessions, and waits until they are stored.
    fn end_sessions(&mut self) {
        let sessions: Vec<ConnectedSession> = self.sessions.drain().map(|(_, session)| session).collect();
        // All of them stop at once, and none waits for another.
        let ended = sessions.iter().map(|session| session.commands.send(Command::Quit));
        ended.for_each(drop);
        sessions.into_iter().for_each(ConnectedSession::end);
    }
}

fn open_session(
    request: OpenRequest,
    options: &OpenOptions,
    events: &Sender<Event>,
) -> Result<(OpenedSession, ConnectedSession, Receiver<Update>), HintedError> {
    let OpenRequest { key, session, folder, mcp_servers, additional_folders, files, .. } = request;
    if let Some(missing) = additional_folders.iter().chain([&folder]).find(|folder| !folder.is_dir()) {
        return Err(HintedError::new(format!("there is no folder {}", missing.display())));
    }
    let open_files = || EditorFiles { session: key, events: Mutex::new(events.clone()) };
    let open_files = match files {
        ClientFiles::Offered => Some(Arc::new(open_files()) as Arc<dyn OpenFiles>),
        ClientFiles::NotOffered => None,
    };
    let choice = match &session {
        SessionToOpen::New => SessionChoice::New,
        SessionToOpen::Stored(id) => SessionChoice::Named(stored::exact_id(&options.user_folders, id)?),
    };
    let model = options.model.clone().filter(|_| session == SessionToOpen::New);
    // The editor has no window for questions before the session is there.
    let trust = if options.trusts_folders { Trust::Given } else { Trust::Ask(Arc::new(NobodyToAsk)) };
    let new_id = match session {
        SessionToOpen::New => stored::new_id(&options.user_folders),
        SessionToOpen::Stored(_) => None,
    };
    let id = match (&session, &new_id) {
        (SessionToOpen::Stored(id), _) => id.clone(),
        (SessionToOpen::New, Some(id)) => id.to_string(),
        // The session is not saved, and says so.
        (SessionToOpen::New, None) => format!("unsaved-{}", key.0),
    };
    let handle = spawn(SessionOptions {
        model,
        choice,
        new_id,
        trust,
        overrides: Overrides::clone(&options.overrides),
        mcp_servers: mcp_servers.into_iter().map(mcp_table).collect(),
        additional_folders,
        open_files,
        simulator_rate: crate::simulator_rate(),
        ..SessionOptions::new(folder, options.user_folders.clone())
    })?;
    let SessionHandle { commands, updates, setup, session } = handle;
    let ids = setup.restored_ids.iter().map(|id| Some(id.0)).chain(std::iter::repeat(None));
    let opened = OpenedSession {
        id,
        status: setup.status,
        models: setup.lists.models,
        messages: ids.zip(setup.restored).collect(),
        access: match setup.access {
            SetupAccess::Writable => SessionAccess::Writable,
            SetupAccess::OpenElsewhere => SessionAccess::OpenElsewhere,
        },
    };
    Ok((opened, ConnectedSession { commands, session }, updates))
}

/// A server of the editor, as a table of config.toml. It is confined like those.
fn mcp_table(server: McpServer) -> McpTable {
    let pairs = |pairs: Vec<NameValue>| pairs.into_iter().map(|NameValue { name, value }| (name, value)).collect();
    let (name, transport) = match server {
        McpServer::Http { name, url, headers, .. } => (name, ServerTransport::Url { url, headers: pairs(headers) }),
        McpServer::Stdio { name, command, args, env } => {
            let want = RequestedAccess::Standard;
            (name, ServerTransport::Command { program: command, arguments: args, env: pairs(env), want })
        }
    };
    McpTable { name: server_name(&name), transport, enabled: true, trust: false }
}

/// The name that begins the names of its tools: letters, digits and `-`.
fn server_name(name: &str) -> String {
    const LONGEST: usize = 32;
    let letters = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
    let name: String = letters.take(LONGEST).collect();
    if name.is_empty() { "editor".to_owned() } else { name }
}

/// An error and its hint as one message.
fn one_line(error: &HintedError) -> String {
    match error.hint_text() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a1_lines_are_read_whole_and_a_bad_one_does_not_end_the_connection() {
        let mut input = io::BufReader::with_capacity(3, &b"{\"a\":1}\n\n\xff\nlast"[..]);
        let mut next = || read_line(&mut input).expect("memory can be read");
        assert_eq!(next(), Some(Ok("{\"a\":1}".to_owned())));
        assert_eq!(next(), Some(Ok(String::new())));
        assert_eq!(next(), Some(Err("the line is not UTF-8")));
        assert_eq!(next(), Some(Ok("last".to_owned())));
        assert_eq!(next(), None);
        let long = [vec![b'x'; MAX_LINE + 1], b"\nnext\n".to_vec()].concat();
        let mut input = &long[..];
        assert_eq!(read_line(&mut input).expect("read"), Some(Err("the line is longer than 64 MiB")));
        assert_eq!(read_line(&mut input).expect("read"), Some(Ok("next".to_owned())));
    }

    #[test]
    fn a1_the_name_of_an_editors_server_can_begin_the_name_of_a_tool() {
        let cases = [("files", "files"), ("my__server!", "my--server-"), ("", "editor"), ("ä", "-")];
        for (name, expected) in cases {
            assert_eq!(server_name(name), expected, "{name}");
        }
    }
}
