//! A conversation file reads back as what was decoded, and errors name their line.

use aside_core::block::{Arguments, Block, Origin};
use aside_core::conversation::Conversation;
use aside_core::json::{self, JsonLayout};
use aside_core::message::Role;

use crate::support::{decode, fixture_responses, generic_rules};

#[test]
fn the_output_of_decode_reads_back_as_the_same_blocks() {
    let mut n_blocks = 0;
    for (name, protocol, bytes) in fixture_responses() {
        let (reply, _) = decode(protocol, &generic_rules(protocol), &bytes, usize::MAX);
        let origin = Origin::default().with_dialect("d".to_owned()).with_model(reply.model.clone());
        let line = json::reply(&reply, Some(&origin), None, JsonLayout::OneLine);
        let conversation = Conversation::parse(&line).unwrap_or_else(|error| panic!("{name}: {error}\n{line}"));
        let branch = conversation.history.branch();
        let message = branch[0].1;
        n_blocks += message.blocks.len();
        assert_eq!(message.blocks, without_spaces(reply.blocks), "{name}");
        assert_eq!((message.origin.as_ref(), message.usage), (Some(&origin), Some(reply.usage)), "{name}");
    }
    assert!(n_blocks > 50, "only {n_blocks} blocks");
}

/// Arguments are printed as values, without their original white space.
fn without_spaces(blocks: Vec<Block>) -> Vec<Block> {
    let mut blocks = blocks;
    for block in &mut blocks {
        if let Block::ToolCall(call) = block
            && let Arguments::Json(json) = &call.arguments
        {
            call.arguments = Arguments::Json(json.replace("\": ", "\":").replace(", \"", ",\""));
        }
    }
    blocks
}

#[test]
fn a_whole_conversation_is_read_with_its_branches() {
    let text = r#"
{"aside":1,"model":"m","title":"t","head":"b","tools":[{"name":"get","description":"d","parameters":{"type": "object"}}],"settings":{"reasoning.effort":"high","reasoning.enabled":true}}
{"role":"system","blocks":[{"type":"text","text":"Be brief."}]}
{"role":"user","id":"q","at":"2026-11-15T09:30:25.250Z","blocks":[{"type":"text","text":"Look."},{"type":"image","mediaType":"image/png","data":"AAAA"}]}
{"role":"assistant","id":"a","finish":"stop","x-mine":[1, 2],"blocks":[{"type":"text","text":"first"}]}
{"role":"assistant","id":"b","parent":"q","interrupted":true,"blocks":[{"type":"toolCall","id":"c1","name":"get","arguments":{"k": 1}}]}
{"role":"tool","parent":"a","blocks":[{"type":"toolResult","id":"c1","name":"get","content":"42","isError":true}]}
"#;
    let conversation = Conversation::parse(text).unwrap();
    assert_eq!((conversation.model.as_deref(), conversation.title.as_deref()), (Some("m"), Some("t")));
    assert_eq!(conversation.tools[0].parameters, r#"{"type":"object"}"#);
    assert_eq!(conversation.settings["reasoning.effort"], "high");
    assert_eq!(conversation.settings["reasoning.enabled"], "true");
    let branch = conversation.history.branch();
    let roles: Vec<Role> = branch.iter().map(|(_, message)| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant]);
    let last = branch[2].1;
    assert!(last.interrupted);
    let Block::ToolCall(call) = &last.blocks[0] else { panic!("a call") };
    assert_eq!(call.arguments, Arguments::Json(r#"{"k":1}"#.to_owned()));
    assert_eq!(conversation.history.entries().len(), 5);
    assert_eq!(conversation.history.entries()[2].message.unknown_members, [("x-mine".to_owned(), "[1,2]".to_owned())]);
}

#[test]
fn an_error_names_its_line() {
    #[rustfmt::skip]
    let cases = [
        ("not JSON",       "{\"role\":\"user\"}\nhello",                           "line 2: not JSON at byte 0"),
        ("not an object",  "[1]",                                                  "line 1: expected an object: a header or a message"),
        ("no role",        "{\"blocks\":[]}",                                      "line 1: a message needs a role: system, user, assistant or tool"),
        ("unknown role",   "{\"role\":\"robot\"}",                                 "line 1: unknown role `robot`; use system, user, assistant or tool"),
        ("unknown block",  "{\"role\":\"user\",\"blocks\":[{\"type\":\"song\"}]}", "line 1: unknown block type `song`; use thinking, text, toolCall, toolResult, image, document or unmodelled"),
        ("unknown parent", "{\"role\":\"user\",\"parent\":\"x\"}",                 "line 1: parent `x` is not the id of an earlier line"),
        ("unknown head",   "{\"aside\":1,\"head\":\"x\"}",                         "line 1: head `x` is not the id of a line"),
    ];
    for (name, text, expected) in cases {
        assert_eq!(Conversation::parse(text).unwrap_err().to_string(), expected, "{name}");
    }
}
