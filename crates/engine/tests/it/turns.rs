//! Whole turns: what goes out, what is told, what is kept.

use std::time::{Duration, Instant};

use aside_core::settings::Layer;
use aside_core::turn::{Told, TurnEnd};
use aside_engine::Timeouts;
use aside_engine::tools::{Arrived, Job, Tool};
use tokio_util::sync::CancellationToken;

use crate::server::{Play, Server, answer, stream, stream_head};
use crate::talk::{Heard, Nobody, chat, say, session, session_with, user};

const MODEL: &str = "deepseek-v4-pro";

fn thinking_answer() -> String {
    chat(&[r#"{"reasoning_content":"Let me see."}"#, r#"{"content":"Four."}"#], "stop")
}

fn calling() -> String {
    let call =
        r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}"#;
    chat(&[r#"{"reasoning_content":"I look."}"#, call], "tool_calls")
}

#[tokio::test]
async fn an_answer_is_told_kept_and_its_thinking_apart() {
    let server = Server::playing(vec![stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, heard) = say(&mut session, "2+2?").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!((heard.thinking.as_str(), heard.text.as_str()), ("Let me see.", "Four."));
    assert_eq!(heard.lines, ["recorded User", "sending 1", "recorded Assistant", "ended Answered"]);
    let branch = session.history.branch();
    let (_, reply) = branch.last().unwrap();
    assert_eq!(reply.thinking_text().as_deref(), Some("Let me see."));
    let span = reply.thinking().next().unwrap().span.unwrap();
    assert!(span.ended >= span.started, "d18: the times are measured");
    assert_eq!(reply.origin.as_ref().unwrap().endpoint.as_deref(), Some(server.url.as_str()));
}

#[tokio::test]
async fn l1_a_tool_loop_sends_the_thinking_back_with_its_call() {
    let server = Server::playing(vec![stream(&calling()), stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, heard) = say(&mut session, "look").await;
    assert_eq!(end, TurnEnd::Answered);
    assert!(
        heard.lines.contains(&"ended look true".to_owned()),
        "an unknown tool is an error result: {:?}",
        heard.lines
    );
    let requests = server.requests();
    let messages = requests[1]["messages"].as_array().unwrap();
    let assistant = &messages[1];
    assert_eq!(assistant["reasoning_content"], "I look.");
    assert_eq!(assistant["tool_calls"][0]["id"], "c1");
    assert_eq!(messages[2]["role"], "tool");
}

#[tokio::test]
async fn busy_and_broken_providers_are_asked_again_before_the_first_byte() {
    for status in ["429 Too Many Requests", "500 Internal Server Error", "529 Overloaded"] {
        let busy = answer(status, "retry-after-ms: 5\r\n", r#"{"error":{"message":"busy"}}"#);
        let server = Server::playing(vec![busy, stream(&thinking_answer())]).await;
        let mut session = session(&server.url, "deepseek", MODEL);
        let (end, heard) = say(&mut session, "hi").await;
        assert_eq!(end, TurnEnd::Answered, "{status}");
        assert!(heard.lines.contains(&"retrying 1".to_owned()), "{status}: {:?}", heard.lines);
        assert_eq!(server.requests().len(), 2, "{status}");
    }
}

#[tokio::test]
async fn nothing_is_sent_again_after_something_was_shown() {
    let cut = vec![stream_head(), Play::Bytes(b"data: {\"choices\":[{\"delta\":{\"content\":\"Fo\"}}]}\n\n".to_vec())];
    let server = Server::playing(vec![cut]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, heard) = say(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::CutOff);
    assert_eq!(heard.text, "Fo");
    assert_eq!(server.requests().len(), 1);
    let branch = session.history.branch();
    assert!(branch.last().unwrap().1.interrupted, "what came is kept and marked");
}

#[tokio::test]
async fn a_reply_over_its_bound_is_kept_up_to_there_and_the_connection_is_closed() {
    let delta = |text: &str| {
        let text = text.repeat(1000);
        Play::Bytes(format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into_bytes())
    };
    // The provider would wait for ever: only a closed connection ends the turn.
    let server = Server::playing(vec![vec![stream_head(), delta("ab"), delta("cd"), Play::UntilGone]]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    session.settings.set(Layer::Session, "reply.maxBytes", "3256").unwrap();
    let (end, heard) = say(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Oversized { most: 3256 });
    assert_eq!(heard.text, format!("{}{}", "ab".repeat(1000), "cd".repeat(500)));
    let branch = session.history.branch();
    assert!(branch.last().unwrap().1.interrupted, "what came is kept and marked");
}

#[tokio::test]
async fn e11_a_refusal_about_thinking_is_healed_told_and_remembered() {
    let words = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    let refusal = answer("400 Bad Request", "", &format!(r#"{{"error":{{"message":"{words}"}}}}"#));
    let fine = stream(&thinking_answer());
    let server = Server::playing(vec![refusal, fine.clone(), fine]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, heard) = say(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Answered);
    let told: Vec<&String> = heard.lines.iter().filter(|line| line.starts_with("told")).collect();
    assert_eq!(told.len(), 1, "one line: {told:?}");
    let (end, heard) = say(&mut session, "more").await;
    assert_eq!(end, TurnEnd::Answered);
    assert!(!heard.lines.iter().any(|line| line.starts_with("told")), "the cure is remembered");
}

#[tokio::test]
async fn a_refusal_that_nobody_can_repair_comes_in_the_providers_words() {
    let body = r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#;
    let server = Server::playing(vec![answer("402 Payment Required", "", body)]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, _) = say(&mut session, "hi").await;
    let TurnEnd::Failed(error) = end else { panic!("{end:?}") };
    assert_eq!((error.message.as_str(), error.status), ("Insufficient Balance", Some(402)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn cancelling_closes_the_socket_and_keeps_what_came() {
    let slow = vec![
        stream_head(),
        Play::Bytes(b"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Let me\"}}]}\n\n".to_vec()),
        Play::UntilGone,
    ];
    let server = Server::playing(vec![slow]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        stop.cancel();
    });
    let began = Instant::now();
    let mut heard = Heard::default();
    let end = session.turn(user("hi"), &mut heard, &Nobody, &cancel).await;
    assert_eq!(end, TurnEnd::Interrupted);
    while !server.client_is_gone() {
        assert!(began.elapsed() < Duration::from_secs(60), "the provider still sees an open socket");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let branch = session.history.branch();
    let (_, partial) = branch.last().unwrap();
    assert!(partial.interrupted);
    assert_eq!(partial.thinking_text().as_deref(), Some("Let me"));
}

#[tokio::test]
async fn failures_on_the_way_say_what_happened() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let html = answer("200 OK", "content-type: text/html\r\n", "<html><body>Sign in</body></html>");
    let silent = vec![stream_head(), Play::UntilGone];
    let slow_head = vec![Play::UntilGone];
    #[rustfmt::skip]
    let cases = [
        ("nobody listens",   None,            "cannot be reached"),
        ("not our protocol", Some(html),      "text/html"),
        ("a stall",          Some(silent),    "was silent for 1 s"),
        ("slow headers",     Some(slow_head), "was silent for 1 s"),
    ];
    for (name, script, expected) in cases {
        let server = Server::playing(script.clone().into_iter().collect()).await;
        let url = if script.is_some() { server.url.clone() } else { format!("http://{address}") };
        let timeouts = Timeouts { connect: Duration::from_secs(1), idle: Duration::from_secs(1) };
        let mut session = session_with(&url, "deepseek", MODEL, timeouts);
        let (end, heard) = say(&mut session, "hi").await;
        let TurnEnd::Unreachable(what) = &end else { panic!("{name}: {end:?}") };
        assert!(what.contains(expected), "{name}: {what}");
        assert!(!heard.lines.iter().any(|line| line.starts_with("retrying")), "{name}: {:?}", heard.lines);
    }
}

#[tokio::test]
async fn d17_a_response_cut_at_every_byte_is_the_same_response() {
    let body = thinking_answer();
    let bytes = body.as_bytes();
    let pieces: Vec<Play> = bytes.iter().map(|byte| Play::Bytes(vec![*byte])).collect();
    let script = std::iter::once(stream_head()).chain(pieces).collect();
    let server = Server::playing(vec![script]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, heard) = say(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!((heard.thinking.as_str(), heard.text.as_str()), ("Let me see.", "Four."));
}

#[tokio::test]
async fn e11_the_repair_is_said_with_the_rule_that_asked_for_it() {
    let words = "Invalid `signature` in `thinking` block";
    let refusal = answer("400 Bad Request", "", &format!(r#"{{"type":"error","error":{{"message":"{words}"}}}}"#));
    let server = Server::playing(vec![refusal.clone(), refusal]).await;
    let mut session = session(&server.url, "anthropic", "claude-sonnet-5");
    let mut told = Vec::new();
    struct Listening<'a>(&'a mut Vec<Told>);
    impl aside_engine::Front for Listening<'_> {
        fn hear(&mut self, update: aside_engine::Update<'_>) {
            if let aside_engine::Update::Told(told) = update {
                self.0.push(told.clone());
            }
        }
    }
    let end = session.turn(user("hi"), &mut Listening(&mut told), &Nobody, &CancellationToken::new()).await;
    assert!(matches!(end, TurnEnd::Failed(_)), "a repair that does not help is the end: {end:?}");
    assert!(matches!(told.first(), Some(Told::Repaired { row, .. }) if row == "bad_signature"), "{told:?}");
}

/// Offered and never called.
struct Late;

impl Tool for Late {
    fn spec(&self) -> aside_core::conversation::Tool {
        aside_core::conversation::Tool {
            name: "late".to_owned(),
            description: String::new(),
            parameters: r#"{"type":"object","properties":{}}"#.to_owned(),
        }
    }

    fn plan(&self, _arguments: &str) -> Result<Box<dyn Job>, String> {
        Err("not here".to_owned())
    }
}

#[tokio::test]
async fn l2_the_first_request_waits_for_tools_on_their_way() {
    let server = Server::playing(vec![stream(&thinking_answer()), stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    session.expect_tools(Box::pin(async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Arrived { tools: vec![Box::new(Late), Box::new(Late)], notes: vec!["one did not come".to_owned()] }
    }));
    let (end, heard) = say(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(
        heard.lines.get(..4).unwrap(),
        ["recorded User", "noted there is already a tool `late`", "noted one did not come", "sending 1"]
    );
    let (_, heard) = say(&mut session, "again").await;
    assert!(!heard.lines.iter().any(|line| line.starts_with("noted")), "{:?}", heard.lines);
    for request in server.requests() {
        assert_eq!(request["tools"][0]["function"]["name"], "late");
    }
}

#[tokio::test]
async fn l2_a_turn_stopped_while_tools_are_on_their_way_does_not_lose_them() {
    let server = Server::playing(vec![stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (arrive, come) = tokio::sync::oneshot::channel::<()>();
    session.expect_tools(Box::pin(async {
        drop(come.await);
        Arrived { tools: vec![Box::new(Late)], notes: Vec::new() }
    }));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let end = session.turn(user("hi"), &mut Heard::default(), &Nobody, &cancel).await;
    assert_eq!(end, TurnEnd::Interrupted);
    arrive.send(()).unwrap();
    let (end, _) = say(&mut session, "again").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(server.requests()[0]["tools"][0]["function"]["name"], "late");
}
