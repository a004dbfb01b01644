//! What a provider would say to a request, from the same data the encoder
//! works by. It reads only the request, as the provider does; what the provider
//! gave out earlier it knows only if it is told.

mod calls;
mod parameters;
mod returned;
mod view;
mod words;

use crate::dialect::{
    Carrier, Dedupe, Dialect, Duty, EmptyContent, Fault, FillEmpty, Foreign, Removal, Rules, TurnsIf,
};
use crate::message::Message;
use crate::protocol::Protocol;
use crate::wire::json::{Raw, at_path, member, text_member};
pub use view::Carried;
use view::{Seen, Speaker, view};

/// One rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The rule, in the words of the dialect files.
    pub rule: String,
    /// Where in the body.
    pub path: String,
    pub fault: Fault,
    pub status: u16,
    /// Headers of the answer that belong to its shape.
    pub headers: Vec<(String, String)>,
    /// The answer, in the provider's own shape and words.
    pub body: String,
    /// The words alone.
    pub message: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    pub broken: Vec<Broken>,
    /// What could not be looked at.
    pub unverified: Vec<String>,
}

impl Verdict {
    pub fn is_ok(&self) -> bool {
        self.broken.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request is not JSON: {0}")]
pub struct NotARequest(String);

/// What a provider knows of what it gave out.
#[derive(Clone, Copy)]
pub enum Issued<'a> {
    /// Nothing: only the structure is judged.
    Unknown,
    /// The conversation so far; the assistant's messages count, as they were made.
    Messages(&'a [&'a Message]),
    /// Seals that prove themselves: whether one is good, where it stands.
    Checked(&'a dyn Fn(&Returned<'_>) -> bool),
}

/// A sealed piece that came back, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned<'a> {
    pub carried: Carried,
    pub text: &'a str,
    /// A signature or an encrypted payload.
    pub seal: &'a str,
    /// Its own id: of a call, the call's.
    pub id: Option<&'a str>,
    /// The element of the list of messages or items where its message begins.
    pub message: usize,
    /// Which of the assistant's messages that is.
    pub step: usize,
    /// Which of the message's thoughts, or of its calls, this is.
    pub index: usize,
    /// The call that comes next in its message.
    pub next_call: Option<&'a str>,
}

/// Judges a request as its provider would. Without headers, none are judged.
pub fn judge(
    dialect: &Dialect,
    model: &str,
    headers: &[(String, String)],
    body: &str,
    issued: Issued<'_>,
) -> Result<Verdict, NotARequest> {
    let raw = Raw::of(body).map_err(|error| NotARequest(error.to_string()))?;
    let rules = dialect.rules(Some(model));
    let seen = view(dialect, rules, raw);
    let mut court = Court { dialect, model, rules, seen: &seen, body: raw, verdict: Verdict::default() };
    court.headers(headers);
    court.calls();
    court.thinking();
    court.parameters();
    match issued {
        Issued::Unknown => court.leave("seals: what was issued is not known"),
        Issued::Messages(messages) => court.returned(messages),
        Issued::Checked(is_good) => court.checked(is_good),
    }
    Ok(court.verdict)
}

struct Court<'a> {
    dialect: &'a Dialect,
    model: &'a str,
    rules: &'a Rules,
    seen: &'a [Seen],
    body: Raw<'a>,
    verdict: Verdict,
}

