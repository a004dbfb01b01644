//! Loads the settings of a run: config, profile and command line. The dialect's
//! layer is added once the model is known.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use aside_core::settings::{Layer, SettingChange, SettingError, SettingKey, SettingValue, Settings, ThinkingDisplay};
use aside_engine::tools::PermissionRules;

use crate::confinement::ToolsTable;
use crate::error::HintedError;
use crate::mcp_tables::McpTable;
use crate::model_choice::NamedModels;
use crate::provider_tables::ProviderTable;
use crate::serve_table::ServeTable;
use crate::settings_file::{KeyEntry, SettingsFile, SettingsFileKind};
use crate::user_files::UserFolders;

/// Settings for one run, above those of the files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The profile to use instead of the active one.
    pub profile: Option<ProfileName>,
    /// Each as `KEY=VALUE`.
    pub settings: Vec<String>,
}

impl Overrides {
    /// Loads config, then the profile, then these.
    pub fn load(&self, folders: &UserFolders) -> Result<LoadedSettings, HintedError> {
        let mut loaded = match &folders.config {
            Some(folder) => load(folder, self.profile.as_ref())?,
            None => LoadedSettings::default(),
        };
        self.apply(&mut loaded.settings)?;
        Ok(loaded)
    }

    /// Applies them again, after a session has added its own settings.
    pub fn apply(&self, settings: &mut Settings) -> Result<(), HintedError> {
        let changes: Result<Vec<SettingChange>, SettingError> = self.settings.iter().map(|text| text.parse()).collect();
        for change in changes.map_err(|error| setting_error(&error))? {
            settings.apply(Layer::Run, change);
        }
        Ok(())
    }
}

/// The contents of the config folder's files.
#[derive(Debug, Default)]
pub struct LoadedSettings {
    pub settings: Settings,
    /// The model, and the layer that names it.
    pub model: Option<(String, Layer)>,
    /// The active profile, and the layer that names it: config or the command line.
    pub profile: Option<(ProfileName, Layer)>,
    /// The `[providers]` tables.
    pub providers: Vec<ProviderTable>,
    /// The `[permissions]` table.
    pub permissions: PermissionRules,
    /// The `[tools]` table: how commands are confined.
    pub tools: ToolsTable,
    /// The `[mcp]` tables.
    pub mcp: Vec<McpTable>,
    /// The `[keys]` table: key bindings of the screen.
    pub keys: Vec<KeyEntry>,
    /// The `[serve]` table: the gateway.
    pub serve: ServeTable,
}

impl LoadedSettings {
    /// The models named by profile and config.
    pub fn named_models(&self) -> NamedModels<'_> {
        let of =
            |wanted: Layer| self.model.as_ref().filter(|(_, layer)| *layer == wanted).map(|(name, _)| name.as_str());
        NamedModels { profile: of(Layer::Profile), config: of(Layer::Config), ..NamedModels::default() }
    }
}

/// Loads the config and a profile: the given one, else the active one.
pub fn load(folder: &Path, profile: Option<&ProfileName>) -> Result<LoadedSettings, HintedError> {
    let config = config_file(folder)?;
    let contents = config.contents()?;
    let mcp = config.mcp()?;
    let mut loaded = LoadedSettings {
        providers: config.providers()?,
        permissions: config.permissions(&mcp)?,
        tools: config.tools()?,
        mcp,
        keys: config.keys()?,
        serve: config.serve()?,
        ..LoadedSettings::default()
    };
    loaded.settings.replace(Layer::Config, contents.changes);
    loaded.model = contents.model.map(|model| (model, Layer::Config));
    let active = match (profile, &contents.profile) {
        (Some(name), _) => Some((name.clone(), Layer::Run)),
        (None, Some(name)) => {
            let error = |error: BadProfileName| config.error_at_key("profile", &error.to_string());
            Some((name.parse().map_err(error)?, Layer::Config))
        }
        (None, None) => None,
    };
    if let Some((name, _)) = &active {
        let file = existing_profile(folder, name).map_err(|report| match profile {
            Some(_) => report,
            None => missing_active_profile(&config, name),
        })?;
        let contents = file.contents()?;
        loaded.settings.replace(Layer::Profile, contents.changes);
        loaded.model = contents.model.map(|model| (model, Layer::Profile)).or(loaded.model);
    }
    loaded.profile = active;
    Ok(loaded)
}

fn missing_active_profile(config: &SettingsFile, name: &ProfileName) -> HintedError {
    config
        .error_at_key("profile", &format!("there is no profile `{name}`"))
        .hint("aside config unset profile, or aside profile load another")
}

pub fn config_file(folder: &Path) -> Result<SettingsFile, HintedError> {
    SettingsFile::read(folder.join("config.toml"), SettingsFileKind::Config)
}

