//! `shell`: runs a command line in the working directory, confined.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aside_confine::{Approval, CommandInput, ConfineSetting, RequestedAccess};
use aside_core::conversation::ToolSpec;
use aside_core::counted::counted;
use aside_core::permission_question::{Network, Tier};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::definition::ToolDefinition;
use super::live_output::{CollectedOutput, LiveOutput};
use super::permissions::PermissionRules;
use super::process::{self, CommandRun, RunEnd};
use super::working_dir::WorkingDir;
use super::{
    AnswerScope, CallTarget, Confinement, PlannedCall, PriorApproval, Risk, TextOutcome, Tool, ToolOutcome, ToolOutput,
};

const DEFAULT_SECONDS: u64 = 120;
const MAX_SECONDS: u64 = 600;
pub(super) const MAX_OUTPUT: usize = 32 * 1024;

/// An absolute path, so that no folder in `PATH` can replace it.
pub(super) const SHELL: &str = "/bin/sh";

/// Keeps programs from waiting for interactive input.
pub(super) const NON_INTERACTIVE_VARIABLES: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("TERM", "dumb")];

const DEFINITION: ToolDefinition = ToolDefinition {
    name: "shell",
    description: "Runs a command line with sh in the working directory, without input. Returns stdout and stderr together; long output is cut in the middle. Background processes are killed when the command ends. Commands usually run in a sandbox: they can write only to the working directory, temporary folders and caches, and have no network. `network` and `unconfined` ask the user to lift that for one command.",
    parameters: r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer","minimum":1,"description":"seconds, 120 if not given, at most 600"},"network":{"type":"boolean","description":"true if the command needs network access; the user is asked"},"unconfined":{"type":"boolean","description":"true only if the command failed in the sandbox and needs access outside the sandbox; the user is always asked"}},"required":["command"]}"#,
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

pub(crate) struct ShellTool {
    work: WorkingDir,
    rules: Arc<PermissionRules>,
    notices: Arc<PendingNotices>,
}

/// Notices for the user that are not part of the tool result.
#[derive(Default)]
struct PendingNotices {
    waiting: Mutex<Vec<String>>,
    /// The warning about unconfined commands is shown once per session.
    warned_unconfined: AtomicBool,
}

impl PendingNotices {
    fn add(&self, notice: String) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }
}

struct ShellCall {
    work: WorkingDir,
    notices: Arc<PendingNotices>,
    command: String,
    seconds: u64,
    requested: RequestedAccess,
    confinement: Confinement,
    prior_approval: PriorApproval,
    approval: Approval,
    live: Option<LiveOutput>,
}

impl ShellTool {
    pub(crate) fn new(work: WorkingDir, rules: Arc<PermissionRules>) -> ShellTool {
        ShellTool { work, rules, notices: Arc::default() }
    }

    /// Which access the call requests. A rule can also allow network access.
    fn requested(&self, command: &str, network: bool, unconfined: bool) -> RequestedAccess {
        let is_opened = || self.rules.opens_network(DEFINITION.name, command, Risk::Runs);
        match (unconfined, network || is_opened()) {
            (true, _) => RequestedAccess::Unconfined,
            (false, true) => RequestedAccess::Network,
            (false, false) => RequestedAccess::Standard,
        }
    }

    /// Whether rules and earlier answers are enough. Only confined commands may run without a question,
    /// unless the user turned confinement off.
    fn prior_approval(&self, command: &str, requested: RequestedAccess, tier: Tier) -> PriorApproval {
        let confine = self.work.confine();
        let is_off = confine.setting() == ConfineSetting::Off;
        match (requested, tier) {
            (RequestedAccess::Unconfined, _) if is_off || confine.best_tier() == Tier::None => {
                self.prior_approval(command, RequestedAccess::Standard, tier)
            }
            (RequestedAccess::Unconfined, _) => PriorApproval::AlwaysAsks,
            (RequestedAccess::Standard | RequestedAccess::Network, Tier::None) if is_off => PriorApproval::Suffices,
            (RequestedAccess::Standard | RequestedAccess::Network, Tier::None) => PriorApproval::Asks,
            (RequestedAccess::Standard, Tier::Kernel | Tier::Strong | Tier::Seatbelt) => PriorApproval::Suffices,
            (RequestedAccess::Network, Tier::Kernel | Tier::Strong | Tier::Seatbelt) => {
                let is_opened = self.rules.opens_network(DEFINITION.name, command, Risk::Runs);
                if is_opened && !confine.network_reopens_sockets() {
                    PriorApproval::Suffices
                } else {
                    PriorApproval::Asks
                }
            }
        }
    }

    /// Warns once that the commands of this session are not confined.
    fn warn_unconfined_once(&self, tier: Tier) {
        let confine = self.work.confine();
        if tier != Tier::None || self.notices.warned_unconfined.swap(true, Ordering::Relaxed) {
            return;
        }
        self.notices.add(match confine.setting() {
            ConfineSetting::Off => "commands run unconfined: tools.confine is off".to_owned(),
            ConfineSetting::Auto | ConfineSetting::Require | ConfineSetting::Strong => {
                let why = confine.support().missing.join("; ");
                format!("commands run unconfined, so aside asks before each one: {why}")
            }
        });
    }
}

impl Tool for ShellTool {
    fn spec(&self) -> ToolSpec {
        DEFINITION.spec()
    }

