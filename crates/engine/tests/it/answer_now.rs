//! Answering now instead of continuing to think: the turn continues, every dialect accepts the request, and nothing
//! is lost.

use std::time::Duration;

use aside_core::block::Block;
use aside_core::event::{BlockOpening, Event};
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_engine::{AnswerNowSignal, Front, Session, Update};
use tokio_util::sync::CancellationToken;

use crate::session_support::{Nobody, TestFront, send, user};
use crate::simulated::{branch, dialect_ids, simulated_session, simulator};
use crate::support::TestDir;

/// A front end that asks for the answer as soon as the model starts thinking.
struct ImpatientFront {
    answer_now: AnswerNowSignal,
    recorded: TestFront,
    /// The request bodies, in order.
    bodies: Vec<String>,
}

impl Front for ImpatientFront {
    fn on_update(&mut self, update: Update<'_>) {
        if let Update::Sending { body, .. } = &update {
            self.bodies.push((*body).to_owned());
        }
        if let Update::Event { event: Event::Opened { opening: BlockOpening::Thinking { .. }, .. }, .. } = &update
            && self.bodies.len() == 1
        {
            let answer_now = self.answer_now.clone();
            // After the engine has started to wait again.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(30)).await;
                answer_now.request();
            });
        }
        self.recorded.on_update(update);
    }
}

/// A front end that asks for the answer with every delta of it.
struct NaggingFront {
    answer_now: AnswerNowSignal,
    recorded: TestFront,
    requests: usize,
}

impl Front for NaggingFront {
    fn on_update(&mut self, update: Update<'_>) {
        if let Update::Event { event: Event::Grew { .. }, .. } = &update {
            self.answer_now.request();
            self.requests += 1;
        }
        self.recorded.on_update(update);
    }
}

async fn turn_answering_now(session: &mut Session, prompt: &str) -> (TurnEnd, ImpatientFront) {
    let mut front =
        ImpatientFront { answer_now: session.answer_now_signal(), recorded: TestFront::default(), bodies: Vec::new() };
    let end = session.turn(user(prompt), &mut front, &Nobody, &CancellationToken::new()).await;
    (end, front)
}

fn has_text(message: &Message) -> bool {
    message.blocks.iter().any(|block| matches!(block, Block::Text(text) if !text.text.trim().is_empty()))
}

#[tokio::test]
async fn l1_every_dialect_accepts_the_answer_now_request() {
    let simulator = simulator().await;
    // Concurrently, because most of the time is waiting.
    let all = dialect_ids().into_iter().map(|dialect| answers_now(&simulator, dialect));
    futures_util::future::join_all(all).await;
}

async fn answers_now(simulator: &aside_sim::RunningSimulator, dialect: String) {
    let test_dir = TestDir::new(&format!("hurried-{dialect}"));
    test_dir.file("a.txt", "a");
    let mut session = simulated_session(simulator, &dialect, &test_dir);
    // Some history with thinking and tool calls, so that there is something to send back.
    let (end, _) = send(&mut session, "sim: tool-loop 1").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}");
    let before = branch(&session).len();
    let (end, front) = turn_answering_now(&mut session, "sim: loop rate=200 tokens=4000").await;
    let lines = &front.recorded.lines;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("notice")), "{dialect}: nothing is repaired: {lines:?}");
    let messages = branch(&session).split_off(before);
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant], "{dialect}");
    assert!(messages[1].interrupted && messages[1].thinking().next().is_some(), "{dialect}: the thinking is kept");
    assert!(messages[2].is_answer_now(), "{dialect}");
    assert!(has_text(&messages[3]) && !messages[3].interrupted, "{dialect}: and there is an answer");
    // The conversation continues normally.
    let (end, recorded) = send(&mut session, "sim: tool-loop 2").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", recorded.lines);
    assert!(!recorded.lines.iter().any(|line| line.starts_with("notice")), "{dialect}: {:?}", recorded.lines);
    // Undoing removes the whole turn, not only the nudge.
    session.history.undo();
    session.history.undo();
    assert_eq!(branch(&session).len(), before, "{dialect}");
}

#[tokio::test]
async fn l1_only_that_one_request_asks_for_less_thinking() {
    let simulator = simulator().await;
    let test_dir = TestDir::new("least");
    let mut session = simulated_session(&simulator, "deepseek", &test_dir);
    let (end, front) = turn_answering_now(&mut session, "sim: loop rate=200 tokens=4000").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", front.recorded.lines);
    let [first, second] = front.bodies.as_slice() else { panic!("{} requests", front.bodies.len()) };
    let off = r#""thinking":{"type":"disabled"}"#;
    assert!(!first.contains("answer now") && !first.contains(off), "{first}");
    assert!(second.contains("answer now") && second.contains(off), "{second}");
    let next = session.encode(&[]).body;
    assert!(!next.contains(off), "{next}");
}

#[tokio::test]
async fn l1_an_answer_that_has_begun_is_not_interrupted() {
    let simulator = simulator().await;
    let test_dir = TestDir::new("answering");
    let mut session = simulated_session(&simulator, "deepseek", &test_dir);
    let mut front =
        NaggingFront { answer_now: session.answer_now_signal(), recorded: TestFront::default(), requests: 0 };
    let prompt = user("sim: plain rate=600 tokens=60");
    let end = session.turn(prompt, &mut front, &Nobody, &CancellationToken::new()).await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", front.recorded.lines);
    assert!(front.requests > 1, "the answer came in several deltas");
    let nudges = branch(&session).iter().filter(|message| message.is_answer_now()).count();
    assert_eq!(nudges, 0, "{:?}", front.recorded.lines);
}
