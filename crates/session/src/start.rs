//! Starts a session for every front end: picks the model, finds its key, sets up
//! tools and the system prompt.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside_confine::{Confine, ConfineSetting};
use aside_core::block::{Block, Media, Text};
use aside_core::conversation::Conversation;
use aside_core::dialect::{Dialects, Tokenizer};
use aside_core::history::History;
use aside_core::permission_question::Tier;
use aside_core::settings::{Layer, SettingKey, Settings};
use aside_core::tokens::TokenCounter;
use aside_core::tool_mode::ToolMode;
use aside_engine::attachments::{self, AttachedPrompt};
use aside_engine::project_files::ProjectFiles;
use aside_engine::tools::{
    ChangeObserver, FileRestorer, OpenFiles, PermissionMode, Permissions, ProjectMemory, Toolbox, WorkingDir,
};
use aside_engine::{Endpoint, Http, Redactor, Session, Timeouts, Vocabularies, prompt};
use aside_front::Attachment;
use aside_sim::{RunningSimulator, ScriptOptions, Service, Simulator};
use aside_store::SessionId;

use crate::error::{self, HintedError};
use crate::file_changes::ChangeRecorder;
use crate::key_lookup::FoundKey;
use crate::log::{self, LogLevel};
use crate::mcp_tables::McpTable;
use crate::model_choice::{self, NamedModels};
use crate::provider_tables::ProviderTable;
use crate::providers::{Provider, ProviderEndpoint, Providers, env_var};
use crate::settings::{LoadedSettings, Overrides, ProfileName, setting_error};
use crate::settings_file::KeyEntry;
use crate::single_turn::RunLimits;
use crate::stored_session::{Continuation, SessionChoice};
use crate::trust::Trust;
use crate::user_files::UserFolders;
use crate::{confinement, key_lookup, local_servers, mcp, permission_table};

/// How to open a session.
#[derive(Debug)]
pub struct SessionOptions {
    /// The working directory, in which tools work and to which paths are relative.
    pub folder: PathBuf,
    pub user_folders: UserFolders,
    /// As PROVIDER/MODEL; by default the one of the stored session, the settings or the environment.
    pub model: Option<String>,
    pub choice: SessionChoice,
    /// The id for a new session, from `SqliteStore::unused_id`; by default one is chosen.
    pub new_id: Option<SessionId>,
    pub continuation: Continuation,
    /// The permission mode of tools; none offers no tools.
    pub tools: Option<PermissionMode>,
    /// What tools may do without a question; none for `[tools] mode` of the config.
    pub tool_mode: Option<ToolMode>,
    /// Whether the folder's `AGENTS.md` may be sent.
    pub trust: Trust,
    pub overrides: Overrides,
    pub saving: Saving,
    pub limits: RunLimits,
    /// MCP servers besides those of config.toml, such as those of an editor.
    pub mcp_servers: Vec<McpTable>,
    /// Folders in which tools work as in the working directory, such as those of an editor.
    pub additional_folders: Vec<PathBuf>,
    /// The files that an editor has open; `read` shows their unsaved text.
    pub open_files: Option<Arc<dyn OpenFiles>>,
    /// How many tokens per second the built-in simulator sends; none for no limit.
    pub simulator_rate: Option<f64>,
}

/// Whether turns are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Saving {
    #[default]
    On,
    Off,
}

impl SessionOptions {
    /// A new session that asks before its tools change anything.
    pub fn new(folder: PathBuf, user_folders: UserFolders) -> SessionOptions {
        SessionOptions {
            folder,
            user_folders,
            model: None,
            choice: SessionChoice::New,
            new_id: None,
            continuation: Continuation::Itself,
            tools: Some(PermissionMode::Ask),
            tool_mode: None,
            trust: Trust::AsBefore,
            overrides: Overrides::default(),
            saving: Saving::On,
            limits: RunLimits::default(),
            mcp_servers: Vec::new(),
            additional_folders: Vec::new(),
            open_files: None,
            simulator_rate: None,
        }
    }
}

/// A single-threaded runtime: almost all work is waiting for IO.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

