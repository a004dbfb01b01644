//! The commands that use the store: other sessions, titles, search and usage.

use std::sync::Arc;

use aside_core::conversation::Conversation;
use aside_front::Update;
use aside_store::search::SearchQuery;
use aside_store::session::SessionChange;
use aside_store::usage::{GroupBy, UsageQuery};
use aside_store::{MessageId, SessionId, SqliteStore, Store};

use super::blocking::{blocking, in_store};
use super::context_commands::ListedItem;
use super::next_request::LastCount;
use super::open::continuation;
use super::{CommandOutcome, Driver, replies};
use crate::error::HintedError;
use crate::providers::{Providers, env_var};
use crate::session_recorder::SessionRecorder;
use crate::settings::Overrides;
use crate::stored_session::{self, Continuation};
use crate::{system_prompt, times, usage};

/// How many sessions `/sessions` lists.
const MAX_LISTED: usize = 20;

impl Driver {
    /// Copies the conversation to a new session and continues there.
    pub(super) async fn fork(&mut self) -> Result<CommandOutcome, HintedError> {
        let Some(store) = self.store.clone() else { return Err(HintedError::new("this session is not saved")) };
        let (conversation, folder) = (self.active.conversation(self.title.clone()), self.active.folder.clone());
        let copy = in_store(&store, move |store| stored_session::copy_session(store, &conversation, &folder)).await?;
        let line = format!("continuing in a copy: {}", copy.id);
        (self.recorder, self.undone_prompt) = (None, None);
        (self.resumed, self.continuation) = (Some(copy), Continuation::Itself);
        self.send_status();
        self.refresh_lists().await;
        Ok(CommandOutcome::Reply(replies::line(line)))
    }

    /// Continues another session. Returns the stored ids of its history entries.
    pub(super) async fn load_session(
        &mut self,
        store: &Arc<SqliteStore>,
        word: &str,
    ) -> Result<Vec<MessageId>, HintedError> {
        let word = word.to_owned();
        let id = in_store(store, move |store| store.find(&word)).await?;
        let is_this = self.session_id() == Some(&id);
        if is_this {
            // Our own lock would make it look open elsewhere.
            (self.recorder, self.resumed) = (None, None);
        }
        let store = Arc::clone(store);
        let resumed = blocking(move || stored_session::resume(&store, id)).await?;
        if !is_this {
            // "This session" in an answer was the other one.
            self.active.session.tools.permissions().begin_session();
        }
        (self.recorder, self.undone_prompt) = (None, None);
        let (continuation, mut notices) = continuation(&resumed, &self.active.folder, Continuation::Itself);
        self.continuation = continuation;
        self.title = resumed.conversation.title.clone();
        notices.extend(self.restore_model(&resumed.conversation).await);
        let ids = resumed.stored.ids.clone();
        self.resumed = Some(resumed.stored);
        self.active.session.replace_history(resumed.conversation.history);
        self.front.send(Update::Restored(self.branch()));
        // After the transcript, which replaces all that was shown before.
        for notice in notices {
            self.front.send(Update::CommandOutput(replies::line(notice)));
        }
        self.last_count = LastCount::Holds;
        self.send_status();
        self.refresh_lists().await;
        Ok(ids)
    }

    /// Goes on with the model and the settings of a stored session, as `aside -r` does. Returns what to tell the user.
    async fn restore_model(&mut self, stored: &Conversation) -> Vec<String> {
        let effort = |driver: &Driver| driver.active.session.settings.effort();
        let (model_before, effort_before) = (self.active.model.clone(), effort(self));
        let mut notices = Vec::new();
        if let Some(model) = stored.model.as_deref().filter(|model| *model != model_before)
            && let Err(error) = self.active.switch(model).await
        {
            notices.push(format!("note: {error}; going on with {model_before} instead of the session's {model}"));
        }
        let restored = {
            let notes = std::cell::RefCell::new(&mut notices);
            let notify = |line: &str| notes.borrow_mut().push(line.to_owned());
            self.active.restore_settings(&stored.settings, &notify)
        };
        if let Err(error) = restored {
            notices.push(format!("note: the settings of the session are not used: {error}"));
        }
        let mut changes = Vec::new();
        if self.active.model != model_before {
            changes.push(format!("model: {}", self.active.model));
        }
        if effort(self) != effort_before {
            let level = effort(self).map_or_else(|| "default".to_owned(), |effort| effort.to_string());
            changes.push(format!("effort: {level}"));
        }
        if !changes.is_empty() {
            notices.push(format!("{}, as in that session", changes.join(", ")));
        }
        notices
    }

