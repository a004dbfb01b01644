//! Starts a session for every front end: picks the model, finds its key, sets up
//! tools and the system prompt.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aside_confine::{Confine, ConfineSetting};
use aside_core::conversation::Conversation;
use aside_core::dialect::Dialects;
use aside_core::history::History;
use aside_core::permission_question::Tier;
use aside_core::settings::{Layer, SettingKey};
use aside_engine::attachments::AttachedPrompt;
use aside_engine::project_files::ProjectFiles;
use aside_engine::tools::{PermissionMode, PermissionRules, Permissions, ProjectMemory, Toolbox, WorkingDir};
use aside_engine::{Endpoint, Http, Redactor, Secret, Session, prompt};
use aside_sim::{RunningSimulator, ScriptOptions, Service, Simulator};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::ExitStatus;
use crate::mcp_tables::McpTable;
use crate::model_choice::{self, NamedModels};
use crate::provider_tables::ProviderTable;
use crate::providers::{Provider, ProviderEndpoint, Providers, env_var};
use crate::report::{self, Report};
use crate::settings::{LoadedSettings, Overrides, setting_error};
pub(crate) use crate::trust::Trust;
use crate::user_files;
use crate::{confinement, key_lookup, local_servers, mcp};

/// The simulator's tokens per second on a terminal.
const READABLE_RATE: f64 = 80.0;

/// How to start a session.
pub(crate) struct StartOptions<'a> {
    pub(crate) model: Option<&'a str>,
    /// The conversation to continue.
    pub(crate) resumed: Option<&'a Conversation>,
    /// The permission mode of tools; none offers no tools.
    pub(crate) tools: Option<PermissionMode>,
    /// Whether the folder's `AGENTS.md` may be sent.
    pub(crate) trust: Trust<'a>,
    /// Receives notices, such as the choice of model.
    pub(crate) notify: &'a dyn Fn(&str),
}

/// A single-threaded runtime: almost all work is waiting for IO.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?)
}

/// A session with everything that must live as long as it.
pub(crate) struct ActiveSession {
    pub(crate) session: Session,
    /// As PROVIDER/MODEL.
    pub(crate) model: String,
    /// The configured providers, for `switch`.
    tables: Vec<ProviderTable>,
    /// Stops when dropped.
    simulator: Option<RunningSimulator>,
    servers: mcp::Servers,
    /// The names of the enabled MCP servers.
    pub(crate) server_names: Vec<String>,
    confine: Arc<Confine>,
}

impl ActiveSession {
    /// Shuts MCP servers down cleanly. Dropping the session kills them.
    pub(crate) async fn close(self) {
        self.servers.close().await;
    }

    /// The confinement tier of commands; none if the user switched it off.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self.confine.setting() {
            ConfineSetting::Off => None,
            ConfineSetting::Auto | ConfineSetting::Require | ConfineSetting::Strong => Some(self.confine.best_tier()),
        }
    }

    /// Switches to another model.
    pub(crate) async fn switch(&mut self, name: &str) -> Result<(), Report> {
        let dialects = self.session.dialects();
        let providers = Providers { dialects: &dialects, tables: &self.tables, env: &env_var };
        let provider = providers.resolve(name, None)?;
        if provider.endpoint == ProviderEndpoint::BuiltInSimulator && self.simulator.is_none() {
            self.simulator = Some(simulator(&dialects).await?);
        }
        let mut settings = self.session.settings.clone();
        provider.apply_defaults(&mut settings);
        let endpoint = endpoint(provider, self.simulator.as_ref())?;
        self.session.redactor = self.session.redactor.with(endpoint.key.as_ref().map(|key| key.expose().to_owned()));
        report::redact(self.session.redactor.clone());
        self.session.endpoint = endpoint;
        self.session.settings = settings;
        name.clone_into(&mut self.model);
        Ok(())
    }

    /// The models that config.toml names without a wildcard.
    pub(crate) fn configured_models(&self) -> impl Iterator<Item = String> + '_ {
        let names = |table: &'_ ProviderTable| {
            let names = table.models.iter().filter(|model| !model.pattern.contains('*'));
            names.map(|model| format!("{}/{}", table.name, model.pattern)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(names)
    }

    /// The session as a conversation, for export.
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

