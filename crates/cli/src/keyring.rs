//! The system's keyring, through the program that every keyring comes with:
//! `secret-tool` of the Secret Service, `security` of macOS. Linking against
//! them would cost some forty crates for one short question.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::report::Report;

/// What our secrets are filed under.
const SERVICE: &str = "aside";

/// The program that speaks to the keyring here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    SecretTool,
    Security,
}

impl Program {
    const ALL: [Program; 2] = [Program::SecretTool, Program::Security];

    fn name(self) -> &'static str {
        match self {
            Program::SecretTool => "secret-tool",
            Program::Security => "security",
        }
    }

    /// The one that is installed.
    fn here() -> Option<Program> {
        let folders = std::env::var_os("PATH")?;
        Program::ALL
            .into_iter()
            .find(|program| std::env::split_paths(&folders).any(|folder| folder.join(program.name()).is_file()))
    }

    fn run(self, arguments: &[&str], input: Option<&str>) -> std::io::Result<Output> {
        let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
        let mut child = Command::new(self.name())
            .args(arguments)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    }
}

/// The key of a provider, where a keyring has one. A machine without a keyring
/// has no key in it; that is no failure.
pub(crate) fn find(provider: &str) -> Option<String> {
    let program = Program::here()?;
    let found = match program {
        Program::SecretTool => program.run(&["lookup", "service", SERVICE, "provider", provider], None),
        Program::Security => program.run(&["find-generic-password", "-s", SERVICE, "-a", provider, "-w"], None),
    };
    let found = found.ok().filter(|output| output.status.success())?;
    let key = String::from_utf8(found.stdout).ok()?;
    (!key.trim().is_empty()).then(|| key.trim().to_owned())
}

/// Puts a key into the keyring.
pub(crate) fn set(provider: &str, key: &str) -> Result<(), Report> {
    let program = needed()?;
    let label = format!("{SERVICE}: {provider}");
    let done = match program {
        Program::SecretTool => {
            let arguments = ["store", "--label", &label, "service", SERVICE, "provider", provider];
            program.run(&arguments, Some(key))
        }
        // The key is asked for twice, on its input: an argument could be seen by others.
        Program::Security => {
            let arguments = ["add-generic-password", "-U", "-s", SERVICE, "-a", provider, "-w"];
            program.run(&arguments, Some(&format!("{key}\n{key}\n")))
        }
    };
    check(program, done)
}

/// Takes a key out of the keyring.
pub(crate) fn unset(provider: &str) -> Result<(), Report> {
    let program = needed()?;
    let done = match program {
        Program::SecretTool => program.run(&["clear", "service", SERVICE, "provider", provider], None),
        Program::Security => program.run(&["delete-generic-password", "-s", SERVICE, "-a", provider], None),
    };
    check(program, done)
}

fn needed() -> Result<Program, Report> {
    Program::here().ok_or_else(|| {
        let hint = "install secret-tool (libsecret-tools) and run a keyring, export the provider's variable, or give it an api_key_cmd";
        Report::new("there is no keyring on this machine").hint(hint)
    })
}

fn check(program: Program, done: std::io::Result<Output>) -> Result<(), Report> {
    let failed = |why: String| {
        Report::new(format!("the keyring refused ({}): {why}", program.name()))
            .hint("is it unlocked? on a machine without a desktop, export the provider's variable instead")
    };
    let output = done.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or("it did not say why").to_owned()))
}
