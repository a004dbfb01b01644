//! MCP servers as processes.

use std::time::{Duration, Instant};

use aside_confine::RequestedAccess;
use aside_core::block::{Arguments, Block, CallId, Origin, ToolCall};
use aside_core::dialect::Dialects;
use aside_core::message::{Message, Role};
use aside_core::permission_question::Tier;
use aside_core::settings::Settings;
use aside_core::wire::{Request, encode};
use aside_engine::tools::{PermissionAnswer, PermissionMode, PermissionRules, Permissions, Toolbox};
use aside_mcp::{McpServers, McpTransport, ServerConfig, ServerEnvironment, check_servers};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::folder_outside::folder_outside;
use crate::support::{
    FixedAsker, ServerLog, call, call_asking, call_until, environment, is_alive, test_server_config, tools,
    wait_until_gone,
};

const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn l2_what_a_server_lists_is_offered_under_its_name() {
    for behaviour in ["plain", "modern"] {
        let log = ServerLog::new(&format!("lists-{behaviour}"));
        let mut servers =
            McpServers::start(vec![test_server_config("play", behaviour, &log)], environment(STARTUP_TIMEOUT));
        let (tools, notes) = tools(&mut servers, PermissionMode::DenyAll).await;
        assert_eq!(notes, [""; 0], "{behaviour}");
        let names: Vec<&str> = tools.specs().iter().map(|spec| spec.name.as_str()).collect();
        let expected = ["list_things", "write_thing", "fail", "picture", "slow", "crash", "env", "refuse"];
        assert_eq!(names, expected.map(|name| format!("play__{name}")), "{behaviour}");
        let first = &tools.specs()[0];
        assert_eq!(first.description, "Lists things.");
        let schema: Value = serde_json::from_str(&first.parameters).unwrap();
        assert_eq!(
            schema,
            json!({ "type": "object", "properties": { "of": { "type": "string" } }, "required": ["of"] })
        );
        assert_eq!(tools.specs()[1].description, "Writes", "a title is better than nothing");
        assert_eq!(tools.specs()[2].parameters, r#"{"properties":{},"type":"object"}"#);
        servers.close().await;
    }
}

#[tokio::test]
async fn l2_a_call_returns_the_servers_result() {
    let log = ServerLog::new("calls");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    #[rustfmt::skip]
    let cases = [
        ("list_things", json!({ "of": "ours" }),             false, "things of ours"),
        ("write_thing", json!({}),                           false, "written"),
        ("fail",        json!({}),                           true,  "the disk is full"),
        ("picture",     json!({}),                           false, "[image, 8 bytes, image/png]"),
        ("refuse",      json!({}),                           true,  "the MCP server `play` says: not today"),
        ("write_thing", json!([1]),                          true,  r#"play__write_thing takes a JSON object: {"properties":{},"type":"object"}"#),
        ("env",         json!({ "name": "CARGO_PKG_NAME" }), false, "not set"),
        ("env",         json!({ "name": "CARGO_MANIFEST_DIR" }), false, "not set"),
        ("env",         json!({ "name": "GIVEN" }),          false, "yes"),
    ];
    for (tool, arguments, is_error, content) in cases {
        let result = call(&tools, &format!("play__{tool}"), arguments).await;
        assert_eq!((&*result.described(), result.is_error), (content, is_error), "{tool}");
    }
    servers.close().await;
}

#[tokio::test]
async fn l2_an_image_reaches_the_model_as_an_image_where_the_protocol_takes_it() {
    let log = ServerLog::new("picture");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    let result = call(&tools, "play__picture", json!({})).await;
    servers.close().await;
    let calling = Message::new(
        Role::Assistant,
        vec![Block::ToolCall(ToolCall::new(
            CallId::Given(result.id.clone()),
            result.name.clone(),
            Arguments::default(),
        ))],
    );
    let messages = [calling, Message::new(Role::Tool, vec![Block::ToolResult(result)])];
    let messages: Vec<&Message> = messages.iter().collect();
    let (dialects, target, settings) = (Dialects::builtin().unwrap(), Origin::default(), Settings::new());
    #[rustfmt::skip]
    let cases = [
        ("anthropic", r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}"#),
        ("openai",    r#"{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}"#),
        // Tool results of this protocol hold only text, so the model learns that there is an image.
        ("deepseek",  r#""content":"[image, 8 bytes, image/png]""#),
    ];
    for (dialect, expected) in cases {
        let request = Request::new(&dialects, dialects.get(dialect).unwrap(), "m", &target, &settings);
        let body = encode(&request.with_messages(&messages)).body;
        assert!(body.contains(expected), "{dialect}: {body}");
    }
}

#[tokio::test]
async fn l3_the_tools_of_a_server_ask_until_it_is_trusted_whatever_it_claims() {
    let log = ServerLog::new("asks");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let loaded = servers.tools().await;
    let mut asking = Toolbox::with_permissions(Permissions::new(PermissionRules::new(), PermissionMode::Ask));
    loaded.tools.into_iter().for_each(|tool| asking.add(tool).unwrap());
    // The first one claims that it only reads.
    for (tool, arguments) in [("play__list_things", json!({ "of": "x" })), ("play__write_thing", json!({}))] {
        let denied = call(&asking, tool, arguments).await;
        assert!(denied.is_error && denied.content.contains("no one to ask"), "{}", denied.content);
    }
    // The question shows all arguments, and a lasting answer covers the whole server.
    let long = "y".repeat(50_000);
    let asker = FixedAsker::new(PermissionAnswer::Session);
    let written = call_asking(&asking, "play__write_thing", json!({ "text": long }), &asker).await;
    assert_eq!(written.content, "written");
    let question = asker.question();
    assert_eq!(question.covers.as_deref(), Some("play__*"));
    assert!(question.preview.unwrap().contains(&long));
    assert!(!call(&asking, "play__list_things", json!({ "of": "x" })).await.is_error, "the server is trusted now");
    servers.close().await;
}

#[tokio::test]
async fn l3_a_server_that_the_config_trusts_is_not_asked_about_and_deny_denies_the_others() {
    let mut trusting = PermissionRules::new();
    trusting.trust_server("play");
    let mut narrowed = trusting.clone();
    narrowed.add("play__write_thing", "ask").unwrap();
    let mut forbidding = trusting.clone();
    forbidding.add("play__write_thing", "deny").unwrap();
    #[rustfmt::skip]
    let cases = [
        ("trusted",           trusting.clone(), PermissionMode::Ask,     false),
        ("trusted",           trusting,         PermissionMode::DenyAll, false),
        ("asked by a rule",   narrowed,         PermissionMode::Ask,     true),
        ("denied by a rule",  forbidding,       PermissionMode::AllowAll, true),
        ("not trusted",       PermissionRules::new(),     PermissionMode::DenyAll, true),
        ("with allow all",    PermissionRules::new(),     PermissionMode::AllowAll, false),
    ];
    for (nth, (name, rules, mode, is_error)) in cases.into_iter().enumerate() {
        let log = ServerLog::new(&format!("trust-{nth}"));
        let mut servers =
            McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
        let mut tools = Toolbox::with_permissions(Permissions::new(rules, mode));
        servers.tools().await.tools.into_iter().for_each(|tool| tools.add(tool).unwrap());
        let result = call(&tools, "play__write_thing", json!({})).await;
        assert_eq!(result.is_error, is_error, "{name} {mode:?}: {}", result.content);
        assert_eq!(log.lines().iter().any(|line| line.starts_with("writes")), !is_error, "{name}");
        servers.close().await;
    }
}

#[tokio::test]
async fn l4_what_a_server_lists_is_bounded_and_what_is_left_out_is_reported() {
    let log = ServerLog::new("endless");
    let mut servers =
        McpServers::start(vec![test_server_config("play", "endless", &log)], environment(STARTUP_TIMEOUT));
    let (offered, notes) = tools(&mut servers, PermissionMode::AllowAll).await;
    assert_eq!((offered.specs().len(), log.lines().iter().filter(|line| *line == "page").count()), (50, 50));
    assert_eq!(notes, ["the MCP server `play`: it lists more than 50 pages of tools; the rest is not read"]);
    servers.close().await;

    let log = ServerLog::new("verbose");
    let mut servers =
        McpServers::start(vec![test_server_config("play", "verbose", &log)], environment(STARTUP_TIMEOUT));
    let (offered, notes) = tools(&mut servers, PermissionMode::AllowAll).await;
    assert_eq!((offered.specs().len(), notes.len()), (1, 2), "{notes:?}");
    assert!(offered.specs()[0].description.ends_with("[… 95904 bytes left out]"));
    servers.close().await;
}

#[tokio::test]
async fn l4_an_endless_message_is_not_read_forever() {
    let log = ServerLog::new("flood");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    let result = call(&tools, "play__env", json!({ "name": "FLOOD" })).await;
    let output = "ended during the call (it sent a message that exceeds 8388608 bytes)";
    assert!(result.is_error && result.content.contains(output), "{}", result.content);
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written", "it is started again");
    let first = log.processes()[0];
    servers.close().await;
    wait_until_gone(&[first]).await;
}

#[tokio::test]
async fn l4_a_server_that_does_not_read_the_answers_to_its_requests_is_ended() {
    let log = ServerLog::new("unread");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    for id_length in [200, 1_000_000] {
        let result = call(&tools, "play__env", json!({ "name": "UNREAD", "id": id_length })).await;
        let output = "ended during the call (it does not read the answers to its requests)";
        assert!(result.is_error && result.content.contains(output), "{id_length}: {}", result.content);
    }
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written", "it is started again");
    let processes = log.processes();
    servers.close().await;
    wait_until_gone(&processes).await;
}

#[tokio::test]
async fn l4_a_result_that_is_nested_too_deep_is_an_error() {
    let log = ServerLog::new("nested");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    // The message and its result are two levels.
    let result = call(&tools, "play__write_thing", json!({ "depth": 125 })).await;
    assert!(!result.is_error && result.content.contains("deep enough"), "{}", result.content);
    for depth in [126, 500_000] {
        let result = call(&tools, "play__write_thing", json!({ "depth": depth })).await;
        let output = "ended during the call (it sent a message that is nested more than 127 levels deep)";
        assert!(result.is_error && result.content.contains(output), "{depth}: {}", result.content);
    }
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written", "it is started again");
    servers.close().await;
}

#[tokio::test]
async fn l4_cancelling_a_slow_call_returns_and_tells_the_server() {
    let log = ServerLog::new("slow");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    let cancel = CancellationToken::new();
    let stop = async {
        log.wait_for("slow").await;
        cancel.cancel();
        Instant::now()
    };
    let (result, stopped) = tokio::join!(call_until(&tools, "play__slow", json!({}), &cancel), stop);
    assert!(stopped.elapsed() < Duration::from_secs(60), "{:?}", stopped.elapsed());
    assert_eq!((result.content.as_str(), result.is_error), ("interrupted; the server was told to stop", true));
    log.wait_for("cancelled").await;
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written", "it still serves");
    servers.close().await;
}

#[tokio::test]
async fn l4_a_call_without_progress_times_out_and_the_server_is_told() {
    let log = ServerLog::new("silent");
    let environment =
        ServerEnvironment { call_idle_timeout: Duration::from_millis(300), ..environment(STARTUP_TIMEOUT) };
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment);
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    let result = call(&tools, "play__slow", json!({})).await;
    assert!(result.is_error && result.content.contains("and was told to stop"), "{}", result.content);
    log.wait_for("cancelled").await;
    servers.close().await;
}

#[tokio::test]
async fn l4_a_server_that_crashes_is_an_error_and_is_started_again() {
    let log = ServerLog::new("crash");
    let mut servers = McpServers::start(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    let result = call(&tools, "play__crash", json!({})).await;
    assert!(result.is_error && result.content.contains("ended during the call (out of cheese)"), "{}", result.content);
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written");
    assert_eq!(log.lines().iter().filter(|line| line.starts_with("started")).count(), 2);
    servers.close().await;
}

#[tokio::test]
async fn l2_servers_that_fail_to_start_are_named_and_do_not_block_the_others_forever() {
    let logs = ["hangs", "dies", "plain"].map(|behaviour| ServerLog::new(&format!("start-{behaviour}")));
    let [hangs, dies, plain] = &logs;
    let nobody = McpTransport::Command {
        program: "/no/such/server".to_owned(),
        arguments: Vec::new(),
        variables: Vec::new(),
        access: RequestedAccess::Standard,
    };
    let all = vec![
        test_server_config("late", "hangs", hangs),
        test_server_config("dead", "dies", dies),
        ServerConfig { name: "gone".to_owned(), transport: nobody },
        test_server_config("play", "plain", plain),
    ];
    let begun = Instant::now();
    let mut servers = McpServers::start(all, environment(Duration::from_secs(3)));
    let (tools, notes) = tools(&mut servers, PermissionMode::AllowAll).await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(tools.specs().len(), 8);
    let starts = [
        "MCP server `late` has no tools: it did not answer within 3 s; if `",
        "MCP server `dead` has no tools: it ended before it had answered: cannot find the module `left-pad`; run its command",
        "MCP server `gone` has no tools: `/no/such/server` cannot be started: ",
    ];
    assert_eq!(notes.len(), starts.len(), "{notes:?}");
    for (note, start) in notes.iter().zip(starts) {
        assert!(note.starts_with(start), "{note}");
    }
    wait_until_gone(&hangs.processes()).await;
    servers.close().await;
}

#[tokio::test]
async fn l2_no_process_is_left_after_the_session_however_it_ends() {
    for politely in [true, false] {
        let logs = ["plain", "stubborn"].map(|behaviour| ServerLog::new(&format!("left-{behaviour}-{politely}")));
        let all = ["plain", "stubborn"]
            .iter()
            .zip(&logs)
            .map(|(behaviour, log)| test_server_config(behaviour, behaviour, log));
        let mut servers = McpServers::start(all.collect(), environment(STARTUP_TIMEOUT));
        let (tools, notes) = tools(&mut servers, PermissionMode::AllowAll).await;
        assert_eq!(notes, [""; 0]);
        let processes: Vec<u32> = logs.iter().flat_map(ServerLog::processes).collect();
        assert_eq!(processes.len(), 3, "two servers and a child");
        assert!(processes.iter().all(|process| is_alive(*process)), "the look for leftovers sees a living one");
        match politely {
            true => {
                servers.close().await;
                assert!(processes.iter().all(|process| !is_alive(*process)), "{processes:?}");
                assert!(logs[0].lines().contains(&"input closed".to_owned()), "it could end by itself");
                let after = call(&tools, "plain__write_thing", json!({})).await;
                assert!(after.is_error && after.content.contains("not in use any more"), "{}", after.content);
            }
            false => {
                drop(servers);
                assert!(processes.iter().all(|process| is_alive(*process)), "a tool keeps its server");
                drop(tools);
                wait_until_gone(&processes).await;
            }
        }
    }
}

#[tokio::test]
async fn checking_servers_counts_tools_and_leaves_nothing_behind() {
    let log = ServerLog::new("look");
    let found = check_servers(vec![test_server_config("play", "plain", &log)], environment(STARTUP_TIMEOUT)).await;
    assert_eq!(found, [("play".to_owned(), Ok(8))]);
    wait_until_gone(&log.processes()).await;
}

#[tokio::test]
async fn k1_a_server_is_confined_unless_its_table_says_otherwise() {
    let environment = environment(STARTUP_TIMEOUT);
    let is_confined = environment.confine.tier().unwrap() != Tier::None;
    for (access, writes) in [
        (RequestedAccess::Standard, !is_confined),
        (RequestedAccess::Network, !is_confined),
        (RequestedAccess::Unconfined, true),
    ] {
        let log = ServerLog::new(&format!("confined-{access:?}"));
        let mut server = test_server_config("play", "plain", &log);
        if let McpTransport::Command { access: field, .. } = &mut server.transport {
            *field = access;
        }
        let mut servers = McpServers::start(vec![server], environment.clone());
        let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
        // Outside this crate's folder, which is the server's working directory.
        let outside = folder_outside(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let path = outside.join(format!("written-by-a-test-{}", std::process::id()));
        let output = call(&tools, "play__write_thing", json!({ "to": path })).await.content;
        assert_eq!((path.exists(), output == "written"), (writes, writes), "{access:?}: {output}");
        drop(std::fs::remove_file(&path));
        servers.close().await;
    }
}
