//! What an assistant message of a request carries, in one form for all
//! protocols, so that two requests can be compared.

use std::fmt;

use aside_core::protocol::Protocol;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Thought,
    Text,
    Call,
    /// The provider's own: a search, its result.
    Other,
}

/// One piece of an assistant message, as it stands in a request.
#[derive(Clone, PartialEq)]
pub(crate) struct Piece {
    pub(crate) kind: Kind,
    /// The field or the type it stands in; what else a call or a text is marked with.
    pub(crate) place: String,
    /// What it says; the name of a call.
    pub(crate) text: String,
    pub(crate) arguments: Value,
    pub(crate) call_id: Option<String>,
    /// The provider's id of the item.
    pub(crate) id: Option<String>,
    pub(crate) seals: Vec<String>,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Piece { kind, place, text, arguments, call_id, id, seals } = self;
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

impl Piece {
    fn new(kind: Kind, place: &str, text: &str) -> Piece {
        let (place, text) = (place.to_owned(), text.to_owned());
        Piece { kind, place, text, arguments: Value::Null, call_id: None, id: None, seals: Vec::new() }
    }

    fn call(name: &Value, arguments: &Value, call_id: &Value) -> Piece {
        let parsed = arguments.as_str().map(|text| serde_json::from_str(text).unwrap_or(Value::from(text)));
        Piece {
            arguments: parsed.unwrap_or_else(|| arguments.clone()),
            call_id: owned(call_id),
            ..Piece::new(Kind::Call, "", name.as_str().unwrap())
        }
    }

    fn marked(self, mark: &Value) -> Piece {
        Piece { place: str_of(mark).to_owned(), ..self }
    }

    fn id(self, id: &Value) -> Piece {
        Piece { id: owned(id), ..self }
    }

    fn sealed<'a>(mut self, seals: impl IntoIterator<Item = &'a Value>) -> Piece {
        self.seals.extend(seals.into_iter().filter_map(owned).filter(|seal| !seal.is_empty()));
        self
    }

    /// Nothing to send: it makes no difference whether it stands there.
    fn is_nothing(&self) -> bool {
        let silent = matches!(self.kind, Kind::Thought | Kind::Text) && self.text.is_empty();
        silent && self.seals.is_empty() && self.id.is_none()
    }

    /// Text that a text before it may take in.
    fn goes_on(&self) -> bool {
        self.kind == Kind::Text && (self.seals.is_empty() || self.text.is_empty())
    }

    fn is_plain_text(&self) -> bool {
        self.kind == Kind::Text && self.seals.is_empty()
    }

