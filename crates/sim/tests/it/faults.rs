//! Scripted faults.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use aside_core::event::{Ending, NoteCode};
use aside_core::rules::classify;
use serde_json::{Value, json};

use crate::support::{TestClient, address, answer_text, dialects, exchange, post, thinking_text};

#[test]
fn x2_a_connection_breaks_after_so_many_bytes() {
    for dialect in dialects().iter() {
        for cut in [0, 1, 150] {
            let client = TestClient::new(dialect, &format!("Why?\nsim: cut {cut}"));
            let answer = client.send(&client.encoded());
            assert_eq!((answer.status, answer.bytes().len(), answer.complete), (200, cut, false), "{}", dialect.id);
        }
    }
    let dialect = dialects().get("deepseek").unwrap();
    let client = TestClient::new(dialect, "Why?\nsim: cut 900");
    let reply = client.send(&client.encoded()).decoded(dialect);
    assert_eq!(reply.end.ending, Ending::CutOff);
}

#[test]
fn x2_a_stream_stalls_in_the_middle_and_goes_on() {
    for id in ["deepseek", "anthropic"] {
        let dialect = dialects().get(id).unwrap();
        let begun = Instant::now();
        let reply = TestClient::new(dialect, "Why?\nsim: stall 0.3").step();
        assert!(begun.elapsed() >= Duration::from_millis(300), "{id}");
        assert!(!thinking_text(&reply).is_empty() && answer_text(&reply).contains("simulator"), "{id}");
    }
}

#[test]
fn x2_an_error_status_is_sent_as_often_as_the_script_says() {
    for (at, dialect) in dialects().iter().enumerate() {
        let statuses = |script: &str| {
            let client = TestClient::new(dialect, &format!("Why, for the {at}th time?\nsim: {script}"));
            let encoded = client.encoded();
            [0; 3].map(|_| client.send(&encoded).status)
        };
        assert_eq!(statuses("status 500 times=1"), [500, 200, 200], "{}", dialect.id);
        assert_eq!(statuses("status 429 times=2"), [429, 429, 200], "{}", dialect.id);
        assert_eq!(statuses("status 503"), [503, 503, 503], "{}", dialect.id);
    }
    let body = json!({ "model": "kimi:status:429", "messages": [{ "role": "user", "content": "q" }] });
    let answer = post(address(), "/v1/chat/completions", &body.to_string());
    assert_eq!((answer.status, answer.header("retry-after")), (429, "1"));
}

#[test]
fn x2_every_row_of_the_error_catalogue_can_be_used_as_a_refusal() {
    let dialect = dialects().get("openrouter").unwrap();
    for row in dialects().catalogue() {
        let client = TestClient::new(dialect, &format!("Why?\nsim: refuse {}", row.id));
        let encoded = client.encoded();
        let (first, second) = (client.send(&encoded), client.send(&encoded));
        let error: Value = serde_json::from_slice(&first.bytes()).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!((first.status, second.status), (row.status[0], 200), "{}", row.id);
        // A row that depends on the request cannot be told from the message alone.
        if row.when.is_some() {
            assert!(row.matches(message), "{}: {message}", row.id);
            continue;
        }
        let found = classify(dialects().catalogue(), Some(first.status), message);
        assert_eq!(found.map(|row| row.id.as_str()), Some(row.id.as_str()), "{message}");
    }
    let client = TestClient::new(dialect, "Why?\nsim: refuse nothing");
    let answer = client.send(&client.encoded());
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("no row `nothing`; it has: prefix_changed, "), "{}", answer.text());
}

#[test]
fn x2_a_malformed_frame_loses_nothing_else() {
    for dialect in dialects().iter() {
        let clean = TestClient::new(dialect, "Why?").step();
        let broken = TestClient::new(dialect, "Why?\nsim: malformed");
        let reply = broken.send(&broken.encoded()).decoded(dialect);
        assert!(reply.notes.iter().any(|note| note.code == NoteCode::Malformed), "{}: {:?}", dialect.id, reply.notes);
        assert_eq!(
            (thinking_text(&reply), answer_text(&reply)),
            (thinking_text(&clean), answer_text(&clean)),
            "{}",
            dialect.id
        );
    }
}

#[test]
fn x2_a_valid_answer_may_have_the_wrong_content_type() {
    let dialect = dialects().get("zai").unwrap();
    let client = TestClient::new(dialect, "Why?\nsim: content-type");
    let answer = client.send(&client.encoded());
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert!(answer_text(&answer.decoded(dialect)).contains("simulator"));
}

#[test]
fn x2_headers_may_be_late() {
    let dialect = dialects().get("zai").unwrap();
    let begun = Instant::now();
    TestClient::new(dialect, "Why?\nsim: slow-headers 0.3").step();
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_client_that_disconnects_does_not_affect_others() {
    let dialect = dialects().get("deepseek").unwrap();
    let encoded = TestClient::new(dialect, "Why?\nsim: slow tokens=100000").encoded();
    let mut socket = TcpStream::connect(address()).unwrap();
    write!(
        socket,
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{}",
        encoded.body.len(),
        encoded.body
    )
    .unwrap();
    let mut some = [0; 64];
    socket.read_exact(&mut some).unwrap();
    drop(socket);
    TestClient::new(dialect, "Still there?").step();
}

#[test]
fn requests_that_are_not_http_or_have_a_wrong_method_are_refused() {
    let mut socket = TcpStream::connect(address()).unwrap();
    socket.write_all(b"\x16\x03\x01\x02\x00 hello\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
    let answer = exchange(address(), "DELETE", "/v1/chat/completions", &[], "");
    assert_eq!(answer.status, 404);
}
