//! A small HTTP/1.1 server, one request a connection: for a clock that stands
//! before 1970. hyper writes a date into what it sends and panics there, even if
//! no date is wanted.

use std::io;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access::{access, cors};
use crate::server::{Counted, House, Unread, refused};
use crate::stage::{Answer, Asked};
use crate::stream::{Next, Stream};

pub(crate) fn is_needed() -> bool {
    SystemTime::now().duration_since(UNIX_EPOCH).is_err()
}

/// Serves one request.
pub(crate) async fn serve(mut socket: TcpStream, local: IpAddr, house: &House) -> io::Result<()> {
    let mut input = Input { socket: &mut socket, held: Vec::new() };
    let Some(head) = timeout(house.bounds.header_time, input.head(house.bounds.headers)).await?? else {
        let answer = Answer::refused(431, "the headers are too long, or no HTTP");
        return send(&mut socket, answer).await;
    };
    let access = access(&head.method, &head.headers, head.authority.as_deref(), local);
    let mut answer = match refused(access) {
        Some(answer) => answer,
        None => match input.body(&head, house).await {
            Ok(body) => house.stage.answer(&Asked {
                method: &head.method,
                path: &head.path,
                query: &head.query,
                headers: &head.headers,
                body: &body.bytes,
            }),
            Err(unread) => unread.answer(),
        },
    };
    answer.headers.extend(cors(&head.headers, access));
    send(&mut socket, answer).await
}

/// The first lines of a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    method: String,
    authority: Option<String>,
    path: String,
    query: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

impl Head {
    fn parse(text: &str) -> Option<Head> {
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        let (authority, target) = match target.strip_prefix("http://") {
            Some(rest) => {
                let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(host.to_owned()), path)
            }
            None => (None, target),
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter(|line| !line.is_empty()).map(header).collect::<Option<_>>()?;
        let [method, path, query] = [method, path, query].map(str::to_owned);
        Some(Head { method, authority, path, query, headers })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What a client sends, with what was read too far.
struct Input<'a> {
    socket: &'a mut TcpStream,
    held: Vec<u8>,
}

impl Input<'_> {
    /// More bytes into what is held; false at the end.
    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.socket.read_buf(&mut self.held).await? > 0)
    }

    /// None where it is too long or no head.
    async fn head(&mut self, most: usize) -> io::Result<Option<Head>> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            if let Some(at) = self.held.windows(END.len()).position(|bytes| bytes == END) {
                let rest = self.held.split_off(at + END.len());
                let head = std::mem::replace(&mut self.held, rest);
                return Ok(Head::parse(&String::from_utf8_lossy(&head)));
            }
            if self.held.len() > most {
                return Ok(None);
            }
            if !self.more().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn body<'h>(&mut self, head: &Head, house: &'h House) -> Result<Counted<'h>, Unread> {
        let mut body = Counted::new(house);
        if head.header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
            loop {
                let size = self.line(house).await?;
                let size = size.split(';').next().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
                match size.ok_or(Unread::BrokenOff)? {
                    0 => return Ok(body),
                    size => self.take(size, &mut body, house).await?,
                }
                self.line(house).await?;
            }
        }
        let length = head.header("content-length").map_or(Ok(0), |length| length.parse::<usize>());
        self.take(length.map_err(|_| Unread::BrokenOff)?, &mut body, house).await?;
        Ok(body)
    }

    async fn wait(&mut self, house: &House) -> Result<(), Unread> {
        match timeout(house.bounds.body_time, self.more()).await {
            Err(_) => Err(Unread::TooSlow),
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false) | Err(_)) => Err(Unread::BrokenOff),
        }
    }

    /// A line of a chunked body, which is short.
    async fn line(&mut self, house: &House) -> Result<String, Unread> {
        loop {
            if let Some(at) = self.held.windows(2).position(|bytes| bytes == b"\r\n") {
                let rest = self.held.split_off(at + 2);
                let line = std::mem::replace(&mut self.held, rest);
                return Ok(String::from_utf8_lossy(line.get(..at).unwrap_or(&[])).into_owned());
            }
            if self.held.len() > 1024 {
                return Err(Unread::BrokenOff);
            }
            self.wait(house).await?;
        }
    }

    async fn take(&mut self, mut size: usize, body: &mut Counted<'_>, house: &House) -> Result<(), Unread> {
        if size > house.bounds.body {
            return Err(Unread::TooLong);
        }
        while size > 0 {
            if self.held.is_empty() {
                self.wait(house).await?;
            }
            let rest = self.held.split_off(size.min(self.held.len()));
            let piece = std::mem::replace(&mut self.held, rest);
            body.add(&piece, house)?;
            size -= piece.len();
        }
        Ok(())
    }
}

