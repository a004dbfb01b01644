//! Test servers, and a toolbox with their tools.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aside_confine::{Confine, ConfineSetting, Helper, PolicyPaths, RequestedAccess, TierLimit};
use aside_core::block::{Arguments, CallId, ToolCall, ToolResult};
use aside_core::permission_question::Tier;
use aside_engine::tools::{
    Asker, NobodyToAsk, PermissionAnswer, PermissionMode, PermissionQuestion, PermissionRules, Permissions, Toolbox,
};
use aside_mcp::{McpServers, McpTransport, ServerConfig, ServerEnvironment};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::test_server::{BEHAVIOUR_VARIABLE, LOG_VARIABLE};

/// What a test server logged.
pub(crate) struct ServerLog(PathBuf);

impl ServerLog {
    pub(crate) fn new(name: &str) -> ServerLog {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.txt", std::process::id()));
        drop(std::fs::remove_file(&path));
        ServerLog(path)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.0).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) async fn wait_for(&self, line: &str) {
        let begun = Instant::now();
        while !self.lines().iter().any(|known| known == line) {
            assert!(begun.elapsed() < Duration::from_secs(20), "no `{line}` in {:?}", self.lines());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The ids of all processes that the server logged.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let numbers = self.lines().into_iter().filter_map(|line| line.split(' ').nth(1)?.parse().ok());
        numbers.collect()
    }
}

impl Drop for ServerLog {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Whether a process runs. A zombie does not count.
pub(crate) fn is_alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

pub(crate) async fn wait_until_gone(processes: &[u32]) {
    let begun = Instant::now();
    while processes.iter().any(|process| is_alive(*process)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "something of {processes:?} still runs");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn test_server_config(name: &str, behaviour: &str, log: &ServerLog) -> ServerConfig {
    let us = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let arguments = ["--exact", "server", "--nocapture"].map(str::to_owned).to_vec();
    let variables = [(BEHAVIOUR_VARIABLE, behaviour), (LOG_VARIABLE, log.0.to_str().unwrap()), ("GIVEN", "yes")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    ServerConfig {
        name: name.to_owned(),
        transport: McpTransport::Command { program: us, arguments, variables, access: RequestedAccess::Standard },
    }
}

pub(crate) fn environment(startup_timeout: Duration) -> ServerEnvironment {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    // The folder of the logs.
    let mut places = PolicyPaths::from_environment(folder.clone());
    places.directories.push(env!("CARGO_TARGET_TMPDIR").into());
    let confine = Confine::new(Helper::at(env!("CARGO_BIN_EXE_aside-mcp-helper")), ConfineSetting::Auto, places);
    // In the strong tier, processes have other ids inside.
    let confine = confine.with_limit(TierLimit { tier: Tier::Kernel, ..TierLimit::NONE });
    ServerEnvironment { startup_timeout, ..ServerEnvironment::new(folder, Arc::new(confine)) }
}

/// The tools of the servers, and the notes about servers that failed.
pub(crate) async fn tools(servers: &mut McpServers, mode: PermissionMode) -> (Toolbox, Vec<String>) {
    let mut toolbox = Toolbox::with_permissions(Permissions::new(PermissionRules::new(), mode));
    let loaded = servers.tools().await;
    for tool in loaded.tools {
        toolbox.add(tool).unwrap();
    }
    (toolbox, loaded.notes)
}

pub(crate) async fn call(tools: &Toolbox, tool: &str, arguments: Value) -> ToolResult {
    call_until(tools, tool, arguments, &CancellationToken::new()).await
}

pub(crate) async fn call_asking(tools: &Toolbox, tool: &str, arguments: Value, asker: &dyn Asker) -> ToolResult {
    tools.run(&tool_call(tool, &arguments), asker, &CancellationToken::new()).await
}

pub(crate) async fn call_until(
    tools: &Toolbox,
    tool: &str,
    arguments: Value,
    cancel: &CancellationToken,
) -> ToolResult {
    tools.run(&tool_call(tool, &arguments), &NobodyToAsk, cancel).await
}

fn tool_call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall::new(CallId::Given("c1".to_owned()), tool, Arguments::parse(arguments.to_string()))
}

/// Gives the same answer to every question, and records the last one.
pub(crate) struct FixedAsker {
    permit: PermissionAnswer,
    question: Mutex<Option<PermissionQuestion>>,
}

impl FixedAsker {
    pub(crate) fn new(permit: PermissionAnswer) -> FixedAsker {
        FixedAsker { permit, question: Mutex::default() }
    }

    pub(crate) fn question(&self) -> PermissionQuestion {
        self.question.lock().unwrap().take().unwrap()
    }
}

impl Asker for FixedAsker {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        *self.question.lock().unwrap() = Some(question);
        Box::pin(async { self.permit.clone() })
    }
}
