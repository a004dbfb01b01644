//! Errors with a hint, and the keys that no message may contain.

use std::borrow::Cow;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use aside_engine::Redactor;

/// An error message for the user, with a hint about the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintedError {
    what: String,
    hint: Option<String>,
}

impl HintedError {
    pub fn new(what: impl Into<String>) -> HintedError {
        HintedError { what: what.into(), hint: None }
    }

    pub fn hint(self, hint: impl Into<String>) -> HintedError {
        HintedError { hint: Some(hint.into()), ..self }
    }

    /// Puts context before the message.
    pub fn prefixed(self, what: &str) -> HintedError {
        HintedError { what: format!("{what}: {}", self.what), ..self }
    }

    /// The hint, if there is one.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for HintedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for HintedError {}

/// The keys of all sessions of this process. Global, because every message must
/// be redacted.
static KEYS: RwLock<Option<Redactor>> = RwLock::new(None);

/// From now on, replaces these keys in errors, notices and the log.
pub(crate) fn redact(keys: &Redactor) {
    let mut known = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    *known = Some(match known.take() {
        Some(known) => known.and(keys),
        None => keys.clone(),
    });
}

/// Removes keys from the text.
pub fn redacted(text: &str) -> Cow<'_, str> {
    match &*KEYS.read().unwrap_or_else(PoisonError::into_inner) {
        Some(keys) => keys.clean(text),
        None => Cow::Borrowed(text),
    }
}
