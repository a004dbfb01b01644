//! Every dialect against the strict simulator, over real sockets: what comes,
//! what goes back, and how each fault ends.

use std::time::Duration;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_engine::tools::Mode;
use aside_engine::{Session, Timeouts};
use aside_sim::{Options, Running, Simulator, Stage};

use crate::support::Scratch;
use crate::talk::{Heard, dialects, say, session_with};

pub(crate) async fn simulator() -> Running {
    let stage = Stage::new(dialects().as_ref().clone(), Options::default());
    Simulator::bind(([127, 0, 0, 1], 0).into(), stage).await.unwrap().spawn()
}

pub(crate) fn ids() -> Vec<String> {
    dialects().iter().map(|dialect| dialect.id.clone()).collect()
}

pub(crate) fn talk_to(simulator: &Running, dialect: &str, scratch: &Scratch) -> Session {
    let url = format!("http://{}", simulator.address());
    let timeouts = Timeouts { connect: Duration::from_secs(2), idle: Duration::from_secs(30) };
    let mut session = session_with(&url, dialect, dialect, timeouts);
    session.tools = scratch.tools(Mode::DenyAll);
    session
}

pub(crate) fn branch(session: &Session) -> Vec<Message> {
    session.history.branch().into_iter().map(|(_, message)| message.clone()).collect()
}

/// Thoughts, and seals that stand on something else instead of one.
fn thoughts(messages: &[Message]) -> usize {
    let is_one = |block: &&Block| match block {
        Block::Thinking(_) => true,
        Block::Text(text) => text.seal.is_some(),
        Block::ToolCall(call) => call.seal.is_some(),
        Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => false,
    };
    messages.iter().flat_map(|message| &message.blocks).filter(is_one).count()
}

fn told(heard: &Heard) -> Vec<&String> {
    heard.lines.iter().filter(|line| line.starts_with("told") || line.starts_with("retrying")).collect()
}

#[tokio::test]
async fn x1_a_loop_of_three_steps_and_calls_side_by_side_are_accepted_everywhere() {
    let simulator = simulator().await;
    for dialect in ids() {
        let scratch = Scratch::new(&format!("loop-{dialect}"));
        scratch.file("a.txt", "a");
        let mut session = talk_to(&simulator, &dialect, &scratch);
        for (prompt, steps, calls) in [("sim: tool-loop 3", 4, 3), ("sim: parallel 3", 2, 3)] {
            let before = branch(&session).len();
            let (end, heard) = say(&mut session, prompt).await;
            assert_eq!(end, TurnEnd::Answered, "{dialect} {prompt}: {:?}", heard.lines);
            assert_eq!(told(&heard), Vec::<&String>::new(), "{dialect} {prompt}: nothing had to be repaired");
            let messages = branch(&session).split_off(before);
            let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
            assert_eq!(answers, steps, "{dialect} {prompt}");
            let results = messages.iter().flat_map(|message| &message.blocks);
            let results = results.filter(|block| matches!(block, Block::ToolResult(result) if !result.is_error));
            assert_eq!(results.count(), calls, "{dialect} {prompt}");
        }
        // And the conversation goes on after both.
        let (end, heard) = say(&mut session, "and now?").await;
        assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", heard.lines);
    }
}

#[tokio::test]
async fn x2_thoughts_in_every_shape_are_kept_and_accepted_when_they_go_back() {
    let simulator = simulator().await;
    for dialect in ids() {
        for prompt in
            ["sim: plain", "sim: think", "sim: thoughts 3", "sim: summaries 2", "sim: encrypted", "sim: redacted"]
        {
            let scratch = Scratch::new(&format!("shape-{dialect}"));
            let mut session = talk_to(&simulator, &dialect, &scratch);
            let (end, heard) = say(&mut session, prompt).await;
            assert_eq!(end, TurnEnd::Answered, "{dialect} {prompt}: {:?}", heard.lines);
            let messages = branch(&session);
            match prompt {
                "sim: plain" => {
                    assert!(messages.iter().all(|message| message.thinking().next().is_none()), "{dialect}")
                }
                _ => assert!(thoughts(&messages) > 0, "{dialect} {prompt}"),
            }
            let (end, heard) = say(&mut session, "sim: tool-loop 1").await;
            assert_eq!(end, TurnEnd::Answered, "{dialect} after {prompt}: {:?}", heard.lines);
            assert_eq!(told(&heard), Vec::<&String>::new(), "{dialect} after {prompt}");
        }
    }
}

#[tokio::test]
async fn x2_each_fault_ends_as_it_should_and_keeps_what_came() {
    let simulator = simulator().await;
    // Side by side: most of it is waiting.
    let all = ids().into_iter().map(|dialect| faults(&simulator, dialect));
    futures_util::future::join_all(all).await;
}

