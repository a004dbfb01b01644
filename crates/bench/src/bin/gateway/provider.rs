//! A bare provider: it answers every request without understanding it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aside_bench::generate;
use aside_core::block::{Block, Reply, Text, Thinking, ThinkingContent};
use aside_core::dialect::Dialects;
use aside_core::event::{Ending, ReplyEnd, Usage};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, ReplyHead, StreamWriter, emit_reply, whole_reply};

use crate::body::{answer, thought};

/// How a request is answered, by the name of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Plan {
    Deltas { n: usize, pause: Duration },
    Idle,
    Turn { n_messages: usize },
}

/// What determines an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Asked {
    protocol: Protocol,
    is_stream: bool,
    plan: Plan,
}

/// An answer, as it is written: in one piece, or in pieces with pauses before them.
struct Answer {
    pieces: Vec<Vec<u8>>,
    pause: Option<Duration>,
    stays_open: bool,
}

struct Answers {
    dialects: Dialects,
    known: Mutex<HashMap<Asked, Arc<Answer>>>,
}

/// Serves until it is killed. Prints its address as the first line.
pub(crate) fn serve() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut out = io::stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let dialects = Dialects::builtin().map_err(|error| io::Error::other(error.to_string()))?;
    let answers = Arc::new(Answers { dialects, known: Mutex::default() });
    for stream in listener.incoming() {
        let (stream, answers) = (stream?, Arc::clone(&answers));
        // A client may disconnect at any time.
        std::thread::Builder::new().stack_size(256 << 10).spawn(move || drop(serve_connection(stream, &answers)))?;
    }
    Ok(())
}

fn serve_connection(mut stream: TcpStream, answers: &Answers) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    let mut buffer = vec![0; 1 << 14];
    loop {
        while let Some((asked, length)) = read_request(&received) {
            received.drain(..length);
            let answer = answers.of(asked?);
            for piece in &answer.pieces {
                if let Some(pause) = answer.pause {
                    std::thread::sleep(pause);
                }
                stream.write_all(piece)?;
            }
            if answer.stays_open {
                // Until the client closes it.
                while stream.read(&mut buffer)? > 0 {}
                return Ok(());
            }
        }
        let n = stream.read(&mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        received.extend_from_slice(buffer.get(..n).unwrap_or_default());
    }
}

/// The first request in the bytes and its length. None if it is not complete.
fn read_request(received: &[u8]) -> Option<(io::Result<Asked>, usize)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(received.get(..end)?);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let body = received.get(end..end + length.unwrap_or(0))?;
    let path = head.split(' ').nth(1).unwrap_or_default();
    Some((asked(path, &String::from_utf8_lossy(body)), end + body.len()))
}

fn asked(path: &str, body: &str) -> io::Result<Asked> {
    let unknown = |what: &str| io::Error::other(format!("unknown {what}: {path}"));
    let protocol = match path.split('?').next().unwrap_or_default() {
        path if path.ends_with("/chat/completions") => Protocol::OpenaiChat,
        path if path.ends_with("/responses") => Protocol::OpenaiResponses,
        path if path.ends_with("/v1/messages") => Protocol::Anthropic,
        path if path.contains(":streamGenerateContent") || path.contains(":generateContent") => Protocol::Gemini,
        path if path.ends_with("/api/chat") => Protocol::Ollama,
        _ => return Err(unknown("path")),
    };
    let after = |text: &str, mark: &str| text.split_once(mark).map(|(_, rest)| rest.to_owned());
    let model = match protocol {
        Protocol::Gemini => after(path, "/models/").and_then(|rest| rest.split(':').next().map(str::to_owned)),
        _ => after(body, "\"model\":\"").and_then(|rest| rest.split('"').next().map(str::to_owned)),
    };
    let model = model.ok_or_else(|| unknown("model"))?;
    let is_stream = body.contains("\"stream\":true") || path.contains(":streamGenerateContent");
    let plan = match model.as_str() {
        "idle" => Plan::Idle,
        "turn" => {
            let roles = if protocol == Protocol::Gemini { "\"parts\":" } else { "\"role\":" };
            Plan::Turn { n_messages: body.matches(roles).count() }
        }
        name => {
            let (n, pause) = name
                .strip_prefix('d')
                .map(|rest| rest.split_once('p').unwrap_or((rest, "0")))
                .ok_or_else(|| unknown("model"))?;
            let number = |text: &str| text.parse::<u64>().map_err(|_| unknown("model"));
            let n = usize::try_from(number(n)?).map_err(io::Error::other)?;
            Plan::Deltas { n, pause: Duration::from_micros(number(pause)?) }
        }
    };
    Ok(Asked { protocol, is_stream, plan })
}

