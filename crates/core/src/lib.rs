//! Bytes of any provider's stream into one neutral event stream, and from
//! there into blocks. Deterministic: no IO, no clock, no environment.
//!
//! Reading order: [`event`], [`block`], [`fold`], then `wire/chat`, then
//! [`dialect`].
//!
//! A response in, the next request out:
//!
//! ```
//! use aside_core::block::{Block, Origin, ToolResult};
//! use aside_core::message::{Message, Role};
//! use aside_core::settings::Settings;
//! use aside_core::wire::{Decoder, Request, encode};
//! use aside_core::{dialect::Dialects, fold::Fold};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let response = include_bytes!("../../../fixtures/deepseek/thinking_before_a_tool_call/response.sse");
//!
//! let dialects = Dialects::builtin()?;
//! let dialect = dialects.get("deepseek").ok_or("not built in")?;
//! let model = "deepseek-v4-pro";
//!
//! // Bytes in, in any pieces. A fold makes blocks of the events; any `Sink` can take them.
//! let mut decoder = Decoder::new(dialect.protocol, dialect.rules(Some(model)));
//! let mut fold = Fold::new();
//! for bytes in response.chunks(100) {
//!     decoder.push(bytes, &mut fold);
//! }
//! decoder.finish(&mut fold)?;
//! let reply = fold.finish(); // blocks, usage, how it ended, notes
//!
//! // Store it with who made it, answer its call, and build the next request.
//! let maker = Origin { provider: Some("deepseek".into()), model: Some(model.into()), ..Origin::default() };
//! let said = Message::from_reply(reply, Some(maker.clone()));
//! let result = ToolResult { id: "call_00_berth4depth".into(), name: "depth".into(), content: "4 m".into(), is_error: false };
//! let answered = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
//! let request = encode(&Request {
//!     dialects: &dialects,
//!     dialect,
//!     model,
//!     target: &maker,
//!     messages: &[&said, &answered],
//!     tools: &[],
//!     settings: &Settings::new(),
//!     repairs: &[],
//! });
//! assert!(request.body.contains(r#""reasoning_content":"I need the depth at berth 4 first.""#));
//! # Ok(())
//! # }
//! ```

pub mod block;
pub mod compact;
pub mod conversation;
pub mod dialect;
pub mod event;
pub mod exchange;
pub mod fold;
pub mod frame;
pub mod history;
pub mod json;
pub mod loop_guard;
pub mod mention;
pub mod message;
pub mod protocol;
pub mod question;
pub mod rules;
pub mod safe_json;
pub mod screen;
pub mod settings;
pub mod tags;
pub mod text;
pub mod tokens;
pub mod turn;
pub mod wire;