    /// The stored session that is shown.
    pub(super) fn session_id(&self) -> Option<&SessionId> {
        let recorded = self.recorder.as_ref().map(SessionRecorder::id);
        recorded.or_else(|| self.resumed.as_ref().map(|stored| &stored.id))
    }

    pub(super) async fn run_other(&mut self, name: &str, rest: &str) -> Result<CommandOutcome, HintedError> {
        if let Some(done) = self.run_context_command(name, rest).await {
            return done;
        }
        let Some(store) = self.store.clone() else { return Err(HintedError::new("no session is saved")) };
        match name {
            "sessions" | "resume" if rest.is_empty() || name == "sessions" => {
                let root = stored_session::session_folder(&self.active.folder).root;
                let wanted = root.clone();
                let (sessions, lengths) = in_store(&store, move |store| {
                    let sessions = store.sessions_by_folder(&wanted, MAX_LISTED)?;
                    let ids: Vec<&SessionId> = sessions.iter().map(|one| &one.id).collect();
                    let lengths = store.branch_lengths(&ids)?;
                    Ok((sessions, lengths))
                })
                .await?;
                self.listed = sessions.iter().map(|one| ListedItem { session: one.id.clone(), block: None }).collect();
                Ok(CommandOutcome::Reply(replies::sessions(&sessions, &lengths, &root, self.session_id())))
            }
            // Ids are longer than list numbers.
            "resume" if rest.parse::<usize>().is_ok_and(|number| number <= self.listed.len()) => {
                self.open_listed(rest).await
            }
            "resume" => {
                self.load_session(&store, rest).await?;
                Ok(CommandOutcome::Silent)
            }
            "new" => {
                (self.recorder, self.undone_prompt) = (None, None);
                (self.resumed, self.title) = (None, None);
                self.active.session.tools.permissions().begin_session();
                self.front.send(Update::Restored(Vec::new()));
                let notify = |line: &str| self.front.send(Update::CommandOutput(replies::line(line)));
                system_prompt::restart_session(&mut self.active, &notify).await?;
                self.last_count = LastCount::Holds;
                self.send_status();
                Ok(CommandOutcome::Silent)
            }
            "title" if rest.is_empty() => Err(HintedError::new("a title needs text").hint("/title TEXT")),
            "title" => {
                self.title = Some(rest.to_owned());
                self.open_resumed_recorder();
                if let Some(recorder) = &mut self.recorder {
                    recorder.change(&SessionChange::Title(rest.to_owned()));
                }
                self.send_status();
                Ok(CommandOutcome::Silent)
            }
            "search" if rest.is_empty() => {
                Err(HintedError::new("there is nothing to search for").hint("/search WORDS"))
            }
            "search" => {
                let query = SearchQuery::new(rest);
                let found = in_store(&store, move |store| store.search(&query)).await?;
                self.listed = found.hits.iter().map(ListedItem::from_hit).collect();
                Ok(CommandOutcome::Reply(replies::search_hits(&found, rest)))
            }
            "usage" => self.usage(&store).await,
            other => Err(HintedError::new(format!("unknown command `{other}`")).hint("/help lists them")),
        }
    }

    async fn usage(&self, store: &Arc<SqliteStore>) -> Result<CommandOutcome, HintedError> {
        let loaded = Overrides::default().load(&self.active.user_folders)?;
        let dialects = self.dialects();
        let rows = in_store(store, move |store| {
            let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &env_var };
            store.usage(&UsageQuery {
                group_by: GroupBy::Model,
                session: None,
                since: None,
                billing: &|origin| usage::pricing_terms(&providers, &dialects, origin),
                utc_offset_minutes: times::utc_offset_minutes(),
            })
        });
        Ok(CommandOutcome::Reply(replies::usage(&rows.await?)))
    }
}
