//! Sessions from the databases of OpenCode, goose and llm. We wrote the rows after what the
//! programs write.

use aside_core::block::Block;
use aside_core::event::Usage;
use aside_core::interchange::{ImportError, ImportKind, Imported, Program, TableRows, database_layouts, import_rows};
use aside_core::message::Role;
use serde_json::{Value, json};

use super::other_programs::{lines, next_request};
use crate::support::dialects;

pub(super) fn table(name: &str, rows: &[Value]) -> TableRows {
    TableRows { table: name.to_owned(), rows: rows.iter().map(Value::to_string).collect() }
}

fn read(program: Program, tables: &[TableRows]) -> Imported {
    import_rows(program, tables, dialects()).unwrap_or_else(|error| panic!("{error}"))
}

fn roles(imported: &Imported) -> Vec<Role> {
    imported.conversation.history.branch().iter().map(|(_, message)| message.role).collect()
}

pub(super) fn opencode_rows() -> Vec<TableRows> {
    let data = |value: Value| value.to_string();
    let answer = json!({"role":"assistant","modelID":"claude-sonnet-4-5","providerID":"anthropic","time":{"created":1772359201000u64}});
    let reasoning = json!({"type":"reasoning","text":"Look it up.","time":{"start":1,"end":2},"metadata":{"anthropic":{"signature":"c2lnMQ=="}}});
    let tool =
        json!({"type":"tool","tool":"get","callID":"c1","state":{"status":"completed","input":{"k":1},"output":"42"}});
    vec![
        table(
            "session",
            &[
                json!({"id":"ses_1","parent_id":null,"title":"Weather","directory":"/w","time_updated":1772359202000u64}),
            ],
        ),
        table(
            "message",
            &[
                json!({"id":"msg_1","session_id":"ses_1","data":data(json!({"role":"user","time":{"created":1772359200000u64}}))}),
                json!({"id":"msg_2","session_id":"ses_1","data":data(answer)}),
            ],
        ),
        table(
            "part",
            &[
                json!({"id":"prt_1","message_id":"msg_1","data":data(json!({"type":"text","text":"Weather?"}))}),
                json!({"id":"prt_2","message_id":"msg_2","data":data(reasoning)}),
                json!({"id":"prt_3","message_id":"msg_2","data":data(tool)}),
            ],
        ),
    ]
}

