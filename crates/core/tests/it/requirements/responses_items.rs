//! D10: OpenAI Responses, including other servers of it.

use aside_core::block::Block;
use aside_core::protocol::Protocol;
use serde_json::Value;

use super::{
    ReplyReader, as_json, drawn, events_of_response, every, finish, natives, parsed, response_whole, same, sse,
};
use crate::support::{events, generic_rules, thinking_texts};

fn reader() -> ReplyReader {
    ReplyReader::generic(Protocol::OpenaiResponses)
}

const ADDED: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"partial"}}"#;

fn part(output: u32, summary: u32) -> String {
    format!(
        r#"{{"type":"response.reasoning_summary_part.added","item_id":"x","output_index":{output},"summary_index":{summary},"part":{{"type":"summary_text","text":""}}}}"#
    )
}

fn grew(output: u32, summary: u32, text: &str) -> String {
    format!(
        r#"{{"type":"response.reasoning_summary_text.delta","item_id":"x","output_index":{output},"summary_index":{summary},"delta":"{text}"}}"#
    )
}

fn item(summaries: &[&str], rest: &str) -> String {
    let summaries: Vec<String> =
        summaries.iter().map(|text| format!(r#"{{"type":"summary_text","text":"{text}"}}"#)).collect();
    format!(r#"{{"id":"rs_1","type":"reasoning","summary":[{}]{rest}}}"#, summaries.join(","))
}

fn done(output: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{output},"item":{item}}}"#)
}

fn stream(events: &[String]) -> Vec<u8> {
    events_of_response(&events.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The titles and texts of the first block's summary.
fn summary(bytes: &[u8]) -> Vec<(Option<String>, String)> {
    let blocks = as_json(&reader().reply(bytes))["blocks"].clone();
    let items = blocks[0]["summary"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    items.iter().map(|item| (text(&item["title"]), text(&item["content"]).unwrap_or_default())).collect()
}

#[test]
fn d10_events_without_an_index_belong_to_the_item_with_their_id() {
    let bytes = stream(
        &[
            r#"{"type":"response.output_item.added","item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
            r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"thought"}"#,
            r#"{"type":"response.output_item.added","item":{"id":"msg_1","type":"message","content":[]}}"#,
            r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"answer"}"#,
        ]
        .map(str::to_owned),
    );
    let lines = events(Protocol::OpenaiResponses, &generic_rules(Protocol::OpenaiResponses), [bytes.as_slice()]);
    let grown: Vec<&String> = lines.iter().filter(|line| line.contains("thought") || line.contains("answer")).collect();
    assert!(grown.iter().any(|line| line.contains("thought") && !line.contains("answer")), "{lines:?}");
    assert!(grown.iter().any(|line| line.contains("answer") && !line.contains("thought")), "{lines:?}");
    assert!(!grown.iter().any(|line| line.contains("thoughtanswer")), "{lines:?}");
    let reply = reader().reply(&bytes);
    assert_eq!(thinking_texts(&reply), ["thought"]);
    assert_eq!(crate::support::text(&reply), "answer");
}

#[test]
fn d10_a_reasoning_item_and_the_call_it_led_to() {
    let last = item(&[r"**Plan**\n\nLook up"], r#","encrypted_content":"final""#);
    let call = r#"{"id":"fc_1","type":"function_call","status":"completed","call_id":"c1","name":"get","arguments":"{\"k\":1}"}"#;
    let bytes = stream(&[
        ADDED.to_owned(),
        part(0, 0),
        grew(0, 0, r"**Plan**\n\nLook"),
        grew(0, 0, " up"),
        r#"{"type":"response.reasoning_summary_text.done","output_index":0,"summary_index":0,"text":"**Plan**\n\nLook up"}"#.to_owned(),
        done(0, &last),
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"c1","name":"get","arguments":""}}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"k\""}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":":1}"}"#.to_owned(),
        r#"{"type":"response.function_call_arguments.done","output_index":1,"arguments":"{\"k\":1}"}"#.to_owned(),
        done(1, call),
    ]);
    let whole = response_whole(&format!("[{last},{call}]"));
    let expected = r#"think reasoning '**Plan**⏎⏎Look up' enc=final id=rs_1 | call get(c1) {"k":1}"#;
    reader().check_both("reasoning, then a call", &bytes, &whole, expected).unwrap();
    assert_eq!(summary(&bytes), [(Some("Plan".to_owned()), "Look up".to_owned())]);
    assert_eq!(natives(&reader().reply(&bytes))[0], parsed(&last), "the raw item is kept for replay");
    assert_eq!(finish(&reader().reply(&bytes)).as_deref(), Some("tool_calls"));
}

