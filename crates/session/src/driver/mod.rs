//! Runs a session for a front end: its turns and commands.

mod blocking;
mod channel_asker;
mod commands;
mod context_bars;
mod context_commands;
mod interruptible;
mod live_models;
mod next_request;
mod replies;
mod screen_preferences;
mod steering;
mod stored_sessions;
mod undo;
mod user_command;
mod view_preference;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::dialect::{Dialect, Dialects};
use aside_core::mention::escape_mentions;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_engine::attachments::AttachedPrompt;
use aside_front::{
    Attachment, Command, CommandOutput, CompletionLists, CostSoFar, MouseMode, ScreenSettings, Status, Update,
};
use aside_store::session::NewSession;
use aside_store::{MessageId, SessionId, SqliteStore, Store, StoreError};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use crate::error::HintedError;
use crate::handle::{SessionSetup, SetupAccess};
use crate::learned_repairs::StoredRepairs;
use crate::recording::{Recording, RecordingFront};
use crate::session_recorder::{self, SessionRecorder, StoringFront};
use crate::settings::{self, ProfileName};
use crate::start::{self, ActiveSession, Saving, SessionOptions};
use crate::stored_session::{self, Continuation, FoundSession, ResumedSession, SessionChoice, StoredSession};
use crate::update_front::UpdateFront;
use crate::{git_branch, own_commands};
use blocking::{blocking, in_store};
use channel_asker::ChannelAsker;
use context_commands::ListedItem;
use next_request::LastCount;
pub use replies::decision_action;
pub(crate) use replies::{decision_rows, excerpt};
use steering::Steering;
use view_preference::ViewPreference;

/// How many prompts of earlier sessions the input history holds.
const MAX_PROMPTS: usize = 500;

/// How many sessions are offered for completion.
const MAX_SESSIONS: usize = 100;

/// How many file names are offered for completion.
const MAX_FILES: usize = 2000;

/// What to do when there is nothing but the simulator.
const SIMULATOR_HINT: &str = "a real model needs a key or a local server: `aside doctor` says how; to see a tool at \
                              work, send: sim: call write {\"path\": \"hello.txt\", \"content\": \"hello\"}";

/// A session that receives commands and sends updates.
pub struct Driver {
    active: ActiveSession,
    front: UpdateFront<Sender<Update>>,
    asker: ChannelAsker,
    store: Option<Arc<SqliteStore>>,
    stored_repairs: StoredRepairs,
    saving: Saving,
    /// The id for the first new session.
    new_id: Option<SessionId>,
    /// The recording started by `/record`.
    recording: Option<Recording>,
    /// The last listed items, for `/open NUMBER`.
    listed: Vec<ListedItem>,
    /// The stored session to continue, until `recorder` has opened it.
    resumed: Option<StoredSession>,
    /// Whether the session to continue is copied before its first change.
    continuation: Continuation,
    recorder: Option<SessionRecorder>,
    /// The prompt that `/undo` removed, until another prompt is sent.
    undone_prompt: Option<Message>,
    /// The prompts of this run as typed, with `@path` mentions.
    typed_prompts: Vec<String>,
    title: Option<String>,
    profile: Option<String>,
    /// Commands received during a turn, to run after it.
    deferred: VecDeque<Command>,
    view_preference: ViewPreference,
    last_count: LastCount,
    /// How many command lines the user ran.
    n_user_commands: u64,
}

/// What to do after a command.
enum CommandOutcome {
    Reply(CommandOutput),
    /// The front end shows the effect without a reply.
    Silent,
    Quit,
}

fn branch(active: &ActiveSession) -> Vec<Arc<Message>> {
    active.session.history.shared_branch()
}

/// Tells the user about a failure.
fn report(front: &UpdateFront<Sender<Update>>, result: Result<(), HintedError>) {
    if let Err(error) = result {
        front.send(Update::CommandOutput(replies::error(&error)));
    }
}

