//! Sends requests and receives replies.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::settings::Settings;
use aside_core::wire::HttpCall;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response, Url};

use crate::connection_failure::{self, SystemResolver};
use crate::exchange::pause_in_body;
use crate::joined_bytes::JoinedBytes;

/// How much of a refusal's body is read.
const MAX_REFUSAL: usize = 1 << 20;

/// How long a refusal's body is read.
const MAX_REFUSAL_TIME: Duration = Duration::from_secs(10);

/// At most this many bytes of a reply are returned together.
const MAX_TOGETHER: usize = 64 << 10;

/// How many times the connection's task gets a turn to read more before the bytes so far are returned. On a busy machine
/// each turn may take long enough for the next chunk to arrive.
const MAX_TURNS: u32 = 16;

/// How many URLs are kept, and how long one may be. Clients choose the paths of some.
const MAX_KNOWN_URLS: usize = 64;
const MAX_KNOWN_URL_BYTES: usize = 512;

/// A time limit that is never reached.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    pub connect: Duration,
    /// Between two chunks of a reply. Models can think silently for minutes.
    pub idle: Duration,
    /// For a request and its whole reply.
    pub total: Duration,
}

impl Timeouts {
    /// What the user set.
    pub fn of(settings: &Settings) -> Timeouts {
        let duration = |seconds: Option<f64>| {
            seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .map_or(FOREVER, |time| time.min(FOREVER))
        };
        Timeouts {
            connect: duration(settings.connect_seconds()),
            idle: duration(settings.idle_seconds()),
            total: duration(settings.total_seconds()),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { connect: Duration::from_secs(10), idle: Duration::from_secs(300), total: FOREVER }
    }
}

/// A response with a status other than 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRefusal {
    pub status: u16,
    pub retry_after: Option<Duration>,
    /// Whether the provider asks for a retry.
    pub should_retry: Option<bool>,
    /// As received: it may repeat a key.
    pub body: Vec<u8>,
    pub content_type: Option<String>,
}

/// A request that cannot be sent as it is configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCall {
    #[error("`{0}` is not a URL; check the provider's base_url")]
    BadUrl(String),
    #[error("the header `{0}` cannot be sent; check the provider's headers and key")]
    BadHeader(String),
    #[error("no HTTP client could be made: {0}")]
    NoClient(String),
    #[error("the provider's key has expired and no new one could be obtained: {0}")]
    NoKey(String),
}

