//! Every dialect against the strict simulator, over real sockets: replies, requests that send them back, and
//! every kind of fault.

use std::time::Duration;

use aside_core::block::Block;
use aside_core::message::{Message, Role};
use aside_core::turn::TurnEnd;
use aside_engine::tools::PermissionMode;
use aside_engine::{Session, Timeouts};
use aside_sim::{RunningSimulator, ScriptOptions, Service, Simulator};

use crate::session_support::{TestFront, dialects, send, session_with};
use crate::support::TestDir;

pub(crate) async fn simulator() -> RunningSimulator {
    let service = Service::new(dialects().as_ref().clone(), ScriptOptions::default());
    Simulator::bind(([127, 0, 0, 1], 0).into(), service).await.unwrap().spawn()
}

pub(crate) fn dialect_ids() -> Vec<String> {
    dialects().iter().map(|dialect| dialect.id.clone()).collect()
}

pub(crate) fn simulated_session(simulator: &RunningSimulator, dialect: &str, test_dir: &TestDir) -> Session {
    let url = format!("http://{}", simulator.address());
    let timeouts = Timeouts { connect: Duration::from_secs(2), idle: Duration::from_secs(30), ..Timeouts::default() };
    let mut session = session_with(&url, dialect, dialect, timeouts);
    session.tools = test_dir.tools(PermissionMode::DenyAll);
    session
}

pub(crate) fn branch(session: &Session) -> Vec<Message> {
    session.history.branch().into_iter().map(|(_, message)| message.clone()).collect()
}

/// The number of thinking blocks, and of seals on other blocks.
fn thinking_count(messages: &[Message]) -> usize {
    let is_one = |block: &&Block| match block {
        Block::Thinking(_) => true,
        Block::Text(text) => text.seal.is_some(),
        Block::ToolCall(call) => call.seal.is_some(),
        Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
    };
    messages.iter().flat_map(|message| &message.blocks).filter(is_one).count()
}

fn notices(recorded: &TestFront) -> Vec<&String> {
    recorded.lines.iter().filter(|line| line.starts_with("notice") || line.starts_with("retrying")).collect()
}

#[tokio::test]
async fn x1_tool_loops_and_parallel_calls_are_accepted_everywhere() {
    let simulator = simulator().await;
    for dialect in dialect_ids() {
        let test_dir = TestDir::new(&format!("loop-{dialect}"));
        test_dir.file("a.txt", "a");
        let mut session = simulated_session(&simulator, &dialect, &test_dir);
        for (prompt, steps, calls) in [("sim: tool-loop 3", 4, 3), ("sim: parallel 3", 2, 3)] {
            let before = branch(&session).len();
            let (end, recorded) = send(&mut session, prompt).await;
            assert_eq!(end, TurnEnd::Answered, "{dialect} {prompt}: {:?}", recorded.lines);
            assert_eq!(notices(&recorded), Vec::<&String>::new(), "{dialect} {prompt}: nothing had to be repaired");
            let messages = branch(&session).split_off(before);
            let answers = messages.iter().filter(|message| message.role == Role::Assistant).count();
            assert_eq!(answers, steps, "{dialect} {prompt}");
            let results = messages.iter().flat_map(|message| &message.blocks);
            let results = results.filter(|block| matches!(block, Block::ToolResult(result) if !result.is_error));
            assert_eq!(results.count(), calls, "{dialect} {prompt}");
        }
        // The conversation can continue after both.
        let (end, recorded) = send(&mut session, "and now?").await;
        assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", recorded.lines);
    }
}

#[tokio::test]
async fn l1_a_reply_with_too_many_calls_gets_a_result_for_each_but_runs_only_some() {
    let simulator = simulator().await;
    let test_dir = TestDir::new("many-calls");
    test_dir.file("a.txt", "a");
    let mut session = simulated_session(&simulator, "openai", &test_dir);
    let (end, recorded) = send(&mut session, "sim: parallel 300").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", recorded.lines);
    let messages = branch(&session);
    let results = messages.iter().flat_map(|message| &message.blocks).filter_map(|block| match block {
        Block::ToolResult(result) => Some((result.is_error, result.content.starts_with("not run: one reply can make"))),
        Block::Thinking(_) | Block::Text(_) | Block::ToolCall(_) | Block::Media(_) | Block::Unmodelled(_) => None,
    });
    let results: Vec<(bool, bool)> = results.collect();
    assert_eq!(results.len(), 300);
    assert_eq!(results.iter().filter(|(is_error, is_refused)| *is_error && *is_refused).count(), 44);
    assert_eq!(results.iter().filter(|(is_error, _)| !is_error).count(), 256);
}

#[tokio::test]
async fn x2_thinking_in_every_shape_is_kept_and_accepted_when_sent_back() {
    let simulator = simulator().await;
    for dialect in dialect_ids() {
        for prompt in
            ["sim: plain", "sim: think", "sim: thoughts 3", "sim: summaries 2", "sim: encrypted", "sim: redacted"]
        {
            let test_dir = TestDir::new(&format!("shape-{dialect}"));
            let mut session = simulated_session(&simulator, &dialect, &test_dir);
            let (end, recorded) = send(&mut session, prompt).await;
            assert_eq!(end, TurnEnd::Answered, "{dialect} {prompt}: {:?}", recorded.lines);
            let messages = branch(&session);
            match prompt {
                "sim: plain" => {
                    assert!(messages.iter().all(|message| message.thinking().next().is_none()), "{dialect}")
                }
                _ => assert!(thinking_count(&messages) > 0, "{dialect} {prompt}"),
            }
            let (end, recorded) = send(&mut session, "sim: tool-loop 1").await;
            assert_eq!(end, TurnEnd::Answered, "{dialect} after {prompt}: {:?}", recorded.lines);
            assert_eq!(notices(&recorded), Vec::<&String>::new(), "{dialect} after {prompt}");
        }
    }
}

