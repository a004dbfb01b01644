//! Stores the repairs that endpoints need, so that the next session knows them from the start.

use std::sync::Arc;

use aside_core::rules::LearnedRepair;
use aside_engine::Session;
use aside_store::{SqliteStore, Store, StoreError};

use crate::session_recorder::now;

/// The stored repairs of all endpoints, as far as this session knows them.
#[derive(Debug, Default)]
pub(crate) struct StoredRepairs {
    store: Option<Arc<SqliteStore>>,
    known: Vec<LearnedRepair>,
}

impl StoredRepairs {
    /// Gives the stored repairs to a session. Without a store, it starts with none.
    pub(crate) fn load(store: Option<Arc<SqliteStore>>, session: &mut Session) -> Result<StoredRepairs, StoreError> {
        let known = store.as_ref().map_or(Ok(Vec::new()), |store| store.learned_repairs(now()))?;
        session.learned_repairs.extend(known.iter().cloned());
        Ok(StoredRepairs { store, known })
    }

    /// Stores what the session has learned since. An endpoint with another URL in every run is not stored.
    pub(crate) fn save(&mut self, session: &Session) -> Result<(), StoreError> {
        let Some(store) = self.store.as_ref().filter(|_| session.endpoint.origin_url.is_some()) else { return Ok(()) };
        let new: Vec<LearnedRepair> =
            session.learned_repairs.lasting().filter(|learned| !self.known.contains(learned)).collect();
        if new.is_empty() {
            return Ok(());
        }
        store.learn_repairs(&new, now())?;
        self.known.extend(new);
        Ok(())
    }
}
