//! `aside key`: stores keys in the system's keyring. Keys are never printed.

use std::io::{IsTerminal, Read, Write};

use aside_session::HintedError;
use aside_session::UserFolders;
use aside_session::keyring;
use aside_session::providers::{KeySource, Provider, Providers, env_var};
use clap::Subcommand;

use crate::ExitStatus;
use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;

/// Store providers' keys in the system's keyring
///
/// aside looks for a key in the provider's environment variable, then in the
/// keyring, then runs its api_key_cmd. It never writes a key to a file.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: KeyCommand,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Store a key, read from standard input
    #[command(after_help = "Example:\n  pass show deepseek | aside key set deepseek")]
    Set {
        /// The name of the provider
        #[arg(value_name = "PROVIDER")]
        provider: String,
    },
    /// Remove a key
    Unset {
        /// The name of the provider
        #[arg(value_name = "PROVIDER")]
        provider: String,
    },
    /// Show where each provider's key comes from, but never the key
    List,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    match &arguments.action {
        KeyCommand::Set { provider } => set(provider)?,
        KeyCommand::Unset { provider } => {
            provider_with_key(provider)?;
            keyring::unset(provider)?;
            print_notice(&format!("the key of `{provider}` was removed from the keyring"));
        }
        KeyCommand::List => list()?,
    }
    Ok(ExitStatus::Done)
}

/// The provider with this id; fails if it takes no key.
fn provider_with_key(id: &str) -> anyhow::Result<Provider> {
    let dialects = UserFolders::from_environment().dialects()?;
    let loaded = OverrideArguments::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    // The key is the same for every model.
    let provider = providers.resolve(&format!("{id}/any"), None)?;
    if provider.keys.is_empty() {
        return Err(HintedError::new(format!("`{id}` takes no key"))
            .hint("aside models --rules lists which providers do")
            .into());
    }
    Ok(provider)
}

fn set(id: &str) -> anyhow::Result<()> {
    provider_with_key(id)?;
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        // A typed key would stay visible on the screen and in the scrollback.
        let hint = format!("pipe it in, as in: pass show {id} | aside key set {id}");
        return Err(HintedError::new("a key cannot be typed here, where it would be visible").hint(hint).into());
    }
    let mut key = String::new();
    stdin.read_to_string(&mut key)?;
    if key.trim().is_empty() {
        return Err(HintedError::new("standard input is empty").hint("pipe the key in").into());
    }
    keyring::set(id, key.trim())?;
    print_notice(&format!("the key of `{id}` is in the keyring"));
    Ok(())
}

fn list() -> anyhow::Result<()> {
    let dialects = UserFolders::from_environment().dialects()?;
    let loaded = OverrideArguments::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let presets = dialects.iter().filter(|dialect| dialect.api_key_env.is_some()).map(|dialect| dialect.id.clone());
    let mut ids: Vec<String> = loaded.providers.iter().map(|table| table.name.clone()).chain(presets).collect();
    ids.sort();
    ids.dedup();
    let mut out = output::stdout();
    for id in ids {
        let Ok(provider) = providers.resolve(&format!("{id}/any"), None) else { continue };
        if let Some(key_location) = key_location(&provider) {
            writeln!(out, "{id:<22} {key_location}")?;
        }
    }
    Ok(())
}

/// Where the provider's key comes from; none if the provider takes no key.
fn key_location(provider: &Provider) -> Option<String> {
    let mut commands = false;
    let mut unset_variable = None;
    for source in &provider.keys {
        match source {
            KeySource::Env(name) if env_var(name).is_some() => return Some(name.clone()),
            KeySource::Env(name) => unset_variable = Some(name.clone()),
            KeySource::Command { .. } => commands = true,
        }
    }
    if keyring::find(&provider.id).is_some() {
        return Some("keyring".to_owned());
    }
    if commands {
        return Some("api_key_cmd".to_owned());
    }
    unset_variable.map(|name| format!("none; {name} is not set"))
}
