//! The memory in PostgreSQL, or a database that speaks its protocol. Several
//! gateways can share it.
//!
//! Only plain tables and statements that can be repeated are used, without
//! session state, so that poolers and distributed databases work too. All
//! statements of a call are sent at once, which takes one round trip.

mod commands;
mod connection;
mod rows;
mod tls;

use std::sync::Arc;

use aside_core::block::Time;
use tokio_postgres::Row;

use super::{
    ClientKeyRow, FindQuery, FoundRows, LearnedRow, ReceiptFilter, SCHEMA, SealedReceipt, SpendRow, Store, StoreFuture,
    TenantRow, WriteRow, over_quota,
};
use crate::error::StoreError;
use crate::reply_id::ReplyId;
use crate::tenant::TenantId;
use commands::Command;
use connection::{Link, Pipeline};

/// The memory in a PostgreSQL database.
pub struct PostgresStore {
    reads: Link,
    writes: Link,
}

impl PostgresStore {
    /// Connects, and creates the tables if there are none.
    pub async fn open(url: &str) -> Result<PostgresStore, StoreError> {
        let (reads, writes) = (Link::new(url)?, Link::new(url)?);
        let store = PostgresStore { reads, writes };
        store.writes.create(commands::META).await?;
        let found = store.run(&store.writes, vec![commands::schema()], Pipeline::Separate).await?;
        let found: Option<i64> = found.into_iter().flatten().next().and_then(|row| row.try_get(0).ok());
        if let Some(found) = found.filter(|found| *found > SCHEMA) {
            return Err(StoreError::NewerSchema { found, known: SCHEMA });
        }
        for table in commands::TABLES {
            store.writes.create(table).await?;
        }
        store.run(&store.writes, commands::first_rows(), Pipeline::Separate).await?;
        Ok(store)
    }

    async fn run(&self, link: &Link, commands: Vec<Command>, pipeline: Pipeline) -> Result<Vec<Vec<Row>>, StoreError> {
        link.run(&commands, pipeline).await
    }

    /// Runs statements that belong together, and returns the rows of the first.
    fn change(&self, commands: Vec<Command>) -> StoreFuture<'_, Vec<Row>> {
        Box::pin(async move {
            let rows = self.run(&self.writes, commands, Pipeline::Transaction).await?;
            Ok(rows.into_iter().next().unwrap_or_default())
        })
    }

    fn select(&self, command: Command) -> StoreFuture<'_, Vec<Row>> {
        Box::pin(async move {
            let rows = self.run(&self.reads, vec![command], Pipeline::Separate).await?;
            Ok(rows.into_iter().next().unwrap_or_default())
        })
    }
}

