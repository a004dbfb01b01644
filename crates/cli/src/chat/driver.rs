//! Runs the session behind the screen: its turns and commands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use aside_core::compaction::CompactionTrigger;
use aside_core::dialect::Dialects;
use aside_core::interchange::{ThinkingMarkup, write_markdown};
use aside_core::message::{Message, Role};
use aside_core::settings::{Layer, SettingKey, ThinkingDisplay};
use aside_core::turn::TurnEnd;
use aside_engine::compaction::CompactionResult;
use aside_engine::tools::PermissionMode;
use aside_front::{Command, CommandOutput, CompletionLists, ProfileAction, Status, Update};
use aside_store::search::SearchQuery;
use aside_store::session::{NewSession, SessionChange};
use aside_store::usage::{GroupBy, UsageQuery};
use aside_store::{MessageId, SessionId, SqliteStore, Store};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::context_commands::ListedItem;
use super::screen::{ScreenAsker, ScreenFront};
use super::{Arguments, FrontSetup, replies};
use crate::ask::recording::{Recording, RecordingFront};
use crate::providers::{Providers, env_var};
use crate::report::Report;
use crate::session_recorder::{self, SessionChoice, SessionRecorder, StoringFront};
use crate::settings::{self, Overrides, ProfileName, setting_error};
use crate::start::{self, ActiveSession, StartOptions, Trust};
use crate::{times, usage, user_files};

/// How many prompts of earlier sessions the input history holds.
const MAX_PROMPTS: usize = 500;

/// How many file names are offered for completion.
const MAX_FILES: usize = 2000;

pub(crate) struct Driver {
    pub(super) active: ActiveSession,
    pub(super) front: ScreenFront,
    asker: ScreenAsker,
    pub(super) store: Option<Arc<SqliteStore>>,
    /// The recording started by `/record`.
    pub(super) recording: Option<Recording>,
    /// The last listed items, for `/open NUMBER`.
    pub(super) listed: Vec<ListedItem>,
    /// The stored session to continue, until `recorder` has opened it.
    resumed: Option<(SessionId, Vec<MessageId>)>,
    pub(super) recorder: Option<SessionRecorder>,
    /// The prompt that `/undo` removed, until another prompt is sent.
    pub(super) undone_prompt: Option<Message>,
    /// The prompts of this run as typed, with `@path` mentions.
    pub(super) typed_prompts: Vec<String>,
    title: Option<String>,
    profile: Option<String>,
    /// Commands received during a turn, to run after it.
    deferred: VecDeque<Command>,
}

/// What to do after a command.
pub(super) enum CommandOutcome {
    Reply(CommandOutput),
    /// The front end shows the effect without a reply.
    Silent,
    Quit,
}

fn branch(active: &ActiveSession) -> Vec<Message> {
    active.session.history.branch().into_iter().map(|(_, message)| message.clone()).collect()
}