#[test]
fn p11_rows_of_opencode_are_a_session() {
    let imported = read(Program::OpenCode, &opencode_rows());
    assert_eq!(roles(&imported), [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(imported.conversation.title.as_deref(), Some("Weather"));
    let source = imported.source.clone().unwrap();
    assert_eq!((source.session.as_deref(), source.folder.as_deref()), (Some("ses_1"), Some("/w")));
    let (encoded, _) = next_request(&imported);
    assert!(encoded.body.contains("c2lnMQ=="), "{}", encoded.body);
}

pub(super) fn goose_rows() -> Vec<TableRows> {
    let message = |role: &str, content: Value, metadata: Value| {
        json!({"message_id":"m","session_id":"20260301_1","role":role,"content_json":content.to_string(),
               "created_timestamp":1772359200,"metadata_json":metadata.to_string()})
    };
    let seen = json!({"userVisible":true,"agentVisible":true});
    let answered = json!({"agentVisible":true,"inference":{"provider":"google","requestedModel":"gemini-3-pro"},
                          "usage":{"inputTokens":10,"outputTokens":7,"totalTokens":17}});
    let call = json!([{"type":"thinking","thinking":"Look it up.","signature":""},
                      {"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":{"name":"get","arguments":{"k":1}}},
                       "metadata":{"thoughtSignature":"c2ln"}}]);
    let result = json!([{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":[{"type":"text","text":"42"}],"isError":false}}}]);
    vec![
        table(
            "sessions",
            &[
                json!({"id":"20260301_1","name":"CLI Session","description":"","session_type":"user","working_dir":"/w","provider_name":"google",
                     "model_config_json":"{\"model_name\":\"gemini-3-pro\"}"}),
            ],
        ),
        table(
            "messages",
            &[
                message(
                    "user",
                    json!([{"type":"text","text":"Gone."}]),
                    json!({"userVisible":true,"agentVisible":false}),
                ),
                message(
                    "user",
                    json!([{"type":"text","text":"<turn-context>now</turn-context>"}]),
                    json!({"userVisible":false,"agentVisible":true}),
                ),
                message("user", json!([{"type":"text","text":"Weather?"}]), seen.clone()),
                message("assistant", call, answered.clone()),
                message("user", result, seen.clone()),
                message("assistant", json!([{"type":"systemNotification","msg":"Compacted"}]), seen),
                message("assistant", json!([{"type":"text","text":"42 degrees."}]), answered),
            ],
        ),
    ]
}

#[test]
fn p11_rows_of_goose_are_a_session() {
    let imported = read(Program::Goose, &goose_rows());
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&imported), [User, User, Assistant, Tool, Assistant]);
    assert_eq!(imported.conversation.history.entries().len(), 6, "what a compaction replaced is another branch");
    assert_eq!(imported.conversation.title.as_deref(), Some("Weather?"), "neither a default nor the program's text");
    assert_eq!(imported.conversation.model.as_deref(), Some("gemini/gemini-3-pro"));
    let branch = imported.conversation.history.branch();
    assert_eq!(branch[2].1.usage, Some(Usage::default().with_input(10).with_output(7)));
    let Block::ToolResult(result) = &branch[3].1.blocks[0] else { panic!("a result") };
    assert_eq!((result.name.as_str(), result.content.as_str()), ("get", "42"));
    let (encoded, _) = next_request(&imported);
    assert!(encoded.body.contains("c2ln"), "{}", encoded.body);
    assert!(imported.all_notes().contains(&"passed over: `systemNotification`, 1 times".to_owned()));
}

pub(super) fn llm_threads() -> Vec<TableRows> {
    let message = |hash: &str, parent: Option<&str>, role: &str| json!({"hash":hash,"parent_hash":parent,"role":role});
    let part = |id: u64, hash: &str, kind: &str, text: Option<&str>, payload: Option<Value>| json!({"id":id,"message_hash":hash,"position":id,"type":kind,"text":text,"payload":payload.map(|value| value.to_string())});
    let turn = |id: &str, parent: &str, tip: &str| {
        json!({"id":id,"thread_id":"t1","parent_message_hash":parent,"tip_message_hash":tip,"model":"gpt-5.1","input_tokens":10,
               "output_tokens":7,"token_details":"{\"output_tokens_details\":{\"reasoning_tokens\":5}}","datetime_utc":"2026-03-01T10:00:01.250000+00:00"})
    };
    let sealed = json!({"provider_metadata":{"openai":{"id":"rs_1","encrypted_content":"gAone","summary":[{"type":"summary_text","text":"Look it up."}]}}});
    let call = json!({"name":"get","arguments":{"k":1},"tool_call_id":"c1"});
    let result = json!({"name":"get","output":"42","tool_call_id":"c1"});
    let with_fragment = json!({"text_ref":[{"fragment":7},{"literal":"Weather?"}]});
    vec![
        table("threads", &[json!({"id":"t1","name":"Weather","tip_message_hash":"h4"})]),
        table("turns", &[turn("u1", "h1", "h2"), turn("u2", "h3", "h4"), turn("u3", "h1", "h5")]),
        table(
            "messages",
            &[
                message("h1", None, "user"),
                message("h2", Some("h1"), "assistant"),
                message("h3", Some("h2"), "tool"),
                message("h4", Some("h3"), "assistant"),
                message("h5", Some("h1"), "assistant"),
            ],
        ),
        table(
            "parts",
            &[
                part(1, "h1", "text", None, Some(with_fragment)),
                part(2, "h1", "attachment", None, Some(json!({"attachment":{"id":"img"}}))),
                part(3, "h2", "reasoning", Some("Look it up."), Some(sealed)),
                part(4, "h2", "tool_call", None, Some(call)),
                part(5, "h3", "tool_result", None, Some(result)),
                part(6, "h4", "text", Some("42 degrees."), None),
                part(7, "h5", "text", Some("No idea."), None),
            ],
        ),
        table("fragments", &[json!({"id":7,"content":"In Rome. "})]),
        table("attachments", &[json!({"id":"img","type":"image/png","path":null,"url":null,"content":"414243"})]),
        table("tools", &[json!({"id":1,"name":"get","description":"d","input_schema":"{\"type\":\"object\"}"})]),
    ]
}

#[test]
fn p11_rows_of_llm_are_a_session() {
    let imported = read(Program::Llm, &llm_threads());
    assert_eq!(imported.conversation.title.as_deref(), Some("Weather"));
    assert_eq!(imported.conversation.history.entries().len(), 5, "each message is stored once");
    assert_eq!(roles(&imported), [Role::User, Role::Assistant], "the last turn is the current one");
    let lines = lines(&imported);
    let expected =
        json!([{"type":"text","text":"In Rome. Weather?"},{"type":"image","mediaType":"image/png","data":"QUJD"}]);
    assert_eq!(lines[0]["blocks"], expected);
    assert_eq!(lines[1]["blocks"][0]["encrypted"], "gAone");
    assert_eq!(lines[1]["blocks"][0]["thought"], "Look it up.");
    assert_eq!(lines[1]["at"], "2026-03-01T10:00:01.250Z");
    let entry = &imported.conversation.history.entries()[1];
    let usage = Usage::default().with_input(10).with_output(7).with_thinking(5);
    assert_eq!(entry.message.usage, Some(usage));
    assert_eq!(
        lines[2]["blocks"][0],
        json!({"type":"toolResult","id":"c1","name":"get","content":"42","isError":false})
    );
    assert_eq!(imported.conversation.model.as_deref(), Some("openai/gpt-5.1"));
    assert_eq!(imported.conversation.tools.len(), 1);
    let mut first = imported;
    first.conversation.history.fork(Some(aside_core::history::EntryId(3))).unwrap();
    let (encoded, _) = next_request(&first);
    assert!(encoded.body.contains("gAone"), "{}", encoded.body);
}

pub(super) fn llm_conversations() -> Vec<TableRows> {
    let response = |id: &str, prompt: &str, reasoning: &str, answer: &str| {
        json!({"id":id,"model":"deepseek-chat","prompt":prompt,"system":"Be brief.","response":answer,"reasoning":reasoning,
               "conversation_id":"c","datetime_utc":"2025-03-01T10:00:00.000001","input_tokens":3,"output_tokens":4})
    };
    vec![
        table("conversations", &[json!({"id":"c","name":"Weather?","model":"deepseek-chat"})]),
        table("responses", &[response("r1", "Weather?", "Look it up.", ""), response("r2", "", "", "42 degrees.")]),
        table("tool_calls", &[json!({"response_id":"r1","name":"get","arguments":"{\"k\": 1}","tool_call_id":"c1"})]),
        table("tool_results", &[json!({"response_id":"r2","name":"get","output":"42","tool_call_id":"c1"})]),
        table("prompt_fragments", &[json!({"response_id":"r1","content":"In Rome."})]),
    ]
}

#[test]
fn p11_rows_of_an_older_llm_are_a_session() {
    let imported = read(Program::Llm, &llm_conversations());
    use Role::{Assistant, System, Tool, User};
    assert_eq!(roles(&imported), [System, User, Assistant, Tool, Assistant]);
    let lines = lines(&imported);
    assert_eq!(lines[1]["blocks"][0]["text"], "In Rome.\nWeather?");
    assert_eq!(lines[2]["blocks"][0]["thought"], "Look it up.");
    assert_eq!(lines[2]["blocks"][1], json!({"type":"toolCall","id":"c1","name":"get","arguments":{"k":1}}));
    assert_eq!(lines[3]["blocks"][0]["content"], "42");
    assert_eq!(lines[4]["at"], "2025-03-01T10:00:00.000Z");
}

#[test]
fn p11_a_circle_of_messages_ends() {
    let rows = [
        table("threads", &[json!({"id":"t1"})]),
        table("turns", &[json!({"id":"u","tip_message_hash":"a","model":"m"})]),
        table(
            "messages",
            &[json!({"hash":"a","parent_hash":"b","role":"user"}), json!({"hash":"b","parent_hash":"a","role":"user"})],
        ),
    ];
    assert_eq!(read(Program::Llm, &rows).conversation.history.entries().len(), 2);
}

#[test]
fn p11_programs_with_a_database_have_a_layout_for_it() {
    for program in Program::ALL {
        let has_database = matches!(program, Program::OpenCode | Program::Goose | Program::Llm);
        assert_eq!(database_layouts(program).is_empty(), !has_database, "{program}");
        let error = import_rows(program, &[], dialects()).unwrap_err();
        assert_eq!(error, ImportError::Empty(ImportKind::Session(program)), "{program}");
        assert_eq!(Program::parse(program.name()), Some(program));
    }
}