impl Store for PostgresStore {
    fn tenant(&self, new: TenantRow) -> StoreFuture<'_, TenantRow> {
        Box::pin(async move {
            let (added, found) = commands::add_tenant(&new);
            let rows = self.run(&self.writes, vec![added, found], Pipeline::Separate).await?;
            let [added, found] = rows.as_slice() else { return Err(rows::malformed()) };
            if !added.is_empty() {
                self.change(vec![commands::bump()]).await?;
            }
            found.first().map(rows::tenant).ok_or_else(rows::malformed)?
        })
    }

    fn tenants(&self) -> StoreFuture<'_, Vec<TenantRow>> {
        Box::pin(async move { self.select(commands::tenants()).await?.iter().map(rows::tenant).collect() })
    }

    fn reseal_tenants(&self, rows: Vec<TenantRow>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let resealed = rows.iter().map(commands::reseal_tenant);
            self.change(resealed.chain([commands::bump()]).collect()).await.map(drop)
        })
    }

    fn forget_tenant(&self, tenant: TenantId) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            // Without its key, the rest is unreadable. It is deleted in small batches.
            let known = self.change(vec![commands::delete_tenant(tenant), commands::bump()]).await?;
            for delete in commands::delete_rows_of(tenant) {
                while !self.change(vec![delete.clone()]).await?.is_empty() {}
            }
            Ok(!known.is_empty())
        })
    }

    fn find(&self, query: FindQuery) -> StoreFuture<'_, FoundRows> {
        Box::pin(async move {
            let Some(tenant) = query.tenant else { return Ok(FoundRows::default()) };
            let asked = commands::find(tenant, &query);
            let found = self.run(&self.reads, asked, Pipeline::Separate).await?;
            let (mut found, in_parts) = rows::found(tenant, &found)?;
            if !in_parts.is_empty() {
                let parts = in_parts.iter().map(|reply| commands::parts(tenant, *reply)).collect();
                let parts = self.run(&self.reads, parts, Pipeline::Separate).await?;
                rows::join_parts(&mut found, &in_parts, &parts)?;
            }
            Ok(found)
        })
    }

    fn write(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.change(batch.iter().flat_map(commands::write).collect()).await.map(drop) })
    }

    fn write_late(&self, batch: Arc<Vec<WriteRow>>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let tenants: Vec<TenantId> = batch.iter().map(WriteRow::tenant).collect();
            let replies: Vec<ReplyId> = batch.iter().filter_map(WriteRow::new_reply).collect();
            let asked = commands::existing(&tenants, &replies);
            let answers = self.run(&self.writes, asked, Pipeline::Separate).await?;
            let rows::Existing { tenants, deleted } = rows::existing(&answers)?;
            // A reply that is deleted just now may come back, but it is never read: its mark stays.
            let is_wanted = |row: &&WriteRow| {
                let is_deleted = row.new_reply().is_some_and(|reply| deleted.contains(&(row.tenant(), reply)));
                tenants.contains(&row.tenant()) && !is_deleted
            };
            let wanted = batch.iter().filter(is_wanted);
            self.change(wanted.flat_map(commands::write).collect()).await.map(drop)
        })
    }

    fn expire(&self, before_day: i64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let mut total = 0;
            for delete in commands::expire(before_day) {
                loop {
                    let deleted = self.change(vec![delete.clone()]).await?.len() as u64;
                    total += deleted;
                    if deleted == 0 {
                        break;
                    }
                }
            }
            Ok(total)
        })
    }

    fn trim(&self, tenant: TenantId, max_bytes: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let sizes = self.select(commands::conversation_sizes(tenant)).await?;
            let sizes: Result<Vec<(Vec<u8>, u64)>, StoreError> = sizes
                .iter()
                .map(|row| Ok((rows::get(row, 0)?, u64::try_from(rows::get::<i64>(row, 1)?).unwrap_or(0))))
                .collect();
            let mut deleted = 0;
            for conversation in over_quota(sizes?, max_bytes) {
                deleted += self.change(commands::delete_conversation(tenant, &conversation)).await?.len() as u64;
            }
            Ok(deleted)
        })
    }

    fn receipt(&self, tenant: TenantId, id: String) -> StoreFuture<'_, Option<SealedReceipt>> {
        Box::pin(async move {
            let rows = self.select(commands::receipt(tenant, id)).await?;
            rows.first().map(|row| rows::receipt(tenant, row)).transpose()
        })
    }

    fn receipts(&self, tenant: TenantId, filter: ReceiptFilter) -> StoreFuture<'_, Vec<SealedReceipt>> {
        Box::pin(async move {
            let rows = self.select(commands::receipts(tenant, filter)).await?;
            rows.iter().map(|row| rows::receipt(tenant, row)).collect()
        })
    }

    fn client_keys(&self) -> StoreFuture<'_, Vec<ClientKeyRow>> {
        Box::pin(async move { self.select(commands::client_keys()).await?.iter().map(rows::client_key).collect() })
    }

    fn add_client_key(&self, key: ClientKeyRow) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let added = self.change(vec![commands::add_client_key(key), commands::bump()]).await?;
            Ok(!added.is_empty())
        })
    }

    fn revoke_client_key(&self, name: String) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let removed = self.change(vec![commands::revoke_client_key(name), commands::bump()]).await?;
            Ok(!removed.is_empty())
        })
    }

    fn revision(&self) -> StoreFuture<'_, i64> {
        Box::pin(async move {
            let rows = self.select(commands::revision()).await?;
            rows.first().ok_or_else(rows::malformed).and_then(|row| rows::get(row, 0))
        })
    }

    fn learned(&self, now: Time) -> StoreFuture<'_, Vec<String>> {
        Box::pin(async move {
            let rows = self.select(commands::learned(now)).await?;
            rows.iter().map(|row| rows::get(row, 0)).collect()
        })
    }

    fn learn(&self, rows: Vec<LearnedRow>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let learned = rows.into_iter().map(commands::learn);
            self.change(learned.chain([commands::bump()]).collect()).await.map(drop)
        })
    }

    fn forget_learned(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let removed = self.change(vec![commands::forget_learned(), commands::bump()]).await?;
            Ok(removed.len() as u64)
        })
    }

    fn put_spend(&self, rows: Vec<SpendRow>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.change(rows.into_iter().map(commands::put_spend).collect()).await.map(drop) })
    }

    fn spend(&self, since_window: i64) -> StoreFuture<'_, Vec<SpendRow>> {
        Box::pin(async move { self.select(commands::spend(since_window)).await?.iter().map(rows::spend).collect() })
    }
}
