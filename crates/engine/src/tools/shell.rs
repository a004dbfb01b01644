//! `shell`: a command line, in the working directory, confined.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aside_confine::{Approval, Input, Want, Wish};
use aside_core::conversation::Tool as Spec;
use aside_core::question::{Network, Tier};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::form::Form;
use super::permissions::Rules;
use super::process::{self, End, Ran};
use super::workplace::Workplace;
use super::{Confinement, Job, Likeness, Outcome, Risk, Standing, Target, Tool};

const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 600;
const MOST_OUTPUT: usize = 32 * 1024;

/// Where every system has it: no folder of `PATH` comes before it.
const SHELL: &str = "/bin/sh";

/// So that nothing waits for a key that nobody can press.
const QUIET: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb")];

const FORM: Form = Form {
    name: "shell",
    about: "Runs a command line with sh in the working directory, without input. Output and errors come together, long output cut in the middle. What it leaves in the background is ended with it. It is usually confined: it writes only to the working directory, temporary folders and caches, and has no network. `network` and `unconfined` ask the user to lift that for one command.",
    parameters: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1,"description":"seconds, 120 if not given, at most 600"},"network":{"type":"boolean","description":"true if it cannot work without network; the user is asked"},"unconfined":{"type":"boolean","description":"true only after it failed confined and has to reach further; the user is always asked"}},"required":["command"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<u64>,
    #[serde(default)]
    network: bool,
    #[serde(default)]
    unconfined: bool,
}

pub(crate) struct Shell {
    work: Workplace,
    rules: Arc<Rules>,
    notices: Arc<Notices>,
}

/// What the person is told beside the answer to the model.
#[derive(Default)]
struct Notices {
    waiting: Mutex<Vec<String>>,
    /// That commands run unconfined is said once a session.
    said_unconfined: AtomicBool,
}

impl Notices {
    fn add(&self, notice: String) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }
}

struct Running {
    work: Workplace,
    notices: Arc<Notices>,
    command: String,
    seconds: u64,
    want: Want,
    confinement: Confinement,
    standing: Standing,
    approval: Approval,
}

impl Shell {
    pub(crate) fn new(work: Workplace, rules: Arc<Rules>) -> Shell {
        Shell { work, rules, notices: Arc::default() }
    }

    /// What the call wants of its confinement. A rule can open the network for it.
    fn want(&self, command: &str, network: bool, unconfined: bool) -> Want {
        let is_opened = || self.rules.opens_network(FORM.name, command, Risk::Runs);
        match (unconfined, network || is_opened()) {
            (true, _) => Want::Unconfined,
            (false, true) => Want::Network,
            (false, false) => Want::Usual,
        }
    }

    /// Whether rules and earlier answers are enough. Only what is confined runs
    /// without a question, unless the person switched that off.
    fn standing(&self, command: &str, want: Want, tier: Tier) -> Standing {
        let confine = self.work.confine();
        let is_off = confine.wish() == Wish::Off;
        match (want, tier) {
            (Want::Unconfined, _) if is_off || confine.best() == Tier::None => {
                self.standing(command, Want::Usual, tier)
            }
            (Want::Unconfined, _) => Standing::AlwaysAsks,
            (Want::Usual | Want::Network, Tier::None) if is_off => Standing::Counts,
            (Want::Usual | Want::Network, Tier::None) => Standing::Asks,
            (Want::Usual, Tier::Kernel | Tier::Strong | Tier::Seatbelt) => Standing::Counts,
            (Want::Network, Tier::Kernel | Tier::Strong | Tier::Seatbelt) => {
                let is_opened = self.rules.opens_network(FORM.name, command, Risk::Runs);
                if is_opened && !confine.network_reopens_sockets() { Standing::Counts } else { Standing::Asks }
            }
        }
    }

    /// Said once: no command of this session is confined.
    fn say_unconfined(&self, tier: Tier) {
        let confine = self.work.confine();
        if tier != Tier::None || self.notices.said_unconfined.swap(true, Ordering::Relaxed) {
            return;
        }
        self.notices.add(match confine.wish() {
            Wish::Off => "commands run unconfined: tools.confine is off".to_owned(),
            Wish::Auto | Wish::Require | Wish::Strong => {
                let why = confine.found().missing.join("; ");
                format!("commands run unconfined and are always asked about: {why}")
            }
        });
    }
}

impl Tool for Shell {
    fn spec(&self) -> Spec {
        FORM.spec()
    }

    fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn Job>, String> {
        let Arguments { command, timeout, network, unconfined } = FORM.read(arguments)?;
        let command = command.trim().to_owned();
        if command.is_empty() || command.contains('\0') {
            return Err("the command is empty or has a NUL in it".to_owned());
        }
        let seconds = timeout.unwrap_or(USUAL_SECONDS).clamp(1, MOST_SECONDS);
        let want = self.want(&command, network, unconfined);
        let tier = self.work.confine().tier().map_err(|refused| refused.to_string())?;
        let confinement = self.work.confine().confinement(want).map_err(|refused| refused.to_string())?;
        self.say_unconfined(tier);
        Ok(Box::new(Running {
            work: self.work.clone(),
            notices: Arc::clone(&self.notices),
            standing: self.standing(&command, want, tier),
            command,
            seconds,
            want,
            confinement,
            approval: Approval::Standing,
        }))
    }
}

impl Job for Running {
    fn target(&self) -> Target {
        let target = Target::new(self.command.clone(), Risk::Runs, Likeness::Subject);
        Target { standing: self.standing, ..target }
    }

    fn confinement(&self) -> Option<Confinement> {
        Some(self.confinement.clone())
    }

    fn approved(&mut self) {
        self.approval = Approval::ByHand;
    }

    fn look(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async { Ok(Some(self.command.clone())) })
    }

    fn run(self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let confine = self.work.confine();
            let arguments = ["-c", self.command.as_str()];
            let launch = confine
                .launch(SHELL, &arguments, self.want, self.approval, Input::Nothing)
                .map_err(|refused| refused.to_string())?;
            let mut helper = confine.helper().command();
            helper.current_dir(self.work.root()).envs(QUIET);
            for variable in self.work.hidden_variables() {
                helper.env_remove(variable);
            }
            // Side by side, one would take the other's changes for what was there before.
            let _one_at_a_time = tokio::select! {
                alone = self.work.lock(self.work.root()) => alone,
                () = cancel.cancelled() => return Err("[ended by the user before it began]".to_owned()),
            };
            let limit = Duration::from_secs(self.seconds);
            match process::run(helper, &launch, limit, MOST_OUTPUT, &cancel).await {
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
        let refused = self.may_be_the_sandbox(ran, &text);
        for line in self.remarks(ran).into_iter().chain(refused) {
            text.push_str(&format!("[{line}]\n"));
        }
        match &ran.end {
            End::Exited(0) => Ok(format!("{text}[exit code 0]")),
            End::Exited(code) => Err(format!("{text}[exit code {code}]")),
            End::Signalled(signal) => Err(format!("{text}[ended by signal {signal}]")),
            End::TimedOut => Err(format!("{text}[ended after {} seconds, its limit]", self.seconds)),
            End::Cancelled => Err(format!("{text}[ended by the user]")),
            End::NotStarted(why) => Err(format!("{text}[not run: {why}]")),
            End::HelperLost => Err(format!("{text}[the process that watches over it was killed, and it was ended]")),
        }
    }

    /// What is said of a command beside its output. What the person should know is
    /// told to them too.
    fn remarks(&self, ran: &Ran) -> Vec<String> {
        let mut remarks = Vec::new();
        if ran.ended_others {
            remarks.push("what it left in the background was ended".to_owned());
        }
        let mut told = Vec::new();
        if !ran.left.is_empty() {
            let pids: Vec<String> = ran.left.iter().map(ToString::to_string).collect();
            told.push(format!("still running, because it could not be ended: {}", pids.join(", ")));
        }
        let restored =
            ran.restored.iter().map(|path| format!("protected, and restored after this command changed it: {path}"));
        let changed = ran.changed.iter().map(|path| format!("protected, and changed by this command: {path}"));
        told.extend(restored.chain(changed).chain(ran.troubles.iter().cloned()));
        for line in &told {
            self.notices.add(format!("shell: {line}"));
        }
        remarks.extend(told);
        remarks
    }

    /// A command that was refused something says so in its own words, if it does.
    fn may_be_the_sandbox(&self, ran: &Ran, text: &str) -> Option<String> {
        let tier = self.confinement.tier;
        if tier == Tier::None || !matches!(ran.end, End::Exited(code) if code != 0) {
            return None;
        }
        let lower = text.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let network = self.confinement.network == Network::Off && says(&NO_NETWORK);
        let files = says(&NO_FILE);
        let what = match (files, network) {
            (false, false) => return None,
            (true, false) => "writing outside the working directory, and some reading",
            (false, true) => "network",
            (true, true) => "network, and writing outside the working directory",
        };
        Some(format!(
            "may be the sandbox: {tier} forbids {what}; `network` or `unconfined` asks the user to allow it once"
        ))
    }
}

const NO_FILE: [&str; 6] =
    ["permission denied", "operation not permitted", "read-only file system", "eperm", "eacces", "erofs"];
const NO_NETWORK: [&str; 8] = [
    "network is unreachable",
    "could not resolve",
    "name resolution",
    "name or service not known",
    "getaddrinfo",
    "enotfound",
    "failed to connect",
    "operation not permitted",
];
