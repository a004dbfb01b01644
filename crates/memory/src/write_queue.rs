//! The jobs of the writer, in their order. A job that can wait does not wake a writer that gathers a group: waking its
//! task for every reply would cost more than the reply's part of the group.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// When this many jobs or bytes wait, a group need not wait for more.
pub(crate) const MAX_GROUP_JOBS: usize = 4096;
pub(crate) const MAX_GROUP_BYTES: u64 = 8 << 20;

/// Whether somebody waits for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    Now,
    CanWait,
}

/// Creates a queue.
pub(crate) fn write_queue<T>() -> (JobSender<T>, JobQueue<T>) {
    let state = State { jobs: VecDeque::new(), bytes: 0, n_urgent: 0, receiver: Receiver::Busy, is_closed: false };
    let shared = Arc::new(Shared { state: Mutex::new(state), wake: Notify::new() });
    (JobSender(Arc::new(Sender(Arc::clone(&shared)))), JobQueue(shared))
}

struct Shared<T> {
    state: Mutex<State<T>>,
    wake: Notify,
}

struct State<T> {
    jobs: VecDeque<Queued<T>>,
    bytes: u64,
    n_urgent: usize,
    receiver: Receiver,
    /// The other side is gone.
    is_closed: bool,
}

struct Queued<T> {
    job: T,
    bytes: u64,
    urgency: Urgency,
}

/// What the receiver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// It looks at the queue before it waits.
    Busy,
    WaitsForAny,
    WaitsForGroup,
}

impl<T> State<T> {
    fn has_group(&self) -> bool {
        self.n_urgent > 0 || self.jobs.len() >= MAX_GROUP_JOBS || self.bytes >= MAX_GROUP_BYTES
    }

    fn pop(&mut self) -> Option<T> {
        let Queued { job, bytes, urgency } = self.jobs.pop_front()?;
        self.bytes -= bytes;
        self.n_urgent -= usize::from(urgency == Urgency::Now);
        self.receiver = Receiver::Busy;
        Some(job)
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.wake.notify_one();
    }
}

/// The side that adds jobs. The queue ends with the last clone.
pub(crate) struct JobSender<T>(Arc<Sender<T>>);

impl<T> Clone for JobSender<T> {
    fn clone(&self) -> JobSender<T> {
        JobSender(Arc::clone(&self.0))
    }
}

struct Sender<T>(Arc<Shared<T>>);

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T> JobSender<T> {
    /// Adds a job. If the receiver is gone, the job is returned.
    pub(crate) fn send(&self, job: T, bytes: u64, urgency: Urgency) -> Result<(), T> {
        let shared = &self.0.0;
        let mut state = shared.lock();
        if state.is_closed {
            return Err(job);
        }
        state.jobs.push_back(Queued { job, bytes, urgency });
        state.bytes += bytes;
        state.n_urgent += usize::from(urgency == Urgency::Now);
        let wakes = match state.receiver {
            Receiver::Busy => false,
            Receiver::WaitsForAny => true,
            Receiver::WaitsForGroup => state.has_group(),
        };
        if wakes {
            state.receiver = Receiver::Busy;
            drop(state);
            shared.wake.notify_one();
        }
        Ok(())
    }
}

/// The side of the writer.
pub(crate) struct JobQueue<T>(Arc<Shared<T>>);

impl<T> JobQueue<T> {
    /// The next job. None if there is none and no sender is left.
    pub(crate) async fn recv(&mut self) -> Option<T> {
        loop {
            {
                let mut state = self.0.lock();
                if let Some(job) = state.pop() {
                    return Some(job);
                }
                if state.is_closed {
                    return None;
                }
                state.receiver = Receiver::WaitsForAny;
            }
            self.0.wake.notified().await;
        }
    }

    pub(crate) fn try_recv(&mut self) -> Option<T> {
        self.0.lock().pop()
    }

    /// Waits until somebody waits for a job, enough jobs wait for a group, or no sender is left.
    pub(crate) async fn group(&mut self) {
        loop {
            {
                let mut state = self.0.lock();
                if state.has_group() || state.is_closed {
                    return;
                }
                state.receiver = Receiver::WaitsForGroup;
            }
            self.0.wake.notified().await;
        }
    }
}

impl<T> Drop for JobQueue<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        // Whoever waits for the end of a job learns that it has none.
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(work: impl Future) -> bool {
        pin!(work).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_job_that_can_wait_does_not_wake_a_writer_that_gathers_a_group() {
        let (sender, mut queue) = write_queue();
        assert!(!is_ready(queue.recv()));
        sender.send(1, 10, Urgency::CanWait).unwrap();
        assert!(is_ready(queue.0.wake.notified()), "it waits for any job");
        assert_eq!(queue.try_recv(), Some(1));
        assert!(!is_ready(queue.group()));
        sender.send(2, 10, Urgency::CanWait).unwrap();
        assert!(!is_ready(queue.0.wake.notified()) && !is_ready(queue.group()));
        sender.send(3, 10, Urgency::Now).unwrap();
        assert!(is_ready(queue.0.wake.notified()) && is_ready(queue.group()));
        assert_eq!((queue.try_recv(), queue.try_recv(), queue.try_recv()), (Some(2), Some(3), None));
        sender.send(4, MAX_GROUP_BYTES, Urgency::CanWait).unwrap();
        assert!(is_ready(queue.group()), "enough bytes");
        assert_eq!(queue.try_recv(), Some(4));
        for n in 0..MAX_GROUP_JOBS {
            assert_eq!(is_ready(queue.group()), n >= MAX_GROUP_JOBS);
            sender.send(n, 0, Urgency::CanWait).unwrap();
        }
        assert!(is_ready(queue.group()), "enough jobs");
    }

    #[tokio::test]
    async fn jobs_come_in_their_order_and_the_ends_are_noticed() {
        let (sender, mut queue) = write_queue();
        for n in 0..3 {
            sender.clone().send(n, 1, Urgency::CanWait).unwrap();
        }
        drop(sender);
        let mut found = Vec::new();
        while let Some(n) = queue.recv().await {
            found.push(n);
        }
        assert_eq!(found, [0, 1, 2]);
        queue.group().await;
        let (sender, queue) = write_queue();
        drop(queue);
        assert_eq!(sender.send(1, 1, Urgency::Now), Err(1));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_job_is_missed_while_the_writer_begins_to_wait() {
        let (sender, mut queue) = write_queue();
        let jobs = 20_000;
        let sending = tokio::task::spawn_blocking(move || {
            for n in 0..jobs {
                sender.send(n, 1, if n % 7 == 0 { Urgency::Now } else { Urgency::CanWait }).unwrap();
            }
        });
        let mut n_found = 0;
        while let Some(n) = queue.recv().await {
            assert_eq!(n, n_found);
            n_found += 1;
            queue.group().await;
        }
        assert_eq!(n_found, jobs);
        sending.await.unwrap();
    }
}
