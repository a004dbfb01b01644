//! Reads a server's output in bounded memory: a message is one line, and a line that is too long is an error.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest message that a server may send.
pub(crate) const MAX_BYTES: usize = 8 * 1024 * 1024;

pub(crate) struct BoundedReader<R> {
    inner: R,
    most: usize,
    /// Bytes since the last line break.
    line: usize,
    exceeded: LimitExceeded,
}

/// Set when a server exceeded the limit, to explain why the connection ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitExceeded(Arc<AtomicBool>);

impl LimitExceeded {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R> BoundedReader<R> {
    pub(crate) fn new(inner: R, most: usize, exceeded: LimitExceeded) -> BoundedReader<R> {
        BoundedReader { inner, most, line: 0, exceeded }
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
        if self.line > self.most {
            self.exceeded.set();
            // A read that fails must not return data.
            buffer.set_filled(before);
            return Poll::Ready(Err(io::Error::other("a message is too long")));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn l4_a_line_that_is_too_long_is_an_error_and_many_lines_are_fine() {
        let read = async |bytes: Vec<u8>| {
            let exceeded = LimitExceeded::default();
            let mut reader = BoundedReader::new(bytes.as_slice(), 100, exceeded.clone());
            let mut got = Vec::new();
            let read = reader.read_to_end(&mut got).await;
            (read.is_ok(), exceeded.is_set())
        };
        assert_eq!(read(b"twelve bytes\n".repeat(1000)).await, (true, false));
        assert_eq!(read(vec![b'x'; 100]).await, (true, false));
        assert_eq!(read(vec![b'x'; 5000]).await, (false, true));
    }
}
