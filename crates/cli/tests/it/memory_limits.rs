//! Memory use of long replies, calls and files, and the limit on the size of a
//! reply.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::{TestConfig, aside};

/// The size of the test text.
const BYTES: usize = 40_000_000;

/// Memory besides the text: the program itself and the store's page cache.
const BASE: usize = 80_000_000;

/// Answers each connection with the next of these bodies; repeats the last one.
fn provider(bodies: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (at, socket) in listener.incoming().enumerate() {
            let mut socket = socket.unwrap();
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut byte = [0];
                if socket.read(&mut byte).unwrap() == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            let read = std::io::copy(&mut (&mut socket).take(length), &mut std::io::sink()).unwrap();
            assert_eq!(read, length);
            let body = &bodies[at.min(bodies.len() - 1)];
            let kind = if body.starts_with('{') { "application/json" } else { "text/event-stream" };
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
            // The client may hang up early.
            drop(socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())));
        }
    });
    address
}

fn chunk(delta: &str, finish: &str) -> String {
    format!("data: {{\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
}

fn done() -> String {
    chunk("{}", "\"stop\"") + "data: [DONE]\n\n"
}

fn config(name: &str, bodies: Vec<String>) -> TestConfig {
    let table = "[providers.p]\nprotocol = \"openai-chat\"\ndialect = \"generic\"";
    TestConfig::with(name, &format!("{table}\nbase_url = \"http://{}/v1\"\n", provider(bodies)))
}

struct Measured {
    code: i32,
    stdout: String,
    stderr: String,
    /// Peak memory in bytes.
    peak: usize,
}

/// Runs a command and measures its peak memory.
fn measured(config: &TestConfig, arguments: &[&str]) -> Measured {
    let (out, err) = (config.0.join("out"), config.0.join("err"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_aside"))
        .args(arguments)
        .current_dir(config.project())
        .env("ASIDE_CONFIG_DIR", &config.0)
        .env("ASIDE_DATA_DIR", config.0.join("data"))
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let mut peak = 0;
    let code = loop {
        peak = peak.max(memory(&child).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status.code().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let text = |path| fs::read_to_string(path).unwrap();
    Measured { code, stdout: text(&out), stderr: text(&err), peak }
}

/// The peak memory of a process so far, if the system reports it.
fn memory(child: &Child) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<usize>().ok()? * 1024)
}

fn ask(config: &TestConfig, more: &[&str]) -> Measured {
    let arguments: Vec<&str> = ["ask", "-m", "p/m", "--no-tools", "hello"].iter().chain(more).copied().collect();
    measured(config, &arguments)
}

/// Distinct words only: the worst case for the search index.
fn words() -> String {
    let mut state = 1_u64;
    let mut out = String::with_capacity(BYTES + 20);
    while out.len() < BYTES {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        out.push_str(&format!("{:010x} ", state >> 24));
    }
    out
}

fn check(what: &str, run: &Measured) {
    assert!(run.peak <= 3 * BYTES + BASE, "{what}: {} bytes for a text of {BYTES}", run.peak);
}

#[test]
fn one_long_delta_takes_at_most_three_times_its_size() {
    let text = words();
    let delta = chunk(&format!("{{\"content\":\"{text}\"}}"), "null") + &done();
    let config = config("bounds-delta", vec![delta]);
    let run = ask(&config, &[]);
    assert_eq!((run.code, run.stdout.len()), (0, text.len() + 1), "{}", run.stderr);
    check("a reply in one piece, kept in the store", &run);
    let run = ask(&config, &["--json", "--no-save"]);
    assert_eq!(run.code, 0);
    check("the same as events", &run);
    drop(run);

    // The stored text and its export are complete.
    let file = config.0.join("long.jsonl");
    let path = file.to_str().unwrap();
    let exported = measured(&config, &["sessions", "export", "--format", "jsonl", "-o", path]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    check("an export", &exported);
    let last: Value = serde_json::from_str(fs::read_to_string(&file).unwrap().lines().last().unwrap()).unwrap();
    assert!(last["blocks"][0]["text"] == text.as_str(), "all of it was kept");
    let imported = measured(&config, &["sessions", "import", path]);
    assert_eq!(imported.code, 0, "{}", imported.stderr);
    check("an import", &imported);
    let found = aside(&["search", "--json", text.split(' ').next().unwrap()], b"", Some(&config));
    assert_eq!(found.stdout.lines().count(), 2, "its beginning can be found");
}

#[test]
fn a_long_call_and_a_whole_body_take_at_most_three_times_their_size() {
    let text = words();
    let arguments = format!("{{\\\"path\\\":\\\"x\\\",\\\"content\\\":\\\"{text}\\\"}}");
    let call = format!(
        "{{\"tool_calls\":[{{\"index\":0,\"id\":\"c1\",\"function\":{{\"name\":\"write\",\"arguments\":\"{arguments}\"}}}}]}}"
    );
    let calling = chunk(&call, "null") + &chunk("{}", "\"tool_calls\"") + "data: [DONE]\n\n";
    let config = config("bounds-call", vec![calling, chunk("{\"content\":\"ok\"}", "null") + &done()]);
    let run = ask(&config, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "ok\n"), "{}", run.stderr);
    check("the arguments of a call, and the request that sends them back", &run);
    drop(config);

    let message = format!("{{\"role\":\"assistant\",\"content\":\"{text}\"}}");
    let whole = format!("{{\"choices\":[{{\"index\":0,\"message\":{message},\"finish_reason\":\"stop\"}}]}}");
    let config = self::config("bounds-whole", vec![whole]);
    let run = ask(&config, &[]);
    assert_eq!((run.code, run.stdout.len()), (0, text.len() + 1), "{}", run.stderr);
    check("a whole body", &run);
}

#[test]
fn a_reply_over_reply_max_bytes_is_cut_there_and_reported() {
    let piece = chunk(&format!("{{\"content\":\"{}\"}}", "0123456789".repeat(1000)), "null");
    let config = config("bounds-cut", vec![piece.repeat(50) + &done()]);
    let run = ask(&config, &["--set", "reply.maxBytes=35257"]);
    assert_eq!((run.code, run.stdout.trim_end().len()), (1, 35_000), "{}", run.stderr);
    assert!(run.stderr.contains("reply.maxBytes"), "{}", run.stderr);
    let kept = aside(&["sessions", "export", "--format", "jsonl"], b"", Some(&config)).stdout;
    let last: Value = serde_json::from_str(kept.lines().last().unwrap()).unwrap();
    assert_eq!(last["blocks"][0]["text"].as_str().unwrap().len(), 35_000);
    assert_eq!(last["interrupted"], true);

    let run = ask(&config, &["--json", "--set", "reply.maxBytes=35257"]);
    let events: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["event"] == "notice" && event["code"] == "oversized"), "{}", run.stdout);

    let run = ask(&config, &["--set", "reply.maxBytes=0"]);
    assert_eq!((run.code, run.stdout.len()), (0, 500_001), "0 is no limit: {}", run.stderr);
}
