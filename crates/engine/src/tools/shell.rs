//! `shell`: a command line, in the working directory.

use std::process::ExitStatus;
use std::time::Duration;

use aside_core::conversation::Tool as Spec;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::form::Form;
use super::process::{self, End, Ran};
use super::workplace::Workplace;
use super::{Job, Likeness, Outcome, Risk, Target, Tool};

const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 600;
const MOST_OUTPUT: usize = 32 * 1024;

/// So that nothing waits for a key that nobody can press.
const QUIET: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb")];

const FORM: Form = Form {
    name: "shell",
    about: "Runs a command line with sh in the working directory, without input. Output and errors come together, long output cut in the middle. What it leaves in the background is ended with it.",
    parameters: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1,"description":"seconds, 120 if not given, at most 600"}},"required":["command"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
}

pub(crate) struct Shell(pub(crate) Workplace);

struct Running {
    work: Workplace,
    command: String,
    seconds: u64,
}

impl Tool for Shell {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { command, timeout } = FORM.read(arguments)?;
        let command = command.trim().to_owned();
        if command.is_empty() || command.contains('\0') {
            return Err("the command is empty or has a NUL in it".to_owned());
        }
        let seconds = timeout.unwrap_or(USUAL_SECONDS).clamp(1, MOST_SECONDS);
        Ok(Box::new(Running { work: self.0.clone(), command, seconds }))
    }
}

impl Job for Running {
    fn target(&self) -> Target {
        Target::new(self.command.clone(), Risk::Runs, Likeness::Subject)
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async { Ok(Some(self.command.clone())) })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let mut command = Command::new("sh");
            command.arg("-c").arg(&self.command).current_dir(self.work.root()).envs(QUIET);
            for variable in self.work.hidden_variables() {
                command.env_remove(variable);
            }
            let limit = Duration::from_secs(self.seconds);
            match process::run(command, limit, MOST_OUTPUT, &cancel).await {
                Ok(ran) => self.said(&ran),
                Err(error) => Err(format!("the command could not be run: {error}")),
            }
        })
    }
}

impl Running {
    fn said(&self, ran: &Ran) -> Outcome {
        let mut text = ran.output.text();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if ran.ended_others {
            text.push_str("[what it left in the background was ended]\n");
        }
        match &ran.end {
            End::Exited(status) => {
                text.push_str(&format!("[{}]", ending(*status)));
                if status.success() { Ok(text) } else { Err(text) }
            }
            End::TimedOut => Err(format!("{text}[ended after {} seconds, its limit]", self.seconds)),
            End::Cancelled => Err(format!("{text}[ended by the user]")),
        }
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
