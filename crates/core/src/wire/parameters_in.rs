//! Reads the parameters of a client's request. What has no neutral form is kept as
//! it is.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::client_request::{UnreadableRequest, unreadable};
use super::parameter_paths::{PlainParameter, budget_path, content_members, effort_path, max_tokens_paths};
use super::parameters_out::{SCHEMA_NAME, service_tier_word};
use crate::dialect::{AskRules, Off, Patch};
use crate::json_text::{Raw, each_member, value_at};
use crate::parameters::{
    Parameters, ProtocolMembers, ResponseFormat, ResponseSchema, ServiceTier, ThinkingParameters, ToolChoice, Verbosity,
};
use crate::protocol::Protocol;
use crate::settings::{Effort, SummaryMode};

/// Reads everything in a body besides the conversation and its tools.
pub(super) fn read_parameters(
    protocol: Protocol,
    rules: &AskRules,
    body: Raw<'_>,
) -> Result<Parameters, UnreadableRequest> {
    let mut rest = Members::of(protocol, body)?;
    let mut parameters = Parameters::new();
    rest.read_plain(protocol, &mut parameters);
    rest.read_tool_choice(protocol, &mut parameters);
    parameters.max_output_tokens = rest.read_max_tokens(protocol, rules);
    parameters.response_format = rest.read_response_format(protocol);
    parameters.thinking = rest.read_thinking(protocol, rules);
    if !rest.0.is_empty() {
        let members: BTreeMap<String, Value> = rest.0.into_iter().collect();
        parameters.extra = Some(ProtocolMembers::new(protocol, members));
    }
    Ok(parameters)
}

/// A longer parameter is refused: parsed, it would take many times its size.
const MAX_PARAMETER_BYTES: usize = 1 << 20;

/// The members that are not read yet.
struct Members(Map<String, Value>);

impl Members {
    fn of(protocol: Protocol, body: Raw<'_>) -> Result<Members, UnreadableRequest> {
        let (mut members, mut problem) = (Map::new(), None);
        each_member(body, |name, value| {
            if content_members(protocol).contains(&name) || value.get() == "null" {
                return;
            }
            if value.get().len() > MAX_PARAMETER_BYTES {
                problem = Some(unreadable(name, format!("longer than {MAX_PARAMETER_BYTES} bytes")));
                return;
            }
            match serde_json::from_str::<Value>(value.get()) {
                Ok(parsed) => drop(members.insert(name.to_owned(), parsed)),
                Err(error) => problem = Some(unreadable(name, error.to_string())),
            }
        });
        match protocol {
            Protocol::Gemini => in_camel_case(&mut members),
            // Its list of tools is read with the conversation.
            Protocol::Bedrock => drop(take(&mut members, "toolConfig.tools", |value| Some(value.clone()))),
            Protocol::OpenaiChat
            | Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Ollama
            | Protocol::Cohere => (),
        }
        problem.map_or(Ok(Members(members)), Err)
    }

    /// Takes the value at a path if `read` accepts it; otherwise it stays.
    fn take<T>(&mut self, path: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        take(&mut self.0, path, read)
    }

    fn take_plain<T>(
        &mut self,
        protocol: Protocol,
        parameter: PlainParameter,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        self.take(parameter.path(protocol)?, read)
    }

    fn read_plain(&mut self, protocol: Protocol, parameters: &mut Parameters) {
        use PlainParameter as P;
        let sampling = &mut parameters.sampling;
        sampling.temperature = self.take_plain(protocol, P::Temperature, Value::as_f64);
        sampling.top_p = self.take_plain(protocol, P::TopP, Value::as_f64);
        sampling.top_k = self.take_plain(protocol, P::TopK, Value::as_u64);
        sampling.seed = self.take_plain(protocol, P::Seed, Value::as_i64);
        sampling.presence_penalty = self.take_plain(protocol, P::PresencePenalty, Value::as_f64);
        sampling.frequency_penalty = self.take_plain(protocol, P::FrequencyPenalty, Value::as_f64);
        sampling.stop = self.take_plain(protocol, P::Stop, texts).unwrap_or_default();
        let verbosity = |value: &Value| {
            let word = value.as_str()?;
            Verbosity::ALL.iter().copied().find(|verbosity| verbosity.as_str() == word)
        };
        parameters.verbosity = self.take_plain(protocol, P::Verbosity, verbosity);
        parameters.user = self.take_plain(protocol, P::User, text);
        parameters.metadata = self.take_plain(protocol, P::Metadata, text_map).unwrap_or_default();
        parameters.service_tier = self.take_plain(protocol, P::ServiceTier, |value| {
            let word = value.as_str()?;
            ServiceTier::ALL.iter().copied().find(|tier| service_tier_word(protocol, *tier) == Some(word))
        });
    }

