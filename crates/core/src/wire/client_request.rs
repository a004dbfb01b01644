//! Reads a client's request body, as the provider would: the inverse of `encode`.
//!
//! Assistant messages are read by the reply decoder, because they have the same
//! shape in a request and in a reply.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::Value;

use super::cache_points::CACHE_CONTROL;
use super::media_in::read_media_part;
use super::parameters_in::read_parameters;
use super::unread_members::{keep_unread, keep_unread_in_parts};
use super::{Decoder, chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::{Block, CallId, Media, Native, Origin, Text, ToolResult, Unmodelled};
use crate::conversation::ToolSpec;
use crate::dialect::{DeltaMode, ItemText, Rules};
use crate::fold::Fold;
use crate::json_text::{
    JsonKind, JsonText, Raw, at_path, compact, each_element, each_member, member, text_member, text_of,
};
use crate::message::{Message, Role};
use crate::parameters::{CacheHint, CachePosition, NativeTool, Parameters, ProtocolMembers};
use crate::protocol::Protocol;
use crate::rules::CacheMark;
use crate::tags::TagStart;

/// A request as a client sent it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientRequest {
    /// None if the URL path names the model.
    pub model: Option<String>,
    /// None if the URL path decides it.
    pub streams: Option<bool>,
    /// Adjacent tool results are merged into one message.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Vec<ToolSpec>,
    /// Everything else that the client asks for.
    pub parameters: Parameters,
}

impl ClientRequest {
    /// Names the provider that the client has its messages from. Only then are
    /// seals and native items sent back to it.
    #[must_use]
    pub fn with_origin(mut self, origin: &Origin) -> ClientRequest {
        for message in &mut self.messages {
            let has_native_parts = message.blocks.iter().any(|block| matches!(block, Block::Unmodelled(_)));
            if message.role == Role::Assistant || has_native_parts {
                message.origin = Some(origin.clone());
            }
        }
        self
    }
}

/// The body is not a valid request of its protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
#[non_exhaustive]
pub struct UnreadableRequest {
    /// The JSON path of the problem.
    pub path: String,
    /// What is wrong there, in words.
    pub problem: String,
}

/// Parses a request body of the given protocol.
pub fn read_request(protocol: Protocol, rules: &Rules, body: &str) -> Result<ClientRequest, UnreadableRequest> {
    let raw = Raw::of(body).map_err(|error| unreadable("body", error.to_string()))?;
    if raw.kind() != JsonKind::Object {
        return Err(unreadable("body", "not an object".to_owned()));
    }
    let mut reader = ClientRequestReader::new(protocol, rules);
    reader.request.model = text_member(raw, "model");
    reader.request.parameters = read_parameters(protocol, &rules.ask, raw)?;
    let streams = member(raw, "stream").and_then(|value| value.get().parse().ok());
    reader.request.streams = match protocol {
        Protocol::Gemini | Protocol::Bedrock => None,
        // Ollama streams by default.
        Protocol::Ollama => Some(streams.unwrap_or(true)),
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Cohere => {
            Some(streams.unwrap_or(false))
        }
    };
    match protocol {
        Protocol::OpenaiChat => chat::read_request(raw, &mut reader)?,
        Protocol::OpenaiResponses => responses::read_request(raw, &mut reader)?,
        Protocol::Anthropic => messages::read_request(raw, &mut reader)?,
        Protocol::Gemini => gemini::read_request(raw, &mut reader)?,
        Protocol::Ollama => ollama::read_request(raw, &mut reader)?,
        Protocol::Bedrock => converse::read_request(raw, &mut reader)?,
        Protocol::Cohere => cohere::read_request(raw, &mut reader)?,
    }
    reader.match_results();
    Ok(reader.request)
}

pub(super) fn unreadable(path: impl Into<String>, problem: String) -> UnreadableRequest {
    UnreadableRequest { path: path.into(), problem }
}

/// Collects the messages, tools and settings of a request.
pub(super) struct ClientRequestReader<'a> {
    pub(super) request: ClientRequest,
    protocol: Protocol,
    rules: &'a Rules,
    /// The same for messages that are sent back. Made for the first of them.
    replay_rules: OnceCell<Rules>,
    n_invented: usize,
}

impl<'a> ClientRequestReader<'a> {
    /// Where a reasoning item carries its plain text.
    pub(super) fn item_text(&self) -> ItemText {
        self.rules.echo.item_text
    }

