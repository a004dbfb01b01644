//! The evidence that a stored reply is the one that a client sent back, strongest
//! first. Several replies that differ in their thinking are ambiguous, and
//! nothing is restored then: wrong thinking is worse than none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use aside_core::Message;

use crate::keys::{Key, KeyKind, TurnKeys};
use crate::normal_form;
use crate::put_back::calls_of;
use crate::reply_id::ReplyId;
use crate::store::MAX_CANDIDATES;
use crate::stored_reply::SharedReply;

/// How a reply was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The client sent a reference of ours.
    L0,
    /// The client sent the ids that we minted for its calls.
    L1,
    /// The provider's ids of its calls, and the calls.
    L2,
    /// Its visible content, and what came before it.
    L3,
    /// Its visible content, which no other reply has, and the session.
    L4,
    /// Its visible content.
    L5,
}

impl Evidence {
    /// The word for it in receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::L0 => "L0",
            Evidence::L1 => "L1",
            Evidence::L2 => "L2",
            Evidence::L3 => "L3",
            Evidence::L4 => "L4",
            Evidence::L5 => "L5",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The replies that a look-up found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    pub(crate) by_id: HashMap<ReplyId, SharedReply>,
    by_key: HashMap<Key, Vec<(KeyKind, ReplyId)>>,
    /// Keys of replies that exist and cannot be read.
    unreadable: HashSet<Key>,
}

impl Candidates {
    pub(crate) fn add_reply(&mut self, reply: SharedReply) {
        self.by_id.insert(reply.id, reply);
    }

    pub(crate) fn add_match(&mut self, key: Key, kind: KeyKind, reply: ReplyId) {
        let matches = self.by_key.entry(key).or_default();
        if !matches.contains(&(kind, reply)) {
            matches.push((kind, reply));
        }
    }

    /// Notes that a reply of this key cannot be read.
    pub(crate) fn add_unreadable(&mut self, key: Key) {
        self.unreadable.insert(key);
    }

    /// The replies of a key. None if one cannot be read, or if there are too many.
    fn of(&self, key: Key, kind: KeyKind) -> Option<Vec<SharedReply>> {
        if self.unreadable.contains(&key) {
            return None;
        }
        let Some(matches) = self.by_key.get(&key) else { return Some(Vec::new()) };
        if matches.len() > MAX_CANDIDATES {
            return None;
        }
        let of_kind = matches.iter().filter(|(found, _)| *found == kind);
        Some(of_kind.filter_map(|(_, reply)| self.by_id.get(reply).cloned()).collect())
    }
}

/// Which reply a turn is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Resolution {
    Found(FoundReply),
    /// Several replies with different thinking. Empty if there are too many, or if one cannot be read.
    Ambiguous(Vec<SharedReply>),
    Unknown,
}

/// A recognised reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundReply {
    pub(crate) reply: SharedReply,
    pub(crate) evidence: Evidence,
    /// All replies that fit equally well; their thinking is equal.
    pub(crate) equals: Vec<ReplyId>,
}

/// Whether a reply counts for a turn.
pub(crate) type MayUse<'a> = dyn Fn(&SharedReply) -> bool + 'a;

/// One level of evidence.
type LadderStep = fn(&TurnToFind<'_>, &Candidates, &MayUse<'_>) -> Resolution;

/// A turn to recognise.
pub(crate) struct TurnToFind<'a> {
    pub(crate) keys: &'a TurnKeys,
    /// What to look up, by kind.
    pub(crate) lookup: &'a [(KeyKind, Key)],
    pub(crate) message: &'a Message,
    /// The replies that the client refers to.
    pub(crate) references: &'a [ReplyId],
}

impl TurnToFind<'_> {
    /// The replies of its key of this kind. None if not all of them can be read.
    fn of(&self, candidates: &Candidates, kind: KeyKind) -> Option<Vec<SharedReply>> {
        let key = self.lookup.iter().find(|(known, _)| *known == kind);
        key.map_or(Some(Vec::new()), |(_, key)| candidates.of(*key, kind))
    }
}

/// Tries each level of evidence for one turn, the strongest first. Replies that `may_use` rejects do not count.
pub(crate) fn find_turn(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let steps: [LadderStep; 6] = [by_reference, by_minted_ids, by_call_ids, by_chain, by_session, by_turn];
    for step in steps {
        match step(turn, candidates, may_use) {
            Resolution::Unknown => (),
            known @ (Resolution::Found(_) | Resolution::Ambiguous(_)) => return known,
        }
    }
    Resolution::Unknown
}

fn by_reference(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let [only] = turn.references else { return Resolution::Unknown };
    let reply = candidates.by_id.get(only).filter(|reply| may_use(reply));
    reply.map_or(Resolution::Unknown, |reply| found(reply, Evidence::L0))
}