#[test]
fn d10_summary_parts_are_items_with_titles() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str, &[(Option<&str>, &str)])] = &[
        ("two titled parts",       &[r"**One**\n\nFirst.", r"**Two**\n\nSecond."], "**One**⏎⏎First.⏎⏎**Two**⏎⏎Second.", &[(Some("One"), "First."), (Some("Two"), "Second.")]),
        ("a title and no more",    &["**One**"],                                   "**One**",                         &[(Some("One"), "")]),
        ("no title",               &["First."],                                    "First.",                          &[(None, "First.")]),
        ("bold inside a line",     &["**One** thing"],                             "**One** thing",                   &[(None, "**One** thing")]),
        ("bold over two lines",    &[r"**One\nTwo**\nFirst."],                     "**One⏎Two**⏎First.",              &[(None, "**One\nTwo**\nFirst.")]),
        ("bold, but not leading",  &[r"First.\n**One**"],                          "First.⏎**One**",                  &[(None, "First.\n**One**")]),
    ];
    every(cases, |(name, parts, thought, items)| {
        let last = item(parts, "");
        let mut events = vec![ADDED.to_owned()];
        for (index, text) in (0..).zip(*parts) {
            events.push(part(0, index));
            events.push(grew(0, index, text));
        }
        events.push(done(0, &last));
        let (bytes, whole) = (stream(&events), response_whole(&format!("[{last}]")));
        reader().check_both(name, &bytes, &whole, &format!("think reasoning '{thought}' id=rs_1"))?;
        let wanted: Vec<_> =
            items.iter().map(|(title, content)| (title.map(str::to_owned), (*content).to_owned())).collect();
        same(&format!("{name}, streamed"), summary(&bytes), wanted.clone())?;
        same(&format!("{name}, whole"), summary(&whole), wanted)?;
        // Cut off before the item was done, the parts stay as they were streamed.
        let cut = sse(&events[..events.len() - 1]);
        same(&format!("{name}, cut off"), summary(&cut), summary(&whole))
    });
}

#[test]
fn d10_parts_are_keyed_by_output_and_summary_index() {
    let two = item(&["ac", "bd"], "");
    let turns =
        [ADDED.to_owned(), part(0, 0), grew(0, 0, "a"), part(0, 1), grew(0, 1, "b"), grew(0, 0, "c"), grew(0, 1, "d")];
    let bytes = stream(&[turns.as_slice(), &[done(0, &two)]].concat());
    let wanted = vec![(None, "ac".to_owned()), (None, "bd".to_owned())];
    let outcomes = [
        same("two parts in turns", summary(&bytes), wanted.clone()),
        same("two parts in turns, cut off", summary(&sse(turns)), wanted),
        reader().check("two parts in turns", &bytes, "think reasoning 'ac⏎⏎bd' id=rs_1"),
    ];
    every(outcomes, |outcome| outcome);
}

#[test]
fn d10_items_are_keyed_by_output_index() {
    let second = r#"{"id":"rs_2","type":"reasoning","summary":[{"type":"summary_text","text":"bd"}]}"#;
    let bytes = stream(&[
        ADDED.to_owned(),
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"rs_2","type":"reasoning","summary":[]}}"#.to_owned(),
        grew(0, 0, "a"),
        grew(1, 0, "b"),
        grew(0, 0, "c"),
        grew(1, 0, "d"),
        done(1, second),
        done(0, &item(&["ac"], "")),
    ]);
    reader()
        .check("two items in turns", &bytes, "think reasoning 'ac' id=rs_1 | think reasoning 'bd' id=rs_2")
        .unwrap();
}

