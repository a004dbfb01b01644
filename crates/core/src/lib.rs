//! Decodes the stream of any provider into neutral events, folds them into
//! blocks, and builds the next request from them. Deterministic: no IO, no
//! clock, no environment.
//!
//! | To | use |
//! |---|---|
//! | read a reply | [`Decoder`] with a [`Fold`], or with your own [`Sink`] |
//! | build a request | [`encode`], or an [`Encoder`] for many; then [`http_call`] |
//! | check a request body | [`judge()`] |
//! | fix a refused request | [`RepairLoop`] |
//! | split `<think>` tags from text | [`TagParser`] |
//! | serve another protocol | [`read_request`] and [`StreamWriter`] |
//! | keep a conversation | [`History`], and [`Conversation`] for its file |
//!
//! A [`Dialect`] says how a provider deviates from its [`Protocol`]. The
//! modules hold what the root does not show. To read the code, start with
//! [`event`], [`block`] and [`fold`], then `wire/chat`, then [`dialect`].
//!
//! # Decode a response and build the next request
//!
//! ```
//! use aside_core::{Block, Decoder, Dialects, Fold, Message, Origin, Request, Role, Settings, ToolResult, encode};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let response = include_bytes!("../fixtures/deepseek/thinking_before_a_tool_call/response.sse");
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
//! let origin = Origin::default().with_provider("deepseek".to_owned()).with_model(model.to_owned());
//! let reply = Message::from_reply(reply, Some(origin.clone()));
//! let result = ToolResult { id: "call_00_berth4depth".into(), name: "depth".into(), content: "4 m".into(), media: vec![], is_error: false };
//! let results = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
//! let request = encode(&Request::new(&dialects, dialect, model, &origin, &Settings::new()).with_messages(&[&reply, &results]));
//! assert!(request.body.contains(r#""reasoning_content":"I need the depth at berth 4 first.""#));
//! # Ok(())
//! # }
//! ```
//!
//! # Print thinking as it arrives
//!
//! Any closure is a [`Sink`].
//!
//! ```
//! use std::collections::HashSet;
//!
//! use aside_core::{BlockOpening, Decoder, Dialects, Event};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let response = include_bytes!("../fixtures/deepseek/thinking_before_a_tool_call/response.sse");
//!
//! let dialects = Dialects::builtin()?;
//! let dialect = dialects.get("deepseek").ok_or("not built in")?;
//! let (mut thinking, mut shown) = (HashSet::new(), String::new());
//! let mut print = |event: Event<'_>| match event {
//!     Event::Opened { block, opening: BlockOpening::Thinking { .. } } => drop(thinking.insert(block)),
//!     Event::Grew { block, text } if thinking.contains(&block) => shown.push_str(text),
//!     _ => (),
//! };
//! let mut decoder = Decoder::new(dialect.protocol, dialect.rules(None));
//! decoder.push(response, &mut print);
//! decoder.finish(&mut print)?;
//! assert_eq!(shown, "I need the depth at berth 4 first.");
//! # Ok(())
//! # }
//! ```
//!
//! # Check a request body
//!
//! The judge needs no network, so it fits into the tests of any client.
//!
//! ```
//! use aside_core::{Dialects, IssuedThinking, judge};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!
//! let body = r#"{"model": "deepseek-v4-pro", "messages": [
//!     {"role": "user", "content": "How deep is berth 4?"},
//!     {"role": "assistant", "content": null, "tool_calls": [
//!         {"id": "call_1", "type": "function", "function": {"name": "depth", "arguments": "{}"}}]},
//!     {"role": "tool", "tool_call_id": "call_1", "content": "4 m"}
//! ]}"#;
//! let dialects = Dialects::builtin()?;
//! let dialect = dialects.get("deepseek").ok_or("not built in")?;
//! let verdict = judge(dialect, "deepseek-v4-pro", &[], body, IssuedThinking::Unknown)?;
//! assert_eq!(verdict.broken[0].status, 400);
//! assert_eq!(verdict.broken[0].path, "messages[1]");
//! # Ok(())
//! # }
//! ```
//!
//! # Repair a refused request
//!
//! ```
//! use aside_core::{Decoder, Dialects, Fold, RefusedRequest, RepairLoop};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!
//! let refusal = r#"{"error": {"message": "The `reasoning_content` in the thinking mode must be passed back to the API."}}"#;
//! let dialects = Dialects::builtin()?;
//! let dialect = dialects.get("generic").ok_or("not built in")?;
//!
//! // The body of an HTTP error is decoded like any other.
//! let (mut decoder, mut fold) = (Decoder::new(dialect.protocol, dialect.rules(None)), Fold::new());
//! decoder.push(refusal.as_bytes(), &mut fold);
//! decoder.finish(&mut fold)?;
//! let error = fold.finish().end.error.ok_or("no error")?;
//!
//! // `to_refused` of the encoded request; the closure encodes it again with other repairs.
//! let refused = RefusedRequest::new("{}".to_owned().into(), Vec::new());
//! let mut repairs = RepairLoop::new(&dialects, &[]);
//! let notice = repairs.refused(&error, &refused, |repairs| format!("{repairs:?}").into());
//! let notice = notice.ok_or("no repair is known")?;
//! assert_eq!(notice.row, "passed_back");
//! assert_eq!(repairs.repairs().len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Split `<think>` tags from text
//!
//! ```
//! use aside_core::{TagPair, TagParser, TagPiece, TagRules};
//!
//! let (mut thinking, mut answer) = (String::new(), String::new());
//! let mut take = |piece: TagPiece<'_>| match piece {
//!     TagPiece::Thinking(text) => thinking.push_str(text),
//!     TagPiece::Text(text) => answer.push_str(text),
//!     // The tag was missing, and what came so far belongs to the other kind.
//!     TagPiece::Refile(_) => std::mem::swap(&mut thinking, &mut answer),
//!     TagPiece::Open { .. } | TagPiece::Close => (),
//! };
//! // `dialect.rules(model).read.tags` has the tags of a model.
//! let mut parser = TagParser::new(TagRules::new(vec![TagPair::new("<think>", "</think>")]));
//! for piece in ["<th", "ink>Four metres?</thi", "nk>Yes, ", "four."] {
//!     parser.push(piece, &mut take);
//! }
//! parser.finish(&mut take);
//! assert_eq!((thinking.as_str(), answer.as_str()), ("Four metres?", "Yes, four."));
//! ```
//!
//! # Convert a reply to another protocol
//!
//! A [`StreamWriter`] is a [`Sink`], so a decoder can write into it directly.
//!
//! ```
//! use aside_core::{Decoder, Dialects, ReplyHead, StreamWriter};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let response = include_bytes!("../fixtures/deepseek/thinking_before_a_tool_call/response.sse");
//!
//! let dialects = Dialects::builtin()?;
//! let from = dialects.get("deepseek").ok_or("not built in")?;
//! let to = dialects.get("anthropic").ok_or("not built in")?;
//! let head = ReplyHead::new("msg_1", "deepseek-v4-pro", 0);
//! let mut writer = StreamWriter::new(to.protocol, to.rules(None), &head);
//! let mut decoder = Decoder::new(from.protocol, from.rules(None));
//! let mut converted = Vec::new();
//! for bytes in response.chunks(100) {
//!     decoder.push(bytes, &mut writer);
//!     converted.extend(writer.drain());
//! }
//! decoder.finish(&mut writer)?;
//! converted.extend(writer.drain());
//! let converted = String::from_utf8(converted)?;
//! assert!(converted.contains(r#""type":"thinking_delta","thinking":"I need"#));
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

