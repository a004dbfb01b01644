//! Writes rows in groups. A reply in the journal is durable and can wait for others; without a
//! journal it is written at once. If the store is down, rows wait in a bounded file, so
//! that requests are not held up.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::journal::{Appended, Journal, JournalNumber, OtherJournal};
use crate::read_gate::ReadGate;
use crate::spill::Spill;
use crate::store::{Store, WriteRow};
use crate::stored_reply::SharedReply;
use crate::tenant::TenantId;
use crate::unstored::UnstoredReplies;
use crate::write_queue::{JobQueue, JobSender, MAX_GROUP_BYTES, MAX_GROUP_JOBS, Urgency, write_queue};

/// How long rows may wait for others if no client waits for them. All others are written at once, together with everything that
/// has arrived while the write before it ran.
const GROUP_TIME: Duration = Duration::from_millis(250);
/// The same if other processes use the database: they see receipts only in the tables.
const SHARED_GROUP_TIME: Duration = Duration::from_millis(50);
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
    /// It waits in a file.
    Waiting,
    /// There was no room for it.
    Lost,
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
    /// Rows in memory.
    queued_rows: AtomicU64,
    spilled_rows: AtomicU64,
    pub(crate) lost_rows: AtomicU64,
    queued_bytes: AtomicU64,
}

impl WriterStatus {
    pub(crate) fn lag_rows(&self) -> u64 {
        self.queued_rows.load(Ordering::Relaxed) + self.spilled_rows.load(Ordering::Relaxed)
    }
}

/// Sends rows to the writer's task.
#[derive(Clone)]
pub(crate) struct Writer {
    jobs: JobSender<WriteJob>,
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
        let (jobs, queue) = write_queue();
        let status = Arc::new(WriterStatus::default());
        let unstored = Arc::new(UnstoredReplies::default());
        files.spill.iter().for_each(|spill| note_spilled(spill, &unstored));
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
            kept: VecDeque::new(),
        };
        task.publish();
        drop(tokio::spawn(task.run()));
        Writer { jobs, status, unstored, journal }
    }

    /// Queues a reply. While the store works, it is durable at once if there is a journal.
    pub(crate) fn write_reply(&self, tenant: TenantId, reply: &SharedReply, row: WriteRow) -> QueuedReply {
        if !self.reserve(std::slice::from_ref(&row)) {
            self.unstored.lost(tenant, reply.id, &reply.keys);
            return QueuedReply::Waiting(ended());
        }
        // Before it is queued: the writer removes it again.
        self.unstored.add(tenant, reply);
        // Also beside other processes: they cannot see the row there, but it survives the end of this one.
        let journal = self.journal.as_ref().filter(|_| !self.status.is_down.load(Ordering::Relaxed));
        let Some(Appended { number, is_shared }) = journal.and_then(|journal| journal.append(&row)) else {
            return QueuedReply::Waiting(self.queue(vec![row]));
        };
        let (end, queued) = if is_shared {
            let (end, done) = oneshot::channel();
            (Some(end), QueuedReply::Waiting(done))
        } else {
            (None, QueuedReply::Durable)
        };
        let urgency = if end.is_some() { Urgency::Now } else { Urgency::CanWait };
        let bytes = row.weight() as u64;
        match self.jobs.send(WriteJob::Journaled { row, number, end }, bytes, urgency) {
            Ok(()) => queued,
            Err(_) => QueuedReply::Waiting(ended()),
        }
    }

    /// Queues rows. The result arrives when they are stored or waiting in the file.
    pub(crate) fn write(&self, rows: Vec<WriteRow>) -> oneshot::Receiver<WriteEnd> {
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
        let urgency = if rows.iter().any(WriteRow::is_awaited) { Urgency::Now } else { Urgency::CanWait };
        let bytes = weight(&rows);
        if let Err(WriteJob::Rows(_, end)) = self.jobs.send(WriteJob::Rows(rows, end), bytes, urgency) {
            let _unread = end.send(WriteEnd::Lost);
        }
        done
    }

    /// Waits until everything queued so far was tried.
    pub(crate) async fn flush(&self) {
        let (end, done) = oneshot::channel();
        if self.jobs.send(WriteJob::Flush(end), 0, Urgency::Now).is_ok() {
            // The task answers or has ended.
            let _answered = done.await;
        }
    }
}

fn weight(rows: &[WriteRow]) -> u64 {
    rows.iter().map(|row| row.weight() as u64).sum()
}

/// Notes what other processes have left in the file.
fn note_spilled(spill: &Spill, unstored: &UnstoredReplies) {
    // A file that cannot be read is reported as an outage.
    let _unreadable = spill.each(|row| match row {
        WriteRow::Reply { row, keys } => unstored.spilled(row.tenant, row.reply, &keys),
        WriteRow::Forget { tenant, reply, .. } => unstored.forget(tenant, reply),
        WriteRow::Touch { .. } | WriteRow::Rejected { .. } | WriteRow::Receipt(_) => (),
    });
}

