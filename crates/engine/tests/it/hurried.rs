//! The answer instead of more thinking: the same turn, a request that every
//! dialect takes, and everything kept.

use std::time::Duration;

use aside_core::block::Block;
use aside_core::event::{Event, Opening};
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_engine::{Front, Hurry, Session, Update};
use tokio_util::sync::CancellationToken;

use crate::simulated::{branch, ids, simulator, talk_to};
use crate::support::Scratch;
use crate::talk::{Heard, Nobody, say, user};

/// Wants the answer as soon as a thought has begun.
struct Impatient {
    hurry: Hurry,
    heard: Heard,
    /// What was sent, in order.
    bodies: Vec<String>,
}

impl Front for Impatient {
    fn hear(&mut self, update: Update<'_>) {
        if let Update::Sending { body, .. } = &update {
            self.bodies.push((*body).to_owned());
        }
        if let Update::Event { event: Event::Opened { opening: Opening::Thinking { .. }, .. }, .. } = &update
            && self.bodies.len() == 1
        {
            let hurry = self.hurry.clone();
            // Once the engine waits again.
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(30)).await;
                hurry.answer_now();
            });
        }
        self.heard.hear(update);
    }
}

async fn impatiently(session: &mut Session, prompt: &str) -> (TurnEnd, Impatient) {
    let mut front = Impatient { hurry: session.hurry(), heard: Heard::default(), bodies: Vec::new() };
    let end = session.turn(user(prompt), &mut front, &Nobody, &CancellationToken::new()).await;
    (end, front)
}

fn says(message: &Message) -> bool {
    message.blocks.iter().any(|block| matches!(block, Block::Text(text) if !text.text.trim().is_empty()))
}

#[tokio::test]
async fn l1_every_dialect_takes_the_request_for_the_answer() {
    let simulator = simulator().await;
    // Side by side: most of it is waiting.
    let all = ids().into_iter().map(|dialect| hurried(&simulator, dialect));
    futures_util::future::join_all(all).await;
}

async fn hurried(simulator: &aside_sim::Running, dialect: String) {
    let scratch = Scratch::new(&format!("hurried-{dialect}"));
    scratch.file("a.txt", "a");
    let mut session = talk_to(simulator, &dialect, &scratch);
    // Some history with thoughts and calls, so that there is something to go back.
    let (end, _) = say(&mut session, "sim: tool-loop 1").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}");
    let before = branch(&session).len();
    let (end, front) = impatiently(&mut session, "sim: loop rate=200 tokens=4000").await;
    let lines = &front.heard.lines;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("told")), "{dialect}: nothing is repaired: {lines:?}");
    let messages = branch(&session).split_off(before);
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant], "{dialect}");
    assert!(messages[1].interrupted && messages[1].thinking().next().is_some(), "{dialect}: the thought is kept");
    assert!(messages[2].is_nudge(), "{dialect}");
    assert!(says(&messages[3]) && !messages[3].interrupted, "{dialect}: and there is an answer");
    // The conversation goes on as if nothing had been.
    let (end, heard) = say(&mut session, "sim: tool-loop 2").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", heard.lines);
    assert!(!heard.lines.iter().any(|line| line.starts_with("told")), "{dialect}: {:?}", heard.lines);
    // Taken back, the whole turn is gone, not only the nudge.
    session.history.undo();
    session.history.undo();
    assert_eq!(branch(&session).len(), before, "{dialect}");
}

#[tokio::test]
async fn l1_only_that_one_request_asks_for_less_thinking() {
    let simulator = simulator().await;
    let scratch = Scratch::new("least");
    let mut session = talk_to(&simulator, "deepseek", &scratch);
    let (end, front) = impatiently(&mut session, "sim: loop rate=200 tokens=4000").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", front.heard.lines);
    let [first, second] = front.bodies.as_slice() else { panic!("{} requests", front.bodies.len()) };
    let off = r#""thinking":{"type":"disabled"}"#;
    assert!(!first.contains("answer now") && !first.contains(off), "{first}");
    assert!(second.contains("answer now") && second.contains(off), "{second}");
    let next = session.encode(&[]).body;
    assert!(!next.contains(off), "{next}");
}

#[tokio::test]
async fn l1_an_answer_that_has_begun_is_not_stopped() {
    let simulator = simulator().await;
    let scratch = Scratch::new("answering");
    let mut session = talk_to(&simulator, "deepseek", &scratch);
    let hurry = session.hurry();
    tokio::spawn(async move {
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(25)).await;
            hurry.answer_now();
        }
    });
    // No thought: from the first delta on it is the answer.
    let (end, heard) = say(&mut session, "sim: plain rate=60 tokens=60").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", heard.lines);
    let nudges = branch(&session).iter().filter(|message| message.is_nudge()).count();
    assert!(nudges <= 1, "only before the first word: {nudges}");
}
