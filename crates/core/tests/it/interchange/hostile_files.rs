//! Broken, truncated, shuffled and made-up files: importing never panics, and any imported
//! conversation can be exported.

use aside_core::conversation::Conversation;
use aside_core::interchange::{
    ImportFile, Imported, OpaqueData, Program, TableRows, ThinkingMarkup, detect_kind, import, import_rows,
    write_lines, write_markdown,
};
use proptest::prelude::*;

use super::generated_conversations::{conversation, nasty};
use super::other_programs::{CLAUDE_CODE, CODEX, opencode, two_steps};
use super::program_files::{GOOSE, gemini_cli, pi};
use super::program_rows::{goose_rows, llm_conversations, llm_threads, opencode_rows};
use crate::support::dialects;

/// Words that some importer looks for.
const WORDS: &[&str] = &[
    "type",
    "message",
    "content",
    "role",
    "uuid",
    "parentUuid",
    "isSidechain",
    "id",
    "model",
    "usage",
    "user",
    "text",
    "assistant",
    "summary",
    "thinking",
    "signature",
    "redacted_thinking",
    "data",
    "tool_use",
    "tool_result",
    "input",
    "tool_use_id",
    "timestamp",
    "payload",
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "replacement_history",
    "reasoning",
    "encrypted_content",
    "function_call",
    "call_id",
    "arguments",
    "output",
    "function_call_output",
    "local_shell_call",
    "custom_tool_call",
    "action",
    "thread_rolled_back",
    "num_turns",
    "token_count",
    "info",
    "last_token_usage",
    "messages",
    "parts",
    "sessionID",
    "messageID",
    "time",
    "created",
    "start",
    "end",
    "tool",
    "callID",
    "state",
    "status",
    "completed",
    "metadata",
    "openai",
    "itemId",
    "aside",
    "head",
    "parent",
    "blocks",
    "thought",
    "native",
    "nativeText",
    "items",
    "toolCall",
    "unmodelled",
    "at",
    "startedAt",
    "2026-03-01T10:00:00.000Z",
    "99999999999999999999-01-01T00:00:00Z",
    "500000000-12-31T24:60:60.999Z",
    "sessionId",
    "projectHash",
    "$set",
    "$rewindTo",
    "gemini",
    "thoughts",
    "subject",
    "description",
    "toolCalls",
    "args",
    "result",
    "functionCall",
    "functionResponse",
    "response",
    "thoughtSignature",
    "session",
    "cwd",
    "parentId",
    "api",
    "anthropic-messages",
    "openai-responses",
    "thinkingSignature",
    "toolResult",
    "toolCallId",
    "compaction",
    "firstKeptEntryId",
    "sections",
    "toolRequest",
    "toolResponse",
    "value",
    "content_json",
    "metadata_json",
    "hash",
    "parent_hash",
    "tip_message_hash",
    "message_hash",
    "payload",
    "provider_metadata",
    "response_id",
];

fn json() -> impl Strategy<Value = String> {
    let word = || prop::sample::select(WORDS).prop_map(|word| format!("{word:?}"));
    let leaf = prop_oneof![
        4 => word(),
        1 => Just("null".to_owned()),
        1 => Just("true".to_owned()),
        1 => any::<u64>().prop_map(|number| number.to_string()),
        1 => nasty().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        let members = prop::collection::vec((prop::sample::select(WORDS), inner.clone()), 0..6);
        let object = members.prop_map(|members| {
            let members: Vec<String> = members.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", members.join(","))
        });
        let array = prop::collection::vec(inner, 0..4).prop_map(|elements| format!("[{}]", elements.join(",")));
        prop_oneof![3 => object, 1 => array]
    })
}

/// A valid file with lines removed, duplicated, moved and truncated.
fn mangled() -> impl Strategy<Value = String> {
    let sealed = r#"{"openai":{"itemId":"rs_1","reasoningEncryptedContent":"g"}}"#;
    let thinking = serde_json::json!({"type":"thinking","thinking":"hm","thinkingSignature":"c2ln"});
    let call = serde_json::json!({"type":"toolCall","id":"c1","name":"get","arguments":{},"thoughtSignature":"{}"});
    let known: Vec<String> = vec![
        CLAUDE_CODE.to_owned(),
        CODEX.to_owned(),
        opencode("openai", "gpt-5", &two_steps(sealed, sealed)),
        gemini_cli(),
        pi("openai-completions", "openrouter", "x", &thinking, &call),
        GOOSE.to_owned(),
    ];
    let file = prop_oneof![
        3 => prop::sample::select(known),
        1 => conversation().prop_map(|conversation| write_lines(&conversation, OpaqueData::Keep)),
        1 => conversation().prop_map(|conversation| write_markdown(&conversation, ThinkingMarkup::Callout)),
        1 => conversation().prop_map(|conversation| write_markdown(&conversation, ThinkingMarkup::Details)),
    ];
    let edit = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..5u8, json());
    (file, prop::collection::vec(edit, 0..6)).prop_map(|(file, edits)| {
        let mut lines: Vec<String> = file.lines().map(str::to_owned).collect();
        for (at, other, how, json) in edits {
            if lines.is_empty() {
                break;
            }
            let (at, other) = (at.index(lines.len()), other.index(lines.len()));
            match how {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[other].clone()),
                2 => lines.swap(at, other),
                3 => lines[at] = lines[at].chars().take(other * 7).collect(),
                _ => lines.insert(at, json),
            }
        }
        lines.join("\n")
    })
}

