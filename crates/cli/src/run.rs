//! From the command line to a session that runs: which model, whose key, which
//! tools. Every front end begins here.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aside_confine::{Confine, Wish};
use aside_core::conversation::Conversation;
use aside_core::dialect::Dialects;
use aside_core::history::History;
use aside_core::question::Tier;
use aside_core::settings::{Key, Layer};
use aside_engine::attach::Attached;
use aside_engine::project_files::ProjectFiles;
use aside_engine::tools::{Mode, Permissions, ProjectMemory, Rules, Toolbox, Workplace};
use aside_engine::{Endpoint as Target, Http, Redactor, Secret, Session, prompt};
use aside_sim::{Options, Running, Simulator, Stage};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::Outcome;
use crate::choice::{self, Named};
use crate::mcp_tables::McpTable;
use crate::provider_tables::ProviderTable;
use crate::providers::{Endpoint, Provider, Providers, environment};
use crate::report::{self, Report};
use crate::settings::{Loaded, Overrides, refused};
pub(crate) use crate::trust::Trust;
use crate::user_files;
use crate::{confinement, keys, local, mcp};

/// Tokens a second of the simulator when somebody watches.
const READABLE_RATE: f64 = 80.0;

/// What a command line wants of a session.
pub(crate) struct Wanted<'a> {
    pub(crate) model: Option<&'a str>,
    /// The conversation to go on with.
    pub(crate) resumed: Option<&'a Conversation>,
    /// What tools may do without asking; none without tools.
    pub(crate) tools: Option<Mode>,
    /// Whether the folder's instructions may be sent.
    pub(crate) trust: Trust<'a>,
    /// Who is told what was chosen and what is missing.
    pub(crate) tell: &'a dyn Fn(&str),
}

/// One thread is enough: everything waits most of the time.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?)
}

/// A session, and what must live as long as it does.
pub(crate) struct Ready {
    pub(crate) session: Session,
    /// As PROVIDER/MODEL.
    pub(crate) model: String,
    /// The user's own providers, for a change of model.
    tables: Vec<ProviderTable>,
    /// Stops when it is dropped.
    simulator: Option<Running>,
    servers: mcp::Servers,
    /// The names of those in the config.
    pub(crate) server_names: Vec<String>,
    confine: Arc<Confine>,
}

impl Ready {
    /// Lets what the session started end by itself. Without it, it is ended
    /// all the same.
    pub(crate) async fn close(self) {
        self.servers.close().await;
    }

    /// How well commands are confined; nothing where the person switched that off.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self.confine.wish() {
            Wish::Off => None,
            Wish::Auto | Wish::Require | Wish::Strong => Some(self.confine.best()),
        }
    }

    /// Another model from here on.
    pub(crate) async fn switch(&mut self, name: &str) -> Result<(), Report> {
        let dialects = self.session.dialects();
        let providers = Providers { dialects: &dialects, tables: &self.tables, env: &environment };
        let provider = providers.resolve(name, None)?;
        if provider.endpoint == Endpoint::BuiltInSimulator && self.simulator.is_none() {
            self.simulator = Some(simulator(&dialects).await?);
        }
        let mut settings = self.session.settings.clone();
        provider.lay_defaults(&mut settings);
        let endpoint = target(provider, self.simulator.as_ref())?;
        self.session.redactor = self.session.redactor.with(endpoint.key.as_ref().map(|key| key.expose().to_owned()));
        report::redact(self.session.redactor.clone());
        self.session.endpoint = endpoint;
        self.session.settings = settings;
        name.clone_into(&mut self.model);
        Ok(())
    }

    /// Models that the user's own tables name.
    pub(crate) fn own_models(&self) -> impl Iterator<Item = String> + '_ {
        let names = |table: &'_ ProviderTable| {
            let names = table.models.iter().filter(|model| !model.pattern.contains('*'));
            names.map(|model| format!("{}/{}", table.name, model.pattern)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(names)
    }

    /// All that was said, as one value.
    pub(crate) fn conversation(&self, title: Option<String>) -> Conversation {
        let settings = self.session.settings.layer(Layer::Session);
        Conversation {
            model: Some(self.model.clone()),
            title,
            settings: settings.map(|(key, value)| (key.name().to_owned(), value.to_string())).collect(),
            history: self.session.history.clone(),
            ..Conversation::default()
        }
    }
}

