//! `aside config`: shows settings and their layers, and changes config.toml.

use std::io::Write;

use aside_core::settings::{BuiltinDefault, Layer, SettingChange, SettingError, SettingKey, SettingValue};
use aside_session::HintedError;
use aside_session::UserFolders;
use aside_session::model_choice::{NamedModels, choose_model};
use aside_session::providers::{Providers, env_var};
use aside_session::session_recorder;
use aside_session::settings::{self, LoadedSettings, setting_error};
use aside_store::Store;
use clap::Subcommand;

use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;
use crate::{ExitStatus, profile};

/// Read and change settings
///
/// A value comes from the highest layer that has one: built-in default, the
/// model's dialect, config.toml, the profile, `--set`. `aside config explain`
/// lists all settings. The keys `model` and `profile` work here too.
///
/// Exit code: 0 done, 2 wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  aside config set reasoning.effort high
  aside config explain reasoning.effort
  aside config explain reasoning.includeInContext -m kimi/kimi-k3")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print the value of a setting
    #[command(after_help = "Example:\n  aside config get reasoning.effort")]
    Get {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: String,
        #[command(flatten)]
        query: ConfigQuery,
    },
    /// Write a setting to config.toml; comments and order stay
    #[command(after_help = "Example:\n  aside config set reasoning.effort high")]
    Set {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: String,
        /// The new value; `aside config explain KEY` lists the valid ones
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a setting from config.toml
    #[command(after_help = "Example:\n  aside config unset reasoning.effort")]
    Unset {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: String,
    },
    /// Explain a setting: its meaning, its value, and which layer set it; without a key, all settings
    #[command(after_help = "Example:\n  aside config explain reasoning.effort")]
    Explain {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: Option<String>,
        #[command(flatten)]
        query: ConfigQuery,
    },
    /// Forget what aside learned from refusals about endpoints; `aside doctor` lists it
    #[command(after_help = "Example:\n  aside config forget-learned")]
    ForgetLearned,
    /// Print the config folder
    #[command(after_help = "Example:\n  ls \"$(aside config path)\"")]
    Path,
}

/// The options of `get` and `explain`.
#[derive(Debug, clap::Args)]
struct ConfigQuery {
    /// The model whose defaults apply, as PROVIDER/MODEL; by default the configured one
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    overrides: OverrideArguments,
}

impl ConfigQuery {
    /// Loads the settings with the model's defaults as the lowest layer.
    fn load(&self) -> anyhow::Result<LoadedSettings> {
        let mut loaded = self.overrides.load()?;
        let named = NamedModels { flag: self.model.as_deref(), ..loaded.named_models() };
        let Some(choice) = named.first() else { return Ok(loaded) };
        let dialects = UserFolders::from_environment().dialects()?;
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
        match providers.resolve(&choice.name, None) {
            Ok(provider) => provider.apply_defaults(&mut loaded.settings),
            Err(report) if self.model.is_some() => return Err(report.into()),
            // A wrong model in the config does not prevent a look at the settings.
            Err(report) => print_notice(&format!("note: the model's own defaults are not known: {report}")),
        }
        Ok(loaded)
    }
}

/// A KEY argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConfigKey {
    Model,
    Profile,
    Setting(SettingKey),
}

impl ConfigKey {
    fn parse(name: &str) -> Result<ConfigKey, HintedError> {
        match name {
            "model" => Ok(ConfigKey::Model),
            "profile" => Ok(ConfigKey::Profile),
            _ => name.parse().map(ConfigKey::Setting).map_err(|error| unknown_key(&error)),
        }
    }
}

fn unknown_key(error: &SettingError) -> HintedError {
    HintedError::new(error.what()).hint(format!("{}, model, profile", error.hint()))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &arguments.command {
        ConfigCommand::Get { key, query } => get(key, &query.load()?)?,
        ConfigCommand::Set { key, value } => set(key, value)?,
        ConfigCommand::Unset { key } => unset(key)?,
        ConfigCommand::Explain { key: Some(key), query } => explain(key, &query.load()?)?,
        ConfigCommand::Explain { key: None, query } => explain_all(&query.load()?)?,
        ConfigCommand::ForgetLearned => {
            let store = session_recorder::open_writable_store(&UserFolders::from_environment())?;
            let n_repairs = store.forget_repairs().map_err(|error| session_recorder::store_error(&error))?;
            let what = if n_repairs == 1 { "repair" } else { "repairs" };
            writeln!(output::stdout(), "forgot {n_repairs} {what}")?
        }
        ConfigCommand::Path => {
            writeln!(output::stdout(), "{}", UserFolders::from_environment().require_config()?.display())?
        }
    }
    Ok(ExitStatus::Done)
}