impl<'a> Court<'a> {
    /// The assistant's messages: where each stands, and whether it is a step of
    /// the open tool loop.
    fn steps(&self) -> impl Iterator<Item = (bool, &'a Seen)> + use<'a> {
        let seen = self.seen;
        let last_user = seen.iter().rposition(|message| message.speaker == Speaker::User);
        let open = seen.last().is_some_and(|message| message.speaker == Speaker::Tool);
        let made = seen.iter().enumerate().filter(|(_, message)| message.speaker == Speaker::Assistant);
        made.map(move |(at, message)| (open && last_user.is_none_or(|user| at > user), message))
    }

    fn duty(&self, in_loop: bool) -> Duty {
        let echo = &self.rules.echo;
        let has_tools = member(self.body, "tools").or_else(|| member(self.body, "toolConfig")).is_some();
        let applies = match echo.turns_if {
            TurnsIf::Always | TurnsIf::Flag => true,
            TurnsIf::Tools => has_tools,
        };
        match (in_loop, applies) {
            (true, _) => echo.loop_duty,
            (false, true) => echo.turns_duty,
            (false, false) => Duty::Ignored,
        }
    }

    /// Everything about thinking that the structure alone shows.
    fn thinking(&mut self) {
        for (in_loop, message) in self.steps() {
            let rule = if in_loop { "echo.loop" } else { "echo.turns" };
            match self.duty(in_loop) {
                Duty::Must => self.demand(message, rule, in_loop),
                Duty::Forbidden if message.has_field || !message.thinking.is_empty() => {
                    let field = self.field();
                    self.refuse(&format!("{rule} = forbidden"), &message.path, Fault::Unwanted, &[("field", &field)]);
                }
                Duty::Should | Duty::Ignored | Duty::Forbidden => (),
            }
            if self.rules.echo.empty_content == EmptyContent::Omit
                && message.has_empty_content
                && !message.calls.is_empty()
            {
                let path = format!("{}.content", message.path);
                self.refuse("echo.empty_content = omit", &path, Fault::EmptyContent, &[]);
            }
        }
        self.all_or_none();
        self.leading_thought();
        self.while_off();
        if self.dialect.protocol == Protocol::OpenaiResponses {
            self.orphans();
            self.not_stored();
        }
        self.repeats();
    }

    /// What must be there is there, in the place this provider looks.
    fn demand(&mut self, message: &Seen, rule: &str, in_loop: bool) {
        let echo = &self.rules.echo;
        let rule = format!("{rule} = must");
        let demanded = match echo.fill_empty {
            FillEmpty::All => true,
            FillEmpty::WithToolCalls => !message.calls.is_empty(),
            // Nothing can be demanded of a message that never thought.
            FillEmpty::None => false,
        };
        let there = match echo.carrier {
            Carrier::Field | Carrier::FieldsOpaque | Carrier::Details => message.has_field,
            Carrier::Block | Carrier::Item | Carrier::ContentChunks => !message.thinking.is_empty(),
            Carrier::None | Carrier::ContentTags | Carrier::Part | Carrier::CallExtra => true,
        };
        // Who does not think owes no thought.
        if demanded && !there && self.thinks() {
            self.missing(&rule, message);
        }
        // The first call of each step of the loop carries the seal.
        let seals_calls = matches!(echo.carrier, Carrier::Part | Carrier::CallExtra);
        if in_loop
            && seals_calls
            && echo.foreign == Foreign::DummySignature
            && let Some(call) = message.calls.first().filter(|call| call.seal.is_none())
        {
            self.refuse(&rule, &call.path, Fault::UnsealedCall, &[("name", &call.name)]);
        }
    }

    fn missing(&mut self, rule: &str, message: &Seen) {
        let (field, index) = (self.field(), message.at.to_string());
        self.refuse(rule, &message.path, Fault::Missing, &[("field", &field), ("index", &index)]);
    }

    /// The name of the thinking, as a complaint says it.
    fn field(&self) -> String {
        match self.dialect.protocol {
            Protocol::OpenaiResponses => "reasoning_text".to_owned(),
            Protocol::Anthropic => "content[].thinking".to_owned(),
            Protocol::OpenaiChat | Protocol::Gemini | Protocol::Ollama | Protocol::Bedrock | Protocol::Cohere => {
                let wishes = super::Wishes::of(&crate::settings::Settings::new(), &self.rules.echo);
                super::field_name(self.rules, &wishes, None)
            }
        }
    }

    /// One message with thinking and one without it are refused together.
    fn all_or_none(&mut self) {
        if self.rules.bind.removal != Removal::AllOrNone || !self.thinks() {
            return;
        }
        let thinks = |message: &Seen| message.has_field || !message.thinking.is_empty();
        let said = self.steps().any(|(_, message)| message.thinking.iter().any(|thought| !thought.is_filler()));
        let silent = self.steps().map(|(_, message)| message).find(|message| !thinks(message));
        let Some(silent) = silent.filter(|_| said) else { return };
        // Already said, where it is a duty as well.
        if !self.verdict.broken.iter().any(|broken| broken.path == silent.path) {
            self.missing("bind.removal = all_or_none", silent);
        }
    }

    /// Thinking that is switched on by hand wants a loop to begin with a thought.
    fn leading_thought(&mut self) {
        let thinking =
            member(self.body, "thinking").or_else(|| at_path(self.body, "additionalModelRequestFields.thinking"));
        let by_hand = thinking.is_some_and(|thinking| {
            member(thinking, "budget_tokens").is_some() && text_member(thinking, "type").as_deref() == Some("enabled")
        });
        let first = self.steps().find(|(in_loop, _)| *in_loop).map(|(_, message)| message);
        let Some(first) = first.filter(|first| by_hand && !first.begins_with_thinking) else { return };
        let path = format!("{}.content[0]", first.path);
        let kind = if first.text.is_empty() { "tool_use" } else { "text" };
        self.refuse("a loop begins with a thought", &path, Fault::Leading, &[("kind", kind)]);
    }

    /// An assistant's message is gone on from, with thinking in it and off.
    fn while_off(&mut self) {
        if !self.dialect.complains_of(self.model, Fault::WhileOff) {
            return;
        }
        let off = at_path(self.body, "thinking.type").is_some_and(|kind| kind.get() == "\"disabled\"");
        let last = self.seen.last().filter(|last| last.speaker == Speaker::Assistant && off);
        if let Some(thought) = last.and_then(|last| last.thinking.first()) {
            self.refuse("nothing to go on from while thinking is off", &thought.path, Fault::WhileOff, &[]);
        }
    }

    fn orphans(&mut self) {
        if !self.dialect.complains_of(self.model, Fault::Orphan) {
            return;
        }
        for thought in self.seen.iter().flat_map(|message| &message.thinking).filter(|thought| thought.is_last) {
            // Without an id nobody knows what followed it.
            if let Some(id) = thought.id.as_deref() {
                self.refuse("each thought is followed by its item", &thought.path, Fault::Orphan, &[("id", id)]);
            }
        }
    }

    /// A bare id means nothing to a provider that was told to store nothing.
    fn not_stored(&mut self) {
        let stores = member(self.body, "store").is_none_or(|store| store.get() != "false");
        if stores || !self.rules.echo.need_opaque || !self.dialect.complains_of(self.model, Fault::NotStored) {
            return;
        }
        for thought in self.seen.iter().flat_map(|message| &message.thinking) {
            if let Some(id) = thought.id.as_deref().filter(|_| thought.seals.is_empty()) {
                self.refuse("echo.need_opaque = true", &thought.path, Fault::NotStored, &[("id", id)]);
            }
        }
    }

    /// An item twice, and ids that are too long.
    fn repeats(&mut self) {
        let items = self.seen.iter().flat_map(|message| &message.items);
        if self.dialect.complains_of(self.model, Fault::LongId) {
            for item in items.clone().filter(|item| item.id.len() > 64) {
                let length = item.id.len().to_string();
                self.refuse("ids have at most 64 characters", &item.path, Fault::LongId, &[("value", &length)]);
            }
        }
        let thoughts = self.seen.iter().flat_map(|message| &message.thinking);
        let units: Vec<(&str, &str)> = match self.rules.echo.dedupe {
            Dedupe::None => Vec::new(),
            Dedupe::ById => items.map(|item| (item.path.as_str(), item.id.as_str())).collect(),
            Dedupe::Openrouter => thoughts
                .flat_map(|thought| thought.seals.iter().map(|seal| (thought.path.as_str(), seal.as_str())))
                .collect(),
        };
        let mut known = std::collections::HashSet::new();
        for (path, id) in units {
            if !known.insert(id) {
                self.refuse("echo.dedupe", path, Fault::Duplicate, &[("id", id)]);
            }
        }
    }

    fn leave(&mut self, what: &str) {
        self.verdict.unverified.push(what.to_owned());
    }
}
