//! Servers that are processes.

use std::time::{Duration, Instant};

use aside_confine::Want;
use aside_engine::tools::Mode;
use aside_mcp::{Server, Servers, Surroundings, Way, look};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Diary, around, call, call_until, is_alive, playing, tools, wait_until_gone};

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
        ("env",         json!({ "name": "GIVEN" }),          false, "yes"),
    ];
    for (tool, arguments, is_error, content) in cases {
        let result = call(&tools, &format!("play__{tool}"), arguments).await;
        assert_eq!((result.content.as_str(), result.is_error), (content, is_error), "{tool}");
    }
    servers.close().await;
}

#[tokio::test]
async fn l3_what_only_reads_is_allowed_and_the_rest_asks() {
    let diary = Diary::new("asks");
    let mut servers = Servers::start(vec![playing("play", "plain", &diary)], around(PATIENCE));
    let (tools, _) = tools(&mut servers, Mode::Ask).await;
    assert!(!call(&tools, "play__list_things", json!({ "of": "x" })).await.is_error);
    let denied = call(&tools, "play__write_thing", json!({})).await;
    assert!(denied.is_error && denied.content.contains("nobody to ask"), "{}", denied.content);
    servers.close().await;
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
    assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());
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
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
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
