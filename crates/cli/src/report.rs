//! How a failure reads on screen: what, why, and what to do about it.

use std::fmt;

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
            Weight::Error => eprintln!("error: {}", self.what),
            Weight::Notice => eprintln!("{}", self.what),
        }
        if let Some(hint) = &self.hint {
            eprintln!("\nhint: {hint}");
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
    eprintln!("{text}");
}
