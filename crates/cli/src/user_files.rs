//! The user's folders and dialect files. Core does no IO, so files are read here.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use aside_core::dialect::{DialectSource, Dialects};
use etcetera::BaseStrategy;

use crate::report::Report;

/// `$ASIDE_CONFIG_DIR`, else `aside` in the XDG config folder.
pub(crate) fn config_folder() -> Option<PathBuf> {
    match std::env::var_os("ASIDE_CONFIG_DIR") {
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => etcetera::base_strategy::Xdg::new().ok().map(|folders| folders.config_dir().join("aside")),
    }
}

/// `$ASIDE_DATA_DIR`, else `aside` in the XDG data folder.
pub(crate) fn data_folder() -> Option<PathBuf> {
    match std::env::var_os("ASIDE_DATA_DIR") {
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => etcetera::base_strategy::Xdg::new().ok().map(|folders| folders.data_dir().join("aside")),
    }
}

/// `$ASIDE_STATE_DIR`, else `aside` in the XDG state folder. Holds the log.
pub(crate) fn state_folder() -> Option<PathBuf> {
    match std::env::var_os("ASIDE_STATE_DIR") {
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => Some(etcetera::base_strategy::Xdg::new().ok()?.state_dir()?.join("aside")),
    }
}

/// The folders of aside that tools must not change.
pub(crate) fn own_folders() -> impl Iterator<Item = PathBuf> {
    [config_folder(), data_folder(), state_folder()].into_iter().flatten()
}

/// The built-in dialects with the user's files merged over them.
pub(crate) fn dialects() -> anyhow::Result<Dialects> {
    let files = dialect_files()?;
    let sources: Vec<DialectSource<'_>> = files.iter().map(|(path, text)| DialectSource { path, text }).collect();
    Dialects::with_user_files(&sources).map_err(|error| {
        Report::new(error.to_string()).hint("fix the line, or move the file out of the dialects folder").into()
    })
}

fn dialect_files() -> anyhow::Result<Vec<(String, String)>> {
    let Some(folder) = config_folder().map(|folder| folder.join("dialects")) else { return Ok(Vec::new()) };
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("cannot list {}", folder.display())),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.push((path.display().to_string(), text));
        }
    }
    // `read_dir` returns files in no particular order.
    files.sort();
    Ok(files)
}
