//! Completions and man pages cover every command.

use std::path::Path;
use std::process::Command;

use crate::support::{TestConfig, aside, run};

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = aside(&["--help"], b"", None).stdout;
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[test]
fn completions_of_every_shell_cover_every_command() {
    let commands = commands();
    assert!(commands.len() >= 9, "{commands:?}");
    #[rustfmt::skip]
    let cases = [
        ("bash",       "complete -F _aside", "--dialect"),
        ("zsh",        "#compdef aside",     "--dialect"),
        ("fish",       "complete -c aside",  "-l dialect"),
        ("elvish",     "edit:completion",    "--dialect"),
        ("powershell", "Register-ArgumentCompleter", "--dialect"),
    ];
    for (shell, sign, option) in cases {
        let run = aside(&["completions", shell], b"", None);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for word in commands.iter().map(String::as_str).chain([sign, option]) {
            assert!(run.stdout.contains(word), "{shell}: {word}");
        }
    }
    let run = aside(&["completions", "tcsh"], b"", None);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("one of: bash, elvish, fish, powershell, zsh"), "{}", run.stderr);
}

#[test]
fn the_man_page_names_every_command_and_each_has_its_own() {
    let page = aside(&["man"], b"", None).stdout;
    assert!(page.contains(".TH aside 1"), "{page}");
    for command in commands() {
        assert!(page.contains(&format!("aside\\-{command}(1)")), "{command}");
        let own = aside(&["man", &command], b"", None);
        assert_eq!((own.code, own.stderr.as_str()), (0, ""), "{command}");
        assert!(own.stdout.contains(".SH SYNOPSIS") && own.stdout.contains(&format!("aside\\-{command}")), "{command}");
    }
    assert!(aside(&["man", "config", "explain"], b"", None).stdout.contains("\\-\\-profile"));
    let run = aside(&["man", "config", "nope"], b"", None);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("`config` has no command `nope`") && run.stderr.contains("get, set"), "{}", run.stderr);
}

/// What bash offers at the end of a command line.
fn in_bash(config: &TestConfig, line: &str) -> Vec<String> {
    // Bash splits words at these characters.
    let words = line.replace('=', " = ").replace(':', " : ");
    let words: Vec<&str> = words.split(' ').collect();
    let script = format!(
        "PATH=$1:$PATH; source <(aside completions bash)
         COMP_LINE='{line}' COMP_POINT={} COMP_WORDS=({}) COMP_CWORD={}
         _aside_with_values aside \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        line.len(),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
    );
    let folder = Path::new(env!("CARGO_BIN_EXE_aside")).parent().unwrap();
    let ran = run(Command::new("bash").args(["-c", &script, "bash"]).arg(folder), b"", Some(config));
    assert_eq!(ran.stderr, "", "{line}");
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn completions_offer_models_providers_and_setting_values() {
    let text = "[providers.work]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:9\"\n\
                [providers.work.models.\"deep:8b\"]\nextra_body = { top_k = 20 }\n";
    let config = TestConfig::with("completion-values", text);
    #[rustfmt::skip]
    let cases: [(&str, &[&str]); 9] = [
        ("aside ask -m work/",                                  &["work/deep:8b"]),
        // Bash replaces only what follows the last `:` or `=`.
        ("aside ask --model work/deep:",                        &["8b"]),
        ("aside ask -m sim/deepseek-",                          &["sim/deepseek-anthropic", "sim/deepseek-responses"]),
        ("aside ask --set reasoning.eff",                       &["reasoning.effort="]),
        ("aside ask --set reasoning.display=",                  &["full", "live", "collapsed", "off"]),
        ("aside config set reasoning.stripFromContext a",       &["all", "allButLast"]),
        ("aside config get context.",                           &["context.limit", "context.compactAt"]),
        ("aside key set wor",                                   &["work"]),
        // Not a value: the generated part answers.
        ("aside config forget",                                 &["forget-learned"]),
    ];
    for (line, expected) in cases {
        assert_eq!(in_bash(&config, line), expected, "{line}");
    }
}
