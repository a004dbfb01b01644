//! Judges a request as its provider would, based on the same dialect data as
//! the encoder. Like the provider, it reads only the request; thinking issued
//! earlier must be passed in.

mod error_response;
mod other_protocol;
mod parameters;
mod replayed;
mod request_view;
mod requested_thinking;
mod tool_calls;

use crate::dialect::{
    Carrier, Dedupe, Dialect, Duty, EmptyContent, Fault, FillEmpty, Foreign, Removal, Rules, TurnsIf,
};
use crate::json_text::{ObjectMembers, Raw, member, text_member};
use crate::message::Message;
use crate::protocol::Protocol;
pub use request_view::SealCarrier;
use request_view::{JudgedMessage, JudgedRole, view};
use requested_thinking::thinks;
pub use requested_thinking::{RequestedThinking, requested_thinking};

/// One rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenRule {
    /// The rule, in terms of the dialect files.
    pub rule: String,
    /// Its path in the body.
    pub path: String,
    /// The kind of mistake.
    pub fault: Fault,
    /// The HTTP status of the error response.
    pub status: u16,
    /// Headers of the error response.
    pub headers: Vec<(String, String)>,
    /// The error response, in the provider's format and wording.
    pub body: String,
    /// The message of the error response.
    pub message: String,
}

/// The result of [`judge`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JudgeVerdict {
    /// Empty if the provider would accept the request.
    pub broken: Vec<BrokenRule>,
    /// What could not be checked.
    pub unverified: Vec<String>,
}

impl JudgeVerdict {
    /// Whether the provider would accept the request.
    pub fn is_ok(&self) -> bool {
        self.broken.is_empty()
    }
}

/// A body that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotARequest {
    /// It is not JSON.
    #[error("the request is {0}")]
    NotJson(String),
    /// It is a request of another protocol.
    #[error("the request looks like {found}, but `{dialect}` speaks {expected}")]
    OtherProtocol {
        /// The protocol that it looks like.
        found: Protocol,
        /// The protocol of the dialect.
        expected: Protocol,
        /// The dialect that should judge it.
        dialect: String,
    },
    /// The list of messages is missing.
    #[error("the request has no `{member}`, which {protocol} requires")]
    NoMessages {
        /// The missing member.
        member: &'static str,
        /// The protocol of the dialect.
        protocol: Protocol,
    },
}

/// What is known about the thinking that the provider issued.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum IssuedThinking<'a> {
    /// Nothing. Only the structure is judged.
    Unknown,
    /// The conversation so far. Its assistant messages count as issued.
    Messages(&'a [&'a Message]),
    /// Seals that can be verified on their own. Returns whether a seal is valid
    /// in its position.
    Verifiable(&'a dyn Fn(&ReplayedSeal<'_>) -> bool),
}

/// A seal that was sent back, with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayedSeal<'a> {
    /// What the seal is attached to.
    pub carrier: SealCarrier,
    /// The readable text that it belongs to. Empty if there is none.
    pub text: &'a str,
    /// A signature or an encrypted payload.
    pub seal: &'a str,
    /// Its own id, or that of the tool call.
    pub id: Option<&'a str>,
    /// The index where its message starts in the list of messages or items.
    pub message: usize,
    /// The index of that message among the assistant messages.
    pub step: usize,
    /// The index of the thinking or call within the message.
    pub index: usize,
    /// The next call in its message.
    pub next_call: Option<&'a str>,
}

/// Judges a request as its provider would. Without headers, they are not
/// checked.
pub fn judge(
    dialect: &Dialect,
    model: &str,
    headers: &[(String, String)],
    body: &str,
    issued: IssuedThinking<'_>,
) -> Result<JudgeVerdict, NotARequest> {
    let raw = Raw::of(body).map_err(|error| NotARequest::NotJson(error.to_string()))?;
    let body = ObjectMembers::of(raw);
    other_protocol::check(dialect, &body)?;
    let rules = dialect.rules(Some(model));
    let messages = view(dialect, rules, &body);
    let mut judge = Judge {
        dialect,
        model,
        rules,
        messages: &messages,
        body: &body,
        has_tools: body.get("tools").or_else(|| body.get("toolConfig")).is_some(),
        thinks: thinks(&rules.ask, &body),
        verdict: JudgeVerdict::default(),
    };
    judge.check_headers(headers);
    judge.check_calls();
    judge.check_thinking();
    judge.check_parameters();
    match issued {
        IssuedThinking::Unknown => {
            judge.note_unverified("signatures: the originals are unknown, so they were not checked")
        }
        IssuedThinking::Messages(messages) => judge.check_replayed(messages),
        IssuedThinking::Verifiable(is_valid) => judge.check_verifiable_seals(is_valid),
    }
    Ok(judge.verdict)
}

