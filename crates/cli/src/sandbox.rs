//! `aside sandbox`: a command, confined as the commands of a model are.

use aside_confine::{Approval, End, Input, Want, run};

use crate::report::Report;
use crate::settings::Overrides;
use crate::{Outcome, confinement};

/// Run a command confined as the commands of a model are
///
/// It may write to the working directory, temporary folders and caches; it has no
/// network, no input and no terminal; what it leaves running is ended. The tier is
/// said on standard error. The exit code is the command's.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside sandbox -- cargo build --offline
  aside sandbox --network -- npm ci
  ASIDE_CONFINE_MAX=kernel aside sandbox -- sh -c 'echo x > ~/x'")]
pub(crate) struct Arguments {
    #[command(flatten)]
    overrides: Overrides,

    /// With network
    #[arg(long)]
    network: bool,

    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let loaded = arguments.overrides.load()?;
    let here = crate::run::here()?;
    let unreadable = loaded.permissions.unreadable(&here);
    let confine = confinement::confine(&here, &loaded.tools, unreadable);
    let want = if arguments.network { Want::Network } else { Want::Usual };
    let refused = |refused: aside_confine::Refused| {
        Report::new(refused.to_string()).hint("aside doctor says what is missing; tools.confine is in config.toml")
    };
    let confinement = confine.confinement(want).map_err(refused)?;
    crate::report::tell(&format!("tier: {confinement}"));
    for why in &confine.found().missing {
        crate::report::tell(&format!("not there: {why}"));
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Err(Report::new("there is no command").into());
    };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let launch = confine.launch(program, &rest, want, Approval::Standing, Input::Nothing).map_err(refused)?;
    let mut helper = confine.helper().command();
    for variable in crate::run::key_variables(&crate::user_files::dialects()?, &loaded.providers) {
        helper.env_remove(variable);
    }
    let report = run::pass_through(helper, &launch)
        .map_err(|error| Report::new(format!("the helper that runs it failed: {error}")))?;
    if report.ended_others {
        crate::report::tell("what it left in the background was ended");
    }
    let restored = report.restored.iter().map(|path| format!("protected, and restored after it was changed: {path}"));
    for line in restored.chain(report.troubles) {
        crate::report::tell(&line);
    }
    match report.end {
        End::Exited(0) => Ok(Outcome::Done),
        End::Exited(code) => std::process::exit(code),
        End::Signalled(signal) => std::process::exit(128 + signal),
        End::Stopped => Ok(Outcome::Terminated),
        End::NotStarted(why) => Err(Report::new(format!("not run: {why}")).into()),
    }
}
