//! Caches the replies of recent conversations, so that most turns need no look-up.
//!
//! Another process may have stored a second reply under the same key. Therefore
//! the cache answers only for keys that no second reply can have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::keys::Key;
use crate::reply_id::ReplyId;
use crate::stored_reply::{SharedReply, StoredReply};
use crate::tenant::TenantId;

/// Replies by id and by unique keys, bounded by their size.
pub(crate) struct ReplyCache {
    inner: Mutex<CachedReplies>,
    max_bytes: usize,
}

struct CachedReplies {
    replies: LruCache<(TenantId, ReplyId), CachedReply>,
    by_key: HashMap<(TenantId, Key), ReplyId>,
    bytes: usize,
}

struct CachedReply {
    reply: SharedReply,
    unique_keys: Vec<Key>,
    weight: usize,
}

impl ReplyCache {
    pub(crate) fn new(max_bytes: usize) -> ReplyCache {
        let inner = CachedReplies { replies: LruCache::unbounded(), by_key: HashMap::new(), bytes: 0 };
        ReplyCache { inner: Mutex::new(inner), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, CachedReplies> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn by_id(&self, tenant: TenantId, reply: ReplyId) -> Option<SharedReply> {
        self.lock().replies.get(&(tenant, reply)).map(|cached| Arc::clone(&cached.reply))
    }

    /// The reply for a key that only one reply can have.
    pub(crate) fn by_unique_key(&self, tenant: TenantId, key: Key) -> Option<SharedReply> {
        let mut inner = self.lock();
        let reply = *inner.by_key.get(&(tenant, key))?;
        inner.replies.get(&(tenant, reply)).map(|cached| Arc::clone(&cached.reply))
    }

    pub(crate) fn add(&self, tenant: TenantId, reply: SharedReply, unique_keys: Vec<Key>) {
        let weight = reply.weight() + 128 * unique_keys.len();
        if weight > self.max_bytes / 4 {
            return;
        }
        let mut inner = self.lock();
        let id = reply.id;
        inner.remove(tenant, id);
        for key in &unique_keys {
            inner.by_key.insert((tenant, *key), id);
        }
        inner.bytes += weight;
        inner.replies.put((tenant, id), CachedReply { reply, unique_keys, weight });
        while inner.bytes > self.max_bytes {
            let Some(((tenant, _), old)) = inner.replies.pop_lru() else { break };
            inner.forget(tenant, &old);
        }
    }

    /// Replaces a cached reply, with the same keys.
    pub(crate) fn change(&self, tenant: TenantId, reply: ReplyId, change: impl FnOnce(&mut StoredReply)) {
        if let Some(cached) = self.lock().replies.get_mut(&(tenant, reply)) {
            change(Arc::make_mut(&mut cached.reply));
        }
    }

    pub(crate) fn remove(&self, tenant: TenantId, reply: ReplyId) {
        self.lock().remove(tenant, reply);
    }

    /// Forgets all replies of a tenant.
    pub(crate) fn remove_tenant(&self, tenant: TenantId) {
        let mut inner = self.lock();
        let ids: Vec<ReplyId> =
            inner.replies.iter().filter(|((of, _), _)| *of == tenant).map(|((_, reply), _)| *reply).collect();
        for id in ids {
            inner.remove(tenant, id);
        }
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

impl CachedReplies {
    fn remove(&mut self, tenant: TenantId, reply: ReplyId) {
        if let Some(old) = self.replies.pop(&(tenant, reply)) {
            self.forget(tenant, &old);
        }
    }

    fn forget(&mut self, tenant: TenantId, old: &CachedReply) {
        self.bytes -= old.weight;
        for key in &old.unique_keys {
            self.by_key.remove(&(tenant, *key));
        }
    }
}

#[cfg(test)]
mod tests {
    use aside_core::block::Time;
    use aside_core::{Block, Message, Role, Text};

    use super::*;

    fn reply(text: &str) -> SharedReply {
        let block = Block::Text(Text { text: text.to_owned(), ..Text::default() });
        let id = ReplyId::random();
        Arc::new(StoredReply {
            id,
            parent: None,
            conversation: id,
            created: Time(0),
            expires: Time(0),
            message: Message::new(Role::Assistant, vec![block]),
            call_ids: Vec::new(),
            response: None,
            is_rejected: false,
            turn: Key([0; 16]),
            chain: Key([0; 16]),
            keys: Vec::new(),
        })
    }

    #[test]
    fn g7_the_cache_is_bounded_by_bytes_and_keeps_what_was_used_last() {
        let (tenant, cache) = (TenantId::of("a"), ReplyCache::new(100_000));
        let replies: Vec<SharedReply> = (0..200).map(|_| reply(&"x".repeat(1_000))).collect();
        for (at, each) in (0..).zip(&replies) {
            cache.add(tenant, Arc::clone(each), vec![Key([at; 16])]);
            assert!(cache.bytes() <= 100_000);
        }
        let (first, last) = (&replies[0], &replies[199]);
        assert!(cache.by_id(tenant, first.id).is_none() && cache.by_unique_key(tenant, Key([0; 16])).is_none());
        assert_eq!(cache.by_unique_key(tenant, Key([199; 16])).map(|found| found.id), Some(last.id));
        assert!(cache.by_id(TenantId::of("b"), last.id).is_none(), "another tenant");
        cache.add(tenant, reply(&"x".repeat(90_000)), vec![]);
        assert!(cache.by_id(tenant, last.id).is_some(), "one large reply does not evict all others");
        cache.remove_tenant(tenant);
        assert_eq!(cache.bytes(), 0);
    }
}
