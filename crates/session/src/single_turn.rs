//! One turn for a front end that ends after it: a prompt is sent and its answer is stored.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aside_core::block::Block;
use aside_core::json_schema::{self, SchemaMismatch};
use aside_core::message::{Message, Role};
use aside_core::model_table::Cost;
use aside_core::parameters::{ResponseFormat, ResponseSchema};
use aside_core::settings::ThinkingDisplay;
use aside_core::tags::TagStart;
use aside_core::tokens;
use aside_core::turn::TurnEnd;
use aside_engine::Front;
use aside_engine::tools::Asker;
use aside_engine::totals::SessionTotals;
use aside_store::{SqliteStore, StoreError};
use tokio_util::sync::CancellationToken;

use crate::active_session::ActiveSession;
use crate::error::HintedError;
use crate::learned_repairs::StoredRepairs;
use crate::prompt_attachments::attach;
use crate::recording::{Recording, RecordingFront};
use crate::session_options::{Saving, SessionOptions};
use crate::session_recorder::{self, SessionRecorder, StoringFront};
use crate::settings_file::KeyEntry;
use crate::start::start_session;
use crate::stored_session::{self, Continuation, FoundSession, ResumedSession, SessionChoice, StoredSession};

/// The two parts of a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptParts {
    /// What the user typed. Only this part can attach files.
    pub typed: String,
    pub piped: Option<String>,
}

/// An open session with the prompt that it will send.
pub struct SingleTurn {
    active: ActiveSession,
    message: Message,
    offers_tools: bool,
    /// None if the turn is not saved.
    store: Option<Arc<SqliteStore>>,
    /// The session that is continued.
    stored: Option<StoredSession>,
    continuation: Continuation,
    title: Option<String>,
    recording: Option<Recording>,
    stored_repairs: StoredRepairs,
    /// How long the turn took.
    took: Duration,
}

/// Limits of each turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunLimits {
    /// The most requests of a turn.
    pub max_steps: Option<u32>,
    /// The most that a turn may cost, in US dollars. It ends after the reply that reaches it.
    pub max_cost: Option<f64>,
}

impl RunLimits {
    /// Limits the turns of a session. A cost cannot be limited if the model's price is unknown.
    pub(crate) fn apply(self, active: &mut ActiveSession) -> Result<(), HintedError> {
        let session = &mut active.session;
        if self.max_cost.is_some() && session.price.is_none() {
            let what = format!("no price is known for {}, so its cost cannot be limited", active.model);
            let hint = "leave --max-cost out, or give the model a price in config.toml (docs/dialects.md)";
            return Err(HintedError::new(what).hint(hint));
        }
        session.max_cost = self.max_cost;
        session.max_steps = self.max_steps.unwrap_or(session.max_steps);
        Ok(())
    }
}

/// What a run used and cost.
#[derive(Debug, Clone)]
pub struct RunStats {
    pub totals: SessionTotals,
    pub took: Duration,
}

impl SingleTurn {
    /// Opens the session and reads the attached files. Nothing is sent or stored yet.
    pub async fn open(
        options: &SessionOptions,
        prompt: &PromptParts,
        notify: &dyn Fn(&str),
    ) -> Result<SingleTurn, HintedError> {
        let store = open_store(options, notify)?;
        let resumed = match &store {
            Some(store) => resume(store, options)?,
            None => None,
        };
        if let Some(notice) = resumed.as_ref().and_then(|resumed| resumed.folder_notice(&options.folder)) {
            notify(&notice);
        }
        // Report a file that cannot be attached before any permission question.
        let attached = attach(&prompt.typed, prompt.piped.as_deref(), &options.folder)?;
        let conversation = resumed.as_ref().map(|resumed| &resumed.conversation);
        let mut active = start_session(options, conversation, notify).await?;
        let store = store.filter(|_| options.saving == Saving::On);
        let stored_repairs = StoredRepairs::load(store.clone(), &mut active.session);
        let stored_repairs = stored_repairs.map_err(|error| session_recorder::store_error(&error))?;
        attached.descriptions.iter().for_each(|description| notify(description));
        let turn = SingleTurn {
            active,
            message: Message::new(Role::User, attached.blocks),
            offers_tools: options.tools.is_some(),
            store,
            title: resumed.as_ref().and_then(|resumed| resumed.conversation.title.clone()),
            stored: resumed.map(|resumed| resumed.stored),
            continuation: options.continuation,
            recording: None,
            stored_repairs,
            took: Duration::ZERO,
        };
        turn.check_prompt_size(notify)?;
        Ok(turn)
    }

