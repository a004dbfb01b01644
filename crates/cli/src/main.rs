//! The `aside` binary: arguments, files, exit codes. Wire formats are the library's concern.

mod acp;
mod ask;
mod chat;
mod client_setup;
mod completion_values;
mod completions;
mod config;
mod configured_models;
mod decode;
mod doctor;
mod encode;
mod explain;
mod import_sessions;
mod interrupts;
mod judge;
mod key;
mod key_bindings;
mod model_rules;
mod models;
mod output;
mod override_arguments;
mod profile;
mod prune_sessions;
mod replay;
mod report;
mod request_arguments;
mod request_receipt;
mod sandbox;
mod search;
mod serve;
mod session_arguments;
mod sessions;
mod sim;
mod trust;
mod usage;
mod web;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use aside_front::ToolMode;
use aside_session::{HintedError, UserFolders, log};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};

const VARIABLES: &str = "\
Environment:
  ASIDE_CONFIG_DIR, ASIDE_DATA_DIR  folders for settings and sessions, else the XDG ones
  ASIDE_LOG=warn|info|debug         write aside.log into ASIDE_STATE_DIR, else the XDG state folder
  NO_COLOR                          no colours";

/// Every reasoning model works correctly, everywhere.
///
/// Without a command, aside opens the terminal UI with a new session. It
/// reads the thinking of any LLM provider, shows it, stores all of it, and sends
/// back what that provider needs.
#[derive(Debug, Parser)]
#[command(name = "aside", version, propagate_version = true, args_conflicts_with_subcommands = true)]
#[command(after_help = VARIABLES)]
struct Arguments {
    #[command(flatten)]
    chat: chat::Arguments,

    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Acp(acp::Arguments),
    Ask(ask::Arguments),
    Completions(completions::CompletionsArguments),
    Config(config::Arguments),
    Decode(decode::Arguments),
    Doctor(doctor::Arguments),
    Encode(encode::Arguments),
    Explain(explain::Arguments),
    Judge(judge::Arguments),
    Key(key::Arguments),
    Man(completions::ManArguments),
    Models(models::Arguments),
    Profile(profile::Arguments),
    Replay(replay::Arguments),
    Sandbox(sandbox::Arguments),
    Search(search::Arguments),
    Serve(serve::Arguments),
    Sessions(sessions::Arguments),
    Sim(sim::Arguments),
    Trust(trust::Arguments),
    Usage(usage::Arguments),
    Web(web::Arguments),
}

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    Done = 0,
    /// The model or its provider failed, or some of the sessions to import.
    ProviderFailed = 1,
    /// The arguments, the config or an input file are wrong.
    UsageError = 2,
    /// The reply has only thinking.
    ThinkingOnly = 3,
    /// The model or a filter refused to answer.
    Declined = 4,
    /// SIGHUP: the terminal is gone.
    HungUp = 129,
    /// Ctrl+C.
    Interrupted = 130,
    /// SIGTERM.
    Terminated = 143,
}

fn main() -> ExitCode {
    // Before anything else: as the sandbox helper, this process delays a command.
    if let Some(code) = aside_session::run_if_helper() {
        return code;
    }
    aside_session::hide_this_process();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print_clap_error(&error),
    };
    let outcome =
        log::init(&UserFolders::from_environment()).map_err(anyhow::Error::from).and_then(|()| run_command(arguments));
    let code = match outcome {
        Ok(outcome) => outcome,
        // The reader of the pipe has gone, as `head` does. That is not an error.
        Err(error) if is_broken_pipe(&error) => ExitStatus::Done,
        Err(error) => {
            let error = report::as_hinted(error);
            log::write(log::LogLevel::Warn, || error.to_string());
            report::print_error(&error);
            ExitStatus::UsageError
        }
    };
    ExitCode::from(code as u8)
}

fn run_command(arguments: Arguments) -> anyhow::Result<ExitStatus> {
    match arguments.command {
        None => chat::run(&arguments.chat),
        Some(CliCommand::Acp(arguments)) => acp::run(&arguments),
        Some(CliCommand::Ask(arguments)) => ask::run(&arguments),
        Some(CliCommand::Completions(arguments)) => completions::print_completions(&arguments),
        Some(CliCommand::Config(arguments)) => config::run(&arguments),
        Some(CliCommand::Decode(arguments)) => decode::run(&arguments),
        Some(CliCommand::Doctor(arguments)) => doctor::run(&arguments),
        Some(CliCommand::Encode(arguments)) => encode::run(&arguments),
        Some(CliCommand::Explain(arguments)) => explain::run(&arguments),
        Some(CliCommand::Judge(arguments)) => judge::run(&arguments),
        Some(CliCommand::Key(arguments)) => key::run(&arguments),
        Some(CliCommand::Man(arguments)) => completions::print_man_page(&arguments),
        Some(CliCommand::Models(arguments)) => models::run(&arguments),
        Some(CliCommand::Profile(arguments)) => profile::run(&arguments),
        Some(CliCommand::Replay(arguments)) => replay::run(&arguments),
        Some(CliCommand::Sandbox(arguments)) => sandbox::run(&arguments),
        Some(CliCommand::Search(arguments)) => search::run(&arguments),
        Some(CliCommand::Serve(arguments)) => serve::run(&arguments),
        Some(CliCommand::Sessions(arguments)) => sessions::run(&arguments),
        Some(CliCommand::Usage(arguments)) => usage::run(&arguments),
        Some(CliCommand::Web(arguments)) => web::run(&arguments),
        Some(CliCommand::Sim(arguments)) => sim::run(&arguments),
        Some(CliCommand::Trust(arguments)) => trust::run(&arguments),
    }
}

/// Prints the help, or the mistake in the arguments. The message quotes the
/// arguments, so terminal escapes in it are removed.
fn print_clap_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        let message = error.render().to_string();
        report::print_notice(message.trim_end());
        let what = message.lines().next().unwrap_or_default();
        // The reader of the pipe may be gone.
        drop(ask::print_usage_error(what.strip_prefix("error: ").unwrap_or(what)));
        return ExitCode::from(ExitStatus::UsageError as u8);
    }
    // The reader of the pipe may be gone.
    drop(error.print());
    ExitCode::from(ExitStatus::Done as u8)
}

/// The process's working directory, in which sessions work.
fn working_directory() -> Result<PathBuf, HintedError> {
    std::env::current_dir().map_err(|error| HintedError::new(format!("the working directory cannot be read: {error}")))
}

/// Parses `--mode`, and offers its values for completion.
fn parse_tool_mode() -> impl TypedValueParser<Value = ToolMode> {
    let names = PossibleValuesParser::new(ToolMode::WORDS);
    names.try_map(|name| name.parse::<ToolMode>())
}

/// The simulator's tokens per second: on a terminal the text should be slow enough to read.
fn simulator_rate() -> Option<f64> {
    std::io::stderr().is_terminal().then_some(80.0)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    kinds.map(std::io::Error::kind).any(|kind| kind == std::io::ErrorKind::BrokenPipe)
}