    fn read_max_tokens(&mut self, protocol: Protocol, rules: &AskRules) -> Option<u64> {
        let own = Some(rules.max_tokens.path.as_str()).filter(|path| !path.is_empty());
        let paths = own.into_iter().chain(max_tokens_paths(protocol).iter().copied());
        // Clients that send two names mean the same by both.
        paths.fold(None, |known, path| self.take(path, count).filter(|_| known.is_none()).or(known))
    }

    fn read_tool_choice(&mut self, protocol: Protocol, parameters: &mut Parameters) {
        let choice = match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Ollama | Protocol::Cohere => {
                if let Some(parallel) = self.take("parallel_tool_calls", Value::as_bool) {
                    parameters.parallel_tool_calls = Some(parallel);
                }
                self.take("tool_choice", openai_choice)
            }
            Protocol::Anthropic => {
                let parallel = self.take("tool_choice.disable_parallel_tool_use", Value::as_bool);
                parameters.parallel_tool_calls = parallel.map(|disabled| !disabled);
                self.take("tool_choice", openai_choice)
            }
            Protocol::Gemini => self.take("toolConfig.functionCallingConfig", gemini_choice),
            Protocol::Bedrock => self.take("toolConfig.toolChoice", bedrock_choice),
        };
        parameters.tool_choice = choice.unwrap_or_default();
    }

    fn read_response_format(&mut self, protocol: Protocol) -> ResponseFormat {
        let found = match protocol {
            Protocol::OpenaiChat => self.take("response_format", |value| typed_format(value, "json_schema")),
            Protocol::Cohere => self.take("response_format", cohere_format),
            Protocol::OpenaiResponses => self.take("text.format", |value| typed_format(value, "")),
            Protocol::Anthropic => {
                let beta = self.take("output_format", |value| typed_format(value, ""));
                beta.or_else(|| self.take("output_config.format", |value| typed_format(value, "")))
            }
            Protocol::Gemini => self.read_gemini_format(),
            Protocol::Ollama => self.take("format", |value| match value {
                Value::String(word) if word == "json" => Some(ResponseFormat::Json),
                Value::Object(_) => Some(ResponseFormat::Schema(ResponseSchema::new(value.clone()))),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
            }),
            Protocol::Bedrock => self.take("outputConfig.textFormat", bedrock_format),
        };
        found.unwrap_or_default()
    }

    fn read_gemini_format(&mut self) -> Option<ResponseFormat> {
        let json = |value: &Value| (value.as_str()? == "application/json").then_some(());
        self.take("generationConfig.responseMimeType", json)?;
        let schema = self.take("generationConfig.responseJsonSchema", |schema| Some(schema.clone()));
        Some(schema.map_or(ResponseFormat::Json, |schema| ResponseFormat::Schema(ResponseSchema::new(schema))))
    }

    /// Reads what a request says about thinking: first by the rules of its dialect,
    /// then by what its protocol defines.
    fn read_thinking(&mut self, protocol: Protocol, rules: &AskRules) -> ThinkingParameters {
        let mut thinking = ThinkingParameters::default();
        let own = |path: &str| Some(path.to_owned()).filter(|path| !path.is_empty());
        for path in own(&rules.effort.path).into_iter().chain(effort_path(protocol).map(str::to_owned)) {
            let word = self.take(&path, |value| {
                let word = value.as_str()?.to_lowercase();
                (word == "none" || word.parse::<Effort>().is_ok()).then_some(word)
            });
            match word.as_deref() {
                Some("none") => thinking.enabled = Some(false),
                Some(word) => thinking.effort = thinking.effort.or_else(|| word.parse().ok()),
                None => (),
            }
        }
        for path in own(&rules.budget.path).into_iter().chain(budget_path(protocol).map(str::to_owned)) {
            thinking.budget = thinking.budget.or_else(|| self.take(&path, Value::as_u64));
        }
        if protocol == Protocol::OpenaiResponses {
            thinking.summary = self.take("reasoning.summary", |value| value.as_str()?.parse::<SummaryMode>().ok());
        }
        let switch = match protocol {
            Protocol::Anthropic | Protocol::Cohere => self.take("thinking.type", |value| match value.as_str()? {
                "enabled" | "adaptive" => Some(true),
                "disabled" => Some(false),
                _ => None,
            }),
            Protocol::Ollama => self.take("think", Value::as_bool),
            Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Gemini | Protocol::Bedrock => None,
        };
        thinking.enabled = thinking.enabled.or(switch).or_else(|| self.read_switch(rules));
        for patch in [&rules.on, &rules.show, &rules.extra, &rules.budget.with] {
            remove_patch(&mut self.0, patch);
        }
        thinking
    }

    /// Whether the body has the dialect's switch for thinking.
    fn read_switch(&mut self, rules: &AskRules) -> Option<bool> {
        if let Off::Patch(off) = &rules.off
            && contains(&self.0, off)
        {
            remove_patch(&mut self.0, off);
            return Some(false);
        }
        contains(&self.0, &rules.on).then_some(true)
    }
}

