//! `aside config` on real files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::support::{CONFIG, TestConfig, aside, run};

#[test]
fn the_first_setting_creates_a_private_file() {
    let config = TestConfig(std::env::temp_dir().join(format!("aside-test-first-{}", std::process::id())));
    assert_eq!(config.stdout("config get reasoning.display"), "live\n");
    assert!(!config.0.exists(), "reading makes nothing");
    config.stdout("config set reasoning.effort high");
    assert_eq!(config.read("config.toml"), "[settings]\n\"reasoning.effort\" = \"high\"\n");
    assert_eq!(config.stdout("config get reasoning.effort"), "high\n");
    let mode = |path: &str| fs::metadata(config.0.join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("config.toml")), (0o700, 0o600));
}

#[test]
fn s4_a_value_is_changed_in_place_and_everything_else_is_kept() {
    let config = TestConfig::with("in-place", CONFIG);
    config.stdout("config set reasoning.effort high");
    let expected = CONFIG.replace("= \"low\"     #", "= \"high\"     #");
    assert_eq!(config.read("config.toml"), expected);
    config.stdout("config set context.limit 100000");
    let expected = expected.replace("\"full\"\n", "\"full\"\n\"context.limit\" = 100000\n");
    assert_eq!(config.read("config.toml"), expected);
    config.stdout("config set model kimi/k2");
    let expected = expected.replace("deepseek/deepseek-chat", "kimi/k2");
    assert_eq!(config.read("config.toml"), expected);
    config.stdout("config unset context.limit");
    config.stdout("config unset reasoning.effort");
    let expected = expected.replace("\"reasoning.effort\" = \"high\"     # hard enough\n", "");
    assert_eq!(config.read("config.toml"), expected.replace("\"context.limit\" = 100000\n", ""));
    assert_eq!(config.files(), ["config.toml"]);
}

#[test]
fn s4_comments_stay_in_place() {
    #[rustfmt::skip]
    let cases = [
        ("alone",        "# mine",                            "set model a/b",             "# mine\nmodel = \"a/b\"\n"),
        ("alone, key",   "# mine\n\n",                        "set context.limit 5",       "# mine\n\n[settings]\n\"context.limit\" = 5\n"),
        ("file's own",   "# mine\n\n[keys]\na = \"b\"\n",     "set model a/b",             "# mine\n\nmodel = \"a/b\"\n\n[keys]\na = \"b\"\n"),
        ("table's own",  "# mine\n[keys]\na = \"b\"\n",       "set model a/b",             "model = \"a/b\"\n\n# mine\n[keys]\na = \"b\"\n"),
        ("last line",    "model = \"a/b\" # so\n# end\n",     "unset model",               "# end\n"),
        ("at the end",   "model = \"a/b\"\n# end\n",          "set context.limit 5",       "model = \"a/b\"\n# end\n\n[settings]\n\"context.limit\" = 5\n"),
        ("bom",          "\u{feff}# a\nmodel = \"a\"\n",       "set model a/b",             "\u{feff}# a\nmodel = \"a/b\"\n"),
        ("interleaved",  "[settings]\nreasoning.tags = \"off\"\nprompt.system = \"\"\nreasoning.effort = \"low\"\n", "set reasoning.tags auto", "[settings]\nreasoning.tags = \"auto\"\nprompt.system = \"\"\nreasoning.effort = \"low\"\n"),
        ("windows",      "model = \"a/b\"\r\n# end\r\n",      "unset model",               "# end\r\n"),
    ];
    for (name, before, arguments, after) in cases {
        let config = TestConfig::with(&format!("comments-{}", name.replace([' ', '\'', ','], "-")), before);
        config.stdout(&format!("config {arguments}"));
        assert_eq!(config.read("config.toml"), after, "{name}");
    }
}

