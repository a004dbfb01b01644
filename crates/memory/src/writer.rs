//! Writes rows in groups. A reply in the journal is durable and can wait for others; without a
//! journal it is written at once. If the store is down, rows wait in a bounded file, so
//! that requests are not held up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::journal::{Journal, JournalNumber};
use crate::read_gate::ReadGate;
use crate::reply_id::ReplyId;
use crate::spill::Spill;
use crate::store::{Store, WriteRow};
use crate::stored_reply::SharedReply;
use crate::tenant::TenantId;
use crate::unstored::UnstoredReplies;

/// How long rows may wait for others if no client waits for them. All others are written at once, together with everything that
/// has arrived while the write before it ran.
const GROUP_TIME: Duration = Duration::from_millis(250);
/// The same if other processes use the database: they see receipts only in the tables.
const SHARED_GROUP_TIME: Duration = Duration::from_millis(50);
/// When a group has this many rows or bytes, it is written at once.
const MAX_GROUP_ROWS: usize = 4096;
const MAX_GROUP_BYTES: u64 = 8 << 20;
/// After this time without rows, a journal whose rows are all in the tables is emptied.
const IDLE_TIME: Duration = Duration::from_millis(200);
const SHARED_IDLE_TIME: Duration = Duration::from_millis(1);
/// The bytes that may wait in memory. More than that goes to the file.
const MAX_QUEUED_BYTES: u64 = 64 << 20;
/// The first and the longest pause between two attempts while the store is down.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// The store has it.
    Stored,
    /// It waits in the file, or it was lost because that is full.
    StoreIsDown,
}

/// A reply that has been queued.
#[derive(Debug)]
pub(crate) enum QueuedReply {
    /// It is in the journal.
    Durable,
    /// The result arrives when it is stored or waiting in the file.
    Waiting(oneshot::Receiver<WriteEnd>),
}

/// What the writer has to do.
enum WriteJob {
    /// Somebody waits for these.
    Rows(Vec<WriteRow>, oneshot::Sender<WriteEnd>),
    /// A reply that is in the journal.
    Journaled {
        row: WriteRow,
        number: JournalNumber,
        /// Set if somebody waits all the same.
        end: Option<oneshot::Sender<WriteEnd>>,
    },
    /// Answered when everything before it has been tried once.
    Flush(oneshot::Sender<()>),
}

/// The numbers that health checks read.
#[derive(Debug, Default)]
pub(crate) struct WriterStatus {
    pub(crate) is_down: AtomicBool,
    /// Rows in memory and in the file.
    queued_rows: AtomicU64,
    /// Those in memory that concern replies and are not in the journal.
    queued_replies: AtomicU64,
    spilled_rows: AtomicU64,
    pub(crate) lost_rows: AtomicU64,
    queued_bytes: AtomicU64,
}

impl WriterStatus {
    /// Whether replies are on their way to a store that works, as far as is known.
    pub(crate) fn has_queued(&self) -> bool {
        self.queued_replies.load(Ordering::Relaxed) > 0 && !self.is_down.load(Ordering::Relaxed)
    }

    /// Whether a reply may be missing from the store.
    pub(crate) fn lags_behind(&self) -> bool {
        self.queued_replies.load(Ordering::Relaxed) + self.spilled_rows.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn lag_rows(&self) -> u64 {
        self.queued_rows.load(Ordering::Relaxed) + self.spilled_rows.load(Ordering::Relaxed)
    }
}

/// Sends rows to the writer's task.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: mpsc::UnboundedSender<WriteJob>,
    pub(crate) status: Arc<WriterStatus>,
    pub(crate) unstored: Arc<UnstoredReplies>,
    journal: Option<Arc<Journal>>,
}

/// The files beside a store.
#[derive(Default)]
pub(crate) struct WriterFiles {
    /// None if replies are written at once.
    pub(crate) journal: Option<Journal>,
    /// None if rows are lost while the store is down.
    pub(crate) spill: Option<Spill>,
}

impl Writer {
    pub(crate) fn start(store: Arc<dyn Store>, files: WriterFiles, reads: Arc<ReadGate>) -> Writer {
        let (jobs, queue) = mpsc::unbounded_channel();
        let status = Arc::new(WriterStatus::default());
        let unstored = Arc::new(UnstoredReplies::default());
        let journal = files.journal.map(Arc::new);
        let task = WriterTask {
            store,
            spill: files.spill,
            journal: journal.clone(),
            unstored: Arc::clone(&unstored),
            reads,
            queue,
            status: Arc::clone(&status),
            pause: FIRST_PAUSE,
        };
        drop(tokio::spawn(task.run()));
        Writer { jobs, status, unstored, journal }
    }

