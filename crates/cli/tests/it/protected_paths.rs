//! A provider that writes to protected paths.

use std::fs;
use std::mem::ManuallyDrop;
use std::process::Command;

use serde_json::json;

use crate::sandbox::tiers;
use crate::support::{TestConfig, run};
use crate::terminal::scripted_provider::{ScriptedProvider, ScriptedStep};

#[test]
fn l3_yes_does_not_cover_protected_paths() {
    #[rustfmt::skip]
    let cases = [
        // The config folder lies in the working directory.
        ("hook",    ".git/hooks/pre-commit",     "",                                        false),
        ("agents",  "AGENTS.md",                 "",                                        false),
        ("named",   "RULES.txt",                 "[settings.prompt]\nprojectFiles = [\"RULES.txt\"]\n", false),
        ("config",  "config/config.toml",        "",                                        false),
        ("data",    "config/data/permissions.json", "",                                     false),
        ("allowed", ".git/hooks/pre-commit",     "[permissions]\nwrite = \"allow\"\n\"write:*\" = \"allow\"\n", false),
        ("lifted",  "AGENTS.md",                 "[permissions]\n\"write:AGENTS.md\" = \"allow\"\n", true),
        ("plain",   "src/new.txt",               "",                                        true),
    ];
    for (name, path, config_text, is_written) in cases {
        let config = TestConfig::new(&format!("protected-{name}"));
        let (work, own) = (config.0.join("work"), config.0.join("work/config"));
        fs::create_dir_all(&own).unwrap();
        let call = ScriptedStep::Call { id: "c1", name: "write", arguments: json!({"path": path, "content": "OWNED"}) };
        let provider = ScriptedProvider::new(vec![vec![call], vec![ScriptedStep::Say("done")]]);
        fs::write(own.join("config.toml"), format!("{}\n{config_text}", provider.config())).unwrap();
        let before = fs::read_to_string(own.join("config.toml")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["ask", "--yes", "-m", "played/some-model", "go"]).current_dir(&work);
        // Removed together with the folder around it.
        let inside = ManuallyDrop::new(TestConfig(own.clone()));
        let ran = run(&mut command, b"", Some(&inside));
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let written = fs::read_to_string(work.join(path)).is_ok_and(|text| text == "OWNED");
        assert_eq!(written, is_written, "{name}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(own.join("config.toml")).unwrap(), before, "{name}");
    }
}

/// The files decide what runs at the next start: a new `[mcp]` table is enough.
#[test]
fn k2_an_allowed_command_cannot_change_the_files_of_aside_below_its_working_directory() {
    for tier in tiers(&TestConfig::new("own-files")) {
        let config = TestConfig::new(&format!("own-files-{tier}"));
        let (work, own) = (config.0.join("work"), config.0.join("work/config"));
        fs::create_dir_all(&own).unwrap();
        let call = ScriptedStep::Call { id: "c1", name: "shell", arguments: json!({"command": "sh grow.sh"}) };
        let provider = ScriptedProvider::new(vec![vec![call], vec![ScriptedStep::Say("done")]]);
        let rules = "[permissions]\n\"shell:sh grow.sh\" = \"allow\"\n";
        fs::write(own.join("config.toml"), format!("{}\n{rules}", provider.config())).unwrap();
        let before = fs::read_to_string(own.join("config.toml")).unwrap();
        let script = "echo x >ran; mkdir -p config/data config/profiles config/dialects
            for file in config.toml data/permissions.json data/trust.json profiles/deep.toml dialects/own.toml; do echo '# OWNED' >>config/$file; done; true";
        fs::write(work.join("grow.sh"), script).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["ask", "-m", "played/some-model", "go"]).current_dir(&work).env("ASIDE_CONFINE_MAX", tier);
        let inside = ManuallyDrop::new(TestConfig(own.clone()));
        let ran = run(&mut command, b"", Some(&inside));
        assert_eq!(ran.code, 0, "{tier}: {}", ran.stderr);
        // Without a sandbox it asks, and gets no answer.
        assert_eq!(work.join("ran").exists(), tier != "none", "{tier}: {}", ran.stderr);
        assert_eq!(fs::read_to_string(own.join("config.toml")).unwrap(), before, "{tier}: {}", ran.stderr);
        for file in ["data/permissions.json", "data/trust.json", "profiles/deep.toml", "dialects/own.toml"] {
            let is_owned = fs::read_to_string(own.join(file)).is_ok_and(|text| text.contains("OWNED"));
            assert!(!is_owned, "{tier}: {file}: {}", ran.stderr);
        }
    }
}

/// The next session would read what was written as instructions.
#[test]
fn l3_instructions_of_the_repository_that_lie_in_the_working_directory_are_protected() {
    for tier in tiers(&TestConfig::new("linked-instructions")) {
        let config = TestConfig::new(&format!("linked-instructions-{tier}"));
        let repository = config.0.join("repository");
        let work = repository.join("docs");
        fs::create_dir_all(&work).unwrap();
        fs::create_dir(repository.join(".git")).unwrap();
        for (link, target) in [("AGENTS.md", "guide.md"), ("RULES.txt", "rules.md")] {
            std::os::unix::fs::symlink(format!("docs/{target}"), repository.join(link)).unwrap();
            fs::write(work.join(target), "good\n").unwrap();
        }
        fs::write(work.join("grow.sh"), "echo x >ran; echo OWNED >>guide.md; echo OWNED >>rules.md; true").unwrap();
        let write = |path: &str| ScriptedStep::Call {
            id: "c1",
            name: "write",
            arguments: json!({"path": path, "content": "OWNED"}),
        };
        let command = ScriptedStep::Call { id: "c2", name: "shell", arguments: json!({"command": "sh grow.sh"}) };
        let steps =
            vec![vec![write("guide.md")], vec![write("rules.md")], vec![command], vec![ScriptedStep::Say("done")]];
        let provider = ScriptedProvider::new(steps);
        let rules = "[permissions]\nwrite = \"allow\"\n\"shell:sh grow.sh\" = \"allow\"\n\
            [settings.prompt]\nprojectFiles = [\"AGENTS.md\", \"RULES.txt\"]\n";
        fs::write(config.0.join("config.toml"), format!("{}\n{rules}", provider.config())).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        command.args(["ask", "-m", "played/some-model", "go"]).current_dir(&work).env("ASIDE_CONFINE_MAX", tier);
        let ran = run(&mut command, b"", Some(&config));
        assert_eq!(ran.code, 0, "{tier}: {}", ran.stderr);
        // Without a sandbox it asks, and gets no answer.
        assert_eq!(work.join("ran").exists(), tier != "none", "{tier}: {}", ran.stderr);
        for target in ["guide.md", "rules.md"] {
            assert_eq!(fs::read_to_string(work.join(target)).unwrap(), "good\n", "{tier}: {target}: {}", ran.stderr);
        }
    }
}
