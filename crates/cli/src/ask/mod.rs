//! `aside ask`: one question; only the answer goes to standard output.

mod events;
pub(crate) mod permission_prompt;
pub(crate) mod plain;
pub(crate) mod recording;
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
use aside_engine::tools::{Asker, PermissionMode};
use aside_engine::{Front, Session};
use aside_store::{MessageId, SessionId, SqliteStore};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::ExitStatus;
use crate::report::{Report, print_notice};
use crate::session_recorder::{self, SessionChoice, SessionRecorder, StoringFront};
use crate::settings::Overrides;
use crate::start::{self, ActiveSession, Interrupts, StartOptions, Trust};
use plain::{OutputStyle, PlainOutput, ThinkingOutput};
use recording::{Recording, RecordingFront};

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
    overrides: Overrides,

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

    fn session_choice(&self) -> SessionChoice<'_> {
        match (&self.resume, self.last) {
            (Some(word), _) => SessionChoice::Named(word),
            (None, true) => SessionChoice::Last,
            (None, false) => SessionChoice::New,
        }
    }

    /// Opens the store. If that fails, only continuing a session is an error.
    fn store(&self) -> Result<Option<Arc<SqliteStore>>, Report> {
        // Nothing is saved and no session is continued, so no store is needed.
        if self.no_save && self.session_choice() == SessionChoice::New {
            return Ok(None);
        }
        match (session_recorder::open_store(), self.session_choice()) {
            (Ok(store), _) => Ok(Some(store)),
            (Err(report), SessionChoice::New) => {
                print_notice(&format!("this turn is not saved: {report}"));
                Ok(None)
            }
            (Err(report), SessionChoice::Last | SessionChoice::Named(_)) => Err(report),
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
    fn prompt(&self) -> Result<Prompt, Report> {
        let typed = self.prompt.join(" ");
        let piped = if std::io::stdin().is_terminal() { None } else { Some(read_piped()?) };
        if typed.trim().is_empty() && piped.as_ref().is_none_or(|piped| piped.trim().is_empty()) {
            return Err(Report::new("there is nothing to ask").hint("aside ask \"your question\", or pipe it in"));
        }
        Ok(Prompt { typed, piped })
    }

    /// Warns about a prompt larger than the context window, and refuses one far
    /// larger, before it is sent.
    fn check_prompt_size(&self, session: &Session, message: &Message) -> Result<(), Report> {
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
            return Err(Report::new(what).hint(hint));
        }
        print_notice(&format!("note: {what}"));
        Ok(())
    }

    async fn ask(&self, prompt: Prompt) -> anyhow::Result<ExitStatus> {
        let Interrupts { stop, leave, signal } = start::interrupts();
        let asker = permission_prompt::terminal_asker(&stop);
        let store = self.store()?;
        let resumed = match &store {
            Some(store) => session_recorder::resume(store, self.session_choice())?,
            None => None,
        };
        let options = StartOptions {
            model: self.model.as_deref(),
            resumed: resumed.as_ref().map(|resumed| &resumed.conversation),
            tools: self.offers_tools().then(|| self.mode()),
            trust: if self.trust { Trust::Given } else { Trust::Ask(asker.as_ref()) },
            notify: &print_notice,
        };
        // Report a file that cannot be attached before any permission question.
        let attached = start::attach(&prompt.typed, prompt.piped.as_deref())?;
        let mut active = start::start_session(&options, &self.overrides).await?;
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
            .map(|path| Recording::create(path, &recording_header(session), &session.redactor))
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
        let (outcome, report) = wording::turn_end(&end);
        if let Some(report) = report {
            report.print();
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
fn read_piped() -> Result<String, Report> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_PIPED + 1).read_to_end(&mut bytes);
    read.map_err(|error| Report::new(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_PIPED {
        return Err(Report::new(format!("standard input has more than {MAX_PIPED} bytes")).hint("pipe in less"));
    }
    let not_text = || {
        Report::new("standard input is not text, so nothing was sent")
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

/// The first line of a recording.
pub(crate) fn recording_header(session: &Session) -> serde_json::Value {
    let endpoint = &session.endpoint;
    json!({
        "recording": 1,
        "provider": endpoint.provider,
        "dialect": endpoint.dialect.id,
        "protocol": endpoint.dialect.protocol.to_string(),
        "model": endpoint.model,
    })
}
