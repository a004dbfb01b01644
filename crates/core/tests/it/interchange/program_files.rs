//! Session files of pi, Gemini CLI and goose, and what every import knows about its session. We
//! wrote the files after what the programs write.

use aside_core::block::{Block, ThinkingContent};
use aside_core::event::{Ending, Usage};
use aside_core::history::EntryId;
use aside_core::interchange::{ImportError, ImportKind, Imported, Program, detect_kind};
use aside_core::message::Role;
use serde_json::{Value, json};

use super::other_programs::{CLAUDE_CODE, CODEX, lines, next_request, opencode, read, two_steps};

fn roles(imported: &Imported) -> Vec<Role> {
    imported.conversation.history.branch().iter().map(|(_, message)| message.role).collect()
}

/// A session of pi with a tool loop, as JSON lines.
pub(super) fn pi(api: &str, provider: &str, model: &str, thinking: &Value, call: &Value) -> String {
    let answer = |content: Value, stop: &str| {
        json!({"role":"assistant","content":content,"api":api,"provider":provider,"model":model,"stopReason":stop,
               "usage":{"input":10,"output":7,"cacheRead":4,"cacheWrite":0,"reasoning":5,"totalTokens":21},"timestamp":1772359202000u64})
    };
    let id = &call["id"];
    let values = [
        json!({"type":"session","version":3,"id":"pi-1","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/w"}),
        json!({"type":"model_change","id":"e0","parentId":null,"provider":provider,"modelId":model}),
        json!({"type":"message","id":"e1","parentId":"e0","message":{"role":"system","content":"","sections":{"a":"Be pi.","b":"Be brief."},
               "toolsAdded":[{"name":"get","description":"d","parameters":{"type":"object"}}],"timestamp":1772359200000u64}}),
        json!({"type":"message","id":"e2","parentId":"e1","message":{"role":"user","content":[{"type":"text","text":"Weather?"},
               {"type":"image","mimeType":"image/png","data":"QUJD"}],"timestamp":1772359201000u64}}),
        json!({"type":"message","id":"e3","parentId":"e2","message":answer(json!([thinking, call]), "toolUse")}),
        json!({"type":"message","id":"e4","parentId":"e3","message":{"role":"toolResult","toolCallId":id,"toolName":"get",
               "content":[{"type":"text","text":"42"}],"isError":false,"timestamp":1772359203000u64}}),
        json!({"type":"message","id":"e5","parentId":"e4","message":answer(json!([{"type":"text","text":"42 degrees."}]), "stop")}),
        json!({"type":"label","id":"e6","parentId":"e5","targetId":"e2","label":"x"}),
    ];
    values.iter().map(|value| format!("{value}\n")).collect()
}

#[test]
fn p11_a_session_of_pi_continues_with_its_provider() {
    let sealed = |seal: &str| json!({"type":"thinking","thinking":"Look it up.","thinkingSignature":seal});
    let call = |id: &str| json!({"type":"toolCall","id":id,"name":"get","arguments":{"k":1}});
    let item = r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Look it up."}],"encrypted_content":"gAone"}"#;
    let mut signed_call = call("c1");
    signed_call["thoughtSignature"] = json!("c2ln");
    let open = json!({"type":"thinking","thinking":"Look it up."});
    #[rustfmt::skip]
    let cases = [
        ("a signature",     "anthropic-messages",   "anthropic", "claude-sonnet-4-5", sealed("c2lnMQ=="),          call("c1"),      "c2lnMQ=="),
        ("a whole item",    "openai-responses",     "openai",    "gpt-5.1",           sealed(item),                call("c1|fc_1"), "gAone"),
        ("a field",         "openai-completions",   "deepseek",  "deepseek-reasoner", sealed("reasoning_content"), call("c1"),      "Look it up."),
        ("a signed call",   "google-generative-ai", "google",    "gemini-3-pro",      open,                        signed_call,     "c2ln"),
    ];
    for (name, api, provider, model, thinking, call, sent) in cases {
        let text = pi(api, provider, model, &thinking, &call);
        assert_eq!(detect_kind(&text).unwrap(), ImportKind::Session(Program::Pi), "{name}");
        let imported = read(&text);
        use Role::{Assistant, System, Tool, User};
        assert_eq!(roles(&imported), [System, User, Assistant, Tool, Assistant], "{name}");
        let branch = imported.conversation.history.branch();
        assert_eq!(branch[2].1.thinking_text().as_deref(), Some("Look it up."), "{name}");
        assert_eq!(branch[2].1.ending, Some(Ending::ToolCalls), "{name}");
        let usage = Usage::default().with_input(10).with_output(7).with_thinking(5).with_cached(4).with_cache_write(0);
        assert_eq!(branch[2].1.usage, Some(usage), "{name}");
        assert!(matches!(&branch[1].1.blocks[1], Block::Media(_)), "{name}");
        let Block::ToolResult(result) = &branch[3].1.blocks[0] else { panic!("{name}: a result") };
        assert_eq!((result.id.as_str(), result.content.as_str()), ("c1", "42"), "{name}");
        assert_eq!(imported.conversation.tools.len(), 1, "{name}");
        // Inside the tool loop, every provider gets its thinking back.
        let mut open = imported.clone();
        open.conversation.history.fork(Some(EntryId(3))).unwrap();
        let (encoded, _) = next_request(&open);
        assert!(encoded.body.contains(sent), "{name}: {}", encoded.body);
        assert!(imported.all_notes().contains(&"passed over: `label`, 1 times".to_owned()), "{name}");
    }
}

