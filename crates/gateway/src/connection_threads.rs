//! The threads that serve connections. A connection stays on one thread, with the requests to providers that it causes, so
//! a chunk on its way from a provider to a client wakes no other core.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc;

/// How long the end of a thread waits for work that cannot be interrupted, such as reading a file.
const END_TIME: Duration = Duration::from_millis(100);

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

thread_local! {
    static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The number of this thread, from 0. None if it does not serve connections.
pub(crate) fn number() -> Option<usize> {
    NUMBER.get()
}

/// The threads of a gateway.
#[derive(Debug)]
pub(crate) struct ConnectionThreads {
    threads: Vec<ConnectionThread>,
}

#[derive(Debug)]
struct ConnectionThread {
    work: mpsc::UnboundedSender<Work>,
    n_running: Arc<AtomicUsize>,
    handle: JoinHandle<()>,
}

impl ConnectionThreads {
    pub(crate) fn start(count: usize) -> io::Result<ConnectionThreads> {
        let threads = (0..count).map(ConnectionThread::start).collect::<io::Result<_>>()?;
        Ok(ConnectionThreads { threads })
    }

    /// Runs a future on the thread that has the fewest.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let n_running = |thread: &&ConnectionThread| thread.n_running.load(Ordering::Relaxed);
        let Some(thread) = self.threads.iter().min_by_key(n_running) else { return };
        let running = Running::new(&thread.n_running);
        let work = async move {
            work.await;
            drop(running);
        };
        // The thread ends only in `end`, unless it panicked; then its connections are closed, like all that it had.
        drop(thread.work.send(Box::pin(work)));
    }

    /// Drops what is still running, and waits for the threads.
    pub(crate) async fn end(self) {
        let handles: Vec<JoinHandle<()>> = self.threads.into_iter().map(|thread| thread.handle).collect();
        let joined = tokio::task::spawn_blocking(move || handles.into_iter().try_for_each(JoinHandle::join));
        // A thread that panicked has said so.
        drop(joined.await);
    }
}

impl ConnectionThread {
    fn start(number: usize) -> io::Result<ConnectionThread> {
        let (sender, mut queue) = mpsc::unbounded_channel::<Work>();
        let (tell, started) = std::sync::mpsc::channel();
        let serve = move || {
            // Created here: dropping a runtime in async code panics, which would happen if the thread could not be started.
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error))),
            };
            drop(tell.send(Ok(())));
            NUMBER.set(Some(number));
            runtime.block_on(async {
                while let Some(work) = queue.recv().await {
                    drop(tokio::spawn(work));
                }
            });
            runtime.shutdown_timeout(END_TIME);
        };
        let handle = std::thread::Builder::new().name(format!("connections-{number}")).spawn(serve)?;
        started.recv().map_err(io::Error::other)??;
        Ok(ConnectionThread { work: sender, n_running: Arc::default(), handle })
    }
}

/// Counts as running until it is dropped.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Running {
        count.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_are_spread_over_the_threads_and_end_with_them() {
        let threads = ConnectionThreads::start(3).unwrap();
        let (numbers, mut found) = mpsc::unbounded_channel();
        for _ in 0..6 {
            let numbers = numbers.clone();
            threads.spawn(async move {
                numbers.send(number().unwrap()).unwrap();
                std::future::pending::<()>().await;
            });
        }
        drop(numbers);
        let mut seen = vec![0; 3];
        for _ in 0..6 {
            seen[found.recv().await.unwrap()] += 1;
        }
        assert!(seen.iter().all(|n| *n == 2), "{seen:?}");
        threads.end().await;
        assert_eq!(found.recv().await, None, "what was running is dropped");
        assert_eq!(number(), None);
    }
}
