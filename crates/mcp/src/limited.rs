//! A server's output in bounded memory: a message is one line, and a line that
//! does not end is an error.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// The longest message of a server.
pub(crate) const MOST_BYTES: usize = 8 * 1024 * 1024;

pub(crate) struct Limited<R> {
    inner: R,
    most: usize,
    /// Bytes since the last line ended.
    line: usize,
    exceeded: Exceeded,
}

/// Whether a server sent more than it may, for whoever asks why it is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exceeded(Arc<AtomicBool>);

impl Exceeded {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_so(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<R> Limited<R> {
    pub(crate) fn new(inner: R, most: usize, exceeded: Exceeded) -> Limited<R> {
        Limited { inner, most, line: 0, exceeded }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Limited<R> {
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
            // Whoever gets an error has been given nothing.
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
    async fn l4_a_line_that_does_not_end_is_an_error_and_many_lines_are_none() {
        let read = async |bytes: Vec<u8>| {
            let exceeded = Exceeded::default();
            let mut reader = Limited::new(bytes.as_slice(), 100, exceeded.clone());
            let mut got = Vec::new();
            let read = reader.read_to_end(&mut got).await;
            (read.is_ok(), exceeded.is_so())
        };
        assert_eq!(read(b"twelve bytes\n".repeat(1000)).await, (true, false));
        assert_eq!(read(vec![b'x'; 100]).await, (true, false));
        assert_eq!(read(vec![b'x'; 5000]).await, (false, true));
    }
}
