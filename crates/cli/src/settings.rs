//! The settings a command runs with: config, profile, and what the command
//! line says for this run. The dialect's layer is laid under them by whoever
//! knows the model.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use aside_core::settings::{Change, Display, Key, Layer, SettingError, Settings, Value};
use aside_engine::tools::Rules;
use aside_tui::bindings::Bindings;

use crate::choice::Named;
use crate::confinement::ToolsTable;
use crate::mcp_tables::McpTable;
use crate::provider_tables::ProviderTable;
use crate::report::Report;
use crate::settings_file::{SettingsFile, Shape};
use crate::user_files;

/// What a command line may say about settings, for every command that has some.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Overrides {
    /// Use this profile instead of the active one
    #[arg(short, long, value_name = "PROFILE")]
    profile: Option<ProfileName>,

    /// Set something for this run only, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V")]
    settings: Vec<String>,
}

impl Overrides {
    /// Config, then the profile, then `--set`.
    pub(crate) fn load(&self) -> Result<Loaded, Report> {
        let mut loaded = match user_files::config_folder() {
            Some(folder) => load(&folder, self.profile.as_ref())?,
            None => Loaded::default(),
        };
        self.apply(&mut loaded.settings)?;
        Ok(loaded)
    }

    /// `--set` alone, for settings that a session has laid its own into.
    pub(crate) fn apply(&self, settings: &mut Settings) -> Result<(), Report> {
        let changes: Result<Vec<Change>, SettingError> = self.settings.iter().map(|text| text.parse()).collect();
        for change in changes.map_err(|error| refused(&error))? {
            settings.apply(Layer::Session, change);
        }
        Ok(())
    }
}

/// What the files of the config folder say.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) settings: Settings,
    /// The model, and which file names it.
    pub(crate) model: Option<(String, Layer)>,
    /// The profile in use, and whether the config or the command line names it.
    pub(crate) profile: Option<(ProfileName, Layer)>,
    /// Providers that the config has tables for.
    pub(crate) providers: Vec<ProviderTable>,
    /// What tools may do.
    pub(crate) permissions: Rules,
    /// How what they start is confined.
    pub(crate) tools: ToolsTable,
    /// Servers whose tools are offered too.
    pub(crate) mcp: Vec<McpTable>,
    /// Which key of the screen does what.
    pub(crate) keys: Bindings,
}

impl Loaded {
    /// Who names a model, beside a command line and a session.
    pub(crate) fn named(&self) -> Named<'_> {
        let of =
            |wanted: Layer| self.model.as_ref().filter(|(_, layer)| *layer == wanted).map(|(name, _)| name.as_str());
        Named { profile: of(Layer::Profile), config: of(Layer::Config), ..Named::default() }
    }
}

/// Config and a profile: the one given, else the active one.
pub(crate) fn load(folder: &Path, profile: Option<&ProfileName>) -> Result<Loaded, Report> {
    let config = config_file(folder)?;
    let contents = config.contents()?;
    let mcp = config.mcp()?;
    let mut loaded = Loaded {
        providers: config.providers()?,
        permissions: config.permissions(&mcp)?,
        tools: config.tools()?,
        mcp,
        keys: config.keys()?,
        ..Loaded::default()
    };
    loaded.settings.replace(Layer::Config, contents.changes);
    loaded.model = contents.model.map(|model| (model, Layer::Config));
    let active = match (profile, &contents.profile) {
        (Some(name), _) => Some((name.clone(), Layer::Session)),
        (None, Some(name)) => {
            let mistake = |error: BadProfileName| config.mistake_at("profile", &error.to_string());
            Some((name.parse().map_err(mistake)?, Layer::Config))
        }
        (None, None) => None,
    };
    if let Some((name, _)) = &active {
        let file = existing_profile(folder, name).map_err(|report| match profile {
            Some(_) => report,
            None => dangling(&config, name),
        })?;
        let contents = file.contents()?;
        loaded.settings.replace(Layer::Profile, contents.changes);
        loaded.model = contents.model.map(|model| (model, Layer::Profile)).or(loaded.model);
    }
    loaded.profile = active;
    Ok(loaded)
}

fn dangling(config: &SettingsFile, name: &ProfileName) -> Report {
    config
        .mistake_at("profile", &format!("there is no profile `{name}`"))
        .hint("aside config unset profile, or aside profile load another")
}

pub(crate) fn config_file(folder: &Path) -> Result<SettingsFile, Report> {
    SettingsFile::read(folder.join("config.toml"), Shape::Config)
}

/// A view that was chosen is the one of the next session too.
pub(crate) fn keep_view(folder: &Path, view: Display) -> Result<(), Report> {
    let mut file = config_file(folder)?;
    file.set(Key::Display, &Value::Choice(view.as_str()))?;
    // A no in the same file would hide it again.
    let hides = |change: &Change| change.key() == Key::IncludeInResponse && change.value() == Some(&Value::Bool(false));
    if file.contents()?.changes.iter().any(hides) {
        file.set(Key::IncludeInResponse, &Value::Bool(true))?;
    }
    file.write()
}

/// Providers of the user's own, whatever else the config says.
pub(crate) fn own_providers() -> Result<Vec<ProviderTable>, Report> {
    user_files::config_folder().map_or(Ok(Vec::new()), |folder| config_file(&folder)?.providers())
}

/// The profile's file, there or not.
pub(crate) fn profile_file(folder: &Path, name: &ProfileName) -> Result<SettingsFile, Report> {
    SettingsFile::read(profiles_folder(folder).join(format!("{name}.toml")), Shape::Profile)
}

pub(crate) fn existing_profile(folder: &Path, name: &ProfileName) -> Result<SettingsFile, Report> {
    let file = profile_file(folder, name)?;
    if file.path().exists() {
        return Ok(file);
    }
    let known: Vec<String> = profile_names(folder)?.iter().map(ProfileName::to_string).collect();
    let hint = match known.is_empty() {
        true => "there are none yet; aside profile save NAME makes one".to_owned(),
        false => format!("the profiles are: {}", known.join(", ")),
    };
    Err(Report::new(format!("there is no profile `{name}`")).hint(hint))
}

/// Every profile there is, sorted. Other files in the folder are not ours.
pub(crate) fn profile_names(folder: &Path) -> Result<Vec<ProfileName>, Report> {
    let folder = profiles_folder(folder);
    let unlisted = |error: io::Error| Report::new(format!("cannot list {}: {error}", folder.display()));
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

/// The folder to write to; reading does without one.
pub(crate) fn folder() -> Result<PathBuf, Report> {
    user_files::config_folder()
        .ok_or_else(|| Report::new("there is no config folder").hint("set HOME, or ASIDE_CONFIG_DIR to a folder"))
}

/// How a refused setting reads on screen.
pub(crate) fn refused(error: &SettingError) -> Report {
    Report::new(error.what()).hint(error.hint())
}

/// A name that is safe as the name of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProfileName(String);

#[derive(Debug)]
pub(crate) struct BadProfileName(String);

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
            keep_view(&folder, Display::Full).unwrap();
            let loaded = load(&folder, None).unwrap();
            assert_eq!(loaded.settings.display(), Display::Full, "{name}");
            let text = fs::read_to_string(&config).unwrap();
            assert!(text.contains(kept), "{name}: {text}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