#[test]
fn p11_redacted_thinking_of_pi_has_no_words_of_the_program() {
    let thinking =
        json!({"type":"thinking","thinking":"[Reasoning redacted]","thinkingSignature":"cmVk","redacted":true});
    let call = json!({"type":"toolCall","id":"c1","name":"get","arguments":{}});
    let imported = read(&pi("anthropic-messages", "anthropic", "claude-sonnet-4-5", &thinking, &call));
    let expected =
        json!({"type":"thinking","thought":"","sourceField":"redacted_thinking","encrypted":"cmVk","isHidden":true});
    assert_eq!(lines(&imported)[2]["blocks"][0], expected);
}

#[test]
fn p11_branches_and_compactions_of_pi_are_kept() {
    let said = |id: &str, parent: &str, text: &str| {
        let message = json!({"role":"user","content":text});
        format!("{}\n", json!({"type":"message","id":id,"parentId":parent,"message":message}))
    };
    let start = format!(
        "{}\n{}",
        json!({"type":"session","id":"s","cwd":"/w"}),
        [said("a", "", "q1"), said("b", "a", "q2"), said("c", "b", "q3")].concat()
    );
    let compaction = |kept: &str| {
        format!(
            "{}\n",
            json!({"type":"compaction","id":"k","parentId":"c","summary":"What was.","firstKeptEntryId":kept})
        )
    };
    let summary = "Summary of the conversation so far:\n\nWhat was.";
    #[rustfmt::skip]
    let cases = [
        ("a branch",       said("d", "a", "q4"),                                  "q1 q4".to_owned(),              4),
        ("all summarised", [compaction("k"), said("d", "k", "q4")].concat(),      format!("{summary} q4"),         5),
        ("one kept",       [compaction("c"), said("d", "k", "q4")].concat(),      format!("{summary} q3 q4"),      6),
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

/// A session of Gemini CLI: the program writes an answer again when its tool is done.
pub(super) fn gemini_cli() -> String {
    let thoughts = json!([{"subject":"Looking","description":"I call get.","timestamp":"t"},{"subject":"Then","description":"I answer.","timestamp":"t"}]);
    let tokens = json!({"input":10,"output":2,"cached":4,"thoughts":5,"tool":0,"total":17});
    let response = json!([{"functionResponse":{"id":"get__1","name":"get","response":{"output":"42"}}}]);
    let answer = json!({"id":"m3","timestamp":"2026-03-01T10:00:02.000Z","type":"gemini","content":"","thoughts":thoughts,"tokens":tokens,"model":"gemini-2.5-pro"});
    let mut done = answer.clone();
    done["toolCalls"] =
        json!([{"id":"get__1","name":"get","args":{"k":1},"result":response,"status":"success","displayName":"Get"}]);
    let values = [
        json!({"sessionId":"gem-1","projectHash":"h","startTime":"2026-03-01T10:00:00.000Z","lastUpdated":"2026-03-01T10:00:00.000Z","kind":"main"}),
        json!({"$set":{"messages":[{"id":"m1","timestamp":"2026-03-01T10:00:00.000Z","type":"user","content":[{"text":"<session_context>\nSetting up.\n</session_context>"}]}]}}),
        json!({"id":"m2","timestamp":"2026-03-01T10:00:01.000Z","type":"user","content":[{"text":"Weather?"}]}),
        json!({"$set":{"lastUpdated":"2026-03-01T10:00:01.500Z"}}),
        answer,
        done,
        json!({"id":"m4","timestamp":"2026-03-01T10:00:03.000Z","type":"user","content":response}),
        json!({"id":"m5","timestamp":"2026-03-01T10:00:04.000Z","type":"gemini","content":"42 degrees.","thoughts":[],"tokens":tokens,"model":"gemini-2.5-pro"}),
        json!({"id":"m6","timestamp":"2026-03-01T10:00:05.000Z","type":"info","content":"Bye."}),
    ];
    values.iter().map(|value| format!("{value}\n")).collect()
}

#[test]
fn p11_a_session_of_gemini_cli_can_be_continued() {
    let text = gemini_cli();
    assert_eq!(detect_kind(&text).unwrap(), ImportKind::Session(Program::GeminiCli));
    let imported = read(&text);
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&imported), [User, User, Assistant, Tool, Assistant], "the result is stored once");
    assert_eq!(imported.conversation.title.as_deref(), Some("Weather?"));
    let branch = imported.conversation.history.branch();
    let Block::Thinking(thinking) = &branch[2].1.blocks[0] else { panic!("a thought") };
    assert_eq!(
        thinking.content,
        ThinkingContent::Open { text: "**Looking**\n\nI call get.\n\n**Then**\n\nI answer.".into() }
    );
    let titles: Vec<Option<&str>> = thinking.summary().map(|item| item.title).collect();
    assert_eq!(titles, [Some("Looking"), Some("Then")]);
    assert_eq!(
        lines(&imported)[2]["blocks"][1],
        json!({"type":"toolCall","id":"get__1","name":"get","arguments":{"k":1}})
    );
    assert_eq!(lines(&imported)[2]["at"], "2026-03-01T10:00:02.000Z");
    let usage = Usage::default().with_input(10).with_output(2).with_thinking(5).with_cached(4);
    assert_eq!(branch[2].1.usage, Some(usage));
    assert_eq!(imported.conversation.model.as_deref(), Some("gemini/gemini-2.5-pro"));
    assert!(imported.all_notes().contains(&"passed over: `info`, 1 times".to_owned()));
}

