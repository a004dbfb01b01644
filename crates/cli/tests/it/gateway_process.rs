//! `aside serve` as a process, an HTTP client, and a provider that answers piece by
//! piece.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use crate::support::{TestConfig, start};

/// A gateway on a free port, killed when the test is over.
pub(crate) struct GatewayProcess {
    child: Child,
    pub(crate) address: String,
    /// Kept open, because the gateway writes to it.
    _stderr: BufReader<ChildStderr>,
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        // It may already have ended.
        let _ended = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl GatewayProcess {
    pub(crate) fn start(config: &TestConfig) -> GatewayProcess {
        GatewayProcess::start_with(config, &[], &[])
    }

    pub(crate) fn start_with(config: &TestConfig, arguments: &[&str], variables: &[(&str, &str)]) -> GatewayProcess {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["serve", "--listen", "0"]).args(arguments).envs(variables.iter().copied());
        GatewayProcess::start_command(config, command)
    }

    /// Through a shell script, which gets the program and its arguments as `$0` and `$@`.
    pub(crate) fn start_in_shell(config: &TestConfig, script: &str) -> GatewayProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_aside"), "serve", "--listen", "0"]);
        GatewayProcess::start_command(config, command)
    }

    fn start_command(config: &TestConfig, mut command: Command) -> GatewayProcess {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = start(&mut command, Some(config));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut text = String::new();
        while !text.contains("listening on http://") {
            assert!(stderr.read_line(&mut text).unwrap() > 0, "no address in {text:?}");
        }
        let address = text.split("listening on http://").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        GatewayProcess { address: address.to_owned(), child, _stderr: stderr }
    }

    /// SIGKILL. What it has answered is durable.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// SIGTERM: running replies may end.
    pub(crate) fn terminate(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Sends a request and reads the whole answer.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpAnswer {
        self.open(method, path, headers, body).rest()
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> HttpAnswer {
        self.send("POST", path, &[], body.as_bytes())
    }

    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        self.send("GET", path, &[], b"")
    }

    /// Sends a request whose answer is read piece by piece.
    pub(crate) fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> OpenAnswer {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let host = if headers.iter().any(|(name, _)| *name == "host") { "" } else { "host: localhost\r\n" };
        let mut head = format!("{method} {path} HTTP/1.1\r\n{host}connection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        write!(socket, "{head}content-length: {}\r\n\r\n", body.len()).unwrap();
        // A gateway that refuses a body early may close the connection.
        let _refused = socket.write_all(body);
        OpenAnswer { socket, bytes: Vec::new() }
    }

    /// The receipt of an answer, once it is there.
    pub(crate) fn receipt(&self, answer: &HttpAnswer) -> serde_json::Value {
        let id = answer.header("aside-request").expect("an id").to_owned();
        wait_for("the receipt", || {
            let receipt = self.get(&format!("/aside/requests/{id}"));
            (receipt.status == 200).then(|| receipt.json())
        })
    }

    pub(crate) fn metric(&self, name: &str) -> Option<String> {
        let metrics = self.get("/metrics").text();
        metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")).map(str::to_owned))
    }
}

/// Waits for a condition, however long it takes on a busy machine.
pub(crate) fn wait_for<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = check() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("{what} did not come");
}

/// An answer that is still arriving.
pub(crate) struct OpenAnswer {
    socket: TcpStream,
    bytes: Vec<u8>,
}

impl OpenAnswer {
    /// Reads until this text has arrived.
    pub(crate) fn read_until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.bytes).contains(text) {
            let mut piece = [0; 8192];
            let n = self.socket.read(&mut piece).unwrap();
            assert!(n > 0, "no {text:?} in {}", String::from_utf8_lossy(&self.bytes));
            self.bytes.extend_from_slice(&piece[..n]);
        }
    }

    pub(crate) fn rest(mut self) -> HttpAnswer {
        // A connection that breaks is a part of some tests.
        let _broken = self.socket.read_to_end(&mut self.bytes);
        HttpAnswer::parse(&self.bytes)
    }
}

/// What a client received.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The body came to its end.
    pub(crate) is_whole: bool,
}