#[test]
fn each_kind_of_value_reads_back_from_the_file() {
    let config = TestConfig::new("kinds");
    #[rustfmt::skip]
    let cases = [
        ("reasoning.enabled",    "false",                "\"reasoning.enabled\" = false"),
        ("reasoning.maxTokens",  "4096",                 "\"reasoning.maxTokens\" = 4096"),
        ("reasoning.fieldName",  "pondering",            "\"reasoning.fieldName\" = \"pondering\""),
        ("context.compactAt",    "0.5",                  "\"context.compactAt\" = 0.5"),
        ("request.temperature",  "1",                    "\"request.temperature\" = 1.0"),
        ("prompt.system",        "say \"so\"\nand stop", "\"prompt.system\" = "),
        ("prompt.projectFiles",  "[\"A.md\",\"B.md\"]",  "\"prompt.projectFiles\" = [\"A.md\", \"B.md\"]"),
    ];
    for (key, value, line) in cases {
        let run = aside(&["config", "set", key, value], b"", Some(&config));
        assert_eq!(run.code, 0, "{key}: {}", run.stderr);
        assert!(config.read("config.toml").contains(line), "{key}: {}", config.read("config.toml"));
        assert_eq!(config.stdout(&format!("config get {key}")), format!("{value}\n"), "{key}");
    }
    let explained = config.stdout("config explain prompt.system");
    assert!(explained.starts_with(r#"prompt.system = "say \"so\"\nand stop"   (config)"#), "{explained}");
}

#[test]
fn names_may_be_quoted_dotted_nested_or_inline() {
    #[rustfmt::skip]
    let cases = [
        ("quoted", "[settings]\n\"reasoning.effort\" = \"low\"\n",       "[settings]\n\"reasoning.effort\" = \"high\"\n"),
        ("dotted", "[settings]\nreasoning.effort = \"low\"\n",           "[settings]\nreasoning.effort = \"high\"\n"),
        ("nested", "[settings.reasoning]\n# so\neffort = \"low\"\n",     "[settings.reasoning]\n# so\neffort = \"high\"\n"),
        ("at root", "settings.reasoning.effort = \"low\"\n",             "settings.reasoning.effort = \"high\"\n"),
        ("inner",  "[settings]\nreasoning = { effort = \"low\" } # x\n",  "[settings]\nreasoning = { effort = \"high\" } # x\n"),
        ("dots in", "settings = { reasoning.effort = \"low\" }\n",       "settings = { reasoning.effort = \"high\" }\n"),
        ("inline", "settings = { reasoning = { effort = \"low\" } }\n",  "settings = { reasoning = { effort = \"high\" } }\n"),
    ];
    for (name, before, after) in cases {
        let config = TestConfig::with(&name.replace(' ', "-"), before);
        assert_eq!(config.stdout("config get reasoning.effort"), "low\n", "{name}");
        config.stdout("config set reasoning.effort high");
        assert_eq!(config.read("config.toml"), after, "{name}");
        config.stdout("config set request.maxTokens 5");
        assert_eq!(config.stdout("config get request.maxTokens"), "5\n", "{name}: {}", config.read("config.toml"));
        config.stdout("config unset reasoning.effort");
        let run = config.run("config get reasoning.effort");
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "reasoning.effort is unset\n"), "{name}");
        assert_eq!(config.stdout("config get request.maxTokens"), "5\n", "{name}: {}", config.read("config.toml"));
    }
}

#[test]
fn s5_aliases_are_read_and_written_as_what_they_stand_for() {
    let config = TestConfig::with("aliases", "[settings]\nshow_thinking = false\n");
    assert_eq!(config.stdout("config get reasoning.display"), "off\n");
    config.stdout("config set show_thinking true");
    assert_eq!(config.read("config.toml"), "[settings]\n\"reasoning.display\" = \"live\"\n");
    config.stdout("config set thinking.context_mode keep");
    assert_eq!(config.stdout("config get reasoning.includeInContext"), "true\n");
    config.stdout("config set thinking.context_mode provider_default");
    assert_eq!(config.read("config.toml"), "[settings]\n\"reasoning.display\" = \"live\"\n");
}

