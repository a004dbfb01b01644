//! What a gateway shares with others through the store: client keys, learned repairs, spending
//! and the key of the store itself.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use aside_core::rules::{AppliedRepair, LearnedRepair};
use aside_memory::StoreError;
use aside_session::HintedError;
use aside_session::log::{self, LogLevel};
use aside_session::serve_table::ServeKey;

use super::{Gateway, now};
use crate::config::Target;
use crate::key_admin;
use crate::limits::Limits;
use crate::memory_setup;

/// How often the store is asked whether it changed.
const STORE_POLL: Duration = Duration::from_secs(2);

/// How often expired rows are deleted.
const EXPIRE_EVERY: Duration = Duration::from_secs(3600);

impl Gateway {
    /// Reads keys and learned repairs from the store.
    pub(super) async fn read_store(&self) -> Result<(), HintedError> {
        let failed = |error: StoreError| HintedError::new(error.to_string());
        let rows = self.memory.client_keys().await.map_err(failed)?;
        let keys: Vec<Arc<ServeKey>> = rows.iter().filter_map(key_admin::stored_key).map(Arc::new).collect();
        if !rows.is_empty() {
            self.had_keys.store(true, Ordering::Relaxed);
        }
        *self.stored_keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        let learned = self.memory.learned(now()).await.map_err(failed)?;
        self.learned.write().unwrap_or_else(PoisonError::into_inner).extend(learned);
        self.follow_rotation().await;
        self.memory.refresh_tenants().await.map_err(failed)
    }

    /// Follows changes of the store: keys that other processes add or revoke, and rows that expire. Runs until it is
    /// dropped.
    pub async fn follow_store(&self) {
        let mut known = self.memory.revision().await.ok();
        // First delete what expired since the last run.
        let mut tidied: Option<Instant> = None;
        loop {
            tokio::time::sleep(STORE_POLL).await;
            self.share_limits().await;
            let revision = self.memory.revision().await.ok();
            if revision.is_some() && revision != known && self.read_store().await.is_ok() {
                known = revision;
            }
            if tidied.is_none_or(|at| at.elapsed() > EXPIRE_EVERY) {
                tidied = Some(Instant::now());
                if let Err(error) = self.tidy_store().await {
                    log::write(LogLevel::Warn, || error.to_string());
                }
            }
        }
    }

    /// Takes the new store key if another process has rotated it. A key in the environment needs a restart;
    /// until then, known tenants keep their memory and new ones have none.
    async fn follow_rotation(&self) {
        if !self.memory.has_another_key(now()).await.unwrap_or(false) {
            return;
        }
        let used = match memory_setup::store_key(&self.options, &self.config().serve.store) {
            Ok((key, _)) => self.memory.use_key(key, now()).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(problem) = used {
            log::write(LogLevel::Warn, || {
                format!("the key of the store has changed; restart with the new one: {problem}")
            });
        }
    }

    /// Deletes what has expired, and the oldest conversations of tenants above their limit.
    async fn tidy_store(&self) -> Result<(), StoreError> {
        self.memory.expire(now()).await?;
        if let Some(most) = self.config().serve.tenant_bytes {
            self.memory.trim(most as u64).await?;
        }
        Ok(())
    }

    /// Tells the store what clients have used, and reads what they used elsewhere.
    pub(super) async fn share_limits(&self) {
        let rows = self.limits.to_save();
        if !rows.is_empty() && self.memory.put_spend(rows.clone()).await.is_err() {
            self.limits.not_saved(&rows);
            return;
        }
        if let Ok(rows) = self.memory.spend(Limits::oldest_window(now().0 / 1000)).await {
            self.limits.set_others(&rows);
        }
    }

    /// Waits until everything is stored.
    pub async fn flush(&self) {
        self.share_limits().await;
        self.memory.flush().await;
        if let Some(recorder) = &self.recorder {
            recorder.flush().await;
        }
    }

    /// What an endpoint is known to need.
    pub(crate) fn learned_repairs(&self, target: &Target) -> Vec<AppliedRepair> {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        if learned.is_empty() {
            return Vec::new();
        }
        learned.of(&target.endpoint.repair_key()).to_vec()
    }

    /// Remembers what an endpoint needs, here and in the store.
    pub(crate) fn learn(self: &Arc<Gateway>, target: &Target, repairs: Vec<AppliedRepair>) {
        if repairs.is_empty() {
            return;
        }
        let new: Vec<LearnedRepair> = {
            let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
            let known: Vec<LearnedRepair> = learned.lasting().collect();
            for repair in repairs {
                learned.learn(&target.endpoint.repair_key(), repair);
            }
            learned.lasting().filter(|repair| !known.contains(repair)).collect()
        };
        // An endpoint with another URL in every run is not stored.
        if !new.is_empty() && target.endpoint.origin_url.is_some() {
            let gateway = Arc::clone(self);
            tokio::spawn(async move {
                if let Err(error) = gateway.memory.learn(&new, now()).await {
                    log::write(LogLevel::Warn, || error.to_string());
                }
            });
        }
    }
}
