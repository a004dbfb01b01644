//! Opens the recorder of a session before its first change.

use std::sync::Arc;

use aside_core::message::Message;
use aside_front::{CommandOutput, Update};
use aside_store::session::NewSession;
use aside_store::{SqliteStore, StoreError};

use super::{Driver, replies};
use crate::active_session::ActiveSession;
use crate::session_options::Saving;
use crate::session_recorder::{self, SessionRecorder};
use crate::stored_session::{self, Continuation};

impl Driver {
    /// Opens the recorder when the first prompt is sent.
    pub(super) fn open_recorder(&mut self, first: &Message) {
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
    pub(super) fn open_resumed_recorder(&mut self) {
        if self.resumed.is_some() {
            self.open_recorder_with(NewSession::default());
        }
    }

    pub(super) fn open_recorder_with(&mut self, new: NewSession) {
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
        self.send_status();
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
}
