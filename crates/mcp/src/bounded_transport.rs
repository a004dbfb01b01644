//! Messages over the pipes of a process, in bounded memory also if the server does not read.
//!
//! rmcp starts a task for each answer to a request of the server. If the server sends requests and does not read the
//! answers, these tasks would add up. So beyond a bound nothing more is read until answers have been written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::bounded_reader::{BoundedReader, BytesRead, LimitExceeded, MAX_BYTES, ServerLimit};

/// How many messages may wait to be written.
const MAX_UNWRITTEN: usize = 1_000;
/// How many bytes are read while some message always waits to be written. It may have to repeat what was read.
const MAX_BYTES_MEANWHILE: usize = 4 * MAX_BYTES;
/// How long a server may take to read one message beyond these bounds.
const STALL_TIME: Duration = Duration::from_secs(5);

pub(crate) struct BoundedTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleClient, BoundedReader<R>, W>,
    unwritten: Arc<Unwritten>,
    bytes_read: BytesRead,
    /// How much had been read when nothing waited to be written.
    read_when_idle: usize,
    exceeded: LimitExceeded,
    /// The server does not read, so nothing is written any more.
    broken: CancellationToken,
}

/// The messages that wait to be written.
#[derive(Debug, Default)]
struct Unwritten {
    count: AtomicUsize,
    less: Notify,
}

struct UnwrittenMessage(Arc<Unwritten>);

impl UnwrittenMessage {
    fn new(all: &Arc<Unwritten>) -> UnwrittenMessage {
        all.count.fetch_add(1, Ordering::Relaxed);
        UnwrittenMessage(Arc::clone(all))
    }
}

impl Drop for UnwrittenMessage {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.less.notify_one();
    }
}

impl<R, W> BoundedTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(read: R, write: W, exceeded: LimitExceeded) -> BoundedTransport<R, W> {
        let reader = BoundedReader::new(read, MAX_BYTES, exceeded.clone());
        let bytes_read = reader.bytes_read();
        BoundedTransport {
            inner: AsyncRwTransport::new_client(reader, write),
            unwritten: Arc::default(),
            bytes_read,
            read_when_idle: 0,
            exceeded,
            broken: CancellationToken::new(),
        }
    }

    fn is_full(&mut self) -> bool {
        let (count, bytes_read) = (self.unwritten.count.load(Ordering::Relaxed), self.bytes_read.count());
        if count == 0 {
            self.read_when_idle = bytes_read;
        }
        count >= MAX_UNWRITTEN || bytes_read.wrapping_sub(self.read_when_idle) >= MAX_BYTES_MEANWHILE
    }
}

impl<R, W> Transport<RoleClient> for BoundedTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (message, broken) = (UnwrittenMessage::new(&self.unwritten), self.broken.clone());
        let write = self.inner.send(item);
        async move {
            let _until_written = message;
            tokio::select! {
                biased;
                written = write => written,
                () = broken.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // Answers that are ready go first, so that they do not add up before they come here.
        tokio::task::yield_now().await;
        while self.is_full() {
            if timeout(STALL_TIME, self.unwritten.less.notified()).await.is_err() {
                self.exceeded.set(ServerLimit::Unwritten);
                self.broken.cancel();
                return None;
            }
        }
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.broken.cancel();
        self.inner.close().await
    }
}
