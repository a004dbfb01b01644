//! `aside doctor`: what is there, what is not, and what to do about it.

use std::io::{IsTerminal, Write};
use std::path::Path;

use aside_confine::{Want, Wish};
use aside_core::dialect::Dialects;
use aside_core::question::Tier;
use aside_engine::probe::Found;
use aside_store::Store;

use crate::choice::{self, Named};
use crate::output;
use crate::providers::{Endpoint, Providers, environment};
use crate::settings::Overrides;
use crate::{Outcome, confinement, keep, local, mcp, run, user_files};

/// Look at config, keys, servers and the terminal
///
/// Prints one line for each thing looked at; what wants doing has a remedy below
/// it. Keys are never shown.
///
/// Exit code: 0 all is well, 1 something is broken.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    overrides: Overrides,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    /// It works, and could be better.
    Could,
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    health: Health,
    what: String,
    remedy: Option<String>,
}

fn well(what: impl Into<String>) -> Finding {
    Finding { health: Health::Well, what: what.into(), remedy: None }
}

fn could(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding { health: Health::Could, what: what.into(), remedy: Some(remedy.into()) }
}

fn broken(what: impl Into<String>, remedy: Option<String>) -> Finding {
    Finding { health: Health::Broken, what: what.into(), remedy }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let mut findings = Vec::new();
    let dialects = match user_files::dialects() {
        Ok(dialects) => dialects,
        Err(error) => {
            findings.push(broken(format!("dialects: {error:#}"), None));
            Dialects::builtin()?
        }
    };
    let runtime = run::runtime()?;
    let servers = runtime.block_on(local::servers(&dialects));
    findings.extend(config(arguments, &dialects, &servers));
    findings.push(store());
    findings.push(keys(&dialects));
    findings.extend(servers_found(&servers));
    findings.extend(confined(arguments));
    findings.extend(runtime.block_on(mcp_servers(arguments)));
    findings.extend(terminal());
    print(&findings)?;
    let is_broken = findings.iter().any(|finding| finding.health == Health::Broken);
    Ok(if is_broken { Outcome::ProviderFailed } else { Outcome::Done })
}

fn print(findings: &[Finding]) -> std::io::Result<()> {
    let mut out = output::stdout();
    for finding in findings {
        let mark = match finding.health {
            Health::Well => "ok    ",
            Health::Could => "could ",
            Health::Broken => "broken",
        };
        writeln!(out, "{mark}  {}", finding.what)?;
        if let Some(remedy) = &finding.remedy {
            writeln!(out, "        → {}", remedy)?;
        }
    }
    Ok(())
}

/// The files, and the model that would run by them.
fn config(arguments: &Arguments, dialects: &Dialects, servers: &[Found]) -> Vec<Finding> {
    let mut findings = Vec::new();
    match user_files::config_folder() {
        Some(folder) => findings.push(folder_line(&folder)),
        None => {
            findings.push(broken("config: there is no folder for it", Some("set HOME or ASIDE_CONFIG_DIR".to_owned())))
        }
    }
    let loaded = match arguments.overrides.load() {
        Ok(loaded) => loaded,
        Err(report) => {
            let remedy = report.remedy().unwrap_or("mend the line; aside config path says where");
            findings.push(broken(format!("config: {report}"), Some(remedy.to_owned())));
            return findings;
        }
    };
    let providers = Providers { dialects, tables: &loaded.providers, env: &environment };
    let local = local::first_model(servers);
    let choice = choice::choose(&Named { ..loaded.named() }, &providers, local.as_deref());
    findings.push(match providers.resolve(&choice.name, None) {
        Err(report) => broken(
            format!("model: {} ({}): {report}", choice.name, choice.why),
            Some("name another with -m or aside config set model".to_owned()),
        ),
        Ok(provider) => match (&provider.endpoint, provider.keys.is_empty(), crate::keys::is_there(&provider)) {
            (Endpoint::Missing { what, remedy }, ..) => {
                broken(format!("model: {}: {what}", choice.name), Some(remedy.clone()))
            }
            (Endpoint::At(_), false, false) => {
                let remedy = "export its key; the line on keys names the variables".to_owned();
                broken(format!("model: {} ({}) has no key", choice.name, choice.why), Some(remedy))
            }
            (Endpoint::BuiltInSimulator, ..) => could(
                format!("model: {} ({})", choice.name, choice.why),
                "export a provider's key, or start a local server",
            ),
            (Endpoint::At(_), ..) => well(format!("model: {} ({})", choice.name, choice.why)),
        },
    });
    findings
}

fn folder_line(folder: &Path) -> Finding {
    let file = folder.join("config.toml");
    match file.exists() {
        true => well(format!("config: {}", file.display())),
        false => well(format!("config: none yet; {} would be read", file.display())),
    }
}

/// Whether sessions can be kept.
fn store() -> Finding {
    let Some(folder) = user_files::data_folder() else {
        return broken("sessions: there is no folder for them", Some("set HOME or ASIDE_DATA_DIR".to_owned()));
    };
    match keep::writable_store().and_then(|store| store.sessions(1).map_err(|error| keep::trouble(&error))) {
        Ok(sessions) if sessions.is_empty() => well(format!("sessions: none yet, in {}", folder.display())),
        Ok(_) => well(format!("sessions: in {}", folder.display())),
        Err(report) => broken(format!("sessions: {report}"), Some("ASIDE_DATA_DIR names another folder".to_owned())),
    }
}

