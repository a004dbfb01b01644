//! Keeps a running reply safe while it streams.
//!
//! Handing an event in costs a lock and a copy of its text. A thread of the
//! recorder writes what has come together: a third of a second after the first of
//! it, and at once when a block ends. A process that is killed loses what came
//! since, which is less than a second of text.

use std::collections::HashSet;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aside_core::block::Time;
use aside_core::event::{BlockId, Event, Part, Sink};
use aside_core::message::Message;
use aside_core::text::{JsonText, split_within};

use crate::error::Result;
use crate::journal::{Batch, PIECE};
use crate::lease::Lease;
use crate::session::{MessageId, NewReply};
use crate::store::Store;

/// How long text may wait.
const LONGEST_WAIT: Duration = Duration::from_millis(300);
/// A flood does not wait that long.
const MOST_WAITING: usize = 1 << 20;
/// Whoever brings more than this waits until some of it is written: text that
/// waits is in memory a second time.
const TOO_MUCH: usize = 4 << 20;
/// An event that cannot be cut into pieces is stored with the whole message
/// only: no real one is that long, and writing it twice would cost memory.
const LONGEST_EVENT: usize = 1 << 20;

/// Records one reply. A [`Sink`]: it takes the events that the fold takes.
pub struct Recorder {
    store: Arc<dyn Store>,
    reply: MessageId,
    /// As long as we record, nobody else may take the session for abandoned.
    _lease: Lease,
    now: Option<Time>,
    /// Blocks of several items, of which each may be restated.
    with_items: HashSet<BlockId>,
    shared: Arc<Mutex<Waiting>>,
    wake: Option<Sender<Wake>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Waiting {
    batch: Batch,
    /// The thread knows that something waits.
    is_known: bool,
    /// Why the last attempt to write failed; what it would have written waits.
    trouble: Option<String>,
}

enum Wake {
    /// Something waits.
    Soon,
    /// A block ended.
    Now,
    /// Somebody waits for it.
    Asked(Sender<Result<()>>),
}

impl Recorder {
    /// Takes the reply's place in the session of the lease.
    pub fn begin(store: Arc<dyn Store>, lease: &Lease, reply: &NewReply) -> Result<Recorder> {
        let now = reply.at;
        let reply = store.begin(lease, reply)?;
        let shared = Arc::new(Mutex::new(Waiting::default()));
        let (wake, wakes) = mpsc::channel();
        let desk = Desk { store: Arc::clone(&store), reply, shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new().name("recorder".to_owned()).spawn(move || desk.run(&wakes));
        // Without a thread it is still written: whenever somebody asks.
        let thread = thread.ok();
        let wake = thread.is_some().then_some(wake);
        Ok(Recorder { store, reply, _lease: lease.clone(), now, with_items: HashSet::new(), shared, wake, thread })
    }

    pub fn id(&self) -> MessageId {
        self.reply
    }

    /// Says what time it is for the events that follow.
    pub fn set_now(&mut self, now: Time) {
        self.now = Some(now);
    }

    /// Writes everything and waits until it is written.
    pub fn flush(&self) -> Result<()> {
        let (done, answer) = mpsc::channel();
        let asked = self.wake.as_ref().is_some_and(|wake| wake.send(Wake::Asked(done)).is_ok());
        match asked.then(|| answer.recv()) {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => write(&*self.store, self.reply, &self.shared),
        }
    }

    /// Why nothing can be written at the moment; nothing is lost while we live.
    pub fn trouble(&self) -> Option<String> {
        lock(&self.shared).trouble.clone()
    }

    /// The reply is over. What is stored in the end is the message, not the
    /// journal. If it cannot be written now, it can be tried again.
    pub fn finish(&mut self, message: &Message, ended: Option<Time>) -> Result<MessageId> {
        self.store.finish(self.reply, message, ended)?;
        self.stop();
        lock(&self.shared).batch = Batch::default();
        Ok(self.reply)
    }

    fn stop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say that was not said to those who asked.
            drop(thread.join());
        }
    }
}

impl Sink for Recorder {
    fn take(&mut self, event: Event<'_>) {
        if let Event::Item { block, .. } = event {
            self.with_items.insert(block);
        }
        let is_long = matches!(event, Event::Restated { text, .. } if text.len() > LONGEST_EVENT as u64);
        match event {
            Event::Grew { block, text } => self.grew(block, text),
            // The same as forgetting the text and hearing it again, where it has
            // no items.
            Event::Restated { block, part: Part::Whole, text } if is_long && !self.with_items.contains(&block) => {
                self.add(Event::Restated { block, part: Part::Whole, text: JsonText::plain("") });
                text.pieces(&mut String::new(), |piece| self.grew(block, piece));
            }
            Event::Restated { .. } if is_long => (),
            Event::Sealed { payload: text, .. } | Event::Kept { json: text, .. } if text.len() > LONGEST_EVENT => (),
            Event::Restated { .. }
            | Event::Sealed { .. }
            | Event::Kept { .. }
            | Event::Started { .. }
            | Event::Opened { .. }
            | Event::Item { .. }
            | Event::Refiled { .. }
            | Event::Identified { .. }
            | Event::Closed { .. }
            | Event::Seen { .. }
            | Event::Usage(_)
            | Event::Noted(_)
            | Event::Ended(_) => self.add(event),
        }
    }
}

