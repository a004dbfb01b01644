//! The `aside` binary: arguments, files, exit codes. It knows no wire format.

mod ask;
mod atomic;
mod chat;
mod choice;
mod config;
mod confinement;
mod decode;
mod doctor;
mod encode;
mod explain;
mod judge;
mod keep;
mod key;
mod keyring;
mod keys;
mod local;
mod log;
#[cfg_attr(not(feature = "mcp"), path = "mcp_absent.rs")]
mod mcp;
mod mcp_tables;
mod models;
mod outgoing;
mod output;
mod own_models;
mod pages;
mod permission_table;
mod profile;
mod provider_tables;
mod providers;
mod replay;
mod report;
mod run;
mod sandbox;
mod search;
mod sessions;
mod settings;
mod settings_file;
mod sim;
mod times;
mod trust;
mod usage;
mod user_files;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use report::Report;

const VARIABLES: &str = "\
Environment:
  ASIDE_CONFIG_DIR, ASIDE_DATA_DIR  folders for settings and sessions, else the XDG ones
  ASIDE_LOG=warn|info|debug         write aside.log into ASIDE_STATE_DIR, else the XDG state folder
  NO_COLOR                          no colours";

/// Every reasoning model works right, everywhere.
///
/// Without a command: the terminal screen, in a new session. aside reads the
/// thinking of any LLM provider, shows it, keeps all of it, and sends back what
/// that provider needs.
#[derive(Debug, Parser)]
#[command(name = "aside", version, propagate_version = true, args_conflicts_with_subcommands = true)]
#[command(after_help = VARIABLES)]
struct Arguments {
    #[command(flatten)]
    chat: chat::Arguments,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ask(ask::Arguments),
    Completions(pages::CompletionsArguments),
    Config(config::Arguments),
    Decode(decode::Arguments),
    Doctor(doctor::Arguments),
    Encode(encode::Arguments),
    Explain(explain::Arguments),
    Judge(judge::Arguments),
    Key(key::Arguments),
    Man(pages::ManArguments),
    Models(models::Arguments),
    Profile(profile::Arguments),
    Replay(replay::Arguments),
    Sandbox(sandbox::Arguments),
    Search(search::Arguments),
    Sessions(sessions::Arguments),
    Sim(sim::Arguments),
    Trust(trust::Arguments),
    Usage(usage::Arguments),
}

/// What a run came to, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Done = 0,
    /// The model or its provider failed.
    ProviderFailed = 1,
    /// You asked for something that cannot be.
    AskedWrongly = 2,
    /// The terminal went away.
    HungUp = 129,
    /// The user stopped it.
    Interrupted = 130,
    /// Somebody asked the process to end.
    Terminated = 143,
}

fn main() -> ExitCode {
    // First of all: a command waits for it.
    if let Some(code) = aside_confine::helper::run_if_asked() {
        return code;
    }
    aside_confine::hide_this_process();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refuse(&error),
    };
    let outcome = log::begin().map_err(anyhow::Error::from).and_then(|()| obey(arguments));
    let code = match outcome {
        Ok(outcome) => outcome,
        // Whoever reads our output has seen enough.
        Err(error) if is_broken_pipe(&error) => Outcome::Done,
        Err(error) => {
            let report = Report::from(error);
            log::note(log::Level::Warn, || report.to_string());
            report.print();
            Outcome::AskedWrongly
        }
    };
    ExitCode::from(code as u8)
}

fn obey(arguments: Arguments) -> anyhow::Result<Outcome> {
    match arguments.command {
        None => chat::run(arguments.chat),
        Some(Command::Ask(arguments)) => ask::run(&arguments),
        Some(Command::Completions(arguments)) => pages::completions(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Decode(arguments)) => decode::run(&arguments),
        Some(Command::Doctor(arguments)) => doctor::run(&arguments),
        Some(Command::Encode(arguments)) => encode::run(&arguments),
        Some(Command::Explain(arguments)) => explain::run(&arguments),
        Some(Command::Judge(arguments)) => judge::run(&arguments),
        Some(Command::Key(arguments)) => key::run(&arguments),
        Some(Command::Man(arguments)) => pages::man(&arguments),
        Some(Command::Models(arguments)) => models::run(&arguments),
        Some(Command::Profile(arguments)) => profile::run(&arguments),
        Some(Command::Replay(arguments)) => replay::run(&arguments),
        Some(Command::Sandbox(arguments)) => sandbox::run(&arguments),
        Some(Command::Search(arguments)) => search::run(&arguments),
        Some(Command::Sessions(arguments)) => sessions::run(&arguments),
        Some(Command::Usage(arguments)) => usage::run(&arguments),
        Some(Command::Sim(arguments)) => sim::run(&arguments),
        Some(Command::Trust(arguments)) => trust::run(&arguments),
    }
}

/// The help, or what is wrong with the arguments. That quotes them, and so may
/// hold what a terminal would obey.
fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        report::tell(error.render().to_string().trim_end());
        return ExitCode::from(Outcome::AskedWrongly as u8);
    }
    // Whoever reads our output may have seen enough.
    drop(error.print());
    ExitCode::from(Outcome::Done as u8)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    kinds.map(std::io::Error::kind).any(|kind| kind == std::io::ErrorKind::BrokenPipe)
}
