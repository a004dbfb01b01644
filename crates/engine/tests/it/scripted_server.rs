//! An HTTP server that follows a script.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub(crate) enum ServerStep {
    Bytes(Vec<u8>),
    /// Writes the bytes this often.
    Repeat(Vec<u8>, usize),
    /// Waits until the client closes the connection, and records that.
    WaitForDisconnect,
}

/// What the server does on one connection, after reading the request.
pub(crate) type ServerScript = Vec<ServerStep>;

pub(crate) struct ScriptedServer {
    pub(crate) url: String,
    seen: Arc<Mutex<Recorded>>,
}

#[derive(Default)]
struct Recorded {
    requests: Vec<String>,
    n_written: usize,
    gone: bool,
}

impl ScriptedServer {
    /// One script per connection, in order; the last one repeats.
    pub(crate) async fn start(scripts: Vec<ServerScript>) -> ScriptedServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Recorded::default()));
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            for turn in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let script = scripts.get(turn).or(scripts.last()).cloned().unwrap_or_default();
                tokio::spawn(serve(stream, script, Arc::clone(&shared)));
            }
        });
        ScriptedServer { url, seen }
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<serde_json::Value> {
        let seen = self.seen.lock().unwrap();
        seen.requests.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    /// The same as text, byte for byte.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How many bytes were written by `Repeat` steps.
    pub(crate) fn n_written(&self) -> usize {
        self.seen.lock().unwrap().n_written
    }

    pub(crate) fn client_is_gone(&self) -> bool {
        self.seen.lock().unwrap().gone
    }
}

async fn serve(mut stream: TcpStream, script: ServerScript, seen: Arc<Mutex<Recorded>>) {
    let Some(body) = request(&mut stream).await else { return };
    seen.lock().unwrap().requests.push(body);
    for play in script {
        match play {
            ServerStep::Bytes(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                stream.flush().await.unwrap();
            }
            ServerStep::Repeat(bytes, times) => {
                for _ in 0..times {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    seen.lock().unwrap().n_written += bytes.len();
                }
            }
            ServerStep::WaitForDisconnect => {
                let mut buffer = [0; 16];
                let read = stream.read(&mut buffer).await;
                seen.lock().unwrap().gone = matches!(read, Ok(0) | Err(_));
            }
        }
    }
}

/// Reads one request and returns its body.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(body.to_owned());
            }
        }
        let n = stream.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        bytes.extend_from_slice(&buffer[..n]);
    }
}

/// A complete response with this status.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> ServerScript {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    vec![ServerStep::Bytes(text.into_bytes())]
}

/// The head of a stream. Its body follows until the connection closes.
pub(crate) fn stream_head() -> ServerStep {
    ServerStep::Bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec())
}

/// A complete stream of chat deltas.
pub(crate) fn stream(body: &str) -> ServerScript {
    vec![stream_head(), ServerStep::Bytes(body.as_bytes().to_vec())]
}