pub mod block;
pub mod compaction;
pub mod connection_failure;
pub mod conversation;
pub mod counted;
pub mod dialect;
pub mod event;
pub mod extra;
pub mod fold;
pub mod frame;
pub mod history;
pub mod interchange;
pub mod json;
pub mod json_schema;
pub mod json_text;
pub mod json_value;
pub mod mention;
pub mod message;
pub mod model_table;
pub mod parameters;
pub mod permission_question;
pub mod protocol;
pub mod repetition;
pub mod rules;
pub mod safe_json;
pub mod settings;
pub mod tags;
pub mod terminal_text;
pub mod title;
pub mod tokens;
pub mod tool_mode;
pub mod turn;
pub mod wire;

pub use block::{
    Arguments, Block, CallId, Media, MediaKind, MediaSource, Origin, Reply, Seals, Text, Thinking, ThinkingContent,
    ToolCall, ToolResult,
};
pub use conversation::{Conversation, ToolSpec};
pub use dialect::{Dialect, DialectSource, Dialects, Rules};
pub use event::{BlockId, BlockOpening, Ending, Event, Note, NoteCode, ProviderError, ReplyEnd, Sink, Usage};
pub use extra::Extra;
pub use fold::Fold;
pub use history::{EntryId, History};
pub use message::{Message, Role};
pub use parameters::{Parameters, ResponseFormat, ToolChoice};
pub use protocol::Protocol;
pub use rules::{
    BrokenRule, Decision, IssuedThinking, JudgeVerdict, LearnedRepairs, LeftOut, LeftOutReason, RefusedRequest,
    RepairLoop, judge,
};
pub use settings::{Layer, Settings};
pub use tags::{TagPair, TagParser, TagPiece, TagRules};
pub use wire::{
    ClientRequest, Decoder, Destination, Encoded, Encoder, HttpCall, ReplyHead, Request, StreamWriter, ThinkingDemand,
    ThinkingDemands, detect_protocol, encode, http_call, read_request, whole_reply,
};
