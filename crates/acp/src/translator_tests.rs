#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test that fails should fail loudly"
)]

use super::*;
use aside_core::block::{
    Arguments, CallId, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan, Time,
};
use aside_core::event::{ProseKind, Usage};
use aside_front::OpenedBlock;

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn thinking(content: ThinkingContent, items: Vec<std::ops::Range<usize>>) -> Block {
    let span = Some(ThinkingSpan { started: Time(0), ended: Time(1500) });
    let source = "reasoning".to_owned();
    Block::Thinking(Thinking { items, span, ..Thinking::new(content, source) })
}

fn open_thought(text: &str) -> Block {
    thinking(ThinkingContent::Open { text: text.to_owned() }, Vec::new())
}

fn hidden_thought() -> Block {
    let encrypted = Some(Seal { kind: SealKind::Encrypted, payload: "abc".to_owned() });
    thinking(ThinkingContent::Hidden { seals: Seals { signature: None, encrypted } }, Vec::new())
}

fn summary(items: &[&str]) -> Block {
    let (mut text, mut ranges) = (String::new(), Vec::new());
    for item in items {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        ranges.push(text.len()..text.len() + item.len());
        text.push_str(item);
    }
    thinking(ThinkingContent::Open { text }, ranges)
}

fn call(id: &str) -> Block {
    Block::ToolCall(ToolCall::new(
        CallId::Given(id.to_owned()),
        "read",
        Arguments::Json(r#"{"path":"a.txt"}"#.to_owned()),
    ))
}

fn reply(blocks: Vec<Block>) -> Arc<Message> {
    let mut usage = Usage::default();
    (usage.input, usage.output) = (Some(10), Some(5));
    Arc::new(Message { usage: Some(usage), ..Message::new(Role::Assistant, blocks) })
}

fn translator() -> Translator {
    let mut translator = Translator::new("/p".into(), ClientAbilities::default());
    translator.limit = Some(1000);
    translator
}

/// The updates of a reply that arrives in pieces of this many letters.
fn streamed(message: &Arc<Message>, letters: usize) -> Vec<Update> {
    let mut updates = vec![Update::MessageStored(7)];
    for (index, block) in message.blocks.iter().enumerate() {
        let block_id = BlockId(u32::try_from(index).expect("few blocks"));
        let opening = match block {
            Block::Text(_) => OpenedBlock::Text,
            Block::Thinking(_) => OpenedBlock::Thinking,
            Block::ToolCall(call) => OpenedBlock::ToolCall { name: call.name.clone() },
            Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => OpenedBlock::Unmodelled,
        };
        updates.push(Update::Opened { block: block_id, opening });
        let mut grow = |text: &str| {
            for piece in text.chars().collect::<Vec<_>>().chunks(letters) {
                updates.push(Update::Grew { block: block_id, text: piece.iter().collect::<String>().into() });
            }
        };
        match block {
            Block::Text(text) => grow(&text.text),
            Block::Thinking(thinking) if thinking.items.is_empty() => grow(thinking.text()),
            Block::Thinking(thinking) => {
                for range in &thinking.items {
                    updates.push(Update::Item { block: block_id });
                    let text = thinking.text().get(range.clone()).expect("an item").into();
                    updates.push(Update::Grew { block: block_id, text });
                }
            }
            Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => (),
        }
        updates.push(match block {
            Block::Text(_) => Update::ClosedAsStreamed { block: block_id, span: None, sealed_bytes: 0 },
            other => Update::Closed { block: block_id, value: Box::new(other.clone()) },
        });
    }
    updates.push(Update::Recorded(Arc::clone(message)));
    updates
}

fn live(updates: &[Update]) -> Vec<SessionUpdate> {
    let (mut translator, mut out, now) = (translator(), Vec::new(), Instant::now());
    for update in updates {
        translator.update(update, now, &mut out);
    }
    translator.flush(&mut out);
    out
}

fn loaded(message: &Arc<Message>) -> Vec<SessionUpdate> {
    let mut out = Vec::new();
    translator().replay(&[(Some(7), Arc::clone(message))], &mut out);
    out
}

/// Joins the pieces of a text, as a client does.
fn joined(updates: Vec<SessionUpdate>) -> Vec<SessionUpdate> {
    let mut joined: Vec<SessionUpdate> = Vec::new();
    for update in updates {
        if let (
            Some(SessionUpdate::AgentThoughtChunk(last) | SessionUpdate::AgentMessageChunk(last)),
            SessionUpdate::AgentThoughtChunk(next) | SessionUpdate::AgentMessageChunk(next),
        ) = (joined.last_mut(), &update)
            && let (Content::Text { text }, Content::Text { text: more }) = (&mut last.content, &next.content)
        {
            assert!(!more.is_empty(), "no chunk is empty");
            if (&last.message_id, &last.meta) == (&next.message_id, &next.meta) {
                text.push_str(more);
                continue;
            }
        }
        joined.push(update);
    }
    joined
}

/// The kind, id and text of each chunk.
fn chunks(updates: &[SessionUpdate]) -> Vec<(&'static str, &str, &str)> {
    let mut chunks = Vec::new();
    for update in updates {
        let (kind, chunk) = match update {
            SessionUpdate::AgentThoughtChunk(chunk) => ("thought", chunk),
            SessionUpdate::AgentMessageChunk(chunk) => ("answer", chunk),
            _ => continue,
        };
        if let Content::Text { text } = &chunk.content {
            chunks.push((kind, chunk.message_id.as_str(), text.as_str()));
        }
    }
    chunks
}

#[test]
fn a2_a_reply_looks_the_same_live_and_loaded_however_it_arrives() {
    let all: [fn() -> Block; 6] = [
        || text("the answer\n"),
        || open_thought("a thought 漢字"),
        hidden_thought,
        || summary(&["**One**\n\nfirst", "**Two**\n\nsecond"]),
        || call("c1"),
        || {
            Block::Unmodelled(aside_core::block::Unmodelled {
                native: aside_core::block::Native { json: r#"{"type":"search"}"#.to_owned(), text_member: None },
            })
        },
    ];
    // Every order of three blocks, in pieces of several sizes.
    for case in 0..all.len().pow(3) {
        let pick = |place: u32| all[case / all.len().pow(place) % all.len()]();
        let message = reply(vec![pick(0), pick(1), pick(2)]);
        let loaded = joined(loaded(&message));
        for letters in [1, 4, 1000] {
            let live = joined(live(&streamed(&message, letters)));
            assert_eq!(live, loaded, "case {case} in pieces of {letters}");
        }
    }
}

#[test]
fn a2_a_thought_after_a_thought_begins_a_paragraph_and_each_has_its_own_id() {
    let message = reply(vec![open_thought("one"), hidden_thought(), open_thought("three"), text("done")]);
    let expected = [
        ("thought", "7:0", "one\n\n"),
        ("thought", "7:1", "(The provider does not show this thought.)\n\n"),
        ("thought", "7:2", "three"),
        ("answer", "7:3", "done"),
    ];
    let live = joined(live(&streamed(&message, 2)));
    let states: Vec<_> = chunks(&live);
    let texts: Vec<(&str, &str, String)> =
        expected.iter().map(|(kind, id, text)| (*kind, *id, (*text).to_owned())).collect();
    let mut shown: Vec<(&str, &str, String)> = Vec::new();
    for (kind, id, text) in states {
        match shown.last_mut().filter(|(_, last, _)| *last == id) {
            Some((_, _, joined)) => joined.push_str(text),
            None => shown.push((kind, id, text.to_owned())),
        }
    }
    assert_eq!(shown, texts);
}

#[test]
fn a2_items_of_a_summary_are_paragraphs_of_one_thought() {
    let message = reply(vec![summary(&["**One**\n\nfirst", "**Two**\n\nsecond"])]);
    let live = joined(live(&streamed(&message, 3)));
    let expected = [("thought", "7:0", "**One**\n\nfirst\n\n"), ("thought", "7:0", "**Two**\n\nsecond")];
    assert_eq!(chunks(&live), expected);
    let items = live.iter().filter_map(|update| match update {
        SessionUpdate::AgentThoughtChunk(chunk) => chunk.meta.as_ref()?.aside.item,
        _ => None,
    });
    assert_eq!(items.collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a2_text_that_turns_out_to_be_thinking_is_sent_again_under_another_id() {
    let block = BlockId(0);
    let grew = |text: &str| Update::Grew { block, text: text.into() };
    let message = reply(vec![open_thought("hmm so"), text("yes")]);
    let mut updates = vec![Update::MessageStored(7), Update::Opened { block, opening: OpenedBlock::Text }];
    updates.extend([grew("hmm"), grew(" so"), Update::Refiled { block, to: ProseKind::Thinking }]);
    updates.push(Update::ClosedAsStreamed { block, span: None, sealed_bytes: 0 });
    updates.push(Update::Opened { block: BlockId(1), opening: OpenedBlock::Text });
    updates.push(Update::Grew { block: BlockId(1), text: "yes".into() });
    updates.push(Update::Recorded(Arc::clone(&message)));
    let shown = joined(live(&updates));
    let thought: Vec<_> = chunks(&shown).into_iter().filter(|(kind, ..)| *kind == "thought").collect();
    assert_eq!(thought, [("thought", "7:0:corrected", "hmm so")]);
    let answers: Vec<_> = chunks(&shown).into_iter().filter(|(kind, ..)| *kind == "answer").collect();
    assert_eq!(answers, [("answer", "7:0", "hmm"), ("answer", "7:1", "yes")]);
    let is_notice = |update: &SessionUpdate| matches!(update, SessionUpdate::SessionInfoUpdate { meta: Some(meta), .. } if meta.aside.notice.is_some());
    assert!(shown.iter().any(is_notice), "the user is told");
}

#[test]
fn a2_an_interrupted_reply_has_everything_that_came() {
    let message = reply(vec![open_thought("half a tho")]);
    let block = BlockId(0);
    let updates = [
        Update::MessageStored(7),
        Update::Opened { block, opening: OpenedBlock::Thinking },
        Update::Grew { block, text: "half a".into() },
        Update::Grew { block, text: " tho".into() },
        Update::Recorded(Arc::clone(&message)),
    ];
    assert_eq!(joined(live(&updates)), joined(loaded(&message)));
}

#[test]
fn a2_a_block_that_stays_empty_takes_no_place() {
    let message = reply(vec![open_thought("so"), text("yes")]);
    let open = |block: u32, opening| Update::Opened { block: BlockId(block), opening };
    let updates = [
        Update::MessageStored(7),
        open(0, OpenedBlock::Text),
        Update::Emptied { block: BlockId(0) },
        open(1, OpenedBlock::Thinking),
        Update::Grew { block: BlockId(1), text: "so".into() },
        open(2, OpenedBlock::Text),
        Update::Grew { block: BlockId(2), text: "yes".into() },
        Update::Recorded(Arc::clone(&message)),
    ];
    assert_eq!(joined(live(&updates)), joined(loaded(&message)));
}

#[test]
fn t17_the_newest_output_of_a_running_command_replaces_the_output_before() {
    let mut translator = translator();
    let (mut out, now) = (Vec::new(), Instant::now());
    translator.update(&Update::MessageStored(7), now, &mut out);
    translator.update(&Update::Recorded(reply(vec![call("c1")])), now, &mut out);
    out.clear();
    for (tail, n_lines) in [("", 0), ("one\n", 1), ("one\ntwo\n", 2)] {
        translator.update(&Update::ToolOutput { call: "c1".to_owned(), tail: tail.to_owned(), n_lines }, now, &mut out);
    }
    translator.update(&Update::ToolOutput { call: "c2".to_owned(), tail: "x".to_owned(), n_lines: 1 }, now, &mut out);
    let shown: Vec<_> = out.iter().map(|update| serde_json::to_value(update).expect("an update is JSON")).collect();
    let expected = |text: &str, lines: u64| {
        serde_json::json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "7:0", "status": "in_progress",
            "content": [{"type": "content", "content": {"type": "text", "text": text}}],
            "_meta": {"aside": {"lines": lines}},
        })
    };
    assert_eq!(shown, [expected("one\n", 1), expected("one\ntwo\n", 2)], "no empty content, no unknown call");
}
