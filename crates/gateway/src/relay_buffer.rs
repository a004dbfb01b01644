//! The bytes on their way to a client: a bounded buffer between the task that reads a reply
//! and the connection that sends it. What arrives before the connection takes it
//! is sent as one chunk.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use aside_engine::joined_bytes::JoinedBytes;
use bytes::Bytes;
use tokio::sync::Notify;

/// While this many bytes wait, the provider is not read. A chunk has at most 64 KiB.
const MAX_WAITING_BYTES: usize = 192 << 10;

/// The client closed its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientGone;

/// Creates a buffer.
pub(crate) fn relay_buffer() -> (RelaySender, RelayReceiver) {
    let buffer = Arc::new(RelayBuffer::default());
    (RelaySender { buffer: Arc::clone(&buffer) }, RelayReceiver { buffer, may_be_unsent: false })
}

#[derive(Debug, Default)]
struct RelayBuffer {
    state: Mutex<BufferState>,
    /// Wakes the sender: there is room, or the client is gone.
    sender: Notify,
}

#[derive(Debug, Default)]
struct BufferState {
    waiting: JoinedBytes,
    /// Why the reply broke off.
    failure: Option<io::Error>,
    is_sender_gone: bool,
    is_receiver_gone: bool,
    receiver: Option<Waker>,
}

impl RelayBuffer {
    fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The side that reads the reply.
#[derive(Debug)]
pub(crate) struct RelaySender {
    buffer: Arc<RelayBuffer>,
}

impl RelaySender {
    /// Adds bytes, and waits while the client is slow.
    pub(crate) async fn send(&self, bytes: Bytes) -> Result<(), ClientGone> {
        loop {
            {
                let mut state = self.buffer.lock();
                if state.is_receiver_gone {
                    return Err(ClientGone);
                }
                if state.waiting.len() < MAX_WAITING_BYTES {
                    state.waiting.add(bytes);
                    wake(state);
                    return Ok(());
                }
            }
            self.buffer.sender.notified().await;
        }
    }

    /// Breaks the reply off, after everything that the client takes without a delay.
    pub(crate) fn fail(&self, why: io::Error) {
        let mut state = self.buffer.lock();
        state.failure = Some(why);
        wake(state);
    }

    /// Waits until the client is gone.
    pub(crate) async fn closed(&self) {
        while !self.buffer.lock().is_receiver_gone {
            self.buffer.sender.notified().await;
        }
    }
}

/// Wakes the connection, which must not find the state locked.
fn wake(mut state: MutexGuard<'_, BufferState>) {
    let receiver = state.receiver.take();
    drop(state);
    if let Some(receiver) = receiver {
        receiver.wake();
    }
}

impl Drop for RelaySender {
    fn drop(&mut self) {
        let mut state = self.buffer.lock();
        state.is_sender_gone = true;
        wake(state);
    }
}

/// The side of the connection.
#[derive(Debug)]
pub(crate) struct RelayReceiver {
    buffer: Arc<RelayBuffer>,
    /// Since the last bytes were returned, the connection has not waited, so it may not have sent them.
    may_be_unsent: bool,
}

impl RelayReceiver {
    /// Everything that waits, as one chunk. None after the end.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let mut state = self.buffer.lock();
        if let Some(bytes) = state.waiting.take() {
            drop(state);
            self.buffer.sender.notify_one();
            self.may_be_unsent = true;
            return Poll::Ready(Some(Ok(bytes)));
        }
        // An error closes the connection, which then drops the bytes that it has not sent. So it gets one chance to
        // send them; a client that is too slow to take them loses the last ones of a reply that is incomplete anyway.
        if state.failure.is_some() && std::mem::take(&mut self.may_be_unsent) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(why) = state.failure.take() {
            return Poll::Ready(Some(Err(why)));
        }
        if state.is_sender_gone {
            return Poll::Ready(None);
        }
        self.may_be_unsent = false;
        match &state.receiver {
            Some(known) if known.will_wake(context.waker()) => (),
            Some(_) | None => state.receiver = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for RelayReceiver {
    fn drop(&mut self) {
        self.buffer.lock().is_receiver_gone = true;
        self.buffer.sender.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use super::*;

    async fn next(receiver: &mut RelayReceiver) -> Option<io::Result<Bytes>> {
        poll_fn(|context| receiver.poll_next(context)).await
    }

    #[tokio::test]
    async fn g6_bytes_that_wait_are_sent_as_one_chunk() {
        let (sender, mut receiver) = relay_buffer();
        for piece in ["a", "bc", "d"] {
            sender.send(Bytes::from_static(piece.as_bytes())).await.unwrap();
        }
        assert_eq!(next(&mut receiver).await.unwrap().unwrap(), "abcd");
        sender.send(Bytes::from_static(b"e")).await.unwrap();
        sender.fail(io::Error::other("broken"));
        drop(sender);
        assert_eq!(next(&mut receiver).await.unwrap().unwrap(), "e");
        let mut context = Context::from_waker(Waker::noop());
        assert!(receiver.poll_next(&mut context).is_pending(), "the connection must send it first");
        assert_eq!(next(&mut receiver).await.unwrap().unwrap_err().to_string(), "broken");
        assert!(next(&mut receiver).await.is_none());
    }

    #[tokio::test]
    async fn g6_a_slow_client_holds_up_the_provider() {
        let (sender, mut receiver) = relay_buffer();
        let chunk = Bytes::from(vec![0; 64 << 10]);
        let writer = tokio::spawn(async move {
            for _ in 0..100 {
                sender.send(chunk.clone()).await.unwrap();
            }
        });
        let mut total = 0;
        while let Some(bytes) = next(&mut receiver).await {
            let bytes = bytes.unwrap();
            assert!(bytes.len() <= 256 << 10, "{} bytes waited", bytes.len());
            total += bytes.len();
            tokio::task::yield_now().await;
        }
        writer.await.unwrap();
        assert_eq!(total, 100 * (64 << 10));
    }

    #[tokio::test]
    async fn g6_a_client_that_leaves_ends_both_waits() {
        let (sender, receiver) = relay_buffer();
        sender.send(Bytes::from(vec![0; MAX_WAITING_BYTES])).await.unwrap();
        let blocked = tokio::spawn(async move {
            let refused = sender.send(Bytes::from_static(b"x")).await;
            sender.closed().await;
            refused
        });
        tokio::task::yield_now().await;
        drop(receiver);
        let refused = tokio::time::timeout(Duration::from_secs(60), blocked).await.unwrap().unwrap();
        assert_eq!(refused, Err(ClientGone));
    }
}