/// Saves a setting for the next sessions.
pub(crate) fn save(folder: &Path, key: SettingKey, value: &SettingValue) -> Result<(), HintedError> {
    let mut file = config_file(folder)?;
    file.set(key, value)?;
    file.write()
}

/// Saves the chosen view of thinking for the next sessions.
pub(crate) fn save_view(folder: &Path, view: ThinkingDisplay) -> Result<(), HintedError> {
    let mut file = config_file(folder)?;
    file.set(SettingKey::Display, &SettingValue::Choice(view.as_str()))?;
    // `includeInResponse = false` in the same file would hide it again.
    let hides = |change: &SettingChange| {
        change.key() == SettingKey::IncludeInResponse && change.value() == Some(&SettingValue::Bool(false))
    };
    if file.contents()?.changes.iter().any(hides) {
        file.set(SettingKey::IncludeInResponse, &SettingValue::Bool(true))?;
    }
    file.write()
}

/// The configured providers, without checking the rest of the config.
pub fn configured_providers(folders: &UserFolders) -> Result<Vec<ProviderTable>, HintedError> {
    folders.config.as_ref().map_or(Ok(Vec::new()), |folder| config_file(folder)?.providers())
}

/// The profile's file, which need not exist.
pub(crate) fn profile_file(folder: &Path, name: &ProfileName) -> Result<SettingsFile, HintedError> {
    SettingsFile::read(profiles_folder(folder).join(format!("{name}.toml")), SettingsFileKind::Profile)
}

pub fn existing_profile(folder: &Path, name: &ProfileName) -> Result<SettingsFile, HintedError> {
    let file = profile_file(folder, name)?;
    if file.path().exists() {
        return Ok(file);
    }
    let known: Vec<String> = profile_names(folder)?.iter().map(ProfileName::to_string).collect();
    let hint = match known.is_empty() {
        true => "there are none yet; aside profile save NAME makes one".to_owned(),
        false => format!("the profiles are: {}", known.join(", ")),
    };
    Err(HintedError::new(format!("there is no profile `{name}`")).hint(hint))
}

/// All profiles, sorted. Ignores other files in the folder.
pub fn profile_names(folder: &Path) -> Result<Vec<ProfileName>, HintedError> {
    let folder = profiles_folder(folder);
    let unlisted = |error: io::Error| HintedError::new(format!("cannot list {}: {error}", folder.display()));
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unlisted(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let file = entry.map_err(unlisted)?.file_name();
        let stem = file.to_str().and_then(|name| name.strip_suffix(".toml"));
        names.extend(stem.and_then(|stem| stem.parse::<ProfileName>().ok()));
    }
    names.sort();
    Ok(names)
}

fn profiles_folder(folder: &Path) -> PathBuf {
    folder.join("profiles")
}

/// The error for an invalid setting.
pub fn setting_error(error: &SettingError) -> HintedError {
    HintedError::new(error.what()).hint(error.hint())
}

/// Text of several lines is quoted, so that each setting stays on its own line.
pub fn on_one_line(value: &SettingValue) -> String {
    let text = value.to_string();
    if text.contains(char::is_control) { value.to_json().to_string() } else { text }
}

/// A profile's name, safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProfileName(String);

#[derive(Debug)]
pub struct BadProfileName(String);

impl FromStr for ProfileName {
    type Err = BadProfileName;

    fn from_str(name: &str) -> Result<ProfileName, BadProfileName> {
        let fits = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
        // A leading dot would hide it, a leading dash would look like an option.
        let is_name = name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_');
        match is_name && name.len() <= 64 && name.chars().all(fits) {
            true => Ok(ProfileName(name.to_owned())),
            false => Err(BadProfileName(name.to_owned())),
        }
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for BadProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot name a profile; use up to 64 letters, digits, - _ and .", self.0)
    }
}

impl std::error::Error for BadProfileName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t3_a_view_that_was_chosen_is_shown_in_the_next_session() {
        let folder = std::env::temp_dir().join(format!("aside-test-keep-view-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let config = folder.join("config.toml");
        #[rustfmt::skip]
        let cases = [
            ("no file",      None,                                                                   "\"reasoning.display\" = \"full\""),
            ("another view", Some("# mine\n[settings]\nreasoning.display = \"off\"\n"),             "# mine"),
            ("hidden",       Some("[settings]\nreasoning.includeInResponse = false # not now\n"),    "# not now"),
            ("an alias",     Some("[settings]\nshow_thinking = false\n"),                            "[settings]"),
        ];
        for (name, before, kept) in cases {
            match before {
                Some(text) => fs::write(&config, text).unwrap(),
                None => drop(fs::remove_file(&config)),
            }
            save_view(&folder, ThinkingDisplay::Full).unwrap();
            let loaded = load(&folder, None).unwrap();
            assert_eq!(loaded.settings.display(), ThinkingDisplay::Full, "{name}");
            let text = fs::read_to_string(&config).unwrap();
            assert!(text.contains(kept), "{name}: {text}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
