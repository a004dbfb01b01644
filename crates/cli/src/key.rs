//! `aside key`: keys in the system's keyring. They are never shown.

use std::io::{IsTerminal, Read, Write};

use clap::Subcommand;

use crate::output;
use crate::providers::{KeySource, Provider, Providers, environment};
use crate::report::{Report, tell};
use crate::settings::Overrides;
use crate::{Outcome, keyring, user_files};

/// Keep providers' keys in the system's keyring
///
/// A key is looked for in the provider's variable, then in the keyring, then
/// with its api_key_cmd. No file of aside's ever holds one.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Store a key, read from standard input
    #[command(after_help = "Example:\n  pass show deepseek | aside key set deepseek")]
    Set {
        #[arg(value_name = "PROVIDER")]
        provider: String,
    },
    /// Remove a key
    Unset {
        #[arg(value_name = "PROVIDER")]
        provider: String,
    },
    /// Say where each provider's key comes from; no key is shown
    List,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match &arguments.action {
        Action::Set { provider } => set(provider)?,
        Action::Unset { provider } => {
            known(provider)?;
            keyring::unset(provider)?;
            tell(&format!("the key of `{provider}` is out of the keyring"));
        }
        Action::List => list()?,
    }
    Ok(Outcome::Done)
}

/// A provider that takes a key.
fn known(id: &str) -> anyhow::Result<Provider> {
    let dialects = user_files::dialects()?;
    let loaded = Overrides::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
    // Which of its models does not matter here.
    let provider = providers.resolve(&format!("{id}/any"), None)?;
    if provider.keys.is_empty() {
        return Err(Report::new(format!("`{id}` takes no key")).hint("aside models lists who does").into());
    }
    Ok(provider)
}

fn set(id: &str) -> anyhow::Result<()> {
    known(id)?;
    let mut stdin = std::io::stdin();
    if stdin.is_terminal() {
        // It would stand on the screen and in its history.
        let hint = format!("pipe it in, as in: pass show {id} | aside key set {id}");
        return Err(Report::new("a key is not typed here, where it can be read").hint(hint).into());
    }
    let mut key = String::new();
    stdin.read_to_string(&mut key)?;
    if key.trim().is_empty() {
        return Err(Report::new("standard input is empty").hint("pipe the key in").into());
    }
    keyring::set(id, key.trim())?;
    tell(&format!("the key of `{id}` is in the keyring"));
    Ok(())
}

fn list() -> anyhow::Result<()> {
    let dialects = user_files::dialects()?;
    let loaded = Overrides::default().load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
    let presets = dialects.iter().filter(|dialect| dialect.api_key_env.is_some()).map(|dialect| dialect.id.clone());
    let mut ids: Vec<String> = loaded.providers.iter().map(|table| table.name.clone()).chain(presets).collect();
    ids.sort();
    ids.dedup();
    let mut out = output::stdout();
    for id in ids {
        let Ok(provider) = providers.resolve(&format!("{id}/any"), None) else { continue };
        if let Some(place) = place(&provider) {
            writeln!(out, "{id:<22} {place}")?;
        }
    }
    Ok(())
}

/// Where the key of a provider is, if it takes one.
fn place(provider: &Provider) -> Option<String> {
    let mut commands = false;
    let mut wanted = None;
    for source in &provider.keys {
        match source {
            KeySource::Env(name) if environment(name).is_some() => return Some(name.clone()),
            KeySource::Env(name) => wanted = Some(name.clone()),
            KeySource::Command(_) => commands = true,
        }
    }
    if keyring::find(&provider.id).is_some() {
        return Some("keyring".to_owned());
    }
    if commands {
        return Some("api_key_cmd".to_owned());
    }
    wanted.map(|name| format!("none; {name} is not set"))
}