/// Whether a patch has members, and the body has all of them.
fn contains(body: &Map<String, Value>, patch: &Patch) -> bool {
    fn holds(body: &Map<String, Value>, patch: &Patch) -> bool {
        patch.iter().all(|(name, wanted)| match (body.get(name), wanted) {
            (Some(Value::Object(body)), Value::Object(wanted)) => holds(body, wanted),
            (value, wanted) => value == Some(wanted),
        })
    }
    !patch.is_empty() && holds(body, patch)
}

/// Removes the members that a patch sets to the same value: the encoder writes them
/// by itself.
fn remove_patch(body: &mut Map<String, Value>, patch: &Patch) {
    for (name, wanted) in patch {
        let is_used_up = match (body.get_mut(name), wanted) {
            (Some(Value::Object(inner)), Value::Object(wanted)) => {
                remove_patch(inner, wanted);
                inner.is_empty()
            }
            (Some(value), wanted) => value == wanted,
            (None, _) => false,
        };
        if is_used_up {
            body.remove(name);
        }
    }
}

/// Takes a value out of nested objects, and with it the objects that become empty.
fn take<T>(object: &mut Map<String, Value>, path: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
    let taken = read(value_at(object, path)?)?;
    remove(object, path);
    Some(taken)
}

fn remove(object: &mut Map<String, Value>, path: &str) {
    let Some((first, rest)) = path.split_once('.') else {
        object.remove(path);
        return;
    };
    if let Some(Value::Object(below)) = object.get_mut(first) {
        remove(below, rest);
        if below.is_empty() {
            object.remove(first);
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// A count, also if it is written as `16.0`.
fn count(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..EXACT).contains(number);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be a whole number in range")]
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|number| number as u64))
}

/// A text, or a list of texts.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(list) => list.iter().map(text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn text_map(value: &Value) -> Option<BTreeMap<String, String>> {
    value.as_object()?.iter().map(|(name, value)| Some((name.clone(), text(value)?))).collect()
}

