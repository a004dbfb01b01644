//! Encodes a conversation as a provider's request, and records the reason for
//! every decision.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use super::body_edit::edit_body;
use super::cache_points::place_hints;
use super::call_ids::CallIds;
use super::encode_cache::EncodeCache;
use super::parameters_out::ParametersOut;
use super::request_draft::{BodyTokens, RequestDraft};
use super::{chat, cohere, converse, gemini, messages, ollama, responses};
use crate::block::Origin;
use crate::conversation::ToolSpec;
use crate::dialect::{Dialect, Dialects, Duty, Rules, ThinkingWithTools};
use crate::history::EntryId;
use crate::json_text::set_value;
use crate::message::Message;
use crate::parameters::{CachePosition, NO_PARAMETERS, Parameters};
use crate::protocol::Protocol;
use crate::rules::{
    self, AppliedRepair, Decision, Egress, EgressReason, EgressTarget, LeftOut, LeftOutReason, RefusedRequest,
    RequestParams, RequestPreferences, WrittenKey,
};
use crate::settings::Settings;
use crate::tokens::TokenCounter;

/// A conversation to send, and where to send it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Request<'a> {
    /// All dialects, for thinking that comes from another provider.
    pub dialects: &'a Dialects,
    /// The dialect of the receiving provider.
    pub dialect: &'a Dialect,
    /// The model, as the provider names it.
    pub model: &'a str,
    /// The receiving provider. The encoder fills in its dialect and model.
    pub target: &'a Origin,
    /// The branch to send, oldest first.
    pub messages: &'a [&'a Message],
    /// The tools that the model may call.
    pub tools: &'a [ToolSpec],
    /// What the user wants. [`crate::rules::dialect_defaults`] gives the layer
    /// of the dialect.
    pub settings: &'a Settings,
    /// What this request asks for. It wins over the settings; what the dialect
    /// forbids wins over both.
    pub parameters: &'a Parameters,
    /// Repairs learned from earlier refusals of this endpoint.
    pub repairs: &'a [AppliedRepair],
}

