//! `aside doctor`: checks the installation and suggests remedies.

use std::io::{IsTerminal, Write};
use std::path::Path;

use aside_confine::{ConfineSetting, RequestedAccess};
use aside_core::counted::bytes_text;
use aside_core::dialect::Dialects;
use aside_core::permission_question::Tier;
use aside_core::rules::LearnedRepair;
use aside_engine::probe::LocalServer;
use aside_session::model_choice::{self, NamedModels};
use aside_session::providers::{KeySource, Provider, ProviderEndpoint, Providers, env_var};
use aside_session::{HintedError, UserFolders};
use aside_session::{confinement, key_lookup, local_servers, mcp, session_recorder, start};
use aside_store::Store;

use crate::ExitStatus;
use crate::output;
use crate::override_arguments::OverrideArguments;

/// Check config, keys, servers and the terminal
///
/// Prints one line for each check, with a remedy below it where one is needed.
/// Keys are never shown.
///
/// Exit code: 0 all is well, 1 something is broken.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    overrides: OverrideArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckStatus {
    Ok,
    /// It works, but could be better.
    Suggestion,
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckResult {
    status: CheckStatus,
    what: String,
    remedy: Option<String>,
}

fn ok(what: impl Into<String>) -> CheckResult {
    CheckResult { status: CheckStatus::Ok, what: what.into(), remedy: None }
}

fn suggestion(what: impl Into<String>, remedy: impl Into<String>) -> CheckResult {
    CheckResult { status: CheckStatus::Suggestion, what: what.into(), remedy: Some(remedy.into()) }
}

fn broken(what: impl Into<String>, remedy: Option<String>) -> CheckResult {
    CheckResult { status: CheckStatus::Broken, what: what.into(), remedy }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let mut findings = Vec::new();
    let dialects = match UserFolders::from_environment().dialects() {
        Ok(dialects) => dialects,
        Err(error) => {
            findings.push(broken(format!("dialects: {error:#}"), None));
            Dialects::builtin()?
        }
    };
    let runtime = start::runtime()?;
    let servers = runtime.block_on(local_servers::servers(&dialects));
    findings.extend(config(arguments, &dialects, &servers));
    findings.push(store());
    findings.extend(learned());
    findings.push(keys(&dialects));
    findings.extend(provider_keys(arguments, &dialects));
    findings.extend(servers_found(&servers));
    findings.extend(confinement_tier(arguments));
    findings.extend(runtime.block_on(mcp_servers(arguments)));
    findings.extend(terminal());
    print(&findings)?;
    let is_broken = findings.iter().any(|finding| finding.status == CheckStatus::Broken);
    Ok(if is_broken { ExitStatus::ProviderFailed } else { ExitStatus::Done })
}

fn print(findings: &[CheckResult]) -> std::io::Result<()> {
    let mut out = output::stdout();
    for finding in findings {
        let mark = match finding.status {
            CheckStatus::Ok => "ok    ",
            CheckStatus::Suggestion => "could ",
            CheckStatus::Broken => "broken",
        };
        writeln!(out, "{mark}  {}", finding.what)?;
        if let Some(remedy) = &finding.remedy {
            writeln!(out, "        → {}", remedy)?;
        }
    }
    Ok(())
}

/// Checks the config files and the model they select.
fn config(arguments: &Arguments, dialects: &Dialects, servers: &[LocalServer]) -> Vec<CheckResult> {
    let mut findings = Vec::new();
    match UserFolders::from_environment().config {
        Some(folder) => findings.push(folder_line(&folder)),
        None => {
            findings.push(broken("config: there is no folder for it", Some("set HOME or ASIDE_CONFIG_DIR".to_owned())))
        }
    }
    let loaded = match arguments.overrides.load() {
        Ok(loaded) => loaded,
        Err(report) => {
            let remedy = report.hint_text().unwrap_or("fix the line; aside config path says where");
            findings.push(broken(format!("config: {report}"), Some(remedy.to_owned())));
            return findings;
        }
    };
    let providers = Providers { dialects, tables: &loaded.providers, env: &env_var };
    let local = local_servers::first_model(servers);
    let choice = model_choice::choose_model(&NamedModels { ..loaded.named_models() }, &providers, local.as_deref());
    findings.push(match providers.resolve(&choice.name, None) {
        Err(report) => broken(
            format!("model: {} ({}): {report}", choice.name, choice.why),
            Some("name another with -m or aside config set model".to_owned()),
        ),
        Ok(provider) => {
            match (&provider.endpoint, provider.keys.is_empty(), key_lookup::has_key(&provider, &env_var)) {
                (ProviderEndpoint::Missing { what, remedy }, ..) => {
                    broken(format!("model: {}: {what}", choice.name), Some(remedy.clone()))
                }
                (ProviderEndpoint::At(_), false, false) => {
                    let what = format!("model: {} ({}) has no key", choice.name, choice.why);
                    broken(what, key_lookup::key_remedy(&provider))
                }
                (ProviderEndpoint::BuiltInSimulator, ..) => suggestion(
                    format!("model: {} ({})", choice.name, choice.why),
                    "export a provider's key, or start a local server",
                ),
                (ProviderEndpoint::At(_), ..) => ok(format!("model: {} ({})", choice.name, choice.why)),
            }
        }
    });
    findings
}

