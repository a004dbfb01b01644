//! `aside ask`: one question; only the answer goes to standard output.

mod events;
pub(crate) mod permission_prompt;
pub(crate) mod plain;
mod terminal;
pub(crate) mod wording;

use std::io::{BufWriter, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::settings::ThinkingDisplay;
use aside_core::tags::TagStart;
use aside_core::tokens;
use aside_core::turn::TurnEnd;
use aside_engine::{Front, Session};
use aside_front::wording::EndNotice;
use aside_session::recording::{Recording, RecordingFront};
use aside_session::session_recorder::{self, SessionRecorder, StoringFront};
use aside_session::start::{self, ActiveSession};
use aside_session::{Asker, HintedError, PermissionMode, SessionChoice, SessionOptions, Trust, UserFolders};
use aside_store::{MessageId, SessionId, SqliteStore};
use tokio_util::sync::CancellationToken;

use crate::interrupts::{Interrupts, interrupts};
use crate::override_arguments::OverrideArguments;
use crate::report::{print_hint, print_notice};
use crate::{ExitStatus, key_bindings};
use plain::{OutputStyle, PlainOutput, ThinkingOutput};

/// Ask once and print the answer
///
/// Only the answer goes to standard output; thinking, tool calls and notices go
/// to standard error. Without a model, a key or a local server, the built-in
/// simulator answers and says so.
///
/// Exit code: 0 done, 1 the model or provider failed, 2 wrong usage, 130
/// interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside ask \"What is a monad?\"
  git diff | aside ask \"write a commit message\" --no-tools
  aside ask \"explain @src/main.rs\" -m anthropic/claude-sonnet-5
  aside ask -m sim/deepseek \"sim: tool-loop 3\"
  aside ask --json \"2+2?\" | jq -r 'select(.event == \"answer\").text'")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a command line are flags")]
pub(crate) struct Arguments {
    /// The prompt. `@path` attaches a file or an image; standard input is
    /// appended
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,

    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    overrides: OverrideArguments,

    /// Continue the most recent session
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    last: bool,

    /// Continue this session: its id, title, or the beginning of either
    #[arg(short, long, value_name = "ID")]
    resume: Option<String>,

    /// Do not save this turn
    #[arg(long)]
    no_save: bool,

    /// Print typed events, one JSON object per line, instead of text
    #[arg(long)]
    json: bool,

    /// Show thinking on standard error (the default on a terminal), hide it, or
    /// show nothing else
    #[arg(long, value_name = "VIEW", value_enum)]
    thinking: Option<ThinkingOutput>,

    /// Let the model use tools: read, write, edit, list, glob, grep, shell (the default)
    #[arg(long, overrides_with = "no_tools")]
    tools: bool,

    /// Offer the model no tools
    #[arg(long)]
    no_tools: bool,

    /// Allow tool calls without asking, except on protected paths and outside the working directory
    #[arg(long, conflicts_with = "deny")]
    yes: bool,

    /// Deny every tool call that needs permission
    #[arg(long)]
    deny: bool,

    /// Trust this folder from now on: send its AGENTS.md to the model
    #[arg(long)]
    trust: bool,

