//! Temporary folders and small messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aside_core::block::{
    Arguments, Block, CallId, Origin, Text, Thinking, ThinkingContent, Time, ToolCall, ToolResult,
};
use aside_core::message::{Message, Role};
use aside_store::session::NewSession;
use aside_store::{SqliteStore, Store};

/// A temporary folder, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("aside-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        drop(std::fs::remove_dir_all(&path));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Every implementation of `Store`, by name.
pub(crate) type Makers = [(&'static str, fn() -> (Option<Folder>, Arc<dyn Store>))];

pub(crate) const MAKERS: &Makers = &[
    ("memory", || (None, Arc::new(SqliteStore::in_memory().unwrap()))),
    ("file", || {
        let folder = Folder::new();
        let store = folder.store();
        (Some(folder), Arc::new(store))
    }),
];

pub(crate) fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

pub(crate) fn thinking(text: &str) -> Block {
    Block::Thinking(Thinking::new(ThinkingContent::Open { text: text.to_owned() }, "reasoning_content"))
}

pub(crate) fn call(name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall::new(CallId::Given("call_1".to_owned()), name, Arguments::Json(arguments.to_owned())))
}

pub(crate) fn result(content: &str) -> Block {
    Block::ToolResult(ToolResult {
        id: "call_1".to_owned(),
        name: "read".to_owned(),
        content: content.to_owned(),
        is_error: false,
        media: Vec::new(),
    })
}

pub(crate) fn user(prompt: &str) -> Message {
    Message::new(Role::User, vec![text(prompt)])
}

pub(crate) fn assistant(model: &str, blocks: Vec<Block>) -> Message {
    let origin = Origin::default().with_model(model.to_owned());
    Message { origin: Some(origin), ..Message::new(Role::Assistant, blocks) }
}

pub(crate) fn at(mut message: Message, time: u64) -> Message {
    message.at = Some(Time(time));
    message
}

pub(crate) fn new_session() -> NewSession {
    NewSession { at: Some(Time(1_000)), ..NewSession::default() }
}