    /// A thought, or the seal of one on what it led to.
    pub(crate) fn carries_thinking(&self) -> bool {
        self.kind == Kind::Thought || (self.kind != Kind::Other && !self.seals.is_empty())
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

/// The message without thoughts and their seals.
pub(crate) fn without_thinking(pieces: Vec<Piece>) -> Vec<Piece> {
    let rest = pieces.into_iter().filter(|piece| piece.kind != Kind::Thought);
    joined(rest.map(|piece| match piece.kind {
        Kind::Other => piece,
        Kind::Thought | Kind::Text | Kind::Call => Piece { id: None, seals: Vec::new(), ..piece },
    }))
}

/// Text and calls alone.
pub(crate) fn spoken(pieces: Vec<Piece>) -> Vec<Piece> {
    let said = without_thinking(pieces).into_iter().filter(|piece| piece.kind != Kind::Other);
    joined(said)
}

/// Everything the assistant said before somebody else speaks.
pub(crate) fn assistant_run(protocol: Protocol, messages: &[Value]) -> Vec<Piece> {
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

/// Texts that follow one another are one, however they were cut; a sealed one
/// stands alone, unless it is the empty part that only brings the seal.
fn joined(pieces: impl Iterator<Item = Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces.filter(|piece| !piece.is_nothing()) {
        match out.last_mut() {
            Some(last) if last.is_plain_text() && piece.goes_on() => {
                last.text.push_str(&piece.text);
                last.seals.extend(piece.seals);
            }
            _ => out.push(piece),
        }
    }
    out
}

fn chat(message: &Value) -> Vec<Piece> {
    let mut out = Vec::new();
    for detail in each(&message["reasoning_details"]) {
        let text = detail["text"].as_str().or(detail["summary"].as_str()).unwrap_or("");
        let piece = Piece::new(Kind::Thought, str_of(&detail["type"]), text).id(&detail["id"]);
        out.push(piece.sealed([&detail["signature"], &detail["data"]]));
    }
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        out.push(Piece::new(Kind::Thought, field, str_of(&message[field])));
    }
    match &message["content"] {
        Value::Array(parts) => out.extend(parts.iter().map(chunk)),
        content => out.extend(tagged(str_of(content))),
    }
    for call in each(&message["tool_calls"]) {
        let piece = Piece::call(&call["function"]["name"], &call["function"]["arguments"], &call["id"]);
        out.push(piece.sealed([&call["extra_content"]["google"]["thought_signature"]]));
    }
    out
}

fn chunk(part: &Value) -> Piece {
    match str_of(&part["type"]) {
        "thinking" => {
            let text: String = each(&part["thinking"]).map(|piece| str_of(&piece["text"])).collect();
            Piece::new(Kind::Thought, "content", &text)
        }
        _ => Piece::new(Kind::Text, "", str_of(&part["text"])),
    }
}

/// Clients write a thought into the content in tags on lines of their own.
fn tagged(content: &str) -> Vec<Piece> {
    let thought = content.strip_prefix("<think>").and_then(|rest| rest.split_once("</think>"));
    match thought {
        Some((thought, rest)) => {
            vec![Piece::new(Kind::Thought, "tags", thought.trim()), Piece::new(Kind::Text, "", rest)]
        }
        None => vec![Piece::new(Kind::Text, "", content)],
    }
}

fn item(item: &Value) -> Piece {
    let texts = |list: &Value| each(list).map(|part| str_of(&part["text"]).to_owned()).collect::<Vec<_>>();
    match str_of(&item["type"]) {
        "reasoning" => {
            let text = [texts(&item["summary"]), texts(&item["content"])].concat().join("\n\n");
            Piece::new(Kind::Thought, "reasoning", &text).id(&item["id"]).sealed([&item["encrypted_content"]])
        }
        "function_call" => {
            Piece::call(&item["name"], &item["arguments"], &item["call_id"]).id(&item["id"]).marked(&item["namespace"])
        }
        "message" | "" => {
            let text = item["content"].as_str().map_or_else(|| texts(&item["content"]).concat(), str::to_owned);
            Piece::new(Kind::Text, "", &text).id(&item["id"]).marked(&item["phase"])
        }
        kind => Piece::new(Kind::Other, kind, "").id(&item["id"]),
    }
}

fn block(block: &Value) -> Piece {
    match str_of(&block["type"]) {
        "thinking" => Piece::new(Kind::Thought, "thinking", str_of(&block["thinking"])).sealed([&block["signature"]]),
        "redacted_thinking" => Piece::new(Kind::Thought, "redacted_thinking", "").sealed([&block["data"]]),
        "text" => Piece::new(Kind::Text, "", str_of(&block["text"])),
        "tool_use" => Piece::call(&block["name"], &block["input"], &block["id"]).marked(&block["caller"]["tool_id"]),
        kind => {
            let id = if block["id"].is_null() { &block["tool_use_id"] } else { &block["id"] };
            let found = each(&block["content"]).map(|result| &result["encrypted_content"]);
            Piece::new(Kind::Other, kind, "").id(id).sealed(found)
        }
    }
}

/// Either spelling: both are taken.
fn part(part: &Value) -> Piece {
    let member = |names: [&str; 2]| names.into_iter().find_map(|name| part.get(name));
    let piece = if let Some(call) = member(["functionCall", "function_call"]) {
        Piece::call(&call["name"], &call["args"], &call["id"])
    } else if let Some(call) = member(["toolCall", "toolResponse"]) {
        let place = if part.get("toolCall").is_some() { "toolCall" } else { "toolResponse" };
        Piece::new(Kind::Other, place, "").id(&call["id"])
    } else if part["thought"] == true {
        Piece::new(Kind::Thought, "part", str_of(&part["text"]))
    } else if part.get("text").is_some() {
        Piece::new(Kind::Text, "", str_of(&part["text"]))
    } else {
        Piece::new(Kind::Other, &part.to_string(), "")
    };
    piece.sealed([&part["thoughtSignature"]])
}

fn ollama(message: &Value) -> Vec<Piece> {
    let mut out = vec![Piece::new(Kind::Thought, "thinking", str_of(&message["thinking"]))];
    out.push(Piece::new(Kind::Text, "", str_of(&message["content"])));
    let calls = each(&message["tool_calls"]).map(|call| &call["function"]);
    out.extend(calls.map(|call| Piece::call(&call["name"], &call["arguments"], &Value::Null)));
    out
}

fn converse(block: &Value) -> Piece {
    let thought = &block["reasoningContent"];
    if let Some(text) = thought.get("reasoningText") {
        return Piece::new(Kind::Thought, "reasoningText", str_of(&text["text"])).sealed([&text["signature"]]);
    }
    if let Some(data) = thought.get("redactedContent") {
        return Piece::new(Kind::Thought, "redactedContent", "").sealed([data]);
    }
    match block.get("toolUse") {
        Some(call) => Piece::call(&call["name"], &call["input"], &call["toolUseId"]),
        None => tagged(str_of(&block["text"])).swap_remove(0),
    }
}

fn cohere(message: &Value) -> Vec<Piece> {
    let mut out = vec![Piece::new(Kind::Thought, "tool_plan", str_of(&message["tool_plan"]))];
    for part in each(&message["content"]) {
        out.push(match part["thinking"].as_str() {
            Some(thought) => Piece::new(Kind::Thought, "thinking", thought),
            None => Piece::new(Kind::Text, "", str_of(&part["text"])),
        });
    }
    for call in each(&message["tool_calls"]) {
        out.push(Piece::call(&call["function"]["name"], &call["function"]["arguments"], &call["id"]));
    }
    out
}

/// What the tools answered, in order.
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