impl<'a> Request<'a> {
    /// A request without messages, tools, parameters and repairs.
    pub fn new(
        dialects: &'a Dialects,
        dialect: &'a Dialect,
        model: &'a str,
        target: &'a Origin,
        settings: &'a Settings,
    ) -> Request<'a> {
        Request {
            dialects,
            dialect,
            model,
            target,
            messages: &[],
            tools: &[],
            settings,
            parameters: &NO_PARAMETERS,
            repairs: &[],
        }
    }

    /// Sets the branch to send, oldest first.
    #[must_use]
    pub fn with_messages(self, messages: &'a [&'a Message]) -> Request<'a> {
        Request { messages, ..self }
    }

    /// Sets the tools that the model may call.
    #[must_use]
    pub fn with_tools(self, tools: &'a [ToolSpec]) -> Request<'a> {
        Request { tools, ..self }
    }

    /// Sets what the request asks for.
    #[must_use]
    pub fn with_parameters(self, parameters: &'a Parameters) -> Request<'a> {
        Request { parameters, ..self }
    }

    /// Sets the repairs learned from earlier refusals of this endpoint.
    #[must_use]
    pub fn with_repairs(self, repairs: &'a [AppliedRepair]) -> Request<'a> {
        Request { repairs, ..self }
    }
}

/// A request body, with the reason for every decision.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Encoded {
    /// JSON. The same conversation always gives the same bytes.
    pub body: Arc<String>,
    /// The protocol's URL path, relative to the base URL.
    pub path: String,
    /// The model, for providers with a path of their own.
    pub model: String,
    /// Headers that the content needs, without authentication.
    pub headers: Vec<(String, String)>,
    /// One per stored block, and one per filler.
    pub decisions: Vec<Decision>,
    /// The estimated tokens of the whole request, including parameters, tools and
    /// system prompt. Providers add a prompt of their own;
    /// [`crate::tokens::Calibration`] learns its size.
    pub tokens: u64,
    /// The share of each message; zero for a system prompt that is not sent as a
    /// message.
    pub message_tokens: Vec<u64>,
    /// The effort level that is sent.
    pub effort: Option<String>,
    /// The note that says why it is not the one that was asked for.
    pub effort_note: Option<String>,
    /// Requirements of the provider that this request cannot meet, in words.
    pub unmet: Vec<String>,
    /// What was changed on the user's behalf, in words.
    pub notes: Vec<String>,
    /// What is not sent, apart from thinking, whose decisions say so.
    pub left_out: Vec<LeftOut>,
    /// The keys that were written for the sake of thinking, with the rule that
    /// wrote each.
    pub written: Vec<WrittenKey>,
    /// Up to where the provider is asked to store the request.
    pub cache_points: Vec<CachePosition>,
}

impl Encoded {
    /// What to diagnose if the provider refuses this request.
    pub fn to_refused(&self) -> RefusedRequest {
        RefusedRequest::new(Arc::clone(&self.body), self.written.clone())
    }
}

/// Encodes successive requests, and rewrites only the messages that changed.
#[derive(Debug, Default)]
pub struct Encoder {
    cache: EncodeCache,
    /// The inputs that the cached messages were written for.
    cache_key: Option<CacheKey>,
}

/// All inputs, besides the message itself, that affect how a message is written.
#[derive(Debug, Clone, PartialEq)]
struct CacheKey {
    dialect: String,
    rules: Rules,
    preferences: RequestPreferences,
}

/// The rules that a request is written by, with learned repairs applied.
pub(super) struct RequestRules<'a> {
    /// The dialect's own, unless there are repairs.
    pub(super) rules: Cow<'a, Rules>,
    pub(super) preferences: RequestPreferences,
    /// The receiving provider, with its dialect and model.
    pub(super) target: Origin,
}

impl<'a> RequestRules<'a> {
    pub(super) fn of(request: &Request<'a>) -> RequestRules<'a> {
        let mut rules = Cow::Borrowed(request.dialect.rules(Some(request.model)));
        let mut preferences = RequestPreferences::of(request.settings, &rules.echo).overridden_by(request.parameters);
        for applied in request.repairs {
            rules::apply_repair(applied, rules.to_mut(), &mut preferences);
        }
        let target = Origin {
            dialect: Some(request.dialect.id.clone()),
            model: Some(request.model.to_owned()),
            ..request.target.clone()
        };
        RequestRules { rules, preferences, target }
    }
}

/// Encodes a single request.
pub fn encode(request: &Request<'_>) -> Encoded {
    Encoder::new().encode(request, &[])
}

impl Encoder {
    /// Estimates tokens from the characters.
    pub fn new() -> Encoder {
        Encoder::default()
    }

    /// Counts tokens with this counter.
    pub fn counting_with(counter: Arc<dyn TokenCounter>) -> Encoder {
        Encoder { cache: EncodeCache::counting_with(counter), cache_key: None }
    }

    /// The name of the token counter.
    pub fn counter_name(&self) -> &'static str {
        self.counter().name()
    }

    pub(super) fn counter(&self) -> &dyn TokenCounter {
        self.cache.counter.as_ref()
    }

