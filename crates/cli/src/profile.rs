//! `aside profile`: named sets of thinking settings with a model.

use std::io::Write;

use aside_core::settings::Layer;
use aside_session::HintedError;
use aside_session::UserFolders;
use aside_session::profiles::{left_out, remove, write};
use aside_session::settings::{self, ProfileName};
use clap::Subcommand;

use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;
use crate::{ExitStatus, config};

/// Save thinking settings and a model under a name
///
/// A profile holds the `reasoning.*` values you have set and the model. All other
/// values come from config.toml, the model's dialect and the defaults.
/// Profiles are files: `profiles/NAME.toml` in the config folder.
///
/// Exit code: 0 done, 2 wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  aside profile save deep --set reasoning.effort=high
  aside profile load deep")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
enum ProfileCommand {
    /// Save the current settings, with those of --set and --model, under a name
    ///
    /// An existing profile is edited in place: its comments, and settings that
    /// are not about thinking, stay.
    #[command(after_help = "Example:
  aside profile save deep --set reasoning.effort=high --set reasoning.display=full")]
    Save {
        /// Letters, digits, `-`, `_` or `.`
        name: ProfileName,
        /// The model the profile is for
        #[arg(short, long, value_name = "MODEL")]
        model: Option<String>,
        #[command(flatten)]
        overrides: OverrideArguments,
    },
    /// Make a profile the active one
    ///
    /// It stays active until another is loaded or `aside config unset profile`.
    #[command(after_help = "Example:\n  aside profile load deep")]
    Load {
        /// One of `aside profile list`
        name: ProfileName,
    },
    /// List the profiles, one per line
    #[command(after_help = "Example:\n  aside profile list")]
    List,
    /// Show the settings of a profile
    #[command(after_help = "Example:\n  aside profile show deep")]
    Show {
        /// One of `aside profile list`
        name: ProfileName,
    },
    /// Delete a profile; if it was the active one, no profile is active afterwards
    #[command(after_help = "Example:\n  aside profile delete deep")]
    Delete {
        /// One of `aside profile list`
        name: ProfileName,
    },
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &arguments.command {
        ProfileCommand::Save { name, model, overrides } => save(name, model.as_deref(), overrides)?,
        ProfileCommand::Load { name } => load(name)?,
        ProfileCommand::List => list()?,
        ProfileCommand::Show { name } => show(name)?,
        ProfileCommand::Delete { name } => delete(name)?,
    }
    Ok(ExitStatus::Done)
}

fn save(name: &ProfileName, model: Option<&str>, overrides: &OverrideArguments) -> Result<(), HintedError> {
    let loaded = overrides.load()?;
    let model = model.map(config::checked_model).transpose()?;
    let model = model.or(loaded.model.as_ref().map(|(model, _)| model.as_str()));
    let path = write(&UserFolders::from_environment(), name, model, &loaded.settings)?;
    print_notice(&format!("saved profile `{name}` to {}", path.display()));
    if let Some(note) = left_out(&loaded.settings, &[Layer::Run]) {
        print_notice(&note);
    }
    Ok(())
}

pub(crate) fn load(name: &ProfileName) -> Result<(), HintedError> {
    let folders = UserFolders::from_environment();
    let folder = folders.require_config()?;
    settings::existing_profile(folder, name)?.contents()?;
    let mut config = settings::config_file(folder)?;
    config.set_text("profile", Some(&name.to_string()))?;
    config.write()?;
    print_notice(&format!("profile `{name}` is active"));
    Ok(())
}

fn list() -> anyhow::Result<()> {
    let folders = UserFolders::from_environment();
    let folder = folders.require_config()?;
    let active = settings::config_file(folder)?.contents()?.profile;
    let names = settings::profile_names(folder)?;
    if names.is_empty() {
        print_notice("there are none yet; aside profile save NAME makes one");
    }
    let mut out = output::stdout();
    for name in names {
        let mark = if active.as_deref() == Some(&name.to_string()) { " (active)" } else { "" };
        writeln!(out, "{name}{mark}")?;
    }
    Ok(())
}

fn show(name: &ProfileName) -> anyhow::Result<()> {
    let contents = settings::existing_profile(UserFolders::from_environment().require_config()?, name)?.contents()?;
    let mut out = output::stdout();
    if let Some(model) = contents.model {
        writeln!(out, "model = {model}")?;
    }
    for change in contents.changes {
        let value = change.value().map_or_else(|| "unset".to_owned(), settings::on_one_line);
        writeln!(out, "{} = {value}", change.key())?;
    }
    Ok(())
}

fn delete(name: &ProfileName) -> Result<(), HintedError> {
    let also = if remove(&UserFolders::from_environment(), name)? { "; no profile is active now" } else { "" };
    print_notice(&format!("deleted profile `{name}`{also}"));
    Ok(())
}