/// A session with everything that must live as long as it.
pub struct ActiveSession {
    pub session: Session,
    /// As PROVIDER/MODEL.
    pub model: String,
    /// The working directory.
    pub folder: PathBuf,
    additional_folders: Vec<PathBuf>,
    pub user_folders: UserFolders,
    /// The active profile.
    pub profile: Option<ProfileName>,
    /// The effort levels that the model accepts; empty if none is ever sent to it.
    pub efforts: Vec<String>,
    /// Nothing was found but the simulator.
    pub(crate) simulator_is_fallback: bool,
    /// Settings for this run, which win over those of a stored session.
    overrides: Overrides,
    /// The `[keys]` table, for a front end that has keys.
    pub keys: Vec<KeyEntry>,
    /// The configured providers, for `switch`.
    tables: Vec<ProviderTable>,
    simulator_rate: Option<f64>,
    /// Stops when dropped.
    simulator: Option<RunningSimulator>,
    servers: mcp::Servers,
    /// The names of the enabled MCP servers.
    pub server_names: Vec<String>,
    confine: Arc<Confine>,
    /// Records the files that tools change.
    pub(crate) change_recorder: Arc<ChangeRecorder>,
    /// Restores them; none without tools.
    pub(crate) restorer: Option<FileRestorer>,
    /// Where the user's own command lines run; none without tools.
    pub(crate) work: Option<WorkingDir>,
}

impl ActiveSession {
    /// Shuts MCP servers down cleanly. Dropping the session kills them.
    pub async fn close(self) {
        self.servers.close().await;
    }

    /// The confinement tier of commands; none if the user switched it off.
    pub fn tier(&self) -> Option<Tier> {
        match self.confine.setting() {
            ConfineSetting::Off => None,
            ConfineSetting::Auto | ConfineSetting::Require | ConfineSetting::Strong => Some(self.confine.best_tier()),
        }
    }

    /// Whether requests to this provider have a key.
    pub(crate) fn has_key(&self, dialect: &aside_core::dialect::Dialect) -> bool {
        dialect.api_key_env.as_deref().is_some_and(|name| env_var(name).is_some())
    }

    /// What tools may do without a question; none if there are no tools.
    pub fn tool_mode(&self) -> Option<ToolMode> {
        let tools = &self.session.tools;
        (tools.list().next().is_some()).then(|| tools.permissions().tool_mode().mode())
    }

    /// Switches to another model.
    pub async fn switch(&mut self, name: &str) -> Result<(), HintedError> {
        let dialects = self.session.dialects();
        let providers = Providers { dialects: &dialects, tables: &self.tables, env: &env_var };
        let provider = providers.resolve(name, None)?;
        if provider.endpoint == ProviderEndpoint::BuiltInSimulator && self.simulator.is_none() {
            self.simulator = Some(simulator(&dialects, self.simulator_rate).await?);
        }
        let mut settings = self.session.settings.clone();
        provider.apply_defaults(&mut settings);
        let (full_name, price) = (provider.full_name(), provider.facts.price.clone().map(|price| price.value));
        let efforts = efforts(&provider);
        let endpoint = endpoint(provider, self.simulator.as_ref())?;
        self.session.redactor = self.session.redactor.with_key(endpoint.key.as_ref());
        error::redact(&self.session.redactor);
        self.session.endpoint = endpoint;
        self.session.price = price;
        self.session.settings = settings;
        self.model = full_name;
        self.efforts = efforts;
        Ok(())
    }

    /// Replaces the settings of this session with those of a stored one. The view of thinking stays, unless the stored
    /// session has its own.
    pub(crate) fn restore_settings(
        &mut self,
        stored: &BTreeMap<String, String>,
        notify: &dyn Fn(&str),
    ) -> Result<(), HintedError> {
        let mut settings = self.session.settings.clone();
        let is_view = |key: SettingKey| matches!(key, SettingKey::Display | SettingKey::IncludeInResponse);
        let left: Vec<SettingKey> =
            settings.layer(Layer::Session).map(|(key, _)| key).filter(|key| !is_view(*key)).collect();
        for key in left {
            settings.unset(Layer::Session, key.name()).map_err(|error| setting_error(&error))?;
        }
        add_stored_settings(&mut settings, stored, notify)?;
        self.overrides.apply(&mut settings)?;
        self.session.settings = settings;
        Ok(())
    }

    /// The configured providers.
    pub(crate) fn provider_tables(&self) -> &[ProviderTable] {
        &self.tables
    }

