//! Requests out, bytes in.

use std::cell::OnceCell;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aside_core::wire::Call;
use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Response};

/// How much of a refusal is read.
const MOST_REFUSAL: usize = 1 << 20;

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    pub connect: Duration,
    /// Between two pieces of an answer. Models think silently for minutes.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { connect: Duration::from_secs(20), idle: Duration::from_secs(600) }
    }
}

/// An answer that is not 200.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: u16,
    pub retry_after: Option<Duration>,
    /// The provider's own word on sending again.
    pub should_retry: Option<bool>,
    pub body: Vec<u8>,
    pub content_type: Option<String>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("`{0}` is not a URL; check the provider's base_url")]
    BadUrl(String),
    #[error("the header `{0}` cannot be sent; check the provider's headers and key")]
    BadHeader(String),
    #[error("no HTTP client could be made: {0}")]
    NoClient(String),
    #[error("the provider answered with status {}", .0.status)]
    Refused(Box<Refusal>),
    /// The way there or back failed.
    #[error("{what}")]
    Unreachable { what: String, passes: bool },
}

/// A body that is sent without a copy of it.
struct Shared(Arc<String>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The HTTP clients of a process, made when they are first needed.
#[derive(Debug, Default)]
pub struct Http {
    timeouts: Timeouts,
    /// For `http:`; reading the system's certificates would cost more than the call.
    plain: OnceCell<Client>,
    secure: OnceCell<Client>,
}

impl Http {
    pub fn new(timeouts: Timeouts) -> Http {
        Http { timeouts, ..Http::default() }
    }

    /// Sends, and waits until the answer begins.
    pub async fn post(&self, call: &Call) -> Result<Answer, CallError> {
        let request = self.client(&call.url)?.post(&call.url).headers(headers(&call.headers)?);
        let request = request.body(Bytes::from_owner(Shared(Arc::clone(&call.body))));
        self.send(&call.url, request).await
    }

    /// A short question to a server that may not be there.
    pub async fn get(&self, url: &str, headers: &[(String, String)]) -> Result<Answer, CallError> {
        let request = self.client(url)?.get(url).headers(self::headers(headers)?);
        self.send(url, request).await
    }

    async fn send(&self, url: &str, request: reqwest::RequestBuilder) -> Result<Answer, CallError> {
        let response = request.send().await.map_err(|error| self.unreachable(url, &error))?;
        if response.status() == reqwest::StatusCode::OK {
            return Ok(Answer { url: url.to_owned(), response });
        }
        Err(CallError::Refused(Box::new(refusal(response).await)))
    }

    fn client(&self, url: &str) -> Result<&Client, CallError> {
        let url = reqwest::Url::parse(url).map_err(|_| CallError::BadUrl(url.to_owned()))?;
        let is_secure = url.scheme() == "https";
        let cell = if is_secure { &self.secure } else { &self.plain };
        if let Some(client) = cell.get() {
            return Ok(client);
        }
        let client = self.make(is_secure)?;
        Ok(cell.get_or_init(|| client))
    }

    fn make(&self, is_secure: bool) -> Result<Client, CallError> {
        // A second call is refused, which is all right: there is one already.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = Client::builder()
            .connect_timeout(self.timeouts.connect)
            .read_timeout(self.timeouts.idle)
            // A redirect would carry the key to somebody else.
            .redirect(reqwest::redirect::Policy::none())
            .tcp_nodelay(true)
            .user_agent(concat!("aside/", env!("CARGO_PKG_VERSION")));
        let builder = if is_secure { builder } else { builder.tls_certs_only(std::iter::empty()) };
        builder.build().map_err(|error| CallError::NoClient(story(&error)))
    }

    fn unreachable(&self, url: &str, error: &reqwest::Error) -> CallError {
        let host = host(url);
        let story = story(error);
        // Nobody listens there; asking again will not change that.
        let refused = story.contains("refused");
        let what = if error.is_connect() && error.is_timeout() {
            format!("no connection to {host} within {} s", self.timeouts.connect.as_secs())
        } else if error.is_timeout() {
            format!("{host} was silent for {} s", self.timeouts.idle.as_secs())
        } else {
            format!("{host} cannot be reached: {story}")
        };
        CallError::Unreachable { what, passes: !refused && !error.is_timeout() }
    }

    /// The same for an answer that had begun.
    fn broken_off(&self, url: &str, error: &reqwest::Error) -> CallError {
        if error.is_timeout() {
            return self.unreachable(url, error);
        }
        let what = format!("the connection to {} broke off before the answer was whole ({})", host(url), story(error));
        CallError::Unreachable { what, passes: false }
    }
}

/// The host and port of a URL, which say enough and hold no secret.
fn host(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    let host = parsed.as_ref().and_then(|url| url.host_str().map(|host| (host, url.port_or_known_default())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => url.to_owned(),
    }
}

/// An answer that has begun.
#[derive(Debug)]
pub struct Answer {
    url: String,
    response: Response,
}

impl Answer {
    /// The next bytes; none when the answer is whole.
    pub async fn bytes(&mut self, http: &Http) -> Result<Option<Bytes>, CallError> {
        self.response.chunk().await.map_err(|error| http.broken_off(&self.url, &error))
    }

    pub fn content_type(&self) -> Option<&str> {
        self.response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok())
    }
}

async fn refusal(mut response: Response) -> Refusal {
    let text = |name: HeaderName| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let content_type = text(CONTENT_TYPE);
    let millis = text(HeaderName::from_static("retry-after-ms")).and_then(|text| text.trim().parse().ok());
    let seconds = text(RETRY_AFTER).and_then(|text| text.trim().parse::<f64>().ok());
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let should_retry = text(HeaderName::from_static("x-should-retry"));
    let should_retry = should_retry.and_then(|text| text.trim().parse().ok());
    let status = response.status().as_u16();
    let mut body = Vec::new();
    // What can be read of it is enough.
    while let Ok(Some(bytes)) = response.chunk().await {
        body.extend_from_slice(&bytes);
        if body.len() > MOST_REFUSAL {
            break;
        }
    }
    Refusal { status, retry_after: millis.map(Duration::from_millis).or(seconds), should_retry, body, content_type }
}

fn headers(pairs: &[(String, String)]) -> Result<HeaderMap, CallError> {
    let mut headers = HeaderMap::with_capacity(pairs.len());
    for (name, value) in pairs {
        // A bad value may be a key, so only the name is said.
        let bad = || CallError::BadHeader(name.clone());
        let value = HeaderValue::from_str(value).map_err(|_| bad())?;
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    Ok(headers)
}

/// The innermost cause says what happened; the outer ones that something did.
fn story(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