    /// Queues a reply. While the store works, it is durable at once if there is a journal.
    pub(crate) fn write_reply(&self, tenant: TenantId, reply: &SharedReply, row: WriteRow) -> QueuedReply {
        if !self.reserve(std::slice::from_ref(&row)) {
            return QueuedReply::Waiting(ended());
        }
        let is_used = |journal: &&Arc<Journal>| !self.status.is_down.load(Ordering::Relaxed) && !journal.was_shared();
        let journal = self.journal.as_ref().filter(is_used);
        let Some((journal, number)) = journal.and_then(|journal| Some((journal, journal.append(&row)?))) else {
            return QueuedReply::Waiting(self.queue(vec![row]));
        };
        // Before it is queued: the writer removes it again.
        self.unstored.add(tenant, reply);
        // A process that has started in the meantime waits until the journal is empty, but the client must wait too.
        let (end, queued) = if journal.is_shared() {
            let (end, done) = oneshot::channel();
            (Some(end), QueuedReply::Waiting(done))
        } else {
            (None, QueuedReply::Durable)
        };
        match self.jobs.send(WriteJob::Journaled { row, number, end }) {
            Ok(()) => queued,
            Err(_) => QueuedReply::Waiting(ended()),
        }
    }

    /// Queues rows. The result arrives when they are stored or waiting in the file.
    pub(crate) fn write(&self, rows: Vec<WriteRow>) -> oneshot::Receiver<WriteEnd> {
        // If the journal has the reply, it must not come back after a sudden end.
        if let Some(journal) = &self.journal {
            for row in rows.iter().filter(|row| matches!(row, WriteRow::Forget { .. } | WriteRow::Rejected { .. })) {
                if let Some(number) = journal.append(row) {
                    journal.stored(number);
                }
            }
        }
        if self.reserve(&rows) { self.queue(rows) } else { ended() }
    }

    /// Counts rows as queued. False if there is no room for them.
    fn reserve(&self, rows: &[WriteRow]) -> bool {
        let bytes = weight(rows);
        let queued = self.status.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if queued + bytes > MAX_QUEUED_BYTES {
            self.status.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.status.lost_rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
            return false;
        }
        self.status.queued_rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
        true
    }

    fn queue(&self, rows: Vec<WriteRow>) -> oneshot::Receiver<WriteEnd> {
        let (end, done) = oneshot::channel();
        self.status.queued_replies.fetch_add(n_awaited(&rows), Ordering::Relaxed);
        if let Err(mpsc::error::SendError(WriteJob::Rows(_, end))) = self.jobs.send(WriteJob::Rows(rows, end)) {
            let _unread = end.send(WriteEnd::StoreIsDown);
        }
        done
    }

    /// Waits until everything queued so far was tried.
    pub(crate) async fn flush(&self) {
        let (end, done) = oneshot::channel();
        if self.jobs.send(WriteJob::Flush(end)).is_ok() {
            // The task answers or has ended.
            let _answered = done.await;
        }
    }
}

fn weight(rows: &[WriteRow]) -> u64 {
    rows.iter().map(|row| row.weight() as u64).sum()
}

fn n_awaited(rows: &[WriteRow]) -> u64 {
    rows.iter().filter(|row| row.is_awaited()).count() as u64
}

/// The result of rows that are not written.
fn ended() -> oneshot::Receiver<WriteEnd> {
    let (end, done) = oneshot::channel();
    let _unread = end.send(WriteEnd::StoreIsDown);
    done
}

/// How long rows may wait for others. Without a journal, other processes may use the database.
fn group_time(journal: Option<&Journal>) -> Duration {
    if journal.is_none_or(Journal::was_shared) { SHARED_GROUP_TIME } else { GROUP_TIME }
}

struct WriterTask {
    store: Arc<dyn Store>,
    spill: Option<Spill>,
    journal: Option<Arc<Journal>>,
    unstored: Arc<UnstoredReplies>,
    reads: Arc<ReadGate>,
    queue: mpsc::UnboundedReceiver<WriteJob>,
    status: Arc<WriterStatus>,
    pause: Duration,
}

/// Rows that are written together, and who waits for them.
#[derive(Default)]
struct Group {
    rows: Vec<WriteRow>,
    bytes: u64,
    /// How many of them are replies that are not in the journal.
    n_awaited: u64,
    journaled: Vec<(TenantId, ReplyId, JournalNumber)>,
    /// Somebody waits for one of those.
    is_urgent: bool,
    ends: Vec<oneshot::Sender<WriteEnd>>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_GROUP_ROWS || self.bytes >= MAX_GROUP_BYTES
    }

    /// Whether somebody waits for it.
    fn is_awaited(&self) -> bool {
        !self.flushed.is_empty() || self.n_awaited > 0 || self.is_urgent
    }

    fn add(&mut self, job: WriteJob) {
        match job {
            WriteJob::Rows(rows, end) => {
                self.n_awaited += n_awaited(&rows);
                self.bytes += weight(&rows);
                self.rows.extend(rows);
                self.ends.push(end);
            }
            WriteJob::Journaled { row, number, end } => {
                self.is_urgent |= end.is_some();
                self.ends.extend(end);
                if let WriteRow::Reply { row, .. } = &row {
                    self.journaled.push((row.tenant, row.reply, number));
                }
                self.bytes += row.weight() as u64;
                self.rows.push(row);
            }
            WriteJob::Flush(end) => self.flushed.push(end),
        }
    }
}

