//! `aside sandbox`: runs a command confined like a model's commands.

use aside_confine::{Approval, CommandEnd, CommandInput, RequestedAccess, spawn_supervisor};
use aside_session::HintedError;
use aside_session::UserFolders;
use aside_session::confinement;

use crate::ExitStatus;
use crate::override_arguments::OverrideArguments;

/// Run a command in the sandbox of the model's commands
///
/// It may write to the working directory, temporary folders and caches. It has no
/// network, no input and no terminal, and its background processes are killed at
/// the end. The tier is printed on standard error. The exit code is the command's.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside sandbox -- cargo build --offline
  aside sandbox --network -- npm ci
  ASIDE_CONFINE_MAX=kernel aside sandbox -- sh -c 'echo x > ~/x'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    overrides: OverrideArguments,

    /// Allow network access
    #[arg(long)]
    network: bool,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let loaded = arguments.overrides.load()?;
    let here = crate::working_directory()?;
    let confine = confinement::confine(&here, &UserFolders::from_environment(), &loaded);
    let want = if arguments.network { RequestedAccess::Network } else { RequestedAccess::Standard };
    let refused = |refused: aside_confine::TierUnavailable| {
        HintedError::new(refused.to_string()).hint("aside doctor says what is missing; tools.confine is in config.toml")
    };
    let confinement = confine.confinement(want).map_err(refused)?;
    crate::report::print_notice(&format!("tier: {confinement}"));
    for why in &confine.support().missing {
        crate::report::print_notice(&format!("unavailable: {why}"));
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(HintedError::new("there is no command").into());
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let launch = confine.launch(program, &rest, want, Approval::Automatic, CommandInput::Empty).map_err(refused)?;
    let mut helper = confine.helper().command();
    for variable in aside_session::start::key_variables(&UserFolders::from_environment().dialects()?, &loaded.providers)
    {
        helper.env_remove(variable);
    }
    let report = spawn_supervisor::run_and_wait(helper, &launch)
        .map_err(|error| HintedError::new(format!("the helper that runs it failed: {error}")))?;
    if report.killed_background {
        crate::report::print_notice("background processes were killed");
    }
    let restored = report.restored.iter().map(|path| format!("protected, and restored after it was changed: {path}"));
    for line in restored.chain(report.problems) {
        crate::report::print_notice(&line);
    }
    match report.end {
        CommandEnd::Exited(0) => Ok(ExitStatus::Done),
        CommandEnd::Exited(code) => std::process::exit(code),
        CommandEnd::Signalled(signal) => std::process::exit(128 + signal),
        CommandEnd::Stopped => Ok(ExitStatus::Terminated),
        CommandEnd::NotStarted(why) => Err(HintedError::new(format!("not run: {why}")).into()),
    }
}
