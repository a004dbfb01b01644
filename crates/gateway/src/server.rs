//! Serves the gateway over HTTP, and drains it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aside_session::HintedError;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection_threads::ConnectionThreads;
use crate::error_response::{GatewayResponse, text_response};
use crate::gateway::Gateway;

/// Bytes of the headers of one request.
const MAX_HEADER_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// How long a client may take to send the headers.
const HEADER_TIME: Duration = Duration::from_secs(30);

/// How long to wait after `accept` failed for lack of resources.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The sockets of a gateway, bound but not served yet, and the threads that will serve them.
#[derive(Debug)]
pub struct Listening {
    main: TcpListener,
    metrics: Option<TcpListener>,
    threads: ConnectionThreads,
}

impl Listening {
    pub async fn bind(gateway: &Gateway) -> Result<Listening, HintedError> {
        let config = gateway.config();
        let main = bind(config.serve.listen).await?;
        let metrics = match config.serve.metrics {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let threads = ConnectionThreads::start(config.serve.threads)
            .map_err(|error| HintedError::new(format!("the threads for connections cannot be started: {error}")))?;
        Ok(Listening { main, metrics, threads })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.main.local_addr()
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, HintedError> {
    TcpListener::bind(address).await.map_err(|error| {
        HintedError::new(format!("cannot listen on {address}: {error}"))
            .hint("--listen ADDR takes another address; port 0 is any free port")
    })
}

/// Which part of the gateway a socket serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    Everything,
    Metrics,
}

/// Serves until `stop` is cancelled, then lets running replies end, at most as long as the config says or until
/// `stop_now` is cancelled.
pub async fn serve(gateway: Arc<Gateway>, listening: Listening, stop: CancellationToken, stop_now: CancellationToken) {
    let connections = TaskTracker::new();
    let n_open = Arc::new(AtomicUsize::new(0));
    let Listening { main, metrics, threads } = listening;
    let accept = |listener, served| {
        let accepting = Accepting { listener, served, threads: &threads, connections: &connections, n_open: &n_open };
        accepting.accept(Arc::clone(&gateway), stop.clone())
    };
    match metrics {
        Some(metrics) => drop(tokio::join!(accept(main, Served::Everything), accept(metrics, Served::Metrics))),
        None => accept(main, Served::Everything).await,
    }
    connections.close();
    let drain = gateway.config().serve.drain;
    tokio::select! {
        () = connections.wait() => (),
        () = tokio::time::sleep(drain) => (),
        () = stop_now.cancelled() => (),
    }
    gateway.replies.end().await;
    gateway.flush().await;
    threads.end().await;
}

/// A socket that connections arrive at, and where they go.
struct Accepting<'a> {
    listener: TcpListener,
    served: Served,
    threads: &'a ConnectionThreads,
    connections: &'a TaskTracker,
    n_open: &'a Arc<AtomicUsize>,
}

impl Accepting<'_> {
    async fn accept(self, gateway: Arc<Gateway>, stop: CancellationToken) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                accepted = self.listener.accept() => accepted,
            };
            // If there is none, the client disconnected early, or resources are short; spinning would not help.
            let Ok((socket, _)) = accepted else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let connection = OpenConnection::new(self.n_open);
            if connection.n_open > gateway.config().serve.connections {
                // The client may already have disconnected.
                let _ignored = socket.try_write(TOO_MANY.as_bytes());
                continue;
            }
            // The socket is waited for by the thread that serves it.
            let Ok(socket) = socket.into_std() else { continue };
            let (gateway, stop, served) = (Arc::clone(&gateway), stop.clone(), self.served);
            self.threads.spawn(self.connections.track_future(async move {
                if let Ok(socket) = TcpStream::from_std(socket) {
                    serve_connection(gateway, socket, served, stop).await;
                }
                drop(connection);
            }));
        }
    }
}

const TOO_MANY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\n\
    retry-after: 1\r\naside-error: draining\r\ncontent-length: 58\r\n\r\n\
    {\"error\":{\"message\":\"too many connections\",\"code\":\"busy\"}}\n";

/// Counts a connection until it is dropped.
struct OpenConnection {
    count: Arc<AtomicUsize>,
    n_open: usize,
}

impl OpenConnection {
    fn new(count: &Arc<AtomicUsize>) -> OpenConnection {
        let n_open = count.fetch_add(1, Ordering::Relaxed) + 1;
        OpenConnection { count: Arc::clone(count), n_open }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve_connection(gateway: Arc<Gateway>, socket: TcpStream, served: Served, stop: CancellationToken) {
    // Send each chunk at once. If this fails, only timing suffers.
    let _ignored = socket.set_nodelay(true);
    let Ok(local) = socket.local_addr() else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let gateway = Arc::clone(&gateway);
        async move {
            let request = request.map(Body::new);
            Ok::<GatewayResponse, Infallible>(match served {
                // In a box, so that a connection whose reply is being sent does not keep the room for making it.
                Served::Everything => Box::pin(gateway.respond(request, local.ip())).await,
                Served::Metrics if request.uri().path() == "/metrics" => gateway.metrics_page(),
                Served::Metrics => text_response(404, "only /metrics is served at this address\n"),
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = std::pin::pin!(connection);
    // A client that disconnects affects only its own connection.
    tokio::select! {
        _ended = &mut connection => (),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ended = connection.await;
        }
    }
}