/// The stored session to continue. If this folder has none, a new one begins, and the
/// user is told.
fn resume(
    store: &SqliteStore,
    options: &SessionOptions,
    updates: &Sender<Update>,
) -> Result<Option<ResumedSession>, HintedError> {
    match stored_session::find_session(store, &options.choice, &options.folder)? {
        FoundSession::New => Ok(None),
        FoundSession::Stored(id) if options.saving == Saving::Off => stored_session::read(store, id).map(Some),
        FoundSession::Stored(id) => stored_session::resume(store, id).map(Some),
        FoundSession::NoneHere(none) => {
            let none = none.error();
            let hint = none.hint_text().unwrap_or_default();
            let line = format!("{none}, so this is a new one; {hint}");
            drop(updates.send(Update::CommandOutput(replies::line(line))));
            Ok(None)
        }
    }
}

/// Whether a resumed session itself continues or a copy of it, and what to tell the user:
/// where its tools work, and whether it is open elsewhere.
fn continuation(resumed: &ResumedSession, here: &Path, wanted: Continuation) -> (Continuation, Vec<String>) {
    let mut notices: Vec<String> = resumed.folder_notice(here).into_iter().collect();
    if wanted == Continuation::Copy || !resumed.stored.is_open_elsewhere() {
        return (wanted, notices);
    }
    let open =
        "note: this session is open in another aside; it can be read here, and what you send continues in a copy";
    notices.push(open.to_owned());
    (Continuation::Copy, notices)
}

impl Driver {
    /// Opens a session. Its notices go to `updates`.
    pub async fn open(
        options: &SessionOptions,
        updates: Sender<Update>,
    ) -> Result<(Driver, SessionSetup), HintedError> {
        // A new session can run without a store; the user is told.
        let needs_store = options.saving == Saving::On || options.choice != SessionChoice::New;
        let opened = needs_store.then(|| session_recorder::open_store(&options.user_folders)).transpose();
        let (store, unsaved) = match (opened, &options.choice) {
            (Ok(store), _) => (store, None),
            (Err(error), SessionChoice::New) => (None, Some(error)),
            (Err(error), SessionChoice::Last | SessionChoice::LastAnywhere | SessionChoice::Named(_)) => {
                return Err(error);
            }
        };
        let notify = |line: &str| drop(updates.send(Update::CommandOutput(replies::line(line))));
        let mut resumed = match &store {
            Some(store) => resume(store, options, &updates)?,
            None => None,
        };
        let (continuation, notices) = match &resumed {
            Some(resumed) => continuation(resumed, &options.folder, options.continuation),
            None => (Continuation::Itself, Vec::new()),
        };
        for notice in notices {
            notify(&notice);
        }
        // Move the history instead of copying it: it may be large.
        let history = resumed.as_mut().map(|resumed| std::mem::take(&mut resumed.conversation.history));
        let conversation = resumed.as_ref().map(|resumed| &resumed.conversation);
        let mut active = start::start_session(options, conversation, &notify).await?;
        if active.simulator_is_fallback {
            notify(SIMULATOR_HINT);
        }
        options.limits.apply(&mut active)?;
        let restored = match history {
            Some(history) => {
                active.session.replace_history(history);
                branch(&active)
            }
            None => Vec::new(),
        };
        let profile = active.profile.as_ref().map(ProfileName::to_string);
        let keys = std::mem::take(&mut active.keys);
        let title = resumed.as_ref().and_then(|resumed| resumed.conversation.title.clone());
        let view_preference = ViewPreference::new(active.user_folders.config.clone());
        let saved_to = store.clone().filter(|_| options.saving == Saving::On);
        let stored_repairs = StoredRepairs::load(saved_to, &mut active.session);
        let stored_repairs = stored_repairs.map_err(|error| session_recorder::store_error(&error))?;
        let access = match &resumed {
            Some(resumed) if resumed.stored.is_open_elsewhere() => SetupAccess::OpenElsewhere,
            Some(_) | None => SetupAccess::Writable,
        };
        let driver = Driver {
            active,
            stored_repairs,
            front: UpdateFront::channel(updates.clone()),
            asker: ChannelAsker::new(updates),
            resumed: resumed.map(|resumed| resumed.stored),
            continuation,
            store,
            saving: options.saving,
            new_id: options.new_id.clone(),
            recording: None,
            listed: Vec::new(),
            recorder: None,
            undone_prompt: None,
            typed_prompts: Vec::new(),
            title,
            profile,
            deferred: VecDeque::new(),
            view_preference,
            last_count: LastCount::Holds,
            n_user_commands: 0,
        };
        let lists = driver.lists().await?;
        driver
            .active
            .user_folders
            .config
            .iter()
            .flat_map(|config| own_commands::list(config).notes)
            .for_each(|note| driver.front.send(Update::CommandOutput(replies::line(note))));
        if let Some(error) = unsaved {
            driver.front.send(Update::CommandOutput(replies::error(&error.prefixed("this session is not saved"))));
        }
        let setup =
            SessionSetup { status: driver.status(), lists, keys, restored, restored_ids: driver.branch_ids(), access };
        Ok((driver, setup))
    }

