//! The system's keyring, through its command-line program: `secret-tool` for the
//! Secret Service, `security` on macOS. A keyring library would add some forty
//! crates.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::error::HintedError;

/// The service name of our keyring entries.
const SERVICE: &str = "aside";

/// The command-line program of a keyring.
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

    /// The installed one.
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

/// The provider's key in the keyring. None if there is no keyring.
pub fn find(provider: &str) -> Option<String> {
    let program = Program::here()?;
    let found = match program {
        Program::SecretTool => program.run(&["lookup", "service", SERVICE, "provider", provider], None),
        Program::Security => program.run(&["find-generic-password", "-s", SERVICE, "-a", provider, "-w"], None),
    };
    let found = found.ok().filter(|output| output.status.success())?;
    let key = String::from_utf8(found.stdout).ok()?;
    (!key.trim().is_empty()).then(|| key.trim().to_owned())
}

/// Stores a key in the keyring.
pub fn set(provider: &str, key: &str) -> Result<(), HintedError> {
    let program = installed_program()?;
    let label = format!("{SERVICE}: {provider}");
    let done = match program {
        Program::SecretTool => {
            let arguments = ["store", "--label", &label, "service", SERVICE, "provider", provider];
            program.run(&arguments, Some(key))
        }
        // Via stdin, where the program asks twice: other processes could see an argument.
        Program::Security => {
            let arguments = ["add-generic-password", "-U", "-s", SERVICE, "-a", provider, "-w"];
            program.run(&arguments, Some(&format!("{key}\n{key}\n")))
        }
    };
    check(program, done)
}

/// Removes a key from the keyring.
pub fn unset(provider: &str) -> Result<(), HintedError> {
    let program = installed_program()?;
    let done = match program {
        Program::SecretTool => program.run(&["clear", "service", SERVICE, "provider", provider], None),
        Program::Security => program.run(&["delete-generic-password", "-s", SERVICE, "-a", provider], None),
    };
    check(program, done)
}

fn installed_program() -> Result<Program, HintedError> {
    Program::here().ok_or_else(|| {
        let hint = "install secret-tool (libsecret-tools) and run a keyring, export the provider's variable, or give it an api_key_cmd";
        HintedError::new("there is no keyring on this machine").hint(hint)
    })
}

fn check(program: Program, done: std::io::Result<Output>) -> Result<(), HintedError> {
    let failed = |why: String| {
        HintedError::new(format!("the keyring refused ({}): {why}", program.name()))
            .hint("is it unlocked? on a machine without a desktop, export the provider's variable instead")
    };
    let output = done.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(failed(stderr.lines().next().unwrap_or("it did not say why").to_owned()))
}
