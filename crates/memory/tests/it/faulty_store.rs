//! SQLite that can be told to fail, or to hold a write.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use aside_core::block::Time;
use aside_memory::store::{
    ClientKeyRow, Durability, FindQuery, FoundRows, LearnedRow, ReceiptFilter, SealedReceipt, SpendRow, SqliteStore,
    Store, StoreFuture, TenantRow, WriteRow,
};
use aside_memory::{StoreError, TenantId};
use tokio::sync::Semaphore;

/// A database whose writes or reads can be made to fail.
pub(super) struct FaultyStore {
    real: SqliteStore,
    pub(super) writes_fail: AtomicBool,
    pub(super) reads_fail: AtomicBool,
    /// Batches are written, and reported as failed.
    pub(super) answers_get_lost: AtomicBool,
    pub(super) late_writes_fail: AtomicBool,
    /// Each batch waits for a permit, except while this is closed.
    pub(super) gate: Semaphore,
    /// How many rows each batch had that was tried.
    pub(super) batches: Mutex<Vec<usize>>,
}

impl FaultyStore {
    pub(super) fn open(path: &Path) -> Arc<FaultyStore> {
        let gate = Semaphore::new(0);
        gate.close();
        Arc::new(FaultyStore {
            real: SqliteStore::open(path, Durability::Process).unwrap(),
            writes_fail: AtomicBool::new(false),
            reads_fail: AtomicBool::new(false),
            answers_get_lost: AtomicBool::new(false),
            late_writes_fail: AtomicBool::new(false),
            gate,
            batches: Mutex::default(),
        })
    }

    /// Holds batches until permits are added.
    pub(super) fn holding(path: &Path) -> Arc<FaultyStore> {
        let mut store = FaultyStore::open(path);
        Arc::get_mut(&mut store).unwrap().gate = Semaphore::new(0);
        store
    }

    pub(super) fn fail_writes(&self, fails: bool) {
        self.writes_fail.store(fails, Ordering::SeqCst);
    }
}

fn broken<T>() -> Result<T, StoreError> {
    Err(StoreError::Down("told to fail".to_owned()))
}

impl Store for FaultyStore {
    fn write(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if let Ok(permit) = self.gate.acquire().await {
                permit.forget();
            }
            self.batches.lock().unwrap().push(batch.len());
            if self.writes_fail.load(Ordering::SeqCst) {
                return broken();
            }
            Store::write(&self.real, batch).await?;
            if self.answers_get_lost.load(Ordering::SeqCst) { broken() } else { Ok(()) }
        })
    }

    fn write_late(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()> {
        let fails = self.writes_fail.load(Ordering::SeqCst) || self.late_writes_fail.load(Ordering::SeqCst);
        if fails { Box::pin(async { broken() }) } else { self.real.write_late(batch) }
    }

    fn find(&self, query: FindQuery) -> StoreFuture<'_, FoundRows> {
        if self.reads_fail.load(Ordering::SeqCst) { Box::pin(async { broken() }) } else { self.real.find(query) }
    }

    fn tenant(&self, new: TenantRow) -> StoreFuture<'_, TenantRow> {
        self.real.tenant(new)
    }

    fn tenants(&self) -> StoreFuture<'_, Vec<TenantRow>> {
        self.real.tenants()
    }

    fn reseal_tenants(&self, rows: Vec<TenantRow>) -> StoreFuture<'_, ()> {
        self.real.reseal_tenants(rows)
    }

    fn forget_tenant(&self, tenant: TenantId) -> StoreFuture<'_, bool> {
        self.real.forget_tenant(tenant)
    }

    fn expire(&self, before_day: i64) -> StoreFuture<'_, u64> {
        self.real.expire(before_day)
    }

    fn trim(&self, tenant: TenantId, max_bytes: u64) -> StoreFuture<'_, u64> {
        self.real.trim(tenant, max_bytes)
    }

    fn receipt(&self, tenant: TenantId, id: String) -> StoreFuture<'_, Option<SealedReceipt>> {
        self.real.receipt(tenant, id)
    }

    fn receipts(&self, tenant: TenantId, filter: ReceiptFilter) -> StoreFuture<'_, Vec<SealedReceipt>> {
        self.real.receipts(tenant, filter)
    }

    fn client_keys(&self) -> StoreFuture<'_, Vec<ClientKeyRow>> {
        self.real.client_keys()
    }

    fn add_client_key(&self, key: ClientKeyRow) -> StoreFuture<'_, bool> {
        self.real.add_client_key(key)
    }

    fn revoke_client_key(&self, name: String) -> StoreFuture<'_, bool> {
        self.real.revoke_client_key(name)
    }

    fn revision(&self) -> StoreFuture<'_, i64> {
        self.real.revision()
    }

    fn learned(&self, now: Time) -> StoreFuture<'_, Vec<String>> {
        self.real.learned(now)
    }

    fn learn(&self, rows: Vec<LearnedRow>) -> StoreFuture<'_, ()> {
        self.real.learn(rows)
    }

    fn forget_learned(&self) -> StoreFuture<'_, u64> {
        self.real.forget_learned()
    }

    fn put_spend(&self, rows: Vec<SpendRow>) -> StoreFuture<'_, ()> {
        self.real.put_spend(rows)
    }

    fn spend(&self, since_window: i64) -> StoreFuture<'_, Vec<SpendRow>> {
        self.real.spend(since_window)
    }
}
