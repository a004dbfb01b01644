//! An MCP server for the tests. The test binary runs itself with `BEHAVIOUR_VARIABLE` set, so nothing else
//! needs to be installed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// The environment variable that selects the server's behaviour.
pub(crate) const BEHAVIOUR_VARIABLE: &str = "ASIDE_TEST_PLAYS";
/// The environment variable with the path of the server's log.
pub(crate) const LOG_VARIABLE: &str = "ASIDE_TEST_DIARY";

/// Runs the server if this process was started as one.
pub(crate) fn run_if_requested() {
    let Ok(behaviour) = std::env::var(BEHAVIOUR_VARIABLE) else { return };
    note(&format!("started {}", std::process::id()));
    match behaviour.as_str() {
        "hangs" => std::thread::sleep(Duration::from_secs(600)),
        "dies" => {
            eprintln!("starting\ncannot find the module `left-pad`\n");
            std::process::exit(1);
        }
        _ => serve_stdio(&behaviour),
    }
    std::process::exit(0);
}

fn serve_stdio(behaviour: &str) {
    let child = (behaviour == "stubborn").then(|| std::process::Command::new("sleep").arg("600").spawn().unwrap());
    if let Some(child) = &child {
        note(&format!("child {}", child.id()));
    }
    // Ends the line that the test harness has begun. Servers do write such output.
    println!("\nthis is no JSON");
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message["params"]["name"] == "env" && message["params"]["arguments"]["name"] == "FLOOD" {
            // One message that never ends; the client must stop reading.
            let piece = "x".repeat(1 << 20);
            while std::io::stdout().write_all(piece.as_bytes()).is_ok() {}
            note("not read any more");
            return;
        }
        if message["params"]["name"] == "env" && message["params"]["arguments"]["name"] == "UNREAD" {
            let id_length = message["params"]["arguments"]["id"].as_u64().unwrap();
            send_pings(usize::try_from(id_length).unwrap());
            eprintln!("everything was read");
            std::process::exit(3);
        }
        if let Some(depth) = message["params"]["arguments"]["depth"].as_u64() {
            println!("{}", nested_result(&message["id"], depth));
            continue;
        }
        if message["params"]["name"] == "crash" {
            eprintln!("out of cheese");
            std::process::exit(3);
        }
        if let Some(answer) = answer(behaviour, &message) {
            println!("{answer}");
        }
    }
    note("input closed");
    // Does not end when its standard input is closed.
    if let Some(mut child) = child {
        child.wait().unwrap();
    }
}

/// Sends requests, 256 MiB of them, and does not read the answers.
fn send_pings(id_length: usize) {
    let ping = json!({ "jsonrpc": "2.0", "id": "i".repeat(id_length), "method": "ping" }).to_string() + "\n";
    let mut out = std::io::stdout().lock();
    for _ in 0..(256 << 20) / ping.len() {
        if out.write_all(ping.as_bytes()).is_err() {
            note("not read any more");
            return;
        }
    }
}

/// A result with this many arrays inside each other.
pub(crate) fn nested_result(id: &Value, depth: u64) -> String {
    let depth = usize::try_from(depth).unwrap();
    let arrays = ["[".repeat(depth), "]".repeat(depth)].concat();
    let content = r#"[{"type":"text","text":"deep enough"}]"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content},"structuredContent":{arrays}}}}}"#)
}

fn note(line: &str) {
    let Ok(path) = std::env::var(LOG_VARIABLE) else { return };
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// The response to a message; `None` for notifications and slow calls.
pub(crate) fn answer(behaviour: &str, message: &Value) -> Option<Value> {
    let id = message.get("id");
    let method = message["method"].as_str().unwrap();
    if method == "notifications/cancelled" {
        note("cancelled");
    }
    let id = id?;
    let result = match method {
        "initialize" if behaviour == "modern" => return Some(refusal(id, -32601, "initialize is gone")),
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "play", "version": "1" },
        }),
        "server/discover" if behaviour == "modern" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private",
        }),
        "tools/list" if behaviour == "endless" => endless(message),
        "tools/list" if behaviour == "verbose" => json!({ "tools": [
            { "name": "long", "description": "x".repeat(100_000), "inputSchema": {} },
            { "name": "huge", "inputSchema": { "title": "y".repeat(100_000) } },
        ] }),
        "tools/list" => list(message),
        "tools/call" => return call(id, message),
        _ => return Some(refusal(id, -32601, "no such method")),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// The first bytes of a PNG.
