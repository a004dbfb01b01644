//! A running session: its model, tools and servers, and how they change while it runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use aside_confine::{Confine, ConfineSetting};
use aside_core::conversation::Conversation;
use aside_core::permission_question::Tier;
use aside_core::settings::{Layer, SettingKey, Settings};
use aside_core::tool_mode::ToolMode;
use aside_engine::Session;
use aside_engine::tools::{FileRestorer, WorkingDir};
use aside_sim::RunningSimulator;

use crate::endpoint::{efforts, endpoint, simulator};
use crate::error::{self, HintedError};
use crate::file_changes::ChangeRecorder;
use crate::mcp;
use crate::provider_tables::ProviderTable;
use crate::providers::{ProviderEndpoint, Providers, env_var};
use crate::settings::{Overrides, ProfileName, setting_error};
use crate::settings_file::KeyEntry;
use crate::user_files::UserFolders;

/// A session with everything that must live as long as it.
pub struct ActiveSession {
    pub session: Session,
    /// As PROVIDER/MODEL.
    pub model: String,
    /// The working directory.
    pub folder: PathBuf,
    pub(crate) additional_folders: Vec<PathBuf>,
    pub user_folders: UserFolders,
    /// The active profile.
    pub profile: Option<ProfileName>,
    /// The effort levels that the model accepts; empty if none is ever sent to it.
    pub efforts: Vec<String>,
    /// Nothing was found but the simulator.
    pub(crate) simulator_is_fallback: bool,
    /// Settings for this run, which win over those of a stored session.
    pub(crate) overrides: Overrides,
    /// The `[keys]` table, for a front end that has keys.
    pub keys: Vec<KeyEntry>,
    /// The configured providers, for `switch`.
    pub(crate) tables: Vec<ProviderTable>,
    pub(crate) simulator_rate: Option<f64>,
    /// Stops when dropped.
    pub(crate) simulator: Option<RunningSimulator>,
    pub(crate) servers: mcp::Servers,
    /// The names of the enabled MCP servers.
    pub server_names: Vec<String>,
    pub(crate) confine: Arc<Confine>,
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
        // What was set since this run began has replaced the values of its command line.
        let of_run: Vec<SettingKey> = settings.layer(Layer::Run).map(|(key, _)| key).collect();
        let is_view = |key: SettingKey| matches!(key, SettingKey::Display | SettingKey::IncludeInResponse);
        let left: Vec<SettingKey> =
            settings.layer(Layer::Session).map(|(key, _)| key).filter(|key| !is_view(*key)).collect();
        for key in left {
            settings.unset(Layer::Session, key.name()).map_err(|error| setting_error(&error))?;
        }
        add_stored_settings(&mut settings, stored, notify)?;
        self.overrides.apply(&mut settings)?;
        let replaced: Vec<SettingKey> =
            settings.layer(Layer::Run).map(|(key, _)| key).filter(|key| !of_run.contains(key)).collect();
        for key in replaced {
            settings.unset(Layer::Run, key.name()).map_err(|error| setting_error(&error))?;
        }
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

/// Adds the settings of a stored session.
pub(crate) fn add_stored_settings(
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
