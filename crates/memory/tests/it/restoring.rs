//! What is restored, by which evidence, and what is not.

use aside_core::{Block, Message};
use aside_memory::{Evidence, Memory, Outcome, StoreKey, StoreLocation, StoreState, decisions};

use super::support::*;

/// A tool loop that is still open.
fn tool_loop(id: &str) -> Vec<Message> {
    vec![
        user("How deep is berth 4?"),
        assistant(vec![open_thinking("I need the depth."), text("Let me look."), call(id, "depth", r#"{"berth":4}"#)]),
        result(id, "4 m"),
    ]
}

fn blocks(messages: &[Message]) -> Vec<Vec<Block>> {
    messages.iter().map(|message| message.blocks.clone()).collect()
}

#[tokio::test]
async fn g2_lost_thinking_is_put_back_exactly_and_the_receipt_says_so() {
    let (folder, key) = (Folder::new("exact"), StoreKey::generate());
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let original = tool_loop("call_00_x8Bq2LmVf3kZ");
    {
        let memory = open(&folder, &key).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        target.remember(&memory, &tenant, &original, None).await;
        memory.flush().await;
    }
    // Another process, with an empty cache.
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let lost = all_without_thinking(&original);
    let restored = target.restore(&memory, &tenant, &lost, None).await;
    let refs: Vec<&Message> = lost.iter().collect();
    let view = restored.view(&refs);
    assert_eq!(view.iter().map(|message| message.blocks.clone()).collect::<Vec<_>>(), blocks(&original));
    let turn = &restored.turns[0];
    assert_eq!((turn.outcome, turn.evidence, turn.blocks), (Outcome::Restored, Some(Evidence::L2), 1));
    let dialect = target.dialects.get("deepseek").unwrap();
    let request = aside_core::Request::new(&target.dialects, dialect, &target.model, &target.origin, &target.settings)
        .with_messages(&view)
        .with_tools(&target.tools);
    let encoded = aside_core::encode(&request);
    assert!(encoded.body.contains(r#""reasoning_content":"I need the depth.""#), "{}", encoded.body);
    let counts = restored.counts().with_encoded(&view, &encoded);
    assert_eq!(counts.to_string(), "1 restored, 0 filler, 0 ambiguous");
    let rows = decisions(&restored, &view, &encoded);
    let row = serde_json::to_value(rows.iter().find(|row| row.action == "restored").unwrap()).unwrap();
    assert_eq!((row["message"].clone(), row["block"].clone()), (1.into(), 0.into()));
    assert_eq!(
        (row["evidence"].clone(), row["kind"].clone(), row["bytes"].clone()),
        ("L2".into(), "thinking".into(), 17.into())
    );
    assert!(row["reply"].is_string() && row["hash"].is_string());
}

#[tokio::test]
async fn g2_each_level_of_evidence_restores_what_it_proves() {
    let key = StoreKey::generate();
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let long = "The depth of berth 4 is four metres at low water, and six metres at high water.";
    let chat = |thought: &str, answer: &str| {
        vec![
            user("How deep?"),
            assistant(vec![open_thinking("first"), text("Which berth?")]),
            user("Berth 4."),
            assistant(vec![open_thinking(thought), text(answer), call("call_1", "depth", r#"{"berth":4}"#)]),
            result("call_1", "4 m"),
        ]
    };
    let changed = |change: &dyn Fn(&mut Vec<Message>)| {
        let mut messages = all_without_thinking(&chat("deep", long));
        change(&mut messages);
        messages
    };
    let set_text = |message: &mut Message, words: &str| {
        for block in &mut message.blocks {
            if let Block::Text(text) = block {
                text.text = words.to_owned();
            }
        }
    };
    type Case<'a> = (&'a str, Vec<Message>, Option<&'a str>, Outcome, Option<Evidence>);
    #[rustfmt::skip]
    let cases: Vec<Case<'_>> = vec![
        ("as it was",            changed(&|_| ()),                                  None, Outcome::Restored, Some(Evidence::L2)),
        ("other call id",        changed(&|all| { all[3] = without_thinking(&assistant(vec![text(long), call("x", "depth", "{ \"berth\": 4.0 }")])); all[4] = result("x", "4 m"); }),
                                                                                    None, Outcome::Restored, Some(Evidence::L3)),
        ("text trimmed",         changed(&|all| set_text(&mut all[3], &format!("\n{long}  "))), None, Outcome::Restored, Some(Evidence::L2)),
        ("text gone",            changed(&|all| { all[3].blocks.remove(0); }),      None, Outcome::Restored, Some(Evidence::L2)),
        ("question changed",     changed(&|all| set_text(&mut all[2], "Berth four.")), None, Outcome::Restored, Some(Evidence::L5)),
        ("changed, with session", changed(&|all| set_text(&mut all[2], "Berth four.")), Some("s1"), Outcome::Restored, Some(Evidence::L4)),
        ("history cut",          changed(&|all| { all.drain(..2); }),               None, Outcome::Restored, Some(Evidence::L3)),
        ("other text and calls", changed(&|all| { all[3] = assistant(vec![text("Something else."), call("y", "ls", "{}")]); all[4] = result("y", "a"); }),
                                                                                    None, Outcome::Unknown,  None),
    ];
    for (name, messages, session, outcome, evidence) in cases {
        let folder = Folder::new("levels");
        let memory = open(&folder, &key).await;
        let tenant = memory.tenant("local", NOW).await.unwrap();
        target.remember(&memory, &tenant, &chat("deep", long), Some("s1")).await;
        let restored = target.restore(&memory, &tenant, &messages, session).await;
        let turn = restored.turns.last().unwrap();
        assert_eq!((turn.outcome, turn.evidence), (outcome, evidence), "{name}");
        let refs: Vec<&Message> = messages.iter().collect();
        let view = restored.view(&refs);
        let last = view[view.len() - 2];
        let expected = (outcome == Outcome::Restored).then(|| "deep".to_owned());
        assert_eq!(last.thinking_text(), expected, "{name}");
        let ids: Vec<&str> = view
            .iter()
            .flat_map(|message| &message.blocks)
            .filter_map(|block| match block {
                Block::ToolCall(call) => Some(call.id.as_str()),
                Block::ToolResult(result) => Some(result.id.as_str()),
                Block::Text(_) | Block::Thinking(_) | Block::Media(_) | Block::Unmodelled(_) => None,
            })
            .collect();
        assert_eq!(ids[0], ids[1], "{name}: the result still belongs to its call");
    }
}

#[tokio::test]
async fn g2_equal_conversations_with_different_thinking_are_ambiguous_until_a_later_turn_decides() {
    let (folder, key) = (Folder::new("ambiguous"), StoreKey::generate());
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let step = |thought: &str| {
        vec![
            user("List the files."),
            assistant(vec![open_thinking(thought), call("call_1", "ls", "{}")]),
            result("call_1", "a.rs"),
        ]
    };
    for thought in ["one", "two", "three"] {
        target.remember(&memory, &tenant, &step(thought), None).await;
    }
    let lost = all_without_thinking(&step("?"));
    let restored = target.restore(&memory, &tenant, &lost, None).await;
    assert_eq!(restored.turns[0].outcome, Outcome::Ambiguous);
    assert_eq!(restored.counts().to_string(), "0 restored, 0 filler, 1 ambiguous");
    assert!(!restored.changes_anything());
    // The second conversation continues. Its client kept the thinking until then.
    let mut second = step("two");
    second[1].origin = Some(target.origin.clone());
    let with_reference = {
        let asked = vec![user("List the files.")];
        let restored = target.restore(&memory, &tenant, &asked, None).await;
        let draft = memory.begin(&tenant, &restored);
        let reference = draft.reference(0);
        let reply = Message { origin: Some(target.origin.clone()), ..step("four")[1].clone() };
        draft.finish(reply.clone(), NOW).durable().await;
        let mut messages = step("four");
        messages[1].blocks[0] = sealed_thinking("four", &reference.padded());
        messages
    };
    let restored = target.restore(&memory, &tenant, &with_reference, None).await;
    assert_eq!((restored.turns[0].outcome, restored.turns[0].evidence), (Outcome::Restored, Some(Evidence::L0)));
    // The next reply follows the one that the reference named, and so decides it later.
    let next = assistant(vec![open_thinking("five"), text("There is one file, and it is called a.rs, I think.")]);
    let reply = Message { origin: Some(target.origin.clone()), ..next.clone() };
    memory.begin(&tenant, &restored).finish(reply.clone(), NOW).durable().await;
    let mut later = step("four");
    later.extend([next, user("Sure?"), assistant(vec![call("call_9", "ls", "{}")]), result("call_9", "b")]);
    let messages = target.restored_messages(&memory, &tenant, &all_without_thinking(&later)).await;
    assert_eq!(messages[1].thinking_text().as_deref(), Some("four"), "named by the turn after it");
    assert_eq!(messages[3].thinking_text().as_deref(), Some("five"));
}

#[tokio::test]
async fn g2_a_tenant_gets_nothing_of_another() {
    let (folder, key) = (Folder::new("tenants"), StoreKey::generate());
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let memory = open(&folder, &key).await;
    let (ours, theirs) = (memory.tenant("a", NOW).await.unwrap(), memory.tenant("b", NOW).await.unwrap());
    let original = tool_loop("call_00_x8Bq2LmVf3kZ");
    target.remember(&memory, &ours, &original, None).await;
    let lost = all_without_thinking(&original);
    assert_eq!(target.restore(&memory, &theirs, &lost, None).await.turns[0].outcome, Outcome::Unknown);
    assert_eq!(target.restore(&memory, &ours, &lost, None).await.turns[0].outcome, Outcome::Restored);
    assert!(memory.forget_tenant("a").await.unwrap());
    let again = memory.tenant("a", NOW).await.unwrap();
    assert_eq!(target.restore(&memory, &again, &lost, None).await.turns[0].outcome, Outcome::Unknown);
}

#[tokio::test]
async fn g2_sealed_thinking_goes_only_to_its_issuer() {
    let (folder, key) = (Folder::new("issuer"), StoreKey::generate());
    let claude = Target::new("anthropic", "claude-sonnet-4-5");
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let original = vec![
        user("How deep is berth 4?"),
        assistant(vec![
            sealed_thinking("I need the depth.", "EqQBCkYIBRgCKkBh"),
            call("toolu_01A09q90qw90lq917835lq9", "depth", r#"{"berth":4}"#),
        ]),
        result("toolu_01A09q90qw90lq917835lq9", "4 m"),
    ];
    claude.remember(&memory, &tenant, &original, None).await;
    let lost = all_without_thinking(&original);
    let messages = claude.restored_messages(&memory, &tenant, &lost).await;
    assert_eq!(blocks(&messages), blocks(&original));
    let other = Target::new("kimi", "kimi-k2-thinking");
    let restored = other.restore(&memory, &tenant, &lost, None).await;
    assert_eq!(restored.turns[0].outcome, Outcome::Foreign);
    assert_eq!(restored.counts().restored, 0);
    // The provider refuses the seal: it is not sent again.
    let reply = restored.turns[0].reply.unwrap();
    memory.mark_rejected(&tenant, reply).await.unwrap();
    memory.flush().await;
    assert_eq!(claude.restore(&memory, &tenant, &lost, None).await.turns[0].outcome, Outcome::Foreign);
    let fresh = open(&folder, &key).await;
    let tenant = fresh.tenant("local", NOW).await.unwrap();
    assert_eq!(claude.restore(&fresh, &tenant, &lost, None).await.turns[0].outcome, Outcome::Foreign);
}

#[tokio::test]
async fn g2_a_sentinel_counts_as_missing_and_is_never_stored() {
    let (folder, key) = (Folder::new("sentinel"), StoreKey::generate());
    let gemini = Target::new("gemini", "gemini-3-pro");
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let with_seal = |payload: &str| {
        let mut call = call("fc_7Hq2LmVf3kZ", "depth", r#"{"berth":4}"#);
        if let Block::ToolCall(call) = &mut call {
            call.seal = Some(seal(payload));
        }
        vec![user("How deep is berth 4?"), assistant(vec![call]), result("fc_7Hq2LmVf3kZ", "4 m")]
    };
    let original = with_seal("CiQB0e2Kb2xl");
    gemini.remember(&memory, &tenant, &original, None).await;
    for sentinel in ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go", "1763280000000"] {
        let sent = with_seal(sentinel);
        let messages = gemini.restored_messages(&memory, &tenant, &sent).await;
        assert_eq!(blocks(&messages), blocks(&original), "{sentinel}");
        // Unknown here: the client's placeholder stays, which the provider accepts.
        let other = memory.tenant("other", NOW).await.unwrap();
        assert!(!gemini.restore(&memory, &other, &sent, None).await.changes_anything(), "{sentinel}");
        gemini.remember(&memory, &other, &with_seal(sentinel), None).await;
        let kept = gemini.restore(&memory, &other, &sent, None).await;
        assert_eq!(kept.turns[0].outcome, Outcome::HadNone, "{sentinel}");
        memory.forget_tenant("other").await.unwrap();
    }
}

#[tokio::test]
async fn g2_minted_ids_and_references_become_what_the_provider_sent() {
    let (folder, key) = (Folder::new("minted"), StoreKey::generate());
    let target = Target::new("kimi", "kimi-k2-thinking");
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let asked = vec![user("How deep?")];
    let restored = target.restore(&memory, &tenant, &asked, None).await;
    let mut draft = memory.begin(&tenant, &restored);
    let minted = draft.mint_call_id("functions.depth:0");
    let (reference, response) = (draft.reference(0), draft.response_id());
    let id = draft.id();
    assert_eq!(tenant.read_response_id(&response), Some(id));
    let reply = assistant(vec![open_thinking("deep"), call("functions.depth:0", "depth", r#"{"berth":4}"#)]);
    let reply = Message { origin: Some(target.origin.clone()), ..reply };
    draft.finish(reply.clone(), NOW).durable().await;
    let cases = [
        ("L1", vec![call(&minted, "depth", r#"{"berth": 4}"#)]),
        ("L0", vec![sealed_thinking("deep", &reference.padded()), call(&minted, "depth", r#"{"berth":4}"#)]),
        ("L0", vec![sealed_thinking("", &reference.base64_bytes()), call("other", "depth", r#"{"berth":4}"#)]),
    ];
    for (level, blocks) in cases {
        let id = match blocks.last() {
            Some(Block::ToolCall(call)) => call.id.as_str().to_owned(),
            _ => unreachable!("the last block is a call"),
        };
        let messages = vec![user("How deep?"), assistant(blocks), result(&id, "4 m")];
        let restored = target.restore(&memory, &tenant, &messages, None).await;
        assert_eq!(restored.turns[0].evidence.map(Evidence::as_str), Some(level));
        let refs: Vec<&Message> = messages.iter().collect();
        let view = restored.view(&refs);
        assert_eq!(view[1].blocks, reply.blocks, "{level}");
        assert!(matches!(&view[2].blocks[0], Block::ToolResult(result) if result.id == "functions.depth:0"));
    }
    let stored = memory.reply(&tenant, id).await.unwrap().unwrap();
    assert_eq!(stored.message.blocks, reply.blocks);
    // A forged or foreign reference never reaches a provider.
    let theirs = memory.tenant("b", NOW).await.unwrap();
    let messages = vec![
        user("How deep?"),
        assistant(vec![sealed_thinking("", &reference.padded()), text("Four metres.")]),
        user("Sure?"),
    ];
    let restored = target.restore(&memory, &theirs, &messages, None).await;
    let changed: Vec<(usize, &Message)> = restored.changed().collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].1.blocks, vec![text("Four metres.")]);
}

#[tokio::test]
async fn g2_without_a_store_sealed_blocks_come_back_from_the_client() {
    let key = StoreKey::generate();
    let options = aside_memory::MemoryOptions::new(StoreLocation::None, key);
    let memory = Memory::open(options, dialects(), NOW).await.unwrap();
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let target = Target::new("deepseek", "deepseek-v4-pro");
    let original = tool_loop("call_1");
    let sealed = tenant.seal_block(&original[1].blocks[0], &target.origin);
    let mut sent = all_without_thinking(&original);
    sent[1].blocks.insert(0, sealed_thinking("", &sealed));
    let restored = target.restore(&memory, &tenant, &sent, None).await;
    let refs: Vec<&Message> = sent.iter().collect();
    assert_eq!(restored.view(&refs)[1].blocks, original[1].blocks);
    assert_eq!((restored.store, restored.turns[0].outcome), (StoreState::None, Outcome::Restored));
    let state = memory.begin(&tenant, &restored).finish(original[1].clone(), NOW).durable().await;
    assert_eq!(state, StoreState::None);
}

/// gemini-cli does that when it resumes a session.
#[tokio::test]
async fn g2_a_result_that_comes_twice_counts_once() {
    let (folder, key) = (Folder::new("repeated"), StoreKey::generate());
    let target = Target::new("anthropic", "claude-sonnet-5");
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let original = vec![
        user("How deep is berth 4?"),
        assistant(vec![sealed_thinking("I need the depth.", "sig1"), call("call_1", "depth", r#"{"berth":4}"#)]),
        result("call_1", "4 m"),
        assistant(vec![sealed_thinking("Now I know.", "sig2"), text("Four metres.")]),
        user("And now?"),
    ];
    target.remember(&memory, &tenant, &original, None).await;
    let with_results = |contents: &[&str]| {
        let mut messages = all_without_thinking(&original);
        messages[2].blocks = contents.iter().flat_map(|content| result("call_1", content).blocks).collect();
        messages
    };
    for (name, contents, outcome) in [
        ("once", ["4 m"].as_slice(), Outcome::Restored),
        ("twice", &["4 m", "4 m"], Outcome::Restored),
        ("two different ones", &["4 m", "5 m"], Outcome::Unknown),
    ] {
        let restored = target.restore(&memory, &tenant, &with_results(contents), None).await;
        assert_eq!(restored.turns[1].outcome, outcome, "{name}");
    }
}

/// A client of another protocol can keep the readable thinking, but not the seal of an answer.
#[tokio::test]
async fn g2_readable_thinking_does_not_replace_the_seal_of_an_answer() {
    let (folder, key) = (Folder::new("answer-seal"), StoreKey::generate());
    let target = Target::new("gemini", "gemini-3-pro-preview");
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let sealed = |words: &str| {
        Block::Text(aside_core::Text { text: words.to_owned(), seal: Some(seal("c2Vh")), ..Default::default() })
    };
    let conversation =
        |answer: Block| vec![user("How deep?"), assistant(vec![open_thinking("deep"), answer]), user("Sure?")];
    let original = conversation(sealed("Four metres."));
    target.remember(&memory, &tenant, &original, None).await;
    let sent = conversation(text("Four metres."));
    let restored = target.restore(&memory, &tenant, &sent, None).await;
    let turn = &restored.turns[0];
    // The thinking itself was there.
    assert_eq!((turn.outcome, turn.blocks), (Outcome::Restored, 1));
    let refs: Vec<&Message> = sent.iter().collect();
    assert_eq!(restored.view(&refs)[1].blocks, original[1].blocks);

    let plain = vec![user("And berth 5?"), assistant(vec![open_thinking("five"), text("Five metres.")]), user("Sure?")];
    target.remember(&memory, &tenant, &plain, None).await;
    let restored = target.restore(&memory, &tenant, &plain, None).await;
    assert_eq!((restored.turns[0].outcome, restored.changes_anything()), (Outcome::Complete, false), "it had no seal");
}

/// A client that keeps readable thinking cannot say whose it is. If it counted as the target's own, everything before it
/// would be dropped where thinking may be left out only from the beginning.
#[tokio::test]
async fn g2_readable_thinking_of_another_provider_is_not_taken_for_the_targets() {
    let (folder, key) = (Folder::new("another-origin"), StoreKey::generate());
    let (target, other) = (Target::new("anthropic", "claude-sonnet-5"), Target::new("openai", "gpt-5.6"));
    let memory = open(&folder, &key).await;
    let tenant = memory.tenant("local", NOW).await.unwrap();
    let ours = vec![user("How deep?"), assistant(vec![sealed_thinking("deep", "sig1"), text("Four metres.")])];
    target.remember(&memory, &tenant, &ours, None).await;
    let asked = [ours.clone(), vec![user("And you?")]].concat();
    let theirs = assistant(vec![sealed_thinking("deeper", "enc2"), text("Five metres.")]);
    let before = other.restore(&memory, &tenant, &all_without_thinking(&asked), None).await;
    let reply = Message { origin: Some(other.origin.clone()), ..theirs };
    assert_eq!(memory.begin(&tenant, &before).finish(reply.clone(), NOW).durable().await.as_str(), "ok");

    // The client has the text of all thinking, and the gateway cannot see who made it.
    let mut sent = [
        ours[..1].to_vec(),
        vec![assistant(vec![open_thinking("deep"), text("Four metres.")]), user("And you?")],
        vec![assistant(vec![open_thinking("deeper"), text("Five metres.")]), user("Sure?")],
    ]
    .concat();
    sent.iter_mut().for_each(|message| message.origin = Some(target.origin.clone()));
    let restored = target.restore(&memory, &tenant, &sent, None).await;
    let outcomes: Vec<Outcome> = restored.turns.iter().map(|turn| turn.outcome).collect();
    assert_eq!(outcomes, [Outcome::Restored, Outcome::Foreign]);
    let refs: Vec<&Message> = sent.iter().collect();
    let view = restored.view(&refs);
    assert_eq!(view[1].blocks, ours[1].blocks);
    assert_eq!(view[3].origin, Some(other.origin.clone()));
}
