//! Writes neutral parameters into the members of a body, and reports those that
//! cannot be sent.

use serde_json::{Map, Value, json};

use super::parameter_paths::{PlainParameter, content_members};
use crate::conversation::ToolSpec;
use crate::dialect::AskRules;
use crate::json_text::set_value;
use crate::parameters::{Parameters, ProtocolMembers, ResponseFormat, ResponseSchema, ServiceTier, ToolChoice};
use crate::protocol::Protocol;
use crate::rules::{LeftOut, LeftOutReason, SentToolChoice};

/// Sent where a protocol requires a name and the request has none.
pub(super) const SCHEMA_NAME: &str = "answer";

/// Where parameters are written, and what is known about the receiver.
pub(super) struct ParametersOut<'a> {
    pub(super) protocol: Protocol,
    pub(super) rules: &'a AskRules,
    /// The model will or may think.
    pub(super) thinks: bool,
    pub(super) tool_choice: SentToolChoice,
    /// The members of the body.
    pub(super) body: &'a mut Map<String, Value>,
    pub(super) left_out: &'a mut Vec<LeftOut>,
}

impl ParametersOut<'_> {
    /// Writes everything but the output limit and the wishes about thinking, which
    /// depend on each other.
    pub(super) fn write(&mut self, parameters: &Parameters, temperature: Option<f64>, tools: &[ToolSpec]) {
        self.write_plain(parameters, temperature);
        self.write_tool_choice(parameters, tools.is_empty() && parameters.native_tools.is_empty());
        self.write_response_format(&parameters.response_format);
        if let Some(extra) = &parameters.extra {
            self.write_extra(extra);
        }
        self.note_tools(parameters, tools);
    }

    fn write_plain(&mut self, parameters: &Parameters, temperature: Option<f64>) {
        let sampling = &parameters.sampling;
        let strings = |texts: &[String]| (!texts.is_empty()).then(|| Value::from(texts));
        let metadata = || parameters.metadata.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let values: [(PlainParameter, Option<Value>); 10] = [
            (PlainParameter::Temperature, temperature.map(Value::from)),
            (PlainParameter::TopP, sampling.top_p.map(Value::from)),
            (PlainParameter::TopK, sampling.top_k.map(Value::from)),
            (PlainParameter::Seed, sampling.seed.map(Value::from)),
            (PlainParameter::PresencePenalty, sampling.presence_penalty.map(Value::from)),
            (PlainParameter::FrequencyPenalty, sampling.frequency_penalty.map(Value::from)),
            (PlainParameter::Stop, strings(&sampling.stop)),
            (PlainParameter::Verbosity, parameters.verbosity.map(|verbosity| Value::from(verbosity.as_str()))),
            (PlainParameter::Metadata, (!parameters.metadata.is_empty()).then(|| Value::Object(metadata().collect()))),
            (PlainParameter::User, parameters.user.as_deref().map(Value::from)),
        ];
        for (parameter, value) in values {
            if let Some(value) = value {
                self.write_value(parameter, value);
            }
        }
        if let Some(tier) = parameters.service_tier {
            let word = service_tier_word(self.protocol, tier);
            match (PlainParameter::ServiceTier.path(self.protocol), word) {
                (Some(_), None) => {
                    let reason =
                        LeftOutReason::NoSuchValue { protocol: self.protocol, value: tier.as_str().to_owned() };
                    self.leave_out("service_tier", reason);
                }
                (_, word) => self.write_value(PlainParameter::ServiceTier, Value::from(word)),
            }
        }
    }

    fn write_value(&mut self, parameter: PlainParameter, value: Value) {
        match parameter.path(self.protocol) {
            None => self.leave_out(parameter.name(), LeftOutReason::NoParameter { protocol: self.protocol }),
            Some(path) => self.write_allowed(parameter.name(), path, value),
        }
    }

    /// Writes a value unless the dialect forbids the parameter.
    fn write_allowed(&mut self, name: &str, path: &str, value: Value) {
        match self.refusal(name) {
            Some(reason) => self.leave_out(name, reason),
            None => set_value(self.body, path, value),
        }
    }

    fn refusal(&self, name: &str) -> Option<LeftOutReason> {
        let is_in = |names: &[String]| names.iter().any(|known| known == name);
        if is_in(&self.rules.forbid) {
            Some(LeftOutReason::Refused)
        } else if self.thinks && is_in(&self.rules.forbid_when_on) {
            Some(LeftOutReason::RefusedWhileThinking)
        } else {
            None
        }
    }

    fn leave_out(&mut self, path: impl Into<String>, reason: LeftOutReason) {
        self.left_out.push(LeftOut::new(path, reason));
    }

    fn write_tool_choice(&mut self, parameters: &Parameters, no_tools: bool) {
        let (mut choice, parallel) = (&parameters.tool_choice, parameters.parallel_tool_calls);
        if self.tool_choice == SentToolChoice::Omitted && choice.forces_a_call() {
            self.leave_out("tool_choice", LeftOutReason::RefusedWhileThinking);
            choice = &ToolChoice::Auto;
        }
        let protocol = self.protocol;
        if no_tools {
            if *choice != ToolChoice::Auto {
                self.leave_out("tool_choice", LeftOutReason::NoTools);
            }
            if parallel.is_some() {
                self.leave_out("parallel_tool_calls", LeftOutReason::NoTools);
            }
            return;
        }
        let is_refused = self.thinks && !self.rules.forced_tools_ok && choice.forces_a_call();
        if is_refused {
            self.leave_out("tool_choice", LeftOutReason::RefusedWhileThinking);
        } else if *choice != ToolChoice::Auto {
            match tool_choice_value(protocol, choice) {
                Ok((path, value)) => self.write_allowed("tool_choice", path, value),
                Err(reason) => self.leave_out("tool_choice", reason),
            }
        }
        let Some(parallel) = parallel else { return };
        match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => {
                self.write_allowed("parallel_tool_calls", "parallel_tool_calls", Value::from(parallel));
            }
            // It is a member of the choice, but not if no tool may be called.
            Protocol::Anthropic if *choice != ToolChoice::Never => {
                if self.body.get("tool_choice").is_none() {
                    set_value(self.body, "tool_choice.type", Value::from("auto"));
                }
                set_value(self.body, "tool_choice.disable_parallel_tool_use", Value::from(!parallel));
            }
            Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => {
                self.leave_out("parallel_tool_calls", LeftOutReason::NoParameter { protocol });
            }
        }
    }

    fn write_response_format(&mut self, format: &ResponseFormat) {
        let reason = LeftOutReason::NoParameter { protocol: self.protocol };
        match format {
            ResponseFormat::Text => (),
            ResponseFormat::Json => match json_format(self.protocol) {
                Some((path, value)) => self.write_allowed("response_format", path, value),
                None => self.leave_out("response_format", reason),
            },
            ResponseFormat::Schema(schema) => {
                let refused = self.refusal("response_format").or_else(|| self.refusal("response_format.schema"));
                if let Some(refused) = refused {
                    self.leave_out("response_format", refused);
                    return;
                }
                self.write_schema(schema);
            }
        }
    }

    fn write_schema(&mut self, schema: &ResponseSchema) {
        let named = |with_strict: bool| {
            let mut out = Map::new();
            out.insert("name".to_owned(), Value::from(schema.name.as_deref().unwrap_or(SCHEMA_NAME)));
            out.extend(schema.description.as_deref().map(|text| ("description".to_owned(), Value::from(text))));
            out.extend(schema.strict.filter(|_| with_strict).map(|strict| ("strict".to_owned(), Value::from(strict))));
            out
        };
        let with = |mut out: Map<String, Value>, name: &str, value: Value| {
            out.insert(name.to_owned(), value);
            Value::Object(out)
        };
        let whole = schema.schema.clone();
        let body = &mut *self.body;
        match self.protocol {
            Protocol::OpenaiChat => {
                let inner = with(named(true), "schema", whole);
                set_value(body, "response_format", json!({ "type": "json_schema", "json_schema": inner }));
            }
            Protocol::OpenaiResponses => {
                let mut format = named(true);
                format.insert("type".to_owned(), Value::from("json_schema"));
                set_value(body, "text.format", with(format, "schema", whole));
            }
            Protocol::Bedrock => {
                let inner = with(named(false), "schema", Value::from(whole.to_string()));
                let format = json!({ "type": "json_schema", "structure": { "jsonSchema": inner } });
                set_value(body, "outputConfig.textFormat", format);
            }
            Protocol::Anthropic => {
                set_value(body, "output_config.format", json!({ "type": "json_schema", "schema": whole }));
            }
            Protocol::Gemini => {
                set_value(body, "generationConfig.responseMimeType", Value::from("application/json"));
                set_value(body, "generationConfig.responseJsonSchema", whole);
            }
            Protocol::Ollama => set_value(body, "format", whole),
            Protocol::Cohere => {
                set_value(body, "response_format", json!({ "type": "json_object", "json_schema": whole }));
            }
        }
        let (has_name, has_strict) = match self.protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => (true, true),
            Protocol::Bedrock => (true, false),
            Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Cohere => (false, false),
        };
        let lost = [
            ("response_format.name", schema.name.is_some() && !has_name),
            ("response_format.description", schema.description.is_some() && !has_name),
            ("response_format.strict", schema.strict.is_some() && !has_strict),
        ];
        let protocol = self.protocol;
        for (path, _) in lost.into_iter().filter(|(_, is_lost)| *is_lost) {
            self.leave_out(path, LeftOutReason::NoParameter { protocol });
        }
    }

    /// Adds members that only this protocol knows, where nothing else was written.
    fn write_extra(&mut self, extra: &ProtocolMembers) {
        for (name, value) in &extra.members {
            if extra.protocol != self.protocol {
                let reason = LeftOutReason::OtherProtocol { protocol: extra.protocol };
                self.left_out.extend(paths_of(name, value).map(|path| LeftOut::new(path, reason.clone())));
            } else if content_members(self.protocol).contains(&name.as_str()) {
                self.leave_out(name, LeftOutReason::AlreadySet);
            } else if let Some(reason) = self.refusal(name) {
                self.leave_out(name, reason);
            } else {
                add_member(self.body, name, value, name, self.left_out);
            }
        }
    }

    /// Reports what the receiver does not know about the tools.
    fn note_tools(&mut self, parameters: &Parameters, tools: &[ToolSpec]) {
        let protocol = self.protocol;
        for (at, tool) in tools.iter().enumerate() {
            if tool.strict == Some(true) && !has_strict_tools(protocol) {
                self.leave_out(format!("tools[{at}].strict"), LeftOutReason::NoParameter { protocol });
            }
            if let Some(extra) = tool.extra.as_ref().filter(|extra| extra.protocol != protocol) {
                let reason = LeftOutReason::OtherProtocol { protocol: extra.protocol };
                for name in extra.members.keys() {
                    self.left_out.push(LeftOut::new(format!("tools[{at}].{name}"), reason.clone()));
                }
            }
        }
        for (at, tool) in parameters.native_tools.iter().enumerate() {
            if tool.protocol != protocol {
                let reason = LeftOutReason::OtherProtocol { protocol: tool.protocol };
                self.leave_out(format!("native_tools[{at}]"), reason);
            }
        }
    }
}

