//! Saves a reply while it streams.
//!
//! Taking an event costs a lock and a copy of its text. A writer thread stores
//! pending events 300 ms after the first one, and at once when a block ends or much
//! text is pending. A killed process loses only what came since, less than a second
//! of text.

use std::collections::HashSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aside_core::block::Time;
use aside_core::event::{BlockId, Event, ExtraValue, RestatedPart, Sink};
use aside_core::json_text::{JsonText, split_within};
use aside_core::message::Message;

use crate::error::Result;
use crate::journal::{EventBatch, MAX_TEXT_BYTES};
use crate::session::{MessageId, NewReply};
use crate::store::Store;
use crate::write_lock::WriteLock;

/// How long events may stay unwritten.
const MAX_DELAY: Duration = Duration::from_millis(300);
/// This much pending text is written without delay, so that few buffers are needed.
const WRITE_NOW_BYTES: usize = 24 << 10;
/// Above this, taking an event blocks until pending text is written. A model takes
/// a minute to write as much, so that only a burst or a stalled disk gets there.
const MAX_PENDING_BYTES: usize = 32 << 10;
/// A larger event that cannot be split is not journaled, only stored with the
/// final message. None is that large in practice, and a second copy costs memory.
const MAX_EVENT_BYTES: usize = 1 << 20;

/// Records one reply. It is a [`Sink`] for the same events as the fold.
pub struct ReplyRecorder {
    store: Arc<dyn Store>,
    reply: MessageId,
    /// Keeps the session locked, so that no other process closes this reply as interrupted.
    _lock: WriteLock,
    now: Option<Time>,
    /// Blocks with several items, each of which may be restated.
    with_items: HashSet<BlockId>,
    shared: Arc<Mutex<PendingEvents>>,
    signal: Option<Sender<WriterSignal>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct PendingEvents {
    batch: EventBatch,
    /// A batch without events, whose buffers are used next.
    idle: EventBatch,
    /// The signal that the writer thread has for the pending events.
    notified: Notified,
    /// Why the last write failed; its events are still pending.
    write_error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Notified {
    #[default]
    No,
    /// It writes within `MAX_DELAY`.
    Later,
    Now,
}

enum WriterSignal {
    /// There are events to write, within `MAX_DELAY`.
    EventsPending,
    /// A block ended, or there is much to write.
    WriteNow,
    /// The sender waits for the result.
    Flush(Sender<Result<()>>),
}

impl ReplyRecorder {
    /// Begins a reply in the locked session.
    pub fn begin(store: Arc<dyn Store>, lock: &WriteLock, reply: &NewReply) -> Result<ReplyRecorder> {
        let now = reply.at;
        let reply = store.begin(lock, reply)?;
        let shared = Arc::new(Mutex::new(PendingEvents::default()));
        let (signal, signals) = mpsc::channel();
        let desk = WriterThread { store: Arc::clone(&store), reply, shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || desk.run(&signals));
        // If the thread cannot be started, `flush` and `finish` still write.
        let thread = thread.ok();
        let signal = thread.is_some().then_some(signal);
        Ok(ReplyRecorder { store, reply, _lock: lock.clone(), now, with_items: HashSet::new(), shared, signal, thread })
    }

    pub fn id(&self) -> MessageId {
        self.reply
    }

    /// Sets the time of the events that follow.
    pub fn set_now(&mut self, now: Time) {
        self.now = Some(now);
    }

    /// Writes all pending events and waits for the result.
    pub fn flush(&self) -> Result<()> {
        let (done, answer) = mpsc::channel();
        let sent = self.signal.as_ref().is_some_and(|signal| signal.send(WriterSignal::Flush(done)).is_ok());
        match sent.then(|| answer.recv()) {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => write(&*self.store, self.reply, &self.shared),
        }
    }

    /// Why the last write failed, if it did. Its events are kept and retried.
    pub fn write_error(&self) -> Option<String> {
        lock(&self.shared).write_error.clone()
    }

    /// Ends the reply: stores the final message in place of the journal. The
    /// caller may retry if this fails.
    pub fn finish(&mut self, message: &Message, ended: Option<Time>) -> Result<MessageId> {
        self.store.finish(self.reply, message, ended)?;
        self.stop();
        *lock(&self.shared) = PendingEvents::default();
        Ok(self.reply)
    }

    fn stop(&mut self) {
        drop(self.signal.take());
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing; errors went to the callers of `flush`.
            drop(thread.join());
        }
    }
}

impl Sink for ReplyRecorder {
    fn take(&mut self, event: Event<'_>) {
        if let Event::Item { block, .. } = event {
            self.with_items.insert(block);
        }
        let is_long = matches!(event, Event::Restated { text, .. } if text.len() > MAX_EVENT_BYTES as u64);
        match event {
            Event::Grew { block, text } => self.grew(block, text),
            // For a block without items this equals clearing the text and
            // sending it again.
            Event::Restated { block, part: RestatedPart::Whole, text }
                if is_long && !self.with_items.contains(&block) =>
            {
                self.add(Event::Restated { block, part: RestatedPart::Whole, text: JsonText::plain("") });
                text.pieces(&mut String::new(), |piece| self.grew(block, piece));
            }
            Event::Restated { .. } if is_long => (),
            Event::Sealed { payload: text, .. }
            | Event::NativeItem { json: text, .. }
            | Event::Extra { value: ExtraValue { json: text, .. }, .. }
                if text.len() > MAX_EVENT_BYTES => {}
            Event::Restated { .. }
            | Event::Sealed { .. }
            | Event::NativeItem { .. }
            | Event::Started { .. }
            | Event::Opened { .. }
            | Event::Item { .. }
            | Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::Closed { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => self.add(event),
        }
    }
}

impl ReplyRecorder {
    /// Splits text into pieces that fit a journal row.
    fn grew(&self, block: BlockId, mut text: &str) {
        while !text.is_empty() {
            let (piece, rest) = split_within(text, MAX_TEXT_BYTES);
            self.add(Event::Grew { block, text: piece });
            text = rest;
        }
    }

