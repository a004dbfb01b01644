//! What goes wrong on the way, as the script says.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use aside_core::event::{Ending, NoteCode};
use aside_core::rules::classify;
use serde_json::{Value, json};

use crate::support::{Desk, address, dialects, exchange, post, said, thought};

#[test]
fn x2_a_connection_breaks_after_so_many_bytes() {
    for dialect in dialects().iter() {
        for cut in [0, 1, 150] {
            let desk = Desk::new(dialect, &format!("Why?\nsim: cut {cut}"));
            let answer = desk.send(&desk.encoded());
            assert_eq!((answer.status, answer.bytes().len(), answer.complete), (200, cut, false), "{}", dialect.id);
        }
    }
    let dialect = dialects().get("deepseek").unwrap();
    let desk = Desk::new(dialect, "Why?\nsim: cut 900");
    let reply = desk.send(&desk.encoded()).decoded(dialect);
    assert_eq!(reply.end.ending, Ending::CutOff);
}

#[test]
fn x2_a_stream_stalls_in_the_middle_and_goes_on() {
    for id in ["deepseek", "anthropic"] {
        let dialect = dialects().get(id).unwrap();
        let begun = Instant::now();
        let reply = Desk::new(dialect, "Why?\nsim: stall 0.3").step();
        assert!(begun.elapsed() >= Duration::from_millis(300), "{id}");
        assert!(!thought(&reply).is_empty() && said(&reply).contains("simulator"), "{id}");
    }
}

#[test]
fn x2_a_status_comes_as_often_as_it_is_asked_for() {
    for (at, dialect) in dialects().iter().enumerate() {
        let statuses = |script: &str| {
            let desk = Desk::new(dialect, &format!("Why, for the {at}th time?\nsim: {script}"));
            let encoded = desk.encoded();
            [0; 3].map(|_| desk.send(&encoded).status)
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
fn x2_every_row_of_the_catalogue_can_be_refused_with_once() {
    let dialect = dialects().get("openrouter").unwrap();
    for row in dialects().catalogue() {
        let desk = Desk::new(dialect, &format!("Why?\nsim: refuse {}", row.id));
        let encoded = desk.encoded();
        let (first, second) = (desk.send(&encoded), desk.send(&encoded));
        let error: Value = serde_json::from_slice(&first.bytes()).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert_eq!((first.status, second.status), (row.status[0], 200), "{}", row.id);
        let found = classify(dialects().catalogue(), Some(first.status), message);
        assert_eq!(found.map(|row| row.id.as_str()), Some(row.id.as_str()), "{message}");
    }
    let desk = Desk::new(dialect, "Why?\nsim: refuse nothing");
    let answer = desk.send(&desk.encoded());
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("no row `nothing`; it has: prefix_changed, "), "{}", answer.text());
}

#[test]
fn x2_a_broken_frame_costs_nothing_else() {
    for dialect in dialects().iter() {
        let clean = Desk::new(dialect, "Why?\nsim: think").step();
        let broken = Desk::new(dialect, "Why?\nsim: malformed");
        let reply = broken.send(&broken.encoded()).decoded(dialect);
        assert!(reply.notes.iter().any(|note| note.code == NoteCode::Malformed), "{}: {:?}", dialect.id, reply.notes);
        assert_eq!((thought(&reply), said(&reply)), (thought(&clean), said(&clean)), "{}", dialect.id);
    }
}

#[test]
fn x2_a_good_answer_under_a_wrong_name() {
    let dialect = dialects().get("zai").unwrap();
    let desk = Desk::new(dialect, "Why?\nsim: content-type");
    let answer = desk.send(&desk.encoded());
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert!(said(&answer.decoded(dialect)).contains("simulator"));
}

#[test]
fn x2_headers_may_be_late() {
    let dialect = dialects().get("zai").unwrap();
    let begun = Instant::now();
    Desk::new(dialect, "Why?\nsim: slow-headers 0.3").step();
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_client_that_hangs_up_harms_nobody() {
    let dialect = dialects().get("deepseek").unwrap();
    let encoded = Desk::new(dialect, "Why?\nsim: slow tokens=100000").encoded();
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
    Desk::new(dialect, "Still there?").step();
}

#[test]
fn what_is_no_http_and_no_utf8_is_refused() {
    let mut socket = TcpStream::connect(address()).unwrap();
    socket.write_all(b"\x16\x03\x01\x02\x00 hello\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
    let answer = exchange(address(), "DELETE", "/v1/chat/completions", &[], "");
    assert_eq!(answer.status, 404);
}