#[test]
fn d10_item_ids_that_change_in_mid_stream_do_not_matter() {
    let mut events = vec![r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"id-1","type":"reasoning","summary":[]}}"#.to_owned()];
    for (n, text) in ["Look", " up", "."].iter().enumerate() {
        events.push(format!(r#"{{"type":"response.reasoning_summary_text.delta","item_id":"id-{}","output_index":0,"summary_index":0,"delta":"{text}"}}"#, n + 2));
    }
    events.push(done(0, r#"{"id":"id-9","type":"reasoning","summary":[{"type":"summary_text","text":"Look up."}],"encrypted_content":"E"}"#));
    events.push(
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"id-10","type":"message","content":[]}}"#
            .to_owned(),
    );
    events.push(
        r#"{"type":"response.output_text.delta","item_id":"id-11","output_index":1,"content_index":0,"delta":"4"}"#
            .to_owned(),
    );
    events.push(done(1, r#"{"id":"id-12","type":"message","content":[{"type":"output_text","text":"4"}]}"#));
    let reply = reader().reply(&stream(&events));
    assert_eq!(thinking_texts(&reply), ["Look up."]);
    assert_eq!(reply.blocks.len(), 2, "{}", drawn(&reply));
    assert_eq!(summary(&stream(&events)), [(None, "Look up.".to_owned())]);
    assert_eq!(natives(&reply)[0]["id"], "id-9", "the last word goes back");
}

#[test]
fn d10_raw_reasoning_text_in_every_shape() {
    const BEGIN: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"content":[]}}"#;
    const ITEM: &str =
        r#"{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Look up."}]}"#;
    const A: &str = r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"Look "}"#;
    const B: &str =
        r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"up."}"#;
    let text = |index: u32| {
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"m","output_index":1,"content_index":{index},"delta":"4"}}"#
        )
    };
    let message = done(1, r#"{"type":"message","content":[{"type":"output_text","text":"4"}]}"#);
    let end = r#"{"type":"response.reasoning_text.done","output_index":0,"content_index":0,"text":"Look up."}"#;
    let content_part = |what: &str, index: u32, part: &str| {
        format!(
            r#"{{"type":"response.content_part.{what}","output_index":{index},"content_index":0,"part":{{"type":"{part}","text":""}}}}"#
        )
    };
    let reasoning_part = |what: &str| {
        format!(
            r#"{{"type":"response.reasoning_part.{what}","output_index":0,"content_index":0,"part":{{"type":"reasoning_text","text":""}}}}"#
        )
    };
    let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<String>>();
    let tail = |index: u32| vec![done(0, ITEM), text(index), message.clone()];
    let in_parts = [
        own(&[BEGIN]),
        vec![content_part("added", 0, "reasoning_text")],
        own(&[A, B, end]),
        vec![content_part("done", 0, "reasoning_text"), content_part("added", 1, "output_text")],
    ];
    let in_reasoning_parts = [own(&[BEGIN]), vec![reasoning_part("added")], own(&[A, B]), vec![reasoning_part("done")]];
    #[rustfmt::skip]
    let cases = [
        ("plain",                                         [own(&[BEGIN, A, B, end]), tail(0)].concat()),
        ("inside content parts",                          [in_parts.concat(), tail(0)].concat()),
        ("inside reasoning parts, the answer at index 1", [in_reasoning_parts.concat(), tail(1)].concat()),
        ("the item never began",                          [own(&[A, B]), tail(0)].concat()),
        ("only in the item",                              vec![done(0, ITEM), message.clone()]),
    ];
    let whole =
        response_whole(&format!(r#"[{ITEM},{{"type":"message","content":[{{"type":"output_text","text":"4"}}]}}]"#));
    every(cases, |(name, events)| {
        let reply = reader().reply(&stream(&events));
        same(name, thinking_texts(&reply), vec!["Look up."])?;
        same(&format!("{name}: {}", drawn(&reply)), reply.blocks.len(), 2)?;
        same(
            &format!("{name}: whole"),
            drawn(&reader().reply(&whole)),
            "think reasoning 'Look up.' id=rs_1 | text '4'".to_owned(),
        )?;
        same(&format!("{name}: what goes back"), natives(&reply)[0].clone(), parsed(ITEM))
    });
}

#[test]
fn d10_the_final_form_of_an_item_wins() {
    #[rustfmt::skip]
    let cases = [
        ("a delta was lost",     vec![ADDED.to_owned(), grew(0, 0, "Look"), done(0, &item(&["Look up."], ""))],                           "think reasoning 'Look up.' id=rs_1"),
        ("a part was lost",      vec![ADDED.to_owned(), grew(0, 0, "One"), done(0, &item(&["One", "Two"], ""))],                          "think reasoning 'One⏎⏎Two' id=rs_1"),
        ("the blob at its end",  vec![ADDED.to_owned(), done(0, &item(&[], r#","encrypted_content":"final""#))],                          "think reasoning '' enc=final id=rs_1"),
        ("an item never done keeps no blob", vec![ADDED.to_owned(), grew(0, 0, "Look")],                                                   "think reasoning 'Look' id=rs_1"),
        ("a null blob at its end", vec![ADDED.to_owned(), grew(0, 0, "a"), done(0, &item(&["a"], r#","encrypted_content":null"#))],        "think reasoning 'a' id=rs_1"),
    ];
    every(cases, |(name, events, expected)| reader().check(name, &stream(&events), expected));
}

#[test]
fn d10_an_empty_summary_is_preserved() {
    for last in [item(&[], r#","encrypted_content":"E""#), item(&[], r#","content":[],"status":"completed""#)] {
        let bytes = stream(&[ADDED.to_owned(), done(0, &last)]);
        for bytes in [bytes, response_whole(&format!("[{last}]"))] {
            let reply = reader().reply(&bytes);
            assert_eq!(natives(&reply), [parsed(&last)], "{}", drawn(&reply));
            let Block::Thinking(thinking) = &reply.blocks[0] else { panic!("{}", drawn(&reply)) };
            assert_eq!((thinking.id.as_deref(), thinking.is_hidden()), (Some("rs_1"), true));
        }
    }
}

#[test]
fn d10_output_order_is_kept_whatever_comes_first() {
    let message =
        r#"{"id":"m1","type":"message","phase":"final_answer","content":[{"type":"output_text","text":"4"}]}"#;
    let sealed = r#"{"id":"rs_9","type":"reasoning","summary":[],"encrypted_content":"E","format":"f"}"#;
    let search = r#"{"id":"w1","type":"web_search_call","status":"completed","action":{"q":"x"}}"#;
    #[rustfmt::skip]
    let cases = [
        ("reasoning after the message", vec![done(0, message), done(1, sealed)], format!("[{message},{sealed}]"),
            "text '4' | think reasoning '' enc=E id=rs_9"),
        ("added before the message is done", vec![
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"m1","type":"message","content":[]}}"#.to_owned(),
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"4"}"#.to_owned(),
            r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"rs_9","type":"reasoning","summary":[]}}"#.to_owned(),
            done(0, message), done(1, sealed)], format!("[{message},{sealed}]"),
            "text '4' | think reasoning '' enc=E id=rs_9"),
        ("a server tool keeps its place", vec![done(0, sealed), done(1, search), done(2, message)], format!("[{sealed},{search},{message}]"),
            r#"think reasoning '' enc=E id=rs_9 | unmodelled {"id":"w1","type":"web_search_call","status":"completed","action":{"q":"x"}} | text '4'"#),
    ];
    every(cases, |(name, events, output, expected)| {
        reader().check_both(name, &stream(&events), &response_whole(&output), expected)?;
        let natives = natives(&reader().reply(&stream(&events)));
        same(&format!("{name}: the phase goes back"), natives.contains(&parsed(message)), true)
    });
}

#[test]
fn d10_servers_with_shapes_of_their_own() {
    #[rustfmt::skip]
    let cases = [
        ("the thinking where the settings are", r#"{"object":"response","status":"completed","reasoning":"Look up.","output":[{"type":"message","content":[{"type":"output_text","text":"4"}]}]}"#, "think reasoning 'Look up.' | text '4'"),
        ("the settings where the settings are", r#"{"object":"response","status":"completed","reasoning":{"effort":"low"},"output":[{"type":"message","content":[{"type":"output_text","text":"4"}]}]}"#, "text '4'"),
        ("a call without an id",                r#"{"object":"response","status":"completed","output":[{"type":"function_call","item_id":"fc_1","output_index":0,"call_id":"c1","name":"get","arguments":"{}"}]}"#, "call get(c1) {}"),
        ("a free-form call",                    r#"{"object":"response","status":"completed","output":[{"type":"custom_tool_call","id":"x","call_id":"c1","name":"sh","input":"ls -l"}]}"#, "call sh(c1) broken 'ls -l'"),
        ("two texts in one message",            r#"{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"4"},{"type":"output_text","text":"2"}]}]}"#, "text '42'"),
    ];
    every(cases, |(name, body, expected)| reader().check(name, body.as_bytes(), expected));
}

#[test]
fn d10_the_whole_output_may_come_only_at_the_end() {
    let last = item(&["Look up."], r#","encrypted_content":"E""#);
    let message = r#"{"type":"message","content":[{"type":"output_text","text":"4"}]}"#;
    let end =
        format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{last},{message}]}}}}"#);
    let expected = "think reasoning 'Look up.' enc=E id=rs_1 | text '4'";
    #[rustfmt::skip]
    let cases = [
        ("nothing before it",   vec![end.clone()]),
        ("and before it too",   vec![ADDED.to_owned(), grew(0, 0, "Look up."), done(0, &last), done(1, message), end.clone()]),
        ("with a last [DONE]",  vec![end.clone(), "[DONE]".to_owned()]),
    ];
    every(cases, |(name, events)| reader().check(name, &sse(events), expected));
    let named: Vec<u8> = format!("event: response.completed\ndata: {end}\n\n").into();
    reader().check("with event names", &named, expected).unwrap();
}
