//! Finds what a request lacks, and puts it back.

use std::collections::BTreeMap;

use aside_core::{Block, Message, Origin, Request, Role, ThinkingDemand, ThinkingDemands};

use crate::evidence::{self, Candidates, Evidence, FoundReply, MayUse, Resolution, TurnInOrder, TurnToFind};
use crate::keys::{ConversationKeys, Key, KeyKind, TurnKeys};
use crate::placeholders::WithoutPlaceholders;
use crate::put_back::{self, PutBack};
use crate::receipt::{RepairCounts, RestoredBlock};
use crate::reply_id::ReplyId;
use crate::state::StoreState;
use crate::stored_reply::SharedReply;
use crate::tenant::Tenant;

/// The most keys that one request looks up. A longer history gets its newest
/// turns back.
const MAX_KEYS: usize = 16_384;

/// What happened to an assistant message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The client sent everything that the provider wants.
    Complete,
    /// The provider wants nothing of it.
    NotWanted,
    /// Its thinking was put back.
    Restored,
    /// The reply had no thinking.
    HadNone,
    /// Its thinking may not be sent to this provider.
    Foreign,
    /// Several replies fit, and their thinking differs.
    Ambiguous,
    /// No reply fits.
    Unknown,
}

/// What was done about one assistant message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RestoredTurn {
    /// The index of the message.
    pub message: usize,
    /// What the provider wants of it.
    pub demand: ThinkingDemand,
    /// What happened to it.
    pub outcome: Outcome,
    /// How the reply was recognised, if it was.
    pub evidence: Option<Evidence>,
    /// The reply that it was recognised as, if any.
    pub reply: Option<ReplyId>,
    /// How many thinking blocks were put back.
    pub blocks: usize,
    pub(crate) restored: Vec<RestoredBlock>,
}

/// A request with its thinking.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Restored {
    /// One for each assistant message, in order.
    pub turns: Vec<RestoredTurn>,
    /// Whether the store answered.
    pub store: StoreState,
    /// Messages whose content changed.
    changed: BTreeMap<usize, Message>,
    /// Messages with another origin than the client's request says.
    with_origin: BTreeMap<usize, Message>,
    pinned: Option<Origin>,
    pub(crate) keys: ConversationKeys,
    pub(crate) session: Option<String>,
    /// The reply that the next one follows, and the first of its conversation.
    pub(crate) parent: Option<(ReplyId, ReplyId)>,
    /// The replies that were used.
    pub(crate) used: Vec<SharedReply>,
}

impl Restored {
    /// The messages whose content changed, by index.
    pub fn changed(&self) -> impl Iterator<Item = (usize, &Message)> {
        self.changed.iter().map(|(at, message)| (*at, message))
    }

    /// Whether any content changed.
    pub fn changes_anything(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The messages to encode, in place of those of the request.
    pub fn view<'a>(&'a self, messages: &[&'a Message]) -> Vec<&'a Message> {
        let replaced = |at: usize| self.changed.get(&at).or_else(|| self.with_origin.get(&at));
        messages.iter().enumerate().map(|(at, message)| replaced(at).unwrap_or(message)).collect()
    }

    /// Who issued the opaque thinking of the open tool loop. Only that provider can
    /// continue it.
    pub fn pinned(&self) -> Option<&Origin> {
        self.pinned.as_ref()
    }

    /// How many blocks were put back, and how many turns are ambiguous.
    pub fn counts(&self) -> RepairCounts {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let ambiguous = self.turns.iter().filter(|turn| turn.outcome == Outcome::Ambiguous).count();
        RepairCounts {
            restored: count(self.turns.iter().map(|turn| turn.blocks).sum()),
            ambiguous: count(ambiguous),
            ..RepairCounts::default()
        }
    }
}

/// What to look up for a request, and how to use what is found.
pub(crate) struct RestorePlan<'a> {
    tenant: &'a Tenant,
    request: Request<'a>,
    demands: ThinkingDemands<'a>,
    keys: ConversationKeys,
    session: Option<&'a str>,
    /// One for each turn.
    turns: Vec<PlannedTurn<'a>>,
}

struct PlannedTurn<'a> {
    demand: ThinkingDemand,
    without: WithoutPlaceholders<'a>,
    /// The provider wants thinking, and the client sent none.
    lacks: bool,
    /// Empty if nothing is looked up.
    lookup: Vec<(KeyKind, Key)>,
    references: Vec<ReplyId>,
}

impl PlannedTurn<'_> {
    /// Whether its content may have to change.
    fn is_concerned(&self, keys: &TurnKeys) -> bool {
        self.lacks || self.without.had_ours || !keys.minted.is_empty()
    }
}

