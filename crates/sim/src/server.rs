//! The stage behind a socket.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Sleep;

use crate::stage::{Answer, Asked, Stage};
use crate::stream::{Next, Stream};

/// The most bytes a request may have.
const MOST_BYTES: usize = 64 << 20;

/// A provider in a box, listening.
#[derive(Debug)]
pub struct Simulator {
    listener: TcpListener,
    address: SocketAddr,
    stage: Arc<Stage>,
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
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Simulator { listener, address, stage: Arc::new(stage) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is there; what is being answered then is cut off.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let mut connections = JoinSet::new();
        let mut end = std::pin::pin!(end);
        loop {
            let accepted = poll_fn(|context| match end.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => self.listener.poll_accept(context).map(Some),
            });
            let Some(accepted) = accepted.await else { return };
            while connections.try_join_next().is_some() {}
            // A client that is gone before we look is no concern of ours.
            if let Ok((socket, _)) = accepted {
                connections.spawn(serve(socket, Arc::clone(&self.stage)));
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

async fn serve(socket: TcpStream, stage: Arc<Stage>) {
    // Each piece is to arrive when it is sent; without it all still works.
    let _as_it_is = socket.set_nodelay(true);
    let service = service_fn(move |request| answer(request, Arc::clone(&stage)));
    // A client that hangs up, or speaks no HTTP, ends its own connection only.
    let _gone = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
}

async fn answer(request: Request<Incoming>, stage: Arc<Stage>) -> Result<Response<Told>, Infallible> {
    let (head, body) = request.into_parts();
    let answer = match collected(body).await {
        Some(body) => {
            let headers: Vec<(String, String)> = head
                .headers
                .iter()
                .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
                .collect();
            stage.answer(&Asked {
                method: head.method.as_str(),
                path: head.uri.path(),
                query: head.uri.query().unwrap_or(""),
                headers: &headers,
                body: &body,
            })
        }
        None => Answer::too_long(),
    };
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

/// The whole body; none if it is too long or breaks off.
async fn collected(mut body: Incoming) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.ok()?.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > MOST_BYTES {
            return None;
        }
    }
    Some(bytes)
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
