//! Scripted replies: every form of thinking in every dialect.

use aside_core::block::ThinkingContent;
use aside_core::dialect::{Dialect, Rules};
use aside_core::event::Ending;
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::tags::TagStart;
use aside_core::wire::Decoder;
use aside_sim::ScriptOptions;
use serde_json::json;

use crate::support::{
    ReceivedResponse, TestClient, TestServer, address, answer_text, dialects, post, thinking_blocks, thinking_text,
};

fn ask(dialect: &'static Dialect, script: &str) -> ReceivedResponse {
    let client = TestClient::new(dialect, &format!("Why?\nsim: {script}"));
    let answer = client.send(&client.encoded());
    assert_eq!(answer.status, 200, "{} {script}: {}", dialect.id, answer.text());
    answer
}

#[test]
fn x2_plain_answers_have_no_thinking() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "plain").decoded(dialect);
        assert_eq!(
            (thinking_blocks(&reply).len(), answer_text(&reply).is_empty()),
            (0, false),
            "{}: {reply:?}",
            dialect.id
        );
    }
}

#[test]
fn x2_several_thinking_blocks_have_text_between_them() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "thoughts 3").decoded(dialect);
        let readable = thinking_blocks(&reply).iter().filter(|thinking| !thinking.text().is_empty()).count();
        // Most dialects treat a tag that is not at the start as text.
        let tags_lead = answer_text(&reply).contains("</");
        assert!(readable == 3 || tags_lead, "{}: {reply:?}", dialect.id);
        assert!(answer_text(&reply).contains("aside simulator"), "{}", dialect.id);
    }
}

#[test]
fn x2_summaries_are_items_where_there_are_items() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "summaries 3").decoded(dialect);
        let [first, ..] = thinking_blocks(&reply)[..] else { panic!("{}: {reply:?}", dialect.id) };
        assert!(first.text().trim_start().starts_with("**"), "{}: {first:?}", dialect.id);
        if dialect.protocol == aside_core::protocol::Protocol::OpenaiResponses {
            let titles = first.summary().filter_map(|item| item.title).count();
            assert_eq!(titles, 3, "{}: {first:?}", dialect.id);
        }
    }
}

#[test]
fn x2_hidden_thinking_is_hidden_or_the_answer_says_that_it_cannot_be() {
    let mut hidden = Vec::new();
    for dialect in dialects().iter() {
        for script in ["encrypted", "redacted"] {
            let reply = ask(dialect, script).decoded(dialect);
            let sealed = thinking_blocks(&reply)
                .iter()
                .any(|thinking| matches!(thinking.content, ThinkingContent::Hidden { .. }));
            match (thinking_text(&reply).is_empty(), sealed) {
                (true, true) => hidden.push(dialect.id.as_str()),
                (true, false) => assert_eq!(dialect.protocol, Protocol::Gemini, "{}: {reply:?}", dialect.id),
                (false, _) => assert!(answer_text(&reply).contains("no hidden thinking"), "{}: {reply:?}", dialect.id),
            }
        }
    }
    for id in ["anthropic", "bedrock", "openai", "openrouter", "copilot"] {
        assert!(hidden.contains(&id), "{id} is not among {hidden:?}");
    }
}

/// Decodes a response with modified rules.
fn read_with(
    dialect: &Dialect,
    answer: &ReceivedResponse,
    change: impl FnOnce(&mut Rules),
) -> aside_core::block::Reply {
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
        // Splitting into single bytes is slow, so only one dialect does it.
        let sizes: &[usize] = if dialect.generic { &[1, 2, 3] } else { &[11] };
        for &chunk in sizes {
            let answer = ask(dialect, &format!("tags chunk={chunk}"));
            assert!(answer.pieces.iter().all(|piece| piece.len() <= chunk), "{}", dialect.id);
            let reply = answer.decoded(dialect);
            assert_eq!(thinking_blocks(&reply).len(), 1, "{} {chunk}: {reply:?}", dialect.id);
            let answer = answer_text(&reply);
            assert!(answer.contains("aside simulator") && !answer.contains("</"), "{} {chunk}: {answer}", dialect.id);
        }
    }
}

