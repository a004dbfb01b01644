//! Answers every request with a stream.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use aside_bench::serve::read_request;

use crate::watch::{DELTAS, LAST_ANSWER};

const BETWEEN: Duration = Duration::from_millis(1);
/// Every this many deltas, a line ends.
const DELTAS_A_LINE: usize = 8;

#[derive(Debug, Clone, Copy)]
pub(crate) enum StreamedReply {
    /// This many deltas, 1,000 a second: half thinking, half answer. Each begins with a letter of its own.
    Paced(usize),
    /// This many lines of thinking, 26 bytes each, as fast as they are read; the answer is one letter.
    LongThinking(usize),
}

/// When each paced delta was sent.
pub(crate) type SendTimes = Arc<Mutex<Vec<Instant>>>;

pub(crate) fn start(reply: StreamedReply) -> io::Result<(SocketAddr, SendTimes)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let sent = SendTimes::default();
    let stamps = Arc::clone(&sent);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client may disconnect at any time.
            answer(stream, reply, &stamps).ok();
        }
    });
    Ok((address, sent))
}

fn answer(mut stream: TcpStream, reply: StreamedReply, sent: &SendTimes) -> io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&mut stream)?;
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes())?;
    match reply {
        StreamedReply::Paced(deltas) => send_paced(&mut stream, deltas, sent)?,
        StreamedReply::LongThinking(lines) => send_long_thinking(&mut stream, lines)?,
    }
    event(&mut stream, r#"{},"finish_reason":"stop""#)?;
    stream.write_all(b"0\r\n\r\n")
}

fn send_paced(stream: &mut TcpStream, deltas: usize, sent: &SendTimes) -> io::Result<()> {
    let began = Instant::now();
    for at in 0..deltas {
        sleep((began + BETWEEN * at as u32).saturating_duration_since(Instant::now()));
        let letter = char::from_u32(DELTAS + at as u32).unwrap_or(' ');
        let end = if at % DELTAS_A_LINE == DELTAS_A_LINE - 1 { "\\n" } else { " " };
        let member = if at < deltas / 2 { "reasoning_content" } else { "content" };
        event(stream, &format!(r#"{{"{member}":"{letter} word{end}"}},"finish_reason":null"#))?;
        sent.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }
    Ok(())
}

fn send_long_thinking(stream: &mut TcpStream, lines: usize) -> io::Result<()> {
    for at in 0..lines {
        event(stream, &format!(r#"{{"reasoning_content":"thought {at:06} of so many\n"}},"finish_reason":null"#))?;
    }
    let letter = char::from_u32(LAST_ANSWER).unwrap_or(' ');
    event(stream, &format!(r#"{{"content":"{letter}"}},"finish_reason":null"#))
}

fn event(stream: &mut TcpStream, delta: &str) -> io::Result<()> {
    let head =
        r#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"m-1""#;
    let data = format!("data: {head},\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    stream.write_all(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())
}
