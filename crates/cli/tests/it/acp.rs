//! `aside acp`: a client drives the real process over its pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{TestConfig, start};

/// Much longer than anything takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client with a process of its own.
struct Client {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: i64,
    /// All notifications so far.
    updates: Vec<Value>,
    /// All permission requests so far.
    questions: Vec<Value>,
    /// The option that answers them.
    answer: &'static str,
    /// What the client's own methods answer; none is an error.
    results: fn(&str, &Value) -> Option<Value>,
    /// The requests of the agent for them.
    asked: Vec<Value>,
}

impl Client {
    fn start(config: &TestConfig, arguments: &[&str]) -> Client {
        Client::with_abilities(config, arguments, json!({}), |_, _| None)
    }

    /// A client that can do more than every client can.
    fn with_abilities(
        config: &TestConfig,
        arguments: &[&str],
        abilities: Value,
        results: fn(&str, &Value) -> Option<Value>,
    ) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
        let mut process = start(command.arg("acp").args(arguments), Some(config));
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(value).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take();
        let (updates, questions) = (Vec::new(), Vec::new());
        let (answer, asked) = ("once", Vec::new());
        let mut client = Client { process, input, lines, next: 0, updates, questions, answer, results, asked };
        let initialize = json!({"protocolVersion": 1, "clientCapabilities": abilities});
        let initialized = client.call("initialize", initialize).unwrap();
        assert_eq!(initialized["protocolVersion"], 1);
        client
    }

    fn write(&mut self, message: Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request without waiting for its answer.
    fn send(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        self.write(json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// The next message that is the answer to a request or a notification.
    fn receive(&mut self) -> Value {
        let message = self.lines.recv_timeout(PATIENCE).expect("the process answers");
        match message["method"].as_str() {
            Some("session/update") => self.updates.push(message["params"].clone()),
            Some("session/request_permission") => {
                self.questions.push(message["params"].clone());
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": self.answer}});
                self.write(json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
            }
            Some(method) => {
                self.asked.push(message.clone());
                let mut answer = json!({"jsonrpc": "2.0", "id": message["id"]});
                match (self.results)(method, &message["params"]) {
                    Some(result) => answer["result"] = result,
                    None => answer["error"] = json!({"code": -32603, "message": "no"}),
                }
                self.write(answer);
            }
            None => (),
        }
        message
    }

    fn wait_for(&mut self, id: i64) -> Result<Value, Value> {
        loop {
            let message = self.receive();
            if message["id"] == id && message["method"].is_null() {
                return if message["error"].is_null() {
                    Ok(message["result"].clone())
                } else {
                    Err(message["error"].clone())
                };
            }
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.wait_for(id)
    }

    fn new_session(&mut self, folder: &Path) -> String {
        let opened = self.call("session/new", json!({"cwd": folder, "mcpServers": []})).unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    fn load(&mut self, session: &str, folder: &Path) -> Value {
        self.call("session/load", json!({"sessionId": session, "cwd": folder, "mcpServers": []})).unwrap()
    }

    fn send_prompt(&mut self, session: &str, text: &str) -> i64 {
        self.send("session/prompt", json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}))
    }

    fn prompt(&mut self, session: &str, text: &str) -> Result<Value, Value> {
        let id = self.send_prompt(session, text);
        self.wait_for(id)
    }

    /// Closes the input, and waits for an orderly end.
    fn end(mut self) -> Vec<Value> {
        drop(self.input.take());
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        std::mem::take(&mut self.updates)
    }

    /// Ends the process by a signal, as a crash or the editor does.
    fn kill(mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        self.process.wait().unwrap();
    }

    /// The text of all updates of this kind.
    fn text(&self, kind: &str) -> String {
        let texts = self.updates.iter().filter(|one| one["update"]["sessionUpdate"] == kind);
        texts.filter_map(|one| one["update"]["content"]["text"].as_str()).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// What a reader sees: growth joined, without prompts, notices and the states that pass.
fn transcript(updates: &[Value]) -> Vec<Value> {
    let mut shown: Vec<Value> = Vec::new();
    for update in updates.iter().map(|one| &one["update"]) {
        let kind = update["sessionUpdate"].as_str().unwrap();
        let is_shown = match kind {
            "agent_message_chunk" | "agent_thought_chunk" | "tool_call" => true,
            "tool_call_update" => update["status"] != "in_progress",
            "session_info_update" => !update["_meta"]["aside"]["block"].is_null(),
            "usage_update" => true,
            "user_message_chunk"
            | "available_commands_update"
            | "config_option_update"
            | "current_mode_update"
            | "notice" => false,
            other => panic!("unknown update {other}"),
        };
        if !is_shown {
            continue;
        }
        assert_ne!(update["content"]["text"], "", "no chunk is empty");
        let is_same = |last: &&mut Value| {
            ["sessionUpdate", "messageId", "_meta"].iter().all(|member| last[member] == update[member])
                && update["messageId"].is_string()
        };
        match shown.last_mut().filter(is_same) {
            Some(last) => {
                let joined =
                    last["content"]["text"].as_str().unwrap().to_owned() + update["content"]["text"].as_str().unwrap();
                last["content"]["text"] = json!(joined);
            }
            None => shown.push(update.clone()),
        }
    }
    shown
}

const HIDDEN: &str = "(The provider does not show this thought.)";

#[test]
fn a2_live_and_loaded_transcripts_are_equal() {
    #[rustfmt::skip]
    let cases = [
        ("sim/deepseek",  "sim: tool-loop 2", false),
        ("sim/deepseek",  "sim: tags",        false),
        ("sim/anthropic", "sim: thoughts 3",  false),
        ("sim/anthropic", "sim: redacted",    true),
        ("sim/anthropic", "sim: parallel 2",  false),
        ("sim/openai",    "sim: summaries 3", false),
        ("sim/openai",    "sim: encrypted",   true),
        ("sim/gemini",    "sim: tool-loop 2", false),
        ("sim/kimi",      "sim: cut 900",     false),
        ("sim/kimi",      "sim: reasoning-only", false),
    ];
    let config = TestConfig::new("acp-equal");
    for (model, script, has_hidden) in cases {
        let mut live = Client::start(&config, &["-m", model]);
        let session = live.new_session(&config.project());
        // A reply that is cut off is an error, and is kept all the same.
        let answered = live.prompt(&session, script);
        assert_eq!(answered.is_err(), script.contains("cut"), "{script}: {answered:?}");
        // The warning about the end of the turn is not part of the conversation.
        let of_conversation =
            |one: &Value| !one["update"]["messageId"].as_str().unwrap_or_default().starts_with("output-");
        let shown: Vec<Value> = live.end().into_iter().filter(of_conversation).collect();

        let mut loaded = Client::start(&config, &[]);
        loaded.load(&session, &config.project());
        let (live, loaded) = (transcript(&shown), transcript(&loaded.end()));
        assert!(live.len() > 1, "{model} {script}: {live:?}");
        assert_eq!(live, loaded, "{model} {script}");

        let ids: Vec<(&str, &str)> =
            live.iter().filter_map(|one| Some((one["messageId"].as_str()?, one["sessionUpdate"].as_str()?))).collect();
        for (id, kind) in &ids {
            assert!(
                ids.iter().all(|(other, other_kind)| other != id || other_kind == kind),
                "{id} is text and thought"
            );
        }
        let hidden =
            live.iter().filter(|one| one["content"]["text"].as_str().is_some_and(|text| text.starts_with(HIDDEN)));
        assert_eq!(hidden.count() > 0, has_hidden, "{model} {script}: {live:#?}");
    }
}

/// Ends the process in the middle of a thought, and goes on in another.
fn ends_in_a_thought_and_continues(name: &str, end: impl FnOnce(Client)) {
    let config = TestConfig::new(name);
    let mut client = Client::start(&config, &["-m", "sim/deepseek"]);
    let session = client.new_session(&config.project());
    client.send_prompt(&session, "sim: think tokens=3000 rate=200");
    // A second of text is stored by then.
    while client.text("agent_thought_chunk").len() < 1200 {
        client.receive();
    }
    let shown = client.text("agent_thought_chunk");
    end(client);

    let mut again = Client::start(&config, &[]);
    again.load(&session, &config.project());
    let loaded = again.text("agent_thought_chunk");
    assert!(!loaded.is_empty() && (loaded.starts_with(&shown) || shown.starts_with(&loaded)), "{shown}\n{loaded}");
    assert_eq!(again.text("user_message_chunk"), "sim: think tokens=3000 rate=200");
    assert_eq!(again.prompt(&session, "sim: plain").unwrap()["stopReason"], "end_turn");
    again.end();
    // It is an ordinary session.
    assert!(config.stdout("sessions list").contains(&session));
    let found = config.stdout("search simulator");
    assert!(found.contains(&session), "{found}");
}

#[test]
fn a4_a_killed_session_loads_with_what_came_and_continues() {
    ends_in_a_thought_and_continues("acp-kill", |client| client.kill(Signal::KILL));
}

#[test]
fn a4_a_terminated_session_loads_with_what_came_and_continues() {
    ends_in_a_thought_and_continues("acp-term", |client| client.kill(Signal::TERM));
}

#[test]
fn a4_a_session_whose_editor_closed_the_input_loads_with_what_came_and_continues() {
    ends_in_a_thought_and_continues("acp-closed", |client| drop(client.end()));
}

#[test]
fn a1_two_sessions_run_at_once_and_one_is_cancelled() {
    let config = TestConfig::new("acp-two");
    let mut client = Client::start(&config, &["-m", "sim/kimi"]);
    let (slow, fast) = (client.new_session(&config.project()), client.new_session(&config.project()));
    assert_ne!(slow, fast);
    let running = client.send_prompt(&slow, "sim: stall 600");
    let busy = client.prompt(&slow, "me too").unwrap_err();
    assert_eq!(busy["code"], -32600, "{busy}");
    assert_eq!(client.prompt(&fast, "sim: plain").unwrap()["stopReason"], "end_turn");
    let of_fast = client.updates.iter().filter(|one| one["sessionId"] == fast.as_str());
    assert!(of_fast.clone().any(|one| one["update"]["sessionUpdate"] == "agent_message_chunk"));
    client.write(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": slow}}));
    assert_eq!(client.wait_for(running).unwrap()["stopReason"], "cancelled");
    assert_eq!(client.prompt(&slow, "sim: plain").unwrap()["stopReason"], "end_turn");
    // A turn that still runs does not keep the process.
    let running = client.send_prompt(&fast, "sim: stall 600");
    client.write(json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": running}}));
    assert_eq!(client.wait_for(running).unwrap()["stopReason"], "cancelled");
    client.send_prompt(&slow, "sim: stall 600");
    client.end();
}

#[test]
fn a1_a_session_that_is_open_elsewhere_can_be_read_but_not_continued() {
    let config = TestConfig::new("acp-elsewhere");
    let mut first = Client::start(&config, &["-m", "sim/kimi"]);
    let session = first.new_session(&config.project());
    first.prompt(&session, "sim: plain").unwrap();
    let mut second = Client::start(&config, &[]);
    second.load(&session, &config.project());
    assert_eq!(second.text("user_message_chunk"), "sim: plain");
    let refused = second.prompt(&session, "hello").unwrap_err();
    assert_eq!((&refused["code"], &refused["data"]["reason"]), (&json!(-32001), &json!("open_elsewhere")));
    let set = json!({"sessionId": session, "configId": "model", "value": "sim/glm"});
    assert_eq!(second.call("session/set_config_option", set).unwrap_err()["code"], -32001);
    first.end();
    second.load(&session, &config.project());
    assert_eq!(second.prompt(&session, "sim: plain").unwrap()["stopReason"], "end_turn");
    second.end();
}

#[test]
fn a1_a_failure_names_the_next_step_and_the_session_goes_on() {
    let config = TestConfig::new("acp-failure");
    let mut client = Client::start(&config, &["-m", "sim/deepseek"]);
    let session = client.new_session(&config.project());
    #[rustfmt::skip]
    let failures = [
        ("sim: status 401", "aside doctor",          json!(401)),
        ("sim: status 402", "choose another model",  json!(402)),
        ("sim: cut 300",    "/retry",                json!(null)),
        ("sim: empty",      "/retry",                json!(null)),
    ];
    for (script, next_step, status) in failures {
        let error = client.prompt(&session, script).unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(next_step), "{script}: {error}");
        assert_eq!((&error["code"], &error["data"]["status"]), (&json!(-32603), &status), "{script}");
    }
    assert_eq!(client.prompt(&session, "sim: plain").unwrap()["stopReason"], "end_turn");
    assert_eq!(client.prompt(&session, "sim: reasoning-only").unwrap()["stopReason"], "end_turn");
    assert!(client.text("agent_message_chunk").contains("Model provided reasoning but no response."));
    // Requests that make no sense are errors, and nothing more.
    assert_eq!(client.prompt("nobody", "hello").unwrap_err()["code"], -32002);
    assert_eq!(client.call("session/new", json!({"cwd": "here", "mcpServers": []})).unwrap_err()["code"], -32602);
    let folder = json!({"cwd": "/no/such/folder", "mcpServers": []});
    assert!(client.call("session/new", folder).unwrap_err()["message"].as_str().unwrap().contains("/no/such/folder"));
    assert_eq!(client.call("session/dance", json!({})).unwrap_err()["code"], -32601);
    writeln!(client.input.as_mut().unwrap(), "{{").unwrap();
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.end();
}

#[test]
fn a1_sessions_are_listed_resumed_closed_and_deleted() {
    let config = TestConfig::new("acp-list");
    let folder = config.project();
    let mut client = Client::start(&config, &["-m", "sim/kimi"]);
    let session = client.new_session(&folder);
    let one = json!({"sessionId": session});
    let rows = |client: &mut Client, params: Value| -> Vec<Value> {
        client.call("session/list", params).unwrap()["sessions"].as_array().unwrap().clone()
    };
    assert_eq!(rows(&mut client, json!({})), [] as [Value; 0], "a session without a prompt is not stored");
    client.load(&session, &folder);
    client.prompt(&session, "sim: plain").unwrap();
    let listed = rows(&mut client, json!({"cwd": folder}));
    assert_eq!(
        (listed.len(), &listed[0]["sessionId"], &listed[0]["title"]),
        (1, &json!(session), &json!("sim: plain"))
    );
    assert_eq!(rows(&mut client, json!({"cwd": "/"})), [] as [Value; 0]);

    client.call("session/close", one.clone()).unwrap();
    assert_eq!(client.prompt(&session, "hello").unwrap_err()["code"], -32002, "a closed session refuses prompts");
    assert_eq!(client.call("session/close", one.clone()).unwrap_err()["code"], -32002);
    client.updates.clear();
    let resume = json!({"sessionId": session, "cwd": folder, "mcpServers": []});
    let resumed = client.call("session/resume", resume.clone()).unwrap();
    assert_eq!(resumed["configOptions"][0]["currentValue"], "sim/kimi", "it has its model");
    assert!(client.updates.iter().all(|one| one["update"]["sessionUpdate"] != "user_message_chunk"), "no replay");
    client.prompt(&session, "sim: plain").unwrap();

    client.call("session/delete", one).unwrap();
    assert_eq!(rows(&mut client, json!({})), [] as [Value; 0]);
    assert!(client.call("session/load", resume).unwrap_err()["message"].as_str().unwrap().contains(&session));
    client.end();
}

#[test]
fn a1_options_and_commands_change_the_session() {
    let config = TestConfig::new("acp-options");
    let mut client = Client::start(&config, &["-m", "sim/openai"]);
    let session = client.new_session(&config.project());
    let set = |client: &mut Client, id: &str, value: &str| {
        client.call("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value}))
    };
    let current = |options: &Value, id: &str| -> String {
        let options = options["configOptions"].as_array().unwrap().iter();
        options.filter(|option| option["id"] == id).map(|option| option["currentValue"].as_str().unwrap()).collect()
    };
    assert_eq!(current(&set(&mut client, "effort", "high").unwrap(), "effort"), "high");
    assert_eq!(current(&set(&mut client, "effort", "none").unwrap(), "effort"), "none");
    assert_eq!(current(&set(&mut client, "effort", "default").unwrap(), "effort"), "default");
    assert_eq!(set(&mut client, "effort", "huge").unwrap_err()["code"], -32602);
    assert_eq!(set(&mut client, "colour", "red").unwrap_err()["code"], -32602);
    let unknown = set(&mut client, "model", "nowhere/nothing").unwrap_err();
    assert!(unknown["code"] == -32602 && unknown["message"].as_str().unwrap().contains("nowhere"), "{unknown}");
    assert_eq!(current(&set(&mut client, "model", "sim/deepseek").unwrap(), "model"), "sim/deepseek");

    assert_eq!(current(&set(&mut client, "mode", "read-only").unwrap(), "mode"), "read-only");
    assert_eq!(set(&mut client, "mode", "yolo").unwrap_err()["code"], -32602);
    // The old way, in the middle of a turn.
    let running = client.send_prompt(&session, "sim: stall 600");
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "accept-edits"})).unwrap();
    let mode = client.updates.iter().rfind(|one| one["update"]["sessionUpdate"] == "current_mode_update");
    assert_eq!(mode.unwrap()["update"]["currentModeId"], "accept-edits");
    client.write(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    assert_eq!(client.wait_for(running).unwrap()["stopReason"], "cancelled");
    assert_eq!(current(&set(&mut client, "mode", "ask").unwrap(), "mode"), "ask");
    client.prompt(&session, "/undo").unwrap();

    assert_eq!(client.prompt(&session, "sim: tool-loop 1").unwrap()["_meta"]["aside"]["sent"]["model"], "sim/deepseek");
    client.updates.clear();
    client.prompt(&session, "/sent").unwrap();
    assert!(client.text("agent_message_chunk").contains("| sent as |"), "{:?}", client.updates);
    client.prompt(&session, "/context").unwrap();
    assert!(client.text("agent_message_chunk").contains("thinking"), "{:?}", client.updates);
    client.prompt(&session, "/effort low").unwrap();
    let changed = client.updates.iter().find(|one| one["update"]["sessionUpdate"] == "config_option_update");
    assert!(changed.is_some_and(|one| current(&one["update"], "effort") == "low"), "{:?}", client.updates);
    client.prompt(&session, "/undo").unwrap();
    assert!(client.text("agent_message_chunk").contains("undone"), "{:?}", client.updates);
    client.updates.clear();
    client.load(&session, &config.project());
    assert_eq!(client.text("user_message_chunk"), "", "the only turn was undone");
    client.end();
}

#[cfg(feature = "mcp")]
#[test]
fn l3_a_permission_request_has_the_exact_diff_and_the_answer_counts() {
    for (answer, is_written) in [("once", true), ("no", false)] {
        let (url, requests) = crate::mcp::provider("edit", r#"{"path":"a.txt","old":"two","new":"2"}"#);
        let config = TestConfig::with(
            &format!("acp-diff-{answer}"),
            &format!("[providers.work]\nprotocol = \"openai-chat\"\nbase_url = {url:?}\n"),
        );
        let file = config.project().join("a.txt");
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        let mut client = Client::start(&config, &["-m", "work/m"]);
        client.answer = answer;
        let session = client.new_session(&config.project());
        assert_eq!(client.prompt(&session, "edit it").unwrap()["stopReason"], "end_turn");
        requests.join().unwrap();
        let [question] = &client.questions[..] else { panic!("{:?}", client.questions) };
        let path = std::fs::canonicalize(&file).unwrap();
        let diff = json!({"type": "diff", "path": path, "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"});
        assert_eq!(question["toolCall"]["content"][0], diff, "{question:#}");
        let options: Vec<(&str, &str)> = question["options"]
            .as_array()
            .unwrap()
            .iter()
            .map(|option| (option["optionId"].as_str().unwrap(), option["kind"].as_str().unwrap()))
            .collect();
        let expected =
            [("once", "allow_once"), ("session", "allow_always"), ("project", "allow_always"), ("no", "reject_once")];
        assert_eq!(options, expected);
        let id = &question["toolCall"]["toolCallId"];
        assert!(
            client
                .updates
                .iter()
                .any(|one| one["update"]["toolCallId"] == *id && one["update"]["sessionUpdate"] == "tool_call")
        );
        let ended = client.updates.iter().rfind(|one| one["update"]["toolCallId"] == *id).unwrap();
        assert_eq!(ended["update"]["status"], if is_written { "completed" } else { "failed" });
        let text = if is_written { "one\n2\nthree\n" } else { "one\ntwo\nthree\n" };
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        if is_written {
            assert_eq!(ended["update"]["content"][0]["newText"], "one\n2\nthree\n", "{ended:#}");
        }
        client.end();
    }
}

#[cfg(feature = "mcp")]
#[test]
fn a1_the_editors_mcp_server_offers_its_tools() {
    use crate::mcp::test_server::{BEHAVIOUR_VARIABLE, LOG_VARIABLE};
    let diary = crate::mcp::diary("acp");
    let (url, requests) = crate::mcp::provider("play__list_things", r#"{"of":"ours"}"#);
    let config =
        TestConfig::with("acp-mcp", &format!("[providers.work]\nprotocol = \"openai-chat\"\nbase_url = {url:?}\n"));
    let mut client = Client::start(&config, &["-m", "work/m"]);
    let us = std::env::current_exe().unwrap();
    let env = json!([{"name": BEHAVIOUR_VARIABLE, "value": "plain"}, {"name": LOG_VARIABLE, "value": diary}]);
    let server = json!({"name": "play", "command": us, "args": ["--exact", "mcp::server", "--nocapture"], "env": env});
    let opened = client.call("session/new", json!({"cwd": config.project(), "mcpServers": [server]})).unwrap();
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    client.prompt(&session, "what is there?").unwrap();
    assert_eq!(client.questions.len(), 1, "a server of the editor is not trusted");
    let requests = requests.join().unwrap();
    assert_eq!(requests[1]["messages"].as_array().unwrap().last().unwrap()["content"], "things of ours");
    client.end();
    crate::mcp::assert_all_ended(&diary);
}

#[test]
fn a1_files_of_the_editor_are_attached_and_an_at_sign_is_only_text() {
    let config = TestConfig::new("acp-attach");
    let folder = config.project();
    std::fs::write(folder.join("a b.txt"), "the content of the file\n").unwrap();
    let mut client = Client::start(&config, &["-m", "sim/kimi"]);
    let session = client.new_session(&folder);
    let link = format!("file://{}/a%20b.txt", folder.display());
    let prompt = json!([
        {"type": "text", "text": "sim: plain\n@a b.txt and "},
        {"type": "resource_link", "name": "a b.txt", "uri": link},
        {"type": "resource", "resource": {"uri": "file:///p/unsaved.rs", "text": "fn unsaved() {}"}},
    ]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).unwrap();
    let missing = json!([{"type": "resource_link", "name": "x", "uri": "file:///no/such/file.txt"}]);
    let refused = client.call("session/prompt", json!({"sessionId": session, "prompt": missing})).unwrap_err();
    assert!(
        refused["code"] == -32602 && refused["message"].as_str().unwrap().contains("/no/such/file.txt"),
        "{refused}"
    );
    client.updates.clear();
    client.load(&session, &folder);
    let sent = client.text("user_message_chunk");
    assert_eq!(sent.matches("the content of the file").count(), 1, "{sent}");
    assert!(sent.contains("@a b.txt") && sent.contains("fn unsaved() {}"), "{sent}");
    client.end();
}

/// A provider that calls this tool once, and a config that has it.
#[cfg(feature = "mcp")]
fn tool_provider(
    name: &str,
    tool: &'static str,
    arguments: &'static str,
) -> (TestConfig, std::thread::JoinHandle<Vec<Value>>) {
    let (url, requests) = crate::mcp::provider(tool, arguments);
    let config = format!("[providers.work]\nprotocol = \"openai-chat\"\nbase_url = {url:?}\n");
    (TestConfig::with(name, &config), requests)
}

/// What the model got as the result of the tool.
#[cfg(feature = "mcp")]
fn result_sent(requests: std::thread::JoinHandle<Vec<Value>>) -> String {
    let requests = requests.join().unwrap();
    requests[1]["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

#[cfg(feature = "mcp")]
#[test]
fn a1_the_text_in_the_editor_is_read_and_what_is_not_saved_is_said() {
    type Results = fn(&str, &Value) -> Option<Value>;
    let unsaved: Results = |_, _| Some(json!({"content": "one\nunsaved\n"}));
    let saved: Results = |_, _| Some(json!({"content": "on disk"}));
    let fails: Results = |_, _| None;
    let nonsense: Results = |_, _| Some(json!({"content": 3}));
    #[rustfmt::skip]
    let cases = [
        ("unsaved",     true,  unsaved,  "one\n     2\tunsaved", true),
        ("saved",       true,  saved,    "on disk",             false),
        ("fails",       true,  fails,    "on disk",             false),
        ("nonsense",    true,  nonsense, "on disk",             false),
        ("not-offered", false, unsaved,  "on disk",             false),
    ];
    for (name, is_offered, results, expected, is_noted) in cases {
        let (config, requests) = tool_provider(&format!("acp-unsaved-{name}"), "read", r#"{"path":"a.txt"}"#);
        let file = config.project().join("a.txt");
        std::fs::write(&file, "on disk\n").unwrap();
        let abilities = json!({"fs": {"readTextFile": is_offered, "writeTextFile": true}});
        let mut client = Client::with_abilities(&config, &["-m", "work/m"], abilities, results);
        let session = client.new_session(&config.project());
        assert_eq!(client.prompt(&session, "read it").unwrap()["stopReason"], "end_turn");
        let asked: Vec<(&str, &Value)> =
            client.asked.iter().map(|one| (one["method"].as_str().unwrap(), &one["params"])).collect();
        let params = json!({"sessionId": session, "path": std::fs::canonicalize(&file).unwrap()});
        let wanted = if is_offered { vec![("fs/read_text_file", &params)] } else { Vec::new() };
        assert_eq!(asked, wanted, "{name}");
        let sent = result_sent(requests);
        assert!(sent.contains(expected), "{name}: {sent}");
        assert_eq!(sent.contains("it is not saved"), is_noted, "{name}: {sent}");
        client.end();
    }
}

#[cfg(feature = "mcp")]
#[test]
fn a1_a_rejection_can_have_a_message_where_the_client_has_forms() {
    let (config, requests) = tool_provider("acp-form", "write", r#"{"path":"a.txt","content":"x"}"#);
    let results = |method: &str, _: &Value| {
        assert_eq!(method, "elicitation/create");
        Some(json!({"action": "accept", "content": {"message": "not in this folder"}}))
    };
    let mut client = Client::with_abilities(&config, &["-m", "work/m"], json!({"elicitation": {"form": {}}}), results);
    client.answer = "message";
    let session = client.new_session(&config.project());
    assert_eq!(client.prompt(&session, "write it").unwrap()["stopReason"], "end_turn");
    let ids: Vec<&str> = client.questions[0]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["optionId"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["once", "session", "project", "no", "message"]);
    assert_eq!(client.asked[0]["params"]["requestedSchema"]["required"], json!(["message"]));
    let sent = result_sent(requests);
    assert!(sent.contains("not in this folder"), "{sent}");
    assert!(!config.project().join("a.txt").exists());
    client.end();
}

#[cfg(feature = "mcp")]
#[test]
fn a1_additional_directories_are_read_without_a_question_and_what_is_outside_still_asks() {
    for is_additional in [true, false] {
        let name = format!("acp-additional-{is_additional}");
        let (config, requests) = tool_provider(&name, "read", r#"{"path":"../beside/a.txt"}"#);
        let (folder, beside) = (config.project().join("root"), config.project().join("beside"));
        [&folder, &beside].iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        std::fs::write(beside.join("a.txt"), "text beside\n").unwrap();
        let mut client = Client::start(&config, &["-m", "work/m"]);
        client.answer = "no";
        for (wrong, why) in [("beside", "absolute"), ("/", "whole disk"), ("/no/such/folder", "there is no folder")] {
            let params = json!({"cwd": folder, "mcpServers": [], "additionalDirectories": [wrong]});
            let error = client.call("session/new", params).unwrap_err();
            assert!(error["message"].as_str().unwrap().contains(why), "{wrong}: {error}");
        }
        let additional = if is_additional { vec![beside] } else { Vec::new() };
        let params = json!({"cwd": folder, "mcpServers": [], "additionalDirectories": additional});
        let opened = client.call("session/new", params).unwrap();
        let session = opened["sessionId"].as_str().unwrap().to_owned();
        client.prompt(&session, "read it").unwrap();
        assert_eq!(client.questions.len(), usize::from(!is_additional));
        assert_eq!(result_sent(requests).contains("text beside"), is_additional);
        client.end();
    }
}

#[test]
fn a1_a_compaction_is_shown_where_the_client_can_and_is_loaded_again() {
    let config = TestConfig::new("acp-compaction");
    let abilities = json!({"session": {"compaction": {}}});
    let mut client = Client::with_abilities(&config, &["-m", "sim/deepseek"], abilities.clone(), |_, _| None);
    let session = client.new_session(&config.project());
    for _ in 0..8 {
        client.prompt(&session, "sim: think tokens=400").unwrap();
    }
    client.prompt(&session, "/compact").unwrap();
    assert!(client.text("agent_message_chunk").contains("with a summary"), "{:?}", client.updates.last());
    let compactions = |client: &Client| -> Vec<Value> {
        let all = client.updates.iter().map(|one| one["update"].clone());
        all.filter(|one| one["sessionUpdate"] == "compaction_update").collect()
    };
    let live = compactions(&client);
    assert!(live.len() == 1 && live[0]["status"] == "completed", "{live:?}");
    assert!(!live[0]["summary"][0]["text"].as_str().unwrap().is_empty());
    client.end();
    let mut again = Client::with_abilities(&config, &[], abilities, |_, _| None);
    again.load(&session, &config.project());
    assert_eq!(compactions(&again), live, "the same after a load");
    again.end();
    let mut plain = Client::start(&config, &[]);
    plain.load(&session, &config.project());
    assert_eq!(compactions(&plain).len(), 0, "only where the client can show it");
    plain.end();
}