fn folder_line(folder: &Path) -> CheckResult {
    let file = folder.join("config.toml");
    match file.exists() {
        true => ok(format!("config: {}", file.display())),
        false => ok(format!("config: none yet; {} would be read", file.display())),
    }
}

/// Above this size, `doctor` says how to delete old sessions.
const LARGE_STORE: u64 = 1 << 30;

/// Checks whether sessions can be saved, and how much space they take.
fn store() -> CheckResult {
    let Some(folder) = UserFolders::from_environment().data else {
        return broken("sessions: there is no folder for them", Some("set HOME or ASIDE_DATA_DIR".to_owned()));
    };
    let opened = session_recorder::open_writable_store(&UserFolders::from_environment()).and_then(|store| {
        let n_sessions = store.n_sessions().map_err(|error| session_recorder::store_error(&error))?;
        Ok((n_sessions, store.n_bytes()))
    });
    match opened {
        Ok((0, _)) => ok(format!("sessions: none yet, in {}", folder.display())),
        Ok((count, bytes)) => {
            let what = format!("sessions: {count} in {}, {}", folder.display(), bytes_text(bytes));
            match bytes >= LARGE_STORE {
                true => suggestion(what, "`aside sessions prune --older-than 90d` deletes old ones"),
                false => ok(what),
            }
        }
        Err(report) => broken(format!("sessions: {report}"), Some("ASIDE_DATA_DIR names another folder".to_owned())),
    }
}

/// Lists what endpoints need, as far as refusals showed it.
fn learned() -> Vec<CheckResult> {
    let store = session_recorder::open_store(&UserFolders::from_environment()).ok();
    let learned = store.and_then(|store| store.learned_repairs(session_recorder::now()).ok()).unwrap_or_default();
    let line = |repair: &LearnedRepair| {
        let details = match repair.details.is_empty() {
            true => String::new(),
            false => format!(" {}", repair.details.join(", ")),
        };
        let LearnedRepair { base_url, model, repair, .. } = repair;
        ok(format!("learned: {model} at {base_url}: {}{details}", repair.as_str()))
    };
    let mut findings: Vec<CheckResult> = learned.iter().map(line).collect();
    if let Some(last) = findings.last_mut() {
        last.remedy = Some("`aside config forget-learned` makes aside try again without".to_owned());
    }
    findings
}

/// Lists the keys that are set, but not their values.
fn keys(dialects: &Dialects) -> CheckResult {
    let mut variables: Vec<&str> = dialects.iter().filter_map(|dialect| dialect.api_key_env.as_deref()).collect();
    variables.sort_unstable();
    variables.dedup();
    let set: Vec<&str> = variables.iter().copied().filter(|name| env_var(name).is_some()).collect();
    match set.is_empty() {
        true => suggestion("keys: none is set", format!("export one of: {}", variables.join(", "))),
        false => ok(format!("keys: {}", set.join(", "))),
    }
}

/// Where the key of each provider in config.toml is read from, and whether it is there.
fn provider_keys(arguments: &Arguments, dialects: &Dialects) -> Vec<CheckResult> {
    // Errors in the config were reported above.
    let Ok(loaded) = arguments.overrides.load() else { return Vec::new() };
    let providers = Providers { dialects, tables: &loaded.providers, env: &env_var };
    let check = |name: &str| {
        // The key does not depend on the model.
        let resolved = providers.resolve(&format!("{name}/*"), None);
        resolved.map_or_else(|report| unresolved_provider(name, &report), |provider| provider_key(&provider))
    };
    loaded.providers.iter().map(|table| check(&table.name)).collect()
}

fn unresolved_provider(name: &str, report: &HintedError) -> CheckResult {
    broken(format!("provider {name}: {report}"), report.hint_text().map(str::to_owned))
}

fn provider_key(provider: &Provider) -> CheckResult {
    let id = &provider.id;
    if let ProviderEndpoint::Missing { what, remedy } = &provider.endpoint {
        return broken(format!("provider {id}: {what}"), Some(remedy.clone()));
    }
    let variables: Vec<&str> = provider.keys.iter().filter_map(KeySource::variable).collect();
    if let Some(name) = variables.iter().find(|name| env_var(name).is_some()) {
        return ok(format!("key of {id}: {name} is set"));
    }
    match (provider.keys.is_empty(), key_lookup::has_key(provider, &env_var), variables.first()) {
        (true, ..) => ok(format!("key of {id}: no key is sent; to send one, name its variable in api_key_env")),
        (false, true, Some(name)) => {
            ok(format!("key of {id}: {name} is not set; it is in the keyring or printed by a command"))
        }
        (false, true, None) => ok(format!("key of {id}: it is in the keyring or printed by a command")),
        (false, false, Some(name)) => CheckResult {
            status: CheckStatus::Suggestion,
            what: format!("key of {id}: {name} is not set"),
            remedy: key_lookup::key_remedy(provider),
        },
        (false, false, None) => suggestion(
            format!("key of {id}: there is none"),
            format!("aside key set {id}, or api_key_env in config.toml"),
        ),
    }
}

