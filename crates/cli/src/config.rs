//! `aside config`: what is set, who set it, and changing it.

use std::io::Write;

use aside_core::settings::{Builtin, Change, Key, Layer, SettingError, Value};
use clap::Subcommand;

use crate::choice::{Named, choose};
use crate::output;
use crate::providers::{Providers, environment};
use crate::report::{Report, tell};
use crate::settings::{self, Loaded, Overrides, refused};
use crate::{Outcome, profile, user_files};

/// Read and change settings
///
/// A value comes from the highest layer that has one: built-in default, the
/// model's dialect, config.toml, the profile, `--set`. `aside config explain`
/// lists all settings. The keys `model` and `profile` work here too.
///
/// Exit code: 0 done, 2 asked wrongly.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  aside config set reasoning.effort high
  aside config explain reasoning.effort
  aside config explain reasoning.includeInContext -m kimi/kimi-k3")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the value of a setting
    #[command(after_help = "Example:\n  aside config get reasoning.effort")]
    Get {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: String,
        #[command(flatten)]
        about: About,
    },
    /// Write a setting to config.toml; comments and order stay
    #[command(after_help = "Example:\n  aside config set reasoning.effort high")]
    Set {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: String,
        /// Its new value; `aside config explain KEY` says which are valid
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Take a setting out of config.toml
    #[command(after_help = "Example:\n  aside config unset reasoning.effort")]
    Unset {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: String,
    },
    /// Say what a setting does, which value counts and who said it; without a key, all of them
    #[command(after_help = "Example:\n  aside config explain reasoning.effort")]
    Explain {
        /// A setting such as reasoning.effort, or `model`, or `profile`
        key: Option<String>,
        #[command(flatten)]
        about: About,
    },
    /// Print the config folder
    #[command(after_help = "Example:\n  ls \"$(aside config path)\"")]
    Path,
}

/// Which values are asked about.
#[derive(Debug, clap::Args)]
struct About {
    /// The model whose defaults count, as PROVIDER/MODEL; else the configured one
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    overrides: Overrides,
}

impl About {
    /// The settings with the model's own below them.
    fn load(&self) -> anyhow::Result<Loaded> {
        let mut loaded = self.overrides.load()?;
        let named = Named { flag: self.model.as_deref(), ..loaded.named() };
        let Some(choice) = named.first() else { return Ok(loaded) };
        let dialects = user_files::dialects()?;
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
        match providers.resolve(&choice.name, None) {
            Ok(provider) => provider.lay_defaults(&mut loaded.settings),
            Err(report) if self.model.is_some() => return Err(report.into()),
            // Settings can be looked at before the model they are for is right.
            Err(report) => tell(&format!("note: the model's own defaults are not known: {report}")),
        }
        Ok(loaded)
    }
}

/// What a key of the command line names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Model,
    Profile,
    Setting(Key),
}

impl Target {
    fn parse(name: &str) -> Result<Target, Report> {
        match name {
            "model" => Ok(Target::Model),
            "profile" => Ok(Target::Profile),
            _ => name.parse().map(Target::Setting).map_err(|error| unknown(&error)),
        }
    }
}

fn unknown(error: &SettingError) -> Report {
    Report::new(error.what()).hint(format!("{}, model, profile", error.hint()))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        Command::Get { key, about } => get(key, &about.load()?)?,
        Command::Set { key, value } => set(key, value)?,
        Command::Unset { key } => unset(key)?,
        Command::Explain { key: Some(key), about } => explain(key, &about.load()?)?,
        Command::Explain { key: None, about } => explain_all(&about.load()?)?,
        Command::Path => writeln!(output::stdout(), "{}", settings::folder()?.display())?,
    }
    Ok(Outcome::Done)
}

fn get(name: &str, loaded: &Loaded) -> anyhow::Result<()> {
    let found = match Target::parse(name)? {
        Target::Model => loaded.model.as_ref().map(|(model, _)| model.clone()),
        Target::Profile => loaded.profile.as_ref().map(|(name, _)| name.to_string()),
        Target::Setting(key) => loaded.settings.get(key).map(|(value, _)| value.to_string()),
    };
    match found {
        Some(text) => writeln!(output::stdout(), "{text}")?,
        // Nothing is not a value, so it is not printed as one.
        None => tell(&format!("{name} is unset")),
    }
    Ok(())
}

fn set(name: &str, text: &str) -> Result<(), Report> {
    let target = Target::parse(name)?;
    let mut file = settings::config_file(&settings::folder()?)?;
    let said = match target {
        Target::Profile => return profile::load(&text.parse().map_err(asked_badly)?),
        Target::Model => {
            file.set_text("model", Some(checked_model(text)?))?;
            format!("model = {text}")
        }
        Target::Setting(key) => {
            let change = Change::parse(name, text).map_err(|error| refused(&error))?;
            match change.value() {
                Some(value) => file.set(key, value)?,
                None => drop(file.unset(key)?),
            }
            change.value().map_or_else(|| format!("{key} is unset"), |value| format!("{key} = {value}"))
        }
    };
    file.write()?;
    tell(&format!("{said} in {}", file.path().display()));
    tell_if_outranked(target);
    Ok(())
}

/// A profile may say otherwise, and then the change shows nowhere.
fn tell_if_outranked(target: Target) {
    let Ok(loaded) = Overrides::default().load() else { return };
    let wins = match target {
        Target::Profile => None,
        Target::Model => {
            loaded.model.as_ref().filter(|(_, layer)| *layer > Layer::Config).map(|(model, _)| model.clone())
        }
        Target::Setting(key) => {
            let value = loaded.settings.get(key).filter(|(_, layer)| *layer > Layer::Config);
            value.map(|(value, _)| value.to_string())
        }
    };
    if let (Some(value), Some((profile, _))) = (wins, &loaded.profile) {
        tell(&format!("note: profile `{profile}` says {value}, and that counts"));
    }
}