    /// Limits the run.
    pub fn limit(&mut self, limits: RunLimits) -> Result<(), HintedError> {
        limits.apply(&mut self.active)
    }

    /// What the run used and cost so far.
    pub fn stats(&self) -> RunStats {
        let session = &self.active.session;
        let totals = session.totals.clone();
        // Without a price and without a reply, nothing is known.
        let cost = match totals.cost {
            Cost::Known(_) if session.price.is_none() => Cost::Unknown,
            cost @ (Cost::Known(_) | Cost::AtLeast(_) | Cost::Unknown) => cost,
        };
        RunStats { totals: SessionTotals { cost, ..totals }, took: self.took }
    }

    /// Records the raw stream in a new file, which messages call `name`.
    pub fn record(&mut self, path: &Path, name: &str) -> Result<(), HintedError> {
        self.recording = Some(Recording::create(path, name, &self.active.session)?);
        Ok(())
    }

    /// Asks for an answer in JSON that fits a schema. Fails if the model cannot be asked for that.
    pub fn answer_in_schema(&mut self, schema: serde_json::Value) -> Result<(), HintedError> {
        let session = &mut self.active.session;
        let format = ResponseFormat::Schema(ResponseSchema::new(schema));
        session.parameters.response_format = format;
        let encoded = session.encode(&[]);
        match encoded.left_out.iter().find(|loss| loss.path == "response_format") {
            Some(loss) => {
                Err(HintedError::new(format!("{} cannot answer in a JSON schema: {}", self.active.model, loss.reason))
                    .hint("ask another model, or describe the form of the answer in the prompt"))
            }
            None => Ok(()),
        }
    }

