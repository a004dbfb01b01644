//! `aside completions` and `aside man`, generated from the same definitions as
//! `--help`.

use std::io::{self, Write};

use aside_session::HintedError;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::ExitStatus;

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside completions bash > ~/.local/share/bash-completion/completions/aside
  aside completions zsh > \"${fpath[1]}/_aside\"
  aside completions fish > ~/.config/fish/completions/aside.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL")]
    shell: String,
}

/// Print the man page, of aside or of one of its commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside man | man -l -
  aside man config explain > aside-config-explain.1")]
pub(crate) struct ManArguments {
    /// A command, such as `encode` or `config explain`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn print_completions(arguments: &CompletionsArguments) -> anyhow::Result<ExitStatus> {
    let Ok(shell) = Shell::from_str(&arguments.shell, true) else {
        let known: Vec<String> = Shell::value_variants().iter().map(Shell::to_string).collect();
        let what = format!("there are no completions for `{}`", arguments.shell);
        return Err(HintedError::new(what).hint(format!("one of: {}", known.join(", "))).into());
    };
    // Write the script at once, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut full_command(), "aside", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(ExitStatus::Done)
}

pub(crate) fn print_man_page(arguments: &ManArguments) -> anyhow::Result<ExitStatus> {
    let all = full_command();
    let mut command = &all;
    for name in &arguments.command {
        command = command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let hint =
                if known.is_empty() { "it has none".to_owned() } else { format!("one of: {}", known.join(", ")) };
            HintedError::new(format!("`{}` has no command `{name}`", command.get_name())).hint(hint)
        })?;
    }
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    io::stdout().lock().write_all(&page)?;
    Ok(ExitStatus::Done)
}

/// The complete command tree, with inherited arguments.
fn full_command() -> Command {
    let mut command = crate::Arguments::command();
    command.build();
    command
}