    /// The models that config.toml names without a wildcard.
    pub fn configured_models(&self) -> impl Iterator<Item = String> + '_ {
        let names = |table: &'_ ProviderTable| {
            let names = table.models.iter().filter(|model| !model.pattern.contains('*'));
            names.map(|model| format!("{}/{}", table.name, model.pattern)).collect::<Vec<_>>()
        };
        self.tables.iter().flat_map(names)
    }

    /// The session as a conversation, for export.
    pub fn conversation(&self, title: Option<String>) -> Conversation {
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

/// Starts a session with the history of `resumed`, if there is one. `notify` receives
/// notices, such as the choice of model.
pub async fn start_session(
    options: &SessionOptions,
    resumed: Option<&Conversation>,
    notify: &dyn Fn(&str),
) -> Result<ActiveSession, HintedError> {
    let SessionOptions { folder: here, user_folders, overrides, .. } = options;
    let dialects = Arc::new(user_folders.dialects()?);
    let mut loaded = overrides.load(user_folders)?;
    add_servers(&mut loaded.mcp, &options.mcp_servers);
    loaded.tools.directories.extend(options.additional_folders.iter().cloned());
    if options.tools.is_some() {
        permission_table::unmatched(&loaded.permissions, &loaded.mcp).iter().for_each(|line| notify(line));
    }
    let keys = key_variables(&dialects, &loaded.providers);
    // Servers start in the background while the model is chosen.
    let tables = options.tools.map_or(&[][..], |_| &loaded.mcp);
    let confine = confinement::confine(here, user_folders, &loaded);
    let mut servers = mcp::Servers::start(tables, here, &confine);
    let server_names = tables.iter().filter(|table| table.enabled).map(|table| table.name.clone()).collect();
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
    let session = resumed.and_then(|resumed| resumed.model.as_deref());
    let mut simulator_is_fallback = false;
    let named = NamedModels { flag: options.model.as_deref(), session, ..loaded.named_models() };
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
            notify(&format!("{}: {}", choice.name, choice.why));
            simulator_is_fallback = choice.is_simulated();
            choice
        }
    };
    let provider = providers.resolve(&choice.name, None)?;
    let model = provider.full_name();
    if model != choice.name {
        notify(&format!("using {model}"));
    }
    let mut settings = loaded.settings.clone();
    provider.apply_defaults(&mut settings);
    if let Some(resumed) = resumed {
        add_stored_settings(&mut settings, &resumed.settings, notify)?;
    }
    overrides.apply(&mut settings)?;
    let simulator = match provider.endpoint {
        ProviderEndpoint::BuiltInSimulator => Some(simulator(&dialects, options.simulator_rate).await?),
        ProviderEndpoint::At(_) | ProviderEndpoint::Missing { .. } => None,
    };
    let price = provider.facts.price.clone().map(|price| price.value);
    let efforts = efforts(&provider);
    let endpoint = endpoint(provider, simulator.as_ref())?;
    let redactor = Redactor::new(secrets(&keys, &loaded, &endpoint)).with_key(endpoint.key.as_ref());
    error::redact(&redactor);
    let http = Http::new(Timeouts::of(&settings));
    let mut session = Session::new(Arc::clone(&dialects), endpoint, settings, http);
    session.redactor = redactor;
    session.price = price;
    session.vocabularies = Some(Arc::new(LoggedVocabularies));
    let change_recorder = Arc::new(ChangeRecorder::default());
    let (mut restorer, mut user_work) = (None, None);
    if let Some(mode) = options.tools {
        let instructions = session.settings.project_files().to_vec();
        let permissions = Permissions::new(loaded.permissions, mode);
        let permissions = permissions.with_tool_mode(options.tool_mode.unwrap_or(loaded.tools.mode));
        let work = working_dir(options, Arc::clone(&confine), keys, instructions)?;
        let work = work.with_change_observer(Arc::clone(&change_recorder) as Arc<dyn ChangeObserver>);
        restorer = Some(FileRestorer::new(work.clone()));
        user_work = Some(work.clone());
        session.tools = Toolbox::standard(&work, with_memory(options, permissions)?);
    }
    if let Some(tools) = servers.tools() {
        session.expect_tools(tools);
    }
    match resumed {
        Some(resumed) => session.replace_history(resumed.history.clone()),
        None => {
            let prompt_options = PromptOptions {
                here,
                additional_folders: &options.additional_folders,
                user_folders,
                tools: options.tools.is_some(),
                trust: &options.trust,
            };
            add_system_prompt(&mut session, &prompt_options, notify).await?;
        }
    }
    Ok(ActiveSession {
        session,
        model,
        folder: here.clone(),
        additional_folders: options.additional_folders.clone(),
        user_folders: user_folders.clone(),
        profile: loaded.profile.map(|(name, _)| name),
        efforts,
        simulator_is_fallback,
        overrides: overrides.clone(),
        keys: loaded.keys,
        tables: loaded.providers,
        simulator_rate: options.simulator_rate,
        simulator,
        servers,
        server_names,
        confine,
        change_recorder,
        restorer,
        work: user_work,
    })
}

