//! A provider with scripted replies: for tool calls that the simulator never makes,
//! and for text that is the same on every run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

use serde_json::{Value, json};

/// One step of a reply.
#[derive(Debug, Clone)]
pub(crate) enum ScriptedStep {
    Think(&'static str),
    Say(&'static str),
    Call {
        id: &'static str,
        name: &'static str,
        arguments: Value,
    },
    /// The beginning of a call.
    CallPart {
        id: &'static str,
        name: &'static str,
        arguments: &'static str,
    },
    /// More arguments of the last call.
    MoreArguments(&'static str),
    Pause(Duration),
    /// Wait for `resume_reply`.
    Hold,
}

/// Answers each request with the next reply.
pub(crate) struct ScriptedProvider {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<Value>>>,
    release: Sender<()>,
}

impl ScriptedProvider {
    pub(crate) fn new(replies: Vec<Vec<ScriptedStep>>) -> ScriptedProvider {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let (release, held) = channel();
        let heard = Arc::clone(&bodies);
        spawn(move || {
            let mut replies = replies.into_iter();
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let Some(body) = request(&stream) else { continue };
                heard.lock().unwrap().push(body);
                let beats = replies.next().unwrap_or_else(|| vec![ScriptedStep::Say("Nothing more was planned.")]);
                // The client may be gone.
                drop(answer(stream, &beats, &held));
            }
        });
        ScriptedProvider { address, bodies, release }
    }

    /// The config table of this provider, as `played`.
    pub(crate) fn config(&self) -> String {
        self.config_named("played")
    }

    pub(crate) fn config_named(&self, name: &str) -> String {
        let address = self.address;
        format!(
            "[providers.{name}]\nprotocol = \"openai-chat\"\ndialect = \"deepseek\"\nbase_url = \"http://{address}/v1\"\n"
        )
    }

    /// The requests so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }

    /// Continues a reply that waits in `Hold`.
    pub(crate) fn resume_reply(&self) {
        self.release.send(()).unwrap();
    }
}

/// The model that the provider lists.
const MODELS: &str = r#"{"object":"list","data":[{"id":"listed-live","object":"model"}]}"#;

/// The body of a request for a reply. The list of models is sent at once.
fn request(mut stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut is_list = false;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        is_list |= line.starts_with("get ") && line.contains("/models");
        if let Some(count) = line.strip_prefix("content-length:") {
            length = count.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    if is_list {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", MODELS.len());
        // The client may be gone.
        drop(write!(stream, "{head}connection: close\r\n\r\n{MODELS}"));
        return None;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn answer(mut stream: TcpStream, beats: &[ScriptedStep], held: &Receiver<()>) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let mut finish = "stop";
    let mut calls = 0;
    for beat in beats {
        let delta = match beat {
            ScriptedStep::Think(text) => json!({"reasoning_content": text}),
            ScriptedStep::Say(text) => json!({"content": text}),
            ScriptedStep::Call { id, name, arguments } => {
                finish = "tool_calls";
                calls += 1;
                let function = json!({"name": name, "arguments": arguments.to_string()});
                json!({"tool_calls": [{"index": calls - 1, "id": id, "type": "function", "function": function}]})
            }
            ScriptedStep::CallPart { id, name, arguments } => {
                finish = "tool_calls";
                calls += 1;
                let function = json!({"name": name, "arguments": arguments});
                json!({"tool_calls": [{"index": calls - 1, "id": id, "type": "function", "function": function}]})
            }
            ScriptedStep::MoreArguments(arguments) => {
                json!({"tool_calls": [{"index": calls - 1, "function": {"arguments": arguments}}]})
            }
            ScriptedStep::Pause(time) => {
                sleep(*time);
                continue;
            }
            ScriptedStep::Hold => {
                // An error means that the test is over.
                held.recv().ok();
                continue;
            }
        };
        event(&mut stream, &json!({"choices": [{"index": 0, "delta": delta}]}))?;
    }
    let usage = json!({"prompt_tokens": 1840, "completion_tokens": 160, "total_tokens": 2000});
    event(&mut stream, &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}))?;
    stream.write_all(b"data: [DONE]\n\n")
}

fn event(stream: &mut TcpStream, value: &Value) -> std::io::Result<()> {
    stream.write_all(format!("data: {value}\n\n").as_bytes())?;
    stream.flush()
}
