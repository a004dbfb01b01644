//! A server that plays a script: chosen bytes, chosen pauses, chosen ends.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone)]
pub(crate) enum Play {
    Bytes(Vec<u8>),
    /// Until the client is gone; then that is noted.
    UntilGone,
}

/// What one connection does after its request came.
pub(crate) type Script = Vec<Play>;

pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    requests: Vec<String>,
    gone: bool,
}

impl Server {
    /// One script a connection, in order; the last one again for any more.
    pub(crate) async fn playing(scripts: Vec<Script>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        tokio::spawn(async move {
            for turn in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                let script = scripts.get(turn).or(scripts.last()).cloned().unwrap_or_default();
                tokio::spawn(serve(stream, script, Arc::clone(&shared)));
            }
        });
        Server { url, seen }
    }

    /// The bodies of the requests so far.
    pub(crate) fn requests(&self) -> Vec<serde_json::Value> {
        let seen = self.seen.lock().unwrap();
        seen.requests.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }

    pub(crate) fn client_is_gone(&self) -> bool {
        self.seen.lock().unwrap().gone
    }
}

async fn serve(mut stream: TcpStream, script: Script, seen: Arc<Mutex<Seen>>) {
    let Some(body) = request(&mut stream).await else { return };
    seen.lock().unwrap().requests.push(body);
    for play in script {
        match play {
            Play::Bytes(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
                stream.flush().await.unwrap();
            }
            Play::UntilGone => {
                let mut buffer = [0; 16];
                let read = stream.read(&mut buffer).await;
                seen.lock().unwrap().gone = matches!(read, Ok(0) | Err(_));
            }
        }
    }
}

/// Reads one request and gives its body.
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

/// A whole answer with this status.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Script {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    vec![Play::Bytes(text.into_bytes())]
}

/// The head of a stream; what follows is its body until the connection closes.
pub(crate) fn stream_head() -> Play {
    Play::Bytes(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n".to_vec())
}

/// A whole stream of chat deltas.
pub(crate) fn stream(body: &str) -> Script {
    vec![stream_head(), Play::Bytes(body.as_bytes().to_vec())]
}
