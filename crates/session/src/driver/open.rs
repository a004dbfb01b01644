//! Opens a session: finds the stored one to continue, and starts it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use aside_front::Update;
use aside_store::SqliteStore;

use super::channel_asker::ChannelAsker;
use super::next_request::LastCount;
use super::view_preference::ViewPreference;
use super::{Driver, branch, replies};
use crate::error::HintedError;
use crate::handle::{SessionSetup, SetupAccess};
use crate::learned_repairs::StoredRepairs;
use crate::own_commands;
use crate::session_options::{Saving, SessionOptions};
use crate::session_recorder;
use crate::settings::ProfileName;
use crate::start;
use crate::stored_session::{self, Continuation, FoundSession, ResumedSession, SessionChoice};
use crate::update_front::UpdateFront;

/// What to do when there is nothing but the simulator.
const SIMULATOR_HINT: &str = "a real model needs a key or a local server: `aside doctor` says how; to see a tool at \
                              work, send: sim: call write {\"path\": \"hello.txt\", \"content\": \"hello\"}";

/// The store, if the session needs one and it can be opened.
struct OpenedStore {
    store: Option<Arc<SqliteStore>>,
    /// Why the session is not saved.
    unsaved: Option<HintedError>,
}

/// A new session can run without a store; the user is told.
fn open_store(options: &SessionOptions) -> Result<OpenedStore, HintedError> {
    let needs_store = options.saving == Saving::On || options.choice != SessionChoice::New;
    let opened = needs_store.then(|| session_recorder::open_store(&options.user_folders)).transpose();
    match (opened, &options.choice) {
        (Ok(store), _) => Ok(OpenedStore { store, unsaved: None }),
        (Err(error), SessionChoice::New) => Ok(OpenedStore { store: None, unsaved: Some(error) }),
        (Err(error), SessionChoice::Last | SessionChoice::LastAnywhere | SessionChoice::Named(_)) => Err(error),
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
pub(super) fn continuation(resumed: &ResumedSession, here: &Path, wanted: Continuation) -> (Continuation, Vec<String>) {
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
        let OpenedStore { store, unsaved } = open_store(options)?;
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
        let keys = std::mem::take(&mut active.keys);
        let profile = active.profile.as_ref().map(ProfileName::to_string);
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
        driver.report_problems(unsaved);
        let setup =
            SessionSetup { status: driver.status(), lists, keys, restored, restored_ids: driver.branch_ids(), access };
        Ok((driver, setup))
    }

    /// Tells the user about own commands that cannot be read, and about a session that is not saved.
    fn report_problems(&self, unsaved: Option<HintedError>) {
        let config = self.active.user_folders.config.iter();
        for note in config.flat_map(|config| own_commands::list(config).notes) {
            self.front.send(Update::CommandOutput(replies::line(note)));
        }
        if let Some(error) = unsaved {
            self.front.send(Update::CommandOutput(replies::error(&error.prefixed("this session is not saved"))));
        }
    }
}
