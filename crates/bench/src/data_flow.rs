//! The path of a reply in a session with a screen: decoder, fold, store, channel and app, in
//! the order in which a session calls them. Everything runs on this thread, except the
//! store's writer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use aside_core::event::{Event, Sink};
use aside_core::fold::Fold;
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::settings::ThinkingDisplay;
use aside_core::wire::Decoder;
use aside_front::{DeltaJoiner, Update};
use aside_store::session::{NewReply, NewSession, Parent};
use aside_store::{ReplyRecorder, SqliteStore, Store};

use crate::frames::ScreenBench;
use crate::{Chunking, rules};

/// Who receives the reply.
#[derive(Debug, Clone, Copy)]
pub struct Consumers {
    pub screen: bool,
    pub store: bool,
}

pub struct DataFlow {
    decoder: Decoder,
    screen: Option<ScreenFlow>,
    store: Option<StoreFlow>,
}

struct ScreenFlow {
    screen: ScreenBench,
    joiner: DeltaJoiner,
    sender: Sender<Update>,
    updates: Receiver<Update>,
}

struct StoreFlow {
    recorder: ReplyRecorder,
    folder: PathBuf,
}

impl Drop for StoreFlow {
    fn drop(&mut self) {
        // A folder that stays does no harm.
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

impl DataFlow {
    pub fn new(consumers: Consumers) -> DataFlow {
        DataFlow {
            decoder: Decoder::new(Protocol::OpenaiChat, &rules(Protocol::OpenaiChat)),
            screen: consumers.screen.then(ScreenFlow::new),
            store: consumers.store.then(StoreFlow::new),
        }
    }

    /// Receives the whole reply in reads of 1,400 bytes and records its message.
    pub fn run(mut self, bytes: &[u8]) {
        let mut fold = Fold::new();
        for chunk in Chunking::Even.chunks(bytes) {
            let mut tee = Tee { fold: &mut fold, screen: &mut self.screen, store: &mut self.store };
            self.decoder.push(chunk, &mut tee);
            if let Some(screen) = &mut self.screen {
                screen.flush();
            }
        }
        let mut tee = Tee { fold: &mut fold, screen: &mut self.screen, store: &mut self.store };
        self.decoder.finish(&mut tee).expect("a generated stream is understood");
        let message = Arc::new(Message::new(Role::Assistant, fold.finish().blocks));
        if let Some(store) = &mut self.store {
            store.recorder.finish(&message, None).expect("the store can be written");
        }
        if let Some(screen) = &mut self.screen {
            screen.send(Update::Recorded(Arc::clone(&message)));
            screen.flush();
        }
    }
}

/// Passes each event to the fold first, like the engine.
struct Tee<'a> {
    fold: &'a mut Fold,
    screen: &'a mut Option<ScreenFlow>,
    store: &'a mut Option<StoreFlow>,
}

impl Sink for Tee<'_> {
    fn take(&mut self, event: Event<'_>) {
        self.fold.take(event);
        if let Some(store) = self.store {
            store.recorder.take(event);
        }
        if let Some(screen) = self.screen {
            screen.take(event, self.fold);
        }
    }
}

impl ScreenFlow {
    fn new() -> ScreenFlow {
        let mut screen = ScreenBench::new(ThinkingDisplay::Live, Vec::new());
        screen.update(Update::Sending(Box::default()));
        let (sender, updates) = mpsc::channel();
        ScreenFlow { screen, joiner: DeltaJoiner::default(), sender, updates }
    }

    fn take(&mut self, event: Event<'_>, fold: &Fold) {
        if self.joiner.join(event, |update| drop(self.sender.send(update))) {
            return;
        }
        if let Some(update) = Update::of(event, fold) {
            self.send(update);
        }
    }

    fn send(&self, update: Update) {
        self.sender.send(update).expect("this thread has the receiver");
    }

    /// What is read at once is shown at once.
    fn flush(&mut self) {
        self.joiner.flush_if_due(std::time::Instant::now(), |update| drop(self.sender.send(update)));
        while let Ok(update) = self.updates.try_recv() {
            self.screen.update(update);
        }
    }
}

impl StoreFlow {
    fn new() -> StoreFlow {
        let folder = std::env::temp_dir().join(format!("aside-bench-data-flow-{}", std::process::id()));
        let store = Arc::new(SqliteStore::open(&folder).expect("the store opens"));
        let id = store.create(&NewSession::default()).expect("the store can be written");
        let lock = store.lock_session(&id).expect("no other process has it");
        let reply = NewReply { parent: Parent::Head, origin: None, at: None };
        let recorder = ReplyRecorder::begin(store, &lock, &reply).expect("the store can be written");
        StoreFlow { recorder, folder }
    }
}
