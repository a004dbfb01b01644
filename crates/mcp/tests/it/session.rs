//! A whole turn against the simulator, with nothing but a server's tools.

use std::sync::Arc;
use std::time::Duration;

use aside_core::block::{Block, Text};
use aside_core::dialect::Dialects;
use aside_core::message::{Message, Role};
use aside_core::settings::Settings;
use aside_core::turn::TurnEnd;
use aside_engine::tools::{Mode, NobodyToAsk, Permissions, Rules, Toolbox};
use aside_engine::{Endpoint, Front, Http, Session, Update};
use aside_mcp::Servers;
use aside_sim::{Options, Simulator, Stage};
use tokio_util::sync::CancellationToken;

use crate::support::{Diary, around, playing, wait_until_gone};

/// What tools were called and what came of it.
#[derive(Default)]
struct Heard(Vec<String>);

impl Front for Heard {
    fn hear(&mut self, update: Update<'_>) {
        if let Update::ToolEnded { call, result } = update {
            self.0.push(format!("{} {}: {}", call.name, result.is_error, result.content));
        }
    }
}

#[tokio::test]
async fn l2_a_model_goes_round_a_loop_with_a_servers_tools() {
    let dialects = Arc::new(Dialects::builtin().unwrap());
    let stage = Stage::new((*dialects).clone(), Options::default());
    let simulator = Simulator::bind(([127, 0, 0, 1], 0).into(), stage).await.unwrap().spawn();
    let endpoint = Endpoint {
        provider: "sim".to_owned(),
        dialect: dialects.get("deepseek").unwrap().clone(),
        access: aside_core::dialect::Access::default(),
        model: "deepseek".to_owned(),
        base_url: format!("http://{}", simulator.address()),
        place: None,
        key: None,
        headers: Vec::new(),
        extra_body: serde_json::Map::new(),
        account: None,
    };
    let diary = Diary::new("session");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(Duration::from_secs(20)));
    let mut session = Session::new(dialects, endpoint, Settings::new(), Http::default());
    let mut rules = Rules::new();
    rules.trust_server("play");
    session.tools = Toolbox::with(Permissions::new(rules, Mode::Ask));
    session.expect_tools(servers.tools());
    let mut heard = Heard::default();
    let prompt = Block::Text(Text { text: "sim: tool-loop 2".to_owned(), ..Text::default() });
    let message = Message::new(Role::User, vec![prompt]);
    let end = session.turn(message, &mut heard, &NobodyToAsk, &CancellationToken::new()).await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(heard.0, ["play__list_things false: things of simulated"; 2]);
    let processes = diary.processes();
    assert_eq!(processes.len(), 1);
    drop((session, servers));
    wait_until_gone(&processes).await;
}