    fn add(&self, event: Event<'_>) {
        let ends_block = matches!(event, Event::Closed { .. } | Event::Ended(_));
        let mut waiting = lock(&self.shared);
        waiting.batch.push(event, self.now);
        let wanted = if ends_block || waiting.batch.n_bytes() > WRITE_NOW_BYTES {
            Notified::Now
        } else if waiting.batch.is_empty() {
            Notified::No
        } else {
            Notified::Later
        };
        if let Some(signal) = self.signal.as_ref().filter(|_| wanted > waiting.notified) {
            waiting.notified = wanted;
            let message = if wanted == Notified::Now { WriterSignal::WriteNow } else { WriterSignal::EventsPending };
            // If the thread is gone, `flush` writes.
            drop(signal.send(message));
        }
        let must_wait = waiting.batch.n_bytes() > MAX_PENDING_BYTES && waiting.write_error.is_none();
        drop(waiting);
        if must_wait {
            // An error is kept in `write_error`, and the events stay pending.
            drop(self.flush());
        }
    }
}

/// Dropping a recorder without `finish` leaves an interrupted reply with
/// everything received so far.
impl Drop for ReplyRecorder {
    fn drop(&mut self) {
        self.stop();
        if !lock(&self.shared).batch.is_empty() {
            drop(write(&*self.store, self.reply, &self.shared));
        }
    }
}

/// The state of the writer thread.
struct WriterThread {
    store: Arc<dyn Store>,
    reply: MessageId,
    shared: Arc<Mutex<PendingEvents>>,
}

impl WriterThread {
    fn run(&self, signals: &Receiver<WriterSignal>) {
        while let Ok(signal) = signals.recv() {
            let mut flushes = Vec::new();
            let until = match signal {
                WriterSignal::EventsPending => Instant::now() + MAX_DELAY,
                WriterSignal::WriteNow => Instant::now(),
                WriterSignal::Flush(answer) => {
                    flushes.push(answer);
                    Instant::now()
                }
            };
            collect(signals, until, &mut flushes);
            if flushes.is_empty() {
                // An error is kept in `write_error`; no caller waits for it.
                drop(write(&*self.store, self.reply, &self.shared));
            }
            for answer in flushes {
                // The caller may be gone.
                drop(answer.send(write(&*self.store, self.reply, &self.shared)));
            }
            if lock(&self.shared).write_error.is_some() {
                self.retry_until_written(signals);
            }
        }
    }

    /// Retries on a timer: there may be no further delta to trigger a write.
    fn retry_until_written(&self, signals: &Receiver<WriterSignal>) {
        loop {
            match signals.recv_timeout(MAX_DELAY) {
                Ok(WriterSignal::Flush(answer)) => drop(answer.send(write(&*self.store, self.reply, &self.shared))),
                Ok(WriterSignal::EventsPending | WriterSignal::WriteNow) => continue,
                Err(RecvTimeoutError::Timeout) => drop(write(&*self.store, self.reply, &self.shared)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if lock(&self.shared).write_error.is_none() {
                return;
            }
        }
    }
}

/// Waits until the deadline, or until a signal asks to write at once.
fn collect(signals: &Receiver<WriterSignal>, until: Instant, flushes: &mut Vec<Sender<Result<()>>>) {
    loop {
        match signals.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(WriterSignal::EventsPending) => {}
            Ok(WriterSignal::WriteNow) => return,
            Ok(WriterSignal::Flush(answer)) => return flushes.push(answer),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Writes the pending events. If that fails, puts them back in front of newer ones.
fn write(store: &dyn Store, reply: MessageId, shared: &Mutex<PendingEvents>) -> Result<()> {
    let mut batch = {
        let mut waiting = lock(shared);
        waiting.notified = Notified::No;
        let idle = std::mem::take(&mut waiting.idle);
        std::mem::replace(&mut waiting.batch, idle)
    };
    if batch.is_empty() {
        let mut waiting = lock(shared);
        (waiting.idle, waiting.write_error) = (batch, None);
        return Ok(());
    }
    let result = store.extend(reply, &batch);
    let mut waiting = lock(shared);
    match &result {
        Ok(()) => {
            batch.clear();
            (waiting.idle, waiting.write_error) = (batch, None);
        }
        Err(error) => {
            let later = std::mem::replace(&mut waiting.batch, batch);
            waiting.batch.append(later);
            waiting.notified = Notified::Now;
            waiting.write_error = Some(error.to_string());
        }
    }
    result
}

fn lock(shared: &Mutex<PendingEvents>) -> MutexGuard<'_, PendingEvents> {
    // No panic can leave a batch half changed.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
