//! Runs a session for a front end: its turns and commands.

mod blocking;
mod channel_asker;
mod commands;
mod context_bars;
mod context_commands;
mod interruptible;
mod live_models;
mod next_request;
mod open;
mod replies;
mod saving;
mod screen_preferences;
mod status;
mod steering;
mod stored_sessions;
mod turn;
mod undo;
mod user_command;
mod view_preference;
mod waiting_commands;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use aside_core::connection_failure::{ConnectionError, ConnectionFailure};
use aside_core::dialect::Dialects;
use aside_core::message::Message;
use aside_core::turn::TurnEnd;
use aside_front::{Command, CommandOutput, Update};
use aside_store::{MessageId, SessionId, SqliteStore, Store};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::active_session::ActiveSession;
use crate::error::HintedError;
use crate::learned_repairs::StoredRepairs;
use crate::recording::Recording;
use crate::session_options::Saving;
use crate::session_recorder::SessionRecorder;
use crate::stored_session::{Continuation, StoredSession};
use crate::update_front::UpdateFront;
use blocking::in_store;
use channel_asker::ChannelAsker;
use context_commands::ListedItem;
use next_request::LastCount;
pub use replies::{decision_action, nothing_found};
pub(crate) use replies::{decision_rows, excerpt};
use view_preference::ViewPreference;

/// How many prompts of earlier sessions the input history holds.
const MAX_PROMPTS: usize = 500;

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

impl Driver {
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
            // These belong to a running turn, or arrived too late for it; or the front end sends them by itself.
            let is_aside = matches!(
                command,
                Command::Interrupt
                    | Command::AnswerNow
                    | Command::Answer { .. }
                    | Command::TakeBack(_)
                    | Command::RefreshBranch(_)
            );
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

    fn branch(&self) -> Vec<Arc<Message>> {
        branch(&self.active)
    }

    /// The stored id of each message of the resumed session's branch.
    fn branch_ids(&self) -> Vec<MessageId> {
        let Some(stored) = &self.resumed else { return Vec::new() };
        let branch = self.active.session.history.branch();
        branch.iter().filter_map(|(entry, _)| stored.ids.get(entry.0).copied()).collect()
    }

    fn dialects(&self) -> Arc<Dialects> {
        self.active.session.dialects()
    }
}