impl Driver {
    pub(crate) async fn open(arguments: &Arguments, updates: Sender<Update>) -> anyhow::Result<(Driver, FrontSetup)> {
        let choice = match (&arguments.resume, arguments.last) {
            (Some(word), _) => SessionChoice::Named(word),
            (None, true) => SessionChoice::Last,
            (None, false) => SessionChoice::New,
        };
        // A new session can run without a store; the user is told.
        let (store, unsaved) = match (session_recorder::open_store(), choice) {
            (Ok(store), _) => (Some(store), None),
            (Err(report), SessionChoice::New) => (None, Some(report)),
            (Err(report), SessionChoice::Last | SessionChoice::Named(_)) => return Err(report.into()),
        };
        let mut resumed = match &store {
            Some(store) => session_recorder::resume(store, choice)?,
            None => None,
        };
        // Move the history instead of copying it: it may be large.
        let history = resumed.as_mut().map(|resumed| std::mem::take(&mut resumed.conversation.history));
        // The screen is not up yet, so questions go to the plain terminal.
        let asker = crate::ask::permission_prompt::terminal_asker(&CancellationToken::new());
        let options = StartOptions {
            model: arguments.model.as_deref(),
            resumed: resumed.as_ref().map(|resumed| &resumed.conversation),
            tools: Some(PermissionMode::Ask),
            trust: if arguments.trust { Trust::Given } else { Trust::Ask(asker.as_ref()) },
            // The screen is about to cover the terminal, so notices go there.
            notify: &|line| drop(updates.send(Update::CommandOutput(replies::line(line)))),
        };
        let mut active = start::start_session(&options, &arguments.overrides).await?;
        let restored = match history {
            Some(history) => {
                active.session.replace_history(history);
                branch(&active)
            }
            None => Vec::new(),
        };
        let loaded = arguments.overrides.load()?;
        let profile = loaded.profile.map(|(name, _)| name.to_string());
        let title = resumed.as_ref().and_then(|resumed| resumed.conversation.title.clone());
        let front = ScreenFront {
            updates: updates.clone(),
            limit: None,
            wants_thinking: false,
            model: String::new(),
            sent_messages: Vec::new(),
        };
        let driver = Driver {
            active,
            front,
            asker: ScreenAsker::new(updates),
            resumed: resumed.map(|resumed| (resumed.id, resumed.ids)),
            store,
            recording: None,
            listed: Vec::new(),
            recorder: None,
            undone_prompt: None,
            typed_prompts: Vec::new(),
            title,
            profile,
            deferred: VecDeque::new(),
        };
        let lists = driver.lists()?;
        if let Some(report) = unsaved {
            driver.front.send(Update::CommandOutput(replies::error(&report.prefixed("this session is not saved"))));
        }
        let setup = FrontSetup { status: driver.status(), lists, keys: loaded.keys, restored };
        Ok((driver, setup))
    }

    /// Returns the id of the saved session, if it is not empty.
    pub(crate) async fn close(self) -> Option<SessionId> {
        let saved = match (&self.recorder, self.resumed) {
            (Some(recorder), _) => recorder.saved_id().cloned(),
            (None, resumed) => resumed.map(|(id, _)| id),
        };
        let is_empty = self.active.session.history.branch().is_empty();
        drop(self.recorder);
        self.active.close().await;
        saved.filter(|_| !is_empty)
    }

    /// Runs commands until the screen is gone.
    pub(crate) async fn run(&mut self, inbox: &mut UnboundedReceiver<Command>) {
        self.send_prompt_history();
        loop {
            let command = match self.deferred.pop_front() {
                Some(command) => Some(command),
                None => inbox.recv().await,
            };
            let Some(command) = command else { return };
            // These belong to a running turn, or arrived too late for it.
            let is_aside = matches!(command, Command::Interrupt | Command::AnswerNow | Command::Answer { .. });
            // Profile names are offered for completion.
            let changes_lists = matches!(command, Command::Profile(_));
            let begins_a_turn = matches!(command, Command::Prompt(_));
            let title = replies::title(&command);
            match self.run_command(command, inbox).await {
                Ok(CommandOutcome::Silent) => (),
                Ok(CommandOutcome::Reply(output)) => {
                    self.front.send(Update::CommandOutput(replies::titled(title, output)))
                }
                Ok(CommandOutcome::Quit) => return,
                // The front end is waiting for the turn to end.
                Err(report) if begins_a_turn => {
                    self.front.send(Update::TurnEnded(TurnEnd::Unreachable(report.to_string())));
                }
                Err(report) => self.front.send(Update::CommandOutput(replies::error(&report))),
            }
            if !is_aside {
                self.front.send(Update::Ready);
            }
            if changes_lists {
                self.refresh_lists();
            }
        }
    }

    /// Sends the prompts of earlier sessions, after the first frame is drawn.
    fn send_prompt_history(&self) {
        let earlier = self.store.as_ref().map(|store| store.prompts(MAX_PROMPTS));
        if let Some(Ok(mut earlier)) = earlier {
            earlier.reverse();
            self.front.send(Update::PromptHistory(earlier));
        }
    }

