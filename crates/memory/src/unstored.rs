//! Replies that are in the journal but not in the tables yet. Every look-up sees them:
//! a reply that is missing could make another one look unambiguous.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keys::{Key, KeyKind};
use crate::reply_id::ReplyId;
use crate::stored_reply::SharedReply;
use crate::tenant::TenantId;

/// The replies by their keys and ids.
#[derive(Default)]
pub(crate) struct UnstoredReplies {
    inner: Mutex<Replies>,
}

#[derive(Default)]
struct Replies {
    by_id: HashMap<(TenantId, ReplyId), SharedReply>,
    /// Oldest first, which is also the order in which they are removed.
    by_key: HashMap<(TenantId, Key), VecDeque<(KeyKind, SharedReply)>>,
}

impl UnstoredReplies {
    fn lock(&self) -> MutexGuard<'_, Replies> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, tenant: TenantId, reply: &SharedReply) {
        let mut inner = self.lock();
        for (kind, key) in &reply.keys {
            inner.by_key.entry((tenant, *key)).or_default().push_back((*kind, Arc::clone(reply)));
        }
        inner.by_id.insert((tenant, reply.id), Arc::clone(reply));
    }

    /// Removes a reply that the tables have now.
    pub(crate) fn remove(&self, tenant: TenantId, reply: ReplyId) {
        let mut inner = self.lock();
        let Some(removed) = inner.by_id.remove(&(tenant, reply)) else { return };
        for (_, key) in &removed.keys {
            if let Some(replies) = inner.by_key.get_mut(&(tenant, *key)) {
                // Many replies can have one key, and the oldest is removed first.
                if let Some(at) = replies.iter().position(|(_, other)| other.id == reply) {
                    replies.remove(at);
                }
                if replies.is_empty() {
                    inner.by_key.remove(&(tenant, *key));
                }
            }
        }
    }

    pub(crate) fn remove_tenant(&self, tenant: TenantId) {
        let mut inner = self.lock();
        inner.by_id.retain(|(of, _), _| *of != tenant);
        inner.by_key.retain(|(of, _), _| *of != tenant);
    }

    pub(crate) fn by_id(&self, tenant: TenantId, reply: ReplyId) -> Option<SharedReply> {
        self.lock().by_id.get(&(tenant, reply)).map(Arc::clone)
    }

    pub(crate) fn by_key(&self, tenant: TenantId, key: Key) -> Vec<(KeyKind, SharedReply)> {
        self.lock().by_key.get(&(tenant, key)).into_iter().flatten().cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_id.is_empty()
    }
}