pub(crate) async fn start_session(options: &StartOptions<'_>, overrides: &Overrides) -> anyhow::Result<ActiveSession> {
    let dialects = Arc::new(user_files::dialects()?);
    let loaded = overrides.load()?;
    let keys = key_variables(&dialects, &loaded.providers);
    let here = working_directory()?;
    // Servers start in the background while the model is chosen.
    let tables = options.tools.map_or(&[][..], |_| &loaded.mcp);
    let confine = confinement::confine(&here, &loaded.tools, loaded.permissions.unreadable(&here));
    let mut servers = mcp::Servers::start(tables, &here, &confine);
    let server_names = tables.iter().filter(|table| table.enabled).map(|table| table.name.clone()).collect();
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let session = options.resumed.and_then(|resumed| resumed.model.as_deref());
    let named = NamedModels { flag: options.model, session, ..loaded.named_models() };
    let choice = match named.first() {
        Some(choice) => choice,
        None => {
            // Checking for keys is faster than looking for local servers.
            let by_key = model_choice::choose_model(&named, &providers, None);
            let choice = match by_key.is_simulated() {
                true => {
                    let local = local_servers::first_model(&local_servers::servers(&dialects).await);
                    model_choice::choose_model(&named, &providers, local.as_deref())
                }
                false => by_key,
            };
            (options.notify)(&format!("{}: {}", choice.name, choice.why));
            choice
        }
    };
    let provider = providers.resolve(&choice.name, None)?;
    let mut settings = loaded.settings.clone();
    provider.apply_defaults(&mut settings);
    for (key, value) in options.resumed.iter().flat_map(|resumed| &resumed.settings) {
        // An imported session is untrusted and must not make us send a file.
        let names_files =
            key == SettingKey::SystemPrompt.name() && value.starts_with('@') || key == SettingKey::ProjectFiles.name();
        if names_files {
            (options.notify)(&format!("note: {key} of the session names files and is not used"));
            continue;
        }
        settings.set(Layer::Session, key, value).map_err(|error| setting_error(&error))?;
    }
    overrides.apply(&mut settings)?;
    let simulator = match provider.endpoint {
        ProviderEndpoint::BuiltInSimulator => Some(simulator(&dialects).await?),
        ProviderEndpoint::At(_) | ProviderEndpoint::Missing { .. } => None,
    };
    let endpoint = endpoint(provider, simulator.as_ref())?;
    let redactor = Redactor::new(secrets(&keys, &loaded, &endpoint));
    report::redact(redactor.clone());
    let mut session = Session::new(Arc::clone(&dialects), endpoint, settings, Http::default());
    session.redactor = redactor;
    if let Some(mode) = options.tools {
        let instructions = session.settings.project_files().to_vec();
        session.tools = toolbox(&here, Arc::clone(&confine), keys, instructions, loaded.permissions, mode)?;
    }
    if let Some(tools) = servers.tools() {
        session.expect_tools(tools);
    }
    match options.resumed {
        Some(resumed) => session.replace_history(resumed.history.clone()),
        None => add_system_prompt(&mut session, &here, options.tools.is_some(), &options.trust, options.notify).await?,
    }
    Ok(ActiveSession {
        session,
        model: choice.name,
        tables: loaded.providers,
        simulator,
        servers,
        server_names,
        confine,
    })
}

/// All known keys, to be redacted wherever they appear.
fn secrets(variables: &[String], loaded: &LoadedSettings, endpoint: &Endpoint) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password", "authorization", "cookie"].iter().any(|word| name.contains(word))
    };
    let mut secrets: Vec<String> = variables.iter().filter_map(|name| env_var(name)).collect();
    secrets.extend(endpoint.key.as_ref().map(|key| key.expose().to_owned()));
    let servers = loaded.mcp.iter().flat_map(McpTable::values);
    let named = endpoint.headers.iter().chain(servers).filter(|(name, _)| is_secret(name));
    secrets.extend(named.flat_map(|(_, value)| secrets_in_value(value)));
    secrets
}

/// The secrets in a header or variable: the word after `Bearer`, or the values of
/// its `${NAME}` variables.
fn secrets_in_value(value: &str) -> Vec<String> {
    if !value.contains("${") {
        return vec![value.rsplit(' ').next().unwrap_or(value).to_owned()];
    }
    let named = value.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    named.filter_map(|(name, _)| env_var(name)).collect()
}

/// The engine's endpoint for a provider, with key and URL.
fn endpoint(provider: Provider, simulator: Option<&RunningSimulator>) -> Result<Endpoint, Report> {
    let key = key_lookup::find(&provider)?;
    let (base_url, origin_url) = match (provider.endpoint, simulator) {
        (ProviderEndpoint::At(url), _) => (url.clone(), Some(url)),
        // The port differs on every run, but seals stay valid, so it is not part of the origin.
        (ProviderEndpoint::BuiltInSimulator, Some(running)) => (format!("http://{}", running.address()), None),
        (ProviderEndpoint::BuiltInSimulator, None) => return Err(Report::new("the simulator does not run")),
        (ProviderEndpoint::Missing { what, remedy }, _) => return Err(Report::new(what).hint(remedy)),
    };
    let Provider { id, dialect, model, access, headers, extra_body, .. } = provider;
    let account = key.as_deref().map(key_lookup::fingerprint);
    let key = key.map(Secret::new);
    Ok(Endpoint { provider: id, dialect, model, base_url, origin_url, access, key, headers, extra_body, account })
}

