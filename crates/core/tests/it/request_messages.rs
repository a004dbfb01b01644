//! The content of a request's assistant messages in one form for all protocols, so that
//! two requests can be compared.

use std::fmt;

use aside_core::protocol::Protocol;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Thinking,
    Text,
    Call,
    /// An item of the provider's own, such as a search or its result.
    Other,
}

/// One part of an assistant message in a request.
#[derive(Clone, PartialEq)]
pub(crate) struct MessagePiece {
    pub(crate) kind: PieceKind,
    /// The field or type that holds it; another mark of a call or text.
    pub(crate) place: String,
    /// The text; the name of a call.
    pub(crate) text: String,
    pub(crate) arguments: Value,
    pub(crate) call_id: Option<String>,
    /// The provider's id of the item.
    pub(crate) id: Option<String>,
    pub(crate) seals: Vec<String>,
}

impl fmt::Debug for MessagePiece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MessagePiece { kind, place, text, arguments, call_id, id, seals } = self;
        let seals: Vec<String> = seals.iter().map(|seal| clip(seal)).collect();
        write!(f, "\n    {kind:?} {place} {:?}", clip(text))?;
        if !arguments.is_null() {
            write!(f, " {}", clip(&arguments.to_string()))?;
        }
        write!(f, " call={call_id:?} id={id:?} seals={seals:?}")
    }
}

fn clip(text: &str) -> String {
    let length = text.chars().count();
    if length <= 60 { text.to_owned() } else { format!("{}…{length}", text.chars().take(60).collect::<String>()) }
}

impl MessagePiece {
    fn new(kind: PieceKind, place: &str, text: &str) -> MessagePiece {
        let (place, text) = (place.to_owned(), text.to_owned());
        MessagePiece { kind, place, text, arguments: Value::Null, call_id: None, id: None, seals: Vec::new() }
    }

    fn call(name: &Value, arguments: &Value, call_id: &Value) -> MessagePiece {
        let parsed = arguments.as_str().map(|text| serde_json::from_str(text).unwrap_or(Value::from(text)));
        MessagePiece {
            arguments: parsed.unwrap_or_else(|| arguments.clone()),
            call_id: owned(call_id),
            ..MessagePiece::new(PieceKind::Call, "", name.as_str().unwrap())
        }
    }

    fn marked(self, mark: &Value) -> MessagePiece {
        MessagePiece { place: str_of(mark).to_owned(), ..self }
    }

    fn id(self, id: &Value) -> MessagePiece {
        MessagePiece { id: owned(id), ..self }
    }

    fn sealed<'a>(mut self, seals: impl IntoIterator<Item = &'a Value>) -> MessagePiece {
        self.seals.extend(seals.into_iter().filter_map(owned).filter(|seal| !seal.is_empty()));
        self
    }

    /// Empty, so it makes no difference whether it is sent.
    fn is_nothing(&self) -> bool {
        let silent = matches!(self.kind, PieceKind::Thinking | PieceKind::Text) && self.text.is_empty();
        silent && self.seals.is_empty() && self.id.is_none()
    }

    /// Text that can be joined to a text before it.
    fn joins_text(&self) -> bool {
        self.kind == PieceKind::Text && (self.seals.is_empty() || self.text.is_empty())
    }

    fn is_plain_text(&self) -> bool {
        self.kind == PieceKind::Text && self.seals.is_empty()
    }

    /// Thinking, or a call or text with its seal.
    pub(crate) fn carries_thinking(&self) -> bool {
        self.kind == PieceKind::Thinking || (self.kind != PieceKind::Other && !self.seals.is_empty())
    }
}

