//! How a failure reads on screen: what, why, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::io::IsTerminal;

use aside_core::screen::neutral;

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

    /// What to do about it.
    pub(crate) fn remedy(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    #[expect(clippy::print_stderr, reason = "this is the place that speaks to the person")]
    pub(crate) fn print(&self) {
        match self.weight {
            Weight::Error => eprintln!("error: {}", for_stderr(&self.what)),
            Weight::Notice => eprintln!("{}", for_stderr(&self.what)),
        }
        if let Some(hint) = &self.hint {
            eprintln!("\nhint: {}", for_stderr(hint));
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

/// A line to the person, who is not the one that reads standard output.
#[expect(clippy::print_stderr, reason = "like `Report::print`")]
pub(crate) fn tell(text: &str) {
    eprintln!("{}", for_stderr(text));
}

/// Errors quote what providers and models wrote: a terminal gets it without
/// what it would obey, a pipe as it is.
fn for_stderr(text: &str) -> Cow<'_, str> {
    if std::io::stderr().is_terminal() { neutral(text) } else { Cow::Borrowed(text) }
}

/// The same for standard output.
pub(crate) fn for_stdout(text: &str) -> Cow<'_, str> {
    if std::io::stdout().is_terminal() { neutral(text) } else { Cow::Borrowed(text) }
}
