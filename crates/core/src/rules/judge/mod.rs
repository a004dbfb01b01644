//! What a provider would say to a request, from the same data the encoder
//! works by. It reads only the body, as the provider does; what the provider
//! gave out earlier it knows only if it is told.

mod view;

use super::Wishes;
use crate::block::{Block, Thinking};
use crate::dialect::{BindModel, Carrier, Dialect, Duty, EmptyContent, FillEmpty, Foreign, Rules, TurnsIf};
use crate::event::ProviderError;
use crate::message::Message;
use crate::protocol::Protocol;
use crate::settings::Settings;
use crate::wire::error_reply;
use crate::wire::json::{Raw, at_path, member, text_member, text_of};
use view::{Seen, Speaker, view};

/// One rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The rule, in the words of the dialect files.
    pub rule: String,
    /// Where in the body.
    pub path: String,
    pub status: u16,
    /// The answer, in the provider's own shape.
    pub body: String,
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

/// Judges a request body as its provider would. `issued` are the earlier
/// messages, as the provider made them.
pub fn judge(dialect: &Dialect, model: &str, body: &str, issued: Option<&[&Message]>) -> Result<Verdict, NotARequest> {
    let raw = Raw::of(body).map_err(|error| NotARequest(error.to_string()))?;
    let rules = dialect.rules(Some(model));
    let mut court = Court { protocol: dialect.protocol, rules, verdict: Verdict::default() };
    let seen = view(dialect.protocol, raw, &fields(rules), &rules.read.call_extra);
    let last_user = seen.iter().rposition(|message| message.speaker == Speaker::User);
    let open = seen.last().is_some_and(|message| message.speaker == Speaker::Tool);
    let has_tools = member(raw, "tools").or_else(|| member(raw, "toolConfig")).is_some();
    for (at, message) in seen.iter().enumerate().filter(|(_, message)| message.speaker == Speaker::Assistant) {
        let in_loop = open && last_user.is_none_or(|user| at > user);
        court.message(message, in_loop, has_tools);
    }
    court.parameters(raw);
    if open {
        let first = last_user.map_or(0, |user| user + 1);
        court.leading_thought(raw, seen.get(first));
    }
    match issued {
        Some(issued) => court.seals(&seen, issued),
        None => court.verdict.unverified.push("seals: what was issued is not known".to_owned()),
    }
    Ok(court.verdict)
}

/// Every name that thinking may stand under in this dialect.
fn fields(rules: &Rules) -> Vec<String> {
    let mut fields = rules.read.text.clone();
    fields.push(super::field_name(rules, &Wishes::of(&Settings::new(), &rules.echo), None));
    fields.extend(["reasoning_details".to_owned(), "thinking_blocks".to_owned()]);
    fields.sort();
    fields.dedup();
    fields
}

struct Court<'a> {
    protocol: Protocol,
    rules: &'a Rules,
    verdict: Verdict,
}