#[test]
fn p11_signatures_in_a_resumed_session_of_gemini_cli_join_the_facts_before() {
    // A resumed session writes all messages again: with parts, without tokens and thoughts.
    let parts = json!([{"text":"Looking I call get.","thought":true},
                       {"functionCall":{"id":"get__1","name":"get","args":{"k":1}},"thoughtSignature":"c2ln"}]);
    let again = json!({"$set":{"messages":[
        {"id":"m1","timestamp":"2026-03-02T10:00:00.000Z","type":"user","content":[{"text":"<session_context>x</session_context>"}]},
        {"id":"m2","timestamp":"2026-03-02T10:00:00.000Z","type":"user","content":[{"text":"Weather?"}]},
        {"id":"m3","timestamp":"2026-03-02T10:00:00.000Z","type":"gemini","content":parts},
        {"id":"m3_response","timestamp":"2026-03-02T10:00:00.000Z","type":"user","content":[{"functionResponse":{"id":"get__1","name":"get","response":{"output":"42"}}}]}]}});
    let imported = read(&format!("{}{again}\n", gemini_cli()));
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&imported), [User, User, Assistant, Tool]);
    let answer = &lines(&imported)[2];
    assert_eq!(answer["blocks"][0]["thought"], "**Looking**\n\nI call get.\n\n**Then**\n\nI answer.");
    assert_eq!(answer["blocks"][1]["signature"], "c2ln");
    assert_eq!(answer["usage"]["input"], 10);
    assert_eq!(answer["at"], "2026-03-01T10:00:02.000Z");
    assert_eq!(imported.conversation.history.entries().len(), 5, "the answer that is gone is another branch");
    let (encoded, _) = next_request(&imported);
    assert!(encoded.body.contains("c2ln"), "{}", encoded.body);
}

