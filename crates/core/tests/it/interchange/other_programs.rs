//! Sessions of other programs: the user continues them here, and the provider gets its own
//! thinking back. We wrote the files after the public formats.

use aside_core::block::{Arguments, Block, Origin, Text, ThinkingContent};
use aside_core::compaction::is_summary;
use aside_core::conversation::ToolSpec;
use aside_core::event::{Ending, Usage};
use aside_core::interchange::{
    ImportError, ImportFile, ImportKind, Imported, OpaqueData, Program, detect_kind, import, write_lines,
};
use aside_core::message::{Message, Role};
use aside_core::rules::{EgressAction, IssuedThinking, judge};
use aside_core::settings::Settings;
use aside_core::wire::{Encoded, Request, encode};
use serde_json::Value;

use crate::support::dialects;

pub(super) fn read(text: &str) -> Imported {
    import(&[ImportFile { name: "session", text }], dialects()).unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn lines(imported: &Imported) -> Vec<Value> {
    let written = write_lines(&imported.conversation, OpaqueData::Keep);
    written.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The next request to the last model of the session. Its provider must accept it.
pub(super) fn next_request(imported: &Imported) -> (Encoded, Value) {
    let name = imported.conversation.model.clone().expect("the model is known");
    let (provider, model) = name.split_once('/').unwrap();
    let dialect = dialects().get(provider).unwrap_or_else(|| panic!("{provider}"));
    let question = Text { text: "Go on.".into(), ..Text::default() };
    let question = Message::new(Role::User, vec![Block::Text(question)]);
    let branch = imported.conversation.history.branch();
    let mut messages: Vec<&Message> = branch.iter().map(|(_, message)| *message).collect();
    if messages.last().unwrap().role == Role::Assistant {
        messages.push(&question);
    }
    let tools = [ToolSpec::new("get", "d", r#"{"type":"object"}"#)];
    let encoded = encode(
        &Request::new(
            dialects(),
            dialect,
            model,
            &Origin::default().with_provider(provider.to_owned()),
            &Settings::new(),
        )
        .with_messages(&messages)
        .with_tools(&tools),
    );
    let issued: Vec<&Message> = messages.iter().copied().filter(|message| message.role == Role::Assistant).collect();
    let verdict = judge(dialect, model, &[], &encoded.body, IssuedThinking::Messages(&issued)).unwrap();
    assert!(verdict.is_ok(), "{:?}\n{}", verdict.broken, encoded.body);
    assert_eq!(encoded.unmet, Vec::<String>::new());
    let body = serde_json::from_str(&encoded.body).unwrap();
    // All thinking is sent back, unchanged or in a field of the message.
    for decision in &encoded.decisions {
        let block = decision.block.map(|at| &messages[decision.message].blocks[at]);
        if matches!(block, Some(Block::Thinking(_))) {
            assert!(matches!(decision.action, EgressAction::Verbatim | EgressAction::Field), "{decision:?}");
        }
    }
    (encoded, body)
}

pub(super) const CLAUDE_CODE: &str = r#"
{"type":"summary","summary":"Somebody else's","leafUuid":"u-elsewhere"}
{"type":"mode","mode":"default","sessionId":"s1"}
{"parentUuid":null,"isSidechain":false,"sessionId":"s1","type":"user","isMeta":true,"message":{"role":"user","content":"<local-command-caveat>"},"uuid":"u0","timestamp":"2026-03-01T10:00:00.000Z"}
{"parentUuid":"u0","isSidechain":false,"sessionId":"s1","type":"user","message":{"role":"user","content":"Read both."},"uuid":"u1","timestamp":"2026-03-01T10:00:01.000Z"}
{"parentUuid":"u1","type":"attachment","uuid":"u1a","attachment":{}}
{"parentUuid":"u1a","type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-4-5-20250929","role":"assistant","content":[{"type":"thinking","thinking":"Two files.","signature":"c2lnMQ=="}],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}},"uuid":"a1","timestamp":"2026-03-01T10:00:02.000Z"}
{"parentUuid":"a1","type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-4-5-20250929","role":"assistant","content":[{"type":"redacted_thinking","data":"cmVkYWN0ZWQ="}],"stop_reason":null},"uuid":"a2","timestamp":"2026-03-01T10:00:03.000Z"}
{"parentUuid":"a2","type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-4-5-20250929","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"path":"a"}}],"stop_reason":null},"uuid":"a3","timestamp":"2026-03-01T10:00:04.000Z"}
{"parentUuid":"a3","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"A"}]}]},"uuid":"r1","timestamp":"2026-03-01T10:00:05.000Z","toolUseResult":{"x":1}}
{"parentUuid":"a3","type":"assistant","message":{"id":"msg_1","model":"claude-sonnet-4-5-20250929","role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Read","input":{"path":"b"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":90,"cache_read_input_tokens":700}},"uuid":"a4","timestamp":"2026-03-01T10:00:06.000Z"}
{"parentUuid":"a4","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"no such file","is_error":true}]},"uuid":"r2","timestamp":"2026-03-01T10:00:07.000Z"}
{"parentUuid":"u1","isSidechain":true,"type":"user","message":{"role":"user","content":"for the subagent"},"uuid":"x1"}
{"parentUuid":"r2","type":"assistant","message":{"id":"msg_2","model":"claude-sonnet-4-5-20250929","role":"assistant","content":[{"type":"thinking","thinking":"One is there.","signature":"c2lnMg=="}],"stop_reason":null},"uuid":"a5","timestamp":"2026-03-01T10:00:08.000Z"}
{"parentUuid":"a5","type":"assistant","message":{"id":"msg_2","model":"claude-sonnet-4-5-20250929","role":"assistant","content":[{"type":"text","text":"Only A."}],"stop_reason":"end_turn"},"uuid":"a6","timestamp":"2026-03-01T10:00:09.000Z"}
{"type":"summary","summary":"Two files","leafUuid":"a6"}
{"parentUuid":"a6","type":"assistant","isApiErrorMessage":true,"message":{"id":"e","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"API Error"}]},"uuid":"a7"}
{"parentUuid":"a7","type":"user","message":{"role":"user","content":[{"type":"text","text":"And now?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},"uuid":"u2","timestamp":"2026-03-01T10:01:00.000Z"}
{"parentUuid":"u2","type":"assistant","message":{"id":"msg_3","model":"claude-son"#;

#[test]
fn p5_a_session_of_claude_code_can_be_continued() {
    assert_eq!(detect_kind(CLAUDE_CODE).unwrap(), ImportKind::Session(Program::ClaudeCode));
    let imported = read(CLAUDE_CODE);
    let conversation = &imported.conversation;
    assert_eq!(conversation.title.as_deref(), Some("Two files"), "another session's title is not this one's");
    assert_eq!(conversation.model.as_deref(), Some("anthropic/claude-sonnet-4-5-20250929"));
    let branch = conversation.history.branch();
    let roles: Vec<Role> = branch.iter().map(|(_, message)| message.role).collect();
    assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]);
    let lines = lines(&imported);
    let expected = serde_json::json!([
        {"type":"thinking","thought":"Two files.","sourceField":"thinking","signature":"c2lnMQ=="},
        {"type":"thinking","thought":"","sourceField":"redacted_thinking","encrypted":"cmVkYWN0ZWQ=","isHidden":true},
        {"type":"toolCall","id":"t1","name":"Read","arguments":{"path":"a"}},
        {"type":"toolCall","id":"t2","name":"Read","arguments":{"path":"b"}},
    ]);
    assert_eq!(lines[2]["blocks"], expected, "the lines of one answer are one message");
    let expected = serde_json::json!([
        {"type":"toolResult","id":"t1","name":"Read","content":"A","isError":false},
        {"type":"toolResult","id":"t2","name":"Read","content":"no such file","isError":true},
    ]);
    assert_eq!(lines[3]["blocks"], expected, "results of parallel calls are one message");
    assert_eq!(lines[2]["at"], "2026-03-01T10:00:02.000Z");
    let answer = branch[2].1;
    let usage = Usage::default().with_input(3).with_output(90).with_cached(700);
    assert_eq!((answer.ending.clone(), answer.usage), (Some(Ending::ToolCalls), Some(usage)));
    let (_, body) = next_request(&imported);
    assert_eq!(body["messages"][1]["content"][0]["signature"], "c2lnMQ==");
    assert_eq!(body["messages"][1]["content"][1]["data"], "cmVkYWN0ZWQ=");
    assert_eq!(
        imported.all_notes(),
        [
            "line 19, the last, is cut off",
            "the system prompt and the tools of the program are not in its file",
            "passed over: `attachment`, 1 times",
            "passed over: `mode`, 1 times",
            "passed over: a subagent's message, 1 times",
            "passed over: words of the program in the model's place, 1 times",
        ]
    );
}

#[test]
fn p5_undone_or_compacted_messages_of_claude_code_are_another_branch() {
    let text = r#"
{"parentUuid":null,"type":"user","message":{"role":"user","content":"q1"},"uuid":"u1"}
{"parentUuid":"u1","type":"assistant","message":{"id":"m1","model":"claude-opus-4-5","role":"assistant","content":[{"type":"text","text":"taken back"}]},"uuid":"a1"}
{"parentUuid":"u1","type":"assistant","message":{"id":"m2","model":"claude-opus-4-5","role":"assistant","content":[{"type":"text","text":"kept"}]},"uuid":"a2"}
{"parentUuid":null,"logicalParentUuid":"a2","type":"system","subtype":"compact_boundary","uuid":"b1"}
{"parentUuid":"b1","type":"user","isCompactSummary":true,"message":{"role":"user","content":"What was."},"uuid":"u3"}
{"parentUuid":"u3","type":"assistant","message":{"id":"m3","model":"claude-opus-4-5","role":"assistant","content":[{"type":"text","text":"after"}]},"uuid":"a3"}
"#;
    let imported = read(text);
    let history = &imported.conversation.history;
    assert_eq!((history.entries().len(), history.branch().len()), (5, 2));
    assert!(is_summary(history.branch()[0].1), "what stands for the rest is known as such");
    assert_eq!(history.entries()[2].parent, history.entries()[1].parent, "two answers to one question");
    next_request(&imported);
}

#[test]
fn p5_a_signature_without_a_text_is_sent_back_too() {
    let text = r#"
{"parentUuid":null,"type":"user","message":{"role":"user","content":"q"},"uuid":"u1"}
{"parentUuid":"u1","type":"assistant","message":{"id":"m1","model":"claude-opus-4-7","role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"}]},"uuid":"a1"}
{"parentUuid":"a1","type":"assistant","message":{"id":"m1","model":"claude-opus-4-7","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]},"uuid":"a2"}
{"parentUuid":"a2","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}]},"uuid":"r1"}
"#;
    let imported = read(text);
    let (_, body) = next_request(&imported);
    let expected = serde_json::json!({"type":"thinking","thinking":"","signature":"c2ln"});
    assert_eq!(body["messages"][1]["content"][0], expected, "{body}");
    assert!(imported.notes.contains(&"1 images in results of tools are only named".to_owned()));
}

#[test]
fn p5_a_subagents_own_file_is_read() {
    let text =
        r#"{"parentUuid":null,"isSidechain":true,"type":"user","message":{"role":"user","content":"q"},"uuid":"u"}"#;
    assert_eq!(read(text).conversation.history.branch().len(), 1);
}

pub(super) const CODEX: &str = r#"{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"s","cwd":"/w","model_provider":"openai","base_instructions":{"text":"Be Codex."}}}
{"timestamp":"2026-03-01T10:00:00.100Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions>"}]}}
{"timestamp":"2026-03-01T10:00:00.200Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"List it."}]}}
{"timestamp":"2026-03-01T10:00:00.300Z","type":"event_msg","payload":{"type":"user_message","message":"List it."}}
{"timestamp":"2026-03-01T10:00:00.400Z","type":"turn_context","payload":{"cwd":"/w","model":"gpt-5.1-codex","effort":"high"}}
{"timestamp":"2026-03-01T10:00:01.000Z","type":"event_msg","payload":{"type":"agent_reasoning","text":"**Listing**"}}
{"timestamp":"2026-03-01T10:00:01.100Z","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"**Listing**\n\nWith ls."},{"type":"summary_text","text":"Then sum."}],"content":null,"encrypted_content":"gAAAAAone","internal_chat_message_metadata_passthrough":{"turn_id":"t"}}}
{"timestamp":"2026-03-01T10:00:01.200Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}}
{"timestamp":"2026-03-01T10:00:01.250Z","type":"response_item","payload":{"type":"custom_tool_call","status":"completed","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch"}}
{"timestamp":"2026-03-01T10:00:01.300Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{},"last_token_usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":7,"reasoning_output_tokens":5,"total_tokens":17}}}}
{"timestamp":"2026-03-01T10:00:02.000Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"a.txt"}}
{"timestamp":"2026-03-01T10:00:02.100Z","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"call_2","output":"done"}}
{"timestamp":"2026-03-01T10:00:02.200Z","type":"response_item","payload":{"type":"ghost_snapshot","ghost_commit":{"id":"x"}}}
{"timestamp":"2026-03-01T10:00:03.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"gAAAAAtwo"}}
{"timestamp":"2026-03-01T10:00:03.100Z","type":"response_item","payload":{"type":"local_shell_call","call_id":"call_3","status":"completed","action":{"type":"exec","command":["pwd"]}}}
{"timestamp":"2026-03-01T10:00:03.200Z","type":"response_item","payload":{"type":"function_call_output","call_id":"call_3","output":[{"type":"input_text","text":"/w"}]}}
{"timestamp":"2026-03-01T10:00:04.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One file."}],"phase":"final_answer"}}
{"timestamp":"2026-03-01T10:00:05.000Z","type":"world_state","payload":{"x":1}}
"#;

#[test]
fn p5_a_session_of_codex_can_be_continued() {
    assert_eq!(detect_kind(CODEX).unwrap(), ImportKind::Session(Program::Codex));
    let imported = read(CODEX);
    assert_eq!(imported.conversation.model.as_deref(), Some("openai/gpt-5.1-codex"));
    let branch = imported.conversation.history.branch();
    let roles: Vec<Role> = branch.iter().map(|(_, message)| message.role).collect();
    use Role::{Assistant, System, Tool, User};
    assert_eq!(roles, [System, System, User, Assistant, Tool, Assistant, Tool, Assistant]);
    let Block::Thinking(thinking) = &branch[3].1.blocks[0] else { panic!("a thought") };
    let ThinkingContent::Sealed { text, seals } = &thinking.content else { panic!("{thinking:?}") };
    assert_eq!(text, "**Listing**\n\nWith ls.\n\nThen sum.");
    assert_eq!(seals.encrypted.as_ref().unwrap().payload, "gAAAAAone");
    assert_eq!(thinking.summary().count(), 2);
    let Block::ToolCall(patch) = &branch[3].1.blocks[2] else { panic!("a call") };
    assert_eq!(patch.arguments, Arguments::Json(r#"{"input":"*** Begin Patch"}"#.into()));
    let usage = Usage::default().with_input(10).with_output(7).with_thinking(5).with_cached(4);
    assert_eq!(branch[3].1.usage, Some(usage));
    let (_, body) = next_request(&imported);
    let sealed: Vec<&str> =
        body["input"].as_array().unwrap().iter().filter_map(|item| item["encrypted_content"].as_str()).collect();
    assert_eq!(sealed, ["gAAAAAone", "gAAAAAtwo"]);
    assert!(!body.to_string().contains("internal_chat"), "{body}");
    let expected = [
        "the tools of the program are not in its file",
        "openai reads its sealed thinking only under the account that it was made for",
        "passed over: `ghost_snapshot`, 1 times",
        "passed over: `world_state`, 1 times",
    ];
    assert_eq!(imported.all_notes(), expected);
}

#[test]
fn p5_rolled_back_or_compacted_messages_of_codex_are_another_branch() {
    let said = |role: &str, text: &str| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}"#)
    };
    let line =
        |kind: &str, payload: &str| format!("{{\"timestamp\":\"t\",\"type\":\"{kind}\",\"payload\":{payload}}}\n");
    let item = |role: &str, text: &str| line("response_item", &said(role, text));
    let start = [line("turn_context", r#"{"model":"gpt-5"}"#), item("user", "q1"), item("assistant", "a1")].concat();
    let history = format!(r#"{{"message":"","replacement_history":[{},{}]}}"#, said("user", "q1"), said("user", "sum"));
    #[rustfmt::skip]
    let cases = [
        ("rolled back",        [item("user", "q2"), item("assistant", "a2"), line("event_msg", r#"{"type":"thread_rolled_back","num_turns":1}"#), item("user", "q3")].concat(), "q1 a1 q3", 5),
        ("a summary",          [line("compacted", r#"{"message":"What was."}"#), item("user", "q2")].concat(), "Summary of the conversation so far:\n\nWhat was. q2", 4),
        ("a new history",      [line("compacted", &history), item("user", "q2")].concat(), "q1 sum q2", 5),
        ("all rolled back",    [line("event_msg", r#"{"type":"thread_rolled_back","num_turns":9}"#), item("user", "q2")].concat(), "q2", 3),
    ];
    for (name, rest, expected, entries) in cases {
        let imported = read(&format!("{start}{rest}"));
        let branch = imported.conversation.history.branch();
        let texts: Vec<&str> = branch
            .iter()
            .map(|(_, message)| match &message.blocks[0] {
                Block::Text(text) => text.text.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts.join(" "), expected, "{name}");
        assert_eq!(imported.conversation.history.entries().len(), entries, "{name}: nothing is lost");
    }
}

#[test]
fn p5_an_old_session_of_codex_has_its_items_bare() {
    let text = r#"{"id":"s","timestamp":"2025-06-01T10:00:00.000Z","instructions":null}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}
{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"}
{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}
"#;
    assert_eq!(detect_kind(text).unwrap(), ImportKind::Session(Program::Codex));
    let imported = read(text);
    assert_eq!(imported.conversation.history.branch().len(), 2);
    assert_eq!(imported.conversation.history.branch()[1].1.thinking().count(), 1);
}

pub(super) fn opencode(provider: &str, model: &str, parts: &str) -> String {
    format!(
        r#"{{
  "info": {{"id":"ses_1","title":"Weather","directory":"/w","time":{{"created":1,"updated":2}}}},
  "messages": [
    {{"info":{{"id":"msg_1","sessionID":"ses_1","role":"user","time":{{"created":1772359200000}}}},
     "parts":[{{"id":"prt_1","messageID":"msg_1","sessionID":"ses_1","type":"text","text":"Weather?"}},
              {{"id":"prt_2","messageID":"msg_1","sessionID":"ses_1","type":"file","mime":"image/png","url":"data:image/png;base64,QUJD"}}]}},
    {{"info":{{"id":"msg_2","sessionID":"ses_1","role":"assistant","time":{{"created":1772359201000}},"providerID":"{provider}","modelID":"{model}"}},
     "parts":[{parts}]}}
  ]
}}
"#
    )
}

/// Parts of two steps: thinking and a call, then thinking and an answer.
pub(super) fn two_steps(first: &str, second: &str) -> String {
    [
        r#"{"id":"prt_10","type":"step-start"}"#,
        &format!(r#"{{"id":"prt_11","type":"reasoning","text":"Look it up.","time":{{"start":1000,"end":3000}},"metadata":{first}}}"#),
        r#"{"id":"prt_12","type":"tool","callID":"c1","tool":"get","state":{"status":"completed","input":{"k": 1},"output":"42","title":"t","metadata":{},"time":{"start":1,"end":2}}}"#,
        r#"{"id":"prt_13","type":"step-finish","reason":"tool-calls","cost":0,"tokens":{"input":5,"output":6,"reasoning":2,"cache":{"read":1,"write":0}}}"#,
        r#"{"id":"prt_14","type":"step-start"}"#,
        &format!(r#"{{"id":"prt_15","type":"reasoning","text":"It is 42.","time":{{"start":1}},"metadata":{second}}}"#),
        r#"{"id":"prt_16","type":"text","text":"42 degrees."}"#,
        r#"{"id":"prt_17","type":"patch","hash":"h","files":[]}"#,
    ]
    .join(",")
}

#[test]
fn p5_a_session_of_opencode_continues_with_its_provider() {
    #[rustfmt::skip]
    let cases = [
        ("anthropic", "claude-sonnet-4-5", r#"{"anthropic":{"signature":"c2lnMQ=="}}"#, r#"{"anthropic":{"signature":"c2lnMg=="}}"#, "anthropic"),
        ("openai", "gpt-5.1", r#"{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"gAone"}}"#, r#"{"openai":{"itemId":"rs_2","reasoningEncryptedContent":"gAtwo"}}"#, "openai"),
        ("openrouter", "moonshotai/kimi-k2-thinking", r#"{"openrouter":{"reasoning_details":[{"type":"reasoning.text","text":"Look it up.","index":0,"format":"unknown"}]}}"#, r#"{"openrouter":{"reasoning_details":[{"type":"reasoning.text","text":"It is 42.","index":0,"format":"unknown"}]}}"#, "openrouter"),
    ];
    for (provider, model, first, second, dialect) in cases {
        let text = opencode(provider, model, &two_steps(first, second));
        assert_eq!(detect_kind(&text).unwrap(), ImportKind::Session(Program::OpenCode), "{provider}");
        let imported = read(&text);
        assert_eq!(imported.conversation.title.as_deref(), Some("Weather"));
        assert_eq!(imported.conversation.model, Some(format!("{dialect}/{model}")));
        let branch = imported.conversation.history.branch();
        let roles: Vec<Role> = branch.iter().map(|(_, message)| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant], "{provider}");
        assert_eq!(branch[1].1.thinking_text().as_deref(), Some("Look it up."), "{provider}");
        assert_eq!(branch[1].1.ending, Some(Ending::ToolCalls), "{provider}");
        assert!(matches!(&branch[0].1.blocks[1], Block::Media(_)));
        let (encoded, _) = next_request(&imported);
        let seals = ["c2lnMQ==", "gAone", "reasoning_details"];
        assert!(seals.iter().any(|seal| encoded.body.contains(seal)), "{provider}: {}", encoded.body);
        assert!(imported.all_notes().contains(&"passed over: `patch`, 1 times".to_owned()), "{:?}", imported);
    }
}

#[test]
fn p5_opencode_thinking_without_seals_is_sent_back_as_its_provider_expects() {
    let imported = read(&opencode("deepseek", "deepseek-reasoner", &two_steps("{}", "{}")));
    let branch = imported.conversation.history.branch();
    assert_eq!(branch[1].1.origin.as_ref().unwrap().dialect.as_deref(), Some("deepseek"));
    let Block::Thinking(thinking) = &branch[1].1.blocks[0] else { panic!("a thought") };
    assert_eq!(thinking.content, ThinkingContent::Open { text: "Look it up.".into() });
    assert_eq!(thinking.source, "reasoning_content");
    assert!(thinking.span.is_some());
}

#[test]
fn p5_the_files_of_an_older_opencode_are_one_session() {
    let files = [
        (
            "storage/session/p/ses_1.json",
            r#"{"id":"ses_1","title":"Old","directory":"/w","time":{"created":1,"updated":2}}"#,
        ),
        ("storage/part/msg_2/prt_3.json", r#"{"type":"text","text":"a"}"#),
        (
            "storage/part/msg_2/prt_2.json",
            r#"{"id":"prt_2","messageID":"msg_2","type":"reasoning","text":"hm","metadata":{"anthropic":{"redactedData":"cmVk"}},"time":{"start":1}}"#,
        ),
        (
            "storage/message/ses_1/msg_2.json",
            r#"{"id":"msg_2","sessionID":"ses_1","role":"assistant","time":{"created":3},"providerID":"anthropic","modelID":"claude-opus-4-5"}"#,
        ),
        (
            "storage/message/ses_1/msg_1.json",
            r#"{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":2}}"#,
        ),
        ("storage/part/msg_1/prt_1.json", r#"{"id":"prt_1","messageID":"msg_1","type":"text","text":"q"}"#),
        (
            "storage/message/ses_0/msg_0.json",
            r#"{"id":"msg_0","sessionID":"ses_0","role":"user","time":{"created":1}}"#,
        ),
        ("storage/part/broken.json", "{"),
    ];
    let files: Vec<ImportFile<'_>> = files.iter().map(|(name, text)| ImportFile { name, text }).collect();
    let imported = import(&files, dialects()).unwrap();
    assert_eq!(imported.conversation.title.as_deref(), Some("Old"));
    let branch = imported.conversation.history.branch();
    assert_eq!(branch.len(), 2);
    assert_eq!(branch[1].1.blocks.len(), 2, "a part without ids is found by the names of its file");
    let expected = [
        "storage/part/broken.json is not JSON and was passed over",
        "1 messages are of other sessions; import them by themselves",
    ];
    assert_eq!(imported.notes[..2], expected);
}

#[test]
fn p5_each_format_is_recognized_by_its_content() {
    #[rustfmt::skip]
    let cases = [
        ("our header",         "{\"aside\":1}\n",                                             Ok(ImportKind::JsonLines)),
        ("our messages",       "{\"role\":\"user\",\"blocks\":[]}",                           Ok(ImportKind::JsonLines)),
        ("our Markdown",       "---\naside: 1\n---\n",                                        Ok(ImportKind::Markdown)),
        ("with CRLF",          "---\r\naside: 1\r\n---\r\n",                                  Ok(ImportKind::Markdown)),
        ("other Markdown",     "# Title\n",                                                   Err("this cannot be imported: it begins with `# Title`")),
        ("a database",         "SQLite format 3\0",                                           Err("this is a database, not one session")),
        ("other JSON",         "{\"choices\":[]}",                                            Err("this cannot be imported: it begins with `{\"choices\":[]}`")),
        ("nothing",            "",                                                            Err("this cannot be imported: it is empty")),
    ];
    for (name, text, expected) in cases {
        let got = detect_kind(text).map_err(|error| error.to_string());
        assert_eq!(got, expected.map_err(str::to_owned), "{name}");
    }
    let hint = detect_kind("x").unwrap_err().hint().unwrap();
    assert!(
        ["JSON lines", "Markdown", "Claude Code", "Codex", "opencode export"].iter().all(|kind| hint.contains(kind))
    );
}

#[test]
fn p5_files_that_are_not_one_session_are_refused() {
    let file = ImportFile { name: "a.jsonl", text: "{\"aside\":1}" };
    let error = import(&[file, file], dialects()).unwrap_err();
    assert_eq!(error, ImportError::OneAtATime { name: "a.jsonl".into(), kind: ImportKind::JsonLines });
    assert_eq!(
        import(&[ImportFile { name: "e", text: "{\"type\":\"summary\",\"leafUuid\":\"x\"}" }], dialects()).unwrap_err(),
        ImportError::Empty(ImportKind::Session(Program::ClaudeCode))
    );
}