fn get(name: &str, loaded: &LoadedSettings) -> anyhow::Result<()> {
    let found = match ConfigKey::parse(name)? {
        ConfigKey::Model => loaded.model.as_ref().map(|(model, _)| model.clone()),
        ConfigKey::Profile => loaded.profile.as_ref().map(|(name, _)| name.to_string()),
        ConfigKey::Setting(key) => loaded.settings.get(key).map(|(value, _)| value.to_string()),
    };
    match found {
        Some(text) => writeln!(output::stdout(), "{text}")?,
        // An unset value is a notice, not data.
        None => print_notice(&format!("{name} is unset")),
    }
    Ok(())
}

fn set(name: &str, text: &str) -> Result<(), HintedError> {
    let target = ConfigKey::parse(name)?;
    let mut file = settings::config_file(UserFolders::from_environment().require_config()?)?;
    let confirmation = match target {
        ConfigKey::Profile => return profile::load(&text.parse().map_err(usage_error)?),
        ConfigKey::Model => {
            file.set_text("model", Some(checked_model(text)?))?;
            format!("model = {text}")
        }
        ConfigKey::Setting(key) => {
            let change = SettingChange::parse(name, text).map_err(|error| setting_error(&error))?;
            match change.value() {
                Some(value) => file.set(key, value)?,
                None => drop(file.unset(key)?),
            }
            change.value().map_or_else(|| format!("{key} is unset"), |value| format!("{key} = {value}"))
        }
    };
    file.write()?;
    print_notice(&format!("{confirmation} in {}", file.path().display()));
    warn_if_overridden(target);
    Ok(())
}

/// Warns if the profile overrides the value just changed.
fn warn_if_overridden(target: ConfigKey) {
    let Ok(loaded) = OverrideArguments::default().load() else { return };
    let wins = match target {
        ConfigKey::Profile => None,
        ConfigKey::Model => {
            loaded.model.as_ref().filter(|(_, layer)| *layer > Layer::Config).map(|(model, _)| model.clone())
        }
        ConfigKey::Setting(key) => {
            let value = loaded.settings.get(key).filter(|(_, layer)| *layer > Layer::Config);
            value.map(|(value, _)| value.to_string())
        }
    };
    if let (Some(value), Some((profile, _))) = (wins, &loaded.profile) {
        print_notice(&format!("note: profile `{profile}` overrides it with {value}"));
    }
}

fn unset(name: &str) -> Result<(), HintedError> {
    let mut file = settings::config_file(UserFolders::from_environment().require_config()?)?;
    let target = ConfigKey::parse(name);
    let removed = match &target {
        Ok(ConfigKey::Model) => file.set_text("model", None)?,
        Ok(ConfigKey::Profile) => file.set_text("profile", None)?,
        Ok(ConfigKey::Setting(key)) => file.unset(*key)?,
        // An unknown key in the file can be removed by its name.
        Err(_) => file.unset_name(name)?,
    };
    if removed {
        file.write()?;
        print_notice(&format!("{name} is unset in {}", file.path().display()));
        if let Ok(target) = target {
            warn_if_overridden(target);
        }
        return Ok(());
    }
    target.map(|_| print_notice(&format!("{name} was not set in {}", file.path().display())))
}

fn explain(name: &str, loaded: &LoadedSettings) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let key = match ConfigKey::parse(name)? {
        ConfigKey::Setting(key) => key,
        ConfigKey::Model => {
            let from = loaded.model.as_ref().map(|(model, layer)| (model.clone(), layer_name(*layer, loaded)));
            let is_unset = from.is_none();
            explain_plain(&mut out, "model", "the model that runs, as PROVIDER/MODEL", from)?;
            return if is_unset { explain_choice(&mut out, loaded) } else { Ok(()) };
        }
        ConfigKey::Profile => {
            let active = loaded.profile.as_ref().map(|(name, layer)| (name.to_string(), layer.as_str().to_owned()));
            return explain_plain(&mut out, "profile", "the profile in use", active);
        }
    };
    let entry = key.info();
    writeln!(out, "{}", value_line(key, loaded))?;
    writeln!(out, "  {}", entry.doc)?;
    writeln!(out, "  values: {}", entry.kind.valid())?;
    if let Some(note) = related_setting_note(key, loaded) {
        writeln!(out, "  note: {note}")?;
    }
    writeln!(out)?;
    for (layer, value) in loaded.settings.values_of(key) {
        writeln!(out, "  {:<9} {:<11} {}", layer.as_str(), settings::on_one_line(value), layer_source(layer, loaded))?;
    }
    if let BuiltinDefault::Unset(then) = entry.builtin {
        writeln!(out, "  {:<9} {:<11} {then}", Layer::Builtin.as_str(), "unset")?;
    }
    Ok(())
}