/// Minted ids are unique, so all of them must lead to the same reply.
fn by_minted_ids(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let TurnKeys { minted, n_calls, .. } = turn.keys;
    if minted.is_empty() || minted.len() != *n_calls {
        return Resolution::Unknown;
    }
    let mut reply: Option<SharedReply> = None;
    for key in minted {
        let replies = candidates.of(*key, KeyKind::MintedId).unwrap_or_default();
        let [only] = replies.as_slice() else { return Resolution::Unknown };
        if reply.as_ref().is_some_and(|reply| reply.id != only.id) {
            return Resolution::Unknown;
        }
        reply = Some(Arc::clone(only));
    }
    let same_calls = |reply: &SharedReply| {
        let names = calls_of(&turn.message.blocks).map(|call| &call.name);
        names.eq(calls_of(&reply.message.blocks).map(|call| &call.name))
    };
    let reply = reply.filter(|reply| may_use(reply) && same_calls(reply));
    reply.map_or(Resolution::Unknown, |reply| found(&reply, Evidence::L1))
}

fn by_call_ids(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let Some(key) = turn.keys.call_ids else { return Resolution::Unknown };
    let Some(replies) = candidates.of(key, KeyKind::CallIds) else { return Resolution::Unknown };
    let usable: Vec<SharedReply> = replies.into_iter().filter(|reply| may_use(reply)).collect();
    let in_chain: Vec<SharedReply> = usable.iter().filter(|reply| reply.chain == turn.keys.chain).cloned().collect();
    // Counters are no evidence by themselves, and neither is the beginning of a history that may have been cut.
    if !turn.keys.has_unique_ids {
        return if turn.keys.is_first { Resolution::Unknown } else { only_one(in_chain, Evidence::L2) };
    }
    match only_one(usable, Evidence::L2) {
        Resolution::Ambiguous(all) if in_chain.is_empty() => Resolution::Ambiguous(all),
        Resolution::Ambiguous(_) => only_one(in_chain, Evidence::L2),
        known @ (Resolution::Found(_) | Resolution::Unknown) => known,
    }
}

/// The first turn of a history may have had others before it, so only what was
/// asked is compared there. A client that interrupted a reply has only the start of it,
/// which may be the whole of another reply.
fn by_chain(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let kind = if turn.keys.is_first { KeyKind::Question } else { KeyKind::Chain };
    let (Some(shown), Some(interrupted)) = (turn.of(candidates, kind), turn.of(candidates, KeyKind::Interrupted))
    else {
        return Resolution::Ambiguous(Vec::new());
    };
    let mut replies: Vec<SharedReply> = shown.into_iter().filter(|reply| may_use(reply)).collect();
    let text = normal_form::answer_text(&turn.message.blocks);
    let begins_with = |reply: &SharedReply| {
        let same_chain = turn.keys.is_first || reply.chain == turn.keys.chain;
        let whole = normal_form::answer_text(&reply.message.blocks);
        let calls = || calls_of(&turn.message.blocks).map(|call| &call.name);
        let own_calls = calls_of(&reply.message.blocks).map(|call| &call.name);
        same_chain && whole.starts_with(&*text) && own_calls.take(calls().count()).eq(calls())
    };
    for reply in interrupted.into_iter().filter(|reply| may_use(reply) && begins_with(reply)) {
        if !replies.iter().any(|known| known.id == reply.id) {
            replies.push(reply);
        }
    }
    only_one(replies, Evidence::L3)
}

/// A client may use the session of another conversation. Therefore the session
/// only confirms a reply whose visible content is unique in the tenant.
fn by_session(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let Resolution::Found(in_session) = by_kind(turn, candidates, may_use, KeyKind::Session, Evidence::L4) else {
        return Resolution::Unknown;
    };
    match by_kind(turn, candidates, may_use, KeyKind::Turn, Evidence::L4) {
        Resolution::Found(only) if only.equals.contains(&in_session.reply.id) => Resolution::Found(only),
        Resolution::Ambiguous(replies) => Resolution::Ambiguous(replies),
        Resolution::Found(_) | Resolution::Unknown => Resolution::Unknown,
    }
}

/// The last resort, and never for opaque data: if it is wrong, the provider
/// keeps refusing the request.
fn by_turn(turn: &TurnToFind<'_>, candidates: &Candidates, may_use: &MayUse<'_>) -> Resolution {
    let is_open = |reply: &SharedReply| !reply.has_seals();
    by_kind(turn, candidates, &|reply| may_use(reply) && is_open(reply), KeyKind::Turn, Evidence::L5)
}