/// A key to look up, and whether only one reply can have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WantedKey {
    pub(crate) kind: KeyKind,
    pub(crate) key: Key,
    pub(crate) is_unique: bool,
}

impl<'a> RestorePlan<'a> {
    pub(crate) fn new(tenant: &'a Tenant, request: &Request<'a>, session: Option<&'a str>) -> RestorePlan<'a> {
        let demands = ThinkingDemands::of(request);
        let keys = ConversationKeys::of(tenant, request.messages);
        let replies = request.messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant);
        let turns: Vec<PlannedTurn<'a>> = replies
            .map(|(at, message)| {
                let without = WithoutPlaceholders::of(tenant, request.dialects, message);
                let demand = demands.on(at);
                let lacks = demand != ThinkingDemand::Unwanted && !demands.is_met_by(at, &without.message);
                let references = without.replies();
                PlannedTurn { demand, without, lacks, lookup: Vec::new(), references }
            })
            .collect();
        let mut plan = RestorePlan { tenant, request: *request, demands, keys, session, turns };
        plan.choose_keys();
        plan
    }

    /// Only turns that lack something are looked up; the last one as well, since
    /// the reply follows it, and the turns after ambiguous ones, which may name
    /// them.
    fn choose_keys(&mut self) {
        let n_turns = self.turns.len();
        let concerned: Vec<bool> =
            self.turns.iter().zip(&self.keys.turns).map(|(turn, keys)| turn.is_concerned(keys)).collect();
        let is_wanted = |at: usize| concerned.get(at).copied().unwrap_or(false);
        let mut n_keys = 0;
        for (at, (turn, keys)) in self.turns.iter_mut().zip(&self.keys.turns).enumerate().rev() {
            let follows_one = at.checked_sub(1).is_some_and(is_wanted);
            if !(is_wanted(at) || follows_one || at + 1 == n_turns) || n_keys > MAX_KEYS {
                continue;
            }
            turn.lookup = keys.lookup(self.tenant, self.session);
            n_keys += turn.lookup.len();
        }
    }

    /// What to look up.
    pub(crate) fn wanted(&self) -> (Vec<WantedKey>, Vec<ReplyId>) {
        let mut keys = Vec::new();
        for turn in &self.turns {
            keys.extend(turn.lookup.iter().map(|(kind, key)| WantedKey {
                kind: *kind,
                key: *key,
                is_unique: is_unique(*kind),
            }));
        }
        (keys, self.turns.iter().flat_map(|turn| turn.references.iter().copied()).collect())
    }

    /// Whether a reply may be used for a turn.
    fn may_use(&self, at_turn: usize, reply: &SharedReply) -> bool {
        let (Some(turn), Some(keys)) = (self.turns.get(at_turn), self.keys.turns.get(at_turn)) else { return false };
        if turn.demand == ThinkingDemand::Unwanted || !reply.has_thinking() {
            return self.demands.is_own(keys.message, &reply.message);
        }
        !reply.is_rejected && self.demands.accepts(keys.message, &reply.message)
    }

    /// Which reply each turn is. Replies of other providers identify a turn, but
    /// only if none of this provider does.
    pub(crate) fn resolve(&self, candidates: &Candidates) -> ResolvedTurns {
        let own = self.resolve_with(candidates, |at, reply| self.may_use(at, reply));
        let any = self.resolve_with(candidates, |_, _| true);
        ResolvedTurns { own, any }
    }