/// Whether a tool can say that its arguments must fit the schema.
pub(super) fn has_strict_tools(protocol: Protocol) -> bool {
    match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Bedrock => true,
        Protocol::Gemini | Protocol::Ollama | Protocol::Cohere => false,
    }
}

/// The word for a tier, if the protocol has one.
pub(super) fn service_tier_word(protocol: Protocol, tier: ServiceTier) -> Option<&'static str> {
    match (protocol, tier) {
        (Protocol::Anthropic, ServiceTier::Default) => Some("standard_only"),
        (Protocol::Anthropic, ServiceTier::Flex | ServiceTier::Priority) => None,
        (Protocol::Bedrock, ServiceTier::Auto) => None,
        (_, tier) => Some(tier.as_str()),
    }
}

fn json_format(protocol: Protocol) -> Option<(&'static str, Value)> {
    match protocol {
        Protocol::OpenaiChat | Protocol::Cohere => Some(("response_format", json!({ "type": "json_object" }))),
        Protocol::OpenaiResponses => Some(("text.format", json!({ "type": "json_object" }))),
        Protocol::Gemini => Some(("generationConfig.responseMimeType", Value::from("application/json"))),
        Protocol::Ollama => Some(("format", Value::from("json"))),
        Protocol::Anthropic | Protocol::Bedrock => None,
    }
}