async fn send(socket: &mut TcpStream, answer: Answer) -> io::Result<()> {
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    let mut head = format!("HTTP/1.1 {} \r\nserver: aside-sim\r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        // A line break in a value would be another header.
        if !value.contains(['\r', '\n']) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let has_body = answer.status != 204;
    head.push_str(if has_body { "transfer-encoding: chunked\r\n\r\n" } else { "\r\n" });
    socket.write_all(head.as_bytes()).await?;
    if has_body && !send_body(socket, answer.body).await? {
        return Ok(());
    }
    socket.shutdown().await
}

/// False where the connection is to break.
async fn send_body(socket: &mut TcpStream, mut stream: Stream) -> io::Result<bool> {
    loop {
        match stream.step() {
            Next::Bytes(bytes) if bytes.is_empty() => (),
            Next::Bytes(bytes) => {
                socket.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
                socket.write_all(&bytes).await?;
                socket.write_all(b"\r\n").await?;
            }
            Next::Wait(time) => tokio::time::sleep(time).await,
            Next::Abort => return Ok(false),
            Next::End => return socket.write_all(b"0\r\n\r\n").await.map(|()| true),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use aside_core::dialect::Dialects;
    use tokio::net::TcpListener;

    use super::*;
    use crate::server::Bounds;
    use crate::{Options, Stage};

    /// What one request is answered with.
    fn exchange(request: &str) -> String {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let request = request.to_owned();
        let client = std::thread::spawn(move || {
            let mut socket = std::net::TcpStream::connect(address).expect("a connection");
            socket.write_all(request.as_bytes()).expect("it is read");
            let mut answer = String::new();
            socket.read_to_string(&mut answer).expect("an answer");
            answer
        });
        let stage = Stage::new(Dialects::builtin().expect("they are valid"), Options::default());
        let house = House::new(stage, Bounds { body: 1000, ..Bounds::default() });
        runtime.block_on(async {
            let (socket, _) = listener.accept().await.expect("a client");
            serve(socket, address.ip(), &house).await.expect("it is answered");
        });
        client.join().expect("the client ends")
    }

    #[test]
    fn a_request_is_answered_whatever_the_clock_says() {
        let body = r#"{"model":"deepseek","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
        let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";
        let whole = exchange(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        assert!(whole.starts_with("HTTP/1.1 200 ") && whole.contains("[DONE]"), "{whole}");
        let (first, second) = body.split_at(20);
        let pieces = format!("14\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", second.len());
        let chunked = exchange(&format!("{head}Transfer-Encoding: chunked\r\n\r\n{pieces}"));
        assert_eq!(chunked, whole);
    }

    #[test]
    fn the_same_is_refused_as_elsewhere() {
        #[rustfmt::skip]
        let cases = [
            ("another host",   "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",                                         "421"),
            ("another page",   "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n",           "403"),
            ("too long",       "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n", "413"),
            ("no HTTP",        "hello\r\n\r\n",                                                                       "431"),
            ("nothing there",  "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",                                    "404"),
        ];
        for (name, request, status) in cases {
            let answer = exchange(request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
            assert!(answer.contains("{\"error\":"), "{name}: {answer}");
        }
    }
}
