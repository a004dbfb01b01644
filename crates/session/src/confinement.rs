//! How commands of tools are confined: `[tools]` of config.toml, and the folders of
//! aside that commands cannot read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside_confine::{Confine, ConfineSetting, Helper, PolicyPaths, TierLimit};
use aside_core::tool_mode::{ToolMode, UnknownToolMode};
use aside_engine::project_files::ProjectFiles;
use toml_edit::{Item, Table};

use crate::error::HintedError;
use crate::provider_tables::TableReader;
use crate::settings::LoadedSettings;
use crate::settings_file::SettingsFile;
use crate::user_files::UserFolders;

const KEYS: [&str; 4] = ["mode", "confine", "caches", "directories"];

/// The files of the config folder that decide which programs run and where keys are sent.
const OUR_FILES: [&str; 3] = ["config.toml", "profiles", "dialects"];

/// The checked `[tools]` table. It is read only from the user's config, because
/// sessions, profiles and imports may come from other people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolsTable {
    /// The mode in which sessions begin.
    pub mode: ToolMode,
    pub confine: ConfineSetting,
    /// Cache folders that commands may write to, in addition to the usual ones.
    pub caches: Vec<PathBuf>,
    /// Folders that commands may write to, in addition to the working directory.
    pub directories: Vec<PathBuf>,
}

pub fn read(file: &SettingsFile, root: &Table) -> Result<ToolsTable, HintedError> {
    let Some(reader) = TableReader::top_level(file, root, "tools")? else { return Ok(ToolsTable::default()) };
    reader.reject_unknown_keys(&KEYS)?;
    let confine = match reader.string("confine")? {
        None => ConfineSetting::default(),
        Some(word) => ConfineSetting::parse(&word).ok_or_else(|| {
            let words: Vec<String> = ConfineSetting::VALUES.iter().map(|word| format!("\"{word}\"")).collect();
            reader.error_at("confine", &format!("unknown value `{word}`")).hint(format!("one of: {}", words.join(", ")))
        })?,
    };
    let mode = match reader.string("mode")? {
        None => ToolMode::default(),
        Some(word) => word.parse().map_err(|error: UnknownToolMode| {
            reader.error_at("mode", &error.to_string()).hint(format!("one of: {}", ToolMode::WORDS.join(", ")))
        })?,
    };
    Ok(ToolsTable { mode, confine, caches: folders(&reader, "caches")?, directories: folders(&reader, "directories")? })
}

/// A list of folders, each absolute or below the home folder.
fn folders(reader: &TableReader<'_>, key: &str) -> Result<Vec<PathBuf>, HintedError> {
    let Some(item) = reader.table.get(key) else { return Ok(Vec::new()) };
    let error = || {
        let problem = "expected a list of folders, each beginning with / or ~/";
        reader.error_at(key, problem).hint(format!("{key} = [\"~/.cache/other\"]"))
    };
    let words = Item::as_array(item).ok_or_else(error)?;
    words.iter().map(|word| word.as_str().and_then(folder).ok_or_else(error)).collect()
}

fn folder(word: &str) -> Option<PathBuf> {
    let path = match word.strip_prefix("~/") {
        Some(subtable) => PathBuf::from(std::env::var_os("HOME")?).join(subtable),
        None => PathBuf::from(word),
    };
    (path.is_absolute() && !word.contains('\0')).then_some(path)
}

/// The confinement of commands started in this folder.
pub fn confine(here: &Path, folders: &UserFolders, loaded: &LoadedSettings) -> Arc<Confine> {
    let table = &loaded.tools;
    let root = std::fs::canonicalize(here).unwrap_or_else(|_| here.to_owned());
    let mut places = PolicyPaths::from_environment(root);
    // Those above the working directory can be links into it.
    places.protected.extend(ProjectFiles::possible_paths(here, loaded.settings.project_files()));
    places.caches.extend(table.caches.iter().cloned());
    places.directories.extend(table.directories.iter().cloned());
    let settings = folders.config.iter();
    places.protected.extend(settings.flat_map(|folder| OUR_FILES.map(|name| folder.join(name))));
    let answers = folders.data.iter();
    places
        .protected
        .extend(answers.flat_map(|folder| ["permissions.json", "trust.json"].map(|name| folder.join(name))));
    // A user who works inside one of aside's folders wants commands to read it.
    let is_around = |path: &PathBuf| !places.root.starts_with(path);
    let ours = folders.iter().filter_map(|path| std::path::absolute(path).ok());
    places.unreadable = ours.filter(is_around).collect();
    places.unreadable.extend(loaded.permissions.unreadable(here));
    let confine = Confine::new(Helper::this_program(), table.confine, places).with_limit(TierLimit::from_environment());
    Arc::new(match &folders.state {
        Some(folder) => confine.with_cache_in(folder),
        None => confine,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_whole_or_below_home() {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        assert_eq!(folder("/srv/cache"), Some("/srv/cache".into()));
        assert_eq!(folder("~/x").filter(|_| home.is_absolute()), Some(home.join("x")).filter(|_| home.is_absolute()));
        for wrong in ["x", "./x", "", "~", "/a\0b"] {
            assert_eq!(folder(wrong), None, "{wrong:?}");
        }
    }
}