const PNG: &str = "iVBORw0KGgo=";

fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Two pages, with schemas that have no type.
fn list(message: &Value) -> Value {
    let tool = |name: &str| json!({ "name": name, "inputSchema": {} });
    if message["params"]["cursor"] == "more" {
        let tools: Vec<Value> = ["fail", "picture", "slow", "crash", "env", "refuse"].into_iter().map(tool).collect();
        return json!({ "tools": tools });
    }
    json!({
        "tools": [
            {
                "name": "list.things", "description": "Lists things.", "annotations": { "readOnlyHint": true },
                "inputSchema": { "type": "object", "properties": { "of": { "type": "string" } }, "required": ["of"] },
            },
            { "name": "write_thing", "title": "Writes", "inputSchema": { "type": "object", "properties": {} } },
        ],
        "nextCursor": "more",
    })
}

/// A page that is always followed by another.
fn endless(message: &Value) -> Value {
    let page = message["params"]["cursor"].as_str().map_or(0, |cursor| cursor.parse::<usize>().unwrap());
    note("page");
    let tool = json!({ "name": format!("tool{page}"), "inputSchema": {} });
    json!({ "tools": [tool], "nextCursor": (page + 1).to_string() })
}

fn call(id: &Value, message: &Value) -> Option<Value> {
    let arguments = &message["params"]["arguments"];
    let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
    let result = match message["params"]["name"].as_str().unwrap() {
        "list.things" => text(format!("things of {}", arguments["of"].as_str().unwrap())),
        "write_thing" => {
            note(&format!("writes {arguments}"));
            match arguments["to"].as_str().map(|path| std::fs::write(path, "x")) {
                None | Some(Ok(())) => text("written".to_owned()),
                Some(Err(error)) => text(format!("not written: {}", error.kind())),
            }
        }
        "fail" => json!({ "content": [{ "type": "text", "text": "the disk is full" }], "isError": true }),
        "picture" => json!({ "content": [{ "type": "image", "data": PNG, "mimeType": "image/png" }] }),
        "env" => text(std::env::var(arguments["name"].as_str().unwrap()).unwrap_or_else(|_| "not set".to_owned())),
        "slow" => {
            note("slow");
            return None;
        }
        "refuse" => return Some(refusal(id, -32602, "not today")),
        other => panic!("no tool {other}"),
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// The same server over HTTP: one request per connection, answered with plain JSON.
pub(crate) struct HttpTestServer {
    pub(crate) url: String,
    /// The head of each request.
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
}

impl HttpTestServer {
    /// Rejects requests without this line in their heads.
    pub(crate) fn requiring(header: &'static str) -> HttpTestServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve(stream.unwrap(), header, &seen));
            }
        });
        HttpTestServer { url, heads }
    }
}

fn serve(stream: TcpStream, required_header: &str, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    seen.lock().unwrap().push(head.clone());
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    if let Some(depth) = message["params"]["arguments"]["depth"].as_u64() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let event = format!("{head}data: {}\n\n", nested_result(&message["id"], depth));
        reader.get_mut().write_all(event.as_bytes()).unwrap();
        return;
    }
    if let Some(kind) = message["params"]["arguments"]["flood"].as_str() {
        flood(reader.get_mut(), kind);
        return;
    }
    let (status, extra, body) = if !head.to_lowercase().contains(required_header) {
        ("401 Unauthorized", "www-authenticate: Bearer\r\n", String::new())
    } else if !head.starts_with("POST") {
        ("405 Method Not Allowed", "", String::new())
    } else {
        match answer("plain", &serde_json::from_slice(&body).unwrap()) {
            Some(answer) => ("200 OK", "content-type: application/json\r\nmcp-session-id: s1\r\n", answer.to_string()),
            None => ("202 Accepted", "", String::new()),
        }
    };
    let head = format!("HTTP/1.1 {status}\r\n{extra}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    // The client may already be gone.
    drop(reader.get_mut().write_all((head + &body).as_bytes()));
}

/// A response that never ends; the client must stop reading.
fn flood(stream: &mut TcpStream, kind: &str) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    let piece = "x".repeat(1 << 20);
    let begun = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(b"data: "));
    let mut sent = begun.map(|()| 0);
    while let Ok(count) = sent {
        sent = stream.write_all(piece.as_bytes()).map(|()| count + 1);
    }
}
