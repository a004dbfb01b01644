//! `aside ask`: one question; only the answer goes to standard output.

mod events;
mod outcome;
pub(crate) mod permission_prompt;
pub(crate) mod plain;
mod terminal;
pub(crate) mod wording;

use std::fs;
use std::io::{BufWriter, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use aside_core::settings::ThinkingDisplay;
use aside_front::ToolMode;
use aside_front::wording::EndNotice;
use aside_session::single_turn::{PromptParts, RunLimits, SingleTurn};
use aside_session::{Asker, HintedError, PermissionMode, Saving, SessionOptions, Trust, UpdateFront, UserFolders};
use tokio_util::sync::CancellationToken;

use crate::interrupts::{Interrupts, interrupts};
use crate::override_arguments::OverrideArguments;
use crate::report::{print_hint, print_notice};
use crate::session_arguments::SessionArguments;
use crate::{ExitStatus, key_bindings};
use outcome::TurnOutcome;
use plain::{OutputStyle, PlainOutput, ThinkingOutput};

/// Ask once and print the answer
///
/// Only the answer goes to standard output; thinking, tool calls and notices go
/// to standard error. Without a model, a key or a local server, the built-in
/// simulator answers and says so.
///
/// Exit code: 0 the answer (also if it is cut at the output limit), 1 failed or
/// nothing at all, 2 wrong usage, 3 only thinking came, 4 the model or a filter
/// refused, 129 terminal closed, 130 interrupted, 143 terminated.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside ask \"What is a monad?\"
  git diff | aside ask \"write a commit message\" --no-tools
  aside ask \"explain @src/main.rs\" -m anthropic/claude-sonnet-5
  aside ask -m sim/deepseek \"sim: tool-loop 3\"
  aside ask --schema depth.json \"How deep is berth 4?\"
  aside ask --json \"2+2?\" | jq -r 'select(.event == \"answer\").text'")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of a command line are flags")]
pub(crate) struct Arguments {
    /// The prompt. `@path` attaches a text file, an image or a PDF; standard
    /// input is appended
    #[arg(value_name = "PROMPT")]
    prompt: Vec<String>,

    /// The model, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    overrides: OverrideArguments,

    #[command(flatten)]
    session: SessionArguments,

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

    /// What tools may do without a question: ask, accept-edits (files in this
    /// folder, never commands) or read-only (the model gets no tool that can
    /// change anything)
    #[arg(long = "mode", value_name = "MODE", value_parser = crate::parse_tool_mode())]
    tool_mode: Option<ToolMode>,

    /// Trust this folder from now on: send its AGENTS.md to the model
    #[arg(long)]
    trust: bool,

    /// Answer in JSON that fits the JSON schema in this file; fails if the model cannot be asked for
    /// that, or if its answer does not fit
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Print tokens, cost and time at the end, on standard error or as an event
    #[arg(long)]
    stats: bool,

    /// Stop after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,

    /// Stop once the turn has cost this much; the reply that reaches it is complete
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<f64>,

    /// Record requests and raw responses with their timing in a file, without keys
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl Arguments {
    fn offers_tools(&self) -> bool {
        !self.no_tools
    }

    fn mode(&self) -> PermissionMode {
        match (self.yes, self.deny) {
            (true, _) => PermissionMode::AllowAll,
            (false, true) => PermissionMode::DenyAll,
            (false, false) => PermissionMode::Ask,
        }
    }

    fn style(&self, turn: &SingleTurn) -> OutputStyle {
        let (out_is_terminal, err_is_terminal) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let shown = match turn.display() {
            ThinkingDisplay::Full | ThinkingDisplay::Live if err_is_terminal => ThinkingOutput::Show,
            ThinkingDisplay::Full | ThinkingDisplay::Live | ThinkingDisplay::Collapsed => ThinkingOutput::Hide,
            ThinkingDisplay::Off => ThinkingOutput::Off,
        };
        OutputStyle {
            out_is_terminal,
            err_is_terminal,
            colour: err_is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            thinking: self.thinking.unwrap_or(shown),
            buffers_text: turn.text_may_be_refiled() && !out_is_terminal,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let outcome = arguments.run();
    if let Err(error) = &outcome
        && arguments.json
        && !crate::is_broken_pipe(error)
    {
        let message = crate::report::as_message(error);
        events::JsonEvents::new(BufWriter::new(std::io::stdout().lock())).fail(&message)?;
    }
    outcome
}

/// Prints the last event for arguments that cannot be parsed, if they ask for events.
pub(crate) fn print_usage_error(message: &str) -> anyhow::Result<()> {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|command| command == "ask") && words.any(|word| word == "--json") {
        events::JsonEvents::new(BufWriter::new(std::io::stdout().lock())).fail(message)?;
    }
    Ok(())
}

/// An amount of US dollars above 0.
pub(crate) fn parse_dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| "expected an amount of US dollars above 0, such as 0.50".to_owned())
}

impl Arguments {
    fn run(&self) -> anyhow::Result<ExitStatus> {
        let prompt = self.prompt()?;
        let runtime = aside_session::start::runtime()?;
        let outcome = runtime.block_on(self.ask(&prompt));
        // Do not wait for a thread that is blocked on a key press.
        runtime.shutdown_background();
        outcome
    }

