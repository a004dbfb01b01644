//! Exchanges without a session: replies, repairs, retries, errors and stops.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aside_core::block::{Block, Reply};
use aside_core::dialect::Repair;
use aside_core::event::{Ending, NoteCode};
use aside_core::protocol::Protocol;
use aside_core::rules::{AnswerMode, AppliedRepair};
use aside_core::settings::Layer;
use aside_engine::exchange::ExchangeError;
use aside_engine::http::InvalidCall;
use aside_engine::{Exchange, Redactor};
use tokio::sync::Semaphore;

use crate::exchange_support::{TestExchange, TestSink, wait_until};
use crate::scripted_server::{ScriptedServer, ServerScript, ServerStep, answer, stream, stream_head};
use crate::session_support::{chat, dialects, endpoint};
use crate::simulated::simulator;

const MODEL: &str = "deepseek-v4-pro";
const MUST_PASS_BACK: &str = "The `reasoning_content` in the thinking mode must be passed back to the API.";

fn plain_reply() -> ServerScript {
    stream(&chat(&[r#"{"reasoning_content":"Let me see."}"#, r#"{"content":"Four."}"#], "stop"))
}

fn refusal(message: &str) -> ServerScript {
    answer("400 Bad Request", "", &format!(r#"{{"error":{{"message":"{message}"}}}}"#))
}

fn to_deepseek(server: &ScriptedServer) -> TestExchange {
    TestExchange::new(endpoint(&server.url, "deepseek", MODEL))
}

fn answer_text(reply: &Reply) -> String {
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.text.clone()),
        _ => None,
    };
    reply.blocks.iter().filter_map(text).collect()
}

fn repairs(applied: &[AppliedRepair]) -> Vec<Repair> {
    applied.iter().map(|applied| applied.repair).collect()
}

#[tokio::test]
async fn every_protocol_gives_a_reply() {
    let simulator = simulator().await;
    let url = format!("http://{}", simulator.address());
    let mut protocols: Vec<Protocol> = Vec::new();
    for dialect in dialects().iter() {
        if protocols.contains(&dialect.protocol) {
            continue;
        }
        protocols.push(dialect.protocol);
        let exchange = TestExchange::new(endpoint(&url, &dialect.id, &dialect.id));
        let (outcome, sink) = exchange.run("sim: think").await;
        assert_eq!(outcome.result, Ok(()), "{}", dialect.id);
        assert!(!answer_text(&outcome.reply).is_empty(), "{}: {:?}", dialect.id, outcome.reply);
        assert_eq!(sink.lines, ["sending", "ended"], "{}", dialect.id);
        assert_eq!(outcome.repairs, [], "{}", dialect.id);
        assert!(outcome.tokens > 0 && outcome.is_accepted() && sink.n_received > 0, "{}", dialect.id);
    }
    assert_eq!(protocols.len(), 7, "{protocols:?}");
}

#[tokio::test]
async fn e11_a_refusal_is_repaired_within_the_exchange() {
    let in_stream = stream(&format!("data: {{\"error\":{{\"message\":\"{MUST_PASS_BACK}\"}}}}\n\n"));
    #[rustfmt::skip]
    let cases: [(&str, ServerScript, &[&str]); 2] = [
        ("as a status",     refusal(MUST_PASS_BACK), &["sending", "repaired off_for_turn", "sending", "ended"]),
        ("within a stream", in_stream,               &["sending", "ended", "repaired off_for_turn", "sending", "ended"]),
    ];
    for (name, refused, lines) in cases {
        let server = ScriptedServer::start(vec![refused, plain_reply()]).await;
        let (outcome, sink) = to_deepseek(&server).run("2+2?").await;
        assert_eq!(outcome.result, Ok(()), "{name}");
        assert_eq!(answer_text(&outcome.reply), "Four.", "{name}");
        assert_eq!(sink.lines, lines, "{name}");
        // There is no thinking to add.
        assert_eq!(repairs(&outcome.repairs), [Repair::OffForTurn], "{name}");
        // What was learned is given to the next exchange, which needs no repair.
        let next = TestExchange { repairs: outcome.repairs, ..to_deepseek(&server) };
        let (outcome, _) = next.run("2+2?").await;
        assert_eq!((outcome.result, outcome.repairs.len()), (Ok(()), 0), "{name}");
    }
}

#[tokio::test]
async fn e11_a_ladder_that_fails_reports_the_refusal_and_what_was_tried() {
    let words = "Invalid `signature` in `thinking` block";
    let body = format!(r#"{{"type":"error","error":{{"type":"invalid_request_error","message":"{words}"}}}}"#);
    let server = ScriptedServer::start(vec![answer("400 Bad Request", "", &body)]).await;
    let (outcome, sink) = TestExchange::new(endpoint(&server.url, "anthropic", "claude-sonnet-5")).run("hi").await;
    let Err(ExchangeError::Refused(refusal)) = &outcome.result else { panic!("{outcome:?}") };
    assert_eq!((refusal.error.message.as_str(), refusal.error.status), (words, Some(400)));
    let response = refusal.response.as_ref().unwrap();
    assert_eq!((response.status, response.body.as_slice()), (400, body.as_bytes()), "the gateway passes it on");
    // There is no thinking to leave out, so the other repairs would change nothing.
    assert_eq!(repairs(&outcome.repairs), [Repair::OffForTurn], "each once, in order");
    assert_eq!(server.requests().len(), 2);
    assert_eq!(sink.lines.iter().filter(|line| line.starts_with("repaired")).count(), 1);
    assert!(!outcome.is_accepted(), "nothing is learned from it");
}

#[tokio::test]
async fn e11_nothing_is_resent_once_content_has_arrived() {
    let error = format!("data: {{\"error\":{{\"message\":\"{MUST_PASS_BACK}\"}}}}\n\n");
    let body = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"Fo\"}}}}]}}\n\n{error}");
    let server = ScriptedServer::start(vec![stream(&body), plain_reply()]).await;
    let (outcome, sink) = to_deepseek(&server).run("hi").await;
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(outcome.reply.end.error.unwrap().message, MUST_PASS_BACK);
    assert_eq!((sink.text().as_str(), server.requests().len()), ("Fo", 1));
}

#[tokio::test]
async fn a_retry_sends_the_same_bytes_and_a_repair_does_not() {
    let busy = answer("429 Too Many Requests", "retry-after-ms: 5\r\n", r#"{"error":{"message":"busy"}}"#);
    let levels = "Unsupported value: 'reasoning_effort' does not support 'high' with this model. Supported values are: 'low' and 'medium'.";
    let server = ScriptedServer::start(vec![busy.clone(), busy, refusal(levels), plain_reply()]).await;
    let mut exchange = TestExchange::new(endpoint(&server.url, "openai-chat", "gpt-5"));
    exchange.settings.set(Layer::Session, "reasoning.effort", "high").unwrap();
    let (outcome, sink) = exchange.run("2+2?").await;
    assert_eq!(outcome.result, Ok(()), "{:?}", sink.lines);
    let retrying = |attempt: u32| format!("retrying {attempt}: busy (429)");
    assert_eq!(
        sink.lines,
        ["sending", &retrying(1), &retrying(2), "repaired nearest_effort", "sending", "ended"],
        "a retry does not announce the request again"
    );
    let bodies = server.bodies();
    let [first, second, third, repaired] = bodies.as_slice() else { panic!("{bodies:?}") };
    assert_eq!((first, first), (second, third));
    assert_ne!(first, repaired);
    assert_eq!(outcome.repairs[0].details, ["low", "medium"]);
}

#[tokio::test]
async fn answer_now_mode_is_kept_by_a_repair() {
    let refused = refusal("Unsupported parameter: 'temperature' is not supported with this model.");
    let server = ScriptedServer::start(vec![refused, plain_reply()]).await;
    let mut exchange = TestExchange { answer_mode: AnswerMode::AnswerNow, ..to_deepseek(&server) };
    exchange.settings.set(Layer::Session, "request.temperature", "0.5").unwrap();
    let (outcome, _) = exchange.run("hi").await;
    assert_eq!(outcome.result, Ok(()));
    assert_eq!(repairs(&outcome.repairs), [Repair::DropParameters], "the mode is not a repair that is learned");
    for request in server.requests() {
        assert_eq!(request["thinking"]["type"], "disabled");
    }
}

#[tokio::test]
async fn errors_say_what_happened_and_keep_what_arrived() {
    let html = answer("200 OK", "content-type: text/html\r\n", "<html><body>Sign in</body></html>");
    let delta = b"data: {\"choices\":[{\"delta\":{\"content\":\"abcdefgh\"}}]}\n\n".to_vec();
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\nconnection: close\r\n\r\n".to_vec();
    let cut = vec![ServerStep::Bytes(head), ServerStep::Bytes(delta.clone())];
    let long = vec![stream_head(), ServerStep::Repeat(delta, 1000), ServerStep::WaitForDisconnect];
    #[rustfmt::skip]
    let cases = [
        ("not our protocol", html, "unreadable", ""),
        ("a broken reply",   cut,  "closed",     "abcdefgh"),
        ("an endless reply", long, "oversized",  "abcdefghab"),
    ];
    for (name, script, expected, text) in cases {
        let server = ScriptedServer::start(vec![script]).await;
        let mut exchange = to_deepseek(&server);
        exchange.settings.set(Layer::Session, "reply.maxBytes", "266").unwrap();
        let (outcome, _) = exchange.run("hi").await;
        let kind = match outcome.result.clone().unwrap_err() {
            ExchangeError::Unreadable { what } => {
                assert!(what.contains("(text/html)") && what.contains(&server.url), "{what}");
                "unreadable"
            }
            ExchangeError::Unreachable(error) => {
                assert_eq!(error.failure, aside_engine::ConnectionFailure::Closed);
                "closed"
            }
            ExchangeError::Oversized { most: 266 } => "oversized",
            error => panic!("{name}: {error:?}"),
        };
        assert_eq!((kind, answer_text(&outcome.reply).as_str()), (expected, text), "{name}");
        assert_eq!(server.bodies().len(), 1, "{name}");
    }
}

/// A body that lacks its last chunk fails as a TLS connection without close_notify does.
#[tokio::test]
async fn a_connection_that_breaks_after_the_end_of_a_reply_does_not_fail_it() {
    let body = chat(&[r#"{"reasoning_content":"Let me see."}"#, r#"{"content":"Four."}"#], "stop");
    let before_the_end = body.split("data: [DONE]").next().unwrap();
    let (before_the_reason, reason) = before_the_end.rsplit_once("data: {").unwrap();
    let (before_the_answer, answer) = before_the_reason.rsplit_once("data: {").unwrap();
    let content_last = format!("{before_the_answer}data: {{{reason}data: {{{answer}");
    #[rustfmt::skip]
    let cases = [
        ("after the last frame",                        body.as_str(),     true,  vec![]),
        ("after the finish reason, before the usage",   before_the_end,    true,  vec![NoteCode::UsageMissing]),
        ("before the finish reason",                    before_the_reason, false, vec![NoteCode::CutOff]),
        ("after content after the finish reason",       &content_last,     false, vec![NoteCode::CutOff]),
    ];
    for (name, body, is_complete, notes) in cases {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n".to_vec();
        let chunk = format!("{:x}\r\n{body}\r\n", body.len()).into_bytes();
        let server = ScriptedServer::start(vec![vec![ServerStep::Bytes(head), ServerStep::Bytes(chunk)]]).await;
        let (outcome, _) = to_deepseek(&server).run("hi").await;
        assert_eq!(outcome.result.is_ok(), is_complete, "{name}: {:?}", outcome.result);
        assert_eq!(outcome.reply.end.ending == Ending::CutOff, !is_complete, "{name}");
        assert_eq!(answer_text(&outcome.reply), "Four.", "{name}");
        let codes: Vec<NoteCode> = outcome.reply.notes.iter().map(|note| note.code).collect();
        assert_eq!(codes, notes, "{name}");
        assert_eq!(server.bodies().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_body_that_stays_open_after_the_end_of_a_reply_is_not_waited_for() {
    let body = chat(&[r#"{"reasoning_content":"Let me see."}"#, r#"{"content":"Four."}"#], "stop");
    let script = vec![stream_head(), ServerStep::Bytes(body.into_bytes()), ServerStep::WaitForDisconnect];
    let server = ScriptedServer::start(vec![script]).await;
    let ended = tokio::time::timeout(Duration::from_secs(60), to_deepseek(&server).run("hi")).await;
    let (outcome, sink) = ended.expect("long before the idle limit");
    assert_eq!((outcome.result, answer_text(&outcome.reply).as_str()), (Ok(()), "Four."));
    assert!(outcome.reply.notes.is_empty(), "{:?}", outcome.reply.notes);
    assert_eq!(sink.lines.last().map(String::as_str), Some("ended"));
    wait_until("the socket is closed", || server.client_is_gone()).await;
}

#[tokio::test]
async fn k4_errors_contain_no_keys() {
    let key = "sk-0123456789abcdef";
    let server = ScriptedServer::start(vec![refusal(&format!("Incorrect API key provided: {key}"))]).await;
    let with_key = |url: &str| {
        let exchange = TestExchange::new(endpoint(url, "deepseek", MODEL));
        let redacting = Exchange { redactor: Redactor::new([key.to_owned()]), ..Exchange::clone(&exchange.exchange) };
        TestExchange { exchange: Arc::new(redacting), ..exchange }
    };
    let (outcome, _) = with_key(&server.url).run("hi").await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.to_string(), "Incorrect API key provided: *** (400)");
    let (outcome, _) = with_key(&format!("no scheme/{key}")).run("hi").await;
    let url = "no scheme/***/chat/completions".to_owned();
    assert_eq!(outcome.result, Err(ExchangeError::Invalid(InvalidCall::BadUrl(url))));
}

#[tokio::test]
async fn a_cancelled_exchange_stops_wherever_it_is_and_closes_the_socket() {
    let thinking = ServerStep::Bytes(b"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"}}]}\n\n".to_vec());
    let busy = answer("503 Service Unavailable", "retry-after: 100\r\n", r#"{"error":{"message":"busy"}}"#);
    let wait = ServerStep::WaitForDisconnect;
    #[rustfmt::skip]
    let cases = [
        ("before the headers", vec![wait.clone()],                      true,  1, ""),
        ("in the stream",      vec![stream_head(), thinking, wait],     true,  1, "Hm"),
        ("before a retry",     busy,                                    false, 2, ""),
    ];
    for (name, script, is_open, n_expected, thinking) in cases {
        let server = ScriptedServer::start(vec![script]).await;
        let exchange = to_deepseek(&server);
        let cancel = exchange.cancel.clone();
        let sink = TestSink::default();
        let (text, n_lines) = (Arc::clone(&sink.text), Arc::clone(&sink.n_lines));
        let running = tokio::spawn(exchange.run_with("hi", sink));
        wait_until("the request arrived", || server.bodies().len() == 1).await;
        wait_until("the reply arrived", || {
            *text.lock().unwrap() == thinking && n_lines.load(Ordering::Acquire) == n_expected
        })
        .await;
        cancel.cancel();
        let stopped = tokio::time::timeout(Duration::from_secs(20), running).await;
        let (outcome, _) = stopped.expect("it stops at once").unwrap();
        assert_eq!(outcome.result, Err(ExchangeError::Cancelled), "{name}");
        let kept: Vec<_> = outcome.reply.blocks.iter().map(|block| matches!(block, Block::Thinking(_))).collect();
        assert_eq!(kept, vec![true; thinking.len() / 2], "{name}: what arrived is kept");
        if is_open {
            wait_until("the socket is closed", || server.client_is_gone()).await;
        }
    }
}

#[tokio::test]
async fn dropping_an_exchange_closes_the_socket() {
    let server = ScriptedServer::start(vec![vec![stream_head(), ServerStep::WaitForDisconnect]]).await;
    let running = tokio::spawn(to_deepseek(&server).run("hi"));
    wait_until("the request arrived", || server.bodies().len() == 1).await;
    running.abort();
    wait_until("the socket is closed", || server.client_is_gone()).await;
}

#[tokio::test]
async fn l1_answer_now_stops_the_thinking_and_never_the_answer() {
    let open = |delta: &str| {
        let delta = format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
        vec![stream_head(), ServerStep::Bytes(delta.into_bytes()), ServerStep::WaitForDisconnect]
    };
    let server = ScriptedServer::start(vec![open(r#"{"reasoning_content":"Hm"}"#)]).await;
    let exchange = to_deepseek(&server);
    let answer_now = exchange.answer_now.clone();
    let running = tokio::spawn(exchange.run("hi"));
    wait_until("the request arrived", || server.bodies().len() == 1).await;
    answer_now.request();
    assert_eq!(running.await.unwrap().0.result, Err(ExchangeError::AnswerNow));

    // The signal arrives after the answer has begun and before the rest of it is read.
    let server = ScriptedServer::start(vec![plain_reply()]).await;
    let permits = Arc::new(Semaphore::new(0));
    let sink = TestSink::holding_at("Four.", Arc::clone(&permits));
    let text = Arc::clone(&sink.text);
    let exchange = to_deepseek(&server);
    let answer_now = exchange.answer_now.clone();
    let running = tokio::spawn(exchange.run_with("hi", sink));
    wait_until("the answer has begun", || text.lock().unwrap().contains("Four.")).await;
    answer_now.request();
    permits.add_permits(1000);
    let (outcome, _) = running.await.unwrap();
    assert_eq!((outcome.result, answer_text(&outcome.reply).as_str()), (Ok(()), "Four."));
}

#[tokio::test]
async fn two_exchanges_run_at_once_on_one_value() {
    let waiting = ScriptedServer::start(vec![vec![stream_head(), ServerStep::WaitForDisconnect]]).await;
    let quick = ScriptedServer::start(vec![plain_reply()]).await;
    let first = to_deepseek(&waiting);
    let second = TestExchange { exchange: Arc::clone(&first.exchange), ..to_deepseek(&quick) };
    let cancel = first.cancel.clone();
    let first = tokio::spawn(first.run("hi"));
    wait_until("the first request arrived", || waiting.bodies().len() == 1).await;
    let (outcome, _) = second.run("2+2?").await;
    assert_eq!((outcome.result, answer_text(&outcome.reply).as_str()), (Ok(()), "Four."));
    assert!(!first.is_finished(), "the other one is still running");
    cancel.cancel();
    assert_eq!(first.await.unwrap().0.result, Err(ExchangeError::Cancelled));
}