/// Stores what processes have left that have ended. False if something could not be stored; its files stay.
async fn store_ended(store: &dyn Store, ended: Vec<OtherJournal>) -> bool {
    for mut other in ended {
        let rows = Arc::new(std::mem::take(&mut other.rows));
        if store.write_late(rows).await.is_err() || other.are_stored().is_err() {
            return false;
        }
    }
    true
}

/// The result of rows that are not written.
fn ended() -> oneshot::Receiver<WriteEnd> {
    let (end, done) = oneshot::channel();
    let _unread = end.send(WriteEnd::Lost);
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
    queue: JobQueue<WriteJob>,
    status: Arc<WriterStatus>,
    pause: Duration,
    /// Rows of the journal that the store did not take, oldest first.
    kept: VecDeque<WrittenGroup>,
}

/// Rows that were given to the store together.
#[derive(Default)]
struct WrittenGroup {
    rows: Arc<Vec<WriteRow>>,
    /// For each row, the journal's file that has it.
    numbers: Vec<Option<JournalNumber>>,
    bytes: u64,
}

impl WrittenGroup {
    fn push(&mut self, row: WriteRow, number: JournalNumber) {
        self.bytes += row.weight() as u64;
        Arc::make_mut(&mut self.rows).push(row);
        self.numbers.push(Some(number));
    }
}

/// Rows with the journal's files that have them, if any.
type GroupedRows = Vec<(WriteRow, Option<JournalNumber>)>;

/// Rows that are written together, and who waits for them.
#[derive(Default)]
struct Group {
    rows: GroupedRows,
    bytes: u64,
    /// Somebody waits for one of them.
    is_urgent: bool,
    /// Who waits for which of the rows.
    ends: Vec<(Range<usize>, oneshot::Sender<WriteEnd>)>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.rows.len() >= MAX_GROUP_JOBS || self.bytes >= MAX_GROUP_BYTES
    }

    /// Whether somebody waits for it.
    fn is_awaited(&self) -> bool {
        !self.flushed.is_empty() || self.is_urgent
    }

    fn add(&mut self, job: WriteJob) {
        match job {
            WriteJob::Rows(rows, end) => {
                self.is_urgent |= rows.iter().any(WriteRow::is_awaited);
                self.bytes += weight(&rows);
                let first = self.rows.len();
                self.rows.extend(rows.into_iter().map(|row| (row, None)));
                self.ends.push((first..self.rows.len(), end));
            }
            WriteJob::Journaled { row, number, end } => {
                self.is_urgent |= end.is_some();
                self.bytes += row.weight() as u64;
                let at = self.rows.len();
                self.rows.push((row, Some(number)));
                self.ends.extend(end.map(|end| (at..at + 1, end)));
            }
            WriteJob::Flush(end) => self.flushed.push(end),
        }
    }
}

impl WriterTask {
    async fn run(mut self) {
        let mut retry_at = Instant::now();
        loop {
            let has_waiting = self.has_waiting();
            let next = self.queue.recv();
            let job = if has_waiting { timeout_at(retry_at, next).await } else { Ok(next.await) };
            match job {
                Ok(Some(job)) => {
                    self.write_group(job, &mut retry_at).await;
                    // Under constant load, the old rows must be written too.
                    if has_waiting && Instant::now() >= retry_at {
                        self.write_waiting(&mut retry_at).await;
                    }
                }
                Ok(None) => return,
                Err(_) => self.write_waiting(&mut retry_at).await,
            }
            self.check_ended().await;
            self.publish();
        }
    }

    /// Stores what processes have left that have ended, and notices that this one is alone again.
    async fn check_ended(&mut self) {
        let Some(journal) = self.journal.clone() else { return };
        let Some(ended) = journal.check_ended() else { return };
        if let Some(spill) = &mut self.spill
            && spill.recount().is_ok_and(|changed| changed)
        {
            note_spilled(spill, &self.unstored);
        }
        let are_stored = match ended {
            Ok(ended) => store_ended(self.store.as_ref(), ended).await,
            Err(_) => false,
        };
        if are_stored { journal.were_checked() } else { journal.check_again() }
    }