    /// Returns the id of the saved session, if it is not empty.
    pub async fn close(self) -> Option<SessionId> {
        let saved = match (&self.recorder, self.resumed) {
            (Some(recorder), _) => recorder.saved_id().cloned(),
            (None, resumed) => resumed.map(|stored| stored.id),
        };
        let is_empty = self.active.session.history.branch().is_empty();
        drop(self.recorder);
        self.active.close().await;
        saved.filter(|_| !is_empty)
    }

    /// Runs commands until the front end disconnects.
    pub async fn run(&mut self, inbox: &mut UnboundedReceiver<Command>) {
        // After the first frame, because it takes time.
        self.send_status();
        self.send_prompt_history().await;
        self.run_commands(inbox).await;
        report(&self.front, self.view_preference.save().await);
    }

    async fn run_commands(&mut self, inbox: &mut UnboundedReceiver<Command>) {
        loop {
            let command = match self.deferred.pop_front() {
                Some(command) => Some(command),
                None => tokio::select! {
                    biased;
                    command = inbox.recv() => command,
                    () = self.view_preference.settled() => {
                        report(&self.front, self.view_preference.save().await);
                        continue;
                    }
                },
            };
            let Some(command) = command else { return };
            // These belong to a running turn, or arrived too late for it.
            let is_aside = matches!(command, Command::Interrupt | Command::AnswerNow | Command::Answer { .. });
            // Profile names are offered for completion.
            let changes_lists = matches!(command, Command::Profile(_));
            let begins_a_turn = matches!(command, Command::Prompt(_) | Command::PromptWith { .. } | Command::Steer(_));
            let title = replies::title(&command);
            match self.run_command(command, inbox).await {
                Ok(CommandOutcome::Silent) => (),
                Ok(CommandOutcome::Reply(output)) => {
                    self.front.send(Update::CommandOutput(replies::titled(title, output)))
                }
                Ok(CommandOutcome::Quit) => return,
                // The front end is waiting for the turn to end.
                Err(error) if begins_a_turn => {
                    self.front.send(Update::TurnEnded(TurnEnd::Unreachable(ConnectionError::new(
                        ConnectionFailure::Other,
                        error.to_string(),
                    ))));
                }
                Err(error) => self.front.send(Update::CommandOutput(replies::error(&error))),
            }
            if !is_aside {
                self.front.send(Update::Ready);
            }
            if changes_lists {
                self.refresh_lists().await;
            }
        }
    }

    /// Sends the prompts of earlier sessions, after the first frame is drawn.
    async fn send_prompt_history(&self) {
        let Some(store) = &self.store else { return };
        if let Ok(mut earlier) = in_store(store, |store| store.prompts(MAX_PROMPTS)).await {
            earlier.reverse();
            self.front.send(Update::PromptHistory(earlier));
        }
    }

    async fn send_prompt(
        &mut self,
        text: &str,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        let attached = match start::attach(text, None, &self.active.folder) {
            Ok(attached) => attached,
            Err(error) => {
                let (what, hint) = (error.to_string(), error.hint_text().map(str::to_owned));
                self.front.send(Update::NotSent { text: text.to_owned(), what, hint });
                return Ok(CommandOutcome::Silent);
            }
        };
        self.send_attached(text.to_owned(), attached, inbox).await
    }