fn unset(name: &str) -> Result<(), Report> {
    let mut file = settings::config_file(&settings::folder()?)?;
    let target = Target::parse(name);
    let removed = match &target {
        Ok(Target::Model) => file.set_text("model", None)?,
        Ok(Target::Profile) => file.set_text("profile", None)?,
        Ok(Target::Setting(key)) => file.unset(*key)?,
        // What is wrong in the file can be taken out by the name it has there.
        Err(_) => file.unset_name(name)?,
    };
    if removed {
        file.write()?;
        tell(&format!("{name} is unset in {}", file.path().display()));
        if let Ok(target) = target {
            tell_if_outranked(target);
        }
        return Ok(());
    }
    target.map(|_| tell(&format!("{name} was not set in {}", file.path().display())))
}

fn explain(name: &str, loaded: &Loaded) -> anyhow::Result<()> {
    let mut out = output::stdout();
    let key = match Target::parse(name)? {
        Target::Setting(key) => key,
        Target::Model => {
            let from = loaded.model.as_ref().map(|(model, layer)| (model.clone(), place(*layer, loaded)));
            let is_unset = from.is_none();
            explain_plain(&mut out, "model", "the model that runs, as PROVIDER/MODEL", from)?;
            return if is_unset { explain_choice(&mut out, loaded) } else { Ok(()) };
        }
        Target::Profile => {
            let active = loaded.profile.as_ref().map(|(name, layer)| (name.to_string(), layer.as_str().to_owned()));
            return explain_plain(&mut out, "profile", "the profile in use", active);
        }
    };
    let entry = key.entry();
    writeln!(out, "{}", headline(key, loaded))?;
    writeln!(out, "  {}", entry.doc)?;
    writeln!(out, "  values: {}", entry.kind.valid())?;
    if let Some(note) = interplay(key, loaded) {
        writeln!(out, "  note: {note}")?;
    }
    writeln!(out)?;
    for (layer, value) in loaded.settings.said(key) {
        writeln!(out, "  {:<9} {:<11} {}", layer.as_str(), on_one_line(value), source(layer, loaded))?;
    }
    if let Builtin::Unset(then) = entry.builtin {
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

/// What would run instead. Whether a server answers on this machine is not
/// asked here.
fn explain_choice(out: &mut impl Write, loaded: &Loaded) -> anyhow::Result<()> {
    let dialects = user_files::dialects()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
    let choice = choose(&loaded.named(), &providers, None);
    writeln!(out, "  now: {} ({})", choice.name, choice.why)?;
    Ok(())
}

fn explain_all(loaded: &Loaded) -> anyhow::Result<()> {
    let mut out = output::stdout();
    for key in Key::ALL {
        writeln!(out, "{}\n  {}", headline(*key, loaded), key.entry().doc)?;
    }
    Ok(())
}

/// The value that counts and who said it.
fn headline(key: Key, loaded: &Loaded) -> String {
    match loaded.settings.get(key) {
        Some((value, layer)) => format!("{key} = {}   ({})", on_one_line(value), place(layer, loaded)),
        None => match key.entry().builtin {
            Builtin::Unset(then) | Builtin::Is(then) => format!("{key} is unset   ({then})"),
        },
    }
}

/// Text of several lines is quoted, so that a list stays one.
pub(crate) fn on_one_line(value: &Value) -> String {
    let text = value.to_string();
    if text.contains(char::is_control) { value.to_json().to_string() } else { text }
}

/// The layer, with the name it has for the user.
fn place(layer: Layer, loaded: &Loaded) -> String {
    match (layer, &loaded.profile) {
        (Layer::Profile, Some((name, _))) => format!("profile {name}"),
        _ => layer.as_str().to_owned(),
    }
}

/// Where to look for a layer's word.
fn source(layer: Layer, loaded: &Loaded) -> String {
    match layer {
        Layer::Builtin => "default".to_owned(),
        Layer::Dialect => "of the model".to_owned(),
        Layer::Config => "config.toml".to_owned(),
        Layer::Profile => loaded.profile.as_ref().map(|(name, _)| format!("profiles/{name}.toml")).unwrap_or_default(),
        Layer::Session => "--set".to_owned(),
    }
}

/// A setting, another that decides along, its word, and what that means.
const INTERPLAY: [(Key, Key, Value, &str); 3] = [
    (Key::Enabled, Key::Effort, Value::Choice("none"), "reasoning.effort is none, so it counts as false"),
    (Key::Effort, Key::Enabled, Value::Bool(false), "reasoning.enabled is false, so no effort is asked for"),
    (
        Key::Display,
        Key::IncludeInResponse,
        Value::Bool(false),
        "reasoning.includeInResponse is false, so it counts as off",
    ),
];

fn interplay(asked: Key, loaded: &Loaded) -> Option<&'static str> {
    let says = |key: Key, word: &Value| loaded.settings.get(key).is_some_and(|(value, _)| value == word);
    INTERPLAY.iter().find(|(key, other, word, _)| *key == asked && says(*other, word)).map(|(_, _, _, note)| *note)
}

/// A model's name is checked by who knows the providers; here only that it is one.
pub(crate) fn checked_model(text: &str) -> Result<&str, Report> {
    let is_name = !text.is_empty() && !text.contains(|one: char| one.is_whitespace() || one.is_control());
    match is_name {
        true => Ok(text),
        false => Err(Report::new(format!("`{text}` cannot name a model")).hint("use PROVIDER/MODEL")),
    }
}

fn asked_badly(error: impl std::error::Error) -> Report {
    Report::new(error.to_string())
}