async fn faults(simulator: &Running, dialect: String) {
    let scratch = Scratch::new(&format!("fault-{dialect}"));
    let turn = async |prompt: &str| {
        let mut session = talk_to(simulator, &dialect, &scratch);
        let (end, heard) = say(&mut session, prompt).await;
        (end, heard, branch(&session))
    };
    let (end, heard, _) = turn(&format!("sim: status 429 times=1 seed=1\n{dialect}")).await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}");
    assert_eq!(told(&heard).len(), 1, "{dialect}: {:?}", heard.lines);

    let (end, heard, messages) = turn("sim: malformed").await;
    assert!(matches!(end, TurnEnd::Answered), "{dialect}: {end:?}");
    assert_eq!(messages.len(), 2, "{dialect}: {:?}", heard.lines);

    let (end, _, messages) = turn("sim: cut 900 tokens=300").await;
    assert!(matches!(end, TurnEnd::Unreachable(_) | TurnEnd::CutOff), "{dialect}: {end:?}");
    let partial = messages.last().unwrap();
    assert!(partial.role == Role::User || partial.interrupted, "{dialect}: what came is marked");

    let (end, _, messages) = turn("sim: reasoning-only").await;
    assert_eq!(end, TurnEnd::ThinkingOnly { for_length: false }, "{dialect}: {messages:?}");

    let (end, _, _) = turn("sim: empty").await;
    assert_eq!(end, TurnEnd::Empty, "{dialect}");

    let (end, _, _) = turn("sim: status 400").await;
    assert!(matches!(end, TurnEnd::Failed(error) if error.status == Some(400)), "{dialect}");

    let (end, _, _) = turn("sim: content-type").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: the bytes say what they are");

    let (end, heard, _) = turn("sim: stall 0.2").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", heard.lines);

    let (end, heard, _) = turn("sim: slow-headers 0.2").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", heard.lines);

    let (end, heard, _) = turn("sim: think chunk=1").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", heard.lines);
}

#[tokio::test]
async fn e11_every_complaint_of_the_catalogue_is_healed_and_storage_stays_as_it_was() {
    let simulator = simulator().await;
    let dialects = dialects();
    let mut n_healed = 0;
    for dialect in dialects.iter() {
        for row in &dialect.rules(None).errors {
            let scratch = Scratch::new(&format!("heal-{}-{row}", dialect.id));
            let mut session = talk_to(&simulator, &dialect.id, &scratch);
            let (end, _) = say(&mut session, "sim: tool-loop 1").await;
            assert_eq!(end, TurnEnd::Answered, "{}", dialect.id);
            let before = branch(&session);
            let (end, heard) = say(&mut session, &format!("sim: refuse {row} times=1\n{}", dialect.id)).await;
            assert_eq!(end, TurnEnd::Answered, "{} {row}: {:?}", dialect.id, heard.lines);
            assert_eq!(told(&heard).len(), 1, "{} {row}: one line to the user: {:?}", dialect.id, heard.lines);
            assert_eq!(branch(&session)[..before.len()], before, "{} {row}: storage is untouched", dialect.id);
            n_healed += 1;
        }
    }
    assert!(n_healed > 60, "only {n_healed} complaints were met");
}

#[tokio::test]
async fn a_stopped_turn_leaves_nothing_running_upstream() {
    let simulator = simulator().await;
    let scratch = Scratch::new("stopped");
    let mut session = talk_to(&simulator, "deepseek", &scratch);
    let cancel = tokio_util::sync::CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stop.cancel();
    });
    let mut heard = Heard::default();
    // It would go on for hours.
    let message = crate::talk::user("sim: think rate=30 tokens=500000");
    let end = session.turn(message, &mut heard, &crate::talk::Nobody, &cancel).await;
    assert_eq!(end, TurnEnd::Interrupted);
    assert!(branch(&session).last().unwrap().interrupted, "what came is kept");
    let (end, heard) = say(&mut session, "go on").await;
    assert_eq!(end, TurnEnd::Answered, "and the session goes on: {:?}", heard.lines);
}

#[tokio::test]
async fn c3_older_turns_become_a_summary_and_stay_in_the_history() {
    let simulator = simulator().await;
    let scratch = Scratch::new("compacted");
    let mut session = talk_to(&simulator, "deepseek", &scratch);
    for question in ["first", "second", "sim: tool-loop 1"] {
        assert_eq!(say(&mut session, question).await.0, TurnEnd::Answered);
    }
    let before = branch(&session);
    let entries = session.history.entries().len();
    // The limit is reached at once, and so it is made.
    session.settings.set(aside_core::settings::Layer::Session, "context.limit", "900").unwrap();
    let (end, heard) = say(&mut session, "third").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", heard.lines);
    assert!(heard.lines.first().is_some_and(|line| line.starts_with("compacted ")), "{:?}", heard.lines);
    let after = branch(&session);
    assert!(after.iter().any(aside_core::compact::is_summary), "{after:?}");
    assert!(after.len() < before.len() + 2);
    // The latest turn is as it was, its thinking and its call with it.
    let loop_of =
        |messages: &[Message]| messages.iter().filter(|message| message.has_calls()).cloned().collect::<Vec<_>>();
    assert_eq!(loop_of(&after), loop_of(&before));
    assert!(session.history.entries().len() > entries, "nothing is deleted");
    assert!(
        !after.iter().any(|message| message.thinking_text().is_some_and(|text| {
            before.iter().take(4).any(|old| old.thinking_text().as_deref() == Some(text.as_str()))
        })),
        "thinking of the summed-up turns is gone from what is sent"
    );
}
