//! The running memory: a store, a cache and a writer.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aside_core::block::Time;
use aside_core::{Dialects, Request};

use crate::cache::ReplyCache;
use crate::error::StoreError;
use crate::evidence::Candidates;
use crate::journal::{self, Journal, JournalUse};
use crate::keys::{KeyKind, response_key};
use crate::options::{MemoryOptions, StoreLocation};
use crate::random;
use crate::read_gate::ReadGate;
use crate::reply_draft::ReplyDraft;
use crate::reply_id::ReplyId;
use crate::restore::{RestorePlan, Restored, WantedKey};
use crate::spill::Spill;
use crate::state::StoreState;
use crate::store::{Durability, FindQuery, ReplyRow, SqliteStore, Store, TenantRow, WriteRow, day_of};
use crate::store_key::StoreKey;
use crate::stored_reply::{DAY, SharedReply, StoredReply};
use crate::tenant::{Sealer, Tenant, TenantId};
use crate::unstored::UnstoredMatch;
use crate::writer::{WriteEnd, Writer, WriterFiles};

/// Ambiguous turns are decided by replies that later turns name. Each round of
/// them is one more look-up.
const MAX_PARENT_ROUNDS: usize = 4;
/// The row that proves that the store key is correct.
const PROBE: &str = "";

/// What the gateway remembers. Clones share everything.
#[derive(Clone)]
pub struct Memory {
    pub(crate) inner: Arc<MemoryInner>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("health", &self.health()).finish_non_exhaustive()
    }
}

pub(crate) struct MemoryInner {
    /// None if nothing is stored.
    pub(crate) backend: Option<Backend>,
    key: Mutex<StoreKey>,
    retention: Duration,
    deadline: Duration,
    cache: Arc<ReplyCache>,
    tenants: Mutex<HashMap<String, Arc<Tenant>>>,
    dialects: Arc<Dialects>,
}

pub(crate) struct Backend {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) writer: Writer,
    /// Everything that a request waits for goes through it.
    pub(crate) reads: Arc<ReadGate>,
}

/// Whether the store works, for metrics and health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// Ok, down or none.
    pub state: StoreState,
    /// Rows that are not in the store yet.
    pub lag_rows: u64,
    /// Rows that were lost, because there was no room for them while the store was
    /// down.
    pub lost_rows: u64,
}

impl Memory {
    /// Opens the memory. `dialects` say what the sentinels are.
    pub async fn open(options: MemoryOptions, dialects: Arc<Dialects>, now: Time) -> Result<Memory, StoreError> {
        let store: Option<Arc<dyn Store>> = match &options.location {
            StoreLocation::None => None,
            StoreLocation::Sqlite(path) => {
                let (path, durability) = (path.clone(), options.durability);
                let open = tokio::task::spawn_blocking(move || SqliteStore::open(&path, durability));
                let store = open.await.map_err(|error| StoreError::Down(error.to_string()))??;
                Some(Arc::new(store))
            }
            #[cfg(feature = "postgres")]
            StoreLocation::Postgres(url) => Some(Arc::new(crate::store::PostgresStore::open(url).await?)),
            #[cfg(not(feature = "postgres"))]
            StoreLocation::Postgres(_) => return Err(StoreError::NotBuiltIn),
        };
        Memory::with_store(store, options, dialects, now).await
    }

    /// A memory on a store that is already open.
    pub async fn with_store(
        store: Option<Arc<dyn Store>>,
        options: MemoryOptions,
        dialects: Arc<Dialects>,
        now: Time,
    ) -> Result<Memory, StoreError> {
        let backend = match store {
            Some(store) => {
                check_key(store.as_ref(), &options.key, now).await?;
                let spill = options.spill.as_ref().map(|(path, most)| Spill::open(path, *most)).transpose()?;
                let journal = match (&options.location, options.durability) {
                    (StoreLocation::Sqlite(path), Durability::Process) => {
                        open_journal(path.clone(), store.as_ref(), JournalUse::Append).await?
                    }
                    (StoreLocation::Sqlite(path), Durability::Power) => {
                        open_journal(path.clone(), store.as_ref(), JournalUse::OnlyPresence).await?
                    }
                    // Other gateways must see a reply as soon as its client has it.
                    (StoreLocation::None | StoreLocation::Postgres(_), _) => None,
                };
                let reads = Arc::new(ReadGate::new(options.read_deadline));
                let writer = Writer::start(Arc::clone(&store), WriterFiles { journal, spill }, Arc::clone(&reads));
                Some(Backend { store, writer, reads })
            }
            None => None,
        };
        let inner = MemoryInner {
            backend,
            key: Mutex::new(options.key),
            retention: options.retention,
            deadline: options.deadline,
            cache: Arc::new(ReplyCache::new(options.cache_bytes)),
            tenants: Mutex::default(),
            dialects,
        };
        Ok(Memory { inner: Arc::new(inner) })
    }