    fn new(protocol: Protocol, rules: &'a Rules) -> ClientRequestReader<'a> {
        let (request, replay_rules) = (ClientRequest::default(), OnceCell::new());
        ClientRequestReader { request, protocol, rules, replay_rules, n_invented: 0 }
    }

    fn replay_rules(&self) -> &Rules {
        self.replay_rules.get_or_init(|| {
            let mut rules = self.rules.clone();
            // Messages sent back are complete, and no chat template added a tag.
            rules.read.tags.start = TagStart::Explicit;
            rules.read.delta_mode = DeltaMode::Delta;
            rules.read.content_chunks = true;
            rules
        })
    }

    /// Merges adjacent tool results; skips empty messages except the user's.
    pub(super) fn push_message(&mut self, role: Role, blocks: Vec<Block>) {
        if blocks.is_empty() && role != Role::User {
            return;
        }
        match self.request.messages.last_mut() {
            Some(last) if role == Role::Tool && last.role == Role::Tool => last.blocks.extend(blocks),
            _ => self.request.messages.push(Message::new(role, blocks)),
        }
    }

    /// Keeps what was not read of the message that was added last: the members besides `known`, and those of
    /// the parts in its member `content`.
    pub(super) fn keep_unread(&mut self, message: Raw<'_>, content: &str, known: &[&str]) {
        if let Some(last) = self.request.messages.last_mut() {
            keep_unread(self.protocol, message, content, known, &mut last.extra);
        }
    }

    /// The same for instructions that are a list of parts.
    pub(super) fn keep_unread_in_parts(&mut self, parts: Option<Raw<'_>>, path: &str) {
        if let Some(last) = self.request.messages.last_mut() {
            keep_unread_in_parts(self.protocol, parts, path, &mut last.extra);
        }
    }

    /// Splits a user turn: tool results first, as every protocol requires, then
    /// the rest.
    pub(super) fn push_user_turn(&mut self, blocks: Vec<Block>) {
        let (results, others): (Vec<Block>, Vec<Block>) =
            blocks.into_iter().partition(|block| matches!(block, Block::ToolResult(_)));
        let any_results = !results.is_empty();
        self.push_message(Role::Tool, results);
        if !others.is_empty() || !any_results {
            self.push_message(Role::User, others);
        }
    }

    /// As above, with the elements after which the client wants the request stored.
    pub(super) fn push_marked_user_turn(&mut self, blocks: Vec<Block>, marks: Vec<CacheMark>) {
        let is_result: Vec<bool> = blocks.iter().map(|block| matches!(block, Block::ToolResult(_))).collect();
        let n_results = is_result.iter().filter(|is_result| **is_result).count();
        self.push_user_turn(blocks);
        let Some(last) = self.request.messages.len().checked_sub(1) else { return };
        // Results come first, at the end of their message; the rest follows.
        let tool = if n_results < is_result.len() { last.saturating_sub(1) } else { last };
        let tool_blocks = self.request.messages.get(tool).map_or(0, |message| message.blocks.len());
        for CacheMark { block, ttl } in marks {
            let of_kind = is_result.get(block).copied().unwrap_or(false);
            let rank = is_result.iter().take(block).filter(|is_result| **is_result == of_kind).count();
            let (message, block) = if of_kind { (tool, tool_blocks - n_results + rank) } else { (last, rank) };
            self.hint_at(CachePosition::Block { message, block }, ttl);
        }
    }

    /// Adds the hints of the message that was added last, if it has these blocks.
    pub(super) fn mark_last_message(&mut self, marks: Vec<CacheMark>) {
        let Some(at) = self.request.messages.len().checked_sub(1) else { return };
        let (role, n_blocks) =
            self.request.messages.get(at).map_or((Role::User, 0), |last| (last.role, last.blocks.len()));
        let is_prompt = self.request.messages.iter().all(|message| message.role == Role::System);
        for CacheMark { block, ttl } in marks {
            let after = match role {
                Role::System if block + 1 == n_blocks && is_prompt => CachePosition::System,
                // The result that was added last.
                Role::Tool => CachePosition::Block { message: at, block: n_blocks.saturating_sub(1) },
                Role::System | Role::User | Role::Assistant => {
                    CachePosition::Block { message: at, block: block.min(n_blocks.saturating_sub(1)) }
                }
            };
            self.hint_at(after, ttl);
        }
    }

    pub(super) fn hint_at(&mut self, after: CachePosition, ttl: Option<String>) {
        let mut hint = CacheHint::new(after);
        hint.ttl = ttl;
        self.request.parameters.cache_hints.push(hint);
    }

    /// Adds an assistant message, given as a complete reply body of this protocol.
    pub(super) fn push_assistant(&mut self, body: &str) {
        let mut fold = Fold::new();
        let mut decoder = Decoder::with_limit(self.protocol, self.replay_rules(), body.len() + 1);
        decoder.push(body.as_bytes(), &mut fold);
        // An empty reply is valid here.
        let _not_understood = decoder.finish(&mut fold);
        let reply = fold.finish();
        let mut message = Message::new(Role::Assistant, reply.blocks);
        message.empty_thinking_field = reply.empty_thinking_field;
        message.extra = reply.extra;
        for block in &mut message.blocks {
            if let Block::ToolCall(call) = block
                && let CallId::Invented(id) = &mut call.id
            {
                self.n_invented += 1;
                *id = format!("{}{}", CallId::INVENTED, self.n_invented);
            }
        }
        self.request.messages.push(message);
    }

    /// Tools of the form `{"type":"function","function":{…}}`, which several
    /// protocols use.
    pub(super) fn push_function_tools(&mut self, body: Raw<'_>) -> Result<(), UnreadableRequest> {
        let tools = member(body, "tools").map(elements).unwrap_or_default();
        tools.into_iter().try_for_each(|tool| self.push_tool(tool, Some("function"), &["parameters"]))
    }

    /// Adds a tool. Its name is in the object `inner`, or in the tool itself, and
    /// its parameters are the first of `schemas` that is present there. Without that
    /// object it is a tool that the provider runs itself.
    pub(super) fn push_tool(
        &mut self,
        tool: Raw<'_>,
        inner: Option<&str>,
        schemas: &[&str],
    ) -> Result<(), UnreadableRequest> {
        let Some(function) = inner.map_or(Some(tool), |inner| member(tool, inner)) else {
            self.push_native_tool(tool.get());
            return Ok(());
        };
        let schema = schemas.iter().find_map(|path| at_path(function, path));
        let text = |name: &str| text_member(function, name).unwrap_or_default();
        let parameters = schema.map_or("{}".into(), |schema| compact(schema.get()));
        let mut spec = ToolSpec::new(text("name"), text("description"), parameters);
        spec.strict = member(function, "strict").and_then(|strict| strict.get().parse().ok());
        let is_schema = |name: &str| schemas.iter().any(|path| path.split('.').next() == Some(name));
        let mut members =
            other_members(function, |name| ["name", "description", "strict"].contains(&name) || is_schema(name))?;
        if let Some(inner) = inner {
            let below = std::mem::replace(&mut members, other_members(tool, |name| name == inner)?);
            if !below.is_empty() {
                members.insert(inner.to_owned(), below.into_iter().collect());
            }
        }
        spec.extra = (!members.is_empty()).then(|| ProtocolMembers::new(self.protocol, members));
        self.request.tools.push(spec);
        Ok(())
    }

    /// Turns the mark on the last tool into a hint.
    pub(super) fn read_tools_mark(&mut self) {
        let Some(extra) = self.request.tools.last_mut().and_then(|tool| tool.extra.as_mut()) else { return };
        let Some(mark) = extra.members.remove(CACHE_CONTROL) else { return };
        if extra.members.is_empty()
            && let Some(tool) = self.request.tools.last_mut()
        {
            tool.extra = None;
        }
        self.hint_at(CachePosition::Tools, mark.get("ttl").and_then(Value::as_str).map(str::to_owned));
    }

    /// Keeps a tool that the provider runs itself.
    pub(super) fn push_native_tool(&mut self, json: &str) {
        let tool = NativeTool::new(self.protocol, compact(json).into_owned());
        self.request.parameters.native_tools.push(tool);
    }

    /// Matches tool results to calls by id, else by name, else by order.
    fn match_results(&mut self) {
        let mut open: Vec<(String, String)> = Vec::new();
        for block in self.request.messages.iter_mut().flat_map(|message| &mut message.blocks) {
            match block {
                Block::ToolCall(call) => open.push((call.id.as_str().to_owned(), call.name.clone())),
                Block::ToolResult(result) => {
                    let fits = |(id, name): &(String, String)| match result.id.as_str() {
                        "" => result.name.is_empty() || *name == result.name,
                        given => id == given,
                    };
                    let Some(at) = open.iter().position(fits) else { continue };
                    let (id, name) = open.remove(at);
                    result.id = id;
                    if result.name.is_empty() {
                        result.name = name;
                    }
                }
                Block::Text(_) | Block::Thinking(_) | Block::Media(_) | Block::Unmodelled(_) => (),
            }
        }
    }
}

/// The members of a tool that are not known, apart from a type that every tool of
/// its protocol has or may have.
fn other_members(tool: Raw<'_>, is_known: impl Fn(&str) -> bool) -> Result<BTreeMap<String, Value>, UnreadableRequest> {
    let (mut members, mut problem) = (BTreeMap::new(), None);
    each_member(tool, |name, value| {
        let is_usual_type = name == "type" && matches!(value.get(), "\"function\"" | "\"custom\"");
        if is_known(name) || is_usual_type {
            return;
        }
        match serde_json::from_str(value.get()) {
            Ok(parsed) => drop(members.insert(name.to_owned(), parsed)),
            Err(error) => problem = Some(unreadable(format!("tools: {name}"), error.to_string())),
        }
    });
    problem.map_or(Ok(members), Err)
}

pub(super) fn elements(list: Raw<'_>) -> Vec<Raw<'_>> {
    let mut out = Vec::new();
    each_element(list, |element| out.push(element));
    out
}

/// The elements of a required list, each with its JSON path.
pub(super) fn list_with_paths<'a>(body: Raw<'a>, name: &str) -> Result<Vec<(String, Raw<'a>)>, UnreadableRequest> {
    let list = member(body, name).filter(|list| list.kind() == JsonKind::Array);
    let Some(list) = list else { return Err(unreadable(name, "a list is required".to_owned())) };
    Ok(elements(list).into_iter().enumerate().map(|(at, element)| (format!("{name}[{at}]"), element)).collect())
}

pub(super) fn unknown_role(path: &str, role: Option<String>) -> UnreadableRequest {
    let role = role.unwrap_or_default();
    unreadable(format!("{path}.role"), format!("unknown role `{role}`"))
}

/// Content that is either a string or a list of parts.
pub(super) fn content_blocks<'a>(content: Option<Raw<'a>>, part: impl Fn(Raw<'a>) -> Block) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    match content.kind() {
        JsonKind::Text => vec![text_block(text_of(content))],
        JsonKind::Array => elements(content).into_iter().map(part).collect(),
        JsonKind::Null | JsonKind::Object | JsonKind::Other => Vec::new(),
    }
}

