//! What of a conversation goes back to a provider: one decision a block.
//!
//! Strip first, include second, then the dialect: whose seal it is, where in
//! the work it stands, and which carrier there is for it. Storage is not
//! touched; the same history with other settings gives another plan.

use std::collections::HashSet;

use super::Why;
use super::wishes::{Cut, FillWhere, Wishes};
use crate::block::{Block, Origin, Thinking};
use crate::dialect::{BindModel, Carrier, Dedupe, Duty, EchoField, FillEmpty, Removal, Rules, TurnsIf};
use crate::history::{Place, Turns};
use crate::message::{Message, Role};
use crate::protocol::Protocol;
use crate::settings::Strip;
use crate::wire::json::{Raw, text_member};

/// What happens to one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// As it was received, in its own shape.
    Verbatim,
    /// Its text in a field beside the content.
    Field,
    /// Its text in tags inside the content.
    Tags,
    /// Something empty, because the provider demands that something is there.
    Filler,
    Dropped,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub message: usize,
    /// None for a filler: no stored block stands behind it.
    pub block: Option<usize>,
    pub action: Action,
    /// The field it stands in, where it stands in one.
    pub field: Option<String>,
    pub why: Why,
}

/// The decisions about one message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// One for each block of the message.
    pub actions: Vec<Action>,
    /// The provider demands a field that no thought fills.
    pub filler: bool,
    /// Made by this dialect, or an answer to what it made: its own members may
    /// go along, and ids stay as they are.
    pub own: bool,
    /// Seals on text and calls may go back.
    pub seals: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Egress {
    pub steps: Vec<Step>,
    pub decisions: Vec<Decision>,
    /// Some past thought is sent, so the switch that keeps history is on.
    pub sends_past: bool,
    /// The first step of the open tool loop has no thought to begin with.
    pub loop_begins_bare: bool,
    /// What tells the items sent so far from each other.
    sent: HashSet<String>,
}

/// Who the request goes to, and what it may read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub protocol: Protocol,
    pub target: &'a Origin,
    pub rules: &'a Rules,
    /// Whether this model reads what another made, where a matrix says so.
    pub can_read: &'a dyn Fn(&str, &str, &str) -> bool,
    pub has_tools: bool,
}

pub fn plan(messages: &[&Message], reader: Reader<'_>, wishes: &Wishes) -> Egress {
    let turns = Turns::of(messages);
    let last_thinking_turn = last_turn_with_thinking(messages, &turns);
    let answered = Answered::of(messages, reader.target);
    let mut egress = Egress::default();
    let mut loop_has_begun = false;
    for (at, message) in messages.iter().enumerate() {
        let place = turns.place_of.get(at).copied().unwrap_or(Place::Past);
        let turn = turns.turn_of.get(at).copied().unwrap_or(0);
        let kept_by_strip = Some(turn) == last_thinking_turn;
        let context = Context { reader, wishes, answered: &answered, place, kept_by_strip };
        egress.add_step(at, message, &context);
        if place == Place::OpenLoop && message.role == Role::Assistant && !std::mem::replace(&mut loop_has_begun, true)
        {
            egress.loop_begins_bare = !egress.begins_with_thought(message);
        }
    }
    if reader.rules.bind.removal == Removal::PrefixOnly {
        egress.close_gaps(messages, reader.target);
    }
    egress
}

/// Which calls have results, and which results have calls.
struct Answered<'a> {
    calls: HashSet<&'a str>,
    results: HashSet<&'a str>,
    /// Calls that another maker named.
    foreign: HashSet<&'a str>,
}

impl<'a> Answered<'a> {
    fn of(messages: &[&'a Message], target: &Origin) -> Answered<'a> {
        let mut answered = Answered { calls: HashSet::new(), results: HashSet::new(), foreign: HashSet::new() };
        let blocks = messages.iter().flat_map(|message| message.blocks.iter().map(|block| (*message, block)));
        for (message, block) in blocks {
            match block {
                Block::ToolCall(call) => {
                    answered.calls.insert(call.id.as_str());
                    if message.origin.as_ref().is_none_or(|origin| origin.dialect != target.dialect) {
                        answered.foreign.insert(call.id.as_str());
                    }
                }
                Block::ToolResult(result) => drop(answered.results.insert(&result.id)),
                Block::Text(_) | Block::Thinking(_) | Block::Image(_) | Block::Unmodelled(_) => (),
            }
        }
        answered
    }
}

/// Everything a decision about a thought of one message depends on.
struct Context<'a> {
    reader: Reader<'a>,
    wishes: &'a Wishes,
    answered: &'a Answered<'a>,
    place: Place,
    /// Its turn is the last one that has any thinking.
    kept_by_strip: bool,
}

impl Egress {
    /// Takes back the thoughts at the end of the step just decided about: an
    /// item that nothing follows is refused.
    fn drop_orphans(&mut self, message: &Message, step: &mut Step) {
        for (block, action) in message.blocks.iter().zip(&mut step.actions).rev() {
            match (block, *action) {
                (_, Action::Dropped) => (),
                (Block::Text(text), _) if text.text.is_empty() => (),
                (Block::Thinking(_), _) => *action = Action::Dropped,
                _ => break,
            }
        }
        let first = self.decisions.len() - step.actions.len();
        for (decision, action) in self.decisions.iter_mut().skip(first).zip(&step.actions) {
            if decision.action != *action {
                (decision.action, decision.why) = (*action, Why::NothingFollows);
            }
        }
    }

