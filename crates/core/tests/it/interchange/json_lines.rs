//! JSON lines lose nothing, and omit opaque data on request.

use aside_core::block::{Block, ThinkingContent};
use aside_core::conversation::Conversation;
use aside_core::interchange::{OpaqueData, without_opaque, write_lines};
use aside_core::json::write_message;
use aside_core::json_value::JsonValue;
use aside_core::message::Message;
use proptest::prelude::*;

use super::generated_conversations::conversation;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_message_on_its_own_survives_json(conversation in conversation()) {
        for entry in conversation.history.entries() {
            let json = entry.message.to_json();
            prop_assert_eq!(Message::from_json(&json), Ok(Message::clone(&entry.message)), "{}", json);
            let mut stored = String::new();
            write_message(&mut stored, &entry.message);
            prop_assert_eq!(Message::from_json(&stored), Ok(Message::clone(&entry.message)), "{}", stored);
            // Only the escapes differ.
            let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
            prop_assert_eq!(value(&stored), value(&json));
        }
    }

    #[test]
    fn p5_json_lines_read_back_as_the_same_conversation(conversation in conversation()) {
        let written = write_lines(&conversation, OpaqueData::Keep);
        let read = Conversation::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        prop_assert_eq!(&read, &conversation, "{}", written);
        prop_assert_eq!(write_lines(&read, OpaqueData::Keep), written);
    }

    #[test]
    fn p5_without_opaque_data_the_rest_is_complete(conversation in conversation()) {
        let written = write_lines(&conversation, OpaqueData::LeaveOut);
        let read = Conversation::parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
        prop_assert_eq!(&read, &without_opaque(&conversation));
        prop_assert_eq!(read.history.entries().len(), conversation.history.entries().len());
        for entry in read.history.entries() {
            for block in &entry.message.blocks {
                let opaque = match block {
                    Block::Text(text) => text.seal.is_some() || text.native.is_some(),
                    Block::Thinking(thinking) => {
                        !matches!(thinking.content, ThinkingContent::Open { .. }) || thinking.native.is_some()
                    }
                    Block::ToolCall(call) => call.seal.is_some() || call.native.is_some(),
                    Block::ToolResult(_) | Block::Media(_) => false,
                    Block::Unmodelled(_) => true,
                };
                prop_assert!(!opaque, "{block:?}");
            }
        }
        // Readable thinking is still there.
        for (before, after) in conversation.history.entries().iter().zip(read.history.entries()) {
            prop_assert_eq!(before.message.thinking_text(), after.message.thinking_text());
        }
    }
}

#[test]
fn p5_a_log_with_branches_is_written_as_documented() {
    let text = r##"{"aside":1,"model":"m","head":"b","tools":[{"name":"get","description":"d","parameters":{"type":"object"}}],"settings":{"reasoning.effort":"high"},"x-theirs":1}
{"role":"user","id":"#0","at":"2026-11-15T09:30:25.250Z","blocks":[{"type":"text","text":"Look."}]}
{"role":"assistant","origin":{"provider":"p","dialect":"d","model":"m"},"finish":"stop","usage":{"input":1,"output":2,"reasoning":null,"cached":null},"blocks":[{"type":"thinking","thought":"hm","sourceField":"f","signature":"s"},{"type":"text","text":"first"}],"x-mine":[1,2]}
{"role":"assistant","id":"b","parent":"#0","finish":null,"ending":"cut_off","interrupted":true,"blocks":[]}
{"role":"user","parent":null,"blocks":[{"type":"text","text":"Again."}]}
"##;
    let conversation = Conversation::parse(text).unwrap();
    assert_eq!(write_lines(&conversation, OpaqueData::Keep), text);
    assert_eq!(conversation.history.branch().len(), 2);
    assert_eq!(conversation.history.entries()[0].name, None, "a name made for the file is not the message's");
    assert_eq!(conversation.history.entries()[3].parent, None);
}

#[test]
fn p5_a_conversation_undone_to_its_beginning_stays_so() {
    let text = "{\"aside\":1,\"head\":null}\n{\"role\":\"user\",\"blocks\":[]}\n";
    let conversation = Conversation::parse(text).unwrap();
    assert_eq!((conversation.history.head(), conversation.history.entries().len()), (None, 1));
    assert_eq!(write_lines(&conversation, OpaqueData::Keep), text);
}
