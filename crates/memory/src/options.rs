//! How the memory is opened.

use std::path::PathBuf;
use std::time::Duration;

use crate::store::Durability;
use crate::store_key::StoreKey;

/// Where replies are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// Nowhere. Only what the client itself sends back can be restored.
    None,
    /// In this SQLite file.
    Sqlite(PathBuf),
    /// In this PostgreSQL database, which several gateways can share.
    Postgres(String),
}

/// Options of the memory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemoryOptions {
    pub(crate) location: StoreLocation,
    pub(crate) key: StoreKey,
    pub(crate) retention: Duration,
    pub(crate) cache_bytes: usize,
    pub(crate) spill: Option<(PathBuf, u64)>,
    pub(crate) deadline: Duration,
    pub(crate) read_deadline: Duration,
    pub(crate) durability: Durability,
}

impl MemoryOptions {
    /// Keeps replies for 30 days after their last use.
    pub fn new(location: StoreLocation, key: StoreKey) -> MemoryOptions {
        // A request that lacks thinking waits longer than the end of a reply waits for a commit.
        let (deadline, read_deadline) = match &location {
            StoreLocation::None | StoreLocation::Sqlite(_) => (Duration::from_millis(20), Duration::from_secs(5)),
            StoreLocation::Postgres(_) => (Duration::from_millis(150), Duration::from_secs(3)),
        };
        let spill = match &location {
            StoreLocation::Sqlite(path) => {
                let mut path = path.clone().into_os_string();
                path.push("-spill");
                Some((PathBuf::from(path), 64 << 20))
            }
            StoreLocation::None | StoreLocation::Postgres(_) => None,
        };
        MemoryOptions {
            location,
            key,
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            cache_bytes: 64 << 20,
            spill,
            deadline,
            read_deadline,
            durability: Durability::default(),
        }
    }

    /// How long a reply is kept after its last use.
    #[must_use]
    pub fn with_retention(self, retention: Duration) -> MemoryOptions {
        MemoryOptions { retention, ..self }
    }

    /// How many bytes of replies are kept in memory.
    #[must_use]
    pub fn with_cache_bytes(self, cache_bytes: usize) -> MemoryOptions {
        MemoryOptions { cache_bytes, ..self }
    }

    /// Where replies wait while the store is down, and how many bytes of them.
    #[must_use]
    pub fn with_spill(self, path: PathBuf, max_bytes: u64) -> MemoryOptions {
        MemoryOptions { spill: Some((path, max_bytes)), ..self }
    }

    /// How long the end of a reply waits for the store.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> MemoryOptions {
        MemoryOptions { deadline, ..self }
    }

    /// How long a request waits for the store. After that it continues without it.
    #[must_use]
    pub fn with_read_deadline(self, read_deadline: Duration) -> MemoryOptions {
        MemoryOptions { read_deadline, ..self }
    }

    /// What a commit of SQLite survives.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> MemoryOptions {
        MemoryOptions { durability, ..self }
    }
}
