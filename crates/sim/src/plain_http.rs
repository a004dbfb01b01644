//! A small HTTP/1.1 server with one request per connection, used when the clock is set
//! before 1970. hyper formats a date for every response and panics there, even if no date
//! header is wanted.

use std::io;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::body_stream::{BodyStep, BodyStream};
use crate::host_check::{check_host, cors_headers};
use crate::http_exchange::{HttpRequest, HttpResponse};
use crate::server::{BodyError, CountedBody, ServerState, early_response, unix_milliseconds};

pub(crate) fn is_needed() -> bool {
    SystemTime::now().duration_since(UNIX_EPOCH).is_err()
}

/// Serves one request.
pub(crate) async fn serve(mut socket: TcpStream, local: IpAddr, state: &ServerState) -> io::Result<()> {
    let mut input = RequestReader { socket: &mut socket, buffer: Vec::new() };
    let Some(head) = timeout(state.bounds.header_time, input.head(state.bounds.headers)).await?? else {
        let response = HttpResponse::refusal(431, "the headers are too long or not HTTP");
        return send(&mut socket, response).await;
    };
    let origin = check_host(&head.method, &head.headers, head.authority.as_deref(), local);
    let mut response = match early_response(origin) {
        Some(response) => response,
        None => match input.body(&head, state).await {
            Ok(body) => state.service.respond(&HttpRequest {
                method: &head.method,
                path: &head.path,
                query: &head.query,
                headers: &head.headers,
                body: &body.bytes,
                received: unix_milliseconds(),
            }),
            Err(error) => error.response(),
        },
    };
    response.headers.extend(cors_headers(&head.headers, origin));
    send(&mut socket, response).await
}

/// The request line and the headers.
#[derive(Debug, Default, PartialEq, Eq)]
struct RequestHead {
    method: String,
    authority: Option<String>,
    path: String,
    query: String,
    /// Names are in lower case.
    headers: Vec<(String, String)>,
}

impl RequestHead {
    fn parse(text: &str) -> Option<RequestHead> {
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
        Some(RequestHead { method, authority, path, query, headers })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a request and buffers bytes that were read ahead.
struct RequestReader<'a> {
    socket: &'a mut TcpStream,
    buffer: Vec<u8>,
}

impl RequestReader<'_> {
    /// Reads more bytes into the buffer; false at the end of input.
    async fn fill(&mut self) -> io::Result<bool> {
        Ok(self.socket.read_buf(&mut self.buffer).await? > 0)
    }

    /// None if the head is too long or malformed.
    async fn head(&mut self, most: usize) -> io::Result<Option<RequestHead>> {
        const END: &[u8] = b"\r\n\r\n";
        loop {
            if let Some(at) = self.buffer.windows(END.len()).position(|bytes| bytes == END) {
                let rest = self.buffer.split_off(at + END.len());
                let head = std::mem::replace(&mut self.buffer, rest);
                return Ok(RequestHead::parse(&String::from_utf8_lossy(&head)));
            }
            if self.buffer.len() > most {
                return Ok(None);
            }
            if !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn body<'h>(&mut self, head: &RequestHead, state: &'h ServerState) -> Result<CountedBody<'h>, BodyError> {
        let mut body = CountedBody::new(state);
        if head.header("transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case("chunked")) {
            loop {
                let size = self.chunk_line(state).await?;
                let size = size.split(';').next().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
                match size.ok_or(BodyError::Incomplete)? {
                    0 => return Ok(body),
                    size => self.take(size, &mut body, state).await?,
                }
                self.chunk_line(state).await?;
            }
        }
        let length = head.header("content-length").map_or(Ok(0), |length| length.parse::<usize>());
        self.take(length.map_err(|_| BodyError::Incomplete)?, &mut body, state).await?;
        Ok(body)
    }

    async fn fill_within_timeout(&mut self, state: &ServerState) -> Result<(), BodyError> {
        match timeout(state.bounds.body_time, self.fill()).await {
            Err(_) => Err(BodyError::TooSlow),
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false) | Err(_)) => Err(BodyError::Incomplete),
        }
    }

    /// One line of the chunked encoding, which is always short.
    async fn chunk_line(&mut self, state: &ServerState) -> Result<String, BodyError> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                let rest = self.buffer.split_off(at + 2);
                let line = std::mem::replace(&mut self.buffer, rest);
                return Ok(String::from_utf8_lossy(line.get(..at).unwrap_or(&[])).into_owned());
            }
            if self.buffer.len() > 1024 {
                return Err(BodyError::Incomplete);
            }
            self.fill_within_timeout(state).await?;
        }
    }

    async fn take(
        &mut self,
        mut size: usize,
        body: &mut CountedBody<'_>,
        state: &ServerState,
    ) -> Result<(), BodyError> {
        if size > state.bounds.body {
            return Err(BodyError::TooLong);
        }
        while size > 0 {
            if self.buffer.is_empty() {
                self.fill_within_timeout(state).await?;
            }
            let rest = self.buffer.split_off(size.min(self.buffer.len()));
            let piece = std::mem::replace(&mut self.buffer, rest);
            body.add(&piece, state)?;
            size -= piece.len();
        }
        Ok(())
    }
}

async fn send(socket: &mut TcpStream, response: HttpResponse) -> io::Result<()> {
    if !response.delay.is_zero() {
        tokio::time::sleep(response.delay).await;
    }
    let mut head = format!("HTTP/1.1 {} \r\nserver: aside-sim\r\nconnection: close\r\n", response.status);
    for (name, value) in &response.headers {
        // A line break in a value would inject another header.
        if !value.contains(['\r', '\n']) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let has_body = response.status != 204;
    head.push_str(if has_body { "transfer-encoding: chunked\r\n\r\n" } else { "\r\n" });
    socket.write_all(head.as_bytes()).await?;
    if has_body && !send_body(socket, response.body).await? {
        return Ok(());
    }
    socket.shutdown().await
}

/// False if the connection should be aborted.
async fn send_body(socket: &mut TcpStream, mut stream: BodyStream) -> io::Result<bool> {
    loop {
        match stream.step() {
            BodyStep::Bytes(bytes) if bytes.is_empty() => (),
            BodyStep::Bytes(bytes) => {
                socket.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
                socket.write_all(&bytes).await?;
                socket.write_all(b"\r\n").await?;
            }
            BodyStep::Wait(time) => tokio::time::sleep(time).await,
            BodyStep::Abort => return Ok(false),
            BodyStep::End => return socket.write_all(b"0\r\n\r\n").await.map(|()| true),
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
    use crate::{ScriptOptions, Service};

    /// The response to one request.
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
        let service = Service::new(Dialects::builtin().expect("they are valid"), ScriptOptions::default());
        let state = ServerState::new(service, Bounds { body: 1000, ..Bounds::default() });
        runtime.block_on(async {
            let (socket, _) = listener.accept().await.expect("a client");
            serve(socket, address.ip(), &state).await.expect("it is answered");
        });
        client.join().expect("the client ends")
    }

    #[test]
    fn requests_work_without_hyper() {
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
    fn the_same_requests_are_refused_as_with_hyper() {
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
