//! Prints errors with their hints, and notices, on standard error.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};

use aside_core::terminal_text::terminal_safe;
use aside_session::error::{HintedError, redacted};

/// The error of a command as one message with a hint.
pub(crate) fn as_hinted(error: anyhow::Error) -> HintedError {
    match error.downcast::<HintedError>() {
        Ok(error) => error,
        Err(error) => HintedError::new(format!("{error:#}")),
    }
}

/// The message of an error, without keys.
pub(crate) fn as_message(error: &anyhow::Error) -> String {
    redacted(&format!("{error:#}")).into_owned()
}

pub(crate) fn print_error(error: &HintedError) {
    print_notice(&format!("error: {error}"));
    print_hint(error.hint_text());
}

pub(crate) fn print_hint(hint: Option<&str>) {
    if let Some(hint) = hint {
        print_notice(&format!("\nhint: {hint}"));
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