    /// The prompt of the command line and of standard input.
    fn prompt(&self) -> Result<PromptParts, HintedError> {
        let typed = self.prompt.join(" ");
        let piped = if std::io::stdin().is_terminal() { None } else { Some(read_piped()?) };
        if typed.trim().is_empty() && piped.as_ref().is_none_or(|piped| piped.trim().is_empty()) {
            return Err(HintedError::new("there is nothing to ask").hint("aside ask \"your question\", or pipe it in"));
        }
        Ok(PromptParts { typed, piped })
    }

    fn session_options(&self, asker: &Arc<dyn Asker + Send>) -> Result<SessionOptions, HintedError> {
        Ok(SessionOptions {
            model: self.model.clone(),
            choice: self.session.choice(),
            continuation: self.session.continuation(),
            tools: self.offers_tools().then(|| self.mode()),
            tool_mode: self.tool_mode,
            trust: if self.trust { Trust::Given } else { Trust::Ask(Arc::clone(asker)) },
            overrides: self.overrides.overrides(),
            saving: if self.no_save { Saving::Off } else { Saving::On },
            simulator_rate: crate::simulator_rate(),
            ..SessionOptions::new(crate::working_directory()?, UserFolders::from_environment())
        })
    }

    async fn ask(&self, prompt: &PromptParts) -> anyhow::Result<ExitStatus> {
        let Interrupts { stop, leave, signal } = interrupts();
        let asker = permission_prompt::terminal_asker(&stop);
        let schema = self.schema.as_deref().map(read_schema).transpose()?;
        let mut turn = SingleTurn::open(&self.session_options(&asker)?, prompt, &print_notice).await?;
        key_bindings::parse(turn.keys())?;
        if let Some(schema) = schema {
            turn.answer_in_schema(schema)?;
        }
        turn.limit(RunLimits { max_steps: self.max_steps, max_cost: self.max_cost })?;
        let ended_by = Arc::clone(&signal);
        let work = async move {
            let outcome = self.answer(&mut turn, asker.as_ref(), &stop, &ended_by).await;
            turn.close().await;
            outcome
        };
        let outcome = leave.run_until_cancelled(work).await.unwrap_or(Ok(ExitStatus::Interrupted))?;
        Ok(signal.get().copied().unwrap_or(outcome))
    }

    async fn answer(
        &self,
        turn: &mut SingleTurn,
        asker: &dyn Asker,
        cancel: &CancellationToken,
        signal: &OnceLock<ExitStatus>,
    ) -> anyhow::Result<ExitStatus> {
        if let Some(path) = &self.record {
            turn.record(path, &path.display().to_string())?;
        }
        if self.json {
            let mut events = events::JsonEvents::new(BufWriter::new(std::io::stdout().lock()));
            let end = turn.run(&mut UpdateFront::detailed(&mut events), asker, cancel, &print_notice).await;
            let end = TurnOutcome::of(end, turn);
            let exit = signal.get().copied().unwrap_or(wording::turn_end(&end).0);
            let stats = self.stats.then(|| turn.stats());
            events.finish(&end, exit, stats.as_ref())?;
            return Ok(exit);
        }
        let (out, err) = (BufWriter::new(std::io::stdout().lock()), BufWriter::new(std::io::stderr()));
        let mut plain = PlainOutput::new(out, err, self.style(turn));
        let end = turn.run(&mut UpdateFront::direct(&mut plain), asker, cancel, &print_notice).await;
        let end = TurnOutcome::of(end, turn);
        plain.finish()?;
        let (outcome, notice) = wording::turn_end(&end);
        if let Some(EndNotice { what, hint, .. }) = notice {
            let is_warning = matches!(outcome, ExitStatus::Done | ExitStatus::ThinkingOnly);
            let level = if is_warning { "" } else { "error: " };
            print_notice(&format!("{level}{what}"));
            print_hint(hint.as_deref());
        }
        if self.stats {
            print_notice(&outcome::stats_text(&turn.stats()));
        }
        Ok(outcome)
    }
}

/// Larger than any schema that a provider accepts.
const MAX_SCHEMA: u64 = 1024 * 1024;

/// Reads a JSON schema, which must be an object.
fn read_schema(path: &Path) -> Result<serde_json::Value, HintedError> {
    let name = path.display();
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_SCHEMA + 1).read_to_string(&mut text));
    read.map_err(|error| HintedError::new(format!("cannot read the schema {name}: {error}")))?;
    if text.len() as u64 > MAX_SCHEMA {
        return Err(HintedError::new(format!("the schema {name} has more than {MAX_SCHEMA} bytes")));
    }
    let hint = r#"a schema is an object, such as {"type": "object", "properties": {"depth": {"type": "number"}}}"#;
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(schema) if schema.is_object() => Ok(schema),
        Ok(_) => Err(HintedError::new(format!("{name} is not a JSON schema")).hint(hint)),
        Err(error) => Err(HintedError::new(format!("{name} is not JSON: {error}")).hint(hint)),
    }
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