fn explain_plain(out: &mut impl Write, name: &str, doc: &str, from: Option<(String, String)>) -> anyhow::Result<()> {
    match from {
        Some((value, place)) => writeln!(out, "{name} = {value}   ({place})\n  {doc}")?,
        None => writeln!(out, "{name} is unset\n  {doc}")?,
    }
    Ok(())
}

/// The model that would run instead. Does not look for local servers.
fn explain_choice(out: &mut impl Write, loaded: &LoadedSettings) -> anyhow::Result<()> {
    let dialects = UserFolders::from_environment().dialects()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let choice = choose_model(&loaded.named_models(), &providers, None);
    writeln!(out, "  now: {} ({})", choice.name, choice.why)?;
    Ok(())
}

fn explain_all(loaded: &LoadedSettings) -> anyhow::Result<()> {
    let mut out = output::stdout();
    for key in SettingKey::ALL {
        writeln!(out, "{}\n  {}", value_line(*key, loaded), key.info().doc)?;
    }
    Ok(())
}

/// The effective value and its layer.
fn value_line(key: SettingKey, loaded: &LoadedSettings) -> String {
    match loaded.settings.get(key) {
        Some((value, layer)) => format!("{key} = {}   ({})", settings::on_one_line(value), layer_name(layer, loaded)),
        None => match key.info().builtin {
            BuiltinDefault::Unset(then) | BuiltinDefault::Is(then) => format!("{key} is unset   ({then})"),
        },
    }
}

/// The layer's name for the user.
fn layer_name(layer: Layer, loaded: &LoadedSettings) -> String {
    match (layer, &loaded.profile) {
        (Layer::Profile, Some((name, _))) => format!("profile {name}"),
        _ => layer.as_str().to_owned(),
    }
}

/// Where a layer's values come from.
fn layer_source(layer: Layer, loaded: &LoadedSettings) -> String {
    match layer {
        Layer::Builtin => "default".to_owned(),
        Layer::Dialect => "of the model".to_owned(),
        Layer::Config => "config.toml".to_owned(),
        Layer::Profile => loaded.profile.as_ref().map(|(name, _)| format!("profiles/{name}.toml")).unwrap_or_default(),
        Layer::Session => "/set".to_owned(),
        Layer::Run => "--set".to_owned(),
    }
}

/// A setting, a related setting, a value of that one, and its effect.
const RELATED_SETTINGS: [(SettingKey, SettingKey, SettingValue, &str); 3] = [
    (
        SettingKey::Enabled,
        SettingKey::Effort,
        SettingValue::Choice("none"),
        "reasoning.effort is none, so it counts as false",
    ),
    (
        SettingKey::Effort,
        SettingKey::Enabled,
        SettingValue::Bool(false),
        "reasoning.enabled is false, so no effort is asked for",
    ),
    (
        SettingKey::Display,
        SettingKey::IncludeInResponse,
        SettingValue::Bool(false),
        "reasoning.includeInResponse is false, so it counts as off",
    ),
];

fn related_setting_note(queried: SettingKey, loaded: &LoadedSettings) -> Option<&'static str> {
    let has_value =
        |key: SettingKey, word: &SettingValue| loaded.settings.get(key).is_some_and(|(value, _)| value == word);
    RELATED_SETTINGS
        .iter()
        .find(|(key, other, word, _)| *key == queried && has_value(*other, word))
        .map(|(_, _, _, note)| *note)
}

/// Checks the form of a model's name. Whether the model exists is checked later.
pub(crate) fn checked_model(text: &str) -> Result<&str, HintedError> {
    let is_name = !text.is_empty() && !text.contains(|one: char| one.is_whitespace() || one.is_control());
    match is_name {
        true => Ok(text),
        false => Err(HintedError::new(format!("`{text}` cannot name a model")).hint("use PROVIDER/MODEL")),
    }
}

fn usage_error(error: impl std::error::Error) -> HintedError {
    HintedError::new(error.to_string())
}