impl WriterTask {
    async fn run(mut self) {
        self.publish();
        let mut retry_at = Instant::now();
        loop {
            let has_spilled = self.spill.as_ref().is_some_and(|spill| spill.len() > 0);
            let has_old_rows = self.journal.as_ref().is_some_and(|journal| journal.can_be_emptied());
            let empty_at = Instant::now() + self.idle_time();
            let next = self.queue.recv();
            let job = match (has_spilled, has_old_rows) {
                (true, _) => timeout_at(retry_at, next).await,
                (false, true) => timeout_at(empty_at, next).await,
                (false, false) => Ok(next.await),
            };
            match job {
                Ok(Some(job)) => {
                    self.write_group(job, &mut retry_at).await;
                    // Under constant load, the old rows must be written too.
                    if has_spilled && Instant::now() >= retry_at {
                        self.write_spilled(&mut retry_at).await;
                    }
                }
                Ok(None) => return,
                Err(_) if has_spilled => self.write_spilled(&mut retry_at).await,
                Err(_) => self.journal.iter().for_each(|journal| journal.empty()),
            }
            self.publish();
        }
    }

    /// How long to wait for more rows before the journal is emptied.
    fn idle_time(&self) -> Duration {
        // A process that has just started waits until it is empty.
        let is_shared = self.journal.as_ref().is_some_and(|journal| journal.is_shared());
        if is_shared { SHARED_IDLE_TIME } else { IDLE_TIME }
    }

    async fn write_group(&mut self, first: WriteJob, retry_at: &mut Instant) {
        let mut group = Group::default();
        group.add(first);
        let end = Instant::now() + group_time(self.journal.as_deref());
        while !group.is_full() {
            if let Ok(job) = self.queue.try_recv() {
                group.add(job);
            } else if group.is_awaited() {
                break;
            } else {
                let Ok(Some(job)) = timeout_at(end, self.queue.recv()).await else { break };
                group.add(job);
            }
        }
        let Group { rows, bytes, n_awaited, journaled, ends, flushed, is_urgent: _ } = group;
        let rows = Arc::new(rows);
        // While the store is down, only retries access it.
        let is_down = self.status.is_down.load(Ordering::Relaxed) && Instant::now() < *retry_at;
        let outcome = if rows.is_empty() {
            WriteEnd::Stored
        } else if !is_down && self.store.write(Arc::clone(&rows)).await.is_ok() {
            self.came_up();
            WriteEnd::Stored
        } else {
            if !is_down {
                self.went_down(retry_at);
            }
            let lost = match &mut self.spill {
                Some(spill) => spill.add(&rows),
                None => rows.len() as u64,
            };
            self.status.lost_rows.fetch_add(lost, Ordering::Relaxed);
            WriteEnd::StoreIsDown
        };
        self.status.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.status.queued_rows.fetch_sub(rows.len() as u64, Ordering::Relaxed);
        self.status.queued_replies.fetch_sub(n_awaited, Ordering::Relaxed);
        self.publish();
        for (tenant, reply, number) in journaled {
            self.unstored.remove(tenant, reply);
            self.journal.iter().for_each(|journal| journal.stored(number));
        }
        for end in ends {
            let _unread = end.send(outcome);
        }
        for end in flushed {
            let _unread = end.send(());
        }
    }

    /// Moves the oldest rows of the file into the store.
    async fn write_spilled(&mut self, retry_at: &mut Instant) {
        let Some(spill) = &mut self.spill else { return };
        let Ok(batch) = spill.oldest() else {
            self.went_down(retry_at);
            return;
        };
        if self.store.write(Arc::clone(&batch.rows)).await.is_err() || spill.remove(&batch).is_err() {
            self.went_down(retry_at);
        } else {
            self.came_up();
            *retry_at = Instant::now();
        }
    }

    fn came_up(&mut self) {
        self.status.is_down.store(false, Ordering::Relaxed);
        self.reads.reopen();
        self.pause = FIRST_PAUSE;
    }

    fn went_down(&mut self, retry_at: &mut Instant) {
        self.status.is_down.store(true, Ordering::Relaxed);
        *retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    fn publish(&self) {
        let spilled = self.spill.as_ref().map_or(0, Spill::len);
        self.status.spilled_rows.store(spilled, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
