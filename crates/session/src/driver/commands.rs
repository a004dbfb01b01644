//! The commands that change settings, model and profile, and those about the conversation.

use aside_core::compaction::CompactionTrigger;
use aside_core::interchange::{ThinkingMarkup, write_markdown};
use aside_core::settings::{Layer, SettingKey, ThinkingDisplay};
use aside_core::tool_mode::ToolMode;
use aside_engine::compaction::CompactionResult;
use aside_front::{Command, CommandOutput, ProfileAction, Update};
use aside_store::session::SessionChange;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::interruptible::{AfterWork, interruptible};
use super::waiting_commands::take_message;
use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;
use crate::session_recorder::StoringFront;
use crate::settings::{self, ProfileName, setting_error};
use crate::stored_session::Continuation;
use crate::{atomic, git_branch, own_commands, profiles, times};

impl Driver {
    pub(super) async fn run_command(
        &mut self,
        command: Command,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let reply = |output: CommandOutput| Ok(CommandOutcome::Reply(output));
        match command {
            Command::Prompt(text) | Command::Steer(text) => self.send_prompt(&text, inbox).await,
            Command::PromptWith { text, attachments } => self.send_prompt_with(text, &attachments, inbox).await,
            Command::Retry => self.retry(inbox).await,
            Command::Set { key, value } => {
                self.set(&key, &value)?;
                reply(replies::settings(&self.active.session.settings, Some(&key))?)
            }
            Command::Unset(key) => {
                let settings = &mut self.active.session.settings;
                settings.unset(Layer::Session, &key).map_err(|error| setting_error(&error))?;
                self.settings_changed();
                reply(replies::settings(&self.active.session.settings, Some(&key))?)
            }
            Command::Query(key) => reply(replies::settings(&self.active.session.settings, key.as_deref())?),
            Command::View(view) => {
                self.view(view);
                Ok(CommandOutcome::Silent)
            }
            Command::Mode(mode) => self.set_mode(mode),
            Command::Effort(Some(level)) => {
                self.set(SettingKey::Effort.name(), &level)?;
                let is_unused = !self.takes_effort() && level != "none";
                reply(replies::line(match self.active.session.next_effort().note {
                    _ if is_unused => {
                        format!("effort: {level}; {} takes no effort level, so it is not sent", self.active.model)
                    }
                    // Front ends do not repeat it when the next request has the same note.
                    Some(note) => note,
                    None => format!("effort: {level}"),
                }))
            }
            Command::Effort(None) if !self.takes_effort() => {
                reply(replies::line(format!("{} takes no effort level", self.active.model)))
            }
            Command::Effort(None) => {
                reply(replies::settings(&self.active.session.settings, Some(SettingKey::Effort.name()))?)
            }
            Command::Model(Some(name)) => self.switch_model(&name).await,
            Command::Model(None) => reply(replies::line(format!("model: {}", self.active.model))),
            Command::Profile(act) => self.profile(act),
            Command::Compact => self.compact(inbox).await,
            Command::Undo => self.undo(inbox).await,
            Command::UndoOnly { part, force } => self.undo_part(part, force),
            Command::Redo => self.redo(),
            Command::Diff(file) => self.diff(file.as_deref()),
            Command::Fork => self.fork().await,
            Command::Export(file) => self.export(file.as_deref()),
            Command::Own { name, arguments } => self.run_own_command(&name, &arguments, inbox).await,
            Command::Shell { command, output } => self.run_user_command(&command, output, inbox).await,
            Command::Theme(theme) => self.set_theme(theme),
            Command::Mouse(mouse) => self.set_mouse(mouse),
            Command::ListModels => {
                self.list_models();
                Ok(CommandOutcome::Silent)
            }
            Command::Other { name, rest } => self.run_other(&name, &rest).await,
            Command::Quit => Ok(CommandOutcome::Quit),
            // No turn is running, so there is nothing to stop or to answer.
            Command::RefreshBranch(shown) => {
                if git_branch::branch(&self.active.folder) != shown {
                    self.send_status();
                }
                Ok(CommandOutcome::Silent)
            }
            Command::TakeBack(text) => {
                let is_waiting = take_message(&mut self.deferred, &text);
                self.asker.answer_take_back(text, is_waiting);
                Ok(CommandOutcome::Silent)
            }
            Command::Interrupt | Command::AnswerNow | Command::Answer { .. } | Command::Terminal(_) => {
                Ok(CommandOutcome::Silent)
            }
        }
    }

    /// Whether the model has effort levels.
    fn takes_effort(&self) -> bool {
        !self.active.efforts.is_empty()
    }

    fn set_mode(&mut self, mode: ToolMode) -> Result<CommandOutcome, HintedError> {
        self.active.session.tools.permissions().tool_mode().set(mode);
        self.send_changed_status();
        Ok(CommandOutcome::Silent)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), HintedError> {
        self.active.session.settings.set(Layer::Session, key, value).map_err(|error| setting_error(&error))?;
        self.settings_changed();
        Ok(())
    }