#[test]
fn x2_the_template_may_write_the_opening_tag() {
    for dialect in dialects().iter() {
        let rules = dialect.rules(Some(&dialect.id));
        if rules.read.tags.pairs.is_empty() {
            continue;
        }
        let answer = ask(dialect, "preopened chunk=13");
        let reply = read_with(dialect, &answer, |rules| rules.read.tags.start = TagStart::Prefilled);
        assert_eq!(thinking_blocks(&reply).len(), 1, "{}: {reply:?}", dialect.id);
        assert!(answer_text(&reply).contains("aside simulator"), "{}: {reply:?}", dialect.id);
        assert!(!thinking_text(&reply).is_empty(), "{}", dialect.id);
    }
}

#[test]
fn x2_replies_with_too_little_or_too_much_in_them() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "empty").decoded(dialect);
        assert_eq!((thinking_text(&reply), answer_text(&reply)), (String::new(), String::new()), "{}", dialect.id);
        assert_eq!(reply.end.ending, Ending::Stop, "{}", dialect.id);

        let reply = ask(dialect, "reasoning-only").decoded(dialect);
        assert!(
            !thinking_text(&reply).is_empty() && answer_text(&reply).trim().is_empty(),
            "{}: {reply:?}",
            dialect.id
        );
        assert_eq!(reply.end.ending, Ending::Stop, "{}", dialect.id);

        let reply = ask(dialect, "loop tokens=90").decoded(dialect);
        assert_eq!(thinking_text(&reply).matches("think about that again").count(), 11, "{}: {reply:?}", dialect.id);
        assert_eq!(reply.end.ending, Ending::Length, "{}", dialect.id);
    }
}

#[test]
fn x2_echo_repeats_the_prompt() {
    for dialect in dialects().iter() {
        let mut client = TestClient::new(dialect, "Say:\n  this 🙂 \"and\" that\nsim: echo");
        assert_eq!(answer_text(&client.step()).trim(), "Say:\n  this 🙂 \"and\" that", "{}", dialect.id);
    }
}

#[test]
fn x2_the_model_name_may_contain_a_script() {
    let dialect = dialects().get("deepseek").unwrap();
    for model in ["deepseek:plain", "sim/deepseek:plain", "sim/deepseek/deepseek-v4-pro:plain,seed=3"] {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": "q" }] });
        let answer = post(address(), "/chat/completions", &body.to_string());
        let reply = answer.decoded(dialect);
        assert_eq!((answer.status, thinking_blocks(&reply).len()), (200, 0), "{model}");
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
fn x2_the_token_rate_is_kept() {
    let server = TestServer::start(ScriptOptions { rate: Some(200.0), ..ScriptOptions::default() });
    let dialect = dialects().get("deepseek").unwrap();
    let mut client = TestClient::new(dialect, "Why?\nsim: think tokens=60");
    client.address = server.address;
    let begun = std::time::Instant::now();
    let reply = client.step();
    let least = std::time::Duration::from_secs_f64(reply.usage.output.unwrap() as f64 / 200.0 * 0.9);
    assert!(begun.elapsed() >= least, "{:?} of {least:?}", begun.elapsed());
}

#[test]
fn x2_help_is_answered_with_the_behaviours_in_every_dialect() {
    for dialect in dialects().iter() {
        let reply = ask(dialect, "help").decoded(dialect);
        let text = answer_text(&reply);
        assert!(text.contains("- `tool-loop N`: ") && text.contains("`seed= rate= "), "{}: {text}", dialect.id);
    }
}

#[test]
fn x2_a_wrong_line_does_not_fail_the_next_prompt_where_roles_alternate() {
    let ask = |texts: &[&str]| {
        let texts: Vec<_> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let messages = json!([{ "role": "user", "content": texts }]);
        let body = json!({ "model": "anthropic", "max_tokens": 9000, "messages": messages });
        post(address(), "/v1/messages", &body.to_string())
    };
    let refused = ask(&["sim: dance"]);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("in the line `sim: dance` of the prompt: unknown behaviour"), "{}", refused.text());
    let answered = ask(&["sim: dance", "hello"]);
    assert!(answered.status == 200 && answered.text().contains("hello"), "{}", answered.text());
}