    pub(super) async fn send_prompt(
        &mut self,
        text: &str,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, Report> {
        let attached = match start::attach(text, None) {
            Ok(attached) => attached,
            Err(report) => {
                let (what, hint) = (report.to_string(), report.hint_text().map(str::to_owned));
                self.front.send(Update::NotSent { text: text.to_owned(), what, hint });
                return Ok(CommandOutcome::Silent);
            }
        };
        self.undone_prompt = None;
        self.typed_prompts.push(text.to_owned());
        for description in attached.descriptions {
            self.front.send(Update::CommandOutput(replies::line(description)));
        }
        self.send_message(Message::new(Role::User, attached.blocks), inbox).await
    }

    pub(super) async fn send_message(
        &mut self,
        message: Message,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, Report> {
        self.open_recorder(&message);
        let done = self.turn(message, inbox).await;
        self.refresh_lists();
        Ok(done)
    }

    async fn turn(&mut self, message: Message, inbox: &mut UnboundedReceiver<Command>) -> CommandOutcome {
        let cancel = CancellationToken::new();
        let settings = &self.active.session.settings;
        self.front.limit = settings.context_limit();
        let (enabled, by) = settings.enabled();
        self.front.wants_thinking = enabled && (by.is_set_by_user() || settings.max_thinking_tokens().is_some());
        self.front.sent_messages =
            self.active.session.history.branch().iter().map(|(_, message)| replies::excerpt(message)).collect();
        self.front.model.clone_from(&self.active.model);
        let answer_now = self.active.session.answer_now_signal();
        let mut recorder = RecordingFront::new(&mut self.front, self.recording.as_mut());
        let mut front = StoringFront::new(&mut recorder, self.recorder.as_mut());
        let mut turn = std::pin::pin!(self.active.session.turn(message, &mut front, &self.asker, &cancel));
        let mut quits = false;
        let _end: TurnEnd = loop {
            tokio::select! {
                end = &mut turn => break end,
                command = inbox.recv(), if !quits => match command {
                    Some(Command::Interrupt) => cancel.cancel(),
                    Some(Command::AnswerNow) => answer_now.request(),
                    Some(Command::Answer { id, answer: permit }) => self.asker.answer(id, permit),
                    Some(Command::Quit) | None => {
                        quits = true;
                        cancel.cancel();
                    }
                    Some(other) => {
                        self.asker.announce_deferred(&other);
                        self.deferred.push_back(other);
                    }
                },
            }
        };
        if quits { CommandOutcome::Quit } else { CommandOutcome::Silent }
    }

    /// Updates the completion lists: files, sessions, tools and rules may have changed.
    pub(super) fn refresh_lists(&self) {
        if let Ok(lists) = self.lists() {
            self.front.send(Update::CompletionLists(Box::new(lists)));
        }
    }

    pub(super) fn branch(&self) -> Vec<Message> {
        branch(&self.active)
    }

    /// Opens the recorder when the first prompt is sent.
    fn open_recorder(&mut self, first: &Message) {
        let mut new = session_recorder::new_session(self.active.model.clone(), &self.active.session.settings, first);
        // The user may have set a title before the first prompt.
        new.title = self.title.take().or(new.title);
        self.title.clone_from(&new.title);
        self.open_recorder_with(new);
    }

    /// Opens the recorder of a resumed session before its first change, so that
    /// undo, compaction and settings are stored even without a new prompt.
    pub(super) fn open_resumed_recorder(&mut self) {
        if self.resumed.is_some() {
            self.open_recorder_with(NewSession::default());
        }
    }

    fn open_recorder_with(&mut self, new: NewSession) {
        let Some(store) = self.store.clone().filter(|_| self.recorder.is_none()) else { return };
        let session = &self.active.session;
        match SessionRecorder::open(store, self.resumed.take(), new, &session.history, session.endpoint.origin()) {
            Ok(recorder) => self.recorder = Some(recorder),
            Err(error) => {
                self.store = None;
                let what = format!("this session is not saved: {error}");
                self.front.send(Update::CommandOutput(CommandOutput::Error { what, hint: None }));
            }
        }
        self.front.send(Update::Status(Box::new(self.status())));
    }

    fn status(&self) -> Status {
        let settings = &self.active.session.settings;
        Status {
            model: self.active.model.clone(),
            profile: self.profile.clone(),
            title: self.title.clone(),
            limit: settings.context_limit(),
            effort: settings.effort().filter(|_| settings.enabled().0).map(|effort| effort.to_string()),
            view: settings.display(),
            tier: self.active.tier(),
        }
    }

    fn lists(&self) -> Result<CompletionLists, Report> {
        let dialects = self.dialects();
        let simulated = dialects.iter().map(|dialect| format!("sim/{}", dialect.id));
        let presets = dialects
            .iter()
            .filter_map(|dialect| dialect.access.default_model.as_ref().map(|model| format!("{}/{model}", dialect.id)));
        let profiles = match user_files::config_folder() {
            Some(folder) => settings::profile_names(&folder)?.iter().map(ProfileName::to_string).collect(),
            None => Vec::new(),
        };
        let sessions = match &self.store {
            Some(store) => store.sessions(100).map_err(|error| session_recorder::store_error(&error))?,
            None => Vec::new(),
        };
        Ok(CompletionLists {
            models: self.active.configured_models().chain(presets).chain(simulated).collect(),
            profiles,
            files: start::attachable_files(MAX_FILES),
            sessions: sessions.into_iter().map(replies::completion_entry).collect(),
            tools: self.tool_names(),
            rules: self.forgettable_rules(),
        })
    }

    fn dialects(&self) -> Arc<Dialects> {
        self.active.session.dialects()
    }

    async fn run_command(
        &mut self,
        command: Command,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, Report> {
        let reply = |output: CommandOutput| Ok(CommandOutcome::Reply(output));
        match command {
            Command::Prompt(text) => self.send_prompt(&text, inbox).await,
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
            Command::View(view) => self.view(view),
            Command::Effort(Some(level)) => {
                self.set(SettingKey::Effort.name(), &level)?;
                reply(replies::line(format!("effort: {level}")))
            }
            Command::Effort(None) => {
                reply(replies::settings(&self.active.session.settings, Some(SettingKey::Effort.name()))?)
            }
            Command::Model(Some(name)) => self.switch_model(&name).await,
            Command::Model(None) => reply(replies::line(format!("model: {}", self.active.model))),
            Command::Profile(act) => self.profile(act),
            Command::Compact => self.compact(inbox).await,
            Command::Undo => self.undo(),
            Command::Fork => self.fork(),
            Command::Export(file) => self.export(file.as_deref()),
            Command::Other { name, rest } => self.run_other(&name, &rest).await,
            Command::Quit => Ok(CommandOutcome::Quit),
            // No turn is running, so there is nothing to stop or to answer.
            Command::Interrupt | Command::AnswerNow | Command::Answer { .. } | Command::Terminal(_) => {
                Ok(CommandOutcome::Silent)
            }
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Report> {
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
        self.front.send(Update::Status(Box::new(self.status())));
    }

    /// The view of thinking is a preference, so it is also written to the config.
    fn view(&mut self, view: ThinkingDisplay) -> Result<CommandOutcome, Report> {
        self.active.session.settings.show(Layer::Session, view);
        self.front.send(Update::Status(Box::new(self.status())));
        if let Some(folder) = user_files::config_folder() {
            settings::save_view(&folder, view)?;
        }
        Ok(CommandOutcome::Silent)
    }

    async fn switch_model(&mut self, name: &str) -> Result<CommandOutcome, Report> {
        self.active.switch(name).await?;
        if let Some(recorder) = &mut self.recorder {
            recorder.set_origin(self.active.session.endpoint.origin(), self.active.model.clone());
        }
        self.front.send(Update::Status(Box::new(self.status())));
        Ok(CommandOutcome::Reply(replies::line(format!("model: {}", self.active.model))))
    }

    fn profile(&mut self, act: ProfileAction) -> Result<CommandOutcome, Report> {
        let folder = settings::folder()?;
        match act {
            ProfileAction::List => {
                let names: Vec<String> = settings::profile_names(&folder)?.iter().map(ProfileName::to_string).collect();
                let names = if names.is_empty() { "there are none yet".to_owned() } else { names.join(", ") };
                Ok(CommandOutcome::Reply(replies::line(format!("profiles: {names}"))))
            }
            ProfileAction::Load(name) => {
                let name: ProfileName = name.parse().map_err(|error| Report::new(format!("{error}")))?;
                let contents = settings::existing_profile(&folder, &name)?.contents()?;
                self.active.session.settings.load_profile(contents.changes);
                self.profile = Some(name.to_string());
                self.settings_changed();
                Ok(CommandOutcome::Reply(replies::line(format!("profile: {name}"))))
            }
            ProfileAction::Save(name) => {
                let name: ProfileName = name.parse().map_err(|error| Report::new(format!("{error}")))?;
                crate::profile::write(&name, Some(&self.active.model), &self.active.session.settings)?;
                Ok(CommandOutcome::Reply(replies::line(format!("saved as {name}"))))
            }
            ProfileAction::Delete(name) => {
                let name: ProfileName = name.parse().map_err(|error| Report::new(format!("{error}")))?;
                if crate::profile::remove(&name)? {
                    self.profile = None;
                }
                Ok(CommandOutcome::Reply(replies::line(format!("deleted {name}"))))
            }
        }
    }

    async fn compact(&mut self, inbox: &mut UnboundedReceiver<Command>) -> Result<CommandOutcome, Report> {
        self.open_resumed_recorder();
        let mut front = StoringFront::new(&mut self.front, self.recorder.as_mut());
        let cancel = CancellationToken::new();
        let mut work = std::pin::pin!(self.active.session.compact(CompactionTrigger::Manual, &mut front, &cancel));
        let mut quits = false;
        let compacted = loop {
            tokio::select! {
                compacted = &mut work => break compacted,
                command = inbox.recv(), if !quits => match command {
                    Some(Command::Interrupt) => cancel.cancel(),
                    Some(Command::Quit) | None => {
                        quits = true;
                        cancel.cancel();
                    }
                    Some(other) => self.deferred.push_back(other),
                },
            }
        };
        if quits {
            return Ok(CommandOutcome::Quit);
        }
        match compacted {
            CompactionResult::Done(_) => Ok(CommandOutcome::Silent),
            CompactionResult::Skipped(why) => Ok(CommandOutcome::Reply(replies::line(why.to_string()))),
            CompactionResult::Failed(why) => Err(Report::new(format!("older turns could not be summarised: {why}"))),
        }
    }

    /// Copies the conversation to a new session and continues there.
    fn fork(&mut self) -> Result<CommandOutcome, Report> {
        let Some(store) = self.store.clone() else { return Err(Report::new("this session is not saved")) };
        let conversation = self.active.conversation(self.title.clone());
        let id = store
            .import(&conversation, Some(session_recorder::now()))
            .map_err(|error| session_recorder::store_error(&error))?;
        self.load_session(&store, id.as_str())?;
        Ok(CommandOutcome::Reply(replies::line(format!("going on in a copy: {id}"))))
    }

    /// Continues another session. Returns the stored ids of its history entries.
    pub(super) fn load_session(&mut self, store: &SqliteStore, word: &str) -> Result<Vec<MessageId>, Report> {
        let Some(resumed) = session_recorder::resume(store, SessionChoice::Named(word))? else { return Ok(Vec::new()) };
        (self.recorder, self.undone_prompt) = (None, None);
        self.title = resumed.conversation.title.clone();
        self.resumed = Some((resumed.id, resumed.ids.clone()));
        self.active.session.replace_history(resumed.conversation.history);
        self.front.send(Update::Restored(self.branch()));
        self.front.send(Update::Status(Box::new(self.status())));
        Ok(resumed.ids)
    }

    fn export(&self, file: Option<&str>) -> Result<CommandOutcome, Report> {
        let text = write_markdown(&self.active.conversation(self.title.clone()), ThinkingMarkup::Callout);
        let name = file.map_or_else(|| format!("aside-{}.md", times::file_stamp()), str::to_owned);
        let path = std::path::Path::new(&name);
        crate::atomic::write(path, &text).map_err(|error| Report::new(format!("cannot write {name}: {error}")))?;
        Ok(CommandOutcome::Reply(replies::line(format!("written to {name}"))))
    }

    async fn run_other(&mut self, name: &str, rest: &str) -> Result<CommandOutcome, Report> {
        if let Some(done) = self.run_context_command(name, rest) {
            return done;
        }
        let Some(store) = self.store.clone() else { return Err(Report::new("no session is saved")) };
        let trouble = |error| session_recorder::store_error(&error);
        match name {
            "sessions" | "resume" if rest.is_empty() || name == "sessions" => {
                let sessions = store.sessions(20).map_err(trouble)?;
                self.listed = sessions.iter().map(|one| ListedItem { session: one.id.clone(), block: None }).collect();
                Ok(CommandOutcome::Reply(replies::sessions(&sessions)))
            }
            // Ids are longer than list numbers.
            "resume" if rest.parse::<usize>().is_ok_and(|number| number <= self.listed.len()) => self.open_listed(rest),
            "resume" => {
                self.load_session(&store, rest)?;
                Ok(CommandOutcome::Silent)
            }
            "new" => {
                (self.recorder, self.undone_prompt) = (None, None);
                (self.resumed, self.title) = (None, None);
                self.front.send(Update::Restored(Vec::new()));
                let notify = |line: &str| self.front.send(Update::CommandOutput(replies::line(line)));
                start::restart_session(&mut self.active, &notify).await?;
                self.front.send(Update::Status(Box::new(self.status())));
                Ok(CommandOutcome::Silent)
            }
            "title" if rest.is_empty() => Err(Report::new("a title needs text").hint("/title TEXT")),
            "title" => {
                self.title = Some(rest.to_owned());
                self.open_resumed_recorder();
                if let Some(recorder) = &mut self.recorder {
                    recorder.change(&SessionChange::Title(rest.to_owned()));
                }
                self.front.send(Update::Status(Box::new(self.status())));
                Ok(CommandOutcome::Silent)
            }
            "search" if rest.is_empty() => Err(Report::new("there is nothing to search for").hint("/search WORDS")),
            "search" => {
                let found = store.search(&SearchQuery::new(rest)).map_err(trouble)?;
                self.listed = found.hits.iter().map(ListedItem::from_hit).collect();
                Ok(CommandOutcome::Reply(replies::search_hits(&found)))
            }
            "usage" => self.usage(&store),
            other => Err(Report::new(format!("unknown command `{other}`")).hint("/help lists them")),
        }
    }

    fn usage(&self, store: &SqliteStore) -> Result<CommandOutcome, Report> {
        let loaded = Overrides::default().load()?;
        let dialects = self.dialects();
        let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
        let query = UsageQuery {
            group_by: GroupBy::Model,
            session: None,
            since: None,
            billing: &|origin| usage::pricing_terms(&providers, &dialects, origin),
            utc_offset_minutes: times::utc_offset_minutes(),
        };
        Ok(CommandOutcome::Reply(replies::usage(
            &store.usage(&query).map_err(|error| session_recorder::store_error(&error))?,
        )))
    }
}
