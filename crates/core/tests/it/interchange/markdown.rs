//! Markdown is readable, and an import from it gives what was exported.

use aside_core::block::{
    Arguments, Block, CallId, Media, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ThinkingSpan,
    Time, ToolCall, ToolResult,
};
use aside_core::conversation::Conversation;
use aside_core::extra::Extra;
use aside_core::history::History;
use aside_core::interchange::{
    ImportError, OpaqueData, ThinkingMarkup, left_out_of_markdown, read_markdown, write_lines, write_markdown,
};
use aside_core::message::{Message, Role};
use expect_test::expect;
use proptest::prelude::*;

use super::generated_conversations::{conversation, nasty};

/// What Markdown can hold of a conversation, computed without the writer.
fn expected_import(conversation: &Conversation, how: ThinkingMarkup) -> Conversation {
    let mut history = History::new();
    for (id, message) in conversation.history.branch() {
        let blocks = message.blocks.iter().filter_map(|block| expected_block(block, how)).collect();
        let message = Message { blocks, usage: None, ..message.clone() };
        let name = conversation.history.get(id).unwrap().name.clone();
        history.append_named(name, history.head(), message).unwrap();
    }
    Conversation { history, tools: Vec::new(), extra: Vec::new(), ..conversation.clone() }
}

fn expected_block(block: &Block, how: ThinkingMarkup) -> Option<Block> {
    match block.clone() {
        Block::Text(text) if text.text.is_empty() && text.seal.is_some() => None,
        Block::Text(text) => Some(Block::Text(Text { seal: None, native: None, extra: Extra::default(), ..text })),
        Block::Thinking(_) if how == ThinkingMarkup::Omit => None,
        Block::Thinking(thinking) => {
            let content = ThinkingContent::Open { text: thinking.text().to_owned() };
            (!thinking.is_hidden()).then_some(Block::Thinking(Thinking {
                content,
                native: None,
                extra: Extra::default(),
                ..thinking
            }))
        }
        Block::ToolCall(call) => {
            Some(Block::ToolCall(ToolCall { seal: None, native: None, extra: Extra::default(), ..call }))
        }
        block @ (Block::ToolResult(_) | Block::Media(_)) => Some(block),
        Block::Unmodelled(_) => None,
    }
}

fn check(conversation: &Conversation, how: ThinkingMarkup) -> Result<(), TestCaseError> {
    let written = write_markdown(conversation, how);
    let imported = match read_markdown(&written) {
        Ok(imported) => imported,
        Err(error) => {
            prop_assert!(matches!(error, ImportError::Empty(_)), "{error}\n{written}");
            prop_assert!(conversation.history.branch().is_empty());
            return Ok(());
        }
    };
    prop_assert_eq!(imported.notes.len(), 1, "{:?}\n{}", imported.notes, written);
    prop_assert_eq!(&imported.conversation, &expected_import(conversation, how), "{}", written);
    prop_assert_eq!(write_markdown(&imported.conversation, how), written);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn p5_markdown_reads_back_as_what_it_can_hold(
        conversation in conversation(),
        how in prop::sample::select(&[ThinkingMarkup::Callout, ThinkingMarkup::Details, ThinkingMarkup::Omit][..]),
    ) {
        check(&conversation, how)?;
    }

    #[test]
    fn p5_any_thinking_and_any_text_survive_markdown(thought in nasty(), said in nasty(), more in nasty()) {
        for how in [ThinkingMarkup::Callout, ThinkingMarkup::Details] {
            check(&one_answer(vec![open(&thought), text(&said), text(&more), open(&more)]), how)?;
        }
    }

    #[test]
    fn p5_windows_line_endings_are_read(thought in "[a-z \n>`]{1,40}", said in "[a-z \n#>`<]{1,40}") {
        let conversation = one_answer(vec![open(&thought), text(&said)]);
        let written = write_markdown(&conversation, ThinkingMarkup::Callout).replace('\n', "\r\n");
        prop_assert_eq!(read_markdown(&written).unwrap().conversation, conversation);
    }
}