fn servers_found(servers: &[LocalServer]) -> Vec<CheckResult> {
    if servers.is_empty() {
        return vec![ok("local servers: none answers on the usual ports of Ollama, LM Studio, llama.cpp and vLLM")];
    }
    let line = |server: &LocalServer| match server.models.as_slice() {
        [] => suggestion(format!("{} at {}: it has no model", server.id, server.base_url), "pull or load one there"),
        models => ok(format!("{} at {}: {}", server.id, server.base_url, models.join(", "))),
    };
    servers.iter().map(line).collect()
}

/// Checks how well commands are confined, and why not better.
fn confinement_tier(arguments: &Arguments) -> Vec<CheckResult> {
    // Errors in the config were reported above.
    let Ok(loaded) = arguments.overrides.load() else { return Vec::new() };
    let Ok(here) = crate::working_directory() else { return Vec::new() };
    let confine = confinement::confine(&here, &UserFolders::from_environment(), &loaded);
    let shown = match confine.confinement(RequestedAccess::Standard) {
        Err(refused) => return vec![broken(format!("confinement: {refused}"), Some(BETTER.to_owned()))],
        Ok(_) if confine.setting() == ConfineSetting::Off => {
            let what = format!("confinement: off, by tools.confine; this machine has the tier {}", confine.best_tier());
            return vec![suggestion(what, "remove tools.confine from config.toml")];
        }
        Ok(shown) => shown,
    };
    let landlock = confine.support().landlock.map(|abi| format!("; Landlock ABI {abi}")).unwrap_or_default();
    let missing = confine.support().missing.join("; ");
    vec![match shown.tier {
        Tier::Strong => ok(format!("confinement: {shown}{landlock}")),
        Tier::Kernel => suggestion(format!("confinement: {shown}{landlock}; {missing}"), BETTER),
        Tier::Seatbelt => {
            suggestion(format!("confinement: {shown}; untested"), "try it with aside sandbox, and tell us")
        }
        Tier::None => suggestion(format!("confinement: none, so aside asks before every command; {missing}"), BETTER),
    }]
}

const BETTER: &str = "install bubblewrap (bwrap) and allow user namespaces; docs/security.md says more";

/// Starts each configured MCP server and counts its tools.
async fn mcp_servers(arguments: &Arguments) -> Vec<CheckResult> {
    // Errors in the config were reported above.
    let Ok(loaded) = arguments.overrides.load() else { return Vec::new() };
    let Ok(here) = crate::working_directory() else { return Vec::new() };
    let off = loaded.mcp.iter().filter(|table| !table.enabled);
    let mut findings: Vec<CheckResult> = off.map(|table| ok(format!("mcp {}: enabled = false", table.name))).collect();
    let confine = confinement::confine(&here, &UserFolders::from_environment(), &loaded);
    for (name, found) in mcp::count_tools(&loaded.mcp, &here, &confine).await {
        findings.push(match found {
            Ok(1) => ok(format!("mcp {name}: 1 tool")),
            Ok(tools) => ok(format!("mcp {name}: {tools} tools")),
            Err(problem) => broken(format!("mcp {name}: {}", problem.what), Some(problem.remedy)),
        });
    }
    findings
}

fn terminal() -> Vec<CheckResult> {
    let streams = [("output", std::io::stdout().is_terminal()), ("errors", std::io::stderr().is_terminal())];
    let shown: Vec<String> =
        streams.iter().map(|(name, yes)| format!("{name} {}", if *yes { "yes" } else { "no" })).collect();
    let term = env_var("TERM").unwrap_or_else(|| "not set".to_owned());
    let mut findings = vec![ok(format!("terminal: {}; TERM {term}", shown.join(", ")))];
    let colour = match (env_var("NO_COLOR"), env_var("COLORTERM"), term.as_str()) {
        (Some(_), ..) => ok("colour: off, because NO_COLOR is set"),
        (None, Some(depth), _) => ok(format!("colour: {depth}")),
        (None, None, "dumb" | "not set") => suggestion("colour: none", "set TERM to what your terminal is"),
        (None, None, _) => ok("colour: by TERM"),
    };
    findings.push(colour);
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| env_var(name)).unwrap_or_default();
    let is_utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
    findings.push(match is_utf8 {
        true => ok(format!("locale: {locale}")),
        false => suggestion(format!("locale: `{locale}` is not UTF-8"), "set LANG to one that ends in .UTF-8"),
    });
    findings
}
