//! The stage behind a socket.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Sleep;

use crate::access::{Access, access, cors};
use crate::plain_http;
use crate::stage::{Answer, Asked, Stage};
use crate::stream::{Next, Stream};

/// How much the simulator takes from its clients.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of the body of one request.
    pub body: usize,
    /// Bytes of all bodies that are being read.
    pub bodies: usize,
    /// Bytes of the headers of one request.
    pub headers: usize,
    pub connections: usize,
    /// How long the headers of a request may take.
    pub header_time: Duration,
    /// How long a body may make us wait for its next piece.
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

/// The most headers of one request.
const MOST_HEADERS: usize = 100;

/// How long to wait after the system would not give us another connection.
const SHORTEST_BACKOFF: Duration = Duration::from_millis(20);
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// What a client hears that is one too many.
fn too_many() -> String {
    let body = r#"{"error":{"message":"too many connections at once","type":"simulator_error","code":503}}"#;
    let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close";
    format!("{head}\r\nserver: aside-sim\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A provider in a box, listening.
#[derive(Debug)]
pub struct Simulator {
    listener: TcpListener,
    address: SocketAddr,
    house: Arc<House>,
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) stage: Stage,
    pub(crate) bounds: Bounds,
    /// Bytes of bodies that are being read.
    reading: AtomicUsize,
}

impl House {
    pub(crate) fn new(stage: Stage, bounds: Bounds) -> House {
        House { stage, bounds, reading: AtomicUsize::new(0) }
    }
}

/// A simulator that runs beside other work; it stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Simulator {
    /// Listens; port 0 is any free one. Nothing is served before `run`.
    pub async fn bind(address: SocketAddr, stage: Stage) -> io::Result<Simulator> {
        Simulator::bind_within(address, stage, Bounds::default()).await
    }

    pub async fn bind_within(address: SocketAddr, stage: Stage, bounds: Bounds) -> io::Result<Simulator> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Simulator { listener, address, house: Arc::new(House::new(stage, bounds)) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is there; what is being answered then is cut off.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let mut end = std::pin::pin!(end);
        let mut backoff = SHORTEST_BACKOFF;
        loop {
            let accepted = until(&mut end, |context| self.listener.poll_accept(context));
            let Some(accepted) = accepted.await else { return };
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((socket, _)) if connections.len() >= self.house.bounds.connections => {
                    // It may well be gone; there is nothing more to say to it.
                    let _unheard = socket.try_write(too_many().as_bytes());
                }
                Ok((socket, _)) => {
                    backoff = SHORTEST_BACKOFF;
                    connections.spawn(serve(socket, Arc::clone(&self.house)));
                }
                Err(error) if is_about_the_client(&error) => (),
                // We are out of descriptors or memory. Asking again at once
                // would change nothing and take a whole core.
                Err(_) => {
                    let mut wait = std::pin::pin!(tokio::time::sleep(backoff));
                    backoff = (backoff * 2).min(LONGEST_BACKOFF);
                    if until(&mut end, |context| wait.as_mut().poll(context)).await.is_none() {
                        return;
                    }
                }
            }
        }
    }

    /// Serves on the runtime that this is called on.
    pub fn spawn(self) -> Running {
        let address = self.address;
        Running { address, task: tokio::spawn(self.run(std::future::pending())) }
    }
}

impl Running {
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Something else, unless the end is there first.
async fn until<T>(
    end: &mut Pin<&mut impl Future<Output = ()>>,
    mut other: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    poll_fn(|context| match end.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => other(context).map(Some),
    })
    .await
}

