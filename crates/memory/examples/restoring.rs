//! Finds what a long request lacks, without a store: hashes every message, and
//! decides what each turn needs. `scripts/restoring` counts its instructions.

use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use aside_core::block::Time;
use aside_core::conversation::ToolSpec;
use aside_core::{
    Arguments, Block, CallId, Dialects, Message, Origin, Request, Role, Settings, Text, ToolCall, ToolResult,
};
use aside_memory::{Memory, MemoryOptions, StoreKey, StoreLocation, Tenant};

const NOW: Time = Time(1_800_000_000_000);
/// A provider that wants all thinking back.
const DIALECT: &str = "gemini";
const MODEL: &str = "gemini-3-pro";

/// A request whose client lost all thinking, with its memory.
struct RestoringBench {
    dialects: Arc<Dialects>,
    memory: Memory,
    messages: Vec<Message>,
}

impl RestoringBench {
    /// None if there is no memory or dialect, which cannot happen.
    fn new(n_messages: usize) -> Option<RestoringBench> {
        let dialects = Arc::new(Dialects::builtin().ok()?);
        let options = MemoryOptions::new(StoreLocation::None, StoreKey::generate());
        let memory = at_once(Memory::open(options, Arc::clone(&dialects), NOW))?.ok()?;
        Some(RestoringBench { dialects, memory, messages: (0..n_messages).map(message).collect() })
    }

    /// Returns how many turns there are.
    fn run(&self) -> Option<usize> {
        let dialect = self.dialects.get(DIALECT)?;
        let tenant = at_once(self.memory.tenant("local", NOW))?.ok()?;
        let (origin, settings) = (Origin::default(), Settings::new());
        let tools = [ToolSpec::new("read", "", "{}")];
        let messages: Vec<&Message> = self.messages.iter().collect();
        let request = Request::new(&self.dialects, dialect, MODEL, &origin, &settings)
            .with_messages(&messages)
            .with_tools(&tools);
        measured_restoring(&self.memory, &tenant, &request)
    }
}

#[inline(never)]
fn measured_restoring(memory: &Memory, tenant: &Arc<Tenant>, request: &Request<'_>) -> Option<usize> {
    Some(at_once(memory.restore(tenant, request, Some("session"), NOW))?.turns.len())
}

/// A question, then calls and results.
fn message(n: usize) -> Message {
    let text = |text: String| Block::Text(Text { text, ..Text::default() });
    let id = format!("call_00_{n:020}");
    match n {
        0 => Message::new(Role::User, vec![text("Read all files.".to_owned())]),
        n if n % 2 == 1 => {
            let arguments = Arguments::Json(format!(r#"{{"path":"src/file_{n}.rs","lines":[{n},{}]}}"#, n + 200));
            let call = ToolCall {
                id: CallId::Given(id),
                name: "read".to_owned(),
                arguments,
                seal: None,
                native: None,
                extra: Default::default(),
            };
            Message::new(Role::Assistant, vec![text(format!("Now file {n}.")), Block::ToolCall(call)])
        }
        n => {
            let content = format!("line {n}\n").repeat(40);
            let id = format!("call_00_{:020}", n - 1);
            let result = ToolResult { id, name: "read".to_owned(), content, media: Vec::new(), is_error: false };
            Message::new(Role::Tool, vec![Block::ToolResult(result)])
        }
    }
}

/// The result of a future that never waits.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

fn main() -> ExitCode {
    let n_messages = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000);
    match RestoringBench::new(n_messages).and_then(|bench| bench.run()) {
        Some(_) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}