    /// A thought that was sent already does not go again, where twice is refused.
    fn once(&mut self, thinking: &Thinking, dedupe: Dedupe, decided: (Action, Why)) -> (Action, Why) {
        let key = identity(thinking, dedupe).filter(|_| decided.0 == Action::Verbatim);
        let is_new = key.is_none_or(|key| self.sent.insert(key));
        if is_new { decided } else { (Action::Dropped, Why::SentTwice) }
    }

    /// Thinking is left out from the oldest on: before one of this dialect's
    /// own thoughts that is not sent, none is.
    fn close_gaps(&mut self, messages: &[&Message], target: &Origin) {
        let own = |at: usize| {
            let origin = messages.get(at).and_then(|message| message.origin.as_ref());
            origin.is_some_and(|origin| origin.dialect == target.dialect)
        };
        let is_thought = |decision: &Decision| {
            let block = decision.block.and_then(|block| messages.get(decision.message)?.blocks.get(block));
            matches!(block, Some(Block::Thinking(_)))
        };
        let is_gap =
            |decision: &Decision| is_thought(decision) && decision.action == Action::Dropped && own(decision.message);
        let Some(gap) = self.decisions.iter().rposition(is_gap) else { return };
        for decision in self.decisions.iter_mut().take(gap).filter(|decision| is_thought(decision)) {
            if decision.action == Action::Dropped {
                continue;
            }
            decision.action = Action::Dropped;
            decision.why = Why::BeforeAGap;
            let step = self.steps.get_mut(decision.message);
            if let Some(action) = step.zip(decision.block).and_then(|(step, block)| step.actions.get_mut(block)) {
                *action = Action::Dropped;
            }
        }
    }

    /// Whether the step just added is sent with a thought as its first block.
    fn begins_with_thought(&self, message: &Message) -> bool {
        let actions = self.steps.last().map(|step| step.actions.as_slice()).unwrap_or_default();
        let mut sent = message.blocks.iter().zip(actions).filter(|(_, action)| **action != Action::Dropped);
        sent.next().is_some_and(|(block, _)| matches!(block, Block::Thinking(_)))
    }

