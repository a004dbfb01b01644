//! Servers of the tests, and a toolbox that holds what they offer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aside_confine::{Confine, Helper, Limit, Places, Want, Wish};
use aside_core::block::{Arguments, CallId, ToolCall, ToolResult};
use aside_core::question::Tier;
use aside_engine::tools::{Asker, Mode, NobodyToAsk, Permissions, Permit, Question, Rules, Toolbox};
use aside_mcp::{Server, Servers, Surroundings, Way};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::plays::{DIARY, PLAYS};

/// What a server of the tests wrote down.
pub(crate) struct Diary(PathBuf);

impl Diary {
    pub(crate) fn new(name: &str) -> Diary {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.txt", std::process::id()));
        drop(std::fs::remove_file(&path));
        Diary(path)
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

    /// Every process the server told of.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let numbers = self.lines().into_iter().filter_map(|line| line.split(' ').nth(1)?.parse().ok());
        numbers.collect()
    }
}

impl Drop for Diary {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Whether it runs. One that is dead and not yet waited for does not.
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

pub(crate) fn playing(name: &str, part: &str, diary: &Diary) -> Server {
    let us = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
    let arguments = ["--exact", "server", "--nocapture"].map(str::to_owned).to_vec();
    let variables = [(PLAYS, part), (DIARY, diary.0.to_str().unwrap()), ("GIVEN", "yes")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Server { name: name.to_owned(), way: Way::Command { program: us, arguments, variables, want: Want::Usual } }
}

pub(crate) fn around(patience: Duration) -> Surroundings {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    // Where the diaries are.
    let mut places = Places::here(folder.clone());
    places.directories.push(env!("CARGO_TARGET_TMPDIR").into());
    let confine = Confine::new(Helper::at(env!("CARGO_BIN_EXE_aside-mcp-helper")), Wish::Auto, places);
    // In the strong tier processes have other numbers inside.
    let confine = confine.limited(Limit { tier: Tier::Kernel, ..Limit::NONE });
    Surroundings { patience, ..Surroundings::new(folder, Arc::new(confine)) }
}

/// The tools of servers that may do anything, and what was said of the others.
pub(crate) async fn tools(servers: &mut Servers, mode: Mode) -> (Toolbox, Vec<String>) {
    let mut toolbox = Toolbox::with(Permissions::new(Rules::new(), mode));
    let arrived = servers.tools().await;
    for tool in arrived.tools {
        toolbox.add(tool).unwrap();
    }
    (toolbox, arrived.notes)
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
    ToolCall {
        id: CallId::Given("c1".to_owned()),
        name: tool.to_owned(),
        arguments: Arguments::parse(arguments.to_string()),
        seal: None,
        native: None,
    }
}

/// Gives one answer to everything, and remembers the last question.
pub(crate) struct Answering {
    permit: Permit,
    question: Mutex<Option<Question>>,
}

impl Answering {
    pub(crate) fn new(permit: Permit) -> Answering {
        Answering { permit, question: Mutex::default() }
    }

    pub(crate) fn question(&self) -> Question {
        self.question.lock().unwrap().take().unwrap()
    }
}

impl Asker for Answering {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        *self.question.lock().unwrap() = Some(question);
        Box::pin(async { self.permit.clone() })
    }
}