#[test]
fn err_001_an_invalid_value_is_refused_with_the_valid_ones_and_changes_nothing() {
    let config = TestConfig::with("refused", CONFIG);
    #[rustfmt::skip]
    let cases: &[(&str, &[&str])] = &[
        ("config set reasoning.format xml",      &["error: `reasoning.format` cannot be `xml`", "hint: use native or field"]),
        ("config set reasoning.maxTokens -5",    &["`reasoning.maxTokens` cannot be `-5`", "a whole number of at least 1"]),
        ("config set reasoning.efort high",      &["unknown setting `reasoning.efort`", "did you mean `reasoning.effort`?", "screen.mouse, model, profile"]),
        ("config get reasoning.efort",           &["unknown setting `reasoning.efort`"]),
        ("config unset reasoning.efort",         &["unknown setting `reasoning.efort`"]),
        ("config explain nonsense",              &["unknown setting `nonsense`"]),
        ("config get context.limit --set x=1",   &["unknown setting `x`"]),
        ("config get context.limit --set x",     &["`x` gives no value", "KEY=VALUE"]),
        ("config get context.limit -p nobody",   &["there is no profile `nobody`", "aside profile save NAME"]),
        ("config set profile nobody",            &["there is no profile `nobody`"]),
        ("profile load nobody",                  &["there is no profile `nobody`"]),
        ("profile show nobody",                  &["there is no profile `nobody`"]),
        ("profile delete nobody",                &["there is no profile `nobody`"]),
        ("profile save ../evil",                 &["`../evil` cannot name a profile", "letters, digits, - _ and ."]),
        ("profile save .hidden",                 &["cannot name a profile"]),
        ("profile save a --set reasoning.effort=ultra", &["`reasoning.effort` cannot be `ultra`"]),
    ];
    for (arguments, expected) in cases {
        let said = config.refused(arguments);
        for part in *expected {
            assert!(said.contains(part), "{arguments}: {said}");
        }
        assert_eq!(config.read("config.toml"), CONFIG, "{arguments}");
        assert_eq!(config.files(), ["config.toml"], "{arguments}");
    }
}

#[test]
fn an_error_in_a_file_names_line_and_key_and_the_file_is_left_alone() {
    #[rustfmt::skip]
    let cases = [
        ("value",    "[settings]\n\"reasoning.effort\" = \"hgih\"\n",             "config.toml:2: reasoning.effort: `reasoning.effort` cannot be `hgih`"),
        ("type",     "\n\n[settings]\nreasoning.enabled = \"true\"\n",            "config.toml:4: reasoning.enabled: `reasoning.enabled` cannot be `true`"),
        ("key",      "[settings]\n# so\n\"reasoning.efort\" = \"high\"\n",        "config.toml:3: reasoning.efort: unknown setting"),
        ("date",     "[settings]\n\"prompt.system\" = 2024-01-01\n",              "config.toml:2: prompt.system: `2024-01-01` is not a valid setting value"),
        ("twice",    "[settings]\nshow_thinking = true\nreasoning.display = \"off\"\n", "config.toml:3: reasoning.display: reasoning.display is set twice"),
        ("top",      "[settings]\n[provders.x]\n",                                "config.toml:2: provders: unknown key"),
        ("no table", "settings = 5\n",                                            "config.toml:1: settings: expected a table"),
        ("model",    "\nmodel = 5\n",                                             "config.toml:2: model: expected text in quotes"),
        ("profile",  "profile = \"gone\"\n",                                      "config.toml:1: profile: there is no profile `gone`"),
        ("no name",  "profile = \"../x\"\n",                                      "config.toml:1: profile: `../x` cannot name a profile"),
        ("syntax",   "model = \"a\"\n[settings]\n\"reasoning.effort\" = high\n",  "config.toml:3: \"reasoning.effort\": "),
    ];
    for (name, text, expected) in cases {
        let config = TestConfig::with(&format!("bad-{}", name.replace(' ', "-")), text);
        for arguments in ["config get reasoning.effort", "config explain", "profile save x"] {
            let said = config.refused(arguments);
            assert!(said.contains(expected), "{name}: {arguments}: {said}");
        }
        assert_eq!(config.read("config.toml"), text, "{name}");
        assert_eq!(config.files(), ["config.toml"], "{name}");
    }
}

#[test]
fn an_error_in_the_file_can_be_fixed_by_command() {
    let config =
        TestConfig::with("mend", "profile = \"gone\"\n[settings]\nreasoning.effort = \"hgih\"\nnonsense = 1\n");
    let said = config.refused("config set reasoning.effort high");
    assert!(said.contains("nonsense: unknown setting"), "the other mistake: {said}");
    let said = config.refused("config unset nonsense");
    assert!(said.contains("cannot be `hgih`"), "{said}");
    fs::write(config.0.join("config.toml"), "profile = \"gone\"\n[settings]\nnonsense = 1\n").unwrap();
    config.stdout("config unset nonsense");
    config.stdout("config unset profile");
    config.stdout("config set reasoning.effort high");
    assert_eq!(config.read("config.toml"), "[settings]\n\"reasoning.effort\" = \"high\"\n");
}

