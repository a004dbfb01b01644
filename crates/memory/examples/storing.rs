//! Stores replies in SQLite as the gateway does. `valgrind --tool=callgrind target/release/examples/storing FOLDER 100` counts
//! the instructions of everything that happens before a reply is durable (`measured_storing`).

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use aside_core::block::Time;
use aside_core::{
    Arguments, Block, CallId, Dialects, Message, Origin, Request, Role, Settings, Text, Thinking, ThinkingContent,
    ToolCall,
};
use aside_memory::{Memory, MemoryOptions, PendingWrite, Restored, StoreKey, StoreLocation, Tenant};

const NOW: Time = Time(1_800_000_000_000);

async fn store(folder: &Path, n_replies: usize) -> Option<()> {
    let dialects = Arc::new(Dialects::builtin().ok()?);
    let options = MemoryOptions::new(StoreLocation::Sqlite(folder.join("gateway.db")), StoreKey::generate());
    let memory = Memory::open(options, Arc::clone(&dialects), NOW).await.ok()?;
    let tenant = memory.tenant("local", NOW).await.ok()?;
    let (origin, settings) = (Origin::default(), Settings::new());
    let question = Message::new(Role::User, vec![text("How deep is berth 4?")]);
    let messages = [&question];
    let request = Request::new(&dialects, dialects.get("deepseek")?, "deepseek-chat", &origin, &settings);
    let restored = memory.restore(&tenant, &request.with_messages(&messages), Some("session"), NOW).await;
    for n in 0..n_replies {
        measured_storing(&memory, &tenant, &restored, reply(n)).durable().await;
    }
    memory.flush().await;
    Some(())
}

#[inline(never)]
fn measured_storing(memory: &Memory, tenant: &Arc<Tenant>, restored: &Restored, reply: Message) -> PendingWrite {
    let mut draft = memory.begin(tenant, restored);
    draft.name_response("chatcmpl-8Bq2LmVf3kZx8Bq2LmVf3kZ");
    draft.finish(reply, NOW)
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

/// A thought, a text and a call.
fn reply(n: usize) -> Message {
    let thought = format!("Berth {n} was dredged in spring; \"the table\" says so.\n").repeat(20);
    let thinking = Thinking {
        content: ThinkingContent::Open { text: thought },
        source: "reasoning_content".to_owned(),
        id: None,
        items: Vec::new(),
        span: None,
        native: None,
        extra: Default::default(),
    };
    let call = ToolCall {
        id: CallId::Given(format!("call_00_{n:020}")),
        name: "depth".to_owned(),
        arguments: Arguments::Json(format!(r#"{{"berth":{n},"unit":"metre"}}"#)),
        seal: None,
        native: None,
        extra: Default::default(),
    };
    let blocks = vec![Block::Thinking(thinking), text("I look it up in the table of depths."), Block::ToolCall(call)];
    let origin = Origin::default().with_provider("deepseek".to_owned()).with_model("deepseek-chat".to_owned());
    Message { origin: Some(origin), ..Message::new(Role::Assistant, blocks) }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some(folder), Some(n_replies)) = (words.next(), words.next().and_then(|n| n.parse().ok())) else {
        return ExitCode::FAILURE;
    };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return ExitCode::FAILURE;
    };
    match runtime.block_on(store(Path::new(&folder), n_replies)) {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}
