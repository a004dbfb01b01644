//! Conversations, and a gateway that remembers them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aside_core::block::{Seal, SealKind, Time};
use aside_core::conversation::ToolSpec;
use aside_core::{
    Arguments, Block, CallId, Dialects, Message, Origin, Request, Role, Seals, Settings, Text, Thinking,
    ThinkingContent, ToolCall, ToolResult,
};
use aside_memory::{Memory, MemoryOptions, Restored, StoreKey, StoreLocation, Tenant};

pub(super) const NOW: Time = Time(1_800_000_000_000);

/// A folder that is removed at the end of a test.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let unique = format!("aside-memory-{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(super) fn options(&self, key: &StoreKey) -> MemoryOptions {
        // The machine may be slow, and a test does not depend on that.
        MemoryOptions::new(StoreLocation::Sqlite(self.0.join("gateway.db")), key.clone())
            .with_deadline(Duration::from_secs(60))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn dialects() -> Arc<Dialects> {
    Arc::new(Dialects::builtin().unwrap())
}

pub(super) async fn open(folder: &Folder, key: &StoreKey) -> Memory {
    Memory::open(folder.options(key), dialects(), NOW).await.unwrap()
}

/// Where requests go.
pub(super) struct Target {
    pub(super) dialects: Arc<Dialects>,
    pub(super) dialect: String,
    pub(super) model: String,
    pub(super) origin: Origin,
    pub(super) settings: Settings,
    pub(super) tools: Vec<ToolSpec>,
}

impl Target {
    pub(super) fn new(dialect: &str, model: &str) -> Target {
        let origin = Origin::default()
            .with_provider(dialect.to_owned())
            .with_dialect(dialect.to_owned())
            .with_model(model.to_owned());
        Target {
            dialects: dialects(),
            dialect: dialect.to_owned(),
            model: model.to_owned(),
            origin,
            settings: Settings::new(),
            tools: Target::tools(),
        }
    }

    pub(super) fn tools() -> Vec<ToolSpec> {
        vec![ToolSpec::new("depth", "", "{}"), ToolSpec::new("ls", "", "{}")]
    }

    pub(super) async fn restore(
        &self,
        memory: &Memory,
        tenant: &Arc<Tenant>,
        messages: &[Message],
        session: Option<&str>,
    ) -> Restored {
        let refs: Vec<&Message> = messages.iter().collect();
        let dialect = self.dialects.get(&self.dialect).unwrap();
        let request = Request::new(&self.dialects, dialect, &self.model, &self.origin, &self.settings)
            .with_messages(&refs)
            .with_tools(&self.tools);
        memory.restore(tenant, &request, session, NOW).await
    }

    /// What would be encoded.
    pub(super) async fn restored_messages(
        &self,
        memory: &Memory,
        tenant: &Arc<Tenant>,
        messages: &[Message],
    ) -> Vec<Message> {
        let restored = self.restore(memory, tenant, messages, None).await;
        let refs: Vec<&Message> = messages.iter().collect();
        restored.view(&refs).into_iter().cloned().collect()
    }

    /// Remembers every reply of a conversation, as a gateway does whose client
    /// loses all thinking.
    pub(super) async fn remember(
        &self,
        memory: &Memory,
        tenant: &Arc<Tenant>,
        messages: &[Message],
        session: Option<&str>,
    ) {
        for (at, message) in messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant) {
            let asked: Vec<Message> = messages[..at].iter().map(without_thinking).collect();
            let restored = self.restore(memory, tenant, &asked, session).await;
            let reply = Message { origin: Some(self.origin.clone()), ..message.clone() };
            let state = memory.begin(tenant, &restored).finish(reply.clone(), NOW).durable().await;
            assert_eq!(state.as_str(), "ok");
        }
    }
}

pub(super) fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

pub(super) fn user(words: &str) -> Message {
    Message::new(Role::User, vec![text(words)])
}

pub(super) fn assistant(blocks: Vec<Block>) -> Message {
    Message::new(Role::Assistant, blocks)
}

fn thinking(content: ThinkingContent) -> Block {
    Block::Thinking(Thinking {
        content,
        source: "thinking".to_owned(),
        id: None,
        items: Vec::new(),
        span: None,
        native: None,
        extra: Default::default(),
    })
}

pub(super) fn open_thinking(text: &str) -> Block {
    thinking(ThinkingContent::Open { text: text.to_owned() })
}

pub(super) fn seal(payload: &str) -> Seal {
    Seal { kind: SealKind::Signature, payload: payload.to_owned() }
}

pub(super) fn sealed_thinking(text: &str, signature: &str) -> Block {
    let seals = Seals { signature: Some(seal(signature)), encrypted: None };
    thinking(ThinkingContent::Sealed { text: text.to_owned(), seals })
}

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall {
        id: CallId::Given(id.to_owned()),
        name: name.to_owned(),
        arguments: Arguments::Json(arguments.to_owned()),
        seal: None,
        native: None,
        extra: Default::default(),
    })
}

pub(super) fn result(id: &str, content: &str) -> Message {
    let result = ToolResult {
        id: id.to_owned(),
        name: "depth".to_owned(),
        content: content.to_owned(),
        media: vec![],
        is_error: false,
    };
    Message::new(Role::Tool, vec![Block::ToolResult(result)])
}

/// What a client has that keeps only what it shows.
pub(super) fn without_thinking(message: &Message) -> Message {
    let mut message = message.clone();
    message.blocks.retain(|block| !matches!(block, Block::Thinking(_)));
    for block in &mut message.blocks {
        match block {
            Block::Text(text) => (text.seal, text.native) = (None, None),
            Block::ToolCall(call) => (call.seal, call.native) = (None, None),
            Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
    }
    message.origin = None;
    message
}

pub(super) fn all_without_thinking(messages: &[Message]) -> Vec<Message> {
    messages.iter().map(without_thinking).collect()
}

/// Text that does not compress, so that it needs several parts.
pub(super) fn noise(seed: u64, bytes: usize) -> String {
    let mut state = seed;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + u8::try_from((state >> 33) % 94).unwrap())
    })
    .take(bytes)
    .collect()
}

/// Waits for a condition, however long it takes.
pub(super) async fn wait_until(is_true: impl Fn() -> bool) {
    while !is_true() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
