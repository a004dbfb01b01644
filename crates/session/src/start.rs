//! Starts a session for every front end: picks the model, finds its key, sets up
//! tools and the system prompt.

use std::path::PathBuf;
use std::sync::Arc;

use aside_confine::Confine;
use aside_core::conversation::Conversation;
use aside_core::dialect::{Dialects, Tokenizer};
use aside_core::tokens::TokenCounter;
use aside_engine::project_files::ProjectFiles;
use aside_engine::tools::{
    ChangeObserver, FileRestorer, PermissionMode, Permissions, ProjectMemory, Toolbox, WorkingDir,
};
use aside_engine::{Http, Redactor, Session, Timeouts, Vocabularies};

use crate::active_session::{ActiveSession, add_stored_settings};
use crate::endpoint::{efforts, secrets};
pub use crate::endpoint::{endpoint, key_variables, simulator};
use crate::error::{self, HintedError};
use crate::file_changes::ChangeRecorder;
use crate::log::{self, LogLevel};
use crate::mcp_tables::McpTable;
use crate::model_choice::{self, NamedModels};
use crate::providers::{Provider, ProviderEndpoint, Providers, env_var};
use crate::session_options::SessionOptions;
use crate::settings::LoadedSettings;
use crate::system_prompt::{PromptOptions, add_system_prompt};
use crate::{confinement, local_servers, mcp, permission_table};

/// A single-threaded runtime: almost all work is waiting for IO.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

/// Starts a session with the history of `resumed`, if there is one. `notify` receives
/// notices, such as the choice of model.
pub(crate) async fn start_session(
    options: &SessionOptions,
    resumed: Option<&Conversation>,
    notify: &dyn Fn(&str),
) -> Result<ActiveSession, HintedError> {
    let SessionOptions { folder: here, user_folders, overrides, .. } = options;
    let dialects = Arc::new(user_folders.dialects()?);
    let loaded = load_settings(options, notify)?;
    let keys = key_variables(&dialects, &loaded.providers);
    // Servers start in the background while the model is chosen.
    let tables = options.tools.map_or(&[][..], |_| &loaded.mcp);
    let confine = confinement::confine(here, user_folders, &loaded);
    let mut servers = mcp::Servers::start(tables, here, &confine);
    let server_names = tables.iter().filter(|table| table.enabled).map(|table| table.name.clone()).collect();
    let ChosenProvider { provider, simulator_is_fallback } =
        choose_provider(options, resumed, &loaded, &dialects, notify).await?;
    let model = provider.full_name();
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
    let mut session = Session::new(dialects, endpoint, settings, http);
    session.redactor = redactor;
    session.price = price;
    session.vocabularies = Some(Arc::new(LoggedVocabularies));
    let change_recorder = Arc::new(ChangeRecorder::default());
    let work = match options.tools {
        Some(mode) => {
            let tools = LocalTools { confine: &confine, keys, change_recorder: &change_recorder };
            Some(tools.add_to(&mut session, options, mode, &loaded)?)
        }
        None => None,
    };
    if let Some(tools) = servers.tools() {
        session.expect_tools(tools);
    }
    add_history(&mut session, options, resumed, notify).await?;
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
        restorer: work.clone().map(FileRestorer::new),
        work,
    })
}

/// The settings files, with the servers and folders that the front end adds.
fn load_settings(options: &SessionOptions, notify: &dyn Fn(&str)) -> Result<LoadedSettings, HintedError> {
    let mut loaded = options.overrides.load(&options.user_folders)?;
    add_servers(&mut loaded.mcp, &options.mcp_servers);
    loaded.tools.directories.extend(options.additional_folders.iter().cloned());
    if options.tools.is_some() {
        permission_table::unmatched(&loaded.permissions, &loaded.mcp).iter().for_each(|line| notify(line));
    }
    Ok(loaded)
}

/// The provider of the model that was named or found.
struct ChosenProvider {
    provider: Provider,
    /// Nothing was found but the simulator.
    simulator_is_fallback: bool,
}

async fn choose_provider(
    options: &SessionOptions,
    resumed: Option<&Conversation>,
    loaded: &LoadedSettings,
    dialects: &Dialects,
    notify: &dyn Fn(&str),
) -> Result<ChosenProvider, HintedError> {
    let providers = Providers { dialects, tables: &loaded.providers, env: &env_var };
    let session = resumed.and_then(|resumed| resumed.model.as_deref());
    let named = NamedModels { flag: options.model.as_deref(), session, ..loaded.named_models() };
    let mut simulator_is_fallback = false;
    let choice = match named.first() {
        Some(choice) => choice,
        None => {
            // Checking for keys is faster than looking for local servers.
            let by_key = model_choice::choose_model(&named, &providers, None);
            let choice = match by_key.is_simulated() {
                true => {
                    let local = local_servers::first_model(&local_servers::servers(dialects).await);
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
    Ok(ChosenProvider { provider, simulator_is_fallback })
}

/// What the built-in tools need.
struct LocalTools<'a> {
    confine: &'a Arc<Confine>,
    /// The environment variables that commands must not see.
    keys: Vec<String>,
    change_recorder: &'a Arc<ChangeRecorder>,
}

impl LocalTools<'_> {
    /// Gives the session its tools, and returns the folder in which they work.
    fn add_to(
        self,
        session: &mut Session,
        options: &SessionOptions,
        mode: PermissionMode,
        loaded: &LoadedSettings,
    ) -> Result<WorkingDir, HintedError> {
        let instructions = session.settings.project_files().to_vec();
        let permissions = Permissions::new(loaded.permissions.clone(), mode);
        let permissions = permissions.with_tool_mode(options.tool_mode.unwrap_or(loaded.tools.mode));
        let work = working_dir(options, Arc::clone(self.confine), self.keys, instructions)?;
        let work = work.with_change_observer(Arc::clone(self.change_recorder) as Arc<dyn ChangeObserver>);
        session.tools = Toolbox::standard(&work, with_memory(options, permissions)?);
        Ok(work)
    }
}

/// Adds the history of a resumed session, or the system prompt of a new one.
async fn add_history(
    session: &mut Session,
    options: &SessionOptions,
    resumed: Option<&Conversation>,
    notify: &dyn Fn(&str),
) -> Result<(), HintedError> {
    if let Some(resumed) = resumed {
        session.replace_history(resumed.history.clone());
        return Ok(());
    }
    let prompt_options = PromptOptions {
        here: &options.folder,
        additional_folders: &options.additional_folders,
        user_folders: &options.user_folders,
        tools: options.tools.is_some(),
        trust: &options.trust,
    };
    add_system_prompt(session, &prompt_options, notify).await
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