    /// Sends a prompt whose attachments the front end names.
    async fn send_prompt_with(
        &mut self,
        text: String,
        attachments: &[Attachment],
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        match start::attach_named(&text, attachments, &self.active.folder) {
            Ok(attached) => self.send_attached(escape_mentions(&text).into_owned(), attached, inbox).await,
            Err(error) => {
                let (what, hint) = (error.to_string(), error.hint_text().map(str::to_owned));
                self.front.send(Update::NotSent { text, what, hint });
                Ok(CommandOutcome::Silent)
            }
        }
    }

    /// `typed` is the prompt as the user would type it again.
    async fn send_attached(
        &mut self,
        typed: String,
        attached: AttachedPrompt,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        self.undone_prompt = None;
        self.typed_prompts.push(typed);
        for description in attached.descriptions {
            self.front.send(Update::CommandOutput(replies::line(description)));
        }
        self.send_message(Message::new(Role::User, attached.blocks), inbox).await
    }

    async fn send_message(
        &mut self,
        message: Message,
        inbox: &mut UnboundedReceiver<Command>,
    ) -> Result<CommandOutcome, HintedError> {
        self.active.change_recorder.stop();
        self.open_recorder(&message);
        let done = self.turn(message, inbox).await;
        if let Err(error) = self.stored_repairs.save(&self.active.session) {
            let line = format!("what this endpoint needs is not remembered: {error}");
            self.front.send(Update::CommandOutput(replies::line(&line)));
        }
        self.last_count = LastCount::Holds;
        self.send_status();
        self.refresh_lists().await;
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
        self.front.model = Some(self.active.model.clone());
        let answer_now = self.active.session.answer_now_signal();
        let mut status = self.status();
        let tool_mode = self.active.session.tools.permissions().tool_mode().clone();
        let mut steering = Steering::new(self.active.session.steering_queue());
        let mut recorder = RecordingFront::new(&mut self.front, self.recording.as_mut());
        let mut front = StoringFront::new(&mut recorder, self.recorder.as_mut());
        let mut turn = std::pin::pin!(self.active.session.turn(message, &mut front, &self.asker, &cancel));
        let mut quits = false;
        let end: TurnEnd = loop {
            tokio::select! {
                end = &mut turn => break end,
                command = inbox.recv(), if !quits => match command {
                    Some(Command::Interrupt) => cancel.cancel(),
                    Some(Command::AnswerNow) => answer_now.request(),
                    Some(Command::Answer { id, answer: permit }) => self.asker.answer(id, permit),
                    Some(Command::Mode(mode)) => {
                        tool_mode.set(mode);
                        status.mode = status.mode.map(|_| mode);
                        self.asker.send(Update::Status(Box::new(status.clone())));
                    }
                    Some(Command::Steer(text)) => match steering.add(&text, &self.active.folder) {
                        Ok(descriptions) => {
                            self.typed_prompts.push(text);
                            for description in descriptions {
                                self.asker.send(Update::CommandOutput(replies::line(description)));
                            }
                        }
                        Err(error) => self.asker.send(Update::NotSteered { text, error: Some(error) }),
                    },
                    Some(Command::Quit) | None => {
                        quits = true;
                        cancel.cancel();
                    }
                    Some(other) => {
                        // The turn may end with the session.
                        if let Command::View(view) = other {
                            self.view_preference.choose(view);
                        }
                        self.asker.announce_deferred(&other);
                        self.deferred.push_back(other);
                    }
                },
            }
        };
        for text in steering.take_unsent() {
            if end.leaves_room_for_more() && !quits {
                // It came too late for this turn, so it starts the next one.
                self.deferred.push_back(Command::Steer(text));
            } else {
                self.asker.send(Update::NotSteered { text, error: None });
            }
        }
        if quits { CommandOutcome::Quit } else { CommandOutcome::Silent }
    }

    /// Updates the completion lists: files, sessions, tools and rules may have changed.
    async fn refresh_lists(&self) {
        if let Ok(lists) = self.lists().await {
            self.front.send(Update::CompletionLists(Box::new(lists)));
        }
    }

    fn branch(&self) -> Vec<Arc<Message>> {
        branch(&self.active)
    }

