//! How a failure reads on screen: what, why, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{PoisonError, RwLock};

use aside_core::screen::neutral;
use aside_engine::Redactor;

/// An error with a remedy.
#[derive(Debug)]
pub(crate) struct Report {
    weight: Weight,
    what: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Error,
    /// Worth knowing, and nothing failed.
    Notice,
}

impl Report {
    pub(crate) fn new(what: impl Into<String>) -> Report {
        Report { weight: Weight::Error, what: what.into(), hint: None }
    }

    pub(crate) fn notice(what: impl Into<String>) -> Report {
        Report { weight: Weight::Notice, ..Report::new(what) }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Report {
        Report { hint: Some(hint.into()), ..self }
    }

    /// The same, with what it comes to said first.
    pub(crate) fn about(self, what: &str) -> Report {
        Report { what: format!("{what}: {}", self.what), ..self }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn print(&self) {
        match self.weight {
            Weight::Error => tell(&format!("error: {}", self.what)),
            Weight::Notice => tell(&self.what),
        }
        if let Some(hint) = &self.hint {
            tell(&format!("\nhint: {hint}"));
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Report {}

impl From<anyhow::Error> for Report {
    fn from(error: anyhow::Error) -> Report {
        match error.downcast::<Report>() {
            Ok(report) => report,
            Err(error) => Report::new(format!("{error:#}")),
        }
    }
}

/// The keys of this run. Whatever prints must know them, wherever it stands.
static KEYS: RwLock<Option<Redactor>> = RwLock::new(None);

/// From here on these are replaced in errors, notices and the log.
pub(crate) fn redact(keys: Redactor) {
    *KEYS.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
}

/// The text without keys.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    match &*KEYS.read().unwrap_or_else(PoisonError::into_inner) {
        Some(keys) => keys.clean(text),
        None => Cow::Borrowed(text),
    }
}

/// A line to the person, who is not the one that reads standard output.
pub(crate) fn tell(text: &str) {
    // A terminal that hung up has nobody at it.
    drop(writeln!(std::io::stderr(), "{}", for_stderr(&redacted(text))));
}

/// Errors quote what providers and models wrote: a terminal gets it without
/// what it would obey, a pipe as it is.
fn for_stderr(text: &str) -> Cow<'_, str> {
    if std::io::stderr().is_terminal() { neutral(text) } else { Cow::Borrowed(text) }
}