impl HttpAnswer {
    fn parse(bytes: &[u8]) -> HttpAnswer {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return HttpAnswer { status: 0, headers: Vec::new(), body: bytes.to_vec(), is_whole: false };
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let headers: Vec<(String, String)> = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let raw = &bytes[end + 4..];
        let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: Option<usize> = length.and_then(|(_, value)| value.parse().ok());
        let (body, is_whole) = match (is_chunked, length) {
            (true, _) => unchunked(raw),
            (false, Some(length)) => (raw.to_vec(), raw.len() == length),
            (false, None) => (raw.to_vec(), true),
        };
        HttpAnswer { status, headers, body, is_whole }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The first number of `aside-repaired`.
    pub(crate) fn n_restored(&self) -> usize {
        let header = self.header("aside-repaired").unwrap_or_else(|| panic!("{} {}", self.status, self.text()));
        header.split(' ').next().and_then(|number| number.parse().ok()).unwrap()
    }
}

fn unchunked(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(end) = raw.windows(2).position(|two| two == b"\r\n") else { return (body, false) };
        let Ok(size) = usize::from_str_radix(&String::from_utf8_lossy(&raw[..end]), 16) else { return (body, false) };
        raw = &raw[end + 2..];
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&raw[..size.min(raw.len())]);
        if raw.len() < size + 2 {
            return (body, false);
        }
        raw = &raw[size + 2..];
    }
}

/// One step of a provider's answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Waits until the test calls [`Upstream::release`].
    Wait,
    /// Closes the connection in the middle of the body.
    BreakOff,
    /// Sends this piece again and again, so many times.
    Repeat(Vec<u8>, usize),
}

impl Step {
    pub(crate) fn send(text: &str) -> Step {
        Step::Send(text.as_bytes().to_vec())
    }
}

/// What a provider does with a request, which it gets with its head.
type Script = dyn Fn(&str) -> Vec<Step> + Send + Sync;

#[derive(Default)]
struct UpstreamState {
    received: Mutex<Vec<String>>,
    released: Mutex<usize>,
    changed: Condvar,
    n_sent: AtomicUsize,
    n_gone: AtomicUsize,
}

/// A provider on a free port. Its threads end with the test's process.
pub(crate) struct Upstream {
    pub(crate) port: u16,
    state: Arc<UpstreamState>,
}

impl Upstream {
    pub(crate) fn start(script: impl Fn(&str) -> Vec<Step> + Send + Sync + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(UpstreamState::default());
        let (shared, script): (_, Arc<Script>) = (Arc::clone(&state), Arc::new(script));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (state, script) = (Arc::clone(&shared), Arc::clone(&script));
                std::thread::spawn(move || answer(socket, &state, script.as_ref()));
            }
        });
        Upstream { port, state }
    }

    /// The config of a provider `up` with the rules of a dialect.
    pub(crate) fn config(&self, protocol: &str, dialect: &str) -> String {
        format!(
            "[providers.up]\nprotocol = \"{protocol}\"\nbase_url = \"http://127.0.0.1:{}/v1\"\ndialect = \"{dialect}\"\n",
            self.port
        )
    }

    /// Lets the next [`Step::Wait`] end.
    pub(crate) fn release(&self) {
        *self.state.released.lock().unwrap() += 1;
        self.state.changed.notify_all();
    }

    /// The heads and bodies of all requests.
    pub(crate) fn received(&self) -> Vec<String> {
        self.state.received.lock().unwrap().clone()
    }

    /// Bytes that were sent so far.
    pub(crate) fn n_sent(&self) -> usize {
        self.state.n_sent.load(Ordering::SeqCst)
    }

    /// Connections that the gateway closed before the answer was complete.
    pub(crate) fn n_gone(&self) -> usize {
        self.state.n_gone.load(Ordering::SeqCst)
    }
}

fn answer(mut socket: TcpStream, state: &UpstreamState, script: &Script) {
    let mut bytes = Vec::new();
    let request = loop {
        let mut piece = [0; 65536];
        let n = socket.read(&mut piece).unwrap_or(0);
        if n == 0 {
            return;
        }
        bytes.extend_from_slice(&piece[..n]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            break String::from_utf8_lossy(&bytes).into_owned();
        }
    };
    state.received.lock().unwrap().push(request.clone());
    if run_script(&mut socket, state, script(&request)).is_err() {
        state.n_gone.fetch_add(1, Ordering::SeqCst);
    }
}