#[test]
fn s4_an_unwritable_folder_is_reported_and_the_old_file_stays_intact() {
    let config = TestConfig::with("read-only", CONFIG);
    let open = |mode| fs::set_permissions(&config.0, fs::Permissions::from_mode(mode)).unwrap();
    open(0o555);
    // Root may write anywhere, so another user runs it. That user may not have
    // access to the build folder.
    let is_root = fs::write(config.0.join("probe"), "").is_ok();
    let elsewhere = TestConfig::new("read-only-binary");
    let binary = elsewhere.0.join("aside");
    // Copy in another process: a child started by another test would inherit our
    // open file descriptor, and a file open for writing cannot be executed.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_aside")).arg(&binary).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(&binary);
    command.args(["config", "set", "reasoning.effort", "high"]);
    if is_root {
        fs::remove_file(config.0.join("probe")).unwrap();
        command.uid(65534).gid(65534).current_dir(&elsewhere.0);
    }
    let run = run(&mut command, b"", Some(&config));
    open(0o755);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    let expected = format!("error: cannot write {}: Permission denied", config.0.join("config.toml").display());
    assert!(run.stderr.starts_with(&expected) && run.stderr.contains("hint: nothing was changed"), "{}", run.stderr);
    assert_eq!((config.read("config.toml").as_str(), config.files()), (CONFIG, vec!["config.toml".to_owned()]));
}

#[test]
fn s4_a_full_disk_leaves_the_old_file_intact_and_no_other_file() {
    let config = TestConfig::with("full-disk", CONFIG);
    let script = r#"trap '' XFSZ; ulimit -f 0; exec "$0" "$@""#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_aside"), "config", "set", "reasoning.effort", "high"]);
    let run = run(&mut command, b"", Some(&config));
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("cannot write") && run.stderr.contains("File too large"), "{}", run.stderr);
    assert_eq!((config.read("config.toml").as_str(), config.files()), (CONFIG, vec!["config.toml".to_owned()]));
}

#[test]
fn s4_a_symlinked_file_stays_a_symlink() {
    let config = TestConfig::new("link");
    fs::write(config.0.join("dotfiles.toml"), CONFIG).unwrap();
    std::os::unix::fs::symlink(config.0.join("dotfiles.toml"), config.0.join("config.toml")).unwrap();
    config.stdout("config set reasoning.effort high");
    assert!(fs::symlink_metadata(config.0.join("config.toml")).unwrap().is_symlink());
    assert!(config.read("dotfiles.toml").contains("\"reasoning.effort\" = \"high\""));
}

#[test]
fn explain_shows_the_value_its_layer_and_the_layers_below() {
    let config = TestConfig::with("explain", CONFIG);
    config.stdout("profile save deep --set reasoning.effort=max");
    assert_eq!(
        config.stdout("config explain reasoning.effort -p deep --set reasoning.effort=medium"),
        "\
reasoning.effort = medium   (run)
  how hard to think; a level that the model lacks is lowered to one it has; `none` turns thinking off
  values: minimal, low, medium, high, xhigh, max or none

  run       medium      --set
  profile   max         profiles/deep.toml
  config    low         config.toml
  built-in  unset       the model decides
"
    );
    assert_eq!(
        config.stdout("config explain model"),
        "model = deepseek/deepseek-chat   (config)\n  the model that runs, as PROVIDER/MODEL\n"
    );
    assert!(config.stdout("config explain reasoning.format").contains("\n  built-in  field       default\n"));
}

#[test]
fn explain_without_a_key_lists_every_setting() {
    let config = TestConfig::with("explain-all", CONFIG);
    let all = config.stdout("config explain");
    let heads: Vec<&str> = all.lines().step_by(2).collect();
    assert_eq!(heads.len(), 26);
    assert_eq!(&heads[..2], ["reasoning.enabled = true   (built-in)", "reasoning.effort = low   (config)"]);
    assert!(heads.contains(&"reasoning.fieldName = reasoning_content   (dialect)"), "the configured model's own");
    assert!(heads.contains(&"request.maxTokens is unset   (from the dialect)"));
    assert!(all.lines().skip(1).step_by(2).all(|doc| doc.starts_with("  ") && doc.len() > 10));
}

