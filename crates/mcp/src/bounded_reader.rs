//! Reads a server's output in bounded memory: a message is one line, and a line that is too long
//! or nested too deep is an error.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::nesting::{MAX_NESTING, Nesting};

/// The longest message that a server may send.
pub(crate) const MAX_BYTES: usize = 8 * 1024 * 1024;

pub(crate) struct BoundedReader<R> {
    inner: R,
    most: usize,
    /// Bytes since the last line break.
    line: usize,
    nesting: Nesting,
    bytes_read: BytesRead,
    exceeded: LimitExceeded,
}

/// How many bytes a server has sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct BytesRead(Arc<AtomicUsize>);

impl BytesRead {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a server may not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerLimit {
    /// The length of a message.
    Length,
    /// How deep a message is nested.
    Nesting,
    /// How many messages to it wait because it does not read them.
    Unwritten,
}

impl std::fmt::Display for ServerLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ServerLimit::Length => write!(f, "it sent a message that exceeds {MAX_BYTES} bytes"),
            ServerLimit::Nesting => write!(f, "it sent a message that is nested more than {MAX_NESTING} levels deep"),
            ServerLimit::Unwritten => write!(f, "it does not read the answers to its requests"),
        }
    }
}

/// Set when a server exceeded a limit, to explain why the connection ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitExceeded(Arc<OnceLock<ServerLimit>>);

impl LimitExceeded {
    /// The first one counts.
    pub(crate) fn set(&self, limit: ServerLimit) {
        self.0.get_or_init(|| limit);
    }

    pub(crate) fn get(&self) -> Option<ServerLimit> {
        self.0.get().copied()
    }
}

impl<R> BoundedReader<R> {
    pub(crate) fn new(inner: R, most: usize, exceeded: LimitExceeded) -> BoundedReader<R> {
        let (nesting, bytes_read) = (Nesting::default(), BytesRead::default());
        BoundedReader { inner, most, line: 0, nesting, bytes_read, exceeded }
    }

    pub(crate) fn bytes_read(&self) -> BytesRead {
        self.bytes_read.clone()
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        self.line = match read.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => read.len() - end - 1,
            None => self.line + read.len(),
        };
        self.bytes_read.0.fetch_add(read.len(), Ordering::Relaxed);
        let limit = match self.nesting.is_exceeded_by(read) {
            true => ServerLimit::Nesting,
            false if self.line > self.most => ServerLimit::Length,
            false => return Poll::Ready(Ok(())),
        };
        self.exceeded.set(limit);
        // A read that fails must not return data.
        buffer.set_filled(before);
        Poll::Ready(Err(io::Error::other(limit.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn l4_a_line_that_is_too_long_is_an_error_and_many_lines_are_fine() {
        let read = async |bytes: Vec<u8>, most: usize| {
            let exceeded = LimitExceeded::default();
            let mut reader = BoundedReader::new(bytes.as_slice(), most, exceeded.clone());
            let mut got = Vec::new();
            let read = reader.read_to_end(&mut got).await;
            (read.is_ok(), exceeded.get())
        };
        assert_eq!(read(b"twelve bytes\n".repeat(1000), 100).await, (true, None));
        assert_eq!(read(vec![b'x'; 100], 100).await, (true, None));
        assert_eq!(read(vec![b'x'; 5000], 100).await, (false, Some(ServerLimit::Length)));
        assert_eq!(read(br#"{"a":"#.repeat(200), 5000).await, (false, Some(ServerLimit::Nesting)));
    }
}
