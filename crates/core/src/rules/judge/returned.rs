//! What was issued comes back unchanged, in its place, and nothing else does.

use super::view::{Carried, Seen, Thought};
use super::{Court, Returned};
use crate::block::{Block, Seal, Thinking};
use crate::dialect::{BindModel, Carrier, Duty, Fault, PrefixCheck, Removal};
use crate::message::{Message, Role};
use crate::wire::json::{Raw, text_member};

/// A message that came back, and what it was when it was issued.
struct Step<'a> {
    seen: &'a Seen,
    in_loop: bool,
    /// None where nothing issued looks like it.
    issued: Option<&'a Message>,
    /// Which thought of the issued message each thought that came back is.
    matches: Vec<Option<usize>>,
}

impl Court<'_> {
    /// Seals that prove themselves.
    pub(super) fn checked(&mut self, is_good: &dyn Fn(&Returned<'_>) -> bool) {
        for (step, (_, message)) in self.steps().enumerate() {
            let thoughts = message.thinking.iter().enumerate();
            let on_thoughts = thoughts.flat_map(|(index, unit)| {
                unit.seals.iter().map(move |seal| {
                    let Thought { carried, text, id, next_call, .. } = unit;
                    (&unit.path, *carried, text.as_str(), seal, id.as_deref(), index, next_call.as_deref())
                })
            });
            let on_calls = message.calls.iter().enumerate().filter_map(|(index, call)| {
                let (seal, id) = (call.seal.as_ref()?, call.id.as_deref());
                Some((&call.path, Carried::Call, call.name.as_str(), seal, id, index, id))
            });
            for (path, carried, text, seal, id, index, next_call) in on_thoughts.chain(on_calls) {
                let unit = Returned { carried, text, seal, id, message: message.at, step, index, next_call };
                if !self.is_dummy(seal) && !is_good(&unit) {
                    self.bad_seal(path, id);
                }
            }
        }
        self.leave("thinking without a seal: its words");
    }

    /// Everything against what was issued.
    pub(super) fn returned(&mut self, issued: &[&Message]) {
        let made = issued.iter().copied().filter(|message| message.role == Role::Assistant);
        let issued: Vec<&Message> = made.collect();
        self.known_seals(&issued);
        let steps = pair(self.steps(), &issued);
        for step in &steps {
            self.step(step, &issued);
        }
        self.parts_left_out(&steps);
        if self.rules.bind.model != BindModel::None {
            self.leave("bind.model: which model made each thought");
        }
        if self.rules.bind.prefix != PrefixCheck::None {
            self.leave("bind.prefix: what came before each thought");
        }
    }

    fn is_own(&self, message: &Message) -> bool {
        let dialect = message.origin.as_ref().and_then(|origin| origin.dialect.as_ref());
        dialect.is_none_or(|dialect| *dialect == self.dialect.id)
    }

    fn is_dummy(&self, seal: &str) -> bool {
        !self.rules.echo.dummy.is_empty() && seal == self.rules.echo.dummy
    }

    fn bad_seal(&mut self, path: &str, id: Option<&str>) {
        let words = [("id", id.unwrap_or_default())];
        self.refuse("a seal comes back as it was issued", path, Fault::Seal, &words);
    }

    /// Every seal is one that this provider made.
    fn known_seals(&mut self, issued: &[&Message]) {
        let own: Vec<&Message> = issued.iter().copied().filter(|message| self.is_own(message)).collect();
        let known: Vec<String> = own.iter().flat_map(|message| seals_of(message)).map(plain).collect();
        let is_foreign = |seal: &String| !known.contains(&plain(seal)) && !self.is_dummy(seal);
        let thoughts = self.seen.iter().flat_map(|message| &message.thinking);
        let on_thoughts = thoughts.flat_map(|unit| unit.seals.iter().map(move |seal| (&unit.path, &unit.id, seal)));
        let calls = self.seen.iter().flat_map(|message| &message.calls);
        let on_calls = calls.filter_map(|call| call.seal.as_ref().map(|seal| (&call.path, &call.id, seal)));
        let foreign: Vec<(String, Option<String>)> = on_thoughts
            .chain(on_calls)
            .filter(|(_, _, seal)| is_foreign(seal))
            .map(|(path, id, _)| (path.clone(), id.clone()))
            .collect();
        for (path, id) in foreign {
            self.bad_seal(&path, id.as_deref());
        }
    }

    /// One message against what it was.
    fn step(&mut self, step: &Step<'_>, issued: &[&Message]) {
        let Some(message) = step.issued.filter(|message| self.is_own(message)) else { return };
        let demanded = self.duty(step.in_loop) == Duty::Must;
        match self.rules.echo.carrier {
            Carrier::Field | Carrier::FieldsOpaque if demanded => self.joined_words(step, message),
            Carrier::Block | Carrier::Details | Carrier::ContentChunks | Carrier::Item => {
                self.units(step, message, issued, demanded);
                if self.rules.echo.carrier == Carrier::Item {
                    self.followers(step, message);
                }
            }
            Carrier::Part | Carrier::CallExtra => self.call_seals(step, message),
            Carrier::None | Carrier::ContentTags | Carrier::Field | Carrier::FieldsOpaque => (),
        }
    }

    /// All thoughts of a message in one field.
    fn joined_words(&mut self, step: &Step<'_>, message: &Message) {
        let plain = step.seen.thinking.iter().filter(|unit| unit.seals.is_empty());
        let sent: String = plain.map(|unit| unit.text.as_str()).collect();
        let whole: String = message.thinking().map(Thinking::text).collect();
        let is_whole = message.thinking_text().is_none_or(|readable| readable == sent) || whole == sent;
        if !sent.trim().is_empty() && !is_whole {
            self.altered("thinking comes back word for word", &step.seen.path, step.seen);
        }
    }

    fn altered(&mut self, rule: &str, path: &str, seen: &Seen) {
        let (field, index) = (self.field(), seen.at.to_string());
        let words = [("field", field.as_str()), ("index", &index), ("name", ""), ("id", "")];
        self.refuse(rule, path, Fault::Altered, &words);
    }

    /// Each thought is one that was issued in this message, with its words, in
    /// its order, once.
    fn units(&mut self, step: &Step<'_>, message: &Message, issued: &[&Message], demanded: bool) {
        let thoughts: Vec<&Thinking> = message.thinking().collect();
        let repeats = self.rules.echo.repeat_before_each_call;
        let mut last: Option<usize> = None;
        for (unit, found) in step.seen.thinking.iter().zip(&step.matches).filter(|(unit, _)| !unit.is_filler()) {
            let Some(index) = *found else {
                // A seal nobody issued is told elsewhere.
                let own = issued.iter().filter(|message| self.is_own(message));
                let known: Vec<String> = own.flat_map(|message| seals_of(message)).map(plain).collect();
                let moved = unit.seals.iter().any(|seal| known.contains(&plain(seal)));
                if moved {
                    self.altered("a thought comes back in its message", &unit.path, step.seen);
                } else if unit.seals.is_empty() && demanded {
                    self.altered("thinking comes back word for word", &unit.path, step.seen);
                }
                continue;
            };
            let same_words = thoughts.get(index).is_some_and(|thought| thought.text() == unit.text);
            if unit.signed && self.rules.echo.need_opaque && !same_words {
                self.altered("a signature stands for its words", &unit.path, step.seen);
            } else if last.is_some_and(|last| index <= last) && !repeats && !self.tells_repeats(unit) {
                self.altered("thoughts come back in their order", &unit.path, step.seen);
            }
            last = last.max(Some(index));
        }
    }

    /// A second copy is told as one already.
    fn tells_repeats(&self, unit: &Thought) -> bool {
        self.verdict.broken.iter().any(|broken| broken.fault == Fault::Duplicate && broken.path == unit.path)
    }

    /// An item with its id needs the thought before it.
    fn followers(&mut self, step: &Step<'_>, message: &Message) {
        if !self.dialect.complains_of(self.model, Fault::Follower) {
            return;
        }
        let mut before: Option<(usize, &Thinking)> = None;
        let mut n_thoughts = 0;
        for block in &message.blocks {
            let native = match block {
                Block::Thinking(thinking) => {
                    before = Some((n_thoughts, thinking));
                    n_thoughts += 1;
                    continue;
                }
                Block::Text(text) => text.native.as_ref(),
                Block::ToolCall(call) => call.native.as_ref(),
                Block::Unmodelled(unmodelled) => Some(&unmodelled.native),
                Block::ToolResult(_) | Block::Image(_) => None,
            };
            let Some(id) = native.and_then(|native| id_in(&native.json)) else { continue };
            let Some(item) = step.seen.items.iter().find(|item| item.id == id) else { continue };
            let Some((_, thought)) = before.filter(|(index, _)| !step.matches.contains(&Some(*index))) else {
                continue;
            };
            let other = thought.id.clone().or_else(|| id_in(&thought.native.as_ref()?.json)).unwrap_or_default();
            let words = [("id", id.as_str()), ("kind", &item.kind), ("other", &other)];
            self.refuse("each item has the thought that led to it", &item.path, Fault::Follower, &words);
        }
    }

    /// A seal on a call is the one that call was given.
    fn call_seals(&mut self, step: &Step<'_>, message: &Message) {
        let issued: Vec<(&str, Option<&Seal>)> = message
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some((call.id.as_str(), call.seal.as_ref())),
                Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => {
                    None
                }
            })
            .collect();
        for (index, call) in step.seen.calls.iter().enumerate() {
            let Some(sent) = call.seal.as_ref().filter(|seal| !self.is_dummy(seal)) else { continue };
            let by_id = call.id.as_ref().and_then(|id| issued.iter().find(|(known, _)| known == id));
            let Some((_, Some(given))) = by_id.or_else(|| issued.get(index)) else { continue };
            if plain(&given.payload) != plain(sent) {
                self.altered("a seal comes back on its call", &call.path, step.seen);
            }
        }
    }

    /// What may be left out: of an open loop all or nothing, and where thinking
    /// has no holes only the oldest.
    fn parts_left_out(&mut self, steps: &[Step<'_>]) {
        let carrier = self.rules.echo.carrier;
        let one_field = matches!(carrier, Carrier::Field | Carrier::FieldsOpaque);
        if !one_field && !matches!(carrier, Carrier::Block | Carrier::Details) {
            return;
        }
        let sent_seals: Vec<&String> =
            steps.iter().flat_map(|step| &step.seen.thinking).flat_map(|unit| &unit.seals).collect();
        // Whether each thought that could have come back did, and where.
        let mut told: Vec<(bool, bool, &Seen)> = Vec::new();
        for step in steps {
            let Some(message) = step.issued.filter(|message| self.is_own(message)) else { continue };
            if one_field {
                if message.thinking_text().is_some() {
                    told.push((step.in_loop, step.seen.has_field, step.seen));
                }
                continue;
            }
            for (index, thought) in message.thinking().enumerate().filter(|(_, thought)| self.can_return(thought)) {
                let again = seals(thought).any(|seal| sent_seals.iter().any(|sent| **sent == seal.payload));
                // Changed words are told elsewhere.
                let changed = step.matches.iter().any(Option::is_none);
                told.push((step.in_loop, again || changed || step.matches.contains(&Some(index)), step.seen));
            }
        }
        let fault = if self.rules.bind.removal == Removal::PrefixOnly { Fault::Altered } else { Fault::Missing };
        let in_loop = || told.iter().filter(|(in_loop, ..)| *in_loop);
        let holed = in_loop().any(|(_, sent, _)| *sent) && self.duty(true) == Duty::Must;
        let lost = in_loop().find(|(_, sent, _)| !sent).filter(|_| holed).map(|(.., seen)| *seen);
        let first_sent = told.iter().position(|(_, sent, _)| *sent);
        let gap =
            told.iter().rposition(|(_, sent, _)| !sent).filter(|gap| first_sent.is_some_and(|first| first < *gap));
        let gap = gap.filter(|_| self.rules.bind.removal == Removal::PrefixOnly).and_then(|gap| told.get(gap));
        let (rule, seen) = match (lost, gap) {
            (Some(seen), _) => ("a loop comes back with its thoughts", seen),
            (None, Some((.., seen))) => ("bind.removal = prefix_only", *seen),
            (None, None) => return,
        };
        // A field that is not there is told already.
        if self.verdict.broken.iter().any(|broken| broken.path == seen.path && broken.fault == Fault::Missing) {
            return;
        }
        let (field, index) = (self.field(), seen.at.to_string());
        let path = if carrier == Carrier::Block { format!("{}.content[0]", seen.path) } else { seen.path.clone() };
        self.refuse(rule, &path, fault, &[("field", &field), ("index", &index)]);
    }

    /// Whether a thought has a place on the way back.
    fn can_return(&self, thought: &Thinking) -> bool {
        let sealed = seals(thought).next().is_some();
        match self.rules.echo.carrier {
            Carrier::Details => thought.native.is_some(),
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

/// Which issued message each message is: by its calls, else by its text, in
/// the order they were issued.
fn pair<'s>(steps: impl Iterator<Item = (bool, &'s Seen)>, issued: &[&'s Message]) -> Vec<Step<'s>> {
    let mut next = 0;
    let pair = |(in_loop, seen): (bool, &'s Seen)| {
        let found = issued.iter().enumerate().skip(next).find(|(_, message)| is_same(seen, message));
        let issued = found.map(|(at, message)| {
            next = at + 1;
            *message
        });
        let matches = issued.map_or_else(Vec::new, |message| matches(seen, message));
        Step { seen, in_loop, issued, matches }
    };
    steps.map(pair).collect()
}

fn is_same(seen: &Seen, message: &Message) -> bool {
    let mut calls = message.blocks.iter().filter_map(|block| match block {
        Block::ToolCall(call) => Some(call),
        Block::Text(_) | Block::Thinking(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => None,
    });
    if let Some(first) = seen.calls.first() {
        return calls.any(|call| match &first.id {
            Some(id) => id == call.id.as_str(),
            None => first.name == call.name,
        });
    }
    let said: String = message
        .blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => {
                None
            }
        })
        .collect();
    // Thinking in tags may stand before it.
    calls.next().is_none() && !said.trim().is_empty() && seen.text.trim().ends_with(said.trim())
}

/// Which issued thought each thought is: by a seal, else by its words; the
/// first that is not taken yet.
fn matches(seen: &Seen, message: &Message) -> Vec<Option<usize>> {
    let thoughts: Vec<&Thinking> = message.thinking().collect();
    let mut taken = Vec::new();
    let mut found = Vec::new();
    for unit in &seen.thinking {
        let fits = |thought: &&Thinking| {
            let by_seal = seals(thought).any(|seal| unit.seals.iter().any(|sent| plain(sent) == plain(&seal.payload)));
            by_seal || (unit.seals.is_empty() && thought.text() == unit.text)
        };
        let fitting = || thoughts.iter().enumerate().filter(|(_, thought)| fits(thought)).map(|(at, _)| at);
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
        Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => Vec::new(),
    })
}

/// A payload without what base64 may be written differently in.
fn plain(payload: &str) -> String {
    payload.trim_end_matches('=').replace('-', "+").replace('_', "/")
}

fn id_in(json: &str) -> Option<String> {
    text_member(Raw::of(json).ok()?, "id")
}
