//! `aside sim` as a process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::support::TestConfig;

/// A simulator on a free port, killed when the test is over.
struct RunningSimulator {
    child: Child,
    /// The address it printed.
    address: String,
    /// Kept open, because the simulator writes to it.
    _stderr: BufReader<ChildStderr>,
}

impl Drop for RunningSimulator {
    fn drop(&mut self) {
        // It may already have ended.
        let _ended = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn start(arguments: &[&str]) -> RunningSimulator {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aside"))
        .args(["sim", "--listen", "0"])
        .args(arguments)
        .env("ASIDE_CONFIG_DIR", "nowhere")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(';').next());
    let address = address.unwrap_or_else(|| panic!("no address in {line:?}")).to_owned();
    RunningSimulator { child, address, _stderr: stderr }
}

fn ask(address: &str) -> String {
    let body = r#"{"model":"sim/deepseek","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let mut socket = TcpStream::connect(address).unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    write!(socket, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn x1_it_serves_until_it_is_interrupted() {
    let mut running = start(&["--rate", "0"]);
    let (child, address) = (&mut running.child, &running.address);
    assert!(address.starts_with("127.0.0.1:"), "{address}");
    let answer = ask(address);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("reasoning_content") && answer.contains("[DONE]"), "{answer}");
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut stdout = String::new();
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    assert_eq!(stdout, "", "standard output is for data");
}

#[test]
fn an_unusable_address_is_reported() {
    let config = TestConfig::new("sim");
    let running = start(&[]);
    let address = &running.address;
    let taken = config.run(&format!("sim --listen {address}"));
    assert_eq!(taken.code, 2);
    assert!(taken.stderr.contains(&format!("cannot listen on {address}")), "{}", taken.stderr);
    assert!(taken.stderr.contains("hint: --listen 0 takes any free port"), "{}", taken.stderr);
    for wrong in ["sim --listen here", "sim --rate -1", "sim --chunk 0"] {
        assert_eq!(config.run(wrong).code, 2, "{wrong}");
    }
}