/// A client that is gone before we look is no concern of ours.
fn is_about_the_client(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn serve(socket: TcpStream, house: Arc<House>) {
    // Each piece is to arrive when it is sent; without it all still works.
    let _as_it_is = socket.set_nodelay(true);
    let Ok(local) = socket.local_addr() else { return };
    if plain_http::is_needed() {
        // A client that hangs up ends its own connection only.
        let _gone = plain_http::serve(socket, local.ip(), &house).await;
        return;
    }
    let Bounds { headers, header_time, .. } = house.bounds;
    let service = service_fn(move |request| answer(request, local.ip(), Arc::clone(&house)));
    // A client that hangs up, or speaks no HTTP, ends its own connection only.
    let _gone = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_headers(MOST_HEADERS)
        .max_buf_size(headers)
        .serve_connection(TokioIo::new(socket), service)
        .await;
}

async fn answer(request: Request<Incoming>, local: IpAddr, house: Arc<House>) -> Result<Response<Told>, Infallible> {
    let (head, body) = request.into_parts();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect();
    let access = access(head.method.as_str(), &headers, head.uri.authority().map(|host| host.as_str()), local);
    let mut answer = match refused(access) {
        Some(answer) => answer,
        None => match collected(body, &house).await {
            Ok(body) => house.stage.answer(&Asked {
                method: head.method.as_str(),
                path: head.uri.path(),
                query: head.uri.query().unwrap_or(""),
                headers: &headers,
                body: &body.bytes,
            }),
            Err(unread) => unread.answer(),
        },
    };
    answer.headers.extend(cors(&headers, access));
    if !answer.delay.is_zero() {
        tokio::time::sleep(answer.delay).await;
    }
    let mut response = Response::builder().status(answer.status).header("server", "aside-sim");
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let told = Told { stream: answer.body, wait: None, yielded: false, parted: false };
    Ok(response.body(told).unwrap_or_else(|_| Response::new(Told::nothing())))
}

/// What is answered without looking at the request any further.
pub(crate) fn refused(access: Access) -> Option<Answer> {
    match access {
        Access::OtherHost => Some(Answer::refused(421, "the Host header names another machine than this one")),
        Access::OtherOrigin => Some(Answer::refused(403, "only web pages of this machine are answered")),
        Access::Preflight => Some(Answer::empty(204)),
        Access::Granted | Access::Page => None,
    }
}

/// Why a body was not read.
pub(crate) enum Unread {
    TooLong,
    TooSlow,
    TooMuchAtOnce,
    BrokenOff,
}

impl Unread {
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Unread::TooLong => Answer::refused(413, "the request is too long"),
            Unread::TooSlow => Answer::refused(408, "the request did not go on"),
            Unread::TooMuchAtOnce => Answer::refused(503, "too many long requests at once"),
            Unread::BrokenOff => Answer::refused(400, "the request breaks off"),
        }
    }
}

/// Bytes that are counted while they are held.
pub(crate) struct Counted<'a> {
    pub(crate) bytes: Vec<u8>,
    reading: &'a AtomicUsize,
}

impl Counted<'_> {
    pub(crate) fn new(house: &House) -> Counted<'_> {
        Counted { bytes: Vec::new(), reading: &house.reading }
    }

    pub(crate) fn add(&mut self, data: &[u8], house: &House) -> Result<(), Unread> {
        if self.bytes.len() + data.len() > house.bounds.body {
            return Err(Unread::TooLong);
        }
        if self.reading.fetch_add(data.len(), Ordering::Relaxed) + data.len() > house.bounds.bodies {
            self.reading.fetch_sub(data.len(), Ordering::Relaxed);
            return Err(Unread::TooMuchAtOnce);
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.reading.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

/// The whole body.
async fn collected(mut body: Incoming, house: &House) -> Result<Counted<'_>, Unread> {
    let Bounds { body: most, body_time, .. } = house.bounds;
    if body.size_hint().lower() > most as u64 {
        return Err(Unread::TooLong);
    }
    let mut counted = Counted::new(house);
    loop {
        let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
        let Ok(frame) = tokio::time::timeout(body_time, next).await else { return Err(Unread::TooSlow) };
        let Some(frame) = frame else { return Ok(counted) };
        let Ok(data) = frame.map_err(|_| Unread::BrokenOff)?.into_data() else { continue };
        counted.add(&data, house)?;
    }
}

/// A body that is sent as the stream says: its pieces, its waits, its end.
struct Told {
    stream: Stream,
    wait: Option<Pin<Box<Sleep>>>,
    /// A piece went out and was given the time to leave alone.
    yielded: bool,
    /// Everything before the break went out.
    parted: bool,
}

/// The connection breaks here, as the script says.
#[derive(Debug, thiserror::Error)]
#[error("cut off by the script")]
struct CutOff;

impl Told {
    fn nothing() -> Told {
        Told { stream: Stream::of(String::new()), wait: None, yielded: false, parted: false }
    }
}

impl Body for Told {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        if self.yielded {
            // Asked again at once; in between what was given goes out.
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
                Next::Bytes(bytes) => {
                    self.yielded = self.stream.is_fragmented();
                    return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
                }
                Next::Wait(time) => self.wait = Some(Box::pin(tokio::time::sleep(time))),
                // What was sent before is to arrive.
                Next::Abort if !std::mem::replace(&mut self.parted, true) => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Next::Abort => return Poll::Ready(Some(Err(CutOff))),
                Next::End => return Poll::Ready(None),
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