/// Adds the settings of a stored session.
fn add_stored_settings(
    settings: &mut Settings,
    stored: &BTreeMap<String, String>,
    notify: &dyn Fn(&str),
) -> Result<(), HintedError> {
    for (key, value) in stored {
        // An imported session is untrusted and must not make us send a file.
        let names_files =
            key == SettingKey::SystemPrompt.name() && value.starts_with('@') || key == SettingKey::ProjectFiles.name();
        if names_files {
            notify(&format!("note: {key} of the session names files and is not used"));
            continue;
        }
        settings.set(Layer::Session, key, value).map_err(|error| setting_error(&error))?;
    }
    Ok(())
}

/// Adds the servers of a front end. A server of the same name in the user's config takes precedence.
fn add_servers(tables: &mut Vec<McpTable>, servers: &[McpTable]) {
    for server in servers {
        if tables.iter().all(|table| table.name != server.name) {
            tables.push(server.clone());
        }
    }
}

/// The vocabularies of `aside-tokens`.
#[derive(Debug)]
struct LoggedVocabularies;

impl Vocabularies for LoggedVocabularies {
    fn counter(&self, tokenizer: Tokenizer) -> Arc<dyn TokenCounter> {
        aside_tokens::counter(tokenizer)
    }

    fn on_failure(&self, why: &str) {
        log::write(LogLevel::Warn, || why.to_owned());
    }
}

/// The effort levels that the provider's model accepts. The table of models may know levels for which the dialect has
/// no parameter; they would not be sent.
fn efforts(provider: &Provider) -> Vec<String> {
    let parameter = &provider.dialect.rules(Some(&provider.model)).ask.effort;
    if provider.dialect.unknown || parameter.path.is_empty() || parameter.values.is_empty() {
        return Vec::new();
    }
    provider.facts.efforts.as_ref().map(|efforts| efforts.value.clone()).unwrap_or_default()
}

/// All known keys except the endpoint's own, to be redacted wherever they appear.
pub fn secrets(variables: &[String], loaded: &LoadedSettings, endpoint: &Endpoint) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["key", "token", "secret", "password", "authorization", "cookie"].iter().any(|word| name.contains(word))
    };
    let mut secrets: Vec<String> = variables.iter().filter_map(|name| env_var(name)).collect();
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
pub fn endpoint(provider: Provider, simulator: Option<&RunningSimulator>) -> Result<Endpoint, HintedError> {
    let key = key_lookup::find(&provider)?;
    let (base_url, origin_url) = match (provider.endpoint, simulator) {
        (ProviderEndpoint::At(url), _) => (url.clone(), Some(url)),
        // The port differs on every run, but seals stay valid, so it is not part of the origin.
        (ProviderEndpoint::BuiltInSimulator, Some(running)) => (format!("http://{}", running.address()), None),
        (ProviderEndpoint::BuiltInSimulator, None) => return Err(HintedError::new("the simulator does not run")),
        (ProviderEndpoint::Missing { what, remedy }, _) => return Err(HintedError::new(what).hint(remedy)),
    };
    let Provider { id, dialect, model, access, headers, extra_body, .. } = provider;
    let account = key.as_ref().map(FoundKey::account);
    let key = key.map(FoundKey::into_api_key);
    Ok(Endpoint { provider: id, dialect, model, base_url, origin_url, access, key, headers, extra_body, account })
}

/// Starts the simulator in this process, on a free local port.
pub async fn simulator(dialects: &Dialects, rate: Option<f64>) -> Result<RunningSimulator, HintedError> {
    let service = Service::new(dialects.clone(), ScriptOptions { rate, ..ScriptOptions::default() });
    let bound = Simulator::bind(([127, 0, 0, 1], 0).into(), service).await;
    let failed = |error| HintedError::new(format!("the built-in simulator cannot listen: {error}"));
    Ok(bound.map_err(failed)?.spawn())
}

/// The environment variables of providers' keys, to be hidden from child processes.
pub fn key_variables(dialects: &Dialects, tables: &[ProviderTable]) -> Vec<String> {
    let known = dialects.iter().filter_map(|dialect| dialect.api_key_env.clone());
    known.chain(tables.iter().filter_map(|table| table.api_key_env.clone())).collect()
}