fn check(imported: Imported) -> Result<(), TestCaseError> {
    let written = write_lines(&imported.conversation, OpaqueData::Keep);
    let again = Conversation::parse(&written).map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
    // Of two lines with the same name only one can keep it.
    let entries = |conversation: &Conversation| -> Vec<_> {
        let entries = conversation.history.entries().iter();
        entries.map(|entry| (entry.parent, entry.message.clone())).collect()
    };
    prop_assert_eq!(entries(&again), entries(&imported.conversation), "{}", &written);
    prop_assert_eq!(again.history.head(), imported.conversation.history.head(), "{}", &written);
    prop_assert_eq!(write_lines(&again, OpaqueData::Keep), written);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn p5_no_text_makes_an_importer_panic(text in mangled(), name in nasty()) {
        let _kind = detect_kind(&text);
        let file = ImportFile { name: &name, text: &text };
        if let Ok(imported) = import(&[file], dialects()) {
            check(imported)?;
        }
        // As OpenCode files, whatever they are.
        if let Ok(imported) = import(&[ImportFile { name: "x", text: "{}" }, file], dialects()) {
            check(imported)?;
        }
    }

    #[test]
    fn p5_made_up_files_are_read_as_far_as_they_go(
        start in prop::sample::select(&[
            "{\"type\":\"user\",\"uuid\":\"u\",\"message\":{}}",
            "{\"type\":\"session_meta\",\"payload\":{}}",
            "{\"type\":\"message\",\"content\":[{\"type\":\"input_text\"}]}",
            "{\"aside\":1}",
            "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/w\"}",
            "{\"sessionId\":\"s\",\"projectHash\":\"h\"}",
            "{\"working_dir\":\"/w\",\"message_count\":1}",
            "---\naside: 1\n---\n<!-- aside:message {\"role\":\"user\"} -->",
        ][..]),
        values in prop::collection::vec(json(), 1..6),
    ) {
        let text = format!("{start}\n{}", values.join("\n"));
        if let Ok(imported) = import(&[ImportFile { name: "made/up.json", text: &text }], dialects()) {
            check(imported)?;
        }
        let files: Vec<ImportFile<'_>> = values.iter().map(|text| ImportFile { name: "storage/part/message/id.json", text }).collect();
        if let Ok(imported) = import(&files, dialects()) {
            check(imported)?;
        }
    }

    #[test]
    fn p11_no_rows_make_an_importer_panic(values in prop::collection::vec((any::<prop::sample::Index>(), json()), 0..8)) {
        let known = [
            (Program::OpenCode, opencode_rows()),
            (Program::Goose, goose_rows()),
            (Program::Llm, llm_threads()),
            (Program::Llm, llm_conversations()),
        ];
        for (program, mut tables) in known {
            for (at, value) in &values {
                let position = at.index(tables.len());
                let table: &mut TableRows = &mut tables[position];
                let row = at.index(table.rows.len() + 1);
                table.rows.insert(row, value.clone());
            }
            if let Ok(imported) = import_rows(program, &tables, dialects()) {
                check(imported)?;
            }
        }
    }
}

#[test]
fn p11_deep_json_and_long_lines_are_bounded() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = "x".repeat(1 << 20);
    let starts = [
        r#"{"type":"session","id":"s","cwd":"/w"}"#,
        r#"{"sessionId":"s","projectHash":"h"}"#,
        r#"{"working_dir":"/w","message_count":1}"#,
        r#"{"type":"user","uuid":"u","message":{"role":"user","content":"q"}}"#,
        r#"{"type":"session_meta","payload":{"id":"s"}}"#,
    ];
    for start in starts {
        let said = format!(
            r#"{{"type":"message","role":"user","created":1,"id":"a","parentId":null,"content":"{long}","message":{{"role":"user","content":"{long}"}}}}"#
        );
        let text = format!("{start}\n{{\"type\":\"message\",\"message\":{deep}}}\n{deep}\n{said}\n");
        // Whether it is imported or not, nothing overflows.
        let _imported = import(&[ImportFile { name: "x", text: &text }], dialects());
    }
}