fn run_script(socket: &mut TcpStream, state: &UpstreamState, steps: Vec<Step>) -> std::io::Result<()> {
    socket.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
    )?;
    let send = |socket: &mut TcpStream, piece: &[u8]| {
        socket.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        socket.write_all(piece)?;
        socket.write_all(b"\r\n")?;
        state.n_sent.fetch_add(piece.len(), Ordering::SeqCst);
        socket.flush()
    };
    for step in steps {
        match step {
            Step::Send(piece) => send(socket, &piece)?,
            Step::Repeat(piece, times) => (0..times).try_for_each(|_| send(socket, &piece))?,
            Step::Wait => wait(socket, state)?,
            Step::BreakOff => return Ok(()),
        }
    }
    socket.write_all(b"0\r\n\r\n")
}

/// Waits for a release, and notices a gateway that closes the connection.
fn wait(socket: &mut TcpStream, state: &UpstreamState) -> std::io::Result<()> {
    socket.set_read_timeout(Some(std::time::Duration::from_millis(20)))?;
    loop {
        let mut released = state.released.lock().unwrap();
        if *released > 0 {
            *released -= 1;
            return Ok(());
        }
        drop(state.changed.wait_timeout(released, std::time::Duration::from_millis(50)).unwrap());
        match socket.read(&mut [0; 1]) {
            Ok(0) => return Err(std::io::ErrorKind::ConnectionAborted.into()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return Err(error),
            Ok(_) | Err(_) => (),
        }
    }
}

/// The thought of [`thinking_reply`].
pub(crate) const THOUGHT: &str = "Berth 4 was dredged in spring; I must look at the table.";

/// A streamed reply of a Chat provider: a thought and a call, which may be held before
/// its last frame.
pub(crate) fn thinking_reply(is_held: bool) -> Vec<Step> {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    let call = r#"{"tool_calls":[{"index":0,"id":"call_00_x8Bq2LmVf3kZ","type":"function","function":{"name":"depth","arguments":"{\"berth\":4}"}}]}"#;
    let thought = format!("{{\"role\":\"assistant\",\"reasoning_content\":\"{THOUGHT}\"}}");
    let mut steps = vec![Step::send(&chunk(&thought, "null")), Step::send(&chunk(call, "null"))];
    steps.extend(is_held.then_some(Step::Wait));
    steps.push(Step::send(&chunk("{}", "\"tool_calls\"")));
    steps.push(Step::send("data: [DONE]\n\n"));
    steps
}

/// A provider whose first reply is held before its end, and that answers a tool result at
/// once.
pub(crate) fn held_upstream() -> Upstream {
    Upstream::start(|request| match request.contains("\"role\":\"tool\"") {
        true => vec![
            Step::send(
                "data: {\"id\":\"c2\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"reasoning_content\":\"Four.\",\"content\":\"4 m\"},\"finish_reason\":\"stop\"}]}\n\n",
            ),
            Step::send("data: [DONE]\n\n"),
        ],
        false => thinking_reply(true),
    })
}

const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"depth","parameters":{"type":"object","properties":{}}}}],"stream":true"#;

/// The question that [`thinking_reply`] answers.
pub(crate) fn question(model: &str, words: &str) -> String {
    format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"{words}"}}],{TOOLS}}}"#)
}

/// The request after it, of a client that lost the thought.
pub(crate) fn follow_up(model: &str, words: &str) -> String {
    let call =
        r#"{"id":"call_00_x8Bq2LmVf3kZ","type":"function","function":{"name":"depth","arguments":"{\"berth\":4}"}}"#;
    format!(
        r#"{{"model":"{model}","messages":[{{"role":"user","content":"{words}"}},{{"role":"assistant","content":null,"tool_calls":[{call}]}},{{"role":"tool","tool_call_id":"call_00_x8Bq2LmVf3kZ","content":"4 m"}}],{TOOLS}}}"#
    )
}
