//! Compaction of any history: no message is lost, no turn is split, and no thinking
//! reaches the summarizer.

use std::sync::Arc;

use aside_core::block::{
    Arguments, Block, CallId, Media, Native, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall,
    ToolResult, Unmodelled,
};
use aside_core::compaction::{
    CompactionPlan, CompactionTrigger, ContextUsage, CountedBranch, is_summary, plan, summary_message,
};
use aside_core::conversation::Conversation;
use aside_core::dialect::Dialects;
use aside_core::history::{TurnStatus, Turns};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::settings::Settings;
use aside_core::wire::{Request, encode};
use proptest::prelude::*;

/// Occurs in everything that is thinking or may hold some.
const THOUGHT: &str = "xyzzy";

fn seal() -> Seal {
    Seal { kind: SealKind::Signature, payload: THOUGHT.to_owned() }
}

fn native() -> Option<Native> {
    Some(Native { json: format!(r#"{{"thought":"{THOUGHT}"}}"#), text_member: None })
}

fn thinking_block(content: ThinkingContent) -> Block {
    let (source, id) = ("reasoning".to_owned(), Some(THOUGHT.to_owned()));
    Block::Thinking(Thinking { id, native: native(), ..Thinking::new(content, source) })
}

fn block() -> impl Strategy<Value = Block> {
    let seals = || Seals { signature: Some(seal()), encrypted: Some(seal()) };
    let words = "[a-z ]{0,30}";
    prop_oneof![
        words.prop_map(|text| Block::Text(Text {
            text,
            seal: Some(seal()),
            native: native(),
            extra: Default::default()
        })),
        words.prop_map(|text| thinking_block(ThinkingContent::Open { text: text + THOUGHT })),
        words.prop_map(move |text| thinking_block(ThinkingContent::Sealed { text: text + THOUGHT, seals: seals() })),
        Just(thinking_block(ThinkingContent::Hidden { seals: seals() })),
        words.prop_map(|name| Block::ToolCall(ToolCall {
            id: CallId::Given("1".to_owned()),
            name,
            arguments: Arguments::Json("{}".to_owned()),
            seal: Some(seal()),
            native: native(),
            extra: Default::default()
        })),
        words.prop_map(|content| Block::ToolResult(ToolResult {
            id: "1".to_owned(),
            name: "get".to_owned(),
            content,
            is_error: false,
            media: Vec::new()
        })),
        Just(Block::Media(Media::image("image/png".to_owned(), THOUGHT.to_owned()))),
        Just(Block::Unmodelled(Unmodelled { native: native().unwrap() })),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        1 => Just(Role::System),
        3 => Just(Role::User),
        4 => Just(Role::Assistant),
        3 => Just(Role::Tool),
    ];
    let spoken = (role, prop::collection::vec(block(), 0..3)).prop_map(|(role, blocks)| Message::new(role, blocks));
    prop_oneof![12 => spoken, 1 => Just(summary_message("What was before.").unwrap())]
}

fn history() -> impl Strategy<Value = (Vec<Message>, Vec<u64>, ContextUsage, CompactionTrigger)> {
    let messages = prop::collection::vec((message(), 0..500_u64), 0..14);
    let room = (0..2_000_u64, 1..20_u64, prop::option::of(1..10_000_u64), prop::option::of(0.1..1.0_f64));
    let occasion = prop_oneof![Just(CompactionTrigger::Full), Just(CompactionTrigger::Manual)];
    (messages, room, occasion).prop_map(|(messages, (head, tenths, limit, compact_at), occasion)| {
        let (messages, tokens): (Vec<Message>, Vec<u64>) = messages.into_iter().unzip();
        let counted = head + tokens.iter().sum::<u64>();
        (messages, tokens, ContextUsage { counted, used: counted * tenths / 10, limit, compact_at }, occasion)
    })
}

/// The body of a request for a summary in this protocol.
fn body(dialects: &Dialects, protocol: Protocol, messages: &[Message]) -> Arc<String> {
    let messages: Vec<&Message> = messages.iter().collect();
    let (target, settings) = (Origin::default(), Settings::new());
    let request =
        Request::new(dialects, dialects.generic(protocol).unwrap(), "m", &target, &settings).with_messages(&messages);
    encode(&request).body
}

proptest! {
    #[test]
    fn c3_every_message_is_summarized_or_kept_and_no_turn_is_split((messages, tokens, room, occasion) in history()) {
        let messages: Vec<&Message> = messages.iter().collect();
        let CompactionPlan::Compact(compaction) = plan(CountedBranch { messages: &messages, tokens: &tokens }, room, occasion) else {
            return Ok(());
        };
        let mut all: Vec<usize> = compaction.summarise.iter().chain(&compaction.keep).copied().collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..messages.len()).collect::<Vec<_>>(), "each of them once");
        prop_assert!(!compaction.summarise.is_empty());
        let turns = Turns::of(&messages);
        let last = turns.turn_of.last().copied();
        for at in &compaction.summarise {
            prop_assert!(messages[*at].role != Role::System, "system messages stay");
            prop_assert!(turns.status_of[*at] != TurnStatus::OpenLoop, "the open loop stays");
            prop_assert!(Some(turns.turn_of[*at]) != last, "the latest turn stays");
        }
        for at in compaction.keep.iter().filter(|at| messages[**at].role != Role::System) {
            let torn = compaction.summarise.iter().any(|old| turns.turn_of[*old] == turns.turn_of[*at]);
            prop_assert!(!torn, "message {} is kept, and its turn is not", at);
        }
        let summary = summary_message("What was.").unwrap();
        let after = compaction.messages(&messages, &summary);
        let kept: Vec<&Message> = compaction.keep.iter().map(|at| messages[*at]).collect();
        let verbatim: Vec<&Message> = after.iter().copied().filter(|message| !std::ptr::eq(*message, &summary)).collect();
        prop_assert_eq!(verbatim, kept);
        prop_assert_eq!(after.len(), compaction.keep.len() + 1);
    }

    #[test]
    fn c3_no_thinking_reaches_the_summarizer((messages, tokens, room, _) in history()) {
        let messages: Vec<&Message> = messages.iter().collect();
        let branch = CountedBranch { messages: &messages, tokens: &tokens };
        if let CompactionPlan::Compact(compaction) = plan(branch, room, CompactionTrigger::Manual) {
            let asked = format!("{:?}", compaction.request(&messages));
            prop_assert!(!asked.contains(THOUGHT), "{}", asked);
        }
    }

    #[test]
    fn c3_compaction_triggers_at_the_effective_count_and_not_before((messages, tokens, room, _) in history()) {
        let messages: Vec<&Message> = messages.iter().collect();
        let plan = plan(CountedBranch { messages: &messages, tokens: &tokens }, room, CompactionTrigger::Full);
        let full = room.limit.zip(room.compact_at).is_some_and(|(limit, share)| room.used as f64 >= limit as f64 * share);
        prop_assert!(full || !matches!(plan, CompactionPlan::Compact(_)));
    }
}

#[test]
fn c3_a_request_for_a_summary_goes_to_every_protocol() {
    let text = |words: &str| Block::Text(Text { text: words.to_owned(), ..Text::default() });
    let messages = [
        Message::new(Role::System, vec![text("Be brief.")]),
        Message::new(Role::User, vec![text("How deep is it?")]),
        Message::new(
            Role::Assistant,
            vec![thinking_block(ThinkingContent::Open { text: THOUGHT.to_owned() }), text("Two metres.")],
        ),
        Message::new(Role::User, vec![text("And at six?")]),
    ];
    let messages: Vec<&Message> = messages.iter().collect();
    let room = ContextUsage { counted: 9, used: 9, limit: None, compact_at: None };
    let branch = CountedBranch { messages: &messages, tokens: &[] };
    let CompactionPlan::Compact(compaction) = plan(branch, room, CompactionTrigger::Manual) else {
        panic!("there is an old turn")
    };
    let dialects = Dialects::builtin().unwrap();
    for protocol in Protocol::ALL {
        let body = body(&dialects, protocol, &compaction.request(&messages));
        let found =
            ["How deep is it?", "Two metres.", "And at six?", "Be brief.", THOUGHT].map(|words| body.contains(words));
        assert_eq!(found, [true, true, false, false, false], "{}: {body}", protocol.as_str());
    }
}

#[test]
fn c3_a_summary_is_recognized_in_a_stored_conversation() {
    let line = r#"{"role":"user","blocks":[{"type":"text","text":"What was."}],"compacted":true}"#;
    let conversation = Conversation::parse(line).unwrap();
    assert!(conversation.history.branch().iter().all(|(_, message)| is_summary(message)));
    let plain = Conversation::parse(&line.replace("true", "false")).unwrap();
    assert!(!plain.history.branch().iter().any(|(_, message)| is_summary(message)));
}