/// Which keys are there. Their values are nobody's business.
fn keys(dialects: &Dialects) -> Finding {
    let mut variables: Vec<&str> = dialects.iter().filter_map(|dialect| dialect.api_key_env.as_deref()).collect();
    variables.sort_unstable();
    variables.dedup();
    let set: Vec<&str> = variables.iter().copied().filter(|name| environment(name).is_some()).collect();
    match set.is_empty() {
        true => could("keys: none is set", format!("export one of: {}", variables.join(", "))),
        false => well(format!("keys: {}", set.join(", "))),
    }
}

fn servers_found(servers: &[Found]) -> Vec<Finding> {
    if servers.is_empty() {
        return vec![well("local servers: none answers on the usual ports of Ollama, LM Studio, llama.cpp and vLLM")];
    }
    let line = |server: &Found| match server.models.as_slice() {
        [] => could(format!("{} at {}: it has no model", server.id, server.base_url), "pull or load one there"),
        models => well(format!("{} at {}: {}", server.id, server.base_url, models.join(", "))),
    };
    servers.iter().map(line).collect()
}

/// How well commands are confined, and why not better.
fn confined(arguments: &Arguments) -> Vec<Finding> {
    // What is wrong with the config was said above.
    let Ok(loaded) = arguments.overrides.load() else { return Vec::new() };
    let Ok(here) = run::here() else { return Vec::new() };
    let confine = confinement::confine(&here, &loaded.tools, loaded.permissions.unreadable(&here));
    let shown = match confine.confinement(Want::Usual) {
        Err(refused) => return vec![broken(format!("confinement: {refused}"), Some(BETTER.to_owned()))],
        Ok(_) if confine.wish() == Wish::Off => {
            let what = format!("confinement: off, by tools.confine; this machine has the tier {}", confine.best());
            return vec![could(what, "take tools.confine out of config.toml")];
        }
        Ok(shown) => shown,
    };
    let landlock = confine.found().landlock.map(|abi| format!("; Landlock ABI {abi}")).unwrap_or_default();
    let missing = confine.found().missing.join("; ");
    vec![match shown.tier {
        Tier::Strong => well(format!("confinement: {shown}{landlock}")),
        Tier::Kernel => could(format!("confinement: {shown}{landlock}; {missing}"), BETTER),
        Tier::Seatbelt => could(format!("confinement: {shown}; untested"), "try it with aside sandbox, and tell us"),
        Tier::None => could(format!("confinement: none, so every command is asked about; {missing}"), BETTER),
    }]
}

const BETTER: &str = "install bubblewrap (bwrap) and allow user namespaces; docs/security.md says more";

/// Starts each server of the config and counts what it offers.
async fn mcp_servers(arguments: &Arguments) -> Vec<Finding> {
    // What is wrong with the config was said above.
    let Ok(loaded) = arguments.overrides.load() else { return Vec::new() };
    let Ok(here) = run::here() else { return Vec::new() };
    let off = loaded.mcp.iter().filter(|table| !table.enabled);
    let mut findings: Vec<Finding> = off.map(|table| well(format!("mcp {}: enabled = false", table.name))).collect();
    let confine = confinement::confine(&here, &loaded.tools, loaded.permissions.unreadable(&here));
    for (name, found) in mcp::look(&loaded.mcp, &here, &confine).await {
        findings.push(match found {
            Ok(1) => well(format!("mcp {name}: 1 tool")),
            Ok(tools) => well(format!("mcp {name}: {tools} tools")),
            Err(trouble) => broken(format!("mcp {name}: {}", trouble.what), Some(trouble.remedy)),
        });
    }
    findings
}

fn terminal() -> Vec<Finding> {
    let streams = [("output", std::io::stdout().is_terminal()), ("errors", std::io::stderr().is_terminal())];
    let shown: Vec<String> =
        streams.iter().map(|(name, yes)| format!("{name} {}", if *yes { "yes" } else { "no" })).collect();
    let term = environment("TERM").unwrap_or_else(|| "not set".to_owned());
    let mut findings = vec![well(format!("terminal: {}; TERM {term}", shown.join(", ")))];
    let colour = match (environment("NO_COLOR"), environment("COLORTERM"), term.as_str()) {
        (Some(_), ..) => well("colour: off, because NO_COLOR is set"),
        (None, Some(depth), _) => well(format!("colour: {depth}")),
        (None, None, "dumb" | "not set") => could("colour: none", "set TERM to what your terminal is"),
        (None, None, _) => well("colour: by TERM"),
    };
    findings.push(colour);
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| environment(name)).unwrap_or_default();
    let is_utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
    findings.push(match is_utf8 {
        true => well(format!("letters: {locale}")),
        false => could(format!("letters: the locale is `{locale}`"), "set LANG to one that ends in .UTF-8"),
    });
    findings
}