    /// Encodes a request. `entries` identifies each message in the history; a
    /// message encoded before is reused.
    pub fn encode(&mut self, request: &Request<'_>, entries: &[EntryId]) -> Encoded {
        let protocol = request.dialect.protocol;
        let RequestRules { rules, preferences, target } = RequestRules::of(request);
        let can_read = |matrix: &str, mine: &str, theirs: &str| request.dialects.can_read(matrix, mine, theirs);
        let egress_target = EgressTarget {
            protocol,
            origin: &target,
            rules: &rules,
            can_read: &can_read,
            has_tools: !request.tools.is_empty(),
            is_unknown: request.dialect.unknown,
        };
        let mut egress = rules::plan_egress(request.messages, egress_target, &preferences);
        let (mut params, unmet) = choose_params(request, &rules, &preferences, &egress);
        let mut left_out = std::mem::take(&mut egress.left_out);
        let (cache_after_tools, cache_points) = place_hints(
            &request.parameters.cache_hints,
            protocol,
            request.messages,
            &mut egress.steps,
            request.tools,
            &mut left_out,
        );
        left_out.extend(write_parameters(request, &rules, &preferences, &mut params));
        let mut written = rules::written_parameters(&rules, &params.parameters);
        written.extend(rules::written_members(&rules, protocol, &egress.decisions));
        let cache_key = CacheKey { dialect: request.dialect.id.clone(), rules: rules.into_owned(), preferences };
        if self.cache_key.as_ref() != Some(&cache_key) {
            self.cache.clear_messages();
        }
        let cache_key = self.cache_key.insert(cache_key);
        let RequestParams { parameters, headers, effort, effort_note, mut notes, .. } = params;
        let draft = RequestDraft {
            protocol,
            model: request.model,
            messages: request.messages,
            plans: &egress.steps,
            tools: request.tools,
            cache_after_tools,
            native_tools: &request.parameters.native_tools,
            parameters: &parameters,
            rules: &cache_key.rules,
            preferences: &cache_key.preferences,
            entries,
            cache: &self.cache,
            call_ids: CallIds::of(cache_key.rules.echo.call_ids, request.messages),
            tokens: RefCell::default(),
        };
        let (path, body) = path_and_body(request, &draft);
        let body = edit_body(body, &cache_key.preferences.body_edits);
        let BodyTokens { head, messages } = draft.tokens.take();
        let tokens = head + messages.iter().sum::<u64>();
        notes.extend(self.cache.counter.warning());
        Encoded {
            body: Arc::new(body),
            path,
            model: request.model.to_owned(),
            headers,
            decisions: egress.decisions,
            tokens,
            message_tokens: messages,
            effort,
            effort_note,
            unmet,
            notes,
            left_out,
            written,
            cache_points,
        }
    }
}

/// Chooses the parameters that control thinking, and says in words which requirements of the provider the request
/// cannot meet.
fn choose_params(
    request: &Request<'_>,
    rules: &Rules,
    preferences: &RequestPreferences,
    egress: &Egress,
) -> (RequestParams, Vec<String>) {
    let (protocol, has_tools) = (request.dialect.protocol, !request.tools.is_empty());
    let flag = egress.sends_past.then_some(&rules.echo.flag);
    let paused = RequestPreferences { enabled: false, ..preferences.clone() };
    let mut params = match request.dialect.unknown {
        true => rules::params_for_unknown_endpoint(&rules.ask, preferences, protocol),
        false if preferences.repair_effect.thinking_paused => {
            rules::request_params(&rules.ask, &paused, protocol, None)
        }
        false => rules::request_params(&rules.ask, preferences, protocol, flag),
    };
    let needs_responses = has_tools && rules.ask.tools == ThinkingWithTools::ResponsesOnly;
    if has_tools && params.thinks && rules.ask.tools == ThinkingWithTools::WithOff {
        params = rules::request_params(&rules.ask, &paused, protocol, None);
        let note = format!("thinking is off: here this model takes tools only without it{}", elsewhere(request));
        params.notes.push(note);
    }
    // Some providers continue thinking only if the tool loop begins with a
    // thinking block. If there is none to send, thinking is off until the
    // turn ends.
    let lacks_thinking = egress.loop_lacks_thinking && rules.needs_thinking_in_loop();
    if lacks_thinking && messages::requires_leading_thinking(&params.parameters) {
        params = rules::request_params(&rules.ask, &paused, protocol, None);
        let note = "thinking is off until this turn ends: its tool loop has no thinking that may be sent back";
        params.notes.push(note.to_owned());
    }
    let withheld = egress.decisions.iter().any(|decision| decision.reason == EgressReason::NotIncluded);
    if withheld && preferences.include.by_user && rules.echo.loop_duty == Duty::Must {
        let note = "thinking that this provider asks for is withheld by your setting reasoning.includeInContext";
        params.notes.push(note.to_owned());
    }
    let mut unmet = rules::unmet_duties(request.messages, egress, rules, preferences, &params, has_tools);
    if lacks_thinking && messages::requires_leading_thinking(&params.parameters) {
        unmet.push("the open tool loop must begin with thinking, and none may be sent".to_owned());
    }
    if needs_responses {
        unmet.push(format!("this model takes tools only over the Responses API{}", elsewhere(request)));
    }
    (params, unmet)
}

