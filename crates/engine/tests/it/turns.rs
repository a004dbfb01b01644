//! Whole turns: requests, updates and history.

use std::time::{Duration, Instant};

use aside_core::block::{Block, Media};
use aside_core::connection_failure::ConnectionError;
use aside_core::event::ContextOverflow;
use aside_core::message::{Message, Role};
use aside_core::settings::Layer;
use aside_core::turn::{TurnEnd, TurnNotice};
use aside_engine::tools::{LoadedTools, PlannedCall, Tool};
use aside_engine::{SteeringQueue, Timeouts};
use tokio_util::sync::CancellationToken;

use crate::scripted_server::{ScriptedServer, ServerStep, answer, stream, stream_head};
use crate::session_support::{Nobody, TestFront, chat, send, session, session_with, user};

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
async fn an_answer_is_reported_and_stored_with_its_thinking_separate() {
    let server = ScriptedServer::start(vec![stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, recorded) = send(&mut session, "2+2?").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!((recorded.thinking.as_str(), recorded.text.as_str()), ("Let me see.", "Four."));
    assert_eq!(recorded.lines, ["recorded User", "sending 1", "recorded Assistant", "ended Answered"]);
    let branch = session.history.branch();
    let (_, reply) = branch.last().unwrap();
    assert_eq!(reply.thinking_text().as_deref(), Some("Let me see."));
    let span = reply.thinking().next().unwrap().span.unwrap();
    assert!(span.ended >= span.started, "d18: the times are measured");
    assert_eq!(reply.origin.as_ref().unwrap().endpoint.as_deref(), Some(server.url.as_str()));
}

#[tokio::test]
async fn e17_a_session_says_once_what_it_cannot_send() {
    let reply =
        r#"{"message":{"role":"assistant","content":[{"type":"text","text":"Four."}]},"finish_reason":"COMPLETE"}"#;
    let server = ScriptedServer::start(vec![answer("200 OK", "", reply), answer("200 OK", "", reply)]).await;
    let mut session = session(&server.url, "cohere", "command-a-reasoning-08-2025");
    let mut with_image = user("What is it?");
    with_image.blocks.push(Block::Media(Media::image("image/png".to_owned(), "aGk=".to_owned())));
    let mut lines = Vec::new();
    for _ in 0..2 {
        let mut recorded = TestFront::default();
        let cancel = CancellationToken::new();
        let end = session.turn(with_image.clone(), &mut recorded, &Nobody, &cancel).await;
        assert_eq!(end, TurnEnd::Answered);
        lines.extend(recorded.lines.into_iter().filter(|line| line.starts_with("left out")));
    }
    let said = "left out messages[0].blocks[1] is not sent: the cohere protocol has no images in user messages";
    assert_eq!(lines, [said]);
}

#[tokio::test]
async fn l1_a_tool_loop_sends_the_thinking_back_with_its_call() {
    let server = ScriptedServer::start(vec![stream(&calling()), stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, recorded) = send(&mut session, "look").await;
    assert_eq!(end, TurnEnd::Answered);
    assert!(
        recorded.lines.contains(&"ended look true".to_owned()),
        "an unknown tool is an error result: {:?}",
        recorded.lines
    );
    let requests = server.requests();
    let messages = requests[1]["messages"].as_array().unwrap();
    let assistant = &messages[1];
    assert_eq!(assistant["reasoning_content"], "I look.");
    assert_eq!(assistant["tool_calls"][0]["id"], "c1");
    assert_eq!(messages[2]["role"], "tool");
}

#[tokio::test]
async fn overload_and_server_errors_are_retried_before_the_first_byte() {
    for status in ["429 Too Many Requests", "500 Internal Server Error", "529 Overloaded"] {
        let busy = answer(status, "retry-after-ms: 5\r\n", r#"{"error":{"message":"busy"}}"#);
        let server = ScriptedServer::start(vec![busy, stream(&thinking_answer())]).await;
        let mut session = session(&server.url, "deepseek", MODEL);
        let (end, recorded) = send(&mut session, "hi").await;
        assert_eq!(end, TurnEnd::Answered, "{status}");
        assert!(recorded.lines.contains(&"retrying 1".to_owned()), "{status}: {:?}", recorded.lines);
        assert_eq!(server.requests().len(), 2, "{status}");
    }
}

/// Some providers say with a 429 that an account has no credit. Others use the same words for a rate limit.
#[tokio::test]
async fn t18_an_account_without_credit_is_not_asked_again_and_a_rate_limit_in_the_same_words_is() {
    let quota = r#"{"error":{"message":"You exceeded your current quota, please check your plan.","code":"insufficient_quota"}}"#;
    let by_code = r#"{"error":{"message":"Denied","code":"insufficient_quota"}}"#;
    let delay =
        r#"{"error":{"code":429,"message":"You exceeded your current quota.","details":[{"retryDelay":"0.005s"}]}}"#;
    let low = r#"{"error":{"message":"Your credit balance is too low."}}"#;
    let busy = r#"{"error":{"message":"Rate limit reached."}}"#;
    #[rustfmt::skip]
    let cases = [
        ("no credit",             "429 Too Many Requests", "",                           quota,   false, true),
        ("only the code",         "429 Too Many Requests", "",                           by_code, false, true),
        ("another status",        "400 Bad Request",       "",                           low,     false, true),
        ("asked to retry",        "429 Too Many Requests", "x-should-retry: true\r\n",   quota,   false, true),
        ("a pause in the header", "429 Too Many Requests", "retry-after-ms: 5\r\n",      quota,   true,  false),
        ("a pause in the body",   "429 Too Many Requests", "",                           delay,   true,  false),
        ("a rate limit",          "429 Too Many Requests", "retry-after-ms: 5\r\n",      busy,    true,  false),
    ];
    for (name, status, headers, body, is_retried, lacks_credit) in cases {
        let refusals = std::iter::repeat_n(answer(status, headers, body), 4).collect();
        let server = ScriptedServer::start(refusals).await;
        let mut session = session(&server.url, "deepseek", MODEL);
        let (end, recorded) = send(&mut session, "hi").await;
        let TurnEnd::Failed(error) = end else { panic!("{name}: {end:?}") };
        assert_eq!(error.lacks_credit, lacks_credit, "{name}: {:?}", recorded.lines);
        assert_eq!(server.requests().len(), if is_retried { 4 } else { 1 }, "{name}: {:?}", recorded.lines);
    }
}

#[tokio::test]
async fn a_request_is_not_retried_after_something_was_shown() {
    let cut =
        vec![stream_head(), ServerStep::Bytes(b"data: {\"choices\":[{\"delta\":{\"content\":\"Fo\"}}]}\n\n".to_vec())];
    let server = ScriptedServer::start(vec![cut]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, recorded) = send(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::CutOff);
    assert_eq!(recorded.text, "Fo");
    assert_eq!(server.requests().len(), 1);
    let branch = session.history.branch();
    assert!(branch.last().unwrap().1.interrupted, "what came is kept and marked");
}

#[tokio::test]
async fn a_reply_over_the_size_limit_is_cut_there_and_the_connection_is_closed() {
    let delta = |text: &str| {
        let text = text.repeat(1000);
        ServerStep::Bytes(format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into_bytes())
    };
    // The server would wait forever: only a closed connection ends the turn.
    let server =
        ScriptedServer::start(vec![vec![stream_head(), delta("ab"), delta("cd"), ServerStep::WaitForDisconnect]]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    session.settings.set(Layer::Session, "reply.maxBytes", "3256").unwrap();
    let (end, recorded) = send(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Oversized { most: 3256 });
    assert_eq!(recorded.text, format!("{}{}", "ab".repeat(1000), "cd".repeat(500)));
    let branch = session.history.branch();
    assert!(branch.last().unwrap().1.interrupted, "what came is kept and marked");
}

#[tokio::test]
async fn e11_a_refusal_about_thinking_is_repaired_reported_and_remembered() {
    let words = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    let refusal = answer("400 Bad Request", "", &format!(r#"{{"error":{{"message":"{words}"}}}}"#));
    let fine = stream(&thinking_answer());
    let server = ScriptedServer::start(vec![fine.clone(), refusal, fine]).await;
    let mut session = session(&server.url, "generic", MODEL);
    send(&mut session, "hi").await;
    let (end, recorded) = send(&mut session, "more").await;
    assert_eq!(end, TurnEnd::Answered);
    let notices: Vec<&String> = recorded.lines.iter().filter(|line| line.starts_with("notice")).collect();
    assert_eq!(notices.len(), 1, "one line: {notices:?}");
    let (end, recorded) = send(&mut session, "again").await;
    assert_eq!(end, TurnEnd::Answered);
    assert!(!recorded.lines.iter().any(|line| line.starts_with("notice")), "the repair is remembered");
    // It can be stored and given to another session.
    let stored: Vec<String> = session.learned_repairs.iter().map(|row| serde_json::to_string(&row).unwrap()).collect();
    let mut next = session_with(&server.url, "generic", MODEL, Timeouts::default());
    next.learned_repairs = stored.iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(next.learned_repairs, session.learned_repairs);
    send(&mut next, "hi").await;
    send(&mut next, "more").await;
    let bodies = server.bodies();
    assert_eq!(bodies[5], bodies[2], "the request is repaired from the start");
    assert_ne!(bodies[2], bodies[1]);
}

#[tokio::test]
async fn an_unrepairable_refusal_is_reported_in_the_providers_words() {
    let body = r#"{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}"#;
    let server = ScriptedServer::start(vec![answer("402 Payment Required", "", body)]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, _) = send(&mut session, "hi").await;
    let TurnEnd::Failed(error) = end else { panic!("{end:?}") };
    assert_eq!((error.message.as_str(), error.status), ("Insufficient Balance", Some(402)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn cancelling_closes_the_socket_and_keeps_the_partial_reply() {
    let slow = vec![
        stream_head(),
        ServerStep::Bytes(b"data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Let me\"}}]}\n\n".to_vec()),
        ServerStep::WaitForDisconnect,
    ];
    let server = ScriptedServer::start(vec![slow]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(150)).await;
        stop.cancel();
    });
    let began = Instant::now();
    let mut recorded = TestFront::default();
    let end = session.turn(user("hi"), &mut recorded, &Nobody, &cancel).await;
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
async fn connection_failures_say_what_happened() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let html = answer("200 OK", "content-type: text/html\r\n", "<html><body>Sign in</body></html>");
    let silent = vec![stream_head(), ServerStep::WaitForDisconnect];
    let slow_head = vec![ServerStep::WaitForDisconnect];
    #[rustfmt::skip]
    let cases = [
        ("nobody listens",   None,            "cannot be reached"),
        ("not our protocol", Some(html),      "text/html"),
        ("a stall",          Some(silent),    "was silent for 1 s"),
        ("slow headers",     Some(slow_head), "was silent for 1 s"),
    ];
    for (name, script, expected) in cases {
        let server = ScriptedServer::start(script.clone().into_iter().collect()).await;
        let url = if script.is_some() { server.url.clone() } else { format!("http://{address}") };
        let timeouts =
            Timeouts { connect: Duration::from_secs(1), idle: Duration::from_secs(1), ..Timeouts::default() };
        let mut session = session_with(&url, "deepseek", MODEL, timeouts);
        let (end, recorded) = send(&mut session, "hi").await;
        let TurnEnd::Unreachable(ConnectionError { what, .. }) = &end else { panic!("{name}: {end:?}") };
        assert!(what.contains(expected), "{name}: {what}");
        assert!(!recorded.lines.iter().any(|line| line.starts_with("retrying")), "{name}: {:?}", recorded.lines);
    }
}

#[tokio::test]
async fn d17_a_response_cut_at_every_byte_is_the_same_response() {
    let body = thinking_answer();
    let bytes = body.as_bytes();
    let pieces: Vec<ServerStep> = bytes.iter().map(|byte| ServerStep::Bytes(vec![*byte])).collect();
    let script = std::iter::once(stream_head()).chain(pieces).collect();
    let server = ScriptedServer::start(vec![script]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (end, recorded) = send(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!((recorded.thinking.as_str(), recorded.text.as_str()), ("Let me see.", "Four."));
}

#[tokio::test]
async fn e11_the_repair_is_reported_with_its_rule() {
    let words = "Invalid `signature` in `thinking` block";
    let refusal = answer("400 Bad Request", "", &format!(r#"{{"type":"error","error":{{"message":"{words}"}}}}"#));
    let server = ScriptedServer::start(vec![refusal.clone(), refusal]).await;
    let mut session = session(&server.url, "anthropic", "claude-sonnet-5");
    let mut notices = Vec::new();
    struct NoticeFront<'a>(&'a mut Vec<TurnNotice>);
    impl aside_engine::Front for NoticeFront<'_> {
        fn on_update(&mut self, update: aside_engine::Update<'_>) {
            if let aside_engine::Update::TurnNotice(notices) = update {
                self.0.push(notices.clone());
            }
        }
    }
    let end = session.turn(user("hi"), &mut NoticeFront(&mut notices), &Nobody, &CancellationToken::new()).await;
    assert!(matches!(end, TurnEnd::Failed(_)), "a repair that does not help is the end: {end:?}");
    assert!(matches!(notices.first(), Some(TurnNotice::Repaired { row, .. }) if row == "bad_signature"), "{notices:?}");
}

/// Sends a message while a reply streams, and takes it back once the reply is recorded, before its tools run.
struct TakingBackFront {
    queue: SteeringQueue,
    taken_back: Vec<Message>,
}

impl aside_engine::Front for TakingBackFront {
    fn on_update(&mut self, update: aside_engine::Update<'_>) {
        match update {
            aside_engine::Update::Sending { step: 1, .. } => self.queue.push(user("wait")),
            aside_engine::Update::Recorded(message) if message.role == Role::Assistant => {
                self.taken_back.extend(self.queue.take_last());
            }
            _ => (),
        }
    }
}

#[tokio::test]
async fn t20_a_message_can_be_taken_back_until_the_tools_of_the_step_have_run() {
    let server = ScriptedServer::start(vec![stream(&calling()), stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let mut front = TakingBackFront { queue: session.steering_queue(), taken_back: Vec::new() };
    let end = session.turn(user("look"), &mut front, &Nobody, &CancellationToken::new()).await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(front.taken_back, [user("wait")]);
    assert!(!server.requests()[1].to_string().contains("wait"), "{:?}", server.requests()[1]);
}

/// A tool that is offered but never called.
struct UncalledTool;

impl Tool for UncalledTool {
    fn spec(&self) -> aside_core::conversation::ToolSpec {
        aside_core::conversation::ToolSpec::new("late", String::new(), r#"{"type":"object","properties":{}}"#)
    }

    fn plan(&self, _arguments: &str) -> Result<Box<dyn PlannedCall>, String> {
        Err("not here".to_owned())
    }
}

#[tokio::test]
async fn l2_the_first_request_waits_for_tools_still_loading() {
    let server = ScriptedServer::start(vec![stream(&thinking_answer()), stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    session.expect_tools(Box::pin(async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        LoadedTools {
            tools: vec![Box::new(UncalledTool), Box::new(UncalledTool)],
            notes: vec!["one did not come".to_owned()],
        }
    }));
    let (end, recorded) = send(&mut session, "hi").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(
        recorded.lines.get(..4).unwrap(),
        ["recorded User", "noted there is already a tool `late`", "noted one did not come", "sending 1"]
    );
    let (_, recorded) = send(&mut session, "again").await;
    assert!(!recorded.lines.iter().any(|line| line.starts_with("noted")), "{:?}", recorded.lines);
    for request in server.requests() {
        assert_eq!(request["tools"][0]["function"]["name"], "late");
    }
}

#[tokio::test]
async fn l2_tools_still_loading_when_a_turn_is_cancelled_are_not_lost() {
    let server = ScriptedServer::start(vec![stream(&thinking_answer())]).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    let (arrive, come) = tokio::sync::oneshot::channel::<()>();
    session.expect_tools(Box::pin(async {
        drop(come.await);
        LoadedTools { tools: vec![Box::new(UncalledTool)], notes: Vec::new() }
    }));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let end = session.turn(user("hi"), &mut TestFront::default(), &Nobody, &cancel).await;
    assert_eq!(end, TurnEnd::Interrupted);
    arrive.send(()).unwrap();
    let (end, _) = send(&mut session, "again").await;
    assert_eq!(end, TurnEnd::Answered);
    assert_eq!(server.requests()[0]["tools"][0]["function"]["name"], "late");
}

/// A refusal because of the window, in the words of a provider.
fn too_long() -> Vec<ServerStep> {
    let body = r#"{"error":{"message":"This model's maximum context length is 1000 tokens. However, you requested 1200 tokens (reasoning_content included).","code":"invalid_request_error"}}"#;
    answer("400 Bad Request", "", body)
}

#[tokio::test]
async fn t18_a_conversation_that_is_too_long_is_compacted_and_sent_once_more() {
    let summary = chat(&[r#"{"content":"They added numbers."}"#], "stop");
    let steps = vec![stream(&thinking_answer()), too_long(), stream(&summary), stream(&thinking_answer())];
    let server = ScriptedServer::start(steps).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    assert_eq!(send(&mut session, "2+2?").await.0, TurnEnd::Answered);
    let (end, recorded) = send(&mut session, "3+1?").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", recorded.lines);
    assert!(recorded.lines.contains(&"compacted 2 TooLong".to_owned()), "{:?}", recorded.lines);
    assert!(!recorded.lines.iter().any(|line| line.contains("repair")), "{:?}", recorded.lines);
    let bodies = server.bodies();
    let [_, refused, _, last] = bodies.as_slice() else { panic!("{bodies:?}") };
    assert!(refused.contains("2+2?") && !last.contains("2+2?"), "{last}");
    assert!(last.contains("They added numbers.") && last.contains("3+1?"), "{last}");
    assert_eq!(session.totals.repairs, 0);
}

#[tokio::test]
async fn t18_a_conversation_is_compacted_once_a_turn_and_only_if_there_is_an_older_turn() {
    let server = ScriptedServer::start(vec![too_long()]).await;
    let mut only_turn = session(&server.url, "deepseek", MODEL);
    let (end, recorded) = send(&mut only_turn, "2+2?").await;
    assert!(matches!(end, TurnEnd::Failed(_)), "{:?}", recorded.lines);
    assert_eq!(server.requests().len(), 1);
    let summary = chat(&[r#"{"content":"They added numbers."}"#], "stop");
    let steps = vec![stream(&thinking_answer()), too_long(), stream(&summary), too_long()];
    let server = ScriptedServer::start(steps).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    assert_eq!(send(&mut session, "2+2?").await.0, TurnEnd::Answered);
    let (end, recorded) = send(&mut session, "3+1?").await;
    let TurnEnd::Failed(error) = end else { panic!("{end:?}") };
    assert_eq!((error.status, error.overflow), (Some(400), ContextOverflow::Final), "{:?}", recorded.lines);
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn t18_if_a_conversation_that_is_too_long_cannot_be_summarised_the_end_says_so() {
    let no_summary = chat(&[r#"{"reasoning_content":"I think."}"#], "stop");
    let steps = vec![stream(&thinking_answer()), too_long(), stream(&no_summary)];
    let server = ScriptedServer::start(steps).await;
    let mut session = session(&server.url, "deepseek", MODEL);
    assert_eq!(send(&mut session, "2+2?").await.0, TurnEnd::Answered);
    let (end, recorded) = send(&mut session, "3+1?").await;
    let TurnEnd::Failed(error) = end else { panic!("{end:?}") };
    assert_eq!((error.status, error.overflow), (Some(400), ContextOverflow::CompactionFailed));
    let note = "older turns could not be summarised: the model gave no summary";
    assert!(recorded.lines.iter().any(|line| line.contains(note)), "{:?}", recorded.lines);
    assert_eq!(server.requests().len(), 3);
}
