//! A server that records requests and answers them as told.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A request as the server read it.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    /// The first line of the request.
    pub(crate) line: String,
    /// The bearer token.
    pub(crate) key: String,
    pub(crate) body: Value,
    /// The body as it was sent.
    pub(crate) text: String,
}

/// What the server received so far.
pub(crate) type ReceivedRequests = Arc<Mutex<Vec<ReceivedRequest>>>;

/// Answers every request with a status line and a body. Returns the server's URL and what it received.
pub(crate) fn recording_server(
    answer: impl Fn(&ReceivedRequest) -> (&'static str, String) + Send + 'static,
) -> (String, ReceivedRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = ReceivedRequests::default();
    let shared = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let Some(request) = read_request(&mut stream) else { continue };
            let (status, body) = answer(&request);
            shared.lock().unwrap().push(request);
            let length = body.len();
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
            drop(stream.write_all(format!("{head}{body}").as_bytes()));
        }
    });
    (url, received)
}

fn read_request(stream: &mut impl Read) -> Option<ReceivedRequest> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let header = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(": "));
                lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
            };
            if body.len() >= header("content-length")?.parse::<usize>().ok()? {
                let key = header("authorization").unwrap_or_default().replace("Bearer ", "");
                let line = head.lines().next()?.to_owned();
                return Some(ReceivedRequest {
                    line,
                    key,
                    body: serde_json::from_str(body).ok()?,
                    text: body.to_owned(),
                });
            }
        }
        match stream.read(&mut buffer).ok()? {
            0 => return None,
            length => bytes.extend(buffer.iter().take(length)),
        }
    }
}
