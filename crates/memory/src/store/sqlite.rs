//! The memory in one SQLite file. One thread writes, a few others read at the
//! same time, which the write-ahead log allows.

mod connect;
mod tables;
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use aside_core::block::Time;
use rusqlite::Connection;

use super::{
    ClientKeyRow, FindQuery, FoundRows, LearnedRow, ReceiptFilter, SealedReceipt, SpendRow, Store, StoreFuture,
    TenantRow, WriteRow,
};
use crate::error::StoreError;
use crate::tenant::TenantId;
use worker::Worker;

/// How many threads read.
const READERS: usize = 2;

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The end of the process, however it ends.
    #[default]
    Process,
    /// Also a power cut. Each commit waits for the disk.
    Power,
}

/// The memory in one SQLite file.
pub struct SqliteStore {
    // Dropped before the writer: the write-ahead log is removed only if the writer closes last.
    readers: Vec<Worker>,
    next_reader: AtomicUsize,
    writer: Worker,
}

impl SqliteStore {
    /// Opens or creates the file. Nobody else may read it.
    pub fn open(path: &Path, durability: Durability) -> Result<SqliteStore, StoreError> {
        let fail = |problem: String| StoreError::CannotOpen { location: path.display().to_string(), problem };
        let writer = connect::for_writing(path, durability).map_err(|error| fail(error.to_string()))?;
        connect::check_schema(&writer, &fail)?;
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let reader = connect::for_reading(path).map_err(|error| fail(error.to_string()))?;
            readers.push(Worker::start(reader, "memory reader").map_err(|error| fail(error.to_string()))?);
        }
        let writer = Worker::start(writer, "memory writer").map_err(|error| fail(error.to_string()))?;
        Ok(SqliteStore { readers, next_reader: AtomicUsize::new(0), writer })
    }

    fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let at = self.next_reader.fetch_add(1, Ordering::Relaxed) % READERS;
        self.readers.get(at).unwrap_or(&self.writer).run(work)
    }

    fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        self.writer.run(|connection| {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let result = work(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }
}

impl Store for SqliteStore {
    fn tenant(&self, new: TenantRow) -> StoreFuture<'_, TenantRow> {
        self.write(move |db| tables::tenant(db, new))
    }

    fn tenants(&self) -> StoreFuture<'_, Vec<TenantRow>> {
        self.read(|db| tables::tenants(db))
    }

    fn reseal_tenants(&self, rows: Vec<TenantRow>) -> StoreFuture<'_, ()> {
        self.write(move |db| tables::reseal_tenants(db, &rows))
    }

    fn forget_tenant(&self, tenant: TenantId) -> StoreFuture<'_, bool> {
        self.write(move |db| tables::forget_tenant(db, tenant))
    }

    fn find(&self, query: FindQuery) -> StoreFuture<'_, FoundRows> {
        self.read(move |db| tables::find(db, &query))
    }

    fn write(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()> {
        SqliteStore::write(self, move |db| tables::write(db, &batch))
    }

    fn write_late(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()> {
        SqliteStore::write(self, move |db| tables::write_late(db, &batch))
    }

    fn expire(&self, before_day: i64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let mut total = 0;
            loop {
                // In small batches, so that replies are written in between.
                let deleted = SqliteStore::write(self, move |db| tables::expire_some(db, before_day)).await?;
                total += deleted;
                if deleted == 0 {
                    return Ok(total);
                }
            }
        })
    }

    fn trim(&self, tenant: TenantId, max_bytes: u64) -> StoreFuture<'_, u64> {
        self.write(move |db| tables::trim(db, tenant, max_bytes))
    }

    fn receipt(&self, tenant: TenantId, id: String) -> StoreFuture<'_, Option<SealedReceipt>> {
        self.read(move |db| tables::receipt(db, tenant, &id))
    }

    fn receipts(&self, tenant: TenantId, filter: ReceiptFilter) -> StoreFuture<'_, Vec<SealedReceipt>> {
        self.read(move |db| tables::receipts(db, tenant, &filter))
    }

    fn client_keys(&self) -> StoreFuture<'_, Vec<ClientKeyRow>> {
        self.read(|db| tables::client_keys(db))
    }

    fn add_client_key(&self, key: ClientKeyRow) -> StoreFuture<'_, bool> {
        self.write(move |db| tables::add_client_key(db, &key))
    }

    fn revoke_client_key(&self, name: String) -> StoreFuture<'_, bool> {
        self.write(move |db| tables::revoke_client_key(db, &name))
    }

    fn revision(&self) -> StoreFuture<'_, i64> {
        self.read(|db| db.query_row("SELECT v FROM meta WHERE k = 'revision'", [], |row| row.get(0)))
    }

    fn learned(&self, now: Time) -> StoreFuture<'_, Vec<String>> {
        self.read(move |db| tables::learned(db, now))
    }

    fn learn(&self, rows: Vec<LearnedRow>) -> StoreFuture<'_, ()> {
        self.write(move |db| tables::learn(db, &rows))
    }

    fn forget_learned(&self) -> StoreFuture<'_, u64> {
        self.write(tables::forget_learned)
    }

    fn put_spend(&self, rows: Vec<SpendRow>) -> StoreFuture<'_, ()> {
        self.write(move |db| tables::put_spend(db, &rows))
    }

    fn spend(&self, since_window: i64) -> StoreFuture<'_, Vec<SpendRow>> {
        self.read(move |db| tables::spend(db, since_window))
    }
}
