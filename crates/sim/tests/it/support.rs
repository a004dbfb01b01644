//! A simulator in a thread, a small HTTP client, and a test conversation.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};

use aside_core::block::{Block, Origin, Reply, Text, ToolResult};
use aside_core::conversation::ToolSpec;
use aside_core::dialect::{Dialect, Dialects};
use aside_core::fold::Fold;
use aside_core::message::{Message, Role};
use aside_core::settings::Settings;
use aside_core::wire::{Decoder, Encoded, Request, encode};
use aside_sim::{Bounds, ScriptOptions, Service, Simulator, Strictness};
use serde_json::Value;

static DIALECTS: LazyLock<Dialects> = LazyLock::new(|| Dialects::builtin().expect("the built-in dialects are valid"));

/// A shared server for tests that use the default options.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let server = TestServer::start(ScriptOptions::default());
    let address = server.address;
    // It runs until the test process ends.
    std::mem::forget(server);
    address
});

pub(crate) fn dialects() -> &'static Dialects {
    &DIALECTS
}

pub(crate) fn address() -> SocketAddr {
    *SERVER
}

/// A simulator that stops when dropped.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    _stop: Sender<()>,
}

impl TestServer {
    pub(crate) fn start(options: ScriptOptions) -> TestServer {
        TestServer::with_bounds(options, Bounds::default())
    }

    /// A simulator that also refuses requests in which thinking would be lost silently.
    pub(crate) fn strict() -> TestServer {
        let service = Service::new(dialects().clone(), ScriptOptions::default());
        TestServer::serving(service.with_strictness(Strictness::RefuseLosses), Bounds::default())
    }

    pub(crate) fn with_bounds(options: ScriptOptions, bounds: Bounds) -> TestServer {
        TestServer::serving(Service::new(dialects().clone(), options), bounds)
    }

    fn serving(service: Service, bounds: Bounds) -> TestServer {
        let (address_sender, address_receiver) = channel();
        let (stop, stopped) = channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let simulator =
                    Simulator::bind_with_bounds("127.0.0.1:0".parse().unwrap(), service, bounds).await.unwrap();
                address_sender.send(simulator.address()).unwrap();
                let ended = tokio::task::spawn_blocking(move || stopped.recv().is_ok());
                simulator.run(async { assert!(!ended.await.unwrap()) }).await;
            });
        });
        TestServer { address: address_receiver.recv().unwrap(), _stop: stop }
    }
}

/// A response, chunk by chunk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Whether the body ended correctly according to HTTP.
    pub(crate) complete: bool,
}

impl ReceivedResponse {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn decoded(&self, dialect: &Dialect) -> Reply {
        self.decoded_from(dialect, &dialect.id)
    }

    fn decoded_from(&self, dialect: &Dialect, model: &str) -> Reply {
        let mut fold = Fold::new();
        let mut decoder = Decoder::new(dialect.protocol, dialect.rules(Some(model)));
        for piece in &self.pieces {
            decoder.push(piece, &mut fold);
        }
        if let Err(error) = decoder.finish(&mut fold) {
            let bytes = self.bytes();
            let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(600)]);
            panic!("{}: {error}\n{begin}", dialect.id);
        }
        fold.finish()
    }
}

pub(crate) fn get(address: SocketAddr, path: &str) -> ReceivedResponse {
    exchange(address, "GET", path, &[], "")
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> ReceivedResponse {
    exchange(address, "POST", path, &[("authorization", "Bearer any"), ("anthropic-version", "2023-06-01")], body)
}

pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> ReceivedResponse {
    let mut socket = TcpStream::connect(address).unwrap();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    read_response(BufReader::new(socket))
}

pub(crate) fn read_response(mut socket: BufReader<TcpStream>) -> ReceivedResponse {
    let mut line = String::new();
    socket.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
    let mut headers = Vec::new();
    loop {
        line.clear();
        socket.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut answer = ReceivedResponse { status, headers, pieces: Vec::new(), complete: false };
    if status == 204 {
        answer.complete = true;
    } else if answer.header("transfer-encoding") == "chunked" {
        answer.complete = read_chunks(&mut socket, &mut answer.pieces).is_some();
    } else {
        let length: usize = answer.header("content-length").parse().unwrap();
        let mut body = Vec::new();
        socket.read_to_end(&mut body).unwrap();
        answer.complete = body.len() == length;
        answer.pieces.push(body);
    }
    answer
}

/// None if the connection broke before the last chunk.
fn read_chunks(socket: &mut BufReader<TcpStream>, pieces: &mut Vec<Vec<u8>>) -> Option<()> {
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim_end(), 16).ok()?;
        let mut piece = vec![0; size];
        socket.read_exact(&mut piece).ok()?;
        let mut end = [0; 2];
        socket.read_exact(&mut end).ok()?;
        if size == 0 {
            return Some(());
        }
        pieces.push(piece);
    }
}

