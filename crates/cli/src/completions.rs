//! `aside completions` and `aside man`, generated from the same definitions as
//! `--help`.

use std::io::{self, Write};

use aside_session::HintedError;
use clap::{Command, CommandFactory, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{ExitStatus, completion_values};

/// Print completions for a shell
///
/// In bash, zsh and fish, they also offer models, settings and their values,
/// providers, profiles and sessions.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside completions bash > ~/.local/share/bash-completion/completions/aside
  aside completions zsh > \"${fpath[1]}/_aside\"
  aside completions fish > ~/.config/fish/completions/aside.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell: bash, elvish, fish, powershell or zsh
    #[arg(value_name = "SHELL", required_unless_present = "line")]
    shell: Option<String>,

    /// Print what can stand at the end of this command line, for the scripts
    #[arg(long, value_name = "LINE", hide = true, conflicts_with = "shell", allow_hyphen_values = true)]
    line: Option<String>,
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
    if let Some(line) = &arguments.line {
        let mut values = completion_values::values(&full_command(), line).join("\n");
        if !values.is_empty() {
            values.push('\n');
        }
        io::stdout().lock().write_all(values.as_bytes())?;
        return Ok(ExitStatus::Done);
    }
    let name = arguments.shell.as_deref().unwrap_or_default();
    let Ok(shell) = Shell::from_str(name, true) else {
        let known: Vec<String> = Shell::value_variants().iter().map(Shell::to_string).collect();
        let what = format!("there are no completions for `{name}`");
        return Err(HintedError::new(what).hint(format!("one of: {}", known.join(", "))).into());
    };
    // Write the script at once, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut full_command(), "aside", &mut script);
    let script = with_values(shell, &String::from_utf8(script)?);
    io::stdout().lock().write_all(script.as_bytes())?;
    Ok(ExitStatus::Done)
}

/// Adds values that only the program knows to the generated script: models, settings, sessions.
fn with_values(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            let script = script.replace("complete -F _aside ", "complete -F _aside_with_values ");
            let (functions, registration) = script.split_once("\nif [[").unwrap_or((&script, ""));
            format!("{functions}\n{BASH_VALUES}\nif [[{registration}")
        }
        Shell::Zsh => script.replacen("\n_aside() {\n", &format!("\n_aside() {{\n{ZSH_VALUES}"), 1),
        Shell::Fish => {
            let line = |line: &str| match line.strip_suffix(" -r") {
                // The value of an option. Fish takes it from here alone.
                Some(option) => format!("{option} -x -a \"(__aside_values)\"\n"),
                None => format!("{line}\n"),
            };
            let script: String = script.lines().map(line).collect();
            format!("{FISH_VALUES}{script}{FISH_POSITIONALS}")
        }
        Shell::Elvish | Shell::PowerShell | _ => script.to_owned(),
    }
}

/// Bash splits words at `=` and `:` and replaces only the last part, so the parts before it are removed.
const BASH_VALUES: &str = r#"_aside_with_values() {
    local IFS=$'\n' line="${COMP_LINE:0:COMP_POINT}" word breaks="" before=""
    COMPREPLY=($("${COMP_WORDS[0]}" completions --line "${line}" 2>/dev/null))
    if [[ ${#COMPREPLY[@]} -eq 0 ]]; then
        unset IFS
        _aside "$@"
        return
    fi
    word="${line##*[[:space:]]}"
    [[ "${COMP_WORDBREAKS}" == *:* ]] && breaks+=":"
    [[ "${COMP_WORDBREAKS}" == *=* ]] && breaks+="="
    [[ -n "${breaks}" ]] && before="${word%"${word##*[${breaks}]}"}"
    COMPREPLY=("${COMPREPLY[@]#"${before}"}")
    if [[ "${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
"#;

const ZSH_VALUES: &str = r#"    local -a aside_values
    aside_values=(${(f)"$(${words[1]} completions --line "${(j: :)words[1,CURRENT]}" 2>/dev/null)"})
    if (( $#aside_values )); then
        local -a aside_suffix
        [[ "${aside_values[1]}" == *= ]] && aside_suffix=(-S '')
        compadd "${aside_suffix[@]}" -a aside_values
        return
    fi
"#;

const FISH_VALUES: &str = r#"function __aside_values
    set -l words (commandline -cp)
    aside completions --line "$words" 2>/dev/null
end

"#;

const FISH_POSITIONALS: &str = r#"complete -c aside -n "test (count (__aside_values)) -gt 0" -f -a "(__aside_values)"
"#;

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