    fn add_step(&mut self, at: usize, message: &Message, context: &Context<'_>) {
        let mut step = Step {
            own: match message.role {
                Role::Tool => !context.answers_foreign_call(message),
                Role::System | Role::User | Role::Assistant => context.foreigner(message, false).is_none(),
            },
            seals: context.foreigner(message, true).is_none() && context.wishes.seals,
            ..Step::default()
        };
        for (index, block) in message.blocks.iter().enumerate() {
            let (action, why) = match block {
                Block::Thinking(thinking) => {
                    let decided = context.decide(message, thinking);
                    self.once(thinking, context.reader.rules.echo.dedupe, decided)
                }
                Block::Unmodelled(_) => match context.foreigner(message, true) {
                    Some(maker) => (Action::Dropped, Why::Foreign { maker }),
                    None if context.has_place_for_unmodelled() => (Action::Verbatim, Why::Said),
                    None => (Action::Dropped, Why::NoCarrier),
                },
                Block::ToolCall(call) if !context.answered.results.contains(call.id.as_str()) => {
                    (Action::Dropped, Why::Unanswered)
                }
                Block::ToolResult(result) if !context.answered.calls.contains(result.id.as_str()) => {
                    (Action::Dropped, Why::Unanswered)
                }
                Block::Text(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) => {
                    (Action::Verbatim, Why::Said)
                }
            };
            let thought = matches!(block, Block::Thinking(_));
            self.sends_past |= thought && action != Action::Dropped && context.place == Place::Past;
            step.actions.push(action);
            let field = match (block, action) {
                (Block::Thinking(thinking), Action::Field) => Some(context.field_name(Some(&thinking.source))),
                _ => None,
            };
            self.decisions.push(Decision { message: at, block: Some(index), action, field, why });
        }
        if context.reader.protocol == Protocol::OpenaiResponses || context.wishes.mend.drop_orphans {
            self.drop_orphans(message, &mut step);
        }
        let told = message
            .blocks
            .iter()
            .zip(&step.actions)
            .any(|(block, action)| matches!(block, Block::Thinking(_)) && *action != Action::Dropped);
        if message.role == Role::Assistant && !told && context.demands_filler(message) {
            step.filler = true;
            let beside =
                matches!(context.reader.rules.echo.carrier, Carrier::Field | Carrier::Details | Carrier::FieldsOpaque);
            let (why, field) = (Why::FieldIsDemanded, beside.then(|| context.field_name(None)));
            self.decisions.push(Decision { message: at, block: None, action: Action::Filler, field, why });
        }
        self.steps.push(step);
    }
}

impl Context<'_> {
    fn decide(&self, message: &Message, thinking: &Thinking) -> (Action, Why) {
        if let Some(why) = self.withheld() {
            return (Action::Dropped, why);
        }
        let rules = &self.reader.rules.echo;
        let sealed = thinking.seals().is_some_and(|seals| seals.signature.is_some() || seals.encrypted.is_some());
        if let Some(maker) = self.foreigner(message, sealed) {
            return (Action::Dropped, Why::Foreign { maker });
        }
        if self.is_cut(sealed) {
            return (Action::Dropped, Why::Refused);
        }
        if message.interrupted && !sealed && rules.need_opaque {
            return (Action::Dropped, Why::Interrupted);
        }
        let kept = match self.duty() {
            (Duty::Must | Duty::Should, why) => why,
            (Duty::Ignored | Duty::Forbidden, why) => return (Action::Dropped, why),
        };
        if rules.need_opaque && !sealed {
            return (Action::Dropped, Why::NotSealed);
        }
        let readable = !thinking.text().trim().is_empty();
        match rules.carrier {
            Carrier::None => (Action::Dropped, Why::NoCarrier),
            Carrier::Field if readable => (Action::Field, kept),
            Carrier::ContentTags if readable => (Action::Tags, kept),
            Carrier::Field | Carrier::ContentTags => (Action::Dropped, Why::NothingReadable),
            // What came as an entry goes back as one; plain text beside it.
            Carrier::Details if thinking.native.is_some() => (Action::Verbatim, kept),
            Carrier::Details if readable => (Action::Field, kept),
            Carrier::Details => (Action::Dropped, Why::NothingReadable),
            // The seal goes with the call; text has no place there.
            Carrier::CallExtra if thinking.native.is_none() => (Action::Dropped, Why::NoCarrier),
            Carrier::ContentChunks
            | Carrier::Block
            | Carrier::Item
            | Carrier::Part
            | Carrier::CallExtra
            | Carrier::FieldsOpaque => (Action::Verbatim, kept),
        }
    }

    /// What this provider refused before.
    fn is_cut(&self, sealed: bool) -> bool {
        match self.wishes.mend.cut {
            // Who made it is asked elsewhere.
            Cut::Nothing | Cut::Inexact => false,
            Cut::Past => self.place == Place::Past,
            Cut::Sealed => sealed,
            Cut::All => true,
        }
    }

    /// What the user's settings hold back, before any dialect is asked.
    fn withheld(&self) -> Option<Why> {
        let open = self.place == Place::OpenLoop;
        let stripped = match self.wishes.strip {
            Strip::None => false,
            Strip::All => true,
            Strip::AllButLast => !self.kept_by_strip,
        };
        if stripped && !open {
            return Some(Why::Stripped);
        }
        if !self.wishes.include.sends {
            return Some(Why::NotIncluded);
        }
        if !self.wishes.enabled && !open {
            return Some(Why::ThinkingIsOff);
        }
        None
    }

    fn duty(&self) -> (Duty, Why) {
        let echo = &self.reader.rules.echo;
        if self.place == Place::OpenLoop {
            let sent = matches!(echo.loop_duty, Duty::Must | Duty::Should);
            let spared = sent && self.wishes.strip == Strip::All;
            let why = if spared { Why::LoopIsNeverStripped } else { Why::Loop(echo.loop_duty) };
            return (echo.loop_duty, why);
        }
        let asked_for = match echo.turns_if {
            TurnsIf::Always | TurnsIf::Flag => true,
            TurnsIf::Tools => self.reader.has_tools,
        };
        let duty = if asked_for { echo.turns_duty } else { Duty::Ignored };
        // What is only ignored may be sent; a user who asks for it gets it.
        if duty == Duty::Ignored && self.wishes.include.sends && self.wishes.include.by_user {
            return (Duty::Should, Why::Included);
        }
        (duty, Why::Turns(duty))
    }