    fn notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn plan(&self, arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        let Arguments { command, timeout, network, unconfined } = DEFINITION.parse_arguments(arguments)?;
        let command = command.trim().to_owned();
        if command.is_empty() || command.contains('\0') {
            return Err("the command is empty or has a NUL in it".to_owned());
        }
        let seconds = timeout.unwrap_or(DEFAULT_SECONDS).clamp(1, MAX_SECONDS);
        let requested = self.requested(&command, network, unconfined);
        let tier = self.work.confine().tier().map_err(|refused| refused.to_string())?;
        let confinement = self.work.confine().confinement(requested).map_err(|refused| refused.to_string())?;
        self.warn_unconfined_once(tier);
        Ok(Box::new(ShellCall {
            work: self.work.clone(),
            notices: Arc::clone(&self.notices),
            prior_approval: self.prior_approval(&command, requested, tier),
            command,
            seconds,
            requested,
            confinement,
            approval: Approval::Automatic,
            live: None,
        }))
    }
}

impl PlannedCall for ShellCall {
    fn target(&self) -> CallTarget {
        let target = CallTarget::new(self.command.clone(), Risk::Runs, AnswerScope::Subject);
        CallTarget { prior_approval: self.prior_approval, ..target }
    }

    fn confinement(&self) -> Option<Confinement> {
        Some(self.confinement.clone())
    }

    fn set_approved(&mut self) {
        self.approval = Approval::ByUser;
    }

    fn set_live_output(&mut self, live: LiveOutput) {
        self.live = Some(live);
    }

    fn preview(&mut self) -> BoxFuture<'_, Result<Option<String>, String>> {
        Box::pin(async { Ok(Some(self.command.clone())) })
    }

    fn run(mut self: Box<Self>, cancel: CancellationToken) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(async move {
            let output = CollectedOutput::new(MAX_OUTPUT, self.live.take());
            let confine = self.work.confine();
            let arguments = ["-c", self.command.as_str()];
            confine.tier().map_err(|refused| refused.to_string())?;
            // Concurrent commands would mistake each other's changes to protected paths for the initial
            // state.
            let _one_at_a_time = tokio::select! {
                alone = self.work.lock(self.work.root()) => alone,
                () = cancel.cancelled() => return Err("[ended by the user before it began]".to_owned()),
            };
            let limit = Duration::from_secs(self.seconds);
            // If no helper waits yet, it starts while the launch is created.
            let not_run = |error: io::Error| format!("the command could not be run: {error}");
            let helper = self.work.take_helper().map_err(not_run)?;
            let launch = confine
                .launch(SHELL, &arguments, self.requested, self.approval, CommandInput::Empty)
                .map_err(|refused| refused.to_string())?;
            let ran = process::run(helper, &launch, limit, output, &cancel).await.map_err(not_run)?;
            // Most models run another command soon.
            self.work.start_next_helper();
            self.tool_outcome(&ran).map(ToolOutput::from)
        })
    }
}

impl ShellCall {
    fn tool_outcome(&self, ran: &CommandRun) -> TextOutcome {
        let mut text = ran.output.text();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        let refused = self.sandbox_hint(ran, &text);
        for line in self.remarks(ran).into_iter().chain(refused) {
            text.push_str(&format!("[{line}]\n"));
        }
        outcome_text(ran, text, self.seconds)
    }

    /// Notes on the command, shown after its output. Those that matter to the user also become notices.
    fn remarks(&self, ran: &CommandRun) -> Vec<String> {
        let mut remarks = Vec::new();
        if ran.killed_background {
            remarks.push("background processes were killed".to_owned());
        }
        let mut warnings = Vec::new();
        if !ran.survivors.is_empty() {
            let pids: Vec<String> = ran.survivors.iter().map(ToString::to_string).collect();
            warnings.push(format!("still running, because it could not be killed: {}", pids.join(", ")));
        }
        let restored = ran
            .restored
            .iter()
            .map(|path| format!("protected, and restored, because it changed while this command ran: {path}"));
        let changed = ran.changed.iter().map(|path| format!("protected, and changed by this command: {path}"));
        warnings.extend(restored.chain(changed).chain(ran.problems.iter().cloned()));
        for line in &warnings {
            self.notices.add(format!("shell: {line}"));
        }
        remarks.extend(warnings);
        remarks
    }

    /// Guesses from the output of a failed command whether the sandbox caused the failure.
    fn sandbox_hint(&self, ran: &CommandRun, text: &str) -> Option<String> {
        let tier = self.confinement.tier;
        if tier == Tier::None || !matches!(ran.end, RunEnd::Exited(code) if code != 0) {
            return None;
        }
        let lower = text.to_lowercase();
        let mentions = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let network = self.confinement.network == Network::Off && mentions(&NETWORK_ERRORS);
        let files = mentions(&FILE_ERRORS);
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

/// The output of a command, and how it ended.
pub(super) fn outcome_text(ran: &CommandRun, mut text: String, seconds: u64) -> TextOutcome {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match &ran.end {
        RunEnd::Exited(0) => Ok(format!("{text}[exit code 0]")),
        RunEnd::Exited(code) => Err(format!("{text}[exit code {code}]")),
        RunEnd::Signalled(signal) => Err(format!("{text}[ended by signal {signal}]")),
        RunEnd::TimedOut => Err(format!("{text}[timed out after {}]", counted(seconds, "second"))),
        RunEnd::Cancelled => Err(format!("{text}[ended by the user]")),
        RunEnd::NotStarted(why) => Err(format!("{text}[not run: {why}]")),
        RunEnd::SupervisorLost => Err(format!("{text}[the supervisor process died; the command was killed]")),
    }
}

const FILE_ERRORS: [&str; 6] =
    ["permission denied", "operation not permitted", "read-only file system", "eperm", "eacces", "erofs"];
const NETWORK_ERRORS: [&str; 8] = [
    "network is unreachable",
    "could not resolve",
    "name resolution",
    "name or service not known",
    "getaddrinfo",
    "enotfound",
    "failed to connect",
    "operation not permitted",
];