fn by_kind(
    turn: &TurnToFind<'_>,
    candidates: &Candidates,
    may_use: &MayUse<'_>,
    kind: KeyKind,
    evidence: Evidence,
) -> Resolution {
    match turn.of(candidates, kind) {
        Some(replies) => only_one(replies.into_iter().filter(|reply| may_use(reply)).collect(), evidence),
        None => Resolution::Ambiguous(Vec::new()),
    }
}

/// Replies with equal thinking count as one; the newest stands for them.
fn only_one(replies: Vec<SharedReply>, evidence: Evidence) -> Resolution {
    let newest = replies.iter().max_by_key(|reply| (reply.created, reply.id));
    let Some(newest) = newest else { return Resolution::Unknown };
    let digest = (replies.len() > 1).then(|| newest.thinking_digest());
    let is_equal = |reply: &SharedReply| digest.as_ref().is_none_or(|digest| reply.thinking_digest() == *digest);
    if !replies.iter().all(is_equal) {
        return Resolution::Ambiguous(replies);
    }
    let equals = replies.iter().map(|reply| reply.id).collect();
    Resolution::Found(FoundReply { reply: Arc::clone(newest), evidence, equals })
}

fn found(reply: &SharedReply, evidence: Evidence) -> Resolution {
    Resolution::Found(FoundReply { reply: Arc::clone(reply), evidence, equals: vec![reply.id] })
}

/// A turn with the turns before and after it.
pub(crate) struct TurnInOrder<'a> {
    pub(crate) lookup: &'a [(KeyKind, Key)],
    pub(crate) may_use: &'a MayUse<'a>,
}

/// Decides ambiguous turns by the turns around them: a later turn names the one before
/// it, and of several turns only one may follow an earlier one.
pub(crate) fn use_neighbours(
    turns: &[TurnInOrder<'_>],
    resolutions: &mut BTreeMap<usize, Resolution>,
    candidates: &Candidates,
) {
    for at in (0..turns.len().saturating_sub(1)).rev() {
        if !is_ambiguous(resolutions, at) {
            continue;
        }
        let (Some(turn), Some(parent)) = (turns.get(at), parent_named_after(resolutions, at)) else { continue };
        let named = candidates.by_id.get(&parent).filter(|reply| fits(turn, reply));
        if let Some(named) = named {
            resolutions.insert(at, found(named, Evidence::L3));
        }
    }
    for at in 1..turns.len() {
        let Some(Resolution::Found(previous)) = resolutions.get(&(at - 1)) else { continue };
        let Some(Resolution::Ambiguous(replies)) = resolutions.get(&at) else { continue };
        // If one has no known parent, it may be the one that follows.
        if previous.evidence > Evidence::L3 || replies.iter().any(|reply| reply.parent.is_none()) {
            continue;
        }
        let follows = |reply: &&SharedReply| reply.parent.is_some_and(|parent| previous.equals.contains(&parent));
        let following: Vec<SharedReply> = replies.iter().filter(follows).cloned().collect();
        if let decided @ Resolution::Found(_) = only_one(following, Evidence::L3) {
            resolutions.insert(at, decided);
        }
    }
}

/// Replies that a later turn names and that were not read yet.
pub(crate) fn unread_parents(resolutions: &BTreeMap<usize, Resolution>, candidates: &Candidates) -> Vec<ReplyId> {
    let ambiguous = resolutions.keys().filter(|at| is_ambiguous(resolutions, **at));
    let parents: HashSet<ReplyId> = ambiguous.filter_map(|at| parent_named_after(resolutions, *at)).collect();
    parents.into_iter().filter(|parent| !candidates.by_id.contains_key(parent)).collect()
}

fn is_ambiguous(resolutions: &BTreeMap<usize, Resolution>, at: usize) -> bool {
    matches!(resolutions.get(&at), Some(Resolution::Ambiguous(_)))
}

/// The reply that the next turn followed.
fn parent_named_after(resolutions: &BTreeMap<usize, Resolution>, at: usize) -> Option<ReplyId> {
    match resolutions.get(&(at + 1))? {
        Resolution::Found(next) if next.evidence <= Evidence::L3 => next.reply.parent,
        Resolution::Found(_) | Resolution::Ambiguous(_) | Resolution::Unknown => None,
    }
}

/// Whether a reply has the same visible content and followed the same turn.
fn fits(turn: &TurnInOrder<'_>, reply: &SharedReply) -> bool {
    let is_context = |kind: KeyKind| matches!(kind, KeyKind::Chain | KeyKind::Question);
    let mut shown = reply.keys.iter().filter(|(kind, _)| is_context(*kind));
    shown.any(|key| turn.lookup.contains(key)) && (turn.may_use)(reply)
}