    /// Record requests and raw responses with their timing in a file, without keys
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Arguments {
    fn offers_tools(&self) -> bool {
        !self.no_tools
    }

    fn session_choice(&self) -> SessionChoice {
        match (&self.resume, self.last) {
            (Some(word), _) => SessionChoice::Named(word.clone()),
            (None, true) => SessionChoice::Last,
            (None, false) => SessionChoice::New,
        }
    }

    /// Opens the store. If that fails, only continuing a session is an error.
    fn store(&self, options: &SessionOptions) -> Result<Option<Arc<SqliteStore>>, HintedError> {
        // Nothing is saved and no session is continued, so no store is needed.
        if self.no_save && options.choice == SessionChoice::New {
            return Ok(None);
        }
        match (session_recorder::open_store(&options.user_folders), &options.choice) {
            (Ok(store), _) => Ok(Some(store)),
            (Err(error), SessionChoice::New) => {
                print_notice(&format!("this turn is not saved: {error}"));
                Ok(None)
            }
            (Err(error), SessionChoice::Last | SessionChoice::Named(_)) => Err(error),
        }
    }

    fn mode(&self) -> PermissionMode {
        match (self.yes, self.deny) {
            (true, _) => PermissionMode::AllowAll,
            (false, true) => PermissionMode::DenyAll,
            (false, false) => PermissionMode::Ask,
        }
    }

    fn style(&self, session: &Session) -> OutputStyle {
        let (out_is_terminal, err_is_terminal) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let shown = match session.settings.display() {
            ThinkingDisplay::Full | ThinkingDisplay::Live if err_is_terminal => ThinkingOutput::Show,
            ThinkingDisplay::Full | ThinkingDisplay::Live | ThinkingDisplay::Collapsed | ThinkingDisplay::Off => {
                ThinkingOutput::Hide
            }
        };
        let rules = session.endpoint.dialect.rules(Some(&session.endpoint.model));
        let may_turn = rules.read.tags.start == TagStart::Auto || self.offers_tools();
        OutputStyle {
            out_is_terminal,
            err_is_terminal,
            colour: err_is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            thinking: self.thinking.unwrap_or(shown),
            buffers_text: may_turn && !out_is_terminal,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let prompt = arguments.prompt()?;
    let runtime = start::runtime()?;
    let outcome = runtime.block_on(arguments.ask(prompt));
    // Do not wait for a thread that is blocked on a key press.
    runtime.shutdown_background();
    outcome
}

impl Arguments {
    /// The prompt of the command line and of standard input.
    fn prompt(&self) -> Result<Prompt, HintedError> {
        let typed = self.prompt.join(" ");
        let piped = if std::io::stdin().is_terminal() { None } else { Some(read_piped()?) };
        if typed.trim().is_empty() && piped.as_ref().is_none_or(|piped| piped.trim().is_empty()) {
            return Err(HintedError::new("there is nothing to ask").hint("aside ask \"your question\", or pipe it in"));
        }
        Ok(Prompt { typed, piped })
    }

    /// Warns about a prompt larger than the context window, and refuses one far
    /// larger, before it is sent.
    fn check_prompt_size(&self, session: &Session, message: &Message) -> Result<(), HintedError> {
        let Some((limit, layer)) = session.settings.context_limit_by() else { return Ok(()) };
        let texts = || {
            message.blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(text.text.as_str()),
                Block::Thinking(_)
                | Block::ToolCall(_)
                | Block::ToolResult(_)
                | Block::Image(_)
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
        print_notice(&format!("note: {what}"));
        Ok(())
    }

    fn session_options(&self, asker: &Arc<dyn Asker + Send>) -> Result<SessionOptions, HintedError> {
        Ok(SessionOptions {
            model: self.model.clone(),
            choice: self.session_choice(),
            tools: self.offers_tools().then(|| self.mode()),
            trust: if self.trust { Trust::Given } else { Trust::Ask(Arc::clone(asker)) },
            overrides: self.overrides.overrides(),
            simulator_rate: crate::simulator_rate(),
            ..SessionOptions::new(crate::working_directory()?, UserFolders::from_environment())
        })
    }

    async fn ask(&self, prompt: Prompt) -> anyhow::Result<ExitStatus> {
        let Interrupts { stop, leave, signal } = interrupts();
        let asker = permission_prompt::terminal_asker(&stop);
        let options = self.session_options(&asker)?;
        let store = self.store(&options)?;
        let resumed = match &store {
            Some(store) => session_recorder::resume(store, &options.choice)?,
            None => None,
        };
        // Report a file that cannot be attached before any permission question.
        let attached = start::attach(&prompt.typed, prompt.piped.as_deref(), &options.folder)?;
        let conversation = resumed.as_ref().map(|resumed| &resumed.conversation);
        let mut active = start::start_session(&options, conversation, &print_notice).await?;
        key_bindings::parse(&active.keys)?;
        attached.descriptions.iter().for_each(|description| print_notice(description));
        let message = Message::new(Role::User, attached.blocks);
        self.check_prompt_size(&active.session, &message)?;
        let stored = resumed.map(|resumed| (resumed.id, resumed.ids));
        let mut recorder =
            store.filter(|_| !self.no_save).and_then(|store| open_recorder(store, stored, &active, &message));
        let work = async move {
            let outcome = self.answer(&mut active.session, message, recorder.as_mut(), asker.as_ref(), &stop).await;
            active.close().await;
            outcome
        };
        let outcome = leave.run_until_cancelled(work).await.unwrap_or(Ok(ExitStatus::Interrupted))?;
        Ok(signal.get().copied().unwrap_or(outcome))
    }

    async fn answer(
        &self,
        session: &mut Session,
        message: Message,
        recorder: Option<&mut SessionRecorder>,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> anyhow::Result<ExitStatus> {
        let recording = self
            .record
            .as_deref()
            .map(|path| Recording::create(path, &path.display().to_string(), session))
            .transpose()?;
        let style = self.style(session);
        if self.json {
            let mut events = events::JsonEvents::new(BufWriter::new(std::io::stdout().lock()));
            let end = run_turn(session, message, &mut events, recording, recorder, asker, cancel).await;
            events.finish()?;
            return Ok(wording::turn_end(&end).0);
        }
        let (out, err) = (BufWriter::new(std::io::stdout().lock()), BufWriter::new(std::io::stderr()));
        let mut plain = PlainOutput::new(out, err, style);
        let end = run_turn(session, message, &mut plain, recording, recorder, asker, cancel).await;
        plain.finish()?;
        let (outcome, notice) = wording::turn_end(&end);
        if let Some(EndNotice { what, hint, .. }) = notice {
            let level = if outcome == ExitStatus::Done { "" } else { "error: " };
            print_notice(&format!("{level}{what}"));
            print_hint(hint.as_deref());
        }
        Ok(outcome)
    }
}

async fn run_turn(
    session: &mut Session,
    message: Message,
    front: &mut dyn Front,
    mut recording: Option<Recording>,
    recorder: Option<&mut SessionRecorder>,
    asker: &dyn Asker,
    cancel: &CancellationToken,
) -> TurnEnd {
    let mut recording_front = RecordingFront::new(front, recording.as_mut());
    session.turn(message, &mut StoringFront::new(&mut recording_front, recorder), asker, cancel).await
}

/// The two parts of a prompt.
struct Prompt {
    /// From the command line. Only this part can attach files.
    typed: String,
    piped: Option<String>,
}

/// Larger than any context window.
const MAX_PIPED: u64 = 64 * 1024 * 1024;

/// Reads all of standard input, which must be text.
fn read_piped() -> Result<String, HintedError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_PIPED + 1).read_to_end(&mut bytes);
    read.map_err(|error| HintedError::new(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_PIPED {
        return Err(HintedError::new(format!("standard input has more than {MAX_PIPED} bytes")).hint("pipe in less"));
    }
    let not_text = || {
        HintedError::new("standard input is not text, so nothing was sent")
            .hint("pipe in UTF-8 text; an image is attached with @path")
    };
    let text = String::from_utf8(bytes).map_err(|_| not_text())?;
    if text.contains('\0') { Err(not_text()) } else { Ok(text) }
}

/// Opens the session to record to. If that fails, the turn runs without being
/// saved, and the user is told.
fn open_recorder(
    store: Arc<SqliteStore>,
    stored: Option<(SessionId, Vec<MessageId>)>,
    active: &ActiveSession,
    message: &Message,
) -> Option<SessionRecorder> {
    let session = &active.session;
    let new = session_recorder::new_session(active.model.clone(), &session.settings, message);
    match SessionRecorder::open(store, stored, new, &session.history, session.endpoint.origin()) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            print_notice(&format!("this turn is not saved: {error}"));
            None
        }
    }
}