#[test]
fn p11_a_rewound_or_old_session_of_gemini_cli_is_read() {
    let rewound = read(&format!("{}{}\n", gemini_cli(), json!({"$rewindTo":"m3"})));
    assert_eq!(roles(&rewound), [Role::User, Role::User]);
    assert_eq!(rewound.conversation.history.entries().len(), 5);
    let old = json!({"sessionId":"g","projectHash":"h","startTime":"t","lastUpdated":"t","summary":"About weather","messages":[
        {"id":"a","timestamp":"2026-03-01T10:00:00.000Z","type":"user","content":"Weather?"},
        {"id":"b","timestamp":"2026-03-01T10:00:01.000Z","type":"gemini","content":"Fine.","thoughts":[{"subject":"S","description":"D"}],"model":"gemini-2.5-pro"}]});
    let text = serde_json::to_string_pretty(&old).unwrap();
    assert_eq!(detect_kind(&text).unwrap(), ImportKind::Session(Program::GeminiCli));
    let old = read(&text);
    assert_eq!(roles(&old), [Role::User, Role::Assistant]);
    assert_eq!(old.conversation.title.as_deref(), Some("About weather"));
    assert_eq!(old.conversation.history.branch()[1].1.thinking_text().as_deref(), Some("**S**\n\nD"));
}

pub(super) const GOOSE: &str = r#"{"working_dir":"/w","description":"Weather","schedule_id":null,"message_count":4,"total_tokens":5}
{"id":"m1","role":"user","created":1772359200,"content":[{"type":"text","text":"Weather?"}]}
{"id":"m2","role":"assistant","created":1772359201,"content":[{"type":"thinking","thinking":"Look it up.","signature":"c2lnMQ=="},{"type":"redactedThinking","data":"cmVk"},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"get","arguments":{"k":1}}}}]}
{"role":"user","created":1772359202,"content":[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":[{"type":"text","text":"42","annotations":{"audience":["user"]}}]}},{"type":"toolResponse","id":"c2","toolResult":{"status":"error","error":"-32603: gone"}}]}
{"role":"assistant","created":1772359203,"content":[{"type":"text","text":"42 degrees."}]}
"#;

#[test]
fn p11_an_old_session_of_goose_is_read() {
    assert_eq!(detect_kind(GOOSE).unwrap(), ImportKind::Session(Program::Goose));
    let imported = read(GOOSE);
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&imported), [User, Assistant, Tool, Assistant]);
    assert_eq!(imported.conversation.title.as_deref(), Some("Weather"));
    let lines = lines(&imported);
    let expected = json!([
        {"type":"thinking","thought":"Look it up.","sourceField":"thinking","signature":"c2lnMQ=="},
        {"type":"thinking","thought":"","sourceField":"redacted_thinking","encrypted":"cmVk","isHidden":true},
        {"type":"toolCall","id":"c1","name":"get","arguments":{"k":1}},
    ]);
    assert_eq!(lines[1]["blocks"], expected);
    let expected = json!([
        {"type":"toolResult","id":"c1","name":"get","content":"42","isError":false},
        {"type":"toolResult","id":"c2","name":"","content":"-32603: gone","isError":true},
    ]);
    assert_eq!(lines[2]["blocks"], expected);
    assert_eq!(lines[0]["at"], "2026-03-01T10:00:00.000Z");
}

