//! A whole turn against the simulator, with an MCP server's tools only.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, Text};
use aside_core::dialect::Dialects;
use aside_core::message::{Message, Role};
use aside_core::settings::Settings;
use aside_core::turn::TurnEnd;
use aside_engine::tools::{NobodyToAsk, PermissionMode, PermissionRules, Permissions, Toolbox};
use aside_engine::{Endpoint, Front, Http, Session, Update};
use aside_mcp::McpServers;
use aside_sim::{ScriptOptions, Service, Simulator};
use tokio_util::sync::CancellationToken;

use crate::support::{ServerLog, environment, test_server_config, wait_until_gone};

/// Records the tool calls and their results.
#[derive(Default)]
struct ToolResultFront(Vec<String>);

impl Front for ToolResultFront {
    fn on_update(&mut self, update: Update<'_>) {
        if let Update::ToolEnded { call, result } = update {
            self.0.push(format!("{} {}: {}", call.name, result.is_error, result.content));
        }
    }
}

#[tokio::test]
async fn l2_a_model_runs_a_tool_loop_with_a_servers_tools() {
    let dialects = Arc::new(Dialects::builtin().unwrap());
    let service = Service::new((*dialects).clone(), ScriptOptions::default());
    let simulator = Simulator::bind(([127, 0, 0, 1], 0).into(), service).await.unwrap().spawn();
    let endpoint = Endpoint {
        provider: "sim".to_owned(),
        dialect: dialects.get("deepseek").unwrap().clone(),
        access: aside_core::dialect::Access::default(),
        model: "deepseek".to_owned(),
        base_url: format!("http://{}", simulator.address()),
        origin_url: None,
        key: None,
        headers: Vec::new(),
        extra_body: serde_json::Map::new(),
        account: None,
    };
    let log = ServerLog::new("session");
    let mut servers =
        McpServers::start(vec![test_server_config("play", "plain", &log)], environment(Duration::from_secs(20)));
    let mut session = Session::new(dialects, endpoint, Settings::new(), Http::default());
    let mut rules = PermissionRules::new();
    rules.trust_server("play");
    session.tools = Toolbox::with_permissions(Permissions::new(rules, PermissionMode::Ask));
    session.expect_tools(servers.tools());
    let mut front = ToolResultFront::default();
    let prompt = Block::Text(Text { text: "sim: tool-loop 2".to_owned(), ..Text::default() });
    let message = Message::new(Role::User, vec![prompt]);
    let end = session.turn(message, &mut front, &NobodyToAsk, &CancellationToken::new()).await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(front.0, ["play__list_things false: things of simulated"; 2]);
    let processes = log.processes();
    assert_eq!(processes.len(), 1);
    drop((session, servers));
    wait_until_gone(&processes).await;
}
