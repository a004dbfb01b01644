//! A request as its provider reads it, in our words: the way back of `encode`.
//!
//! What the model said is read by the decoder that reads answers: a message of
//! the assistant has one shape in a request and in an answer.

use super::json::{Kind, Raw, at_path, compact, count_of, each_element, member, text_member, text_of};
use super::{Decoder, chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::{Block, CallId, Image, Native, Text, ToolResult, Unmodelled};
use crate::conversation::Tool;
use crate::dialect::{DeltaMode, ItemText, Rules};
use crate::fold::Fold;
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::tags::Start;

/// What a client asks for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Incoming {
    /// None where the path names it.
    pub model: Option<String>,
    /// None where the path says it.
    pub streams: Option<bool>,
    /// Neighbouring results of tools are one message.
    pub messages: Vec<Message>,
    pub tools: Vec<Tool>,
    pub max_tokens: Option<u64>,
    pub choice: ToolChoice,
}

/// Whether the model may, must or must not call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    Free,
    Never,
    Any,
    Named(String),
}

/// A body that is no request of its protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct UnreadableRequest {
    /// Where in the body.
    pub path: String,
    pub problem: String,
}

/// Reads a request body as the provider it is meant for.
pub fn read_request(protocol: Protocol, rules: &Rules, body: &str) -> Result<Incoming, UnreadableRequest> {
    let raw = Raw::of(body).map_err(|error| unreadable("body", format!("not JSON: {error}")))?;
    if raw.kind() != Kind::Object {
        return Err(unreadable("body", "not an object".to_owned()));
    }
    let mut gather = Gather::new(protocol, rules);
    gather.incoming.model = text_member(raw, "model");
    gather.incoming.max_tokens = at_path(raw, &rules.ask.max_tokens.path).and_then(count_of);
    let streams = member(raw, "stream").and_then(|value| value.get().parse().ok());
    gather.incoming.streams = match protocol {
        Protocol::Gemini | Protocol::Bedrock => None,
        // It streams unless it is told not to.
        Protocol::Ollama => Some(streams.unwrap_or(true)),
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Cohere => {
            Some(streams.unwrap_or(false))
        }
    };
    match protocol {
        Protocol::OpenaiChat => chat::read_request(raw, &mut gather)?,
        Protocol::OpenaiResponses => responses::read_request(raw, &mut gather)?,
        Protocol::Anthropic => messages::read_request(raw, &mut gather)?,
        Protocol::Gemini => gemini::read_request(raw, &mut gather)?,
        Protocol::Ollama => ollama::read_request(raw, &mut gather)?,
        Protocol::Bedrock => converse::read_request(raw, &mut gather)?,
        Protocol::Cohere => cohere::read_request(raw, &mut gather)?,
    }
    gather.name_results();
    Ok(gather.incoming)
}

pub(super) fn unreadable(path: impl Into<String>, problem: String) -> UnreadableRequest {
    UnreadableRequest { path: path.into(), problem }
}

/// A request while it is read.
pub(super) struct Gather {
    pub(super) incoming: Incoming,
    protocol: Protocol,
    rules: Rules,
    n_invented: usize,
}

impl Gather {
    /// Where an item has its plain words.
    pub(super) fn item_text(&self) -> ItemText {
        self.rules.echo.item_text
    }

    fn new(protocol: Protocol, rules: &Rules) -> Gather {
        let mut rules = rules.clone();
        // A message that comes back is whole, and a template wrote nothing into it.
        rules.read.tags.start = Start::Explicit;
        rules.read.delta_mode = DeltaMode::Delta;
        rules.read.content_chunks = true;
        Gather { incoming: Incoming::default(), protocol, rules, n_invented: 0 }
    }

    /// Neighbouring results are one message; nothing at all is none.
    pub(super) fn say(&mut self, role: Role, blocks: Vec<Block>) {
        if blocks.is_empty() && role != Role::User {
            return;
        }
        match self.incoming.messages.last_mut() {
            Some(last) if role == Role::Tool && last.role == Role::Tool => last.blocks.extend(blocks),
            _ => self.incoming.messages.push(Message::new(role, blocks)),
        }
    }

    /// Results of tools first, as every protocol has them, then what the user
    /// said beside them.
    pub(super) fn say_turn(&mut self, blocks: Vec<Block>) {
        let (results, said): (Vec<Block>, Vec<Block>) =
            blocks.into_iter().partition(|block| matches!(block, Block::ToolResult(_)));
        let any_results = !results.is_empty();
        self.say(Role::Tool, results);
        if !said.is_empty() || !any_results {
            self.say(Role::User, said);
        }
    }

    /// What the model said, as a whole answer of this protocol would hold it.
    pub(super) fn answer(&mut self, body: &str) {
        let mut fold = Fold::new();
        let mut decoder = Decoder::with_limit(self.protocol, &self.rules, body.len() + 1);
        decoder.push(body.as_bytes(), &mut fold);
        // An answer that says nothing is one too.
        let _nothing_said = decoder.finish(&mut fold);
        let reply = fold.finish();
        let mut message = Message::new(Role::Assistant, reply.blocks);
        message.seen = reply.seen;
        for block in &mut message.blocks {
            if let Block::ToolCall(call) = block
                && let CallId::Invented(id) = &mut call.id
            {
                self.n_invented += 1;
                *id = format!("{}{}", CallId::INVENTED, self.n_invented);
            }
        }
        self.incoming.messages.push(message);
    }