/// `auto`, `none`, `required`, or an object that names a tool or a set of tools.
fn openai_choice(value: &Value) -> Option<ToolChoice> {
    let word = |value: &Value| value.as_str().map(str::to_lowercase);
    let mode = word(value).or_else(|| value.get("type").and_then(word))?;
    let name = |tool: &Value| text(tool.get("name").or_else(|| tool.get("function")?.get("name"))?);
    match mode.as_str() {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::Never),
        "required" | "any" => Some(ToolChoice::Required),
        "function" | "tool" => name(value).map(ToolChoice::Named),
        "allowed_tools" => {
            let set = value.get("allowed_tools").unwrap_or(value);
            let names: Option<Vec<String>> = set.get("tools")?.as_array()?.iter().map(name).collect();
            Some(ToolChoice::allowed(names?, set.get("mode").and_then(word).as_deref() == Some("required")))
        }
        _ => None,
    }
}

fn gemini_choice(value: &Value) -> Option<ToolChoice> {
    let names = match value.get("allowedFunctionNames") {
        Some(names) => texts(names)?,
        None => Vec::new(),
    };
    match (value.get("mode")?.as_str()?.to_uppercase().as_str(), names.is_empty()) {
        ("AUTO", true) => Some(ToolChoice::Auto),
        ("NONE", _) => Some(ToolChoice::Never),
        ("ANY", true) => Some(ToolChoice::Required),
        ("ANY", false) => Some(ToolChoice::allowed(names, true)),
        ("VALIDATED", false) => Some(ToolChoice::allowed(names, false)),
        _ => None,
    }
}

fn bedrock_choice(value: &Value) -> Option<ToolChoice> {
    if value.get("any").is_some() {
        return Some(ToolChoice::Required);
    }
    let named = value.get("tool").and_then(|tool| text(tool.get("name")?)).map(ToolChoice::Named);
    named.or_else(|| value.get("auto").map(|_| ToolChoice::Auto))
}

/// A format with a `type`; the schema is in the member `inner`, or next to the type.
fn typed_format(value: &Value, inner: &str) -> Option<ResponseFormat> {
    match value.get("type")?.as_str()? {
        "text" => Some(ResponseFormat::Text),
        "json_object" => Some(ResponseFormat::Json),
        "json_schema" => {
            let members = if inner.is_empty() { value } else { value.get(inner)? };
            schema_of(members, |schema| Some(schema.clone()))
        }
        _ => None,
    }
}

/// None if there are members besides the known ones, so that all of it is kept.
fn schema_of(members: &Value, read: impl FnOnce(&Value) -> Option<Value>) -> Option<ResponseFormat> {
    let members = members.as_object()?;
    let is_known = |name: &String| ["type", "name", "description", "schema", "strict"].contains(&name.as_str());
    if !members.keys().all(is_known) {
        return None;
    }
    Some(ResponseFormat::Schema(ResponseSchema {
        name: members.get("name").and_then(text).filter(|name| name != SCHEMA_NAME),
        description: members.get("description").and_then(text),
        schema: read(members.get("schema")?)?,
        strict: members.get("strict").and_then(Value::as_bool),
    }))
}

fn cohere_format(value: &Value) -> Option<ResponseFormat> {
    match value.get("type")?.as_str()? {
        "text" => Some(ResponseFormat::Text),
        "json_object" => {
            let schema = value.get("json_schema").or_else(|| value.get("schema")).cloned();
            Some(schema.map_or(ResponseFormat::Json, |schema| ResponseFormat::Schema(ResponseSchema::new(schema))))
        }
        _ => None,
    }
}

/// There the schema is a text.
fn bedrock_format(value: &Value) -> Option<ResponseFormat> {
    schema_of(value.get("structure")?.get("jsonSchema")?, |schema| serde_json::from_str(schema.as_str()?).ok())
}

/// Google's server accepts both spellings; this is for the members that are read.
fn in_camel_case(members: &mut Map<String, Value>) {
    let old = std::mem::take(members);
    for (name, mut value) in old {
        let name = camel_case(&name);
        if let ("generationConfig" | "toolConfig" | "functionCallingConfig" | "thinkingConfig", Value::Object(inner)) =
            (name.as_str(), &mut value)
        {
            in_camel_case(inner);
        }
        members.insert(name, value);
    }
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}