/// How the client asks for replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    Streamed,
    Whole,
}

/// A client that uses aside's own encoder and decoder.
pub(crate) struct TestClient {
    pub(crate) address: SocketAddr,
    pub(crate) dialect: &'static Dialect,
    /// The model whose rules apply; the dialect's id for the defaults.
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<ToolSpec>,
    pub(crate) mode: ReplyMode,
}

impl TestClient {
    pub(crate) fn new(dialect: &'static Dialect, question: &str) -> TestClient {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
        let tool = |name: &str| ToolSpec::new(name, "d", schema);
        let messages =
            vec![Message::new(Role::System, vec![text("Be brief.")]), Message::new(Role::User, vec![text(question)])];
        TestClient {
            address: address(),
            dialect,
            model: dialect.id.clone(),
            messages,
            tools: vec![tool("write"), tool("list")],
            mode: ReplyMode::Streamed,
        }
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin::default()
            .with_provider("sim".to_owned())
            .with_dialect(self.dialect.id.clone())
            .with_model(self.model.clone())
    }

    pub(crate) fn encoded(&self) -> Encoded {
        let messages: Vec<&Message> = self.messages.iter().collect();
        encode(
            &Request::new(dialects(), self.dialect, &self.model, &self.origin(), &Settings::new())
                .with_messages(&messages)
                .with_tools(&self.tools),
        )
    }

    pub(crate) fn send(&self, encoded: &Encoded) -> ReceivedResponse {
        let mut headers = vec![("authorization", "Bearer any"), ("anthropic-version", "2023-06-01")];
        headers.extend(encoded.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let (mut path, mut body) = (encoded.path.clone(), encoded.body.to_string());
        if self.model != self.dialect.id {
            // A model of a dialect is addressed by both names.
            let named = format!("sim/{}/{}", self.dialect.id, self.model);
            path = path.replace(&self.model, &named);
            body = edited_body(&body, |body| {
                if let Some(model) = body.get_mut("model") {
                    *model = named.into();
                }
            });
        }
        if self.mode == ReplyMode::Whole {
            path = path.replace("streamGenerateContent?alt=sse", "generateContent").replace("-stream", "");
            body = body.replacen(r#""stream":true"#, r#""stream":false"#, 1);
        }
        exchange(self.address, "POST", &path, &headers, &body)
    }

    /// Sends the conversation, expects a reply and appends it.
    pub(crate) fn step(&mut self) -> Reply {
        let encoded = self.encoded();
        let answer = self.send(&encoded);
        assert_eq!(answer.status, 200, "{}: {}\n{}", self.dialect.id, answer.text(), encoded.body);
        assert!(answer.complete, "{}", self.dialect.id);
        let reply = answer.decoded_from(self.dialect, &self.model);
        self.add_reply(&reply);
        reply
    }

    pub(crate) fn add_reply(&mut self, reply: &Reply) {
        let origin = self.origin();
        self.messages.push(Message::from_reply(reply.clone(), Some(origin)));
    }

    /// Appends a result for every call in the reply.
    pub(crate) fn give_results(&mut self, reply: &Reply) {
        let results = calls(reply).into_iter().map(|call| {
            let (id, name) = (call.id.as_str().to_owned(), call.name.clone());
            Block::ToolResult(ToolResult {
                id,
                name,
                content: "README.md".to_owned(),
                is_error: false,
                media: Vec::new(),
            })
        });
        self.messages.push(Message::new(Role::Tool, results.collect()));
    }

    pub(crate) fn add_user_message(&mut self, words: &str) {
        self.messages.push(Message::new(Role::User, vec![text(words)]));
    }
}

pub(crate) fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

pub(crate) fn calls(reply: &Reply) -> Vec<&aside_core::block::ToolCall> {
    let calls = reply.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

pub(crate) fn thinking_blocks(reply: &Reply) -> Vec<&aside_core::block::Thinking> {
    let blocks = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking),
        _ => None,
    });
    blocks.collect()
}

pub(crate) fn thinking_text(reply: &Reply) -> String {
    thinking_blocks(reply).iter().map(|thinking| thinking.text()).collect()
}

pub(crate) fn answer_text(reply: &Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// Edits a JSON body, as an incorrect client would.
pub(crate) fn edited_body(body: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    change(&mut body);
    body.to_string()
}

/// Visits every nested JSON value.
pub(crate) fn each_value(value: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    visit(value);
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| each_value(value, visit)),
        Value::Array(elements) => elements.iter_mut().for_each(|value| each_value(value, visit)),
        _ => (),
    }
}
