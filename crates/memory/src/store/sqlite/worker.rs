//! A thread with a connection of its own. SQLite blocks, and an async task must
//! not.

use std::sync::mpsc;
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::store::StoreFuture;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Runs jobs one after the other, until it is dropped.
pub(super) struct Worker {
    /// None only while it is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Worker {
    pub(super) fn start(mut connection: Connection, name: &str) -> std::io::Result<Worker> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            for job in queue {
                job(&mut connection);
            }
        })?;
        Ok(Worker { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs a job. It starts at once, even if the result is not awaited.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let (result, done) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // Nobody may be waiting any more.
            let _unread = result.send(work(connection));
        });
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        Box::pin(async move {
            let down = |problem: String| Err(StoreError::Down(problem));
            if !sent {
                return down("its thread has ended".to_owned());
            }
            match done.await {
                Ok(Ok(result)) => Ok(result),
                Ok(Err(error)) => down(error.to_string()),
                Err(_) => down("its thread has ended".to_owned()),
            }
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        // What is queued is still written.
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}