/// A part with a `type`: text, or an image in a `data:` URL.
pub(super) fn typed_part(part: Raw<'_>) -> Block {
    match text_member(part, "type").as_deref() {
        Some("text" | "input_text") => text_block(text_member(part, "text")),
        _ => media_or_unmodelled(part),
    }
}

/// An image or a document, or else the part as it is.
pub(super) fn media_or_unmodelled(part: Raw<'_>) -> Block {
    read_media_part(part).map_or_else(|| unmodelled(part), Block::Media)
}

pub(super) fn text_block(text: Option<String>) -> Block {
    Block::Text(Text { text: text.unwrap_or_default(), ..Text::default() })
}

/// A part of unknown shape, kept verbatim.
pub(super) fn unmodelled(raw: Raw<'_>) -> Block {
    let native = Native { json: compact(raw.get()).into_owned(), text_member: None };
    Block::Unmodelled(Unmodelled { native })
}

/// The output of a tool: a string, the joined texts of a list with its images and
/// documents, or else the JSON itself.
pub(super) fn tool_output(content: Option<Raw<'_>>) -> (String, Vec<Media>) {
    let Some(content) = content else { return (String::new(), Vec::new()) };
    let read = |part: Raw<'_>| {
        let document = at_path(part, "document.data").and_then(JsonText::of).map(JsonText::to_owned_text);
        let json = member(part, "json").or_else(|| at_path(part, "document.data"));
        let text = member(part, "text").and_then(JsonText::of).map(JsonText::to_owned_text).or(document);
        text.unwrap_or_else(|| compact(json.unwrap_or(part).get()).into_owned())
    };
    match content.kind() {
        JsonKind::Text => (text_of(content).unwrap_or_default(), Vec::new()),
        JsonKind::Array => {
            let (mut texts, mut media) = (Vec::new(), Vec::new());
            for part in elements(content) {
                match read_media_part(part) {
                    Some(found) => media.push(found),
                    None => texts.push(read(part)),
                }
            }
            (texts.join("\n"), media)
        }
        JsonKind::Null => (String::new(), Vec::new()),
        JsonKind::Object | JsonKind::Other => (compact(content.get()).into_owned(), Vec::new()),
    }
}

pub(super) fn tool_result(
    id: Option<String>,
    name: Option<String>,
    (content, media): (String, Vec<Media>),
    is_error: bool,
) -> Block {
    let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
    Block::ToolResult(ToolResult { id, name, content, media, is_error })
}
