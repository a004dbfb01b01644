//! The HTTP server around [`Service`].

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Sleep;

use crate::body_stream::{BodyStep, BodyStream};
use crate::host_check::{HostCheck, check_host, cors_headers};
use crate::http_exchange::{HttpRequest, HttpResponse};
use crate::plain_http;
use crate::service::Service;

/// Limits on what clients may send.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes in one request body.
    pub body: usize,
    /// Bytes in all request bodies being read at once.
    pub bodies: usize,
    /// Bytes in the headers of one request.
    pub headers: usize,
    pub connections: usize,
    /// How long a client may take to send the headers.
    pub header_time: Duration,
    /// How long a client may pause within a body.
    pub body_time: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            body: 64 << 20,
            bodies: 256 << 20,
            headers: 64 << 10,
            connections: 512,
            header_time: Duration::from_secs(30),
            body_time: Duration::from_secs(30),
        }
    }
}

const MAX_HEADERS: usize = 100;

/// How long to wait after `accept` failed for lack of resources.
const SHORTEST_BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// The response to a connection above the limit.
fn too_many_connections() -> String {
    let body = r#"{"error":{"message":"too many connections at once","type":"simulator_error","code":503}}"#;
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close";
    format!("{head}\r\nserver: aside-sim\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A bound simulator that has not started serving.
#[derive(Debug)]
pub struct Simulator {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<ServerState>,
}

/// State shared by all connections.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) service: Service,
    pub(crate) bounds: Bounds,
    /// Bytes of the request bodies currently in memory.
    body_bytes_in_use: AtomicUsize,
}

impl ServerState {
    pub(crate) fn new(service: Service, bounds: Bounds) -> ServerState {
        ServerState { service, bounds, body_bytes_in_use: AtomicUsize::new(0) }
    }
}

/// A simulator running as a background task. Dropping this stops it.
#[derive(Debug)]
pub struct RunningSimulator {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Simulator {
    /// Binds the address; port 0 picks a free port. Nothing is served before `run`.
    pub async fn bind(address: SocketAddr, service: Service) -> io::Result<Simulator> {
        Simulator::bind_with_bounds(address, service, Bounds::default()).await
    }

    pub async fn bind_with_bounds(address: SocketAddr, service: Service, bounds: Bounds) -> io::Result<Simulator> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Simulator { listener, address, state: Arc::new(ServerState::new(service, bounds)) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` resolves. Responses still in progress are cut off.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let mut end = std::pin::pin!(end);
        let mut backoff = SHORTEST_BACKOFF;
        loop {
            let accepted = unless_ended(&mut end, |context| self.listener.poll_accept(context));
            let Some(accepted) = accepted.await else { return };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((socket, _)) if connections.len() >= self.state.bounds.connections => {
                    // The client may already have disconnected.
                    let _ignored = socket.try_write(too_many_connections().as_bytes());
                }
                Ok((socket, _)) => {
                    backoff = SHORTEST_BACKOFF;
                    connections.spawn(serve(socket, Arc::clone(&self.state)));
                }
                Err(error) if is_client_error(&error) => (),
                // We are out of descriptors or memory. Retrying at once would only spin.
                Err(_) => {
                    let mut wait = std::pin::pin!(tokio::time::sleep(backoff));
                    backoff = (backoff * 2).min(LONGEST_BACKOFF);
                    if unless_ended(&mut end, |context| wait.as_mut().poll(context)).await.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Serves on the current runtime.
    pub fn spawn(self) -> RunningSimulator {
        let address = self.address;
        RunningSimulator { address, task: tokio::spawn(self.run(std::future::pending())) }
    }
}

impl RunningSimulator {
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for RunningSimulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Polls `other` unless `end` resolves first.
async fn unless_ended<T>(
    end: &mut Pin<&mut impl Future<Output = ()>>,
    mut other: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    poll_fn(|context| match end.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => other(context).map(Some),
    })
    .await
}

/// The client disconnected before we accepted it.
fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn serve(socket: TcpStream, state: Arc<ServerState>) {
    // Send each chunk immediately. If this fails, only timing suffers.
    let _ignored = socket.set_nodelay(true);
    let Ok(local) = socket.local_addr() else { return };
    if plain_http::is_needed() {
        // A client that disconnects affects only its own connection.
        let _gone = plain_http::serve(socket, local.ip(), &state).await;
        return;
    }
    let Bounds { headers, header_time, .. } = state.bounds;
    let service = service_fn(move |request| respond(request, local.ip(), Arc::clone(&state)));
    // A client that disconnects, or does not speak HTTP, affects only its own connection.
    let _gone = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(MAX_HEADERS)
        .max_buf_size(headers)
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn respond(
    request: Request<Incoming>,
    local: IpAddr,
    state: Arc<ServerState>,
) -> Result<Response<ResponseBody>, Infallible> {
    let (head, body) = request.into_parts();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let origin = check_host(head.method.as_str(), &headers, head.uri.authority().map(|host| host.as_str()), local);
    let mut response = match early_response(origin) {
        Some(response) => response,
        None => match read_body(body, &state).await {
            Ok(body) => state.service.respond(&HttpRequest {
                method: head.method.as_str(),
                path: head.uri.path(),
                query: head.uri.query().unwrap_or(""),
                headers: &headers,
                body: &body.bytes,
                received: unix_milliseconds(),
            }),
            Err(error) => error.response(),
        },
    };
    response.headers.extend(cors_headers(&headers, origin));
    if !response.delay.is_zero() {
        tokio::time::sleep(response.delay).await;
    }
    let mut builder = Response::builder().status(response.status).header("server", "aside-sim");
    for (name, value) in &response.headers {
        builder = builder.header(name, value);
    }
    let body = ResponseBody { stream: response.body, wait: None, yielded: false, flushed: false };
    Ok(builder.body(body).unwrap_or_else(|_| Response::new(ResponseBody::empty())))
}

/// The time now. A clock before 1970 counts as 1970.
pub(crate) fn unix_milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The response to a request that is decided by its headers alone.
pub(crate) fn early_response(origin: HostCheck) -> Option<HttpResponse> {
    match origin {
        HostCheck::ForeignHost => Some(HttpResponse::refusal(421, "the Host header names another machine")),
        HostCheck::ForeignOrigin => Some(HttpResponse::refusal(403, "only web pages on this machine are allowed")),
        HostCheck::Preflight => Some(HttpResponse::empty(204)),
        HostCheck::Allowed | HostCheck::LocalPage => None,
    }
}

/// Why a request body could not be read.
pub(crate) enum BodyError {
    TooLong,
    TooSlow,
    TooMuchAtOnce,
    Incomplete,
}

impl BodyError {
    pub(crate) fn response(&self) -> HttpResponse {
        match self {
            BodyError::TooLong => HttpResponse::refusal(413, "the request is too long"),
            BodyError::TooSlow => HttpResponse::refusal(408, "the request body timed out"),
            BodyError::TooMuchAtOnce => HttpResponse::refusal(503, "too many long requests at once"),
            BodyError::Incomplete => HttpResponse::refusal(400, "the request body is incomplete"),
        }
    }
}

/// A request body whose bytes count towards the shared limit while it exists.
pub(crate) struct CountedBody<'a> {
    pub(crate) bytes: Vec<u8>,
    body_bytes_in_use: &'a AtomicUsize,
}

impl CountedBody<'_> {
    pub(crate) fn new(state: &ServerState) -> CountedBody<'_> {
        CountedBody { bytes: Vec::new(), body_bytes_in_use: &state.body_bytes_in_use }
    }

    pub(crate) fn add(&mut self, data: &[u8], state: &ServerState) -> Result<(), BodyError> {
        if self.bytes.len() + data.len() > state.bounds.body {
            return Err(BodyError::TooLong);
        }
        if self.body_bytes_in_use.fetch_add(data.len(), Ordering::Relaxed) + data.len() > state.bounds.bodies {
            self.body_bytes_in_use.fetch_sub(data.len(), Ordering::Relaxed);
            return Err(BodyError::TooMuchAtOnce);
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

impl Drop for CountedBody<'_> {
    fn drop(&mut self) {
        self.body_bytes_in_use.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

async fn read_body(mut body: Incoming, state: &ServerState) -> Result<CountedBody<'_>, BodyError> {
    let Bounds { body: most, body_time, .. } = state.bounds;
    if body.size_hint().lower() > most as u64 {
        return Err(BodyError::TooLong);
    }
    let mut counted = CountedBody::new(state);
    loop {
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Ok(frame) = tokio::time::timeout(body_time, next).await else { return Err(BodyError::TooSlow) };
        let Some(frame) = frame else { return Ok(counted) };
        let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
        counted.add(&data, state)?;
    }
}

/// A response body that follows the [`BodyStream`]: its chunks, its pauses, its end.
struct ResponseBody {
    stream: BodyStream,
    wait: Option<Pin<Box<Sleep>>>,
    /// A chunk was just sent; yield once so that it goes out on its own.
    yielded: bool,
    /// We already yielded once before aborting, so that earlier bytes go out.
    flushed: bool,
}

/// The script asked for the connection to break.
#[derive(Debug, thiserror::Error)]
#[error("cut off by the script")]
struct CutOff;

impl ResponseBody {
    fn empty() -> ResponseBody {
        ResponseBody { stream: BodyStream::from_text(String::new()), wait: None, yielded: false, flushed: false }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.yielded {
            // Yield so that hyper sends the previous chunk before we produce the next.
            self.yielded = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            if let Some(wait) = &mut self.wait {
                match wait.as_mut().poll(context) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => self.wait = None,
                }
            }
            match self.stream.step() {
                BodyStep::Bytes(bytes) => {
                    self.yielded = self.stream.is_fragmented();
                    return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
                }
                BodyStep::Wait(time) => self.wait = Some(Box::pin(tokio::time::sleep(time))),
                // Yield once so that the bytes before the break are sent.
                BodyStep::Abort if !std::mem::replace(&mut self.flushed, true) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                BodyStep::Abort => return Poll::Ready(Some(Err(CutOff))),
                BodyStep::End => return Poll::Ready(None),
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