pub(crate) async fn session(wanted: &Wanted<'_>, overrides: &Overrides) -> anyhow::Result<Ready> {
    let dialects = Arc::new(user_files::dialects()?);
    let loaded = overrides.load()?;
    let keys = key_variables(&dialects, &loaded.providers);
    let here = here()?;
    // They start while the rest is looked for.
    let tables = wanted.tools.map_or(&[][..], |_| &loaded.mcp);
    let confine = confinement::confine(&here, &loaded.tools, loaded.permissions.unreadable(&here));
    let mut servers = mcp::Servers::start(tables, &here, &confine);
    let server_names = tables.iter().filter(|table| table.enabled).map(|table| table.name.clone()).collect();
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
    let session = wanted.resumed.and_then(|resumed| resumed.model.as_deref());
    let named = Named { flag: wanted.model, session, ..loaded.named() };
    let choice = match named.first() {
        Some(choice) => choice,
        None => {
            // A key in the environment is faster to see than a server.
            let by_key = choice::choose(&named, &providers, None);
            let choice = match by_key.is_simulated() {
                true => {
                    let local = local::first_model(&local::servers(&dialects).await);
                    choice::choose(&named, &providers, local.as_deref())
                }
                false => by_key,
            };
            (wanted.tell)(&format!("{}: {}", choice.name, choice.why));
            choice
        }
    };
    let provider = providers.resolve(&choice.name, None)?;
    let mut settings = loaded.settings.clone();
    provider.lay_defaults(&mut settings);
    for (key, value) in wanted.resumed.iter().flat_map(|resumed| &resumed.settings) {
        // A session may be somebody else's, and must not have a file sent.
        let names_files = key == Key::SystemPrompt.name() && value.starts_with('@') || key == Key::ProjectFiles.name();
        if names_files {
            (wanted.tell)(&format!("note: {key} of the session names files and is not used"));
            continue;
        }
        settings.set(Layer::Session, key, value).map_err(|error| refused(&error))?;
    }
    overrides.apply(&mut settings)?;
    let simulator = match provider.endpoint {
        Endpoint::BuiltInSimulator => Some(simulator(&dialects).await?),
        Endpoint::At(_) | Endpoint::Missing { .. } => None,
    };
    let target = target(provider, simulator.as_ref())?;
    let redactor = Redactor::new(secrets(&keys, &loaded, &target));
    report::redact(redactor.clone());
    let mut session = Session::new(Arc::clone(&dialects), target, settings, Http::default());
    session.redactor = redactor;
    if let Some(mode) = wanted.tools {
        let instructions = session.settings.project_files().to_vec();
        session.tools = toolbox(&here, Arc::clone(&confine), keys, instructions, loaded.permissions, mode)?;
    }
    if let Some(tools) = servers.tools() {
        session.expect_tools(tools);
    }
    match wanted.resumed {
        Some(resumed) => session.go_on_with(resumed.history.clone()),
        None => instruct(&mut session, &here, wanted.tools.is_some(), &wanted.trust, wanted.tell).await?,
    }
    Ok(Ready { session, model: choice.name, tables: loaded.providers, simulator, servers, server_names, confine })
}

/// Every key that is known: it is printed nowhere, whoever echoes it.
fn secrets(variables: &[String], loaded: &Loaded, target: &Target) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password", "authorization", "cookie"].iter().any(|word| name.contains(word))
    };
    let mut secrets: Vec<String> = variables.iter().filter_map(|name| environment(name)).collect();
    secrets.extend(target.key.as_ref().map(|key| key.expose().to_owned()));
    let servers = loaded.mcp.iter().flat_map(McpTable::values);
    let named = target.headers.iter().chain(servers).filter(|(name, _)| is_secret(name));
    secrets.extend(named.flat_map(|(_, value)| in_value(value)));
    secrets
}

/// The secrets in a value: what stands behind `Bearer`, or the variables it names.
fn in_value(value: &str) -> Vec<String> {
    if !value.contains("${") {
        return vec![value.rsplit(' ').next().unwrap_or(value).to_owned()];
    }
    let named = value.split("${").skip(1).filter_map(|behind| behind.split_once('}'));
    named.filter_map(|(name, _)| environment(name)).collect()
}

/// The provider with its key and its URL, the simulator's included.
fn target(provider: Provider, simulator: Option<&Running>) -> Result<Target, Report> {
    let key = keys::find(&provider)?;
    let (base_url, place) = match (provider.endpoint, simulator) {
        (Endpoint::At(url), _) => (url.clone(), Some(url)),
        // Its port is another one each time; its seals are the same.
        (Endpoint::BuiltInSimulator, Some(running)) => (format!("http://{}", running.address()), None),
        (Endpoint::BuiltInSimulator, None) => return Err(Report::new("the simulator does not run")),
        (Endpoint::Missing { what, remedy }, _) => return Err(Report::new(what).hint(remedy)),
    };
    let Provider { id, dialect, model, access, headers, extra_body, .. } = provider;
    let account = key.as_deref().map(keys::fingerprint);
    let key = key.map(Secret::new);
    Ok(Target { provider: id, dialect, model, base_url, place, access, key, headers, extra_body, account })
}

/// The simulator in this process, on a free port of this machine.
async fn simulator(dialects: &Dialects) -> Result<Running, Report> {
    // Somebody who watches wants to be able to read along.
    let rate = std::io::stderr().is_terminal().then_some(READABLE_RATE);
    let stage = Stage::new(dialects.clone(), Options { rate, ..Options::default() });
    let bound = Simulator::bind(([127, 0, 0, 1], 0).into(), stage).await;
    let failed = |error| Report::new(format!("the built-in simulator cannot listen: {error}"));
    Ok(bound.map_err(failed)?.spawn())
}

