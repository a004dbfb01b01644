//! Answers every request with 1,000 deltas a second: half thinking, half answer. Each
//! delta begins with a letter of its own.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use aside_bench::serve::read_request;

use crate::watch::DELTAS;

const BETWEEN: Duration = Duration::from_millis(1);
/// Every this many deltas, a line ends.
const DELTAS_A_LINE: usize = 8;

/// When each delta was sent.
pub(crate) type SendTimes = Arc<Mutex<Vec<Instant>>>;

pub(crate) fn start(deltas: usize) -> io::Result<(SocketAddr, SendTimes)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let sent = SendTimes::default();
    let stamps = Arc::clone(&sent);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client may disconnect at any time.
            answer(stream, deltas, &stamps).ok();
        }
    });
    Ok((address, sent))
}

fn answer(mut stream: TcpStream, deltas: usize, sent: &SendTimes) -> io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&mut stream)?;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    let began = Instant::now();
    for at in 0..deltas {
        sleep((began + BETWEEN * at as u32).saturating_duration_since(Instant::now()));
        let letter = char::from_u32(DELTAS + at as u32).unwrap_or(' ');
        let end = if at % DELTAS_A_LINE == DELTAS_A_LINE - 1 { "\\n" } else { " " };
        let member = if at < deltas / 2 { "reasoning_content" } else { "content" };
        event(&mut stream, &format!(r#"{{"{member}":"{letter} word{end}"}},"finish_reason":null"#))?;
        sent.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }
    event(&mut stream, r#"{},"finish_reason":"stop""#)?;
    stream.write_all(b"0\r\n\r\n")
}

fn event(stream: &mut TcpStream, delta: &str) -> io::Result<()> {
    let head =
        r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"m-1""#;
    let data = format!("data: {head},\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())
}
