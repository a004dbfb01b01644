//! What goes wrong inside, before it is known to which file.

use std::path::Path;

use crate::error::StoreError;
use crate::stored::Unreadable;

#[derive(Debug)]
pub(super) enum Fault {
    Sqlite(rusqlite::Error),
    Unreadable(Unreadable),
    Store(StoreError),
}

impl Fault {
    pub(super) fn at(self, path: &Path) -> StoreError {
        match self {
            Fault::Sqlite(error) => StoreError::of_sqlite(error, path),
            Fault::Unreadable(error) => StoreError::Damaged { path: path.to_owned(), detail: error.to_string() },
            Fault::Store(error) => error,
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        Fault::Sqlite(error)
    }
}

impl From<Unreadable> for Fault {
    fn from(error: Unreadable) -> Fault {
        Fault::Unreadable(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Store(error)
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Fault {
        Fault::Unreadable(Unreadable(error.to_string()))
    }
}