#[test]
fn p11_every_import_knows_its_program_session_and_folder() {
    let call = json!({"type":"toolCall","id":"c1","name":"get","arguments":{}});
    let open = json!({"type":"thinking","thinking":"hm"});
    let pi = pi("anthropic-messages", "anthropic", "claude-sonnet-4-5", &open, &call);
    let claude = CLAUDE_CODE.replace(r#""uuid":"u1","#, r#""uuid":"u1","cwd":"/w","#);
    #[rustfmt::skip]
    let cases = [
        (claude,                                                    Program::ClaudeCode, Some("s1"),    Some("/w")),
        (CODEX.to_owned(),                                          Program::Codex,      Some("s"),     Some("/w")),
        (opencode("deepseek", "deepseek-chat", &two_steps("{}", "{}")), Program::OpenCode, Some("ses_1"), Some("/w")),
        (gemini_cli(),                                              Program::GeminiCli,  Some("gem-1"), None),
        (pi,                                                        Program::Pi,         Some("pi-1"),  Some("/w")),
        (GOOSE.to_owned(),                                          Program::Goose,      None,          Some("/w")),
    ];
    for (text, program, session, folder) in cases {
        let imported = read(&text);
        let source = imported.source.unwrap();
        assert_eq!((source.program, source.session.as_deref(), source.folder.as_deref()), (program, session, folder));
        assert!(!source.is_subagent, "{program}");
        let extra = |name: &str| {
            let found = imported.conversation.extra.iter().find(|(member, _)| member == name);
            found.map(|(_, value)| serde_json::from_str::<Value>(value).unwrap())
        };
        let from = session.map(|session| json!({"program":program.name(),"session":session}));
        assert_eq!(extra("importedFrom"), from, "{program}");
        assert_eq!(extra("folder"), None, "{program}: a path of this machine is not exported");
    }
}

#[test]
fn p11_a_title_is_the_programs_own_or_what_the_user_said_first() {
    let codex = |text: &str| {
        let item = json!({"type":"message","role":"user","content":[{"type":"input_text","text":text}]});
        format!("{}\n", json!({"timestamp":"t","type":"response_item","payload":item}))
    };
    let claude =
        |text: &str| format!("{}\n", json!({"type":"user","uuid":text,"message":{"role":"user","content":text}}));
    let titled = |kind: &str, member: &str, title: &str| format!("{}\n", json!({"type":kind,member:title}));
    let name = json!({"type":"event_msg","payload":{"type":"thread_name_updated","thread_name":"Named"}});
    let environment = codex("<environment_context>\n<cwd>/w</cwd>\n</environment_context>");
    let agents = codex("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>");
    let caveat = claude("Caveat: The messages below were generated by the user while running local commands.");
    let command = claude("<command-name>/clear</command-name>\n<command-args></command-args>");
    let long = "word ".repeat(30);
    #[rustfmt::skip]
    let cases = [
        ("after boilerplate",  [environment.clone(), agents.clone(), codex("Fix the build.")].concat(),       "Fix the build."),
        ("a name",             [codex("Fix the build."), format!("{name}\n")].concat(),                       "Named"),
        ("only boilerplate",   [environment, agents].concat(),                                                "session of Codex"),
        ("command tags",       [caveat, command, claude("Rename it.")].concat(),                              "Rename it."),
        ("the user's title",   [claude("q"), titled("custom-title", "customTitle", "Mine"), titled("ai-title", "aiTitle", "Its")].concat(), "Mine"),
        ("the program's",      [claude("q"), titled("ai-title", "aiTitle", "Its")].concat(),                  "Its"),
        ("not a title",        [claude("q"), titled("ai-title", "aiTitle", "<system-reminder>x")].concat(),   "q"),
        ("a long prompt",      claude(&long),                                                                 "word word word word word word word word word word word word…"),
    ];
    for (name, text, expected) in cases {
        assert_eq!(read(&text).conversation.title.as_deref(), Some(expected), "{name}");
    }
    let default = opencode("deepseek", "deepseek-chat", &two_steps("{}", "{}"))
        .replace("\"Weather\"", "\"New session - 2026-03-01T10:00:00.000Z\"");
    assert_eq!(read(&default).conversation.title.as_deref(), Some("Weather?"));
}

#[test]
fn p11_a_file_without_messages_says_so() {
    let header = json!({"type":"session","version":3,"id":"s","cwd":"/w"}).to_string();
    let file = aside_core::interchange::ImportFile { name: "x", text: &header };
    let error = aside_core::interchange::import(&[file], crate::support::dialects()).unwrap_err();
    assert_eq!(error, ImportError::Empty(ImportKind::Session(Program::Pi)));
}