#[tokio::test]
async fn x2_each_fault_ends_as_expected_and_keeps_the_partial_reply() {
    let simulator = simulator().await;
    // Concurrently, because most of the time is waiting.
    let all = dialect_ids().into_iter().map(|dialect| faults(&simulator, dialect));
    futures_util::future::join_all(all).await;
}

async fn faults(simulator: &RunningSimulator, dialect: String) {
    let test_dir = TestDir::new(&format!("fault-{dialect}"));
    let turn = async |prompt: &str| {
        let mut session = simulated_session(simulator, &dialect, &test_dir);
        let (end, recorded) = send(&mut session, prompt).await;
        (end, recorded, branch(&session))
    };
    let (end, recorded, _) = turn(&format!("sim: status 429 times=1 seed=1\n{dialect}")).await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}");
    assert_eq!(notices(&recorded).len(), 1, "{dialect}: {:?}", recorded.lines);

    let (end, recorded, messages) = turn("sim: malformed").await;
    assert!(matches!(end, TurnEnd::Answered), "{dialect}: {end:?}");
    assert_eq!(messages.len(), 2, "{dialect}: {:?}", recorded.lines);

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

    let (end, recorded, _) = turn("sim: stall 0.2").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", recorded.lines);

    let (end, recorded, _) = turn("sim: slow-headers 0.2").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", recorded.lines);

    let (end, recorded, _) = turn("sim: think chunk=1").await;
    assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", recorded.lines);
}

#[tokio::test]
async fn e11_every_refusal_in_the_catalogue_is_repaired_or_reported_and_storage_is_unchanged() {
    let simulator = simulator().await;
    let dialects = dialects();
    // The simulator refuses these requests although they lack what the words are about.
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/refusals/simulated.txt");
    let mut reported =
        String::from("# Simulated refusals of something that the request does not contain: nothing is repaired.\n");
    let mut n_healed = 0;
    for dialect in dialects.iter() {
        for row in &dialect.rules(None).errors {
            let test_dir = TestDir::new(&format!("heal-{}-{row}", dialect.id));
            let mut session = simulated_session(&simulator, &dialect.id, &test_dir);
            let (end, _) = send(&mut session, "sim: tool-loop 1").await;
            assert_eq!(end, TurnEnd::Answered, "{}", dialect.id);
            let before = branch(&session);
            let (end, recorded) = send(&mut session, &format!("sim: refuse {row} times=1\n{}", dialect.id)).await;
            assert_eq!(branch(&session)[..before.len()], before, "{} {row}: storage is untouched", dialect.id);
            if matches!(end, TurnEnd::Failed(_)) {
                assert!(
                    notices(&recorded).is_empty(),
                    "{} {row}: nothing was repaired: {:?}",
                    dialect.id,
                    recorded.lines
                );
                reported.push_str(&format!("{} {row}\n", dialect.id));
                continue;
            }
            assert_eq!(end, TurnEnd::Answered, "{} {row}: {:?}", dialect.id, recorded.lines);
            assert_eq!(notices(&recorded).len(), 1, "{} {row}: one line to the user: {:?}", dialect.id, recorded.lines);
            n_healed += 1;
        }
    }
    assert!(n_healed > 60, "only {n_healed} complaints were met");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &reported).unwrap();
    }
    assert_eq!(reported, std::fs::read_to_string(&path).unwrap(), "UPDATE_EXPECT=1 writes the list");
}

#[tokio::test]
async fn a_stopped_turn_leaves_nothing_running_upstream() {
    let simulator = simulator().await;
    let test_dir = TestDir::new("stopped");
    let mut session = simulated_session(&simulator, "deepseek", &test_dir);
    let cancel = tokio_util::sync::CancellationToken::new();
    let mut recorded = TestFront { stop_at_text: Some(cancel.clone()), ..TestFront::default() };
    // This reply would take hours.
    let message = crate::session_support::user("sim: think rate=30 tokens=500000");
    let end = session.turn(message, &mut recorded, &crate::session_support::Nobody, &cancel).await;
    assert_eq!(end, TurnEnd::Interrupted);
    assert!(branch(&session).last().unwrap().interrupted, "what came is kept");
    let (end, recorded) = send(&mut session, "go on").await;
    assert_eq!(end, TurnEnd::Answered, "and the session continues: {:?}", recorded.lines);
}

#[tokio::test]
async fn c3_older_turns_become_a_summary_and_stay_in_the_history() {
    let simulator = simulator().await;
    let test_dir = TestDir::new("compacted");
    let mut session = simulated_session(&simulator, "deepseek", &test_dir);
    for question in ["first", "second", "sim: tool-loop 1"] {
        assert_eq!(send(&mut session, question).await.0, TurnEnd::Answered);
    }
    let before = branch(&session);
    let entries = session.history.entries().len();
    // The conversation is over this limit, so it is compacted.
    session.settings.set(aside_core::settings::Layer::Session, "context.limit", "900").unwrap();
    let (end, recorded) = send(&mut session, "third").await;
    assert_eq!(end, TurnEnd::Answered, "{:?}", recorded.lines);
    assert!(recorded.lines.first().is_some_and(|line| line.starts_with("compacted ")), "{:?}", recorded.lines);
    let after = branch(&session);
    assert!(after.iter().any(aside_core::compaction::is_summary), "{after:?}");
    assert!(after.len() < before.len() + 2);
    // The latest turn is unchanged, with its thinking and its tool call.
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
