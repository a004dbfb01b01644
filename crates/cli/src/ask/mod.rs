//! `aside ask`: one question, its answer, and nothing else on standard output.

pub(crate) mod asker;
mod events;
pub(crate) mod plain;
pub(crate) mod record;
pub(crate) mod say;
mod terminal;

use std::io::{BufWriter, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::settings::Display;
use aside_core::tags::Start;
use aside_core::tokens;
use aside_core::turn::TurnEnd;
use aside_engine::tools::{Asker, Mode};
use aside_engine::{Front, Session};
use aside_store::{MessageId, SessionId, SqliteStore};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Outcome;
use crate::keep::{self, Desk, Keeper, Which};
use crate::report::{Report, tell};
use crate::run::{self, Interrupts, Ready, Trust, Wanted};
use crate::settings::Overrides;
use plain::{Look, Plain, Thinking};
use record::{Recorder, Tape};

/// Ask once and print the answer
///
/// The answer goes to standard output and nothing else does; thinking, tools
/// and notices go to standard error. Without a model, a key or a local server,
/// the built-in simulator answers and says so.
///
/// Exit code: 0 done, 1 the model or provider failed, 2 asked wrongly, 130
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
    /// What to ask. `@path` attaches a file or an image; what comes on standard
    /// input is added
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,

    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    overrides: Overrides,

    /// Go on with the session used last
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    last: bool,

    /// Go on with this session, by id, title, or the beginning of either
    #[arg(short, long, value_name = "ID")]
    resume: Option<String>,

    /// Keep nothing of this turn
    #[arg(long)]
    no_save: bool,

    /// Print typed events, one JSON object a line, instead of text
    #[arg(long)]
    json: bool,

    /// Show thinking on standard error (the default on a terminal), hide it, or
    /// show nothing else
    #[arg(long, value_name = "VIEW", value_enum)]
    thinking: Option<Thinking>,

    /// Let the model use tools: read, write, edit, list, glob, grep, shell (the default)
    #[arg(long, overrides_with = "no_tools")]
    tools: bool,

    /// Only talk
    #[arg(long)]
    no_tools: bool,

    /// Answer yes to what tools would ask; protected paths and those outside the working directory still ask
    #[arg(long, conflicts_with = "deny")]
    yes: bool,

    /// Answer no to what tools would ask
    #[arg(long)]
    deny: bool,

    /// Trust this folder: its AGENTS.md is sent, now and from now on
    #[arg(long)]
    trust: bool,

    /// Write the raw stream with its timing to a file; keys are not in it
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Arguments {
    fn offers_tools(&self) -> bool {
        !self.no_tools
    }

    fn which(&self) -> Which<'_> {
        match (&self.resume, self.last) {
            (Some(word), _) => Which::Named(word),
            (None, true) => Which::Last,
            (None, false) => Which::New,
        }
    }

    /// A store that cannot be opened is in the way only of those who go on with
    /// a session.
    fn store(&self) -> Result<Option<Arc<SqliteStore>>, Report> {
        // Who keeps nothing and goes on with nothing needs no store.
        if self.no_save && self.which() == Which::New {
            return Ok(None);
        }
        match (keep::store(), self.which()) {
            (Ok(store), _) => Ok(Some(store)),
            (Err(report), Which::New) => {
                tell(&format!("this turn is not saved: {report}"));
                Ok(None)
            }
            (Err(report), Which::Last | Which::Named(_)) => Err(report),
        }
    }

    fn mode(&self) -> Mode {
        match (self.yes, self.deny) {
            (true, _) => Mode::AllowAll,
            (false, true) => Mode::DenyAll,
            (false, false) => Mode::Ask,
        }
    }

    fn look(&self, session: &Session) -> Look {
        let (out_is_terminal, err_is_terminal) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let shown = match session.settings.display() {
            Display::Full | Display::Live if err_is_terminal => Thinking::Show,
            Display::Full | Display::Live | Display::Collapsed | Display::Off => Thinking::Hide,
        };
        let rules = session.endpoint.dialect.rules(Some(&session.endpoint.model));
        let may_turn = rules.read.tags.start == Start::Auto || self.offers_tools();
        Look {
            out_is_terminal,
            err_is_terminal,
            colour: err_is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            thinking: self.thinking.unwrap_or(shown),
            holds: may_turn && !out_is_terminal,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let prompt = arguments.prompt()?;
    let runtime = run::runtime()?;
    let outcome = runtime.block_on(arguments.ask(prompt));
    // A thread that waits for a key press must not hold us back.
    runtime.shutdown_background();
    outcome
}

impl Arguments {
    /// The words of the command line, and what was piped in.
    fn prompt(&self) -> Result<Prompt, Report> {
        let typed = self.prompt.join(" ");
        let piped = if std::io::stdin().is_terminal() { None } else { Some(piped()?) };
        if typed.trim().is_empty() && piped.as_ref().is_none_or(|piped| piped.trim().is_empty()) {
            return Err(Report::new("there is nothing to ask").hint("aside ask \"your question\", or pipe it in"));
        }
        Ok(Prompt { typed, piped })
    }

    /// A prompt that the window cannot hold is said to be one before it is sent.
    fn fits(&self, session: &Session, message: &Message) -> Result<(), Report> {
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
        // A token has at least a byte, and counting bytes costs nothing.
        let bytes: usize = texts().map(str::len).sum();
        if bytes as u64 <= limit {
            return Ok(());
        }
        let tokens: u64 = texts().map(tokens::estimate).sum();
        if tokens <= limit {
            return Ok(());
        }
        let what = format!("the prompt has about {tokens} tokens; {} takes {limit}", session.endpoint.model);
        if tokens * 2 > limit * 3 && !layer.is_of_the_user() {
            let hint = "send less, ask a model with a larger window, or set context.limit if it is larger than that";
            return Err(Report::new(what).hint(hint));
        }
        tell(&format!("note: {what}"));
        Ok(())
    }

    async fn ask(&self, prompt: Prompt) -> anyhow::Result<Outcome> {
        let Interrupts { stop, leave, signal } = run::interrupts();
        let asker = asker::on_this_terminal(&stop);
        let store = self.store()?;
        let resumed = match &store {
            Some(store) => keep::resume(store, self.which())?,
            None => None,
        };
        let wanted = Wanted {
            model: self.model.as_deref(),
            resumed: resumed.as_ref().map(|resumed| &resumed.conversation),
            tools: self.offers_tools().then(|| self.mode()),
            trust: if self.trust { Trust::Given } else { Trust::Ask(asker.as_ref()) },
            tell: &tell,
        };
        // What is named and cannot be sent is said before anything is asked.
        let attached = run::attach(&prompt.typed, prompt.piped.as_deref())?;
        let mut ready = run::session(&wanted, &self.overrides).await?;
        attached.named.iter().for_each(|named| tell(named));
        let message = Message::new(Role::User, attached.blocks);
        self.fits(&ready.session, &message)?;
        let known = resumed.map(|resumed| (resumed.id, resumed.ids));
        let mut desk = store.filter(|_| !self.no_save).and_then(|store| desk(store, known, &ready, &message));
        let work = async move {
            let outcome = self.answer(&mut ready.session, message, desk.as_mut(), asker.as_ref(), &stop).await;
            ready.close().await;
            outcome
        };
        let outcome = leave.run_until_cancelled(work).await.unwrap_or(Ok(Outcome::Interrupted))?;
        Ok(signal.get().copied().unwrap_or(outcome))
    }

    async fn answer(
        &self,
        session: &mut Session,
        message: Message,
        desk: Option<&mut Desk>,
        asker: &dyn Asker,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Outcome> {
        let tape =
            self.record.as_deref().map(|path| Tape::create(path, &about(session), &session.redactor)).transpose()?;
        let look = self.look(session);
        if self.json {
            let mut events = events::Events::new(BufWriter::new(std::io::stdout().lock()));
            let end = turn(session, message, &mut events, tape, desk, asker, cancel).await;
            events.finish()?;
            return Ok(say::ending(&end).0);
        }
        let (out, err) = (BufWriter::new(std::io::stdout().lock()), BufWriter::new(std::io::stderr()));
        let mut plain = Plain::new(out, err, look);
        let end = turn(session, message, &mut plain, tape, desk, asker, cancel).await;
        plain.finish()?;
        let (outcome, report) = say::ending(&end);
        if let Some(report) = report {
            report.print();
        }
        Ok(outcome)
    }
}

async fn turn(
    session: &mut Session,
    message: Message,
    front: &mut dyn Front,
    mut tape: Option<Tape>,
    desk: Option<&mut Desk>,
    asker: &dyn Asker,
    cancel: &CancellationToken,
) -> TurnEnd {
    let mut recorder = Recorder::new(front, tape.as_mut());
    session.turn(message, &mut Keeper::new(&mut recorder, desk), asker, cancel).await
}

/// What is asked.
struct Prompt {
    /// By the person, who can name files in it.
    typed: String,
    piped: Option<String>,
}

/// More than any model reads.
const MOST_PIPED: u64 = 64 * 1024 * 1024;

/// All of standard input, which must be text.
fn piped() -> Result<String, Report> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST_PIPED + 1).read_to_end(&mut bytes);
    read.map_err(|error| Report::new(format!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MOST_PIPED {
        return Err(Report::new(format!("standard input has more than {MOST_PIPED} bytes")).hint("pipe in less"));
    }
    let not_text = || {
        Report::new("standard input is not text, so nothing was sent")
            .hint("pipe in UTF-8 text; an image is attached with @path")
    };
    let text = String::from_utf8(bytes).map_err(|_| not_text())?;
    if text.contains('\0') { Err(not_text()) } else { Ok(text) }
}

/// The place where the turn is kept. Without one it is asked all the same, and
/// that is said.
fn desk(
    store: Arc<SqliteStore>,
    known: Option<(SessionId, Vec<MessageId>)>,
    ready: &Ready,
    message: &Message,
) -> Option<Desk> {
    let session = &ready.session;
    let new = keep::new_session(ready.model.clone(), &session.settings, message);
    match Desk::open(store, known, new, &session.history, session.endpoint.origin()) {
        Ok(desk) => Some(desk),
        Err(error) => {
            tell(&format!("this turn is not saved: {error}"));
            None
        }
    }
}

/// The first line of a recording.
pub(crate) fn about(session: &Session) -> serde_json::Value {
    let endpoint = &session.endpoint;
    json!({
        "recording": 1,
        "provider": endpoint.provider,
        "dialect": endpoint.dialect.id,
        "protocol": endpoint.dialect.protocol.to_string(),
        "model": endpoint.model,
    })
}
