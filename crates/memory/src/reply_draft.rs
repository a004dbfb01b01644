//! A reply that is being received.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::Time;
use aside_core::{Block, Dialects, Message, Origin};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::cache::ReplyCache;
use crate::keys::{BeforeTurn, KeyKind, mint_call_id, minted_key, response_key, turn_keys};
use crate::reference::{Reference, WHOLE_REPLY};
use crate::reply_id::ReplyId;
use crate::restore::is_unique;
use crate::state::StoreState;
use crate::store::WriteRow;
use crate::stored_reply::{StoredReply, without_sentinels};
use crate::tenant::Tenant;
use crate::writer::{QueuedReply, WriteEnd, Writer};

/// A reply that is being received. Its id is fixed from the start, so that the
/// stream can refer to it.
pub struct ReplyDraft {
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) id: ReplyId,
    pub(crate) before: BeforeTurn,
    pub(crate) session: Option<String>,
    pub(crate) parent: Option<(ReplyId, ReplyId)>,
    pub(crate) call_ids: Vec<(String, String)>,
    pub(crate) response_id: Option<String>,
    pub(crate) response: Option<String>,
    pub(crate) retention: Duration,
    pub(crate) deadline: Duration,
    pub(crate) cache: Arc<ReplyCache>,
    /// None without a store.
    pub(crate) writer: Option<Writer>,
    pub(crate) dialects: Arc<Dialects>,
}

impl std::fmt::Debug for ReplyDraft {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyDraft").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ReplyDraft {
    /// The reply's id.
    pub fn id(&self) -> ReplyId {
        self.id
    }

    /// The reply before it in its conversation, if that is certain.
    pub fn parent(&self) -> Option<ReplyId> {
        self.parent.map(|(parent, _)| parent)
    }

    /// The first reply of its conversation.
    pub fn conversation(&self) -> ReplyId {
        self.parent.map_or(self.id, |(_, conversation)| conversation)
    }

    /// A reference to a block, by its index among the reply's blocks.
    pub fn reference(&self, block: u16) -> Reference {
        self.tenant.refer_to(self.id, block)
    }

    /// Whether the reply is stored. If not, the client must keep its thinking.
    pub fn has_store(&self) -> bool {
        self.writer.is_some()
    }

    /// A whole block as an opaque value that only this tenant's gateways can decrypt.
    pub fn seal_block(&self, block: &Block, origin: &Origin) -> String {
        self.tenant.seal_block(block, origin)
    }

    /// An id for the whole response.
    pub fn response_id(&self) -> String {
        self.tenant.refer_to(self.id, WHOLE_REPLY).item_id("resp_")
    }

    /// A new id for a tool call, in place of the provider's own.
    pub fn mint_call_id(&mut self, provider_id: &str) -> String {
        let id = mint_call_id();
        self.call_ids.push((id.clone(), provider_id.to_owned()));
        id
    }

    /// The ids that were minted so far, in order.
    pub fn minted_ids(&self) -> impl Iterator<Item = &str> {
        self.call_ids.iter().map(|(minted, _)| minted.as_str())
    }

    /// The id that the provider gave the whole response.
    pub fn name_response(&mut self, provider_id: &str) {
        self.response_id = Some(provider_id.to_owned());
    }

    /// Keeps a text with the reply: what is needed to return the whole response
    /// again.
    pub fn keep_response(&mut self, state: String) {
        self.response = Some(state);
    }

    /// Stores the reply as the provider sent it. The write starts at once.
    pub fn finish(self, reply: Message, now: Time) -> PendingWrite {
        let Some(writer) = self.writer.clone() else { return PendingWrite { state: Pending::NoStore } };
        let deadline = self.deadline;
        let (stored, unique_keys) = self.to_stored(reply, now);
        let row = WriteRow::Reply { row: stored.to_row(&self.tenant), keys: stored.keys.clone() };
        let (tenant, stored) = (self.tenant.id(), Arc::new(stored));
        let queued = writer.write_reply(tenant, &stored, row);
        self.cache.add(tenant, stored, unique_keys);
        let state = match queued {
            QueuedReply::Durable => Pending::Durable,
            QueuedReply::Waiting(done) => Pending::Waiting { done, until: Instant::now() + deadline },
        };
        PendingWrite { state }
    }

    fn to_stored(&self, reply: Message, now: Time) -> (StoredReply, Vec<crate::keys::Key>) {
        let mut message = without_sentinels(reply, &self.dialects);
        // It stays in the cache, perhaps for long.
        message.blocks.shrink_to_fit();
        let turn = turn_keys(&self.tenant, 0, &message, &self.before);
        let mut keys = turn.to_store(&self.tenant, self.session.as_deref(), message.interrupted);
        let minted = self.call_ids.iter().filter_map(|(id, _)| minted_key(&self.tenant, id));
        keys.extend(minted.map(|key| (KeyKind::MintedId, key)));
        keys.extend(self.response_id.iter().map(|id| (KeyKind::ResponseId, response_key(&self.tenant, id))));
        let unique = keys.iter().filter(|(kind, _)| is_unique(*kind)).map(|(_, key)| *key).collect();
        let lifetime = u64::try_from(self.retention.as_millis()).unwrap_or(u64::MAX);
        let stored = StoredReply {
            id: self.id,
            parent: self.parent(),
            conversation: self.conversation(),
            created: now,
            expires: Time(now.0.saturating_add(lifetime)),
            message,
            call_ids: self.call_ids.clone(),
            response: self.response.clone(),
            is_rejected: false,
            turn: turn.turn,
            chain: turn.chain,
            keys,
        };
        (stored, unique)
    }
}

/// A reply on its way to the store.
#[derive(Debug)]
pub struct PendingWrite {
    state: Pending,
}

#[derive(Debug)]
enum Pending {
    NoStore,
    Durable,
    Waiting { done: oneshot::Receiver<WriteEnd>, until: Instant },
}

impl PendingWrite {
    /// Waits until the reply is durable, or until the deadline.
    pub async fn durable(self) -> StoreState {
        match self.state {
            Pending::NoStore => StoreState::None,
            Pending::Durable => StoreState::Ok,
            Pending::Waiting { done, until } => match timeout_at(until, done).await {
                Ok(Ok(WriteEnd::Stored)) => StoreState::Ok,
                Ok(Ok(WriteEnd::Waiting | WriteEnd::Lost) | Err(_)) => StoreState::Down,
                Err(_) => StoreState::Late,
            },
        }
    }
}
