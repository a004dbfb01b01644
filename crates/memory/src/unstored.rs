//! Replies that are not in the tables yet, and those that are not deleted there yet. Every look-up asks here first:
//! a reply that is missing could make another one look unambiguous.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::store::MAX_CANDIDATES;
use crate::stored_reply::SharedReply;
use crate::tenant::TenantId;

/// How many replies that could not be kept are known by their keys, and how many deleted ones by their ids.
const MAX_KNOWN: usize = 16_384;

type FullId = (TenantId, ReplyId);

/// The replies by their keys and ids.
#[derive(Default)]
pub(crate) struct UnstoredReplies {
    inner: Mutex<Replies>,
}

#[derive(Default)]
struct Replies {
    by_id: HashMap<FullId, Unstored>,
    /// Oldest first, which is also the order in which they are removed.
    by_key: HashMap<(TenantId, Key), VecDeque<(KeyKind, ReplyId)>>,
    /// Those that were lost, oldest first.
    lost: VecDeque<FullId>,
    forgotten: HashSet<FullId>,
    /// Those that are deleted in the tables too, oldest first. A look-up may have read one just before.
    deleted: VecDeque<FullId>,
}

/// What is known of a reply.
enum Unstored {
    /// It is in the queue.
    Whole(SharedReply),
    /// It is in the spill file. Reading it from there is not worth the trouble.
    Spilled(Vec<(KeyKind, Key)>),
    /// There was no room for it.
    Lost(Vec<(KeyKind, Key)>),
}

/// A reply that a key finds.
pub(crate) struct UnstoredMatch {
    pub(crate) key: Key,
    pub(crate) kind: KeyKind,
    pub(crate) id: ReplyId,
    /// None if it exists and cannot be read.
    pub(crate) reply: Option<SharedReply>,
}

