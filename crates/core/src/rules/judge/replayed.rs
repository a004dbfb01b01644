//! Checks that issued thinking is sent back unchanged and in its place, and
//! that nothing else is.

use super::request_view::{JudgedMessage, JudgedThinking, SealCarrier};
use super::{Judge, ReplayedSeal};
use crate::block::{Block, Seal, Thinking};
use crate::dialect::{BindModel, Carrier, Duty, Fault, PrefixCheck, Removal};
use crate::json_text::{Raw, text_member};
use crate::message::{Message, Role};

/// A message that was sent back, and its issued original.
struct ReplayedMessage<'a> {
    sent: &'a JudgedMessage,
    in_loop: bool,
    /// None if no issued message matches.
    issued: Option<&'a Message>,
    /// For each thinking block sent back, its index in the issued message.
    matches: Vec<Option<usize>>,
}

impl Judge<'_> {
    /// Checks seals that can be verified on their own.
    pub(super) fn check_verifiable_seals(&mut self, is_valid: &dyn Fn(&ReplayedSeal<'_>) -> bool) {
        for (step, (_, message)) in self.steps().enumerate() {
            let thinking_blocks = message.thinking.iter().enumerate();
            let on_thinking = thinking_blocks.flat_map(|(index, unit)| {
                unit.seals.iter().map(move |seal| {
                    let JudgedThinking { carrier, text, id, next_call, .. } = unit;
                    (&unit.path, *carrier, text.as_str(), seal, id.as_deref(), index, next_call.as_deref())
                })
            });
            let on_calls = message.calls.iter().enumerate().filter_map(|(index, call)| {
                let (seal, id) = (call.seal.as_ref()?, call.id.as_deref());
                Some((&call.path, SealCarrier::Call, call.name.as_str(), seal, id, index, id))
            });
            for (path, carrier, text, seal, id, index, next_call) in on_thinking.chain(on_calls) {
                let unit = ReplayedSeal { carrier, text, seal, id, message: message.at, step, index, next_call };
                if !self.is_dummy(seal) && !is_valid(&unit) {
                    self.report_bad_seal(path, id);
                }
            }
        }
        self.note_unverified("thinking without a signature: its text was not checked");
    }

    /// Checks everything against the issued messages.
    pub(super) fn check_replayed(&mut self, issued: &[&Message]) {
        let made = issued.iter().copied().filter(|message| message.role == Role::Assistant);
        let issued: Vec<&Message> = made.collect();
        self.check_known_seals(&issued);
        let steps = pair(self.steps(), &issued);
        for step in &steps {
            self.check_message(step, &issued);
        }
        self.check_omissions(&steps);
        if self.rules.bind.model != BindModel::None {
            self.note_unverified("bind.model: it is unknown which model produced each thinking block");
        }
        if self.rules.bind.prefix != PrefixCheck::None {
            self.note_unverified("bind.prefix: the messages before each thinking block were not checked");
        }
    }

    fn is_own(&self, message: &Message) -> bool {
        let dialect = message.origin.as_ref().and_then(|origin| origin.dialect.as_ref());
        dialect.is_none_or(|dialect| *dialect == self.dialect.id)
    }

    fn is_dummy(&self, seal: &str) -> bool {
        !self.rules.echo.dummy.is_empty() && seal == self.rules.echo.dummy
    }

    fn report_bad_seal(&mut self, path: &str, id: Option<&str>) {
        let words = [("id", id.unwrap_or_default())];
        self.report("a signature must be returned unchanged", path, Fault::Seal, &words);
    }

    /// Checks that this provider issued every seal.
    fn check_known_seals(&mut self, issued: &[&Message]) {
        let own: Vec<&Message> = issued.iter().copied().filter(|message| self.is_own(message)).collect();
        let known: Vec<String> = own.iter().flat_map(|message| seals_of(message)).map(normalized).collect();
        let is_foreign = |seal: &String| !known.contains(&normalized(seal)) && !self.is_dummy(seal);
        let thinking_blocks = self.messages.iter().flat_map(|message| &message.thinking);
        let on_thinking =
            thinking_blocks.flat_map(|unit| unit.seals.iter().map(move |seal| (&unit.path, &unit.id, seal)));
        let calls = self.messages.iter().flat_map(|message| &message.calls);
        let on_calls = calls.filter_map(|call| call.seal.as_ref().map(|seal| (&call.path, &call.id, seal)));
        let foreign: Vec<(String, Option<String>)> = on_thinking
            .chain(on_calls)
            .filter(|(_, _, seal)| is_foreign(seal))
            .map(|(path, id, _)| (path.clone(), id.clone()))
            .collect();
        for (path, id) in foreign {
            self.report_bad_seal(&path, id.as_deref());
        }
    }

    /// Checks one message against its original.
    fn check_message(&mut self, step: &ReplayedMessage<'_>, issued: &[&Message]) {
        let Some(message) = step.issued.filter(|message| self.is_own(message)) else { return };
        let demanded = self.duty(step.in_loop) == Duty::Must;
        match self.rules.echo.carrier {
            Carrier::Field | Carrier::FieldsOpaque if demanded => self.check_joined_text(step, message),
            Carrier::Block | Carrier::Details | Carrier::ContentChunks | Carrier::Item => {
                self.check_blocks(step, message, issued, demanded);
                if self.rules.echo.carrier == Carrier::Item {
                    self.check_followers(step, message);
                }
            }
            Carrier::Part | Carrier::CallExtra => self.check_call_seals(step, message),
            Carrier::None | Carrier::ContentTags | Carrier::Field | Carrier::FieldsOpaque => (),
        }
    }

    /// Checks thinking that is combined into one field.
    fn check_joined_text(&mut self, step: &ReplayedMessage<'_>, message: &Message) {
        let plain = step.sent.thinking.iter().filter(|unit| unit.seals.is_empty());
        let sent: String = plain.map(|unit| unit.text.as_str()).collect();
        let whole: String = message.thinking().map(Thinking::text).collect();
        let is_whole = message.thinking_text().is_none_or(|readable| readable == sent) || whole == sent;
        if !sent.trim().is_empty() && !is_whole {
            self.report_altered("thinking must be returned verbatim", &step.sent.path, step.sent);
        }
    }

    fn report_altered(&mut self, rule: &str, path: &str, judged: &JudgedMessage) {
        let (field, index) = (self.thinking_field(), judged.at.to_string());
        let words = [("field", field.as_str()), ("index", &index), ("name", ""), ("id", "")];
        self.report(rule, path, Fault::Altered, &words);
    }

    /// Checks that each thinking block was issued in this message, with the
    /// same text, in order, and once.
    fn check_blocks(&mut self, step: &ReplayedMessage<'_>, message: &Message, issued: &[&Message], demanded: bool) {
        let thinking_blocks: Vec<&Thinking> = message.thinking().collect();
        let repeats = self.rules.echo.repeat_before_each_call;
        let mut last: Option<usize> = None;
        for (unit, found) in step.sent.thinking.iter().zip(&step.matches).filter(|(unit, _)| !unit.is_filler()) {
            let Some(index) = *found else {
                // A seal that was never issued is reported elsewhere.
                let own = issued.iter().filter(|message| self.is_own(message));
                let known: Vec<String> = own.flat_map(|message| seals_of(message)).map(normalized).collect();
                let moved = unit.seals.iter().any(|seal| known.contains(&normalized(seal)));
                if moved {
                    self.report_altered("thinking must stay in its message", &unit.path, step.sent);
                } else if unit.seals.is_empty() && demanded {
                    self.report_altered("thinking must be returned verbatim", &unit.path, step.sent);
                }
                continue;
            };
            let same_words = thinking_blocks.get(index).is_some_and(|thinking| thinking.text() == unit.text);
            if unit.signed && self.rules.echo.need_opaque && !same_words {
                self.report_altered("the text must match its signature", &unit.path, step.sent);
            } else if last.is_some_and(|last| index <= last) && !repeats && !self.is_reported_duplicate(unit) {
                self.report_altered("thinking must keep its order", &unit.path, step.sent);
            }
            last = last.max(Some(index));
        }
    }

    /// Whether it is already reported as a duplicate.
    fn is_reported_duplicate(&self, unit: &JudgedThinking) -> bool {
        self.verdict.broken.iter().any(|broken| broken.fault == Fault::Duplicate && broken.path == unit.path)
    }

    /// Checks that an item with an id is sent with the thinking before it.
    fn check_followers(&mut self, step: &ReplayedMessage<'_>, message: &Message) {
        if !self.dialect.rules_report_fault(self.rules, Fault::Follower) {
            return;
        }
        let mut before: Option<(usize, &Thinking)> = None;
        let mut n_thinking = 0;
        for block in &message.blocks {
            let native = match block {
                Block::Thinking(thinking) => {
                    before = Some((n_thinking, thinking));
                    n_thinking += 1;
                    continue;
                }
                Block::Text(text) => text.native.as_ref(),
                Block::ToolCall(call) => call.native.as_ref(),
                Block::Unmodelled(unmodelled) => Some(&unmodelled.native),
                Block::ToolResult(_) | Block::Media(_) => None,
            };
            let Some(id) = native.and_then(|native| id_in(&native.json)) else { continue };
            let Some(item) = step.sent.items.iter().find(|item| item.id == id) else { continue };
            let Some((_, thinking)) = before.filter(|(index, _)| !step.matches.contains(&Some(*index))) else {
                continue;
            };
            let other = thinking.id.clone().or_else(|| id_in(&thinking.native.as_ref()?.json)).unwrap_or_default();
            let words = [("id", id.as_str()), ("kind", &item.kind), ("other", &other)];
            self.report("an item must have its reasoning item before it", &item.path, Fault::Follower, &words);
        }
    }

    /// Checks that each seal is on the call it was issued for.
    fn check_call_seals(&mut self, step: &ReplayedMessage<'_>, message: &Message) {
        let issued: Vec<(&str, Option<&Seal>)> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some((call.id.as_str(), call.seal.as_ref())),
                Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                    None
                }
            })
            .collect();
        for (index, call) in step.sent.calls.iter().enumerate() {
            let Some(sent) = call.seal.as_ref().filter(|seal| !self.is_dummy(seal)) else { continue };
            let by_id = call.id.as_ref().and_then(|id| issued.iter().find(|(known, _)| known == id));
            let Some((_, Some(given))) = by_id.or_else(|| issued.get(index)) else { continue };
            if normalized(&given.payload) != normalized(sent) {
                self.report_altered("a signature must stay on its tool call", &call.path, step.sent);
            }
        }
    }

    /// Checks what is left out: an open loop must keep all of its thinking or
    /// none, and some providers allow only the oldest to be dropped.
    fn check_omissions(&mut self, steps: &[ReplayedMessage<'_>]) {
        let carrier = self.rules.echo.carrier;
        let one_field = matches!(carrier, Carrier::Field | Carrier::FieldsOpaque);
        if !one_field && !matches!(carrier, Carrier::Block | Carrier::Details) {
            return;
        }
        let sent_seals: Vec<&String> =
            steps.iter().flat_map(|step| &step.sent.thinking).flat_map(|unit| &unit.seals).collect();
        // For each block that could have been sent: in the loop, sent, message.
        let mut replayable: Vec<(bool, bool, &JudgedMessage)> = Vec::new();
        for step in steps {
            let Some(message) = step.issued.filter(|message| self.is_own(message)) else { continue };
            if one_field {
                if message.thinking_text().is_some() {
                    replayable.push((step.in_loop, step.sent.has_field, step.sent));
                }
                continue;
            }
            for (index, thinking) in message.thinking().enumerate().filter(|(_, thinking)| self.can_return(thinking)) {
                let again = seals(thinking).any(|seal| sent_seals.iter().any(|sent| **sent == seal.payload));
                // Changed text is reported elsewhere.
                let changed = step.matches.iter().any(Option::is_none);
                replayable.push((step.in_loop, again || changed || step.matches.contains(&Some(index)), step.sent));
            }
        }
        let fault = if self.rules.bind.removal == Removal::PrefixOnly { Fault::Altered } else { Fault::Missing };
        let in_loop = || replayable.iter().filter(|(in_loop, ..)| *in_loop);
        let has_gap = in_loop().any(|(_, sent, _)| *sent) && self.duty(true) == Duty::Must;
        let missing = in_loop().find(|(_, sent, _)| !sent).filter(|_| has_gap).map(|(.., judged)| *judged);
        let first_sent = replayable.iter().position(|(_, sent, _)| *sent);
        let gap = replayable
            .iter()
            .rposition(|(_, sent, _)| !sent)
            .filter(|gap| first_sent.is_some_and(|first| first < *gap));
        let gap = gap.filter(|_| self.rules.bind.removal == Removal::PrefixOnly).and_then(|gap| replayable.get(gap));
        let (rule, judged) = match (missing, gap) {
            (Some(judged), _) => ("a tool loop must keep its thinking", judged),
            (None, Some((.., judged))) => ("bind.removal = prefix_only", *judged),
            (None, None) => return,
        };
        // A missing field is already reported.
        if self.verdict.broken.iter().any(|broken| broken.path == judged.path && broken.fault == Fault::Missing) {
            return;
        }
        let (field, index) = (self.thinking_field(), judged.at.to_string());
        let path = if carrier == Carrier::Block { format!("{}.content[0]", judged.path) } else { judged.path.clone() };
        self.report(rule, &path, fault, &[("field", &field), ("index", &index)]);
    }

    /// Whether a thinking block can be sent back at all.
    fn can_return(&self, thinking: &Thinking) -> bool {
        let sealed = seals(thinking).next().is_some();
        match self.rules.echo.carrier {
            Carrier::Details => thinking.native.is_some(),
            Carrier::Block => sealed || !self.rules.echo.need_opaque,
            Carrier::None
            | Carrier::Field
            | Carrier::ContentTags
            | Carrier::ContentChunks
            | Carrier::Item
            | Carrier::Part
            | Carrier::CallExtra
            | Carrier::FieldsOpaque => false,
        }
    }
}