    fn settings_changed(&mut self) {
        self.open_resumed_recorder();
        let settings = &self.active.session.settings;
        let session_settings =
            settings.layer(Layer::Session).map(|(key, value)| (key.name().to_owned(), value.to_string()));
        let session_settings = session_settings.collect();
        if let Some(recorder) = &mut self.recorder {
            recorder.change(&SessionChange::Settings(session_settings));
        }
        self.send_changed_status();
    }

    /// The view of thinking is a preference, so it is also written to the config.
    fn view(&mut self, view: ThinkingDisplay) {
        let may_be_stored = self.recorder.is_some() || self.continuation == Continuation::Itself;
        // What is only read here is not copied for that.
        if self.active.session.settings.show(view) && may_be_stored {
            self.settings_changed();
        } else {
            self.send_status();
        }
        self.view_preference.choose(view);
    }

    /// Sends the prompt of one of the user's own commands.
    async fn run_own_command(
        &mut self,
        name: &str,
        arguments: &str,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let config = self.active.user_folders.require_config()?;
        let prompt = own_commands::prompt(config, name, arguments)?;
        self.send_prompt(&prompt, inbox).await
    }

    async fn switch_model(&mut self, name: &str) -> Result<CommandOutcome, HintedError> {
        self.active.switch(name).await?;
        if let Some(recorder) = &mut self.recorder {
            recorder.set_origin(self.active.session.endpoint.origin(), self.active.model.clone());
        }
        self.send_changed_status();
        let model = replies::line(format!("model: {}", self.active.model));
        let Some(note) = self.active.session.next_effort().note else { return Ok(CommandOutcome::Reply(model)) };
        // A line of its own, like the note of the next request, so that front ends do not repeat it.
        self.front.send(Update::CommandOutput(model));
        Ok(CommandOutcome::Reply(replies::line(note)))
    }

    fn profile(&mut self, act: ProfileAction) -> Result<CommandOutcome, HintedError> {
        let folders = &self.active.user_folders;
        let folder = folders.require_config()?;
        match act {
            ProfileAction::List => {
                let names: Vec<String> = settings::profile_names(folder)?.iter().map(ProfileName::to_string).collect();
                let names = if names.is_empty() { "there are none yet".to_owned() } else { names.join(", ") };
                Ok(CommandOutcome::Reply(replies::line(format!("profiles: {names}"))))
            }
            ProfileAction::Load(name) => {
                let name: ProfileName = name.parse().map_err(|error| HintedError::new(format!("{error}")))?;
                let contents = settings::existing_profile(folder, &name)?.contents()?;
                self.active.session.settings.load_profile(contents.changes);
                self.profile = Some(name.to_string());
                self.settings_changed();
                Ok(CommandOutcome::Reply(replies::line(format!("profile: {name}"))))
            }
            ProfileAction::Save(name) => {
                let name: ProfileName = name.parse().map_err(|error| HintedError::new(format!("{error}")))?;
                let settings = &self.active.session.settings;
                profiles::write(folders, &name, Some(&self.active.model), settings)?;
                let left_out = profiles::left_out(settings, &[Layer::Session, Layer::Run]);
                let lines = std::iter::once(format!("saved as {name}")).chain(left_out);
                Ok(CommandOutcome::Reply(replies::line(lines.collect::<Vec<_>>().join("\n"))))
            }
            ProfileAction::Delete(name) => {
                let name: ProfileName = name.parse().map_err(|error| HintedError::new(format!("{error}")))?;
                if profiles::remove(folders, &name)? {
                    self.profile = None;
                }
                Ok(CommandOutcome::Reply(replies::line(format!("deleted {name}"))))
            }
        }
    }

    async fn compact(&mut self, inbox: &mut UnboundedReceiver<Command>) -> Result<CommandOutcome, HintedError> {
        self.open_resumed_recorder();
        let cancel = CancellationToken::new();
        let mut front = StoringFront::new(&mut self.front, self.recorder.as_mut());
        let work = self.active.session.compact(CompactionTrigger::Manual, &mut front, &cancel);
        let (compacted, after) = interruptible(work, &cancel, inbox, &mut self.deferred, &self.asker).await;
        if after == AfterWork::Quit {
            return Ok(CommandOutcome::Quit);
        }
        match compacted {
            CompactionResult::Done(_) => {
                self.send_changed_status();
                Ok(CommandOutcome::Silent)
            }
            CompactionResult::Skipped(why) => Ok(CommandOutcome::Reply(replies::line(why.to_string()))),
            CompactionResult::Failed(why) => {
                // The attempt may have cost something.
                self.send_status();
                Err(HintedError::new(format!("older turns could not be summarised: {why}")))
            }
        }
    }

    fn export(&self, file: Option<&str>) -> Result<CommandOutcome, HintedError> {
        let text = write_markdown(&self.active.conversation(self.title.clone()), ThinkingMarkup::Callout);
        let name = file.map_or_else(|| format!("aside-{}.md", times::file_stamp()), str::to_owned);
        atomic::write(&self.active.folder.join(&name), &text)
            .map_err(|error| HintedError::new(format!("cannot write {name}: {error}")))?;
        Ok(CommandOutcome::Reply(replies::line(format!("written to {name}"))))
    }
}