    /// Where the answer does not fit the schema that was asked for. The provider should have seen to it.
    pub fn schema_mismatch(&self) -> Option<SchemaMismatch> {
        let session = &self.active.session;
        let ResponseFormat::Schema(schema) = &session.parameters.response_format else { return None };
        let branch = session.history.branch();
        let (_, answer) = branch.last().filter(|(_, message)| message.role == Role::Assistant)?;
        let texts = answer.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.text.as_str()),
            Block::Thinking(_) | Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => {
                None
            }
        });
        json_schema::check_text(&schema.schema, &texts.collect::<String>()).err()
    }

    /// The `[keys]` table of config.toml, as written.
    pub fn keys(&self) -> &[KeyEntry] {
        &self.active.keys
    }

    /// How the user wants thinking to be displayed.
    pub fn display(&self) -> ThinkingDisplay {
        self.active.session.settings.display()
    }

    /// Whether text that looks like the answer may turn out to be thinking, or words before a tool call.
    pub fn text_may_be_refiled(&self) -> bool {
        let endpoint = &self.active.session.endpoint;
        let rules = endpoint.dialect.rules(Some(&endpoint.model));
        rules.read.tags.start == TagStart::Auto || self.offers_tools
    }

    /// Sends the prompt and runs the turn. If it cannot be stored, `notify` is told, and it runs anyway.
    pub async fn run(
        &mut self,
        front: &mut dyn Front,
        asker: &dyn Asker,
        cancel: &CancellationToken,
        notify: &dyn Fn(&str),
    ) -> TurnEnd {
        let mut recorder = self.open_recorder(notify);
        let message = std::mem::replace(&mut self.message, Message::new(Role::User, Vec::new()));
        let mut recording_front = RecordingFront::new(front, self.recording.as_mut());
        let mut front = StoringFront::new(&mut recording_front, recorder.as_mut());
        let began = Instant::now();
        let end = self.active.session.turn(message, &mut front, asker, cancel).await;
        self.took = began.elapsed();
        if let Err(error) = self.stored_repairs.save(&self.active.session) {
            notify(&format!("what this endpoint needs is not remembered: {error}"));
        }
        end
    }

    /// Shuts MCP servers down cleanly.
    pub async fn close(self) {
        self.active.close().await;
    }

    fn open_recorder(&mut self, notify: &dyn Fn(&str)) -> Option<SessionRecorder> {
        let store = self.store.take()?;
        let opened = self.try_open_recorder(store, notify);
        opened.map_err(|error| notify(&format!("this turn is not saved: {error}"))).ok()
    }

    fn try_open_recorder(
        &mut self,
        store: Arc<SqliteStore>,
        notify: &dyn Fn(&str),
    ) -> Result<SessionRecorder, StoreError> {
        let ActiveSession { session, model, folder, .. } = &self.active;
        let mut stored = self.stored.take();
        if stored.is_some() && self.continuation == Continuation::Copy {
            let conversation = self.active.conversation(self.title.clone());
            let copy = stored_session::copy_session(&store, &conversation, folder)?;
            notify(&format!("continuing in a copy: {}", copy.id));
            stored = Some(copy);
        }
        let new = session_recorder::new_session(model.clone(), &session.settings, &self.message, folder);
        let recorder = SessionRecorder::open(store, stored, new, &self.active)?;
        self.active.session.parameters.cache_key = Some(recorder.id().to_string());
        Ok(recorder)
    }

    /// Warns about a prompt larger than the context window, and refuses one far
    /// larger, before it is sent.
    fn check_prompt_size(&self, notify: &dyn Fn(&str)) -> Result<(), HintedError> {
        let session = &self.active.session;
        let Some((limit, layer)) = session.settings.context_limit_by() else { return Ok(()) };
        let texts = || {
            self.message.blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(text.text.as_str()),
                Block::Thinking(_)
                | Block::ToolCall(_)
                | Block::ToolResult(_)
                | Block::Media(_)
                | Block::Unmodelled(_) => None,
            })
        };
        // A token has at least one byte, so a short prompt needs no count.
        let bytes: usize = texts().map(str::len).sum();
        if bytes as u64 <= limit {
            return Ok(());
        }
        let tokens: u64 = texts().map(tokens::estimate).sum();
        if tokens <= limit {
            return Ok(());
        }
        let what = format!("the prompt has about {tokens} tokens; {} takes {limit}", session.endpoint.model);
        if tokens * 2 > limit * 3 && !layer.is_set_by_user() {
            let hint = "send less, ask a model with a larger window, or set context.limit if it is larger than that";
            return Err(HintedError::new(what).hint(hint));
        }
        notify(&format!("note: {what}"));
        Ok(())
    }
}

/// Opens the store. If that fails, only continuing a session is an error.
fn open_store(options: &SessionOptions, notify: &dyn Fn(&str)) -> Result<Option<Arc<SqliteStore>>, HintedError> {
    // Nothing is saved and no session is continued, so no store is needed.
    if options.saving == Saving::Off && options.choice == SessionChoice::New {
        return Ok(None);
    }
    match (session_recorder::open_store(&options.user_folders), &options.choice) {
        (Ok(store), _) => Ok(Some(store)),
        (Err(error), SessionChoice::New) => {
            notify(&format!("this turn is not saved: {error}"));
            Ok(None)
        }
        (Err(error), SessionChoice::Last | SessionChoice::LastAnywhere | SessionChoice::Named(_)) => Err(error),
    }
}

/// The session to continue, if there is one. Locked, unless nothing will be written to it.
fn resume(store: &SqliteStore, options: &SessionOptions) -> Result<Option<ResumedSession>, HintedError> {
    let id = match stored_session::find_session(store, &options.choice, &options.folder)? {
        FoundSession::New => return Ok(None),
        FoundSession::Stored(id) => id,
        FoundSession::NoneHere(none) => return Err(none.error()),
    };
    if options.saving == Saving::Off || options.continuation == Continuation::Copy {
        return stored_session::read(store, id).map(Some);
    }
    let resumed = stored_session::resume(store, id)?;
    if resumed.stored.is_open_elsewhere() {
        let what = format!("session `{}` is open in another aside", resumed.stored.id);
        return Err(HintedError::new(what).hint("--fork continues in a copy of it"));
    }
    Ok(Some(resumed))
}