impl Answers {
    fn of(&self, asked: Asked) -> Arc<Answer> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(asked).or_insert_with(|| Arc::new(self.make(asked))))
    }

    fn make(&self, asked: Asked) -> Answer {
        let Asked { protocol, is_stream, plan } = asked;
        let body = match plan {
            Plan::Deltas { n, .. } => generate::stream(protocol, n),
            Plan::Idle => generate::stream(protocol, 2),
            Plan::Turn { n_messages } => self.stream_of(protocol, &turn(n_messages)),
        };
        if !is_stream {
            let whole = self.whole(protocol, &body);
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", whole.len());
            return Answer { pieces: vec![(head + &whole).into_bytes()], pause: None, stays_open: false };
        }
        let is_lines = protocol == Protocol::Ollama;
        let kind = if is_lines { "application/x-ndjson" } else { "text/event-stream" };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut pieces = vec![head.into_bytes()];
        pieces.extend(frames(&body, if is_lines { b"\n" } else { b"\n\n" }).map(chunk));
        pieces.push(b"0\r\n\r\n".to_vec());
        match plan {
            Plan::Idle => {
                pieces.truncate(3);
                Answer { pieces: vec![pieces.concat()], pause: None, stays_open: true }
            }
            Plan::Deltas { pause, .. } if !pause.is_zero() => Answer { pieces, pause: Some(pause), stays_open: false },
            Plan::Deltas { .. } | Plan::Turn { .. } => {
                Answer { pieces: vec![pieces.concat()], pause: None, stays_open: false }
            }
        }
    }

    fn stream_of(&self, protocol: Protocol, reply: &Reply) -> Vec<u8> {
        let Some(dialect) = self.dialects.generic(protocol) else { return Vec::new() };
        let head = ReplyHead::new("r1", "m", 0);
        let mut writer = StreamWriter::new(protocol, dialect.rules(None), &head);
        emit_reply(reply, &mut writer);
        writer.drain()
    }

    /// The same reply in one body.
    fn whole(&self, protocol: Protocol, stream: &[u8]) -> String {
        let Some(dialect) = self.dialects.generic(protocol) else { return String::new() };
        let rules = dialect.rules(None);
        let (mut decoder, mut fold) = (Decoder::new(protocol, rules), Fold::new());
        decoder.push(stream, &mut fold);
        // The stream is our own.
        let _read = decoder.finish(&mut fold);
        let head = ReplyHead::new("r1", "m", 0);
        whole_reply(protocol, rules, &head, &fold.finish())
    }
}

fn turn(n_messages: usize) -> Reply {
    let thinking = Thinking {
        content: ThinkingContent::Open { text: thought(n_messages) },
        source: "reasoning_content".to_owned(),
        id: None,
        items: Vec::new(),
        span: None,
        native: None,
        extra: Default::default(),
    };
    let text = Text { text: answer(n_messages), ..Text::default() };
    Reply {
        blocks: vec![Block::Thinking(thinking), Block::Text(text)],
        usage: Usage::default().with_input(11).with_output(22),
        end: ReplyEnd { ending: Ending::Stop, error: None },
        ..Reply::default()
    }
}

/// The frames of a stream, each with its separator.
fn frames<'a>(body: &'a [u8], separator: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = body;
    std::iter::from_fn(move || {
        let length = rest.windows(separator.len()).position(|found| found == separator).map(|at| at + separator.len());
        let (frame, after) = rest.split_at_checked(length.unwrap_or(rest.len()))?;
        rest = after;
        (!frame.is_empty()).then_some(frame)
    })
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
