//! What can go wrong with a store.

/// A store that does not answer, or that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It does not answer, or refuses what every store must accept. Trying again
    /// may help.
    #[error("the memory store is down: {0}")]
    Down(String),
    /// It was encrypted with another key.
    #[error("the memory store was encrypted with another key; set ASIDE_STORE_KEY to the key it was created with")]
    WrongKey,
    /// A newer version of aside created it.
    #[error("the memory store has schema {found}, and this version of aside knows only {known}; use a newer version")]
    NewerSchema {
        /// The version of the store.
        found: i64,
        /// The newest version that we know.
        known: i64,
    },
    /// It cannot be opened at all.
    #[error("cannot open the memory store {location}: {problem}")]
    CannotOpen {
        /// Where it is, without passwords.
        location: String,
        /// What went wrong.
        problem: String,
    },
    /// This build has no driver for it.
    #[error("this build of aside has no PostgreSQL support; use `store = \"sqlite\"`")]
    NotBuiltIn,
}

impl StoreError {
    /// Whether trying again may help.
    pub fn is_down(&self) -> bool {
        match self {
            StoreError::Down(_) => true,
            StoreError::WrongKey
            | StoreError::NewerSchema { .. }
            | StoreError::CannotOpen { .. }
            | StoreError::NotBuiltIn => false,
        }
    }
}
