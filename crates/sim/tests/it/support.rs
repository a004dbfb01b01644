//! A simulator in a thread, a small HTTP client, and a conversation with it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};

use aside_core::block::{Block, Origin, Reply, Text, ToolResult};
use aside_core::conversation::Tool;
use aside_core::dialect::{Dialect, Dialects};
use aside_core::fold::Fold;
use aside_core::message::{Message, Role};
use aside_core::settings::Settings;
use aside_core::wire::{Decoder, Encoded, Request, encode};
use aside_sim::{Bounds, Options, Simulator, Stage};
use serde_json::Value;

static DIALECTS: LazyLock<Dialects> = LazyLock::new(|| Dialects::builtin().expect("the built-in dialects are valid"));

/// One for all tests that do not care about its options.
static SERVER: LazyLock<SocketAddr> = LazyLock::new(|| {
    let server = Server::start(Options::default());
    let address = server.address;
    // It lives as long as the tests do.
    std::mem::forget(server);
    address
});

pub(crate) fn dialects() -> &'static Dialects {
    &DIALECTS
}

pub(crate) fn address() -> SocketAddr {
    *SERVER
}

/// A simulator that ends with its test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _stop: Sender<()>,
}

impl Server {
    pub(crate) fn start(options: Options) -> Server {
        Server::within(options, Bounds::default())
    }

    pub(crate) fn within(options: Options, bounds: Bounds) -> Server {
        let (told, hears) = channel();
        let (stop, stopped) = channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let stage = Stage::new(dialects().clone(), options);
                let simulator = Simulator::bind_within("127.0.0.1:0".parse().unwrap(), stage, bounds).await.unwrap();
                told.send(simulator.address()).unwrap();
                let ended = tokio::task::spawn_blocking(move || stopped.recv().is_ok());
                simulator.run(async { assert!(!ended.await.unwrap()) }).await;
            });
        });
        Server { address: hears.recv().unwrap(), _stop: stop }
    }
}

/// What came back, piece by piece.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) pieces: Vec<Vec<u8>>,
    /// The body ended as HTTP says it should.
    pub(crate) complete: bool,
}

impl Answer {
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

pub(crate) fn get(address: SocketAddr, path: &str) -> Answer {
    exchange(address, "GET", path, &[], "")
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    exchange(address, "POST", path, &[("authorization", "Bearer any"), ("anthropic-version", "2023-06-01")], body)
}

pub(crate) fn exchange(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut socket = TcpStream::connect(address).unwrap();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    read_answer(BufReader::new(socket))
}

pub(crate) fn read_answer(mut socket: BufReader<TcpStream>) -> Answer {
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
    let mut answer = Answer { status, headers, pieces: Vec::new(), complete: false };
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

/// How a client wants its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    Streamed,
    Whole,
}

/// A client made of aside's own encoder and decoder.
pub(crate) struct Desk {
    pub(crate) address: SocketAddr,
    pub(crate) dialect: &'static Dialect,
    /// Whose rules count; the dialect's own without one.
    pub(crate) model: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) delivery: Delivery,
}

impl Desk {
    pub(crate) fn new(dialect: &'static Dialect, question: &str) -> Desk {
        let schema = r#"{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}"#;
        let tool = |name: &str| Tool { name: name.into(), description: "d".into(), parameters: schema.into() };
        let messages =
            vec![Message::new(Role::System, vec![text("Be brief.")]), Message::new(Role::User, vec![text(question)])];
        Desk {
            address: address(),
            dialect,
            model: dialect.id.clone(),
            messages,
            tools: vec![tool("write"), tool("list")],
            delivery: Delivery::Streamed,
        }
    }

    pub(crate) fn origin(&self) -> Origin {
        Origin {
            provider: Some("sim".to_owned()),
            dialect: Some(self.dialect.id.clone()),
            model: Some(self.model.clone()),
            ..Origin::default()
        }
    }

    pub(crate) fn encoded(&self) -> Encoded {
        let messages: Vec<&Message> = self.messages.iter().collect();
        encode(&Request {
            dialects: dialects(),
            dialect: self.dialect,
            model: &self.model,
            target: &self.origin(),
            messages: &messages,
            tools: &self.tools,
            settings: &Settings::new(),
            repairs: &[],
        })
    }

    pub(crate) fn send(&self, encoded: &Encoded) -> Answer {
        let mut headers = vec![("authorization", "Bearer any"), ("anthropic-version", "2023-06-01")];
        headers.extend(encoded.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let (mut path, mut body) = (encoded.path.clone(), encoded.body.to_string());
        if self.model != self.dialect.id {
            // One model of a dialect has a name with both.
            let named = format!("sim/{}/{}", self.dialect.id, self.model);
            path = path.replace(&self.model, &named);
            body = changed(&body, |body| {
                if let Some(model) = body.get_mut("model") {
                    *model = named.into();
                }
            });
        }
        if self.delivery == Delivery::Whole {
            path = path.replace("streamGenerateContent?alt=sse", "generateContent").replace("-stream", "");
            body = body.replacen(r#""stream":true"#, r#""stream":false"#, 1);
        }
        exchange(self.address, "POST", &path, &headers, &body)
    }

    /// Asks, expects an answer, and keeps it.
    pub(crate) fn step(&mut self) -> Reply {
        let encoded = self.encoded();
        let answer = self.send(&encoded);
        assert_eq!(answer.status, 200, "{}: {}\n{}", self.dialect.id, answer.text(), encoded.body);
        assert!(answer.complete, "{}", self.dialect.id);
        let reply = answer.decoded_from(self.dialect, &self.model);
        self.keep(&reply);
        reply
    }

    pub(crate) fn keep(&mut self, reply: &Reply) {
        let origin = self.origin();
        self.messages.push(Message::from_reply(reply.clone(), Some(origin)));
    }

    /// Gives every call of a reply a result.
    pub(crate) fn give_results(&mut self, reply: &Reply) {
        let results = calls(reply).into_iter().map(|call| {
            let (id, name) = (call.id.as_str().to_owned(), call.name.clone());
            Block::ToolResult(ToolResult { id, name, content: "README.md".to_owned(), is_error: false })
        });
        self.messages.push(Message::new(Role::Tool, results.collect()));
    }

    pub(crate) fn say(&mut self, words: &str) {
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

pub(crate) fn thoughts(reply: &Reply) -> Vec<&aside_core::block::Thinking> {
    let thoughts = reply.blocks.iter().filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking),
        _ => None,
    });
    thoughts.collect()
}

pub(crate) fn thought(reply: &Reply) -> String {
    thoughts(reply).iter().map(|thinking| thinking.text()).collect()
}

pub(crate) fn said(reply: &Reply) -> String {
    let texts = reply.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// A body, changed by hand as a careless client would.
pub(crate) fn changed(body: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut body: Value = serde_json::from_str(body).unwrap();
    change(&mut body);
    body.to_string()
}

/// Every value below a value, with the chance to change it.
pub(crate) fn each_value(value: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    visit(value);
    match value {
        Value::Object(members) => members.values_mut().for_each(|value| each_value(value, visit)),
        Value::Array(elements) => elements.iter_mut().for_each(|value| each_value(value, visit)),
        _ => (),
    }
}
