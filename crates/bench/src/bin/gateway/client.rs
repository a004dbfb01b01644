//! A client that sends requests over connections that stay open.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aside_core::protocol::Protocol;
use serde_json::json;

use crate::body::{Delivery, RequestText, request_body};

/// A test that hangs says so.
const MAX_SILENCE: Duration = Duration::from_secs(300);

/// One connection to the gateway.
pub(crate) struct Connection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are used up.
    used: usize,
}

/// When parts of a reply arrived, and how long it is.
#[derive(Debug, Clone, Copy)]
struct Answered {
    first: Duration,
    total: Duration,
    body_bytes: usize,
}

impl Connection {
    pub(crate) fn open(address: &str) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(MAX_SILENCE))?;
        Ok(Connection { stream, host: address.to_owned(), buffer: Vec::with_capacity(1 << 16), used: 0 })
    }

    pub(crate) fn send(&mut self, request: &RequestText) -> io::Result<()> {
        let RequestText { path, body } = request;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nauthorization: Bearer k\r\n\
             user-agent: gateway-load/1\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        self.stream.write_all(&bytes)
    }

    pub(crate) fn read_first_bytes(&mut self) -> io::Result<()> {
        let head = self.read_head()?;
        check_status(&head)?;
        while self.used == self.buffer.len() {
            self.fill()?;
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.used == self.buffer.len() {
            self.buffer.clear();
            self.used = 0;
        }
        let mut more = [0; 1 << 16];
        let n = self.stream.read(&mut more)?;
        if n == 0 {
            return Err(io::Error::other("the connection closed within a reply"));
        }
        self.buffer.extend_from_slice(more.get(..n).unwrap_or_default());
        Ok(())
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.used..).unwrap_or_default()
    }

    /// Reads up to and with `mark`.
    fn read_until(&mut self, mark: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            let at = self.unread().windows(mark.len()).position(|found| found == mark);
            if let Some(at) = at {
                let taken = self.unread().get(..at + mark.len()).unwrap_or_default().to_vec();
                self.used += taken.len();
                return Ok(taken);
            }
            self.fill()?;
        }
    }

    fn read_head(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.read_until(b"\r\n\r\n")?).to_ascii_lowercase())
    }

    fn skip(&mut self, mut n: usize) -> io::Result<()> {
        loop {
            let there = self.unread().len().min(n);
            self.used += there;
            n -= there;
            if n == 0 {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// Sends a request and reads the whole reply.
    fn exchange(&mut self, request: &RequestText) -> io::Result<Answered> {
        let began = Instant::now();
        self.send(request)?;
        let head = self.read_head()?;
        if let Err(error) = check_status(&head) {
            let body = String::from_utf8_lossy(self.unread()).into_owned();
            return Err(io::Error::other(format!("{error}: {body}")));
        }
        let first = began.elapsed();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mut body_bytes = 0;
        if header("transfer-encoding:") == Some("chunked") {
            loop {
                let line = self.read_until(b"\r\n")?;
                let digits = String::from_utf8_lossy(&line);
                let length = usize::from_str_radix(digits.trim(), 16).map_err(io::Error::other)?;
                self.skip(length + 2)?;
                if length == 0 {
                    break;
                }
                body_bytes += length;
            }
        } else {
            let length = header("content-length:").and_then(|length| length.parse().ok());
            body_bytes = length.ok_or_else(|| io::Error::other("a reply without a length"))?;
            self.skip(body_bytes)?;
        }
        Ok(Answered { first, total: began.elapsed(), body_bytes })
    }
}

fn check_status(head: &str) -> io::Result<()> {
    if head.starts_with("http/1.1 200") {
        return Ok(());
    }
    Err(io::Error::other(head.lines().next().unwrap_or_default().to_owned()))
}

/// A fixed number of equal requests.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    pub(crate) address: String,
    pub(crate) protocol: Protocol,
    pub(crate) model: String,
    pub(crate) n_requests: usize,
    pub(crate) n_connections: usize,
    pub(crate) delivery: Delivery,
    pub(crate) n_messages: usize,
}

impl Load {
    /// Sends them all, and prints the times.
    pub(crate) fn run(&self) -> io::Result<()> {
        let request = request_body(self.protocol, &self.model, self.delivery, self.n_messages);
        let left = AtomicUsize::new(self.n_requests);
        let began = Instant::now();
        let answers: io::Result<Vec<Vec<Answered>>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.n_connections).map(|_| scope.spawn(|| self.work(&request, &left))).collect();
            let failed = |_| io::Error::other("a connection panicked");
            workers.into_iter().map(|worker| worker.join().map_err(failed)?).collect()
        });
        let answers: Vec<Answered> = answers?.into_iter().flatten().collect();
        let seconds = began.elapsed().as_secs_f64();
        let times = |of: fn(&Answered) -> Duration| {
            let mut times: Vec<Duration> = answers.iter().map(of).collect();
            times.sort_unstable();
            move |part: f64| {
                let at = (times.len() as f64 * part) as usize;
                times.get(at.min(times.len().saturating_sub(1))).map(|time| time.as_secs_f64() * 1e3)
            }
        };
        let (total, first) = (times(|answer| answer.total), times(|answer| answer.first));
        let body = answers.first().map_or(0, |answer| answer.body_bytes);
        let line = json!({
            "requests": answers.len(),
            "seconds": seconds,
            "p50": total(0.5),
            "p99": total(0.99),
            "firstP50": first(0.5),
            "firstP99": first(0.99),
            "bodyBytes": body,
        });
        writeln!(io::stdout(), "{line}")
    }

    fn work(&self, request: &RequestText, left: &AtomicUsize) -> io::Result<Vec<Answered>> {
        let mut connection = Connection::open(&self.address)?;
        let mut answers = Vec::new();
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            answers.push(connection.exchange(request)?);
        }
        Ok(answers)
    }
}

/// Plays a conversation turn by turn, so that the gateway has seen every reply in it.
pub(crate) fn play_history(address: &str, protocol: Protocol, model: &str, n_messages: usize) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    for n in (1..n_messages).step_by(2) {
        connection.exchange(&request_body(protocol, model, Delivery::Whole, n))?;
    }
    Ok(())
}