    async fn write_group(&mut self, first: WriteJob, retry_at: &mut Instant) {
        let mut group = Group::default();
        group.add(first);
        let end = Instant::now() + group_time(self.journal.as_deref());
        if !group.is_awaited() {
            // Whether there are enough or the time is over, what has arrived is written.
            let _enough = timeout_at(end, self.queue.group()).await;
        }
        while !group.is_full()
            && let Some(job) = self.queue.try_recv()
        {
            group.add(job);
        }
        let Group { rows, bytes, ends, flushed, is_urgent: _ } = group;
        let (rows, numbers): (Vec<WriteRow>, Vec<Option<JournalNumber>>) = rows.into_iter().unzip();
        let group = WrittenGroup { rows: Arc::new(rows), numbers, bytes };
        // While the store is down, only retries access it.
        let is_down = self.status.is_down.load(Ordering::Relaxed) && Instant::now() < *retry_at;
        // None if all are stored.
        let kept = if group.rows.is_empty() {
            None
        } else if !is_down && self.store.write(Arc::clone(&group.rows)).await.is_ok() {
            self.came_up();
            self.is_stored(&group);
            None
        } else {
            if !is_down {
                self.went_down(retry_at);
            }
            Some(self.keep(group))
        };
        self.publish();
        for (rows, end) in ends {
            let outcome = match &kept {
                None => WriteEnd::Stored,
                Some(kept) if kept.get(rows).is_some_and(|kept| !kept.contains(&false)) => WriteEnd::Waiting,
                Some(_) => WriteEnd::Lost,
            };
            let _unread = end.send(outcome);
        }
        for end in flushed {
            let _unread = end.send(());
        }
    }

    /// Notes that the tables have a group.
    fn is_stored(&self, group: &WrittenGroup) {
        self.unqueue(group.rows.len(), group.bytes);
        self.are_stored(&group.rows);
        if let Some(journal) = &self.journal {
            group.numbers.iter().flatten().for_each(|number| journal.stored(*number));
            journal.empty();
        }
    }

    fn are_stored(&self, rows: &[WriteRow]) {
        for row in rows {
            match row {
                WriteRow::Reply { row, .. } => self.unstored.remove(row.tenant, row.reply),
                WriteRow::Forget { tenant, reply, .. } => self.unstored.deleted(*tenant, *reply),
                WriteRow::Touch { .. } | WriteRow::Rejected { .. } | WriteRow::Receipt(_) => (),
            }
        }
    }

    fn unqueue(&self, rows: usize, bytes: u64) {
        self.status.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.status.queued_rows.fetch_sub(rows as u64, Ordering::Relaxed);
    }

    /// Keeps a group that the store did not take. Rows in the journal stay there and in memory: their clients were told
    /// that they are durable. All others go to the spill file. Returns for each row whether it is kept.
    fn keep(&mut self, group: WrittenGroup) -> Vec<bool> {
        let mut journaled = WrittenGroup::default();
        let mut others = Vec::new();
        for (row, number) in Arc::unwrap_or_clone(group.rows).into_iter().zip(&group.numbers) {
            match number {
                Some(number) => journaled.push(row, *number),
                None => others.push(row),
            }
        }
        self.unqueue(others.len(), weight(&others));
        if !journaled.numbers.is_empty() {
            self.kept.push_back(journaled);
        }
        let are_kept = match &mut self.spill {
            Some(spill) => spill.add(&others),
            None => vec![false; others.len()],
        };
        for (row, &is_kept) in others.iter().zip(&are_kept) {
            if !is_kept {
                self.status.lost_rows.fetch_add(1, Ordering::Relaxed);
            }
            if let WriteRow::Reply { row, keys } = row {
                let note = if is_kept { UnstoredReplies::spilled } else { UnstoredReplies::lost };
                note(&self.unstored, row.tenant, row.reply, keys);
            }
        }
        let mut are_kept = are_kept.into_iter();
        group.numbers.iter().map(|number| number.is_some() || are_kept.next() == Some(true)).collect()
    }

    /// Whether rows wait for the store to come back.
    fn has_waiting(&self) -> bool {
        !self.kept.is_empty() || self.spill.as_ref().is_some_and(|spill| spill.len() > 0)
    }

    /// Moves the oldest rows that wait into the store.
    async fn write_waiting(&mut self, retry_at: &mut Instant) {
        if let Some(group) = self.kept.pop_front() {
            // A reply may have been deleted in the tables since: its first write may have succeeded unnoticed.
            if self.store.write_late(Arc::clone(&group.rows)).await.is_ok() {
                self.is_stored(&group);
                self.came_up();
                *retry_at = Instant::now();
            } else {
                self.kept.push_front(group);
                self.went_down(retry_at);
            }
            return;
        }
        let Some(spill) = &mut self.spill else { return };
        let Ok(batch) = spill.oldest() else {
            self.went_down(retry_at);
            return;
        };
        if self.store.write_late(Arc::clone(&batch.rows)).await.is_err() || spill.remove(&batch).is_err() {
            self.went_down(retry_at);
            return;
        }
        let is_empty = spill.len() == 0;
        self.status.lost_rows.fetch_add(batch.n_unreadable, Ordering::Relaxed);
        self.are_stored(&batch.rows);
        if is_empty {
            self.unstored.spill_is_empty();
        }
        self.came_up();
        *retry_at = Instant::now();
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