struct Judge<'a> {
    dialect: &'a Dialect,
    model: &'a str,
    rules: &'a Rules,
    messages: &'a [JudgedMessage],
    body: &'a ObjectMembers<'a>,
    has_tools: bool,
    /// Whether the request enables thinking, as far as it says so.
    thinks: bool,
    verdict: JudgeVerdict,
}

impl<'a> Judge<'a> {
    /// The assistant messages, each with whether it is a step of the open tool
    /// loop.
    fn steps(&self) -> impl Iterator<Item = (bool, &'a JudgedMessage)> + use<'a> {
        let messages = self.messages;
        let last_user = messages.iter().rposition(|message| message.role == JudgedRole::User);
        let open = messages.last().is_some_and(|message| message.role == JudgedRole::Tool);
        let made = messages.iter().enumerate().filter(|(_, message)| message.role == JudgedRole::Assistant);
        made.map(move |(at, message)| (open && last_user.is_none_or(|user| at > user), message))
    }

    fn duty(&self, in_loop: bool) -> Duty {
        let echo = &self.rules.echo;
        let applies = match echo.turns_if {
            TurnsIf::Always | TurnsIf::Flag => true,
            TurnsIf::Tools => self.has_tools,
        };
        match (in_loop, applies) {
            (true, _) => echo.loop_duty,
            (false, true) => echo.turns_duty,
            (false, false) => Duty::Ignored,
        }
    }

    /// Checks everything about thinking that the structure alone shows.
    fn check_thinking(&mut self) {
        for (in_loop, message) in self.steps() {
            let rule = if in_loop { "echo.loop" } else { "echo.turns" };
            match self.duty(in_loop) {
                Duty::Must => self.check_required(message, rule, in_loop),
                Duty::Forbidden if message.has_field || !message.thinking.is_empty() => {
                    let field = self.thinking_field();
                    self.report(&format!("{rule} = forbidden"), &message.path, Fault::Unwanted, &[("field", &field)]);
                }
                Duty::Should | Duty::Ignored | Duty::Forbidden => (),
            }
            if self.rules.echo.empty_content == EmptyContent::Omit
                && message.has_empty_content
                && !message.calls.is_empty()
            {
                let path = format!("{}.content", message.path);
                self.report("echo.empty_content = omit", &path, Fault::EmptyContent, &[]);
            }
        }
        self.check_all_or_none();
        self.check_leading_thinking();
        self.check_while_off();
        if self.dialect.protocol == Protocol::OpenaiResponses {
            self.check_orphans();
            self.check_not_stored();
        }
        self.check_duplicates();
    }

    /// Checks that required thinking is present where this provider looks for
    /// it.
    fn check_required(&mut self, message: &JudgedMessage, rule: &str, in_loop: bool) {
        let echo = &self.rules.echo;
        let rule = format!("{rule} = must");
        let is_required = match echo.fill_empty {
            FillEmpty::All => true,
            FillEmpty::WithToolCalls => !message.calls.is_empty(),
            // The message may never have had thinking.
            FillEmpty::None => false,
        };
        let is_present = match echo.carrier {
            Carrier::Field | Carrier::FieldsOpaque | Carrier::Details => message.has_field,
            Carrier::Block | Carrier::Item | Carrier::ContentChunks => !message.thinking.is_empty(),
            Carrier::None | Carrier::ContentTags | Carrier::Part | Carrier::CallExtra => true,
        };
        // Nothing is required while thinking is off.
        if is_required && !is_present && self.thinks {
            self.report_missing(&rule, message);
        }
        // The first call of each step in the loop carries the seal.
        let seals_calls = matches!(echo.carrier, Carrier::Part | Carrier::CallExtra);
        if in_loop
            && seals_calls
            && echo.foreign == Foreign::DummySignature
            && let Some(call) = message.calls.first().filter(|call| call.seal.is_none())
        {
            self.report(&rule, &call.path, Fault::UnsealedCall, &[("name", &call.name)]);
        }
    }

    fn report_missing(&mut self, rule: &str, message: &JudgedMessage) {
        let (field, index) = (self.thinking_field(), message.at.to_string());
        self.report(rule, &message.path, Fault::Missing, &[("field", &field), ("index", &index)]);
    }

    /// The name of the thinking field, as used in errors.
    fn thinking_field(&self) -> String {
        match self.dialect.protocol {
            Protocol::OpenaiResponses => "reasoning_text".to_owned(),
            Protocol::Anthropic => "content[].thinking".to_owned(),
            Protocol::OpenaiChat | Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => {
                let preferences = super::RequestPreferences::of(&crate::settings::Settings::new(), &self.rules.echo);
                super::field_name(self.rules, &preferences, None)
            }
        }
    }

    /// Checks that either all messages have thinking or none has.
    fn check_all_or_none(&mut self) {
        if self.rules.bind.removal != Removal::AllOrNone || !self.thinks {
            return;
        }
        let thinks = |message: &JudgedMessage| message.has_field || !message.thinking.is_empty();
        let any_thinking =
            self.steps().any(|(_, message)| message.thinking.iter().any(|thinking| !thinking.is_filler()));
        let without_thinking = self.steps().map(|(_, message)| message).find(|message| !thinks(message));
        let Some(without_thinking) = without_thinking.filter(|_| any_thinking) else { return };
        // Already reported if it is also a duty.
        if !self.verdict.broken.iter().any(|broken| broken.path == without_thinking.path) {
            self.report_missing("bind.removal = all_or_none", without_thinking);
        }
    }

    /// If thinking is switched on explicitly, a tool loop must start with
    /// thinking, except where any of it may be left out.
    fn check_leading_thinking(&mut self) {
        if !self.rules.needs_thinking_in_loop() {
            return;
        }
        let thinking = self.body.get("thinking").or_else(|| self.body.at_path("additionalModelRequestFields.thinking"));
        let is_explicit = thinking.is_some_and(|thinking| {
            member(thinking, "budget_tokens").is_some() && text_member(thinking, "type").as_deref() == Some("enabled")
        });
        let first = self.steps().find(|(in_loop, _)| *in_loop).map(|(_, message)| message);
        let Some(first) = first.filter(|first| is_explicit && !first.begins_with_thinking) else { return };
        let path = format!("{}.content[0]", first.path);
        let kind = if first.text.is_empty() { "tool_use" } else { "text" };
        self.report("a tool loop must start with a thinking block", &path, Fault::Leading, &[("kind", kind)]);
    }

    /// Checks that the last message has no thinking while thinking is off.
    fn check_while_off(&mut self) {
        if !self.dialect.rules_report_fault(self.rules, Fault::WhileOff) {
            return;
        }
        let off = self.body.at_path("thinking.type").is_some_and(|kind| kind.get() == "\"disabled\"");
        let last = self.messages.last().filter(|last| last.role == JudgedRole::Assistant && off);
        if let Some(thinking) = last.and_then(|last| last.thinking.first()) {
            self.report(
                "the last message must not contain thinking while thinking is off",
                &thinking.path,
                Fault::WhileOff,
                &[],
            );
        }
    }

    fn check_orphans(&mut self) {
        if !self.dialect.rules_report_fault(self.rules, Fault::Orphan) {
            return;
        }
        for thinking in self.messages.iter().flat_map(|message| &message.thinking).filter(|thinking| thinking.is_last) {
            // Without an id, the provider cannot know what followed it.
            if let Some(id) = thinking.id.as_deref() {
                self.report(
                    "a reasoning item must be followed by the item it belongs to",
                    &thinking.path,
                    Fault::Orphan,
                    &[("id", id)],
                );
            }
        }
    }

    /// An id alone means nothing to a provider that stores nothing.
    fn check_not_stored(&mut self) {
        let stores = self.body.get("store").is_none_or(|store| store.get() != "false");
        if stores || !self.rules.echo.need_opaque || !self.dialect.rules_report_fault(self.rules, Fault::NotStored) {
            return;
        }
        for thinking in self.messages.iter().flat_map(|message| &message.thinking) {
            if let Some(id) = thinking.id.as_deref().filter(|_| thinking.seals.is_empty()) {
                self.report("echo.need_opaque = true", &thinking.path, Fault::NotStored, &[("id", id)]);
            }
        }
    }

    /// Checks for duplicate items and for ids that are too long.
    fn check_duplicates(&mut self) {
        let items = self.messages.iter().flat_map(|message| &message.items);
        if self.dialect.rules_report_fault(self.rules, Fault::LongId) {
            for item in items.clone().filter(|item| item.id.len() > 64) {
                let length = item.id.len().to_string();
                self.report("ids have at most 64 characters", &item.path, Fault::LongId, &[("value", &length)]);
            }
        }
        let thinking_blocks = self.messages.iter().flat_map(|message| &message.thinking);
        let units: Vec<(&str, &str)> = match self.rules.echo.dedupe {
            Dedupe::None => Vec::new(),
            Dedupe::ById => items.map(|item| (item.path.as_str(), item.id.as_str())).collect(),
            Dedupe::Openrouter => thinking_blocks
                .flat_map(|thinking| thinking.seals.iter().map(|seal| (thinking.path.as_str(), seal.as_str())))
                .collect(),
        };
        let mut known = std::collections::HashSet::new();
        // The placeholder for a missing seal stands for many.
        let dummy = self.rules.echo.dummy.clone();
        for (path, id) in units.into_iter().filter(|(_, id)| *id != dummy) {
            if !known.insert(id) {
                self.report("echo.dedupe", path, Fault::Duplicate, &[("id", id)]);
            }
        }
    }

    fn note_unverified(&mut self, what: &str) {
        self.verdict.unverified.push(what.to_owned());
    }
}