fn open(text: &str) -> Block {
    let content = ThinkingContent::Open { text: text.to_owned() };
    let source = "reasoning_content".to_owned();
    Block::Thinking(Thinking::new(content, source))
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn one_answer(blocks: Vec<Block>) -> Conversation {
    let mut history = History::new();
    history.append(Message::new(Role::Assistant, blocks));
    Conversation { history, ..Conversation::default() }
}

/// A conversation with one block of each kind.
fn sample_conversation() -> Conversation {
    let seal = Seal { kind: SealKind::Signature, payload: "c2VhbA==".into() };
    let seals = Seals { signature: Some(seal), encrypted: None };
    let thought = "First:\n\n```md\n> [!thinking]- not mine\n```\n</details>";
    let thinking = Thinking {
        span: Some(ThinkingSpan { started: Time(1_794_735_025_250), ended: Time(1_794_735_037_000) }),
        ..Thinking::new(ThinkingContent::Sealed { text: thought.into(), seals: seals.clone() }, "thinking")
    };
    let hidden = Thinking { content: ThinkingContent::Hidden { seals }, span: None, ..thinking.clone() };
    let call = ToolCall::new(CallId::Given("c1".into()), "read", Arguments::Json(r#"{"path":"a.md"}"#.into()));
    let result = ToolResult {
        id: "c1".into(),
        name: "read".into(),
        content: "```\ncode\n```".into(),
        is_error: false,
        media: Vec::new(),
    };
    let origin = Origin::default().with_dialect("d".to_owned()).with_model("m-1".to_owned());
    let assistant = |blocks| Message { origin: Some(origin.clone()), ..Message::new(Role::Assistant, blocks) };
    let mut history = History::new();
    let image = Media::image("image/png".into(), "QUJD".into());
    history.append(Message::new(Role::User, vec![text("Read it.\n\n## You\nwrote this"), Block::Media(image)]));
    history.append(assistant(vec![Block::Thinking(thinking), Block::Thinking(hidden), Block::ToolCall(call)]));
    history.append(Message::new(Role::Tool, vec![Block::ToolResult(result)]));
    history.append(assistant(vec![text("It says:\n```\ncode")]));
    Conversation { title: Some("A day".into()), model: Some("p/m-1".into()), history, ..Conversation::default() }
}

#[test]
fn p5_a_conversation_reads_well_as_markdown() {
    let expected = expect![[r#"
        ---
        aside: 1
        title: "A day"
        model: "p/m-1"
        ---

        # A day

        <!-- aside:message {"role":"user"} -->

        ## You

        Read it.

        \## You
        wrote this

        <!-- aside:image {"mediaType":"image/png"} -->

        ![image](data:image/png;base64,QUJD)

        <!-- aside:message {"role":"assistant","origin":{"dialect":"d","model":"m-1"}} -->

        ## Assistant · m-1

        <!-- aside:thinking {"sourceField":"thinking","startedAt":"2026-11-15T09:30:25.250Z","endedAt":"2026-11-15T09:30:37.000Z"} -->

        > [!thinking]- Thought for 12s
        > First:
        >
        > ```md
        > > [!thinking]- not mine
        > ```
        > </details>

        <!-- aside:call {"id":"c1","name":"read"} -->

        **Tool call** `read`

        ```json
        {"path":"a.md"}
        ```

        <!-- aside:message {"role":"tool"} -->

        ## Tools

        <!-- aside:result {"id":"c1","name":"read"} -->

        **Result** `read`

        ````text
        ```
        code
        ```
        ````

        <!-- aside:message {"role":"assistant","origin":{"dialect":"d","model":"m-1"}} -->

        ## Assistant · m-1

        <!-- aside:text {"fence":"```"} -->

        It says:
        ```
        code
        ```
    "#]];
    expected.assert_eq(&write_markdown(&sample_conversation(), ThinkingMarkup::Callout));
}

#[test]
fn p5_thinking_in_details_or_left_out() {
    let details = write_markdown(&sample_conversation(), ThinkingMarkup::Details);
    let expected = "<details><summary>Thought for 12s</summary>\n\n````text\nFirst:\n\n```md\n> [!thinking]- not mine\n\
                    ```\n</details>\n````\n\n</details>\n\n<!-- aside:call";
    assert!(details.contains(expected), "{details}");
    let omitted = write_markdown(&sample_conversation(), ThinkingMarkup::Omit);
    assert!(!omitted.contains("hinking") && !omitted.contains("First:"), "{omitted}");
}

#[test]
fn p5_what_markdown_cannot_hold_is_reported_on_export_and_import() {
    let left_out = left_out_of_markdown(&sample_conversation());
    let expected = [
        "2 blocks with a seal or a native item, which stay here without it",
        "1 thoughts that only their provider can read",
    ];
    assert_eq!(left_out, expected);
    let imported = read_markdown(&write_markdown(&sample_conversation(), ThinkingMarkup::Callout)).unwrap();
    assert!(imported.notes[0].contains("without signatures"), "{:?}", imported.notes);
}

#[test]
fn p5_broken_parts_of_an_edited_file_are_reported_and_the_rest_is_read() {
    #[rustfmt::skip]
    let cases = [
        ("an unknown kind",   "<!-- aside:song {} -->\n\nla",                       "line 6: a piece of an unknown kind was passed over: `song`", vec![text("la")]),
        ("no callout",        "<!-- aside:thinking {} -->\n\nhm",                   "line 7: a thought was skipped: no callout follows its comment", vec![text("hm")]),
        ("an empty callout",  "<!-- aside:thinking {} -->\n\n> [!thinking]- T\n\nla",  "line 8: a thought was passed over: it is empty", vec![text("la")]),
        ("a comment cut off", "<!-- aside:text\n\nhm",                              "line 5: a comment was passed over: it is not ended", vec![text("hm")]),
    ];
    for (name, body, note, blocks) in cases {
        let file = format!("---\naside: 1\n---\n<!-- aside:message {{\"role\":\"user\"}} -->\n{body}\n");
        let imported = read_markdown(&file).unwrap();
        assert_eq!(imported.notes[1..], [note], "{name}");
        assert_eq!(imported.conversation.history.branch()[0].1.blocks, blocks, "{name}");
    }
}

#[test]
fn p5_white_space_around_the_arguments_of_a_call_is_not_part_of_them() {
    let call = "<!-- aside:call {\"id\":\"c\",\"name\":\"n\"} -->\n\n**Tool call** `n`\n\n";
    #[rustfmt::skip]
    let cases = [
        ("a line break before",  "```json\n\n{}\n```",               "{}"),
        ("laid out by a person", "```json\n{\n  \"a b\": [1, 2]\n}\n```", "{\"a b\":[1,2]}"),
    ];
    for (name, body, expected) in cases {
        let file = format!("---\naside: 1\n---\n<!-- aside:message {{\"role\":\"assistant\"}} -->\n\n{call}{body}\n");
        let imported = read_markdown(&file).unwrap().conversation;
        let Block::ToolCall(call) = &imported.history.branch()[0].1.blocks[0] else { panic!("{name}") };
        assert_eq!(call.arguments, Arguments::Json(expected.into()), "{name}");
        let lines = write_lines(&imported, OpaqueData::Keep);
        assert_eq!(Conversation::parse(&lines).unwrap(), imported, "{name}");
    }
}