fn owned(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn str_of(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The message without thinking and its seals.
pub(crate) fn without_thinking(pieces: Vec<MessagePiece>) -> Vec<MessagePiece> {
    let rest = pieces.into_iter().filter(|piece| piece.kind != PieceKind::Thinking);
    joined(rest.map(|piece| match piece.kind {
        PieceKind::Other => piece,
        PieceKind::Thinking | PieceKind::Text | PieceKind::Call => {
            MessagePiece { id: None, seals: Vec::new(), ..piece }
        }
    }))
}

/// Only text and calls.
pub(crate) fn text_and_calls(pieces: Vec<MessagePiece>) -> Vec<MessagePiece> {
    let rest = without_thinking(pieces).into_iter().filter(|piece| piece.kind != PieceKind::Other);
    joined(rest)
}

/// Everything the assistant sent before the next message of another role.
pub(crate) fn assistant_run(protocol: Protocol, messages: &[Value]) -> Vec<MessagePiece> {
    let run = messages.iter().take_while(|message| is_assistants(protocol, message));
    joined(run.flat_map(|message| match protocol {
        Protocol::OpenaiChat => chat(message),
        Protocol::OpenaiResponses => vec![item(message)],
        Protocol::Anthropic => each(&message["content"]).map(block).collect(),
        Protocol::Gemini => each(&message["parts"]).map(part).collect(),
        Protocol::Ollama => ollama(message),
        Protocol::Bedrock => each(&message["content"]).map(converse).collect(),
        Protocol::Cohere => cohere(message),
    }))
}

fn is_assistants(protocol: Protocol, message: &Value) -> bool {
    match (protocol, message["role"].as_str()) {
        (_, Some(role)) => role == "assistant" || role == "model",
        (Protocol::OpenaiResponses, None) => {
            !matches!(str_of(&message["type"]), "function_call_output" | "mcp_approval_response")
        }
        (_, None) => false,
    }
}

/// Adjacent texts are joined, however they were split. A sealed text stays separate,
/// unless it is empty and only carries the seal.
fn joined(pieces: impl Iterator<Item = MessagePiece>) -> Vec<MessagePiece> {
    let mut out: Vec<MessagePiece> = Vec::new();
    for piece in pieces.filter(|piece| !piece.is_nothing()) {
        match out.last_mut() {
            Some(last) if last.is_plain_text() && piece.joins_text() => {
                last.text.push_str(&piece.text);
                last.seals.extend(piece.seals);
            }
            _ => out.push(piece),
        }
    }
    out
}

fn chat(message: &Value) -> Vec<MessagePiece> {
    let mut out = Vec::new();
    for detail in each(&message["reasoning_details"]) {
        let text = detail["text"].as_str().or(detail["summary"].as_str()).unwrap_or("");
        let piece = MessagePiece::new(PieceKind::Thinking, str_of(&detail["type"]), text).id(&detail["id"]);
        out.push(piece.sealed([&detail["signature"], &detail["data"]]));
    }
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        out.push(MessagePiece::new(PieceKind::Thinking, field, str_of(&message[field])));
    }
    match &message["content"] {
        Value::Array(parts) => out.extend(parts.iter().map(chunk)),
        content => out.extend(tagged(str_of(content))),
    }
    for call in each(&message["tool_calls"]) {
        let piece = MessagePiece::call(&call["function"]["name"], &call["function"]["arguments"], &call["id"]);
        out.push(piece.sealed([&call["extra_content"]["google"]["thought_signature"]]));
    }
    out
}

fn chunk(part: &Value) -> MessagePiece {
    match str_of(&part["type"]) {
        "thinking" => {
            let text: String = each(&part["thinking"]).map(|piece| str_of(&piece["text"])).collect();
            MessagePiece::new(PieceKind::Thinking, "content", &text)
        }
        _ => MessagePiece::new(PieceKind::Text, "", str_of(&part["text"])),
    }
}

/// Clients write thinking into the content in tags on lines of their own.
fn tagged(content: &str) -> Vec<MessagePiece> {
    let thought = content.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    match thought {
        Some((thought, rest)) => {
            vec![
                MessagePiece::new(PieceKind::Thinking, "tags", thought.trim()),
                MessagePiece::new(PieceKind::Text, "", rest),
            ]
        }
        None => vec![MessagePiece::new(PieceKind::Text, "", content)],
    }
}

fn item(item: &Value) -> MessagePiece {
    let texts = |list: &Value| each(list).map(|part| str_of(&part["text"]).to_owned()).collect::<Vec<_>>();
    match str_of(&item["type"]) {
        "reasoning" => {
            let text = [texts(&item["summary"]), texts(&item["content"])].concat().join("\n\n");
            MessagePiece::new(PieceKind::Thinking, "reasoning", &text)
                .id(&item["id"])
                .sealed([&item["encrypted_content"]])
        }
        "function_call" => MessagePiece::call(&item["name"], &item["arguments"], &item["call_id"])
            .id(&item["id"])
            .marked(&item["namespace"]),
        "message" | "" => {
            let text = item["content"].as_str().map_or_else(|| texts(&item["content"]).concat(), str::to_owned);
            MessagePiece::new(PieceKind::Text, "", &text).id(&item["id"]).marked(&item["phase"])
        }
        kind => MessagePiece::new(PieceKind::Other, kind, "").id(&item["id"]),
    }
}

fn block(block: &Value) -> MessagePiece {
    match str_of(&block["type"]) {
        "thinking" => {
            MessagePiece::new(PieceKind::Thinking, "thinking", str_of(&block["thinking"])).sealed([&block["signature"]])
        }
        "redacted_thinking" => MessagePiece::new(PieceKind::Thinking, "redacted_thinking", "").sealed([&block["data"]]),
        "text" => MessagePiece::new(PieceKind::Text, "", str_of(&block["text"])),
        "tool_use" => {
            MessagePiece::call(&block["name"], &block["input"], &block["id"]).marked(&block["caller"]["tool_id"])
        }
        kind => {
            let id = if block["id"].is_null() { &block["tool_use_id"] } else { &block["id"] };
            let found = each(&block["content"]).map(|result| &result["encrypted_content"]);
            MessagePiece::new(PieceKind::Other, kind, "").id(id).sealed(found)
        }
    }
}

/// Both spellings are accepted.
fn part(part: &Value) -> MessagePiece {
    let member = |names: [&str; 2]| names.into_iter().find_map(|name| part.get(name));
    let piece = if let Some(call) = member(["functionCall", "function_call"]) {
        MessagePiece::call(&call["name"], &call["args"], &call["id"])
    } else if let Some(call) = member(["toolCall", "toolResponse"]) {
        let place = if part.get("toolCall").is_some() { "toolCall" } else { "toolResponse" };
        MessagePiece::new(PieceKind::Other, place, "").id(&call["id"])
    } else if part["thought"] == true {
        MessagePiece::new(PieceKind::Thinking, "part", str_of(&part["text"]))
    } else if part.get("text").is_some() {
        MessagePiece::new(PieceKind::Text, "", str_of(&part["text"]))
    } else {
        MessagePiece::new(PieceKind::Other, &part.to_string(), "")
    };
    piece.sealed([&part["thoughtSignature"]])
}

fn ollama(message: &Value) -> Vec<MessagePiece> {
    let mut out = vec![MessagePiece::new(PieceKind::Thinking, "thinking", str_of(&message["thinking"]))];
    out.push(MessagePiece::new(PieceKind::Text, "", str_of(&message["content"])));
    let calls = each(&message["tool_calls"]).map(|call| &call["function"]);
    out.extend(calls.map(|call| MessagePiece::call(&call["name"], &call["arguments"], &Value::Null)));
    out
}

fn converse(block: &Value) -> MessagePiece {
    let thought = &block["reasoningContent"];
    if let Some(text) = thought.get("reasoningText") {
        return MessagePiece::new(PieceKind::Thinking, "reasoningText", str_of(&text["text"]))
            .sealed([&text["signature"]]);
    }
    if let Some(data) = thought.get("redactedContent") {
        return MessagePiece::new(PieceKind::Thinking, "redactedContent", "").sealed([data]);
    }
    match block.get("toolUse") {
        Some(call) => MessagePiece::call(&call["name"], &call["input"], &call["toolUseId"]),
        None => tagged(str_of(&block["text"])).swap_remove(0),
    }
}

fn cohere(message: &Value) -> Vec<MessagePiece> {
    let mut out = vec![MessagePiece::new(PieceKind::Thinking, "tool_plan", str_of(&message["tool_plan"]))];
    for part in each(&message["content"]) {
        out.push(match part["thinking"].as_str() {
            Some(thought) => MessagePiece::new(PieceKind::Thinking, "thinking", thought),
            None => MessagePiece::new(PieceKind::Text, "", str_of(&part["text"])),
        });
    }
    for call in each(&message["tool_calls"]) {
        out.push(MessagePiece::call(&call["function"]["name"], &call["function"]["arguments"], &call["id"]));
    }
    out
}

/// The tool results, in order.
pub(crate) fn results(protocol: Protocol, messages: &[Value]) -> Vec<String> {
    let nested = |list: &str, names: &[&str]| {
        let blocks = messages.iter().flat_map(|message| each(&message[list]).collect::<Vec<_>>());
        blocks.filter_map(|block| names.iter().find_map(|name| block.get(name))).cloned().collect::<Vec<Value>>()
    };
    let found = match protocol {
        Protocol::OpenaiChat | Protocol::Ollama | Protocol::Cohere => {
            let results = messages.iter().filter(|message| message["role"] == "tool");
            results.map(|message| message["content"].clone()).collect()
        }
        Protocol::OpenaiResponses => {
            let results = messages.iter().filter(|item| item["type"] == "function_call_output");
            results.map(|item| item["output"].clone()).collect()
        }
        Protocol::Anthropic => {
            let blocks = messages.iter().flat_map(|message| each(&message["content"]).collect::<Vec<_>>());
            blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].clone()).collect()
        }
        Protocol::Gemini => nested("parts", &["functionResponse", "function_response"]),
        Protocol::Bedrock => nested("content", &["toolResult"]),
    };
    found.into_iter().map(|content| owned(&content).unwrap_or_else(|| content.to_string())).collect()
}
