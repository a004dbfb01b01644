//! A small, fast server that answers every request with the same stream, so that the
//! cost of the server does not hide the cost of the client.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

/// The size of one write.
const WRITE: usize = 1 << 16;

/// Serves until it is killed. Prints its address as the first line.
pub fn serve(body: &[u8]) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = io::stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let answer = chunked(body);
    for stream in listener.incoming() {
        // A client may disconnect at any time.
        drop(stream.and_then(|stream| answer_one(stream, &answer)));
    }
    Ok(())
}

fn answer_one(mut stream: TcpStream, answer: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&mut stream)?;
    for piece in answer.chunks(WRITE) {
        stream.write_all(piece)?;
    }
    Ok(())
}

/// Reads a request to its end and ignores its content.
pub fn read_request(stream: &mut TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while !is_whole(&request) {
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(buffer.get(..n).unwrap_or_default());
    }
    Ok(())
}

fn is_whole(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(request.get(..end).unwrap_or_default());
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    request.len() >= end + 4 + length.unwrap_or(0)
}

/// One chunk per event, as providers send them.
fn chunked(body: &[u8]) -> Vec<u8> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let mut out = head.as_bytes().to_vec();
    let mut start = 0;
    while let Some(rest) = body.get(start..).filter(|rest| !rest.is_empty()) {
        let length = rest.windows(2).position(|pair| pair == b"\n\n").map_or(rest.len(), |at| at + 2);
        out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        out.extend_from_slice(rest.get(..length).unwrap_or_default());
        out.extend_from_slice(b"\r\n");
        start += length;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}
