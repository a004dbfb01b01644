//! Receipts, client keys, learned repairs, spending and tenants.

use std::sync::Arc;

use aside_core::block::Time;
use aside_core::rules::LearnedRepair;

use crate::error::StoreError;
use crate::memory::{Backend, Memory, open_tenant, seal_data_key};
use crate::store::{ClientKeyRow, LearnedRow, ReceiptFilter, SealedReceipt, SpendRow, TenantRow, WriteRow};
use crate::store_key::StoreKey;
use crate::stored_reply::DAY;
use crate::tenant::{Tenant, TenantId};

/// How long receipts and learned repairs are kept.
const WEEK: u64 = 7 * DAY;

/// What was done to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptRow {
    /// The id that the client got.
    pub id: String,
    /// When the request arrived.
    pub at: Time,
    /// The client's name.
    pub client: String,
    /// The model that the client asked for.
    pub model: String,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The header `aside-repaired`.
    pub repaired: String,
    /// The whole receipt as JSON. Empty in a list.
    pub body: String,
}

impl Memory {
    fn backend(&self) -> Option<&Backend> {
        self.inner.backend.as_ref()
    }

    /// Keeps a receipt for a week. It is written together with replies.
    pub fn put_receipt(&self, tenant: &Arc<Tenant>, receipt: ReceiptRow) {
        let Some(backend) = self.backend() else { return };
        let body = tenant.seal(receipt.id.as_bytes(), receipt.body.into_bytes());
        let expires = Time(receipt.at.0.saturating_add(WEEK));
        let ReceiptRow { id, at, client, model, status, repaired, .. } = receipt;
        let row = SealedReceipt { tenant: tenant.id(), id, at, expires, client, model, status, repaired, body };
        drop(backend.writer.write(vec![WriteRow::Receipt(row)]));
    }

    /// A receipt of this tenant.
    pub async fn receipt(&self, tenant: &Arc<Tenant>, id: &str) -> Result<Option<ReceiptRow>, StoreError> {
        let Some(backend) = self.backend() else { return Ok(None) };
        let found = backend.reads.ask(backend.store.receipt(tenant.id(), id.to_owned())).await?;
        Ok(found.and_then(|sealed| {
            let body = String::from_utf8(tenant.open(sealed.id.as_bytes(), sealed.body.clone())?).ok()?;
            Some(ReceiptRow { body, ..listed(sealed) })
        }))
    }

    /// Receipts of this tenant, newest first, without their bodies.
    pub async fn receipts(&self, tenant: &Arc<Tenant>, filter: ReceiptFilter) -> Result<Vec<ReceiptRow>, StoreError> {
        let Some(backend) = self.backend() else { return Ok(Vec::new()) };
        let found = backend.reads.ask(backend.store.receipts(tenant.id(), filter)).await?;
        Ok(found.into_iter().map(listed).collect())
    }

    /// The keys of clients that are in the store, by name.
    pub async fn client_keys(&self) -> Result<Vec<ClientKeyRow>, StoreError> {
        match self.backend() {
            Some(backend) => backend.store.client_keys().await,
            None => Ok(Vec::new()),
        }
    }

    /// Adds a key. False if there is one with that name or hash, or no store.
    pub async fn add_client_key(&self, key: ClientKeyRow) -> Result<bool, StoreError> {
        match self.backend() {
            Some(backend) => backend.store.add_client_key(key).await,
            None => Ok(false),
        }
    }

    /// Removes a key. False if there was none.
    pub async fn revoke_client_key(&self, name: &str) -> Result<bool, StoreError> {
        match self.backend() {
            Some(backend) => backend.store.revoke_client_key(name.to_owned()).await,
            None => Ok(false),
        }
    }

    /// A number that grows with every change of tenants, client keys and learned
    /// repairs. Ask every two seconds, and read them again when it has grown.
    pub async fn revision(&self) -> Result<i64, StoreError> {
        match self.backend() {
            Some(backend) => backend.reads.ask(backend.store.revision()).await,
            None => Ok(0),
        }
    }

    /// Drops what this process knows of tenants that others have deleted. Must be
    /// called when the revision has grown.
    pub async fn refresh_tenants(&self) -> Result<(), StoreError> {
        let Some(backend) = self.backend() else { return Ok(()) };
        let stored = backend.store.tenants().await?;
        let known: Vec<String> = self.tenants().keys().cloned().collect();
        for name in known {
            if !stored.iter().any(|row| row.name == name) {
                self.forget_cached(&name);
            }
        }
        Ok(())
    }

    /// The learned repairs that have not expired. One that only a newer version
    /// knows is skipped.
    pub async fn learned(&self, now: Time) -> Result<Vec<LearnedRepair>, StoreError> {
        let Some(backend) = self.backend() else { return Ok(Vec::new()) };
        let rows = backend.store.learned(now).await?;
        Ok(rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect())
    }

    /// Keeps learned repairs for a week.
    pub async fn learn(&self, repairs: &[LearnedRepair], now: Time) -> Result<(), StoreError> {
        let Some(backend) = self.backend() else { return Ok(()) };
        let row = |repair: &LearnedRepair| {
            let endpoint = format!("{}\n{}\n{}", repair.base_url, repair.dialect, repair.model);
            let expires = Time(now.0.saturating_add(WEEK));
            // Its members are strings and words, so this cannot fail.
            Some(LearnedRow { endpoint, repair: serde_json::to_string(repair).ok()?, expires })
        };
        backend.store.learn(repairs.iter().filter_map(row).collect()).await
    }

    /// Drops all learned repairs. Returns their number.
    pub async fn forget_learned(&self) -> Result<u64, StoreError> {
        match self.backend() {
            Some(backend) => backend.store.forget_learned().await,
            None => Ok(0),
        }
    }

    /// Replaces the totals that a replica has counted so far.
    pub async fn put_spend(&self, rows: Vec<SpendRow>) -> Result<(), StoreError> {
        match self.backend() {
            Some(backend) => backend.store.put_spend(rows).await,
            None => Ok(()),
        }
    }

    /// The totals of all replicas, for windows that began at or after this second.
    pub async fn spend(&self, since_window: i64) -> Result<Vec<SpendRow>, StoreError> {
        match self.backend() {
            Some(backend) => backend.store.spend(since_window).await,
            None => Ok(Vec::new()),
        }
    }

    /// Deletes a tenant and everything that it owns. False if there was none.
    pub async fn forget_tenant(&self, name: &str) -> Result<bool, StoreError> {
        self.forget_cached(name);
        match self.backend() {
            Some(backend) => backend.store.forget_tenant(TenantId::of(name)).await,
            None => Ok(false),
        }
    }

    /// Encrypts the keys of all tenants with another key. Returns their number.
    pub async fn rotate_store_key(&self, to: StoreKey) -> Result<u64, StoreError> {
        let Some(backend) = self.backend() else { return Ok(0) };
        let from = self.key();
        let mut rows = Vec::new();
        for row in backend.store.tenants().await? {
            let sealed = seal_data_key(&row.name, &open_tenant(&row, &from)?, &to);
            rows.push(TenantRow { sealed, ..row });
        }
        // One of the rows only proves that the key is correct.
        let n_tenants = rows.iter().filter(|row| !row.name.is_empty()).count() as u64;
        backend.store.reseal_tenants(rows).await?;
        self.set_key(to);
        Ok(n_tenants)
    }
}

fn listed(sealed: SealedReceipt) -> ReceiptRow {
    let SealedReceipt { id, at, client, model, status, repaired, .. } = sealed;
    ReceiptRow { id, at, client, model, status, repaired, body: String::new() }
}