    fn resolve_with(
        &self,
        candidates: &Candidates,
        may_use: impl Fn(usize, &SharedReply) -> bool,
    ) -> BTreeMap<usize, Resolution> {
        let mut resolutions = BTreeMap::new();
        for (at, (turn, keys)) in self.turns.iter().zip(&self.keys.turns).enumerate() {
            if turn.lookup.is_empty() && turn.references.is_empty() {
                continue;
            }
            let to_find =
                TurnToFind { keys, lookup: &turn.lookup, message: &turn.without.message, references: &turn.references };
            resolutions.insert(at, evidence::find_turn(&to_find, candidates, &|reply| may_use(at, reply)));
        }
        let uses: Vec<Box<MayUse<'_>>> = (0..self.turns.len())
            .map(|at| -> Box<MayUse<'_>> {
                let may_use = &may_use;
                Box::new(move |reply: &SharedReply| may_use(at, reply))
            })
            .collect();
        let in_order: Vec<TurnInOrder<'_>> =
            self.turns.iter().zip(&uses).map(|(turn, may_use)| TurnInOrder { lookup: &turn.lookup, may_use }).collect();
        evidence::use_neighbours(&in_order, &mut resolutions, candidates);
        resolutions
    }

    /// Puts everything back.
    pub(crate) fn finish(self, resolved: &ResolvedTurns, candidates: &Candidates, store: StoreState) -> Restored {
        let mut changes = Changes::default();
        let mut turns = Vec::with_capacity(self.turns.len());
        for (at, (turn, keys)) in self.turns.iter().zip(&self.keys.turns).enumerate() {
            turns.push(self.finish_turn(at, turn, keys, resolved, candidates, &mut changes));
        }
        let last = self.turns.len().checked_sub(1).and_then(|last| resolved.any.get(&last));
        let parent = match last {
            Some(Resolution::Found(found)) if found.evidence <= Evidence::L3 => {
                Some((found.reply.id, found.reply.conversation))
            }
            Some(Resolution::Found(_) | Resolution::Ambiguous(_) | Resolution::Unknown) | None => None,
        };
        Restored {
            turns,
            store,
            changed: changes.changed,
            with_origin: changes.with_origin,
            pinned: changes.pinned,
            keys: self.keys,
            session: self.session.map(str::to_owned),
            parent,
            used: changes.used,
        }
    }

    fn finish_turn(
        &self,
        at: usize,
        turn: &PlannedTurn<'_>,
        keys: &TurnKeys,
        resolved: &ResolvedTurns,
        candidates: &Candidates,
        changes: &mut Changes,
    ) -> RestoredTurn {
        let found = resolved.found(at);
        if let Some((found, _)) = &found {
            changes.note_use(found, self.demands.is_in_open_loop(keys.message));
        }
        let client = self.request.messages.get(keys.message).copied();
        let put_back = client.and_then(|client| match &found {
            _ if !turn.is_concerned(keys) => None,
            Some((found, Usable::Yes)) => Some(put_back_found(turn, client, keys, found, candidates)),
            Some((found, Usable::No)) if turn.without.had_ours => {
                Some(put_back_found(turn, client, keys, found, candidates))
            }
            Some((found, Usable::No)) => Some(put_back::with_own_ids(client, &found.reply)),
            None if turn.without.had_ours => Some(put_back::in_place(client, &turn.without, &candidates.by_id)),
            None => None,
        });
        let put_back_blocks = |put_back| self.restored_blocks(put_back, client.filter(|_| !turn.without.had_ours));
        let restored = put_back.as_ref().map(put_back_blocks).unwrap_or_default();
        let restored_any = !restored.is_empty() || turn.without.n_opened > 0;
        let outcome = match (&found, resolved.own.get(&at)) {
            _ if turn.demand == ThinkingDemand::Unwanted => Outcome::NotWanted,
            (Some((_, Usable::Yes)), _) if restored_any && turn.is_concerned(keys) => Outcome::Restored,
            (None, _) if restored_any => Outcome::Restored,
            _ if !turn.lacks => Outcome::Complete,
            (Some((found, Usable::Yes)), _) if found.reply.has_thinking() => Outcome::Complete,
            (Some((_, Usable::Yes)), _) => Outcome::HadNone,
            (Some((found, Usable::No)), _) if !found.reply.has_thinking() => Outcome::HadNone,
            (Some((_, Usable::No)), _) => Outcome::Foreign,
            (None, Some(Resolution::Ambiguous(_))) => Outcome::Ambiguous,
            (None, Some(Resolution::Found(_) | Resolution::Unknown) | None) => Outcome::Unknown,
        };
        if let (Some(put_back), Some(client)) = (put_back, client) {
            self.apply(keys.message, client, put_back, changes);
        } else if let (Some((found, _)), Some(client)) = (&found, client) {
            changes.set_origin(keys.message, client, &found.reply.message);
        }
        let evidence = found.as_ref().map(|(found, _)| found.evidence);
        let evidence = evidence.or((turn.without.had_ours && restored_any).then_some(Evidence::L0));
        let counts = outcome == Outcome::Restored;
        RestoredTurn {
            message: keys.message,
            demand: turn.demand,
            outcome,
            evidence,
            reply: found.map(|(found, _)| found.reply.id),
            blocks: if counts { restored.len().max(turn.without.n_opened) } else { 0 },
            restored: if counts { restored } else { Vec::new() },
        }
    }

    /// What was put back, without the blocks that the client sent itself.
    fn restored_blocks(&self, put_back: &PutBack, client: Option<&Message>) -> Vec<RestoredBlock> {
        let sent = client.map(|client| client.blocks.as_slice()).unwrap_or_default();
        let blocks = put_back.restored.iter().filter_map(|at| Some((*at, put_back.message.blocks.get(*at)?)));
        let lacking = blocks.filter(|(_, block)| !sent.iter().any(|sent| is_same_thinking(sent, block)));
        lacking.filter_map(|(at, block)| RestoredBlock::of(self.tenant, at, block)).collect()
    }

    /// Replaces a message, and renames the results of its calls.
    fn apply(&self, at: usize, client: &Message, put_back: PutBack, changes: &mut Changes) {
        let PutBack { message, renamed, .. } = put_back;
        if message.blocks == client.blocks {
            changes.set_origin(at, client, &message);
            return;
        }
        changes.changed.insert(at, message);
        if renamed.is_empty() {
            return;
        }
        let after = self.request.messages.iter().enumerate().skip(at + 1);
        for (at, message) in after.take_while(|(_, message)| message.role != Role::Assistant) {
            changes.changed.extend(put_back::rename_results(message, &renamed).map(|renamed| (at, renamed)));
        }
    }
}