    /// The stored id of each message of the resumed session's branch.
    fn branch_ids(&self) -> Vec<MessageId> {
        let Some(stored) = &self.resumed else { return Vec::new() };
        let branch = self.active.session.history.branch();
        branch.iter().filter_map(|(entry, _)| stored.ids.get(entry.0).copied()).collect()
    }

    /// Opens the recorder when the first prompt is sent.
    fn open_recorder(&mut self, first: &Message) {
        let mut new = {
            let ActiveSession { session, model, folder, .. } = &self.active;
            session_recorder::new_session(model.clone(), &session.settings, first, folder)
        };
        // The user may have set a title before the first prompt.
        new.title = self.title.take().or(new.title);
        self.title.clone_from(&new.title);
        self.open_recorder_with(new);
    }

    /// Opens the recorder of a resumed session before its first change, so that
    /// undo, compaction and settings are stored even without a new prompt.
    fn open_resumed_recorder(&mut self) {
        if self.resumed.is_some() {
            self.open_recorder_with(NewSession::default());
        }
    }

    fn open_recorder_with(&mut self, new: NewSession) {
        let wants_recorder = self.recorder.is_none() && self.saving == Saving::On;
        let Some(store) = self.store.clone().filter(|_| wants_recorder) else { return };
        match self.try_open_recorder(store, new) {
            Ok(recorder) => self.recorder = Some(recorder.with_updates(self.front.updates())),
            Err(error) => {
                self.store = None;
                let what = format!("this session is not saved: {error}");
                self.front.send(Update::CommandOutput(CommandOutput::Error { what, hint: None }));
            }
        }
        self.front.send(Update::Status(Box::new(self.status())));
    }

    fn try_open_recorder(&mut self, store: Arc<SqliteStore>, new: NewSession) -> Result<SessionRecorder, StoreError> {
        let mut stored = self.resumed.take();
        if stored.is_some() && self.continuation == Continuation::Copy {
            let conversation = self.active.conversation(self.title.clone());
            let copy = stored_session::copy_session(&store, &conversation, &self.active.folder)?;
            let line = format!("continuing in a copy: {}", copy.id);
            self.front.send(Update::CommandOutput(replies::line(line)));
            stored = Some(copy);
        }
        self.continuation = Continuation::Itself;
        let new = NewSession { id: self.new_id.take().filter(|_| stored.is_none()), ..new };
        let recorder = SessionRecorder::open(store, stored, new, &self.active)?;
        self.active.session.parameters.cache_key = Some(recorder.id().to_string());
        Ok(recorder)
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
    fn cost(&self) -> Option<CostSoFar> {
        let cost = self.active.session.totals.cost;
        let microdollars = cost.amount().map(|amount| (amount * 1e6).round() as u64).filter(|amount| *amount > 0)?;
        Some(CostSoFar { microdollars, is_exact: cost.is_exact() })
    }

    async fn lists(&self) -> Result<CompletionLists, HintedError> {
        let dialects = self.dialects();
        let simulated = dialects.iter().map(|dialect| format!("sim/{}", dialect.id));
        let preset =
            |dialect: &Dialect| dialect.access.default_model.as_ref().map(|model| format!("{}/{model}", dialect.id));
        // Models that can be used come first.
        let (with_key, without_key): (Vec<&Dialect>, Vec<&Dialect>) =
            dialects.iter().partition(|dialect| self.active.has_key(dialect));
        let (with_key, without_key) =
            (with_key.into_iter().filter_map(preset), without_key.into_iter().filter_map(preset));
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
                files: start::attachable_files(&folder, MAX_FILES),
                sessions: sessions.into_iter().map(|session| replies::completion_entry(session, &root)).collect(),
                ..CompletionLists::default()
            })
        });
        Ok(CompletionLists {
            models: self.active.configured_models().chain(with_key).chain(simulated).chain(without_key).collect(),
            efforts: self.active.efforts.clone(),
            tools: self.tool_names(),
            rules: self.forgettable_rules(),
            ..listed.await?
        })
    }

    fn dialects(&self) -> Arc<Dialects> {
        self.active.session.dialects()
    }
}
