//! Errors inside this module, before the path of the file is added.

use std::path::Path;

use crate::error::StoreError;
use crate::stored::Unreadable;

#[derive(Debug)]
pub(super) enum DbError {
    Sqlite(rusqlite::Error),
    Unreadable(Unreadable),
    Store(StoreError),
}

impl DbError {
    pub(super) fn with_path(self, path: &Path) -> StoreError {
        match self {
            DbError::Sqlite(error) => StoreError::of_sqlite(error, path),
            DbError::Unreadable(error) => StoreError::Damaged { path: path.to_owned(), detail: error.to_string() },
            DbError::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(error: rusqlite::Error) -> DbError {
        DbError::Sqlite(error)
    }
}

impl From<Unreadable> for DbError {
    fn from(error: Unreadable) -> DbError {
        DbError::Unreadable(error)
    }
}

impl From<StoreError> for DbError {
    fn from(error: StoreError) -> DbError {
        DbError::Store(error)
    }
}

impl From<serde_json::Error> for DbError {
    fn from(error: serde_json::Error) -> DbError {
        DbError::Unreadable(Unreadable(error.to_string()))
    }
}