impl Recorder {
    /// Text in pieces that a row of the journal can hold.
    fn grew(&self, block: BlockId, mut text: &str) {
        while !text.is_empty() {
            let (piece, rest) = split_within(text, PIECE);
            self.add(Event::Grew { block, text: piece });
            text = rest;
        }
    }

    fn add(&self, event: Event<'_>) {
        let ends_block = matches!(event, Event::Closed { .. } | Event::Ended(_));
        let mut waiting = lock(&self.shared);
        waiting.batch.push(event, self.now);
        let wake = if ends_block || waiting.batch.n_bytes() > MOST_WAITING {
            Some(Wake::Now)
        } else if waiting.is_known || waiting.batch.is_empty() {
            None
        } else {
            Some(Wake::Soon)
        };
        if let (Some(message), Some(wake)) = (wake, &self.wake) {
            waiting.is_known = true;
            // A thread that is gone cannot be woken; `flush` writes then.
            drop(wake.send(message));
        }
        let must_wait = waiting.batch.n_bytes() > TOO_MUCH && waiting.trouble.is_none();
        drop(waiting);
        if must_wait {
            // What went wrong is kept as trouble, and nothing is lost by it.
            drop(self.flush());
        }
    }
}

/// Whoever lets go of a recorder without finishing leaves an interrupted reply
/// behind, with everything that came.
impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
        if !lock(&self.shared).batch.is_empty() {
            drop(write(&*self.store, self.reply, &self.shared));
        }
    }
}

/// The thread's side.
struct Desk {
    store: Arc<dyn Store>,
    reply: MessageId,
    shared: Arc<Mutex<Waiting>>,
}

impl Desk {
    fn run(&self, wakes: &Receiver<Wake>) {
        while let Ok(wake) = wakes.recv() {
            let mut asked = Vec::new();
            let until = match wake {
                Wake::Soon => Instant::now() + LONGEST_WAIT,
                Wake::Now => Instant::now(),
                Wake::Asked(answer) => {
                    asked.push(answer);
                    Instant::now()
                }
            };
            collect(wakes, until, &mut asked);
            if asked.is_empty() {
                // What went wrong is kept as trouble; there is nobody to tell.
                drop(write(&*self.store, self.reply, &self.shared));
            }
            for answer in asked {
                // Whoever asked may be gone.
                drop(answer.send(write(&*self.store, self.reply, &self.shared)));
            }
            if lock(&self.shared).trouble.is_some() {
                self.wait_for_better(wakes);
            }
        }
    }

    /// Tries again without being woken: no delta may ever come to do it.
    fn wait_for_better(&self, wakes: &Receiver<Wake>) {
        loop {
            match wakes.recv_timeout(LONGEST_WAIT) {
                Ok(Wake::Asked(answer)) => drop(answer.send(write(&*self.store, self.reply, &self.shared))),
                Ok(Wake::Soon | Wake::Now) => continue,
                Err(RecvTimeoutError::Timeout) => drop(write(&*self.store, self.reply, &self.shared)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if lock(&self.shared).trouble.is_none() {
                return;
            }
        }
    }
}

/// Waits until it is time to write, or something says that it is.
fn collect(wakes: &Receiver<Wake>, until: Instant, asked: &mut Vec<Sender<Result<()>>>) {
    loop {
        match wakes.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Wake::Soon) => {}
            Ok(Wake::Now) => return,
            Ok(Wake::Asked(answer)) => return asked.push(answer),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Writes what waits. If that fails it waits on, in front of what came since.
fn write(store: &dyn Store, reply: MessageId, shared: &Mutex<Waiting>) -> Result<()> {
    let batch = {
        let mut waiting = lock(shared);
        waiting.is_known = false;
        std::mem::take(&mut waiting.batch)
    };
    if batch.is_empty() {
        lock(shared).trouble = None;
        return Ok(());
    }
    let result = store.extend(reply, &batch);
    let mut waiting = lock(shared);
    match &result {
        Ok(()) => waiting.trouble = None,
        Err(error) => {
            let later = std::mem::replace(&mut waiting.batch, batch);
            waiting.batch.append(later);
            waiting.is_known = true;
            waiting.trouble = Some(error.to_string());
        }
    }
    result
}

fn lock(shared: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    // A panic cannot leave a batch half changed.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
