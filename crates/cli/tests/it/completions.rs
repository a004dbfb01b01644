//! Completions and man pages cover every command.

use crate::support::aside;

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