/// The folder in which the built-in tools work.
fn working_dir(
    options: &SessionOptions,
    confine: Arc<Confine>,
    keys: Vec<String>,
    instructions: Vec<String>,
) -> Result<WorkingDir, HintedError> {
    let SessionOptions { folder: here, user_folders, additional_folders, .. } = options;
    let opened = WorkingDir::open(here);
    let work = opened.map_err(|error| HintedError::new(format!("cannot work in {}: {error}", here.display())))?;
    let work = work.with_open_files(options.open_files.clone()).with_additional_folders(additional_folders);
    let work = work.map_err(|error| HintedError::new(format!("cannot work in the additional folders: {error}")))?;
    // Instruction files above the working directory can be links into it.
    let protected = user_folders.iter().chain(ProjectFiles::possible_paths(here, &instructions));
    let protected: Vec<PathBuf> = protected.collect();
    Ok(work.with_hidden_variables(keys).with_confinement(confine).with_protected(protected, instructions))
}

/// Adds the permissions remembered for this folder.
fn with_memory(options: &SessionOptions, permissions: Permissions) -> Result<Permissions, HintedError> {
    let SessionOptions { folder: here, user_folders, .. } = options;
    if let Some(folder) = &user_folders.data {
        let memory = ProjectMemory::open(&folder.join("permissions.json"), here);
        return Ok(permissions.with_memory(memory.map_err(|error| HintedError::new(error.to_string()))?));
    }
    Ok(permissions)
}

/// What the system prompt depends on.
struct PromptOptions<'a> {
    here: &'a Path,
    additional_folders: &'a [PathBuf],
    user_folders: &'a UserFolders,
    tools: bool,
    trust: &'a Trust,
}

/// Adds the system prompt: the user's, else a short built-in one if there are
/// tools; then the project's instructions.
async fn add_system_prompt(
    session: &mut Session,
    options: &PromptOptions<'_>,
    notify: &dyn Fn(&str),
) -> Result<(), HintedError> {
    let PromptOptions { here, additional_folders, user_folders, tools, trust } = *options;
    let mut prompt = match session.settings.system_prompt() {
        Some(value) => prompt::system(value, here).map_err(|error| {
            HintedError::new(format!("cannot read the system prompt {value}: {error}"))
                .hint("prompt.system is a text, or @ and a file")
        })?,
        None if tools => prompt::built_in(here, &today()),
        None => String::new(),
    };
    if let Some(line) = prompt::additional_folders(additional_folders).filter(|_| tools) {
        prompt = [prompt, line].join("\n");
    }
    if tools {
        let project = ProjectFiles::find(here, session.settings.project_files());
        for note in &project.notes {
            notify(&format!("note: {note}"));
        }
        if trust.allows(&project, user_folders, notify).await? {
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
pub fn attach(typed: &str, piped: Option<&str>, here: &Path) -> Result<AttachedPrompt, HintedError> {
    let attached = aside_engine::attachments::attach(typed, piped, here);
    attached.map_err(|error| HintedError::new(error.to_string()).hint(error.hint()))
}

/// A literal prompt with the attachments that a front end names.
pub(crate) fn attach_named(text: &str, attachments: &[Attachment], here: &Path) -> Result<AttachedPrompt, HintedError> {
    let text = Block::Text(Text { text: text.to_owned(), ..Text::default() });
    let mut attached = AttachedPrompt { blocks: vec![text], descriptions: Vec::new() };
    for attachment in attachments {
        let block = match attachment {
            Attachment::File { path } => {
                let name = path.strip_prefix(here).unwrap_or(path).display().to_string();
                let read = attachments::attach_file(&name, &here.join(path));
                let (block, size) = read.map_err(|error| HintedError::new(format!("`{name}` {}", error.why)))?;
                attached.descriptions.push(format!("attached {name} ({size} bytes)"));
                block
            }
            Attachment::Text { name, text } => attachments::attach_text(name, text),
            Attachment::Image { media_type, data } => Block::Media(Media::image(media_type.clone(), data.clone())),
        };
        attached.blocks.push(block);
    }
    Ok(attached)
}

/// Names of project files that can be attached.
pub(crate) fn attachable_files(here: &Path, most: usize) -> Vec<String> {
    prompt::names(here, most)
}

/// Starts over with an empty history and the system prompt.
pub(crate) async fn restart_session(active: &mut ActiveSession, notify: &dyn Fn(&str)) -> Result<(), HintedError> {
    active.session.replace_history(History::new());
    let ActiveSession { session, folder, additional_folders, user_folders, .. } = active;
    let options =
        PromptOptions { here: folder, additional_folders, user_folders, tools: true, trust: &Trust::AsBefore };
    add_system_prompt(session, &options, notify).await
}
