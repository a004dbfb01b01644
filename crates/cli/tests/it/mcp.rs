//! `[mcp.NAME]`: from the config to a tool call, and the messages on failure.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{TestConfig, aside};

#[path = "../../../mcp/tests/it/test_server.rs"]
pub(crate) mod test_server;

/// Not a test: the entry point of a server process that a test starts.
#[test]
fn server() {
    test_server::run_if_requested();
}

/// The table of a server whose program is this test binary.
fn table(name: &str, part: &str, diary: &Path) -> String {
    let us = std::env::current_exe().unwrap();
    let command = [us.to_str().unwrap(), "--exact", "mcp::server", "--nocapture"];
    let command = command.map(|word| format!("{word:?}")).join(", ");
    format!(
        "[mcp.{name}]\ncommand = [{command}]\nenv = {{ {} = {part:?}, {} = {diary:?} }}\n",
        test_server::BEHAVIOUR_VARIABLE,
        test_server::LOG_VARIABLE,
    )
}

pub(crate) fn diary(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("aside-test-diary-{name}-{}", std::process::id()));
    drop(fs::remove_file(&path));
    path
}

/// Asserts that every server in the diary started and has ended.
pub(crate) fn assert_all_ended(diary: &Path) {
    let lines = fs::read_to_string(diary).unwrap();
    let processes: Vec<&str> = lines.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert!(lines.starts_with("started "), "{lines}");
    let begun = Instant::now();
    for process in processes {
        while fs::read_to_string(format!("/proc/{process}/cmdline")).is_ok_and(|words| !words.is_empty()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{process} still runs: {lines}");
        }
    }
    fs::remove_file(diary).unwrap();
}

/// A provider that requests one tool call and then answers. Returns its requests.
pub(crate) fn provider(tool: &'static str, arguments: &'static str) -> (String, std::thread::JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = std::thread::spawn(move || {
        let function = json!({ "name": tool, "arguments": arguments });
        let calls = json!([{ "index": 0, "id": "c1", "type": "function", "function": function }]);
        let deltas = [(json!({ "tool_calls": calls }), "tool_calls"), (json!({ "content": "done" }), "stop")];
        deltas.map(|(delta, finish)| answer_once(&listener, &delta, finish)).into()
    });
    (url, requests)
}

/// Answers one request with a stream of one delta.
fn answer_once(listener: &TcpListener, delta: &Value, finish: &str) -> Value {
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap()];
    stream.read_exact(&mut body).unwrap();
    let frame = |delta: &Value, finish: Value| {
        format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }))
    };
    let frames = frame(delta, Value::Null) + &frame(&json!({}), json!(finish)) + "data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.get_mut().write_all((head.to_owned() + &frames).as_bytes()).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn l2_a_model_calls_a_tool_of_a_server_and_nothing_is_left_running() {
    for part in ["plain", "stubborn"] {
        let diary = diary(&format!("call-{part}"));
        let (url, requests) = provider("play__list_things", r#"{"of":"ours"}"#);
        let config = TestConfig::with(
            &format!("mcp-call-{part}"),
            &format!(
                "[providers.work]\nprotocol = \"openai-chat\"\nbase_url = {url:?}\n{}trust = true\n[mcp.off]\nurl = \"http://127.0.0.1:1\"\nenabled = false\n",
                table("play", part, &diary)
            ),
        );
        let run = aside(&["ask", "-m", "work/m", "what is there?"], b"", Some(&config));
        assert_eq!((run.code, run.stdout.as_str()), (0, "done\n"), "{}", run.stderr);
        assert!(!run.stderr.contains("note:"), "{}", run.stderr);
        let requests = requests.join().unwrap();
        let offered = |request: &Value| -> Vec<String> {
            let names = request["tools"].as_array().unwrap().iter();
            names.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
        };
        assert!(offered(&requests[0]).contains(&"play__list_things".to_owned()), "{requests:?}");
        assert_eq!(offered(&requests[0]), offered(&requests[1]));
        let messages = requests[1]["messages"].as_array().unwrap();
        assert_eq!(messages.last().unwrap()["content"], "things of ours");
        assert_all_ended(&diary);
    }
}

