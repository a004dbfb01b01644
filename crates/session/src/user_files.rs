//! The user's folders and dialect files. Core does no IO, so files are read here.

use std::fs;
use std::path::{Path, PathBuf};

use aside_core::dialect::{DialectSource, Dialects};
use aside_core::model_table::ModelTables;
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;

use crate::error::HintedError;

/// The folders of aside. None where the system has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserFolders {
    /// Settings, profiles and dialects.
    pub config: Option<PathBuf>,
    /// Sessions, remembered permissions and trusted folders.
    pub data: Option<PathBuf>,
    /// The log.
    pub state: Option<PathBuf>,
}

impl UserFolders {
    /// `ASIDE_CONFIG_DIR`, `ASIDE_DATA_DIR` and `ASIDE_STATE_DIR`, else `aside` in
    /// the XDG folders.
    pub fn from_environment() -> UserFolders {
        let xdg = Xdg::new().ok();
        let folder = |variable: &str, usual: &dyn Fn(&Xdg) -> Option<PathBuf>| match std::env::var_os(variable) {
            Some(folder) if !folder.is_empty() => Some(folder.into()),
            _ => Some(xdg.as_ref().and_then(usual)?.join("aside")),
        };
        UserFolders {
            config: folder("ASIDE_CONFIG_DIR", &|xdg| Some(xdg.config_dir())),
            data: folder("ASIDE_DATA_DIR", &|xdg| Some(xdg.data_dir())),
            state: folder("ASIDE_STATE_DIR", &Xdg::state_dir),
        }
    }

    /// The config folder. Writing requires one; reading works without.
    pub fn require_config(&self) -> Result<&Path, HintedError> {
        self.config.as_deref().ok_or_else(|| {
            HintedError::new("there is no config folder").hint("set HOME, or ASIDE_CONFIG_DIR to a folder")
        })
    }

    pub(crate) fn require_data(&self) -> Result<&Path, HintedError> {
        self.data
            .as_deref()
            .ok_or_else(|| HintedError::new("there is no data folder").hint("set HOME, or ASIDE_DATA_DIR to a folder"))
    }

    /// All of them. Tools must not change them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PathBuf> {
        [self.config.clone(), self.data.clone(), self.state.clone()].into_iter().flatten()
    }

    /// The built-in dialects with the user's files merged over them, and the user's table of models.
    pub fn dialects(&self) -> Result<Dialects, HintedError> {
        let files = self.dialect_files()?;
        let sources: Vec<DialectSource<'_>> = files.iter().map(|(path, text)| DialectSource { path, text }).collect();
        let dialects = Dialects::with_user_files(&sources).map_err(|error| {
            HintedError::new(error.to_string()).hint("fix the line, or move the file out of the dialects folder")
        })?;
        let Some((path, text)) = self.model_table()? else { return Ok(dialects) };
        let models = ModelTables::with_user_table(DialectSource { path: &path, text: &text });
        let models = models.map_err(|error| {
            HintedError::new(error.to_string()).hint("fix the line, or move the file out of the config folder")
        })?;
        Ok(dialects.with_models(models))
    }

    /// `models.tsv` of the config folder.
    fn model_table(&self) -> Result<Option<(String, String)>, HintedError> {
        let Some(path) = self.config.as_ref().map(|folder| folder.join("models.tsv")) else { return Ok(None) };
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some((path.display().to_string(), text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(HintedError::new(format!("cannot read {}: {error}", path.display()))),
        }
    }

    fn dialect_files(&self) -> Result<Vec<(String, String)>, HintedError> {
        let Some(folder) = self.config.as_ref().map(|folder| folder.join("dialects")) else { return Ok(Vec::new()) };
        let unlisted = |error: std::io::Error| HintedError::new(format!("cannot list {}: {error}", folder.display()));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unlisted(error)),
        };
        let mut files = Vec::new();
        for entry in entries {
            let path = entry.map_err(unlisted)?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let text = fs::read_to_string(&path)
                    .map_err(|error| HintedError::new(format!("cannot read {}: {error}", path.display())))?;
                files.push((path.display().to_string(), text));
            }
        }
        // `read_dir` returns files in no particular order.
        files.sort();
        Ok(files)
    }
}
