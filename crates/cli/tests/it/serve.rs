//! `aside serve` as a process, as the README shows it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::support::{TestConfig, repository, start};

/// A gateway on a free port, killed when the test is over.
struct RunningGateway {
    child: Child,
    address: String,
    /// Kept open, because the gateway writes to it.
    _stderr: BufReader<ChildStderr>,
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        // It may already have ended.
        let _ended = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn serve(config: &TestConfig) -> RunningGateway {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aside"));
    command.args(["serve", "--listen", "0"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(&mut command, Some(config));
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while !text.contains("listening on http://") {
        assert!(stderr.read_line(&mut text).unwrap() > 0, "no address in {text:?}");
    }
    let address = text.split("listening on http://").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    RunningGateway { address: address.to_owned(), child, _stderr: stderr }
}

fn post(gateway: &RunningGateway, body: &str, key: &str) -> String {
    let mut socket = TcpStream::connect(&gateway.address).unwrap();
    let head =
        format!("POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nx-api-key: {key}\r\n");
    write!(socket, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// The first and the second request of the README.
fn readme_requests() -> (String, String) {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let line = |name: &str| {
        let prefix = format!("\n{name}='");
        let rest = readme.split(&prefix).nth(1).unwrap_or_else(|| panic!("the README has no {name}"));
        rest.split("'\n").next().unwrap().to_owned()
    };
    let (tools, question, call) = (line("tools"), line("question"), line("call"));
    let id = call.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    let result = format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"README.md"}}"#);
    let turn = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#);
    let request = |messages: &str| format!(r#"{{"model":"sim/deepseek","messages":[{messages}],{tools}}}"#);
    (request(&question), request(&format!("{question},{turn},{result}")))
}

#[test]
fn g2_the_commands_of_the_readme_restore_a_lost_thought_also_after_a_kill() {
    let config = TestConfig::new("serve-readme");
    let (first, second) = readme_requests();
    let gateway = serve(&config);
    let answer = post(&gateway, &first, "any");
    assert!(answer.contains("reasoning_content"), "{answer}");
    // Dropping it kills it: what was answered is durable.
    drop(gateway);
    let gateway = serve(&config);
    let answer = post(&gateway, &second, "any");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("aside-repaired: 1 restored, 0 filler, 0 ambiguous"), "{answer}");
    let id = answer.split("aside-request: ").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
    let explained = config.stdout(&format!("explain --request {id} --url http://{}", gateway.address));
    assert!(explained.contains("message 1 thinking: restored by L2, echo.loop = must"), "{explained}");
}

#[test]
fn g8_keys_are_printed_once_listed_without_the_key_and_revoked() {
    let config = TestConfig::new("serve-keys");
    let key = config.stdout("serve key new ci --tenant team --models sim/* --limit requests=60/m");
    let key = key.trim_end();
    assert!(key.starts_with("aside-") && key.len() == 49, "{key}");
    assert_eq!(config.stdout("serve key list"), "ci\tteam\tstore\n");
    let gateway = serve(&config);
    let body = r#"{"model":"sim/kimi","messages":[{"role":"user","content":"hi"}]}"#;
    assert!(post(&gateway, body, "wrong").starts_with("HTTP/1.1 401"));
    assert!(post(&gateway, body, key).starts_with("HTTP/1.1 200"));
    assert_eq!(config.run("serve key revoke ci").code, 0);
    // It stops within two seconds; a slow machine gets more time.
    let mut answer = String::new();
    for _ in 0..300 {
        answer = post(&gateway, body, key);
        if answer.starts_with("HTTP/1.1 401") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(config.stdout("serve key list"), "");
    drop(gateway);
    let closed = serve(&config);
    assert!(post(&closed, body, key).starts_with("HTTP/1.1 401"), "without a key it stays closed");
    assert!(config.refused("serve --listen here").contains("expected ADDRESS:PORT or PORT"));
}
