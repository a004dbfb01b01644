//! The `[keys]` table of config.toml as key bindings of the screen.

use aside_session::error::HintedError;
use aside_session::settings_file::KeyEntry;
use aside_tui::bindings::{BindingError, Bindings};

pub(crate) fn parse(entries: &[KeyEntry]) -> Result<Bindings, HintedError> {
    let mut bindings = Bindings::default();
    for entry in entries {
        let words: Vec<&str> = entry.keys.iter().map(String::as_str).collect();
        bindings.bind(&entry.action, &words).map_err(|refused| error(entry, refused))?;
    }
    match entries.iter().find_map(|entry| Some((entry, bindings.conflict(&entry.action)?))) {
        Some((entry, refused)) => Err(error(entry, refused)),
        None => Ok(bindings),
    }
}

fn error(entry: &KeyEntry, refused: BindingError) -> HintedError {
    HintedError::new(format!("{}: keys.{}: {}", entry.location, entry.action, refused.what)).hint(refused.hint)
}