    /// The tenant with this name, which is added at its first use.
    pub async fn tenant(&self, name: &str, now: Time) -> Result<Arc<Tenant>, StoreError> {
        if let Some(known) = self.tenants().get(name) {
            return Ok(Arc::clone(known));
        }
        let key = self.key();
        let tenant = match &self.inner.backend {
            None => Tenant::without_store(name, &key),
            Some(backend) => {
                // After a rotation by another process, a new tenant must not be encrypted with the old key.
                let opened = async {
                    check_key(backend.store.as_ref(), &key, now).await?;
                    backend.store.tenant(new_tenant(name, &key, now)).await
                };
                let row = backend.reads.ask(opened).await?;
                Tenant::new(name, &open_tenant(&row, &key)?)
            }
        };
        let tenant = Arc::new(tenant);
        Ok(Arc::clone(self.tenants().entry(name.to_owned()).or_insert(tenant)))
    }

    pub(crate) fn tenants(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Tenant>>> {
        self.inner.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn key(&self) -> StoreKey {
        self.inner.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the store works.
    pub fn health(&self) -> StoreHealth {
        let Some(backend) = &self.inner.backend else {
            return StoreHealth { state: StoreState::None, lag_rows: 0, lost_rows: 0 };
        };
        let status = &backend.writer.status;
        let is_down = status.is_down.load(Ordering::Relaxed) || backend.reads.is_down();
        StoreHealth {
            state: if is_down { StoreState::Down } else { StoreState::Ok },
            lag_rows: status.lag_rows(),
            lost_rows: status.lost_rows.load(Ordering::Relaxed),
        }
    }

    /// Waits until everything queued so far is in the store or in the spill file.
    pub async fn flush(&self) {
        if let Some(backend) = &self.inner.backend {
            backend.writer.flush().await;
        }
    }

    /// Deletes what has expired. Returns the number of rows.
    pub async fn expire(&self, now: Time) -> Result<u64, StoreError> {
        match &self.inner.backend {
            Some(backend) => backend.store.expire(day_of(now)).await,
            None => Ok(0),
        }
    }

    /// Deletes the oldest conversations of tenants that have more bytes than this.
    /// Returns the number of replies.
    pub async fn trim(&self, max_bytes_of_a_tenant: u64) -> Result<u64, StoreError> {
        let Some(backend) = &self.inner.backend else { return Ok(0) };
        let mut deleted = 0;
        for tenant in backend.store.tenants().await? {
            let n = backend.store.trim(tenant.id, max_bytes_of_a_tenant).await?;
            if n > 0 {
                self.inner.cache.remove_tenant(tenant.id);
            }
            deleted += n;
        }
        Ok(deleted)
    }

    /// Finds the thinking that a request lacks, and puts it back. `session` is what
    /// the client calls its session, if it says so.
    pub async fn restore(
        &self,
        tenant: &Arc<Tenant>,
        request: &Request<'_>,
        session: Option<&str>,
        now: Time,
    ) -> Restored {
        let plan = RestorePlan::new(tenant, request, session);
        let (keys, replies) = plan.wanted();
        let mut lookup = LookUp { memory: self, tenant, candidates: Candidates::default(), state: StoreState::None };
        lookup.find(&keys, &replies).await;
        let mut resolved = plan.resolve(&lookup.candidates);
        for _ in 0..MAX_PARENT_ROUNDS {
            let parents = resolved.unread_parents(&lookup.candidates);
            if parents.is_empty() {
                break;
            }
            lookup.find(&[], &parents).await;
            resolved = plan.resolve(&lookup.candidates);
        }
        let (candidates, state) = (lookup.candidates, lookup.state);
        let restored = plan.finish(&resolved, &candidates, state);
        self.extend_life(tenant, &restored.used, now);
        restored
    }

    /// Begins a reply to a request.
    pub fn begin(&self, tenant: &Arc<Tenant>, request: &Restored) -> ReplyDraft {
        ReplyDraft {
            tenant: Arc::clone(tenant),
            id: ReplyId::random(),
            before: request.keys.next,
            session: request.session.clone(),
            parent: request.parent,
            call_ids: Vec::new(),
            response_id: None,
            response: None,
            retention: self.inner.retention,
            deadline: self.inner.deadline,
            cache: Arc::clone(&self.inner.cache),
            writer: self.inner.backend.as_ref().map(|backend| backend.writer.clone()),
            dialects: Arc::clone(&self.inner.dialects),
        }
    }

    /// A reply by its id.
    pub async fn reply(&self, tenant: &Arc<Tenant>, id: ReplyId) -> Result<Option<SharedReply>, StoreError> {
        let Some(backend) = &self.inner.backend else { return Ok(None) };
        let unstored = &backend.writer.unstored;
        if unstored.is_forgotten(tenant.id(), id) {
            return Ok(None);
        }
        let recent = self.inner.cache.by_id(tenant.id(), id).or_else(|| unstored.by_id(tenant.id(), id));
        if recent.is_some() {
            return Ok(recent);
        }
        self.find_one(tenant, FindQuery { tenant: Some(tenant.id()), keys: Vec::new(), replies: vec![id] }).await
    }

    /// A reply that is in the store, or on its way there. Unlike
    /// [`Memory::reply`], this notices what another process has deleted.
    pub async fn stored_reply(&self, tenant: &Arc<Tenant>, id: ReplyId) -> Result<Option<SharedReply>, StoreError> {
        let Some(backend) = &self.inner.backend else { return Ok(None) };
        let unstored = &backend.writer.unstored;
        if unstored.is_forgotten(tenant.id(), id) {
            return Ok(None);
        }
        if let Some(unstored) = unstored.by_id(tenant.id(), id) {
            return Ok(Some(unstored));
        }
        let is_unstored = unstored.contains(tenant.id(), id);
        let query = FindQuery { tenant: Some(tenant.id()), keys: Vec::new(), replies: vec![id] };
        let cached = || self.inner.cache.by_id(tenant.id(), id);
        match self.find_one(tenant, query).await {
            Ok(None) if is_unstored => Ok(cached()),
            Ok(found) => Ok(found),
            Err(error) => cached().map(Some).ok_or(error),
        }
    }

    /// The first reply that a query finds in the tables.
    async fn find_one(&self, tenant: &Arc<Tenant>, query: FindQuery) -> Result<Option<SharedReply>, StoreError> {
        let Some(backend) = &self.inner.backend else { return Ok(None) };
        let found = backend.reads.ask(backend.store.find(query)).await?;
        let is_there = |row: &ReplyRow| !backend.writer.unstored.is_forgotten(tenant.id(), row.reply);
        let rows = found.rows.into_iter().filter(is_there);
        Ok(rows.filter_map(|row| StoredReply::of_row(row, tenant)).next().map(Arc::new))
    }

    /// The reply whose response has this id of the provider.
    pub async fn reply_with_response_id(
        &self,
        tenant: &Arc<Tenant>,
        provider_id: &str,
    ) -> Result<Option<SharedReply>, StoreError> {
        let key = response_key(tenant, provider_id);
        let unstored = |backend: &Backend| backend.writer.unstored.by_keys(tenant.id(), [key]).pop()?.reply;
        if let Some(reply) = self.inner.backend.as_ref().and_then(unstored) {
            return Ok(Some(reply));
        }
        let query = FindQuery { tenant: Some(tenant.id()), keys: vec![key], replies: Vec::new() };
        self.find_one(tenant, query).await
    }

    /// Deletes a reply.
    pub async fn forget_reply(&self, tenant: &Arc<Tenant>, reply: &StoredReply) -> Result<(), StoreError> {
        let Some(backend) = &self.inner.backend else { return Ok(()) };
        let unstored = &backend.writer.unstored;
        unstored.forget(tenant.id(), reply.id);
        self.inner.cache.remove(tenant.id(), reply.id);
        let keys = reply.keys.iter().map(|(_, key)| *key).collect();
        let row = WriteRow::Forget { tenant: tenant.id(), reply: reply.id, keys, expires: reply.expires };
        match backend.writer.write(vec![row]).await {
            // While the store is down, the deletion waits in the file like everything else.
            Ok(WriteEnd::Stored | WriteEnd::Waiting) => Ok(()),
            Ok(WriteEnd::Lost) | Err(_) => {
                unstored.not_forgotten(tenant.id(), reply.id);
                Err(StoreError::Down("there is no room for the deletion".to_owned()))
            }
        }
    }

    /// Notes that the provider refused the seals of a reply. They are not sent
    /// again.
    pub async fn mark_rejected(&self, tenant: &Arc<Tenant>, reply: ReplyId) -> Result<(), StoreError> {
        let known = self.reply(tenant, reply).await?;
        let (Some(backend), Some(known)) = (&self.inner.backend, known) else { return Ok(()) };
        self.inner.cache.change(tenant.id(), reply, |reply| reply.is_rejected = true);
        backend.writer.unstored.reject(tenant.id(), reply);
        let row = WriteRow::Rejected { tenant: tenant.id(), reply, expires: known.expires };
        drop(backend.writer.write(vec![row]));
        Ok(())
    }

    /// A reply that was used is kept longer. Its rows change at most once a day.
    fn extend_life(&self, tenant: &Tenant, used: &[SharedReply], now: Time) {
        let Some(backend) = &self.inner.backend else { return };
        let lifetime = u64::try_from(self.inner.retention.as_millis()).unwrap_or(u64::MAX);
        let expires = Time(now.0.saturating_add(lifetime));
        let mut rows = Vec::new();
        for reply in used.iter().filter(|reply| reply.expires.0.saturating_add(DAY) <= expires.0) {
            self.inner.cache.change(tenant.id(), reply.id, |reply| reply.expires = expires);
            let keys = reply.keys.iter().map(|(_, key)| *key).collect();
            rows.push(WriteRow::Touch { tenant: tenant.id(), reply: reply.id, keys, expires });
        }
        if !rows.is_empty() {
            drop(backend.writer.write(rows));
        }
    }

    /// Removes what this process has in memory of a tenant.
    pub(crate) fn forget_cached(&self, name: &str) {
        self.tenants().remove(name);
        self.inner.cache.remove_tenant(TenantId::of(name));
        if let Some(backend) = &self.inner.backend {
            backend.writer.unstored.remove_tenant(TenantId::of(name));
        }
    }

    /// Whether another process has encrypted the store with another key.
    pub async fn has_another_key(&self, now: Time) -> Result<bool, StoreError> {
        let Some(backend) = &self.inner.backend else { return Ok(false) };
        match backend.reads.ask(check_key(backend.store.as_ref(), &self.key(), now)).await {
            Ok(()) => Ok(false),
            Err(StoreError::WrongKey) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Uses the key that another process has encrypted the store with. Fails if it is
    /// not that key.
    pub async fn use_key(&self, key: StoreKey, now: Time) -> Result<(), StoreError> {
        if let Some(backend) = &self.inner.backend {
            check_key(backend.store.as_ref(), &key, now).await?;
        }
        self.set_key(key);
        Ok(())
    }

    /// From now on, tenants are opened with this key.
    pub(crate) fn set_key(&self, key: StoreKey) {
        *self.inner.key.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}

/// Collects replies, from the cache where that is safe.
struct LookUp<'a> {
    memory: &'a Memory,
    tenant: &'a Arc<Tenant>,
    candidates: Candidates,
    state: StoreState,
}

impl LookUp<'_> {
    async fn find(&mut self, keys: &[WantedKey], replies: &[ReplyId]) {
        let Some(backend) = &self.memory.inner.backend else { return };
        if self.state == StoreState::None {
            self.state =
                if backend.writer.status.is_down.load(Ordering::Relaxed) { StoreState::Down } else { StoreState::Ok };
        }
        let (cache, id) = (&self.memory.inner.cache, self.tenant.id());
        // This comes before the store is asked, so that a reply that is stored in the meantime is found there.
        let recent = backend.writer.unstored.by_keys(id, keys.iter().map(|wanted| wanted.key));
        let mut query = FindQuery { tenant: Some(id), ..FindQuery::default() };
        for wanted in keys {
            let cached = if wanted.is_unique { cache.by_unique_key(id, wanted.key) } else { None };
            match cached {
                Some(reply) => {
                    self.candidates.add_match(wanted.key, wanted.kind, reply.id);
                    self.add_reply(reply);
                }
                None => query.keys.push(wanted.key),
            }
        }
        for reply in replies {
            match cache.by_id(id, *reply).or_else(|| backend.writer.unstored.by_id(id, *reply)) {
                Some(reply) => self.add_reply(reply),
                None => query.replies.push(*reply),
            }
        }
        let unique: Vec<WantedKey> = keys.iter().filter(|wanted| wanted.is_unique).copied().collect();
        if query.keys.is_empty() && query.replies.is_empty() {
            return self.add_recent(recent);
        }
        match backend.reads.ask(backend.store.find(query)).await {
            Ok(found) => {
                for (key, kind, reply) in &found.matches {
                    self.candidates.add_match(*key, *kind, *reply);
                }
                for row in found.rows {
                    // A row that cannot be decrypted was encrypted with a key that is gone.
                    let Some(reply) = StoredReply::of_row(row, self.tenant) else { continue };
                    let reply = Arc::new(reply);
                    self.keep(&reply, &found.matches, &unique);
                    self.add_reply(reply);
                }
                self.add_recent(recent);
            }
            Err(_) => {
                self.state = StoreState::Down;
                // Of the other keys, the tables may have more replies.
                let is_unique = |recent: &UnstoredMatch| unique.iter().any(|wanted| wanted.key == recent.key);
                self.add_recent(recent.into_iter().filter(is_unique).collect());
            }
        }
    }

    fn add_reply(&mut self, reply: SharedReply) {
        let backend = self.memory.inner.backend.as_ref();
        if backend.is_none_or(|backend| !backend.writer.unstored.is_forgotten(self.tenant.id(), reply.id)) {
            self.candidates.add_reply(reply);
        }
    }

    /// Adds what was not in the tables before they were asked.
    fn add_recent(&mut self, recent: Vec<UnstoredMatch>) {
        for UnstoredMatch { key, kind, id, reply } in recent {
            // The cache knows whether its seals were refused.
            let reply = self.memory.inner.cache.by_id(self.tenant.id(), id).or(reply);
            match reply {
                Some(reply) => self.add_reply(reply),
                None if self.candidates.by_id.contains_key(&id) => (),
                None => self.candidates.add_unreadable(key),
            }
            self.candidates.add_match(key, kind, id);
        }
    }

    /// Caches a reply with the keys that no other reply can have.
    fn keep(&self, reply: &SharedReply, matches: &[(crate::keys::Key, KeyKind, ReplyId)], unique: &[WantedKey]) {
        let own = matches.iter().filter(|(_, _, of)| *of == reply.id).map(|(key, _, _)| *key);
        let keys = own.filter(|key| unique.iter().any(|wanted| wanted.key == *key)).collect();
        self.memory.inner.cache.add(self.tenant.id(), Arc::clone(reply), keys);
    }
}

/// A row for a new tenant, with a random data key.
pub(crate) fn new_tenant(name: &str, key: &StoreKey, now: Time) -> TenantRow {
    let data_key: [u8; 32] = random::bytes();
    TenantRow {
        id: TenantId::of(name),
        name: name.to_owned(),
        sealed: seal_data_key(name, &data_key, key),
        created: now,
    }
}

pub(crate) fn seal_data_key(name: &str, data_key: &[u8; 32], key: &StoreKey) -> Vec<u8> {
    Sealer::new(&key.derive("tenants", b"")).seal(name.as_bytes(), data_key.to_vec())
}

/// The data key of a tenant.
pub(crate) fn open_tenant(row: &TenantRow, key: &StoreKey) -> Result<[u8; 32], StoreError> {
    let opened = Sealer::new(&key.derive("tenants", b"")).open(row.name.as_bytes(), row.sealed.clone());
    opened.and_then(|bytes| bytes.try_into().ok()).ok_or(StoreError::WrongKey)
}

/// Writes what the journals of other processes have into the tables, and begins one of our own. None if the file system
/// cannot lock files; replies are then committed at once.
async fn open_journal(
    database: PathBuf,
    store: &dyn Store,
    journal_use: JournalUse,
) -> Result<Option<Journal>, StoreError> {
    let location = database.display().to_string();
    let fail = |problem: String| StoreError::CannotOpen { location: location.clone(), problem };
    let opened = tokio::task::spawn_blocking(move || {
        // In this order: what another process appends later, it commits before its client is told.
        let journal = Journal::create(&database, journal_use).ok();
        let others = journal.as_ref().map_or_else(|| journal::recover(&database), Journal::others)?;
        Ok::<_, std::io::Error>((others, journal))
    });
    let opened = opened.await.map_err(|error| fail(error.to_string()))?;
    let (others, journal) = opened.map_err(|error| fail(error.to_string()))?;
    for mut other in others {
        store.write_late(Arc::new(std::mem::take(&mut other.rows))).await?;
        other.are_stored().map_err(|error| fail(error.to_string()))?;
    }
    Ok(journal)
}

/// The first process writes a row that only the correct key decrypts.
async fn check_key(store: &dyn Store, key: &StoreKey, now: Time) -> Result<(), StoreError> {
    let row = store.tenant(new_tenant(PROBE, key, now)).await?;
    open_tenant(&row, key).map(drop)
}