#[test]
fn l2_exiting_at_once_leaves_nothing_running() {
    let diary = diary("leave");
    let config = TestConfig::with("mcp-leave", &table("play", "stubborn", &diary));
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["ask", "-m", "sim/kimi", "--json", "sim: stall 60"]);
    let mut child = command
        .env("ASIDE_CONFIG_DIR", &config.0)
        .env("ASIDE_DATA_DIR", config.0.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The request was sent, so the server has listed its tools.
    let mut line = String::new();
    let mut events = BufReader::new(child.stdout.take().unwrap());
    events.read_line(&mut line).unwrap();
    assert!(line.contains("\"request\""), "{line}");
    let interrupt = || Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt().success());
    std::thread::sleep(Duration::from_millis(100));
    interrupt();
    let begun = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_all_ended(&diary);
}

#[test]
fn l3_permission_rules_use_the_offered_tool_names() {
    #[rustfmt::skip]
    let cases = [
        ("",                                              "denied: it needs permission and there is no one to ask; nothing was done"),
        ("[permissions]\n\"play__*\" = \"allow\"\n",      "written"),
        ("trust = true\n",                                "written"),
        ("trust = true\n[permissions]\nplay__write_thing = \"ask\"\n",
            "denied: it needs permission and there is no one to ask; nothing was done"),
        ("[permissions]\nplay__write_thing = \"deny\"\n", "denied by the rule `play__write_thing`; nothing was done"),
    ];
    for (nth, (rules, content)) in cases.into_iter().enumerate() {
        let diary = diary(&format!("permission-{nth}"));
        let (url, requests) = provider("play__write_thing", "{}");
        let config = TestConfig::with(
            &format!("mcp-permission-{nth}"),
            &format!(
                "[providers.work]\nprotocol = \"openai-chat\"\nbase_url = {url:?}\n{}{rules}",
                table("play", "plain", &diary)
            ),
        );
        let run = aside(&["ask", "-m", "work/m", "write"], b"", Some(&config));
        assert_eq!(run.code, 0, "{}", run.stderr);
        let requests = requests.join().unwrap();
        assert_eq!(requests[1]["messages"].as_array().unwrap().last().unwrap()["content"], content, "{rules}");
        assert_all_ended(&diary);
    }
}

#[test]
fn l2_a_server_that_fails_is_one_line_and_the_session_continues() {
    let diary = diary("fails");
    let web = test_server::HttpTestServer::requiring("authorization: bearer hush");
    let tables = format!(
        "{}[mcp.gone]\ncommand = [\"/no/such/server\"]\n[mcp.shut]\nurl = {:?}\n[mcp.poor]\nurl = {:?}\nheaders = {{ authorization = \"Bearer ${{ASIDE_TEST_NO_SUCH}}\" }}\n",
        table("dead", "dies", &diary),
        web.url,
        web.url,
    );
    let config = TestConfig::with("mcp-fails", &tables);
    let run = aside(&["ask", "-m", "sim/kimi", "hello"], b"", Some(&config));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines = [
        "note: MCP server `dead` has no tools: it ended before it had answered: cannot find the module `left-pad`; run its command by hand",
        "note: MCP server `gone` has no tools: `/no/such/server` cannot be started: ",
        "note: MCP server `shut` has no tools: it wants an authorization; give it one with headers",
        "note: MCP server `poor` has no tools: headers.authorization refers to `$ASIDE_TEST_NO_SUCH`, which is not set; export",
    ];
    for line in lines {
        assert_eq!(run.stderr.matches(line).count(), 1, "{line}: {}", run.stderr);
    }
    let only_talk = aside(&["ask", "-m", "sim/kimi", "--no-tools", "hello"], b"", Some(&config));
    assert_eq!((only_talk.code, only_talk.stderr.as_str()), (0, ""), "without tools no server is started");
    assert_all_ended(&diary);
}

