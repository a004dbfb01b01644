//! What front ends show about a session and offer for completion.

use aside_core::dialect::Dialect;
use aside_front::{CompletionLists, CostSoFar, MouseMode, ScreenSettings, Status, Update};
use aside_store::{SessionId, Store};

use super::blocking::blocking;
use super::{Driver, replies};
use crate::error::HintedError;
use crate::prompt_attachments::attachable_files;
use crate::settings::{self, ProfileName};
use crate::{git_branch, own_commands, session_recorder, stored_session};

/// How many sessions are offered for completion.
const MAX_SESSIONS: usize = 500;

/// How many file names are offered for completion.
const MAX_FILES: usize = 2000;

impl Driver {
    /// Updates the completion lists: files, sessions, tools and rules may have changed.
    pub(super) async fn refresh_lists(&self) {
        if let Ok(lists) = self.lists().await {
            self.front.send(Update::CompletionLists(Box::new(lists)));
        }
    }

    pub(super) fn status(&self) -> Status {
        let settings = &self.active.session.settings;
        Status {
            model: self.active.model.clone(),
            profile: self.profile.clone(),
            title: self.title.clone(),
            session: self.session_id().map(SessionId::to_string),
            limit: settings.context_limit(),
            effort: settings.effort().filter(|_| settings.enabled().0).map(|effort| effort.to_string()),
            view: settings.display(),
            efforts: self.active.efforts.clone(),
            thinking_is_off: !settings.enabled().0,
            tier: self.active.tier(),
            mode: self.active.tool_mode(),
            cost: self.cost(),
            folder: self.active.folder.file_name().map(|name| name.to_string_lossy().into_owned()),
            branch: git_branch::branch(&self.active.folder),
            next: None,
            screen: ScreenSettings {
                notify: settings.notify(),
                prose_width: settings.prose_width(),
                theme: settings.theme(),
                mouse: if settings.mouse() { MouseMode::Captured } else { MouseMode::Released },
            },
        }
    }

    /// What this run has cost so far, if anything.
    pub(super) fn cost(&self) -> Option<CostSoFar> {
        let cost = self.active.session.totals.cost;
        let microdollars = cost.amount().map(|amount| (amount * 1e6).round() as u64).filter(|amount| *amount > 0)?;
        Some(CostSoFar { microdollars, is_exact: cost.is_exact() })
    }

    pub(super) async fn lists(&self) -> Result<CompletionLists, HintedError> {
        let dialects = self.dialects();
        let simulated = dialects.iter().map(|dialect| format!("sim/{}", dialect.id));
        let preset =
            |dialect: &Dialect| dialect.access.default_model.as_ref().map(|model| format!("{}/{model}", dialect.id));
        // Models that can be used come first.
        let (with_key, without_key): (Vec<&Dialect>, Vec<&Dialect>) =
            dialects.iter().partition(|dialect| self.active.has_key(dialect));
        let with_key = with_key.into_iter().filter_map(preset);
        let models_without_key: Vec<String> = without_key.into_iter().filter_map(preset).collect();
        let (store, config) = (self.store.clone(), self.active.user_folders.config.clone());
        let folder = self.active.folder.clone();
        let root = stored_session::session_folder(&folder).root;
        let listed = blocking(move || {
            let profiles = config.as_ref().map_or(Ok(Vec::new()), |folder| settings::profile_names(folder))?;
            let commands = config.map(|folder| own_commands::list(&folder).commands).unwrap_or_default();
            let sessions = store.map_or(Ok(Vec::new()), |store| store.sessions_by_folder(&root, MAX_SESSIONS));
            let sessions = sessions.map_err(|error| session_recorder::store_error(&error))?;
            Ok(CompletionLists {
                profiles: profiles.iter().map(ProfileName::to_string).collect(),
                commands,
                files: attachable_files(&folder, MAX_FILES),
                sessions: sessions.into_iter().map(|session| replies::completion_entry(session, &root)).collect(),
                ..CompletionLists::default()
            })
        });
        let mut models: Vec<String> = self
            .active
            .configured_models()
            .chain(with_key)
            .chain(simulated)
            .chain(models_without_key.iter().cloned())
            .collect();
        // The one in use, which may be in no list before its provider has answered.
        if !models.contains(&self.active.model) {
            models.insert(0, self.active.model.clone());
        }
        Ok(CompletionLists {
            models,
            models_without_key,
            efforts: self.active.efforts.clone(),
            tools: self.tool_names(),
            rules: self.forgettable_rules(),
            ..listed.await?
        })
    }
}
