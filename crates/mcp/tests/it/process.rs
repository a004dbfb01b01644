//! Servers that are processes.

use std::path::Path;
use std::time::{Duration, Instant};

use aside_confine::Want;
use aside_core::question::Tier;
use aside_engine::tools::{Mode, Permissions, Permit, Rules, Toolbox};
use aside_mcp::{Server, Servers, Surroundings, Way, look};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{
    Answering, Diary, around, call, call_asking, call_until, is_alive, playing, tools, wait_until_gone,
};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn l2_what_a_server_lists_is_offered_under_its_name() {
    for part in ["plain", "modern"] {
        let diary = Diary::new(&format!("lists-{part}"));
        let mut servers = Servers::start(vec![playing("play", part, &diary)], around(PATIENCE));
        let (tools, notes) = tools(&mut servers, Mode::DenyAll).await;
        assert_eq!(notes, [""; 0], "{part}");
        let names: Vec<&str> = tools.specs().iter().map(|spec| spec.name.as_str()).collect();
        let expected = ["list_things", "write_thing", "fail", "picture", "slow", "crash", "env", "refuse"];
        assert_eq!(names, expected.map(|name| format!("play__{name}")), "{part}");
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
async fn l2_a_call_comes_to_what_the_server_says() {
    let diary = Diary::new("calls");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
    let (tools, _) = tools(&mut servers, Mode::AllowAll).await;
    #[rustfmt::skip]
    let cases = [
        ("list_things", json!({ "of": "ours" }),             false, "things of ours"),
        ("write_thing", json!({}),                           false, "written"),
        ("fail",        json!({}),                           true,  "the disk is full"),
        ("picture",     json!({}),                           false, "[image, image/png, 6 bytes; a tool result holds only text]"),
        ("refuse",      json!({}),                           true,  "the MCP server `play` says: not today"),
        ("write_thing", json!([1]),                          true,  r#"play__write_thing takes a JSON object: {"properties":{},"type":"object"}"#),
        ("env",         json!({ "name": "CARGO_PKG_NAME" }), false, "not set"),
        ("env",         json!({ "name": "CARGO_MANIFEST_DIR" }), false, "not set"),
        ("env",         json!({ "name": "GIVEN" }),          false, "yes"),
    ];
    for (tool, arguments, is_error, content) in cases {
        let result = call(&tools, &format!("play__{tool}"), arguments).await;
        assert_eq!((result.content.as_str(), result.is_error), (content, is_error), "{tool}");
    }
    servers.close().await;
}

#[tokio::test]
async fn l3_the_tools_of_a_server_ask_whatever_it_says_of_them_until_it_is_trusted() {
    let diary = Diary::new("asks");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
    let arrived = servers.tools().await;
    let mut asking = Toolbox::with(Permissions::new(Rules::new(), Mode::Ask));
    arrived.tools.into_iter().for_each(|tool| asking.add(tool).unwrap());
    // One of the two says that it only reads.
    for (tool, arguments) in [("play__list_things", json!({ "of": "x" })), ("play__write_thing", json!({}))] {
        let denied = call(&asking, tool, arguments).await;
        assert!(denied.is_error && denied.content.contains("nobody to ask"), "{}", denied.content);
    }
    // The question shows the arguments whole, and a longer yes is about the server.
    let long = "y".repeat(50_000);
    let asker = Answering::new(Permit::Session);
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
    let mut trusting = Rules::new();
    trusting.trust_server("play");
    let mut narrowed = trusting.clone();
    narrowed.add("play__write_thing", "ask").unwrap();
    let mut forbidding = trusting.clone();
    forbidding.add("play__write_thing", "deny").unwrap();
    #[rustfmt::skip]
    let cases = [
        ("trusted",           trusting.clone(), Mode::Ask,     false),
        ("trusted",           trusting,         Mode::DenyAll, false),
        ("asked by a rule",   narrowed,         Mode::Ask,     true),
        ("denied by a rule",  forbidding,       Mode::AllowAll, true),
        ("not trusted",       Rules::new(),     Mode::DenyAll, true),
        ("with a yes to all", Rules::new(),     Mode::AllowAll, false),
    ];
    for (nth, (name, rules, mode, is_error)) in cases.into_iter().enumerate() {
        let diary = Diary::new(&format!("trust-{nth}"));
        let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
        let mut tools = Toolbox::with(Permissions::new(rules, mode));
        servers.tools().await.tools.into_iter().for_each(|tool| tools.add(tool).unwrap());
        let result = call(&tools, "play__write_thing", json!({})).await;
        assert_eq!(result.is_error, is_error, "{name} {mode:?}: {}", result.content);
        assert_eq!(diary.lines().iter().any(|line| line.starts_with("writes")), !is_error, "{name}");
        servers.close().await;
    }
}

#[tokio::test]
async fn l4_what_a_server_lists_is_bounded_and_what_is_left_out_is_said() {
    let diary = Diary::new("endless");
    let mut servers = Servers::start(vec![playing("play", "endless", &diary)], around(PATIENCE));
    let (offered, notes) = tools(&mut servers, Mode::AllowAll).await;
    assert_eq!((offered.specs().len(), diary.lines().iter().filter(|line| *line == "page").count()), (50, 50));
    assert_eq!(notes, ["the MCP server `play`: it lists more than 50 pages of tools; the rest is not read"]);
    servers.close().await;

    let diary = Diary::new("verbose");
    let mut servers = Servers::start(vec![playing("play", "verbose", &diary)], around(PATIENCE));
    let (offered, notes) = tools(&mut servers, Mode::AllowAll).await;
    assert_eq!((offered.specs().len(), notes.len()), (1, 2), "{notes:?}");
    assert!(offered.specs()[0].description.ends_with("[… 95904 bytes left out]"));
    servers.close().await;
}

#[tokio::test]
async fn l4_a_message_that_does_not_end_is_not_read_to_its_end() {
    let diary = Diary::new("flood");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
    let (tools, _) = tools(&mut servers, Mode::AllowAll).await;
    let result = call(&tools, "play__env", json!({ "name": "FLOOD" })).await;
    let said = "ended during the call (it sent a message of more than 8388608 bytes)";
    assert!(result.is_error && result.content.contains(said), "{}", result.content);
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written", "it is started again");
    let first = diary.processes()[0];
    servers.close().await;
    wait_until_gone(&[first]).await;
}

#[tokio::test]
async fn l4_a_slow_call_that_is_cancelled_is_told_so_and_returns() {
    let diary = Diary::new("slow");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
    let (tools, _) = tools(&mut servers, Mode::AllowAll).await;
    let cancel = CancellationToken::new();
    let stop = async {
        diary.wait_for("slow").await;
        cancel.cancel();
        Instant::now()
    };
    let (result, stopped) = tokio::join!(call_until(&tools, "play__slow", json!({}), &cancel), stop);
    assert!(stopped.elapsed() < Duration::from_secs(60), "{:?}", stopped.elapsed());
    assert_eq!((result.content.as_str(), result.is_error), ("interrupted; the server was told to stop", true));
    diary.wait_for("cancelled").await;
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written", "it still serves");
    servers.close().await;
}

#[tokio::test]
async fn l4_a_call_without_a_word_is_given_up_and_told_so() {
    let diary = Diary::new("silent");
    let around = Surroundings { silence: Duration::from_millis(300), ..around(PATIENCE) };
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around);
    let (tools, _) = tools(&mut servers, Mode::AllowAll).await;
    let result = call(&tools, "play__slow", json!({})).await;
    assert!(result.is_error && result.content.contains("and was told to stop"), "{}", result.content);
    diary.wait_for("cancelled").await;
    servers.close().await;
}

#[tokio::test]
async fn l4_a_server_that_crashes_is_an_error_and_is_started_again() {
    let diary = Diary::new("crash");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
    let (tools, _) = tools(&mut servers, Mode::AllowAll).await;
    let result = call(&tools, "play__crash", json!({})).await;
    assert!(result.is_error && result.content.contains("ended during the call (out of cheese)"), "{}", result.content);
    assert_eq!(call(&tools, "play__write_thing", json!({})).await.content, "written");
    assert_eq!(diary.lines().iter().filter(|line| line.starts_with("started")).count(), 2);
    servers.close().await;
}

#[tokio::test]
async fn l2_servers_that_do_not_come_are_named_and_the_others_do_not_wait_for_ever() {
    let diaries = ["hangs", "dies", "plain"].map(|part| Diary::new(&format!("start-{part}")));
    let [hangs, dies, plain] = &diaries;
    let nobody = Way::Command {
        program: "/no/such/server".to_owned(),
        arguments: Vec::new(),
        variables: Vec::new(),
        want: Want::Usual,
    };
    let all = vec![
        playing("late", "hangs", hangs),
        playing("dead", "dies", dies),
        Server { name: "gone".to_owned(), way: nobody },
        playing("play", "plain", plain),
    ];
    let begun = Instant::now();
    let mut servers = Servers::start(all, around(Duration::from_secs(3)));
    let (tools, notes) = tools(&mut servers, Mode::AllowAll).await;
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(tools.specs().len(), 8);
    let starts = [
        "no tools of the MCP server `late`: it did not answer within 3 s; if `",
        "no tools of the MCP server `dead`: it ended before it had answered: cannot find the module `left-pad`; run its command",
        "no tools of the MCP server `gone`: `/no/such/server` cannot be started: ",
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
        let diaries = ["plain", "stubborn"].map(|part| Diary::new(&format!("left-{part}-{politely}")));
        let all = ["plain", "stubborn"].iter().zip(&diaries).map(|(part, diary)| playing(part, part, diary));
        let mut servers = Servers::start(all.collect(), around(PATIENCE));
        let (tools, notes) = tools(&mut servers, Mode::AllowAll).await;
        assert_eq!(notes, [""; 0]);
        let processes: Vec<u32> = diaries.iter().flat_map(Diary::processes).collect();
        assert_eq!(processes.len(), 3, "two servers and a child");
        assert!(processes.iter().all(|process| is_alive(*process)), "the look for leftovers sees a living one");
        match politely {
            true => {
                servers.close().await;
                assert!(processes.iter().all(|process| !is_alive(*process)), "{processes:?}");
                assert!(diaries[0].lines().contains(&"input closed".to_owned()), "it could end by itself");
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
async fn a_look_counts_tools_and_leaves_nothing_behind() {
    let diary = Diary::new("look");
    let found = look(vec![playing("play", "plain", &diary)], around(PATIENCE)).await;
    assert_eq!(found, [("play".to_owned(), Ok(8))]);
    wait_until_gone(&diary.processes()).await;
}

#[tokio::test]
async fn k1_a_server_is_confined_unless_its_table_says_otherwise() {
    let around = around(PATIENCE);
    let is_confined = around.confine.tier().unwrap() != Tier::None;
    for (want, writes) in [(Want::Usual, !is_confined), (Want::Network, !is_confined), (Want::Unconfined, true)] {
        let diary = Diary::new(&format!("confined-{want:?}"));
        let mut server = playing("play", "plain", &diary);
        if let Way::Command { want: wanted, .. } = &mut server.way {
            *wanted = want;
        }
        let mut servers = Servers::start(vec![server], around.clone());
        let (tools, _) = tools(&mut servers, Mode::AllowAll).await;
        // Beside this crate's folder, which is where it works.
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../written-by-a-test-{}", std::process::id()));
        let said = call(&tools, "play__write_thing", json!({ "to": path })).await.content;
        assert_eq!((path.exists(), said == "written"), (writes, writes), "{want:?}: {said}");
        drop(std::fs::remove_file(&path));
        servers.close().await;
    }
}