/// Pairs messages with issued ones: by tool calls, else by text, in order.
fn pair<'s>(
    steps: impl Iterator<Item = (bool, &'s JudgedMessage)>,
    issued: &[&'s Message],
) -> Vec<ReplayedMessage<'s>> {
    let mut next = 0;
    let pair = |(in_loop, judged): (bool, &'s JudgedMessage)| {
        let found = issued.iter().enumerate().skip(next).find(|(_, message)| is_same(judged, message));
        let issued = found.map(|(at, message)| {
            next = at + 1;
            *message
        });
        let matches = issued.map_or_else(Vec::new, |message| matches(judged, message));
        ReplayedMessage { sent: judged, in_loop, issued, matches }
    };
    steps.map(pair).collect()
}

fn is_same(judged: &JudgedMessage, message: &Message) -> bool {
    let mut calls = message.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    });
    if let Some(first) = judged.calls.first() {
        return calls.any(|call| match &first.id {
            Some(id) => id == call.id.as_str(),
            None => first.name == call.name,
        });
    }
    let text: String = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                None
            }
        })
        .collect();
    // Thinking in tags may come before it.
    calls.next().is_none() && !text.trim().is_empty() && judged.text.trim().ends_with(text.trim())
}

/// Pairs thinking blocks with issued ones: by seal, else by text. Prefers the
/// first one that is not yet paired.
fn matches(judged: &JudgedMessage, message: &Message) -> Vec<Option<usize>> {
    let thinking_blocks: Vec<&Thinking> = message.thinking().collect();
    let mut taken = Vec::new();
    let mut found = Vec::new();
    for unit in &judged.thinking {
        let fits = |thinking: &&Thinking| {
            let by_seal =
                seals(thinking).any(|seal| unit.seals.iter().any(|sent| normalized(sent) == normalized(&seal.payload)));
            by_seal || (unit.seals.is_empty() && thinking.text() == unit.text)
        };
        let fitting = || thinking_blocks.iter().enumerate().filter(|(_, thinking)| fits(thinking)).map(|(at, _)| at);
        let index = fitting().find(|at| !taken.contains(at)).or_else(|| fitting().next());
        taken.extend(index);
        found.push(index);
    }
    found
}

fn seals(thinking: &Thinking) -> impl Iterator<Item = &Seal> {
    thinking.seals().into_iter().flat_map(|seals| seals.signature.iter().chain(&seals.encrypted))
}

fn seals_of(message: &Message) -> impl Iterator<Item = &str> {
    message.blocks.iter().flat_map(|block| match block {
        Block::Thinking(thinking) => seals(thinking).map(|seal| seal.payload.as_str()).collect::<Vec<_>>(),
        Block::Text(text) => text.seal.iter().map(|seal| seal.payload.as_str()).collect(),
        Block::ToolCall(call) => call.seal.iter().map(|seal| seal.payload.as_str()).collect(),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => Vec::new(),
    })
}

/// Normalizes the variants of base64.
fn normalized(payload: &str) -> String {
    payload.trim_end_matches('=').replace('-', "+").replace('_', "/")
}

fn id_in(json: &str) -> Option<String> {
    text_member(Raw::of(json).ok()?, "id")
}
