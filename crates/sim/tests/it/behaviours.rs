//! Scripted replies: every shape of thinking, in every dialect.

use aside_core::block::Content;
use aside_core::dialect::{Dialect, Rules};
use aside_core::event::Ending;
use aside_core::fold::Fold;
use aside_core::tags::Start;
use aside_core::wire::Decoder;
use aside_sim::Options;

use crate::support::{Answer, Desk, Server, address, dialects, post, said, thought, thoughts};

fn ask(dialect: &'static Dialect, script: &str) -> Answer {
    let desk = Desk::new(dialect, &format!("Why?\nsim: {script}"));
    let answer = desk.send(&desk.encoded());
    assert_eq!(answer.status, 200, "{} {script}: {}", dialect.id, answer.text());
    answer
}

#[test]
fn x2_plain_answers_have_no_thought() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "plain").decoded(dialect);
        assert_eq!((thoughts(&reply).len(), said(&reply).is_empty()), (0, false), "{}: {reply:?}", dialect.id);
    }
}

#[test]
fn x2_several_thoughts_come_with_words_between_them() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "thoughts 3").decoded(dialect);
        let told = thoughts(&reply).iter().filter(|thought| !thought.text().is_empty()).count();
        // A tag that is not at the beginning is a text to most.
        let tags_lead = said(&reply).contains("</");
        assert!(told == 3 || tags_lead, "{}: {reply:?}", dialect.id);
        assert!(said(&reply).contains("aside simulator"), "{}", dialect.id);
    }
}

#[test]
fn x2_summaries_are_items_where_there_are_items() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "summaries 3").decoded(dialect);
        let [first, ..] = thoughts(&reply)[..] else { panic!("{}: {reply:?}", dialect.id) };
        assert!(first.text().trim_start().starts_with("**"), "{}: {first:?}", dialect.id);
        if dialect.protocol == aside_core::protocol::Protocol::OpenaiResponses {
            let titles = first.summary().filter_map(|item| item.title).count();
            assert_eq!(titles, 3, "{}: {first:?}", dialect.id);
        }
    }
}

#[test]
fn x2_hidden_thinking_is_hidden_or_it_is_said_that_it_cannot_be() {
    let mut hidden = Vec::new();
    for dialect in dialects().iter() {
        for script in ["encrypted", "redacted"] {
            let reply = ask(dialect, script).decoded(dialect);
            let sealed = thoughts(&reply).iter().any(|thought| matches!(thought.content, Content::Hidden { .. }));
            match (thought(&reply).is_empty(), sealed) {
                (true, true) => hidden.push(dialect.id.as_str()),
                (true, false) => assert_eq!(dialect.id, "gemini", "{reply:?}"),
                (false, _) => assert!(said(&reply).contains("no hidden thinking"), "{}: {reply:?}", dialect.id),
            }
        }
    }
    for id in ["anthropic", "bedrock", "openai", "openrouter", "copilot"] {
        assert!(hidden.contains(&id), "{id} is not among {hidden:?}");
    }
}

/// A reply, read by other rules than the dialect's.
fn read_with(dialect: &Dialect, answer: &Answer, change: impl FnOnce(&mut Rules)) -> aside_core::block::Reply {
    let mut rules = dialect.rules(Some(&dialect.id)).clone();
    change(&mut rules);
    let mut fold = Fold::new();
    let mut decoder = Decoder::new(dialect.protocol, &rules);
    answer.pieces.iter().for_each(|piece| decoder.push(piece, &mut fold));
    decoder.finish(&mut fold).unwrap();
    fold.finish()
}