#[test]
fn explain_names_another_setting_that_affects_the_value() {
    let config = TestConfig::new("interplay");
    #[rustfmt::skip]
    let cases = [
        ("reasoning.enabled", "reasoning.effort=none",             "reasoning.effort is none, so it counts as false"),
        ("reasoning.effort",  "reasoning.enabled=false",           "reasoning.enabled is false, so no effort is asked for"),
        ("reasoning.display", "reasoning.includeInResponse=false", "reasoning.includeInResponse is false, so it counts as off"),
    ];
    for (key, set, note) in cases {
        assert!(config.stdout(&format!("config explain {key} --set {set}")).contains(&format!("  note: {note}\n")));
        assert!(!config.stdout(&format!("config explain {key}")).contains("note:"), "{key}");
    }
}

#[test]
fn the_config_folder_is_printed() {
    let config = TestConfig::new("path");
    assert_eq!(config.stdout("config path"), format!("{}\n", config.0.display()));
}

#[test]
fn help_has_an_example_for_every_command() {
    let config = TestConfig::new("help");
    for (command, subcommands) in [
        ("config", &["get", "set", "unset", "explain", "path"][..]),
        ("profile", &["save", "load", "list", "show", "delete"]),
    ] {
        assert!(config.stdout("--help").contains(&format!("  {command} ")), "{command}");
        assert!(config.stdout(&format!("{command} --help")).contains("Example:"), "{command}");
        for subcommand in subcommands {
            let help = config.stdout(&format!("{command} {subcommand} --help"));
            assert!(help.contains("Example:\n  ") && help.contains(&format!("aside {command} {subcommand}")), "{help}");
        }
    }
}

#[test]
fn l3_a_rule_for_an_unknown_tool_is_an_error() {
    #[rustfmt::skip]
    let cases = [
        ("[permissions]\nbash = \"allow\"\n",                "config.toml:2: permissions.bash: there is no tool `bash`"),
        ("[permissions]\n\"raed:src/*\" = \"deny\"\n",      "config.toml:2: permissions.raed:src/*: there is no tool `raed`"),
        ("[permissions]\nmaps__ = \"allow\"\n",              "config.toml:2: permissions.maps__: there is no tool `maps__`"),
        ("[permissions]\nshell = 1\n",                       "config.toml:2: permissions.shell: expected \"allow\", \"ask\" or \"deny\""),
        ("[permissions]\nshell = { verdict = \"allow\", x = 1 }\n", "config.toml:2: permissions.shell: expected"),
        ("[permissions]\nshell = \"maybe\"\n",               "config.toml:2: permissions.shell: unknown verdict `maybe`"),
    ];
    for (text, what) in cases {
        let said = TestConfig::with("no-such-tool", text).refused("ask -m sim/kimi hello");
        assert!(said.contains(what), "{text}{said}");
        assert_eq!(
            said.contains("there are: read, list, glob, grep, edit, write, shell"),
            what.contains("no tool"),
            "{said}"
        );
    }
    let fine = "[permissions]\nread = \"allow\"\n\"*\" = \"ask\"\n\"maps__*\" = \"allow\"\nmaps__route = \"deny\"\n\
                shell = { verdict = \"ask\" }\n[mcp.maps]\nurl = \"http://127.0.0.1:1\"\nenabled = false\n";
    let config = TestConfig::with("such-tools", fine);
    let asked = config.run("ask -m sim/kimi hello");
    assert_eq!((asked.code, asked.stderr.contains("permissions.")), (0, false), "{}", asked.stderr);
}

#[test]
fn l3_a_rule_for_a_server_that_is_not_there_is_a_notice() {
    let rules = "[permissions]\n\"maps__*\" = \"allow\"\nread = \"ask\"\n";
    let config = TestConfig::with("no-such-server", rules);
    let asked = config.run("ask -m sim/kimi hello");
    let note = "note: permissions.maps__* applies to nothing: there is no MCP server of that name here\n";
    assert_eq!((asked.code, asked.stderr.matches(note).count()), (0, 1), "{}", asked.stderr);
    // Without tools, rules do not matter.
    let asked = config.run("ask -m sim/kimi --no-tools hello");
    assert_eq!((asked.code, asked.stderr.contains(note)), (0, false), "{}", asked.stderr);
}
