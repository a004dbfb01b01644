//! Decodes the stream of any provider into neutral events, folds them into
//! blocks, and builds the next request from them. Deterministic: no IO, no
//! clock, no environment.
//!
//! Reading order: [`event`], [`block`], [`fold`], then `wire/chat`, then
//! [`dialect`].
//!
//! Decode a response and build the next request:
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
//! // Push bytes in chunks of any size. A fold turns events into blocks; any `Sink` works.
//! let mut decoder = Decoder::new(dialect.protocol, dialect.rules(Some(model)));
//! let mut fold = Fold::new();
//! for bytes in response.chunks(100) {
//!     decoder.push(bytes, &mut fold);
//! }
//! decoder.finish(&mut fold)?;
//! let reply = fold.finish(); // blocks, usage, ending, notes
//!
//! // Record its origin, add the tool result, and build the next request.
//! let origin = Origin { provider: Some("deepseek".into()), model: Some(model.into()), ..Origin::default() };
//! let reply = Message::from_reply(reply, Some(origin.clone()));
//! let result = ToolResult { id: "call_00_berth4depth".into(), name: "depth".into(), content: "4 m".into(), is_error: false };
//! let results = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
//! let request = encode(&Request {
//!     dialects: &dialects,
//!     dialect,
//!     model,
//!     target: &origin,
//!     messages: &[&reply, &results],
//!     tools: &[],
//!     settings: &Settings::new(),
//!     repairs: &[],
//! });
//! assert!(request.body.contains(r#""reasoning_content":"I need the depth at berth 4 first.""#));
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

pub mod block;
pub mod compaction;
pub mod conversation;
pub mod counted;
pub mod dialect;
pub mod event;
pub mod fold;
pub mod frame;
pub mod history;
pub mod interchange;
pub mod json;
pub mod json_text;
pub mod json_value;
pub mod mention;
pub mod message;
pub mod permission_question;
pub mod protocol;
pub mod repetition;
pub mod rules;
pub mod safe_json;
pub mod settings;
pub mod tags;
pub mod terminal_text;
pub mod tokens;
pub mod turn;
pub mod wire;