/// Writes the other parameters. Returns what cannot be sent.
fn write_parameters(
    request: &Request<'_>,
    rules: &Rules,
    preferences: &RequestPreferences,
    params: &mut RequestParams,
) -> Vec<LeftOut> {
    let mut left_out = std::mem::take(&mut params.left_out);
    if !params.thinks {
        let thinking = &request.parameters.thinking;
        let unused = [("thinking.effort", thinking.effort.is_some()), ("thinking.budget", thinking.budget.is_some())];
        let unused = unused.into_iter().filter(|(_, is_set)| *is_set);
        left_out.extend(unused.map(|(path, _)| LeftOut::new(path, LeftOutReason::ThinkingOff)));
    }
    let mut parameters_out = ParametersOut {
        protocol: request.dialect.protocol,
        rules: &rules.ask,
        thinks: params.thinks,
        tool_choice: preferences.tool_choice,
        body: &mut params.parameters,
        left_out: &mut left_out,
    };
    parameters_out.write(request.parameters, preferences.temperature, request.tools);
    if let Some(key) = request.parameters.cache_key.as_deref().filter(|_| !rules.ask.cache.key.is_empty()) {
        set_value(&mut params.parameters, &rules.ask.cache.key, key.into());
    }
    rules::change_parameters(&mut params.parameters, preferences);
    left_out
}

/// Where the same model thinks and calls tools, in words.
fn elsewhere(request: &Request<'_>) -> String {
    let is_twin = |dialect: &&Dialect| {
        dialect.protocol == Protocol::OpenaiResponses && dialect.table_id() == request.dialect.table_id()
    };
    let twin = request.dialects.iter().find(is_twin);
    twin.map_or_else(String::new, |twin| format!("; choose {}/{} for both", twin.id, request.model))
}

/// The path of a streamed request, after the base URL.
pub fn request_path(protocol: Protocol, model: &str) -> String {
    match protocol {
        Protocol::OpenaiChat => "/chat/completions".to_owned(),
        Protocol::OpenaiResponses => "/responses".to_owned(),
        Protocol::Anthropic => "/v1/messages".to_owned(),
        Protocol::Gemini => format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
        Protocol::Ollama => "/api/chat".to_owned(),
        Protocol::Bedrock => format!("/model/{}/converse-stream", path_segment(model)),
        Protocol::Cohere => "/v2/chat".to_owned(),
    }
}

fn path_and_body(request: &Request<'_>, draft: &RequestDraft<'_>) -> (String, String) {
    let protocol = request.dialect.protocol;
    let body = match protocol {
        Protocol::OpenaiChat => chat::write_request(draft),
        Protocol::OpenaiResponses => responses::write_request(draft),
        Protocol::Anthropic => messages::write_request(draft),
        Protocol::Gemini => gemini::write_request(draft),
        Protocol::Ollama => ollama::write_request(draft),
        Protocol::Bedrock => converse::write_request(draft),
        Protocol::Cohere => cohere::write_request(draft),
    };
    (request_path(protocol, request.model), body)
}

/// Escapes a model name as one path segment: some are ARNs, with slashes and
/// colons.
fn path_segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