impl UnstoredReplies {
    fn lock(&self) -> MutexGuard<'_, Replies> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, tenant: TenantId, reply: &SharedReply) {
        self.lock().insert((tenant, reply.id), &reply.keys, Unstored::Whole(Arc::clone(reply)));
    }

    /// Notes a reply that the spill file has.
    pub(crate) fn spilled(&self, tenant: TenantId, reply: ReplyId, keys: &[(KeyKind, Key)]) {
        let mut inner = self.lock();
        inner.remove((tenant, reply));
        inner.insert((tenant, reply), keys, Unstored::Spilled(keys.to_vec()));
    }

    /// Notes a reply that was not kept. Others with its keys stay ambiguous for a while.
    pub(crate) fn lost(&self, tenant: TenantId, reply: ReplyId, keys: &[(KeyKind, Key)]) {
        let mut inner = self.lock();
        inner.remove((tenant, reply));
        inner.insert((tenant, reply), keys, Unstored::Lost(keys.to_vec()));
        inner.lost.push_back((tenant, reply));
        if inner.lost.len() > MAX_KNOWN
            && let Some(oldest) = inner.lost.pop_front()
        {
            inner.remove(oldest);
        }
    }

    /// Removes a reply that the tables have now.
    pub(crate) fn remove(&self, tenant: TenantId, reply: ReplyId) {
        self.lock().remove((tenant, reply));
    }

    /// The spill file is empty; another process may have emptied it.
    pub(crate) fn spill_is_empty(&self) {
        let mut inner = self.lock();
        let spilled = inner.by_id.iter().filter(|(_, known)| matches!(known, Unstored::Spilled(_)));
        let spilled: Vec<FullId> = spilled.map(|(id, _)| *id).collect();
        spilled.into_iter().for_each(|id| inner.remove(id));
    }

    pub(crate) fn remove_tenant(&self, tenant: TenantId) {
        let mut inner = self.lock();
        inner.by_id.retain(|(of, _), _| *of != tenant);
        inner.by_key.retain(|(of, _), _| *of != tenant);
    }

    /// Hides a reply everywhere, until [`UnstoredReplies::not_forgotten`].
    pub(crate) fn forget(&self, tenant: TenantId, reply: ReplyId) {
        self.lock().forgotten.insert((tenant, reply));
    }

    /// Its deletion could not be kept.
    pub(crate) fn not_forgotten(&self, tenant: TenantId, reply: ReplyId) {
        self.lock().forgotten.remove(&(tenant, reply));
    }

    /// The tables do not have it any more.
    pub(crate) fn deleted(&self, tenant: TenantId, reply: ReplyId) {
        let mut inner = self.lock();
        inner.remove((tenant, reply));
        inner.deleted.push_back((tenant, reply));
        if inner.deleted.len() > MAX_KNOWN
            && let Some(oldest) = inner.deleted.pop_front()
        {
            inner.forgotten.remove(&oldest);
        }
    }

    pub(crate) fn is_forgotten(&self, tenant: TenantId, reply: ReplyId) -> bool {
        self.lock().forgotten.contains(&(tenant, reply))
    }

    /// The provider refused its seals.
    pub(crate) fn reject(&self, tenant: TenantId, reply: ReplyId) {
        if let Some(Unstored::Whole(reply)) = self.lock().by_id.get_mut(&(tenant, reply)) {
            Arc::make_mut(reply).is_rejected = true;
        }
    }

    pub(crate) fn by_id(&self, tenant: TenantId, reply: ReplyId) -> Option<SharedReply> {
        self.lock().whole((tenant, reply))
    }

    /// Whether it is not in the tables yet.
    pub(crate) fn contains(&self, tenant: TenantId, reply: ReplyId) -> bool {
        self.lock().by_id.contains_key(&(tenant, reply))
    }

    pub(crate) fn by_keys(&self, tenant: TenantId, keys: impl IntoIterator<Item = Key>) -> Vec<UnstoredMatch> {
        let inner = self.lock();
        if inner.by_id.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for key in keys {
            let known = inner.by_key.get(&(tenant, key)).into_iter().flatten();
            let known = known.filter(|(_, id)| !inner.forgotten.contains(&(tenant, *id)));
            // More are ambiguous anyway.
            for (kind, id) in known.take(MAX_CANDIDATES + 1) {
                found.push(UnstoredMatch { key, kind: *kind, id: *id, reply: inner.whole((tenant, *id)) });
            }
        }
        found
    }
}

impl Replies {
    fn whole(&self, id: FullId) -> Option<SharedReply> {
        match self.by_id.get(&id)? {
            Unstored::Whole(reply) if !self.forgotten.contains(&id) => Some(Arc::clone(reply)),
            Unstored::Whole(_) | Unstored::Spilled(_) | Unstored::Lost(_) => None,
        }
    }

    fn insert(&mut self, id: FullId, keys: &[(KeyKind, Key)], known: Unstored) {
        for (kind, key) in keys {
            self.by_key.entry((id.0, *key)).or_default().push_back((*kind, id.1));
        }
        self.by_id.insert(id, known);
    }

    fn remove(&mut self, id: FullId) {
        let keys = match self.by_id.remove(&id) {
            Some(Unstored::Whole(reply)) => return self.remove_keys(id, &reply.keys),
            Some(Unstored::Spilled(keys) | Unstored::Lost(keys)) => keys,
            None => return,
        };
        self.remove_keys(id, &keys);
    }

    fn remove_keys(&mut self, (tenant, reply): FullId, keys: &[(KeyKind, Key)]) {
        for (_, key) in keys {
            if let Some(replies) = self.by_key.get_mut(&(tenant, *key)) {
                // Many replies can have one key, and the oldest is removed first.
                if let Some(at) = replies.iter().position(|(_, other)| *other == reply) {
                    replies.remove(at);
                }
                if replies.is_empty() {
                    self.by_key.remove(&(tenant, *key));
                }
            }
        }
    }
}
