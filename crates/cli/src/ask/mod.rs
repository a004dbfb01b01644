//! `aside ask`: one question, its answer, and nothing else on standard output.

mod asker;
mod events;
pub(crate) mod plain;
pub(crate) mod record;
pub(crate) mod say;
mod terminal;

use std::io::{BufWriter, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;

use aside_core::message::{Message, Role};
use aside_core::settings::Display;
use aside_core::tags::Start;
use aside_core::turn::TurnEnd;
use aside_engine::tools::Mode;
use aside_engine::{Front, Session};
use aside_store::{MessageId, SessionId, SqliteStore};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Outcome;
use crate::keep::{self, Desk, Keeper, Which};
use crate::report::{Report, tell};
use crate::run::{self, Interrupts, Ready, Wanted};
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

    /// Answer yes to what tools would ask; paths outside the working directory are still asked
    #[arg(long, conflicts_with = "deny")]
    yes: bool,

    /// Answer no to what tools would ask
    #[arg(long)]
    deny: bool,

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
    /// The words of the command line, then what was piped in.
    fn prompt(&self) -> Result<String, Report> {
        let mut prompt = self.prompt.join(" ");
        let mut stdin = std::io::stdin();
        if !stdin.is_terminal() {
            let mut piped = Vec::new();
            stdin
                .read_to_end(&mut piped)
                .map_err(|error| Report::new(format!("cannot read standard input: {error}")))?;
            let piped = String::from_utf8_lossy(&piped);
            if !prompt.is_empty() && !piped.trim().is_empty() {
                prompt.push_str("\n\n");
            }
            prompt.push_str(&piped);
        }
        if prompt.trim().is_empty() {
            return Err(Report::new("there is nothing to ask").hint("aside ask \"your question\", or pipe it in"));
        }
        Ok(prompt)
    }

    async fn ask(&self, prompt: String) -> anyhow::Result<Outcome> {
        let store = self.store()?;
        let resumed = match &store {
            Some(store) => keep::resume(store, self.which())?,
            None => None,
        };
        let wanted = Wanted {
            model: self.model.as_deref(),
            resumed: resumed.as_ref().map(|resumed| &resumed.conversation),
            tools: self.offers_tools().then(|| self.mode()),
            tell: &tell,
        };
        let mut ready = run::session(&wanted, &self.overrides).await?;
        let attached = run::attach(&prompt)?;
        for note in &attached.notes {
            tell(&format!("note: {note}"));
        }
        let message = Message::new(Role::User, attached.content);
        let known = resumed.map(|resumed| (resumed.id, resumed.ids));
        let mut desk = store.filter(|_| !self.no_save).and_then(|store| desk(store, known, &ready, &message));
        let Interrupts { stop, leave, signal } = run::interrupts();
        let work = async move {
            let outcome = self.answer(&mut ready.session, message, desk.as_mut(), &stop).await;
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
        cancel: &CancellationToken,
    ) -> anyhow::Result<Outcome> {
        let tape = self.record.as_deref().map(|path| Tape::create(path, &about(session))).transpose()?;
        let look = self.look(session);
        if self.json {
            let mut events = events::Events::new(BufWriter::new(std::io::stdout().lock()));
            let end = turn(session, message, &mut events, tape, desk, cancel).await;
            events.finish()?;
            return Ok(say::ending(&end).0);
        }
        let (out, err) = (BufWriter::new(std::io::stdout().lock()), BufWriter::new(std::io::stderr()));
        let mut plain = Plain::new(out, err, look);
        let end = turn(session, message, &mut plain, tape, desk, cancel).await;
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
    cancel: &CancellationToken,
) -> TurnEnd {
    let asker = asker::on_this_terminal(cancel);
    let mut recorder = Recorder::new(front, tape.as_mut());
    session.turn(message, &mut Keeper::new(&mut recorder, desk), asker.as_ref(), cancel).await
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