/// Whether a client sent this block of a reply. Other members than these do not matter to the provider.
fn is_same_thinking(sent: &Block, block: &Block) -> bool {
    match (sent, block) {
        (Block::Thinking(sent), Block::Thinking(block)) => sent.content == block.content,
        (Block::Text(sent), Block::Text(block)) => sent.seal == block.seal && sent.text == block.text,
        (Block::ToolCall(sent), Block::ToolCall(block)) => sent.seal == block.seal && sent.id == block.id,
        _ => false,
    }
}

/// Whether only one reply can have a key of this kind. A provider may give two
/// calls the same id, however random it looks.
pub(crate) fn is_unique(kind: KeyKind) -> bool {
    match kind {
        KeyKind::MintedId => true,
        KeyKind::CallIds
        | KeyKind::Chain
        | KeyKind::Session
        | KeyKind::Turn
        | KeyKind::Interrupted
        | KeyKind::Question
        | KeyKind::ResponseId => false,
    }
}

fn put_back_found(
    turn: &PlannedTurn<'_>,
    client: &Message,
    keys: &TurnKeys,
    found: &FoundReply,
    candidates: &Candidates,
) -> PutBack {
    if found.reply.turn == keys.turn {
        put_back::whole_reply(client, &found.reply)
    } else if turn.references.is_empty() {
        put_back::around_visible(&turn.without.message, &found.reply)
    } else {
        put_back::in_place(client, &turn.without, &candidates.by_id)
    }
}

/// Whether the thinking of a reply may be sent to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usable {
    Yes,
    No,
}

/// Which reply each turn is.
pub(crate) struct ResolvedTurns {
    /// Among the replies whose thinking may be sent to the target.
    own: BTreeMap<usize, Resolution>,
    /// Among all replies.
    any: BTreeMap<usize, Resolution>,
}

impl ResolvedTurns {
    /// Replies that would decide an ambiguous turn.
    pub(crate) fn unread_parents(&self, candidates: &Candidates) -> Vec<ReplyId> {
        let mut parents = evidence::unread_parents(&self.own, candidates);
        parents.extend(evidence::unread_parents(&self.any, candidates));
        parents.sort_unstable();
        parents.dedup();
        parents
    }

    fn found(&self, at: usize) -> Option<(FoundReply, Usable)> {
        match (self.own.get(&at), self.any.get(&at)) {
            (Some(Resolution::Found(found)), _) => Some((found.clone(), Usable::Yes)),
            (Some(Resolution::Ambiguous(_)), _) => None,
            (_, Some(Resolution::Found(found))) => Some((found.clone(), Usable::No)),
            (Some(Resolution::Unknown) | None, _) => None,
        }
    }
}

#[derive(Default)]
struct Changes {
    changed: BTreeMap<usize, Message>,
    with_origin: BTreeMap<usize, Message>,
    pinned: Option<Origin>,
    used: Vec<SharedReply>,
}

impl Changes {
    fn note_use(&mut self, found: &FoundReply, in_open_loop: bool) {
        if in_open_loop && found.reply.has_seals() {
            self.pinned.clone_from(&found.reply.message.origin);
        }
        self.used.push(found.reply.clone());
    }

    /// Records who really produced a message.
    fn set_origin(&mut self, at: usize, client: &Message, stored: &Message) {
        if client.origin != stored.origin {
            self.with_origin.insert(at, Message { origin: stored.origin.clone(), ..client.clone() });
        }
    }
}
