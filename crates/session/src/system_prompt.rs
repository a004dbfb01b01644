//! The system prompt: the user's or the built-in one, and the project's instructions.

use std::path::{Path, PathBuf};

use aside_core::history::History;
use aside_engine::project_files::ProjectFiles;
use aside_engine::{Session, prompt};

use crate::active_session::ActiveSession;
use crate::error::HintedError;
use crate::trust::Trust;
use crate::user_files::UserFolders;

/// What the system prompt depends on.
pub(crate) struct PromptOptions<'a> {
    pub(crate) here: &'a Path,
    pub(crate) additional_folders: &'a [PathBuf],
    pub(crate) user_folders: &'a UserFolders,
    pub(crate) tools: bool,
    pub(crate) trust: &'a Trust,
}

/// Adds the system prompt: the user's, else a short built-in one if there are
/// tools; then the project's instructions.
pub(crate) async fn add_system_prompt(
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

/// Starts over with an empty history and the system prompt.
pub(crate) async fn restart_session(active: &mut ActiveSession, notify: &dyn Fn(&str)) -> Result<(), HintedError> {
    active.session.replace_history(History::new());
    let ActiveSession { session, folder, additional_folders, user_folders, .. } = active;
    let options =
        PromptOptions { here: folder, additional_folders, user_folders, tools: true, trust: &Trust::AsBefore };
    add_system_prompt(session, &options, notify).await
}
