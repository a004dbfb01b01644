//! Limits on clients, and which clients are allowed.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use aside_sim::{BodyStep, Bounds, HttpRequest, ScriptOptions, Service};
use serde_json::{Value, json};

use crate::support::{ReceivedResponse, TestServer, address, dialects, exchange, read_response};

fn tight() -> Bounds {
    Bounds {
        body: 2000,
        bodies: 3000,
        connections: 4,
        header_time: Duration::from_millis(300),
        body_time: Duration::from_millis(300),
        ..Bounds::default()
    }
}

fn question() -> String {
    json!({ "model": "generic", "messages": [{ "role": "user", "content": "hi" }] }).to_string()
}

fn error_of(answer: &ReceivedResponse) -> String {
    assert_eq!(answer.header("content-type"), "application/json");
    let body: Value = serde_json::from_str(&answer.text()).expect("errors are JSON");
    body["error"]["message"].as_str().expect("with a message").to_owned()
}

/// Sends bytes and reads until the server closes the connection.
fn raw(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    // A reset also counts as closed.
    let _closed = socket.read_to_end(&mut answer);
    answer
}

#[test]
fn only_requests_for_its_own_host_names_are_answered() {
    let ask = |host: &str| {
        let body = question();
        let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        let mut socket = TcpStream::connect(address()).unwrap();
        write!(socket, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        read_response(BufReader::new(socket))
    };
    assert_eq!(ask(&address().to_string()).status, 200);
    assert_eq!(ask("localhost").status, 200);
    let answer = ask("evil.example:80");
    assert_eq!(answer.status, 421);
    assert!(error_of(&answer).contains("Host"), "{}", answer.text());
}

#[test]
fn pages_on_this_machine_are_allowed_and_others_are_not() {
    let ask = |method: &str, origin: &str, more: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> = [("origin", origin)].into_iter().chain(more.iter().copied()).collect();
        let body = if method == "POST" { question() } else { String::new() };
        exchange(address(), method, "/v1/chat/completions", &headers, &body)
    };
    let ours = ask("POST", "http://localhost:3000", &[]);
    assert_eq!((ours.status, ours.header("access-control-allow-origin")), (200, "http://localhost:3000"));
    let wanted = [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization,x-a")];
    let before = ask("OPTIONS", "http://127.0.0.1:8000", &wanted);
    assert_eq!((before.status, before.header("access-control-allow-origin")), (204, "http://127.0.0.1:8000"));
    assert_eq!(before.header("access-control-allow-headers"), "authorization,x-a");
    for method in ["POST", "OPTIONS"] {
        let theirs = ask(method, "https://evil.example", &wanted);
        assert_eq!((theirs.status, theirs.header("access-control-allow-origin")), (403, ""), "{method}");
        assert!(error_of(&theirs).contains("web pages"), "{method}");
    }
}

#[test]
fn all_errors_are_json() {
    let unknown = exchange(address(), "GET", "/nothing/here", &[], "");
    assert_eq!(unknown.status, 404);
    assert!(error_of(&unknown).contains("/nothing/here"));
    let server = TestServer::with_bounds(ScriptOptions::default(), tight());
    let long = exchange(server.address, "POST", "/v1/chat/completions", &[], &"x".repeat(2001));
    assert_eq!(long.status, 413);
    assert!(error_of(&long).contains("too long"));
}

#[test]
fn a_body_without_a_length_is_bounded_too() {
    let server = TestServer::with_bounds(ScriptOptions::default(), tight());
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let piece = format!("400\r\n{}\r\n", "x".repeat(1024));
    let answer = String::from_utf8(raw(server.address, format!("{head}{piece}{piece}0\r\n\r\n").as_bytes())).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[test]
fn slow_clients_are_disconnected() {
    let server = TestServer::with_bounds(ScriptOptions::default(), tight());
    // Only check that the connection ends; otherwise the test would hang.
    let half_a_head = raw(server.address, b"POST /v1/chat/completions HTTP/1.1\r\nhost: loc");
    assert!(half_a_head.is_empty() || half_a_head.starts_with(b"HTTP/1.1 408 "));
    let half_a_body = raw(
        server.address,
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 50\r\n\r\n{\"model\"",
    );
    assert!(half_a_body.starts_with(b"HTTP/1.1 408 "), "{}", String::from_utf8_lossy(&half_a_body));
}

#[test]
fn headers_are_bounded() {
    let server = TestServer::with_bounds(ScriptOptions::default(), Bounds { headers: 8192, ..Bounds::default() });
    let answer =
        raw(server.address, format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(20_000)).as_bytes());
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn a_connection_above_the_limit_gets_503_and_the_others_continue() {
    let server = TestServer::with_bounds(ScriptOptions::default(), Bounds { connections: 2, ..Bounds::default() });
    let hold = || {
        let mut socket = TcpStream::connect(server.address).unwrap();
        write!(socket, "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        // The connection counts once the server has answered.
        let mut first = [0; 12];
        socket.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        socket
    };
    let (one, two) = (hold(), hold());
    let third = String::from_utf8(raw(server.address, b"")).unwrap();
    assert!(third.starts_with("HTTP/1.1 503 ") && third.contains("{\"error\":"), "{third}");
    drop((one, two));
    // The server notices the disconnects slightly later than we do.
    while !raw(server.address, b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .starts_with(b"HTTP/1.1 200")
    {}
}

#[test]
fn x2_a_long_reply_is_generated_while_it_is_sent() {
    let service = Service::new(dialects().clone(), ScriptOptions::default());
    let content = "Why?\nsim: think tokens=1000000";
    let body = json!({ "model": "deepseek", "stream": true, "messages": [{ "role": "user", "content": content }] });
    let body = body.to_string();
    let ask = || {
        let request = HttpRequest {
            method: "POST",
            path: "/v1/chat/completions",
            query: "",
            headers: &[],
            body: body.as_bytes(),
            received: 0,
        };
        service.respond(&request)
    };
    // Building the whole reply in advance took about 130 MB each. The debug output shows
    // what is held.
    let mut answers: Vec<_> = (0..20).map(|_| ask()).collect();
    for answer in &mut answers {
        for _ in 0..50 {
            assert!(matches!(answer.body.step(), BodyStep::Bytes(_)));
        }
        assert!(format!("{:?}", answer.body).len() < 20_000);
    }
}