    /// Who made it, where that is somebody this request does not go to.
    fn foreigner(&self, message: &Message, sealed: bool) -> Option<String> {
        let target = self.reader.target;
        let Some(origin) = &message.origin else { return Some("nobody known".to_owned()) };
        let exact = self.wishes.mend.cut >= Cut::Inexact;
        let differs = |mine: &Option<String>, theirs: &Option<String>| match (mine, theirs) {
            (Some(mine), Some(theirs)) => mine != theirs,
            // An absent member matches anything, until a seal was refused.
            _ => exact && mine != theirs,
        };
        let maker = || {
            let name = origin.dialect.as_deref().or(origin.provider.as_deref()).unwrap_or("another provider");
            origin.model.as_deref().map_or_else(|| name.to_owned(), |model| format!("{name}, {model}"))
        };
        if differs(&target.dialect, &origin.dialect) {
            return Some(maker());
        }
        if !sealed {
            return None;
        }
        let bind = &self.reader.rules.bind;
        let elsewhere = differs(&target.provider, &origin.provider)
            || differs(&target.endpoint, &origin.endpoint)
            || (exact && differs(&target.model, &origin.model))
            || ((exact || bind.account) && differs(&target.account, &origin.account));
        let other_model = match (&bind.model, &target.model, &origin.model) {
            (BindModel::None, ..) | (_, None, _) | (_, _, None) => false,
            (BindModel::Same, Some(mine), Some(theirs)) => mine != theirs,
            (BindModel::Matrix(name), Some(mine), Some(theirs)) => {
                mine != theirs && !(self.reader.can_read)(name, mine, theirs)
            }
        };
        (elsewhere || other_model).then(maker)
    }

    /// Items we do not understand go back where content is a list of items.
    fn has_place_for_unmodelled(&self) -> bool {
        match self.reader.protocol {
            Protocol::OpenaiChat => self.reader.rules.echo.carrier == Carrier::ContentChunks,
            Protocol::Ollama => false,
            Protocol::OpenaiResponses
            | Protocol::Anthropic
            | Protocol::Gemini
            | Protocol::Bedrock
            | Protocol::Cohere => true,
        }
    }

    fn answers_foreign_call(&self, message: &Message) -> bool {
        message.blocks.iter().any(|block| match block {
            Block::ToolResult(result) => self.answered.foreign.contains(result.id.as_str()),
            Block::Text(_) | Block::Thinking(_) | Block::ToolCall(_) | Block::Image(_) | Block::Unmodelled(_) => false,
        })
    }

    fn field_name(&self, source: Option<&str>) -> String {
        field_name(self.reader.rules, self.wishes, source)
    }

    fn demands_filler(&self, message: &Message) -> bool {
        // Where no thinking is taken, an empty field is none too many.
        if self.duty().0 == Duty::Forbidden || self.wishes.omits_filler {
            return false;
        }
        if self.wishes.mend.fill == FillWhere::OpenLoop && self.place != Place::OpenLoop {
            return false;
        }
        match self.reader.rules.echo.fill_empty {
            FillEmpty::None => self.wishes.filler.is_some() && message.thinking().next().is_some(),
            FillEmpty::WithToolCalls => message.has_calls(),
            FillEmpty::All => true,
        }
    }
}

/// The field that thinking is written to: the user's, else the dialect's, else
/// the one it came in.
pub(crate) fn field_name(rules: &Rules, wishes: &Wishes, source: Option<&str>) -> String {
    if rules.echo.carrier == Carrier::Details && source.is_none() {
        return "reasoning_details".to_owned();
    }
    let received = source.filter(|source| source.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    match (&wishes.field, &rules.echo.field) {
        (Some(name), _) | (None, EchoField::Named(name)) => name.clone(),
        (None, EchoField::Same) => {
            let known = rules.read.text.iter().find(|name| Some(name.as_str()) == received).or(rules.read.text.first());
            known.map_or("reasoning_content", String::as_str).to_owned()
        }
    }
}

/// What makes two thoughts the same item; none where nothing tells.
fn identity(thinking: &Thinking, dedupe: Dedupe) -> Option<String> {
    let native_id = || text_member(Raw::of(&thinking.native.as_ref()?.json).ok()?, "id");
    let seals = thinking.seals();
    let seal = seals.and_then(|seals| seals.encrypted.as_ref().or(seals.signature.as_ref()));
    match dedupe {
        Dedupe::None => None,
        Dedupe::ById => thinking.id.clone().or_else(native_id),
        // Ids of plain text repeat from answer to answer there.
        Dedupe::Openrouter => seal.map(|seal| seal.payload.clone()),
    }
}

fn last_turn_with_thinking(messages: &[&Message], turns: &Turns) -> Option<usize> {
    let with_thinking = messages.iter().zip(&turns.turn_of).filter(|(message, _)| message.thinking().next().is_some());
    with_thinking.map(|(_, turn)| *turn).next_back()
}