/// Starts the simulator in this process, on a free local port.
async fn simulator(dialects: &Dialects) -> Result<RunningSimulator, Report> {
    // On a terminal the text should be slow enough to read.
    let rate = std::io::stderr().is_terminal().then_some(READABLE_RATE);
    let service = Service::new(dialects.clone(), ScriptOptions { rate, ..ScriptOptions::default() });
    let bound = Simulator::bind(([127, 0, 0, 1], 0).into(), service).await;
    let failed = |error| Report::new(format!("the built-in simulator cannot listen: {error}"));
    Ok(bound.map_err(failed)?.spawn())
}

/// The environment variables of providers' keys, to be hidden from child processes.
pub(crate) fn key_variables(dialects: &Dialects, tables: &[ProviderTable]) -> Vec<String> {
    let known = dialects.iter().filter_map(|dialect| dialect.api_key_env.clone());
    known.chain(tables.iter().filter_map(|table| table.api_key_env.clone())).collect()
}

pub(crate) fn working_directory() -> Result<PathBuf, Report> {
    std::env::current_dir().map_err(|error| Report::new(format!("the working directory cannot be read: {error}")))
}

/// The built-in tools, with the permissions remembered for this folder.
fn toolbox(
    here: &Path,
    confine: Arc<Confine>,
    keys: Vec<String>,
    instructions: Vec<String>,
    rules: PermissionRules,
    mode: PermissionMode,
) -> Result<Toolbox, Report> {
    let opened = WorkingDir::open(here);
    let work = opened.map_err(|error| Report::new(format!("cannot work in {}: {error}", here.display())))?;
    let work = work
        .with_hidden_variables(keys)
        .with_confinement(confine)
        .with_protected(user_files::own_folders(), instructions);
    let mut permissions = Permissions::new(rules, mode);
    if let Some(folder) = user_files::data_folder() {
        let memory = ProjectMemory::open(&folder.join("permissions.json"), here);
        permissions = permissions.with_memory(memory.map_err(|error| Report::new(error.to_string()))?);
    }
    Ok(Toolbox::standard(&work, permissions))
}

/// Adds the system prompt: the user's, else a short built-in one if there are
/// tools; then the project's instructions.
async fn add_system_prompt(
    session: &mut Session,
    here: &Path,
    tools: bool,
    trust: &Trust<'_>,
    notify: &dyn Fn(&str),
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
            notify(&format!("note: {note}"));
        }
        if trust.allows(&project, notify).await? {
            prompt = [prompt, project.content()].join("\n\n");
        }
    }
    if !prompt.trim().is_empty() {
        session.add_system_prompt(prompt);
    }
    Ok(())
}

fn today() -> String {
    jiff::Zoned::now().date().to_string()
}

/// The prompt as blocks, with its attachments. Only `typed` can attach files.
pub(crate) fn attach(typed: &str, piped: Option<&str>) -> Result<AttachedPrompt, Report> {
    let attached = aside_engine::attachments::attach(typed, piped, &working_directory()?);
    attached.map_err(|error| Report::new(error.to_string()).hint(error.hint()))
}

/// Names of project files that can be attached.
pub(crate) fn attachable_files(most: usize) -> Vec<String> {
    working_directory().map(|here| prompt::names(&here, most)).unwrap_or_default()
}

/// Starts over with an empty history and the system prompt.
pub(crate) async fn restart_session(active: &mut ActiveSession, notify: &dyn Fn(&str)) -> Result<(), Report> {
    active.session.replace_history(History::new());
    add_system_prompt(&mut active.session, &working_directory()?, true, &Trust::AsBefore, notify).await
}

/// The first Ctrl+C stops the turn and keeps the partial reply; the second exits.
/// SIGTERM and SIGHUP do the same, and exit after a grace period.
pub(crate) struct Interrupts {
    pub(crate) stop: CancellationToken,
    /// Exit at once: drop everything, so that no child process is left behind.
    pub(crate) leave: CancellationToken,
    /// The exit status, if a signal ended the process.
    pub(crate) signal: Arc<OnceLock<ExitStatus>>,
}

/// How long an orderly shutdown may take after SIGTERM or SIGHUP.
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

    /// Waits for a signal. Returns its exit status; none for Ctrl+C, which only stops
    /// the turn.
    async fn next(&mut self) -> Option<ExitStatus> {
        tokio::select! {
            _ = self.interrupt.recv() => None,
            _ = self.terminate.recv() => Some(ExitStatus::Terminated),
            _ = self.hangup.recv() => Some(ExitStatus::HungUp),
        }
    }
}

pub(crate) fn interrupts() -> Interrupts {
    let interrupts =
        Interrupts { stop: CancellationToken::new(), leave: CancellationToken::new(), signal: Arc::default() };
    let (stop, leave, ended) = (interrupts.stop.clone(), interrupts.leave.clone(), Arc::clone(&interrupts.signal));
    tokio::spawn(async move {
        // Without handlers, signals end the process as usual.
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