/// Why a request got no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error(transparent)]
    Invalid(#[from] InvalidCall),
    #[error("the provider answered with status {}", .0.status)]
    Refused(Box<HttpRefusal>),
    #[error(transparent)]
    Unreachable(#[from] ConnectionError),
}

/// A request that can be sent any number of times. Its body is shared.
#[derive(Debug, Clone)]
pub struct PreparedCall {
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl PreparedCall {
    pub fn new(call: &HttpCall) -> Result<PreparedCall, InvalidCall> {
        let body = shared_body(&call.body);
        Ok(PreparedCall { url: parse_url(&call.url)?, headers: headers(&call.headers)?, body })
    }
}

/// The bytes of a text, shared instead of copied.
pub fn shared_body(text: &Arc<String>) -> Bytes {
    Bytes::from_owner(SharedBody(Arc::clone(text)))
}

struct SharedBody(Arc<String>);

impl AsRef<[u8]> for SharedBody {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The HTTP clients of a process, created when first needed. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Http {
    timeouts: Timeouts,
    clients: Arc<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    /// For `http:` URLs. Loading the system's certificates would take longer than the request.
    plain: OnceLock<Client>,
    secure: OnceLock<Client>,
    /// The URLs of forwarded requests. Parsing one takes as long as writing a request's headers.
    urls: Mutex<HashMap<String, Url>>,
}

impl Http {
    pub fn new(timeouts: Timeouts) -> Http {
        Http { timeouts, ..Http::default() }
    }

    /// Sends a request and waits for the response headers.
    pub async fn post(&self, call: &PreparedCall) -> Result<HttpReply, CallError> {
        let request = self.client(&call.url)?.post(call.url.clone()).headers(call.headers.clone());
        self.send(&call.url, request.body(call.body.clone())).await
    }

    /// For quick queries of servers that may not exist.
    pub async fn get(&self, url: &str, headers: &[(String, String)]) -> Result<HttpReply, CallError> {
        let url = parse_url(url)?;
        let request = self.client(&url)?.get(url.clone()).headers(self::headers(headers)?);
        self.send(&url, request).await
    }

    /// Passes a request on. A reply with any status is a reply.
    pub async fn forward(&self, request: ForwardedRequest<'_>) -> Result<HttpReply, CallError> {
        let url = self.known_url(request.url)?;
        let method = reqwest::Method::from_bytes(request.method.as_bytes());
        let method = method.map_err(|_| InvalidCall::BadHeader(request.method.to_owned()))?;
        let built = self.client(&url)?.request(method, url.clone()).headers(headers(request.headers)?);
        self.reply(&url, built.body(request.body)).await
    }

    /// The parsed URL, which most requests share with earlier ones.
    fn known_url(&self, text: &str) -> Result<Url, InvalidCall> {
        let mut urls = self.clients.urls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(url) = urls.get(text) {
            return Ok(url.clone());
        }
        let url = parse_url(text)?;
        if urls.len() == MAX_KNOWN_URLS {
            urls.clear();
        }
        if text.len() <= MAX_KNOWN_URL_BYTES {
            urls.insert(text.to_owned(), url.clone());
        }
        Ok(url)
    }

    async fn send(&self, url: &Url, request: reqwest::RequestBuilder) -> Result<HttpReply, CallError> {
        let reply = self.reply(url, request).await?;
        if reply.status() == reqwest::StatusCode::OK {
            return Ok(reply);
        }
        Err(CallError::Refused(Box::new(reply.into_refusal().await)))
    }

    async fn reply(&self, url: &Url, request: reqwest::RequestBuilder) -> Result<HttpReply, CallError> {
        let began = Instant::now();
        // The client's own limit would set a timer for every chunk of the reply.
        let response = match tokio::time::timeout(self.timeouts.idle, request.send()).await {
            Ok(sent) => sent.map_err(|error| self.unreachable(url, &error, began))?,
            Err(_) => return Err(self.silent(url, began).into()),
        };
        Ok(HttpReply { url: url.clone(), response, began, arrived: JoinedBytes::default(), ended: None })
    }

    fn client(&self, url: &Url) -> Result<&Client, InvalidCall> {
        let is_secure = url.scheme() == "https";
        let cell = if is_secure { &self.clients.secure } else { &self.clients.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = self.build_client(is_secure)?;
        Ok(cell.get_or_init(|| client))
    }

    fn build_client(&self, is_secure: bool) -> Result<Client, InvalidCall> {
        // Fails if a provider is already installed, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder()
            .connect_timeout(self.timeouts.connect)
            // A redirect would send the key to another host.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .dns_resolver(SystemResolver)
            .user_agent(concat!("aside/", env!("CARGO_PKG_VERSION")));
        let builder = if self.timeouts.total < FOREVER { builder.timeout(self.timeouts.total) } else { builder };
        let builder = if is_secure { builder } else { builder.tls_certs_only(std::iter::empty()) };
        builder.build().map_err(|error| InvalidCall::NoClient(root_cause(&error)))
    }

    fn unreachable(&self, url: &Url, error: &reqwest::Error, began: Instant) -> ConnectionError {
        let failure = connection_failure::of(error);
        if failure == ConnectionFailure::IdleTimeout {
            return self.silent(url, began);
        }
        let host = host_and_port(url);
        if error.is_connect()
            && let Some(proxy) = connection_failure::proxy_in_the_way(url, failure)
        {
            let cause = if failure == ConnectionFailure::ConnectTimeout {
                format!("no connection within {} s", self.timeouts.connect.as_secs())
            } else {
                root_cause(error)
            };
            return ConnectionError::new(
                ConnectionFailure::Proxy,
                format!("{host} cannot be reached through the proxy {proxy}: {cause}"),
            );
        }
        let what = match failure {
            ConnectionFailure::ConnectTimeout => {
                format!("no connection to {host} within {} s", self.timeouts.connect.as_secs())
            }
            ConnectionFailure::UnknownAuthority => {
                format!("{host} cannot be trusted: an unknown authority issued its certificate")
            }
            ConnectionFailure::SelfSigned => {
                format!("{host} cannot be trusted: its certificate is self-signed, and an authority's, not a server's")
            }
            ConnectionFailure::IdleTimeout
            | ConnectionFailure::TotalTimeout
            | ConnectionFailure::InvalidRequest
            | ConnectionFailure::Dns
            | ConnectionFailure::Refused
            | ConnectionFailure::Proxy
            | ConnectionFailure::Tls
            | ConnectionFailure::Closed
            | ConnectionFailure::Unreadable
            | ConnectionFailure::Other => format!("{host} cannot be reached: {}", root_cause(error)),
        };
        ConnectionError::new(failure, what)
    }

    /// The error for a provider that sent nothing for too long, or did not finish in time.
    fn silent(&self, url: &Url, began: Instant) -> ConnectionError {
        let host = host_and_port(url);
        if began.elapsed() >= self.timeouts.total {
            let what = format!("the reply of {host} was not complete after {} s", self.timeouts.total.as_secs());
            return ConnectionError::new(ConnectionFailure::TotalTimeout, what);
        }
        let what = format!("{host} was silent for {} s", self.timeouts.idle.as_secs());
        ConnectionError::new(ConnectionFailure::IdleTimeout, what)
    }

    /// The error for a reply that had begun.
    fn reply_interrupted(&self, url: &Url, error: &reqwest::Error, began: Instant) -> ConnectionError {
        if error.is_timeout() {
            return self.unreachable(url, error, began);
        }
        let what = format!(
            "the connection to {} was lost before the response was complete ({})",
            host_and_port(url),
            root_cause(error)
        );
        ConnectionError::new(connection_failure::of(error), what)
    }
}

/// The path of a URL as a request for it has it, which may differ from how the URL is written.
pub fn sent_path(url: &str) -> Result<String, InvalidCall> {
    parse_url(url).map(|url| url.path().to_owned())
}

fn parse_url(url: &str) -> Result<Url, InvalidCall> {
    Url::parse(url).map_err(|_| InvalidCall::BadUrl(url.to_owned()))
}

/// The host and port of a URL, without any secrets it may contain.
fn host_and_port(url: &Url) -> String {
    match (url.host_str(), url.port_or_known_default()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => url.to_string(),
    }
}

/// A request of a client, to be passed on.
#[derive(Debug, Clone)]
pub struct ForwardedRequest<'a> {
    pub method: &'a str,
    pub url: &'a str,
    pub headers: &'a [(String, String)],
    pub body: Bytes,
}

/// A reply whose headers have arrived.
#[derive(Debug)]
pub struct HttpReply {
    url: Url,
    response: Response,
    /// When its request was sent.
    began: Instant,
    /// Bytes that are to be returned together with those that arrive at the same time.
    arrived: JoinedBytes,
    /// Set at the end, which is reported after the last bytes.
    ended: Option<Result<(), ConnectionError>>,
}

impl HttpReply {
    /// The next bytes; `None` at the end. What arrived together is returned together, however many chunks it was
    /// sent in: every return wakes tasks and writes to a socket. If the returned future is dropped, no bytes are lost.
    pub async fn next_bytes(&mut self, http: &Http) -> Result<Option<Bytes>, ConnectionError> {
        // The connection's task has one chunk ready at a time, so it gets a turn to read the next one.
        let mut had_turn = false;
        let mut n_turns = 0;
        while self.ended.is_none() && self.arrived.len() < MAX_TOGETHER {
            let chunk = match self.arrived.len() {
                0 => match tokio::time::timeout(http.timeouts.idle, self.response.chunk()).await {
                    Ok(chunk) => chunk,
                    Err(_) => {
                        self.ended = Some(Err(http.silent(&self.url, self.began)));
                        break;
                    }
                },
                _ => match self.ready_chunk() {
                    Poll::Ready(chunk) => chunk,
                    Poll::Pending if had_turn || n_turns == MAX_TURNS => break,
                    Poll::Pending => {
                        had_turn = true;
                        n_turns += 1;
                        give_others_a_turn().await;
                        continue;
                    }
                },
            };
            had_turn = false;
            match chunk {
                Ok(Some(bytes)) => self.arrived.add(bytes),
                Ok(None) => self.ended = Some(Ok(())),
                Err(error) => self.ended = Some(Err(http.reply_interrupted(&self.url, &error, self.began))),
            }
        }
        match (self.arrived.take_up_to(MAX_TOGETHER), &self.ended) {
            (Some(bytes), _) => Ok(Some(bytes)),
            (None, Some(Err(error))) => Err(error.clone()),
            (None, Some(Ok(())) | None) => Ok(None),
        }
    }

    /// The next chunk if it has arrived already.
    fn ready_chunk(&mut self) -> Poll<reqwest::Result<Option<Bytes>>> {
        let mut context = Context::from_waker(Waker::noop());
        std::pin::pin!(self.response.chunk()).poll(&mut context)
    }

    /// Frees the headers. They keep the whole buffer that they were read into.
    pub fn forget_headers(&mut self) {
        *self.response.headers_mut() = HeaderMap::new();
    }

    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The headers as received, names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.response.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    /// Reads the body of a refusal, up to limits of size and time.
    pub async fn into_refusal(self) -> HttpRefusal {
        refusal(self.response, MAX_REFUSAL_TIME).await
    }

    pub fn content_type(&self) -> Option<&str> {
        self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }
}

/// Lets every task run that is ready. Unlike `yield_now` it does not look for new events first, which is a system call.
async fn give_others_a_turn() {
    let mut had_turn = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut had_turn, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn refusal(mut response: Response, max_time: Duration) -> HttpRefusal {
    let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let content_type = text(CONTENT_TYPE);
    let millis = text(HeaderName::from_static("retry-after-ms")).and_then(|text| text.trim().parse().ok());
    let seconds = text(RETRY_AFTER).and_then(|text| text.trim().parse::<f64>().ok());
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let should_retry = text(HeaderName::from_static("x-should-retry"));
    let should_retry = should_retry.and_then(|text| text.trim().parse().ok());
    let status = response.status().as_u16();
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_REFUSAL {
                break;
            }
        }
    };
    // A partial body is good enough for an error message.
    let _too_slow = tokio::time::timeout(max_time, read).await;
    let in_headers = millis.map(Duration::from_millis).or(seconds);
    let retry_after = in_headers.or_else(|| pause_in_body(&body));
    HttpRefusal { status, retry_after, should_retry, body, content_type }
}

fn headers(pairs: &[(String, String)]) -> Result<HeaderMap, InvalidCall> {
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        // The value may be a key, so report only the name.
        let bad = || InvalidCall::BadHeader(name.clone());
        let value = HeaderValue::from_str(value).map_err(|_| bad())?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    Ok(headers)
}

/// The innermost error has the details; the outer ones only say that something failed.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn the_body_of_a_refusal_that_does_not_end_is_read_for_a_bounded_time() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let server = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut bytes = [0; 4096];
            let _n = socket.read(&mut bytes).await;
            let answer = "HTTP/1.1 400 No\r\ncontent-length: 1000000\r\n\r\n{\"error\":\"slow";
            socket.write_all(answer.as_bytes()).await.expect("a client");
            // The rest never comes; the client closes the connection.
            while socket.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
        });
        let http = Http::default();
        let request = ForwardedRequest { method: "GET", url: &url, headers: &[], body: Bytes::new() };
        let reply = http.forward(request).await.expect("headers");
        let refusal = refusal(reply.response, Duration::from_millis(300)).await;
        assert_eq!((refusal.status, refusal.body.as_slice()), (400, &b"{\"error\":\"slow"[..]));
        server.await.expect("no panic");
    }

    /// Serves one reply in chunks, all of which are sent at once.
    async fn reply_in_chunks(chunks: &[&str]) -> (Http, HttpReply) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let body: String = chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut bytes = [0; 4096];
            let _n = socket.read(&mut bytes).await;
            let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{body}0\r\n\r\n");
            socket.write_all(answer.as_bytes()).await.expect("a client");
        });
        let http = Http::default();
        let request = ForwardedRequest { method: "GET", url: &url, headers: &[], body: Bytes::new() };
        let reply = http.forward(request).await.expect("headers");
        (http, reply)
    }

    #[tokio::test]
    async fn chunks_that_arrive_together_are_returned_together() {
        let (http, mut reply) = reply_in_chunks(&["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"]).await;
        let bytes = reply.next_bytes(&http).await.expect("bytes").expect("bytes");
        assert_eq!(bytes, "data: 1\n\ndata: 2\n\ndata: 3\n\n");
        assert_eq!(reply.next_bytes(&http).await.expect("the end"), None);
        assert_eq!(reply.next_bytes(&http).await.expect("the end"), None, "and it stays the end");
    }

    #[tokio::test]
    async fn no_bytes_are_lost_when_waiting_for_them_is_given_up() {
        let chunks: Vec<String> = (0..50).map(|n| format!("{n},")).collect();
        let (http, mut reply) = reply_in_chunks(&chunks.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let mut received = Vec::new();
        loop {
            // Polled once and dropped, which happens when a keep-alive is due at that moment.
            let polled = {
                let mut next = std::pin::pin!(reply.next_bytes(&http));
                std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await
            };
            let next = match polled {
                Poll::Ready(next) => next,
                Poll::Pending => {
                    tokio::task::yield_now().await;
                    reply.next_bytes(&http).await
                }
            };
            match next.expect("bytes") {
                Some(bytes) => received.extend_from_slice(&bytes),
                None => break,
            }
        }
        assert_eq!(String::from_utf8(received).expect("text"), chunks.concat());
    }
}