#[test]
fn l2_a_server_that_fails_is_a_notice_event() {
    let config = TestConfig::with("mcp-events", "[mcp.gone]\ncommand = [\"/no/such/server\"]\n");
    let run = aside(&["ask", "-m", "sim/kimi", "--json", "hello"], b"", Some(&config));
    let first: Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((run.code, &first["event"], &first["code"]), (0, &json!("notice"), &json!("tools")), "{}", run.stdout);
}

#[test]
fn the_doctor_checks_every_server() {
    let diary = diary("doctor");
    let web = test_server::HttpTestServer::requiring("host:");
    let good = format!(
        "{}[mcp.web]\nurl = {:?}\n[mcp.off]\ncommand = [\"x\"]\nenabled = false\n",
        table("play", "plain", &diary),
        web.url
    );
    let config = TestConfig::with("mcp-doctor", &good);
    let found = config.run("doctor");
    assert_eq!(found.code, 0, "{}", found.stdout);
    for line in ["ok      mcp play: 8 tools\n", "ok      mcp web: 8 tools\n", "ok      mcp off: enabled = false\n"] {
        assert!(found.stdout.contains(line), "{line}: {}", found.stdout);
    }
    assert_all_ended(&diary);
    assert!(!web.heads.lock().unwrap().is_empty());
    let config = TestConfig::with("mcp-doctor-bad", "[mcp.gone]\ncommand = [\"/no/such/server\"]\n");
    let found = config.run("doctor");
    assert_eq!(found.code, 1);
    let line = "broken  mcp gone: `/no/such/server` cannot be started: ";
    assert!(found.stdout.contains(line) && found.stdout.contains("→ check its command"), "{}", found.stdout);
}

#[test]
fn errors_in_a_table_are_reported_with_their_line() {
    #[rustfmt::skip]
    let cases = [
        ("[mcp.a]\ncommand = [\"x\"]\nurl = \"http://x\"\n",    "config.toml:1: mcp.a: it has a command and a url",               "keep one"),
        ("[mcp.a]\nenabled = true\n",                           "config.toml:1: mcp.a: it has neither a command nor a url",       "command = ["),
        ("[mcp.a]\ncommand = \"x --stdio\"\n",                  "config.toml:2: mcp.a.command: expected the program and its arguments", "command = ["),
        ("[mcp.a]\ncommand = []\n",                             "config.toml:2: mcp.a.command: expected the program and its arguments", "command = ["),
        ("[mcp.a]\nurl = \"x.example\"\n",                      "config.toml:2: mcp.a.url: `x.example` is not a URL",                "https://"),
        ("[mcp.a]\ncommand = [\"x\"]\nargs = []\n",             "config.toml:3: mcp.a.args: unknown key",                         "command, url, env, headers, enabled"),
        ("[mcp.a]\ncommand = [\"x\"]\nenabled = \"no\"\n",      "config.toml:3: mcp.a.enabled: expected true or false",           ""),
        ("[mcp.a]\ncommand = [\"x\"]\nenv = { A = 1 }\n",       "config.toml:3: mcp.a.env.A: expected a variable",                ""),
        ("[mcp.a]\nurl = \"http://x\"\nenv = { A = \"1\" }\n",  "config.toml:3: mcp.a.env: only a server with a command",         "remove it"),
        ("[mcp.a]\ncommand = [\"x\"]\nheaders = {}\n",          "config.toml:3: mcp.a.headers: only a server with a url",         "remove it"),
        ("[mcp.a]\ncommand = [\"x\"]\ntrust = 1\n",            "config.toml:3: mcp.a.trust: expected true or false",             ""),
        ("[mcp.a__b]\ncommand = [\"x\"]\n",                    "config.toml:1: mcp.a__b: a server's name has no _ at its ends",  ""),
        ("[mcp.\"a b\"]\ncommand = [\"x\"]\n",                  "config.toml:1: mcp.\"a b\": a server's name is",                 ""),
        ("mcp = 1\n",                                           "config.toml:1: mcp: expected a table",                           ""),
    ];
    for (text, what, hint) in cases {
        let config = TestConfig::with("mcp-mistakes", text);
        let said = config.refused("ask -m sim/kimi hello");
        assert!(said.contains(what) && said.contains(hint), "{text}{said}");
    }
}