impl Court<'_> {
    fn message(&mut self, message: &Seen, in_loop: bool, has_tools: bool) {
        let echo = &self.rules.echo;
        let applies = match echo.turns_if {
            TurnsIf::Always | TurnsIf::Flag => true,
            TurnsIf::Tools => has_tools,
        };
        let duty = match (in_loop, applies) {
            (true, _) => echo.loop_duty,
            (false, true) => echo.turns_duty,
            (false, false) => Duty::Ignored,
        };
        let rule = if in_loop { "echo.loop" } else { "echo.turns" };
        match duty {
            Duty::Must => self.demand(message, rule, in_loop),
            Duty::Forbidden if message.has_field || !message.thinking.is_empty() => {
                let text = "thinking of earlier turns is not taken back";
                self.refuse(format!("{rule} = forbidden"), message.path.clone(), text);
            }
            Duty::Should | Duty::Ignored | Duty::Forbidden => (),
        }
        if echo.empty_content == EmptyContent::Omit && message.has_empty_content && !message.calls.is_empty() {
            self.refuse(
                "echo.empty_content = omit".to_owned(),
                format!("{}.content", message.path),
                "text content is empty",
            );
        }
        if self.protocol == Protocol::OpenaiResponses {
            self.orphans(message);
        }
    }

    /// What must be there is there, in the place this provider looks.
    fn demand(&mut self, message: &Seen, rule: &str, in_loop: bool) {
        let echo = &self.rules.echo;
        let rule = format!("{rule} = must");
        match echo.carrier {
            Carrier::Field | Carrier::FieldsOpaque | Carrier::Details => {
                let demanded = match echo.fill_empty {
                    FillEmpty::All => true,
                    FillEmpty::WithToolCalls => !message.calls.is_empty(),
                    // Nothing can be demanded of a message that never thought.
                    FillEmpty::None => false,
                };
                if demanded && !message.has_field {
                    let text = self.complaint("must be passed back", "thinking must be passed back to the API");
                    self.refuse(rule, message.path.clone(), &text);
                }
            }
            // The first call of each step of the loop carries the seal.
            Carrier::Part | Carrier::CallExtra if in_loop && echo.foreign == Foreign::DummySignature => {
                if let Some(call) = message.calls.first().filter(|call| call.seal.is_none()) {
                    let path = call.path.clone();
                    let text = self.complaint("thought_signature", "Function call is missing a thought_signature");
                    self.refuse(rule, path, &text);
                }
            }
            Carrier::None
            | Carrier::ContentTags
            | Carrier::ContentChunks
            | Carrier::Block
            | Carrier::Item
            | Carrier::Part
            | Carrier::CallExtra => (),
        }
    }

    /// Thinking that is switched on by hand wants a loop to begin with a thought.
    fn leading_thought(&mut self, body: Raw<'_>, first: Option<&Seen>) {
        let thinking = member(body, "thinking").or_else(|| at_path(body, "additionalModelRequestFields.thinking"));
        let by_hand = thinking.is_some_and(|thinking| {
            member(thinking, "budget_tokens").is_some() && text_member(thinking, "type").as_deref() == Some("enabled")
        });
        let Some(first) = first.filter(|first| by_hand && !first.begins_with_thinking) else { return };
        let text = "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final \
                    `assistant` message must start with a thinking block.";
        self.refuse("a loop begins with a thought".to_owned(), format!("{}.content[0]", first.path), text);
    }

    fn orphans(&mut self, message: &Seen) {
        for thought in message.thinking.iter().filter(|thought| thought.is_last) {
            let text = "Item of type 'reasoning' was provided without its required following item.";
            self.refuse("each thought is followed by its item".to_owned(), thought.path.clone(), text);
        }
    }

    fn parameters(&mut self, body: Raw<'_>) {
        let ask = &self.rules.ask;
        if !ask.effort.path.is_empty()
            && let Some(word) = at_path(body, &ask.effort.path).and_then(text_of)
        {
            let known = ask.effort.values.iter().chain(ask.effort.map.values()).any(|known| *known == word);
            // `none` is the off-switch of some; it is in no ladder.
            if !known && word != "none" {
                let text = format!("This model does not support 'reasoning_effort' value '{word}'");
                self.refuse("ask.effort.values".to_owned(), ask.effort.path.clone(), &text);
            }
        }
        let budget = at_path(body, &ask.budget.path).and_then(|value| value.get().parse::<u64>().ok());
        if let Some(budget) = budget.filter(|_| !ask.budget.path.is_empty()) {
            let limit = at_path(body, &ask.max_tokens.path).and_then(|value| value.get().parse::<u64>().ok());
            let outside = ask.budget.range.is_some_and(|(least, most)| budget < least || budget > most);
            if outside || limit.is_some_and(|limit| budget >= limit) {
                self.refuse("ask.budget.range".to_owned(), ask.budget.path.clone(), "thinking budget out of range");
            }
        }
        for name in ask.forbid.iter().filter(|name| at_path(body, name).is_some()) {
            self.refuse("ask.forbid".to_owned(), name.clone(), &format!("Unsupported parameter: '{name}'"));
        }
        for name in &ask.forbid_when_on {
            let thinking_is_on = !ask.on.is_empty() && ask.on.keys().any(|key| member(body, key).is_some());
            if thinking_is_on && at_path(body, name).is_some() {
                let text = format!("Unsupported parameter: '{name}'");
                self.refuse("ask.forbid_when_on".to_owned(), name.clone(), &text);
            }
        }
    }

    /// What was issued comes back unchanged, and nothing else does.
    fn seals(&mut self, seen: &[Seen], issued: &[&Message]) {
        let thoughts: Vec<&Thinking> = issued.iter().flat_map(|message| message.thinking()).collect();
        let on_blocks = issued.iter().flat_map(|message| &message.blocks).filter_map(|block| match block {
            Block::Text(text) => text.seal.as_ref(),
            Block::ToolCall(call) => call.seal.as_ref(),
            Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
        });
        let mut known: Vec<&str> = on_blocks.map(|seal| seal.payload.as_str()).collect();
        for seals in thoughts.iter().filter_map(|thought| thought.seals()) {
            known.extend(seals.signature.iter().chain(&seals.encrypted).map(|seal| seal.payload.as_str()));
        }
        let dummy = self.rules.echo.dummy.as_str();
        let thoughts = seen.iter().flat_map(|message| &message.thinking);
        let on_thoughts = thoughts.flat_map(|thought| thought.seals.iter().map(|seal| (&thought.path, seal)));
        let calls = seen.iter().flat_map(|message| &message.calls);
        let on_calls = calls.filter_map(|call| call.seal.as_ref().map(|seal| (&call.path, seal)));
        let sent: Vec<(String, String)> =
            on_thoughts.chain(on_calls).map(|(path, seal)| (path.clone(), seal.clone())).collect();
        for (path, seal) in sent {
            if !known.contains(&seal.as_str()) && seal != dummy {
                let text = self.complaint("signature", "Invalid `signature` in `thinking` block");
                self.refuse("a seal comes back as it was issued".to_owned(), path, &text);
            }
        }
        self.verdict.unverified.push("thinking without a seal: its words".to_owned());
        if self.rules.bind.model != BindModel::None {
            self.verdict.unverified.push("bind.model: which model made each thought".to_owned());
        }
    }

    /// The words of this dialect's own error, where the catalogue has them.
    fn complaint(&self, hint: &str, otherwise: &str) -> String {
        let own = self.rules.read.text.first().filter(|_| hint.contains("passed back"));
        own.map_or_else(
            || otherwise.to_owned(),
            |field| format!("The `{field}` in the thinking mode must be passed back to the API."),
        )
    }

    fn refuse(&mut self, rule: String, path: String, message: &str) {
        let error = ProviderError { message: message.to_owned(), code: None, status: Some(400) };
        let body = error_reply(self.protocol, &error);
        self.verdict.broken.push(Broken { rule, path, status: 400, body });
    }
}