    /// `{"type":"function","function":{…}}`, as several protocols have it.
    pub(super) fn function_tools(&mut self, body: Raw<'_>) {
        for tool in member(body, "tools").map(elements).unwrap_or_default() {
            if let Some(function) = member(tool, "function") {
                self.tool(function, &["parameters"]);
            }
        }
    }

    /// A tool by its name, its description and the first schema it has.
    pub(super) fn tool(&mut self, tool: Raw<'_>, schemas: &[&str]) {
        let schema = schemas.iter().find_map(|path| at_path(tool, path));
        self.incoming.tools.push(Tool {
            name: text_member(tool, "name").unwrap_or_default(),
            description: text_member(tool, "description").unwrap_or_default(),
            parameters: schema.map_or("{}".into(), |schema| compact(schema.get())).into_owned(),
        });
    }

    /// `auto`, `none`, `required`, or an object that names a tool.
    pub(super) fn choice_words(&mut self, body: Raw<'_>) {
        let Some(choice) = member(body, "tool_choice") else { return };
        let word = text_of(choice).or_else(|| text_member(choice, "type")).unwrap_or_default();
        let name = text_member(choice, "name").or_else(|| at_path(choice, "function.name").and_then(text_of));
        self.incoming.choice = match (word.to_lowercase().as_str(), name) {
            ("none", _) => ToolChoice::Never,
            ("required" | "any", _) => ToolChoice::Any,
            (_, Some(name)) => ToolChoice::Named(name),
            _ => ToolChoice::Free,
        };
    }

    pub(super) fn limit(&mut self, body: Raw<'_>, paths: &[&str]) {
        let known = || paths.iter().find_map(|path| at_path(body, path).and_then(count_of));
        self.incoming.max_tokens = self.incoming.max_tokens.or_else(known);
    }

    /// Results say whose they are by an id, by a name, or by their order only.
    fn name_results(&mut self) {
        let mut open: Vec<(String, String)> = Vec::new();
        for block in self.incoming.messages.iter_mut().flat_map(|message| &mut message.blocks) {
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
                Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::Unmodelled(_) => (),
            }
        }
    }
}

pub(super) fn elements(list: Raw<'_>) -> Vec<Raw<'_>> {
    let mut out = Vec::new();
    each_element(list, |element| out.push(element));
    out
}

/// The messages of a body, each with its path.
pub(super) fn listed<'a>(body: Raw<'a>, name: &str) -> Result<Vec<(String, Raw<'a>)>, UnreadableRequest> {
    let list = member(body, name).filter(|list| list.kind() == Kind::Array);
    let Some(list) = list else { return Err(unreadable(name, "a list is required".to_owned())) };
    Ok(elements(list).into_iter().enumerate().map(|(at, element)| (format!("{name}[{at}]"), element)).collect())
}

pub(super) fn unknown_role(path: &str, role: Option<String>) -> UnreadableRequest {
    let role = role.unwrap_or_default();
    unreadable(format!("{path}.role"), format!("unknown role `{role}`"))
}

/// Content that is a text, or a list of parts read one by one.
pub(super) fn content<'a>(content: Option<Raw<'a>>, part: impl Fn(Raw<'a>) -> Block) -> Vec<Block> {
    let Some(content) = content else { return Vec::new() };
    match content.kind() {
        Kind::Text => vec![text(text_of(content))],
        Kind::Array => elements(content).into_iter().map(part).collect(),
        Kind::Null | Kind::Object | Kind::Other => Vec::new(),
    }
}

/// A part that has a type: text, or an image behind a `data:` address.
pub(super) fn typed_part(part: Raw<'_>) -> Block {
    match text_member(part, "type").as_deref() {
        Some("text" | "input_text") => text(text_member(part, "text")),
        Some("image_url" | "input_image") => {
            let url = member(part, "image_url");
            let url = url.and_then(text_of).or_else(|| at_path(part, "image_url.url").and_then(text_of));
            url.as_deref().and_then(inline_image).unwrap_or_else(|| kept(part))
        }
        _ => kept(part),
    }
}

fn inline_image(url: &str) -> Option<Block> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(image(media_type.to_owned(), data.to_owned()))
}

pub(super) fn image(media_type: String, data: String) -> Block {
    Block::Image(Image { media_type, data })
}

pub(super) fn text(text: Option<String>) -> Block {
    Block::Text(Text { text: text.unwrap_or_default(), ..Text::default() })
}

/// Something we do not understand, kept.
pub(super) fn kept(raw: Raw<'_>) -> Block {
    let native = Native { json: compact(raw.get()).into_owned(), text_member: None };
    Block::Unmodelled(Unmodelled { native })
}

/// What a tool gave: a text, or the texts of a list; else the JSON itself.
pub(super) fn output(content: Option<Raw<'_>>) -> String {
    let Some(content) = content else { return String::new() };
    let read = |part: Raw<'_>| {
        let document = at_path(part, "document.data").and_then(text_of);
        let json = member(part, "json").or_else(|| at_path(part, "document.data"));
        let said = text_member(part, "text").or(document);
        said.unwrap_or_else(|| compact(json.unwrap_or(part).get()).into_owned())
    };
    match content.kind() {
        Kind::Text => text_of(content).unwrap_or_default(),
        Kind::Array => elements(content).into_iter().map(read).collect::<Vec<_>>().join("\n"),
        Kind::Null => String::new(),
        Kind::Object | Kind::Other => compact(content.get()).into_owned(),
    }
}

pub(super) fn result(id: Option<String>, name: Option<String>, content: String, is_error: bool) -> Block {
    let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
    Block::ToolResult(ToolResult { id, name, content, is_error })
}