#[test]
fn x2_tags_may_be_split_anywhere() {
    for dialect in dialects().iter() {
        let rules = dialect.rules(Some(&dialect.id));
        if rules.read.tags.pairs.is_empty() {
            continue;
        }
        // Byte by byte takes its time: one dialect is enough for that.
        let sizes: &[usize] = if dialect.generic { &[1, 2, 3] } else { &[11] };
        for &chunk in sizes {
            let answer = ask(dialect, &format!("tags chunk={chunk}"));
            assert!(answer.pieces.iter().all(|piece| piece.len() <= chunk), "{}", dialect.id);
            let reply = answer.decoded(dialect);
            assert_eq!(thoughts(&reply).len(), 1, "{} {chunk}: {reply:?}", dialect.id);
            let answer = said(&reply);
            assert!(answer.contains("aside simulator") && !answer.contains("</"), "{} {chunk}: {answer}", dialect.id);
        }
    }
}

#[test]
fn x2_a_thought_may_be_opened_by_the_template() {
    for dialect in dialects().iter() {
        let rules = dialect.rules(Some(&dialect.id));
        if rules.read.tags.pairs.is_empty() {
            continue;
        }
        let answer = ask(dialect, "preopened chunk=13");
        let reply = read_with(dialect, &answer, |rules| rules.read.tags.start = Start::Prefilled);
        assert_eq!(thoughts(&reply).len(), 1, "{}: {reply:?}", dialect.id);
        assert!(said(&reply).contains("aside simulator"), "{}: {reply:?}", dialect.id);
        assert!(!thought(&reply).is_empty(), "{}", dialect.id);
    }
}

#[test]
fn x2_replies_with_too_little_or_too_much_in_them() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "empty").decoded(dialect);
        assert_eq!((thought(&reply), said(&reply)), (String::new(), String::new()), "{}", dialect.id);
        assert_eq!(reply.end.ending, Ending::Stop, "{}", dialect.id);

        let reply = ask(dialect, "reasoning-only").decoded(dialect);
        assert!(!thought(&reply).is_empty() && said(&reply).trim().is_empty(), "{}: {reply:?}", dialect.id);
        assert_eq!(reply.end.ending, Ending::Stop, "{}", dialect.id);

        let reply = ask(dialect, "loop tokens=90").decoded(dialect);
        assert_eq!(thought(&reply).matches("think about that again").count(), 11, "{}: {reply:?}", dialect.id);
        assert_eq!(reply.end.ending, Ending::Length, "{}", dialect.id);
    }
}

#[test]
fn x2_it_repeats_what_it_is_told() {
    for dialect in dialects().iter() {
        let mut desk = Desk::new(dialect, "Say:\n  this 🙂 \"and\" that\nsim: echo");
        assert_eq!(said(&desk.step()).trim(), "Say:\n  this 🙂 \"and\" that", "{}", dialect.id);
    }
}

#[test]
fn x2_the_name_of_the_model_is_a_script_too() {
    let dialect = dialects().get("deepseek").unwrap();
    for model in ["deepseek:plain", "sim/deepseek:plain", "sim/deepseek/deepseek-v4-pro:plain,seed=3"] {
        let body = serde_json::json!({ "model": model, "messages": [{ "role": "user", "content": "q" }] });
        let answer = post(address(), "/chat/completions", &body.to_string());
        let reply = answer.decoded(dialect);
        assert_eq!((answer.status, thoughts(&reply).len()), (200, 0), "{model}");
        assert_eq!(reply.model.as_deref(), Some(model));
    }
}

#[test]
fn x2_long_replies_are_fast_and_exact() {
    let dialect = dialects().get("deepseek").unwrap();
    let begun = std::time::Instant::now();
    let reply = ask(dialect, "think tokens=40000").decoded(dialect);
    assert_eq!(reply.usage.reasoning, Some(40_000));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn x2_a_rate_is_kept() {
    let server = Server::start(Options { rate: Some(200.0), ..Options::default() });
    let dialect = dialects().get("deepseek").unwrap();
    let mut desk = Desk::new(dialect, "Why?\nsim: think tokens=60");
    desk.address = server.address;
    let begun = std::time::Instant::now();
    let reply = desk.step();
    let least = std::time::Duration::from_secs_f64(reply.usage.output.unwrap() as f64 / 200.0 * 0.9);
    assert!(begun.elapsed() >= least, "{:?} of {least:?}", begun.elapsed());
}