/// The path and the value of a choice other than `Auto`.
fn tool_choice_value(protocol: Protocol, choice: &ToolChoice) -> Result<(&'static str, Value), LeftOutReason> {
    let missing = |value: &str| LeftOutReason::NoSuchValue { protocol, value: value.to_owned() };
    match protocol {
        Protocol::OpenaiChat => Ok(("tool_choice", openai_choice(choice, chat_tool, true))),
        Protocol::OpenaiResponses => Ok(("tool_choice", openai_choice(choice, responses_tool, false))),
        Protocol::Anthropic => {
            let value = match choice {
                ToolChoice::Auto => json!({ "type": "auto" }),
                ToolChoice::Never => json!({ "type": "none" }),
                ToolChoice::Required => json!({ "type": "any" }),
                ToolChoice::Named(name) => json!({ "type": "tool", "name": name }),
                ToolChoice::Allowed { .. } => return Err(missing("allowed")),
            };
            Ok(("tool_choice", value))
        }
        Protocol::Gemini => {
            let value = match choice {
                ToolChoice::Auto => json!({ "mode": "AUTO" }),
                ToolChoice::Never => json!({ "mode": "NONE" }),
                ToolChoice::Required => json!({ "mode": "ANY" }),
                ToolChoice::Named(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
                ToolChoice::Allowed { names, required } => {
                    json!({ "mode": if *required { "ANY" } else { "VALIDATED" }, "allowedFunctionNames": names })
                }
            };
            Ok(("toolConfig.functionCallingConfig", value))
        }
        Protocol::Ollama => Err(LeftOutReason::NoParameter { protocol }),
        Protocol::Bedrock => {
            let value = match choice {
                ToolChoice::Auto => json!({ "auto": {} }),
                ToolChoice::Required => json!({ "any": {} }),
                ToolChoice::Named(name) => json!({ "tool": { "name": name } }),
                ToolChoice::Never => return Err(missing("none")),
                ToolChoice::Allowed { .. } => return Err(missing("allowed")),
            };
            Ok(("toolConfig.toolChoice", value))
        }
        Protocol::Cohere => match choice {
            ToolChoice::Required => Ok(("tool_choice", Value::from("REQUIRED"))),
            ToolChoice::Never => Ok(("tool_choice", Value::from("NONE"))),
            ToolChoice::Auto | ToolChoice::Named(_) => Err(missing("named")),
            ToolChoice::Allowed { .. } => Err(missing("allowed")),
        },
    }
}

fn openai_choice(choice: &ToolChoice, tool: fn(&str) -> Value, is_nested: bool) -> Value {
    match choice {
        ToolChoice::Auto => Value::from("auto"),
        ToolChoice::Never => Value::from("none"),
        ToolChoice::Required => Value::from("required"),
        ToolChoice::Named(name) => tool(name),
        ToolChoice::Allowed { names, required } => {
            let mode = if *required { "required" } else { "auto" };
            let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
            match is_nested {
                true => json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } }),
                false => json!({ "type": "allowed_tools", "mode": mode, "tools": tools }),
            }
        }
    }
}

fn chat_tool(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

fn responses_tool(name: &str) -> Value {
    json!({ "type": "function", "name": name })
}

/// A member, or the members of an object one by one.
fn paths_of<'a>(name: &'a str, value: &'a Value) -> impl Iterator<Item = String> + 'a {
    let inner = value.as_object().filter(|object| !object.is_empty());
    let below = inner.into_iter().flat_map(move |object| object.keys().map(move |key| format!("{name}.{key}")));
    below.chain(inner.is_none().then(|| name.to_owned()))
}

/// Adds a member without changing what is there. Lists are joined.
fn add_member(into: &mut Map<String, Value>, name: &str, value: &Value, path: &str, left_out: &mut Vec<LeftOut>) {
    match (into.get_mut(name), value) {
        (None, _) => drop(into.insert(name.to_owned(), value.clone())),
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (key, value) in more {
                add_member(known, key, value, &format!("{path}.{key}"), left_out);
            }
        }
        (Some(Value::Array(known)), Value::Array(more)) => {
            for value in more {
                if !known.contains(value) {
                    known.push(value.clone());
                }
            }
        }
        (Some(known), value) if known == value => (),
        (Some(_), _) => left_out.push(LeftOut::new(path, LeftOutReason::AlreadySet)),
    }
}
