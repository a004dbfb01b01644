//! Error messages with a hint, and notices on standard error.

use std::borrow::Cow;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::{PoisonError, RwLock};

use aside_core::terminal_text::terminal_safe;
use aside_engine::Redactor;

/// An error or notice with a hint.
#[derive(Debug)]
pub(crate) struct Report {
    severity: Severity,
    what: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    /// For information; nothing failed.
    Notice,
}

impl Report {
    pub(crate) fn new(what: impl Into<String>) -> Report {
        Report { severity: Severity::Error, what: what.into(), hint: None }
    }

    pub(crate) fn notice(what: impl Into<String>) -> Report {
        Report { severity: Severity::Notice, ..Report::new(what) }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Report {
        Report { hint: Some(hint.into()), ..self }
    }

    /// Puts context before the message.
    pub(crate) fn prefixed(self, what: &str) -> Report {
        Report { what: format!("{what}: {}", self.what), ..self }
    }

    /// The hint, if there is one.
    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn print(&self) {
        match self.severity {
            Severity::Error => print_notice(&format!("error: {}", self.what)),
            Severity::Notice => print_notice(&self.what),
        }
        if let Some(hint) = &self.hint {
            print_notice(&format!("\nhint: {hint}"));
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

/// The keys of this run. Global, because every message must be redacted.
static KEYS: RwLock<Option<Redactor>> = RwLock::new(None);

/// From now on, replaces these keys in errors, notices and the log.
pub(crate) fn redact(keys: Redactor) {
    *KEYS.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
}

/// Removes keys from the text.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    match &*KEYS.read().unwrap_or_else(PoisonError::into_inner) {
        Some(keys) => keys.clean(text),
        None => Cow::Borrowed(text),
    }
}

/// Prints a line for the user on standard error.
pub(crate) fn print_notice(text: &str) {
    // The terminal may have hung up.
    drop(writeln!(std::io::stderr(), "{}", for_stderr(&redacted(text))));
}

/// Errors quote text of providers and models, so terminal escapes are removed
/// unless standard error is a pipe.
fn for_stderr(text: &str) -> Cow<'_, str> {
    if std::io::stderr().is_terminal() { terminal_safe(text) } else { Cow::Borrowed(text) }
}

/// `1 line`, `2 lines`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