/// Variables that hold keys of providers; no other process has business with them.
pub(crate) fn key_variables(dialects: &Dialects, tables: &[ProviderTable]) -> Vec<String> {
    let known = dialects.iter().filter_map(|dialect| dialect.api_key_env.clone());
    known.chain(tables.iter().filter_map(|table| table.api_key_env.clone())).collect()
}

pub(crate) fn here() -> Result<PathBuf, Report> {
    std::env::current_dir().map_err(|error| Report::new(format!("the working directory cannot be read: {error}")))
}

/// The tools of this folder, with what was allowed here before.
fn toolbox(
    here: &Path,
    confine: Arc<Confine>,
    keys: Vec<String>,
    instructions: Vec<String>,
    rules: Rules,
    mode: Mode,
) -> Result<Toolbox, Report> {
    let opened = Workplace::open(here);
    let work = opened.map_err(|error| Report::new(format!("cannot work in {}: {error}", here.display())))?;
    let work = work.hiding(keys).confined(confine).protecting(user_files::own_folders(), instructions);
    let mut permissions = Permissions::new(rules, mode);
    if let Some(folder) = user_files::data_folder() {
        let memory = ProjectMemory::open(&folder.join("permissions.json"), here);
        permissions = permissions.remembering(memory.map_err(|error| Report::new(error.to_string()))?);
    }
    Ok(Toolbox::standard(&work, permissions))
}

/// The system prompt: the user's, else a short one of ours where there are
/// tools; then what the project has to say.
async fn instruct(
    session: &mut Session,
    here: &Path,
    tools: bool,
    trust: &Trust<'_>,
    tell: &dyn Fn(&str),
) -> Result<(), Report> {
    let mut prompt = match session.settings.system_prompt() {
        Some(value) => prompt::system(value, here).map_err(|error| {
            Report::new(format!("cannot read the system prompt {value}: {error}"))
                .hint("prompt.system is a text, or @ and a file")
        })?,
        None if tools => prompt::built_in(here, &today()),
        None => String::new(),
    };
    if tools {
        let project = ProjectFiles::find(here, session.settings.project_files());
        for note in &project.notes {
            tell(&format!("note: {note}"));
        }
        if trust.allows(&project, tell).await? {
            prompt = [prompt, project.content()].join("\n\n");
        }
    }
    if !prompt.trim().is_empty() {
        session.instruct(prompt);
    }
    Ok(())
}

fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// The prompt as blocks, with what it attaches. Only `typed` can name files.
pub(crate) fn attach(typed: &str, piped: Option<&str>) -> Result<Attached, Report> {
    let attached = aside_engine::attach::attach(typed, piped, &here()?);
    attached.map_err(|error| Report::new(error.to_string()).hint(error.hint()))
}

/// Files that can be attached by name, as far as the project has them.
pub(crate) fn files_here(most: usize) -> Vec<String> {
    here().map(|here| prompt::names(&here, most)).unwrap_or_default()
}

/// Forgets what was said; the system prompt stays.
pub(crate) async fn begin_anew(ready: &mut Ready, tell: &dyn Fn(&str)) -> Result<(), Report> {
    ready.session.go_on_with(History::new());
    instruct(&mut ready.session, &here()?, true, &Trust::AsBefore, tell).await
}

/// The first Ctrl+C stops the turn and keeps what came; the second leaves. A
/// request to end the process does the same, and leaves after a while by itself.
pub(crate) struct Interrupts {
    pub(crate) stop: CancellationToken,
    /// Whoever hears it drops everything, so that no process is left behind.
    pub(crate) leave: CancellationToken,
    /// What the process ends with if it was asked to end.
    pub(crate) signal: Arc<OnceLock<Outcome>>,
}

/// How long an orderly end may take once the process is asked to end.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// What the process is to end with; nothing for Ctrl+C, which stops the turn.
    async fn next(&mut self) -> Option<Outcome> {
        tokio::select! {
            _ = self.interrupt.recv() => None,
            _ = self.terminate.recv() => Some(Outcome::Terminated),
            _ = self.hangup.recv() => Some(Outcome::HungUp),
        }
    }
}

pub(crate) fn interrupts() -> Interrupts {
    let interrupts =
        Interrupts { stop: CancellationToken::new(), leave: CancellationToken::new(), signal: Arc::default() };
    let (stop, leave, ended) = (interrupts.stop.clone(), interrupts.leave.clone(), Arc::clone(&interrupts.signal));
    tokio::spawn(async move {
        // Without signals to wait for, they end the process as they always do.
        let Ok(mut signals) = Signals::listen() else { return };
        let first = signals.next().await;
        if let Some(outcome) = first {
            ended.get_or_init(|| outcome);
        }
        stop.cancel();
        match first {
            None => drop(signals.next().await),
            Some(_) => drop(tokio::time::timeout(GRACE, signals.next()).await),
        }
        leave.cancel();
    });
    interrupts
}
