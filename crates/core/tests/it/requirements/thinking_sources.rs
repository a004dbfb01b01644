//! D1 to D3: where Chat Completions carries thinking, and which source wins.

use aside_core::dialect::{DialectSource, Dialects};
use aside_core::protocol::Protocol;
use serde_json::Value;

use super::{ReplyReader, RowResult, as_json, chat, chat_whole, drawn, every, natives, notices, parsed, same};
use crate::support::{text, thinking_texts};

#[test]
fn d1_each_field_gives_the_same_blocks_streamed_and_whole() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &[&str], &str, &str)] = &[
        ("reasoning_content", "generic",
            &[r#"{"role":"assistant","content":null,"reasoning_content":""}"#, r#"{"content":null,"reasoning_content":"Look "}"#,
              r#"{"reasoning_content":"up."}"#, r#"{"content":"It ","reasoning_content":null}"#, r#"{"content":"is 4."}"#],
            r#"{"role":"assistant","content":"It is 4.","reasoning_content":"Look up."}"#,
            "think reasoning_content 'Look up.' | text 'It is 4.'"),
        ("reasoning", "generic",
            &[r#"{"reasoning":"Look "}"#, r#"{"reasoning":"up."}"#, r#"{"content":"4"}"#],
            r#"{"content":"4","reasoning":"Look up."}"#,
            "think reasoning 'Look up.' | text '4'"),
        ("reasoning_details", "generic",
            &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"Look ","index":0}]}"#,
              r#"{"reasoning_details":[{"type":"reasoning.text","text":"up.","index":0}]}"#, r#"{"content":"4"}"#],
            r#"{"content":"4","reasoning_details":[{"type":"reasoning.text","text":"Look up.","index":0}]}"#,
            "think reasoning_details 'Look up.' | text '4'"),
        ("reasoning_text of Copilot", "copilot",
            &[r#"{"content":null,"reasoning_text":"Look "}"#, r#"{"reasoning_text":"up."}"#, r#"{"content":"4"}"#],
            r#"{"content":"4","reasoning_text":"Look up."}"#,
            "think reasoning_text 'Look up.' | text '4'"),
        ("all text so far in every delta, MiniMax", "minimax",
            &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"Look","index":0}]}"#,
              r#"{"reasoning_details":[{"type":"reasoning.text","text":"Look up.","index":0}]}"#, r#"{"content":"4"}"#],
            r#"{"content":"4","reasoning_details":[{"type":"reasoning.text","text":"Look up.","index":0}]}"#,
            "think reasoning_details 'Look up.' | text '4'"),
        ("a message beside the delta repeats it", "generic",
            &[r#"{"content":"4"},"message":{"content":"4","reasoning_content":""}"#, r#"{"content":"2"},"message":{"content":"42"}"#],
            r#"{"content":"42"}"#,
            "text '42'"),
        ("no thinking at all, OpenAI", "openai-chat",
            &[r#"{"role":"assistant","content":"","refusal":null}"#, r#"{"content":"4"}"#],
            r#"{"content":"4","refusal":null,"annotations":[]}"#,
            "text '4'"),
    ];
    every(cases, |(name, dialect, deltas, message, expected)| {
        ReplyReader::dialect(dialect).check_both(name, &chat(deltas), &chat_whole(message), expected)
    });
}

#[test]
fn d1_a_dialect_file_may_name_any_field() {
    let text = "id = \"acme\"\nprotocol = \"openai-chat\"\n[read]\ntext = [\"inner_voice\"]\n";
    let dialects = Dialects::with_user_files(&[DialectSource { path: "dialects/acme.toml", text }]).unwrap();
    let rules = dialects.get("acme").unwrap().rules(None).clone();
    let acme = ReplyReader { protocol: Protocol::OpenaiChat, rules };
    let stream = chat(&[r#"{"inner_voice":"Look "}"#, r#"{"inner_voice":"up."}"#, r#"{"content":"4"}"#]);
    let whole = chat_whole(r#"{"content":"4","inner_voice":"Look up."}"#);
    acme.check_both("acme", &stream, &whole, "think inner_voice 'Look up.' | text '4'").unwrap();
    ReplyReader::chat().check("generic does not know it", &stream, "text '4'").unwrap();
}

#[test]
fn d2_the_first_source_that_yields_text_is_shown_once() {
    const DETAIL: &str = r#"[{"type":"reasoning.text","text":"Look","signature":"Sg","index":0}]"#;
    #[rustfmt::skip]
    let cases = [
        ("details before reasoning_content",  format!(r#""reasoning_details":{DETAIL},"reasoning_content":"Look""#), "think reasoning_details 'Look' sig=Sg"),
        ("details before reasoning",          format!(r#""reasoning":"Look","reasoning_details":{DETAIL}"#),         "think reasoning_details 'Look' sig=Sg"),
        ("reasoning_content before reasoning", r#""reasoning":"Look","reasoning_content":"Look""#.to_owned(),        "think reasoning_content 'Look'"),
        ("all three",                         format!(r#""reasoning":"Look","reasoning_content":"Look","reasoning_details":{DETAIL}"#), "think reasoning_details 'Look' sig=Sg"),
        ("an empty higher source yields nothing", r#""reasoning_content":"","reasoning":"Look""#.to_owned(),         "think reasoning 'Look'"),
        ("a null higher source yields nothing",   r#""reasoning_content":null,"reasoning":"Look""#.to_owned(),       "think reasoning 'Look'"),
        ("empty details yield nothing",       r#""reasoning_details":[],"reasoning":"Look""#.to_owned(),             "think reasoning 'Look'"),
    ];
    every(cases, |(name, members, expected)| {
        let (delta, message) = (format!("{{{members}}}"), format!("{{{members},\"content\":\"4\"}}"));
        let expected = format!("{expected} | text '4'");
        let stream = chat(&[&delta, r#"{"content":"4","reasoning":null,"reasoning_details":[]}"#]);
        ReplyReader::chat().check_both(name, &stream, &chat_whole(&message), &expected)?;
        let reply = ReplyReader::chat().reply(&stream);
        same(&format!("{name}: equal sources are no reason for a notice"), notices(&reply), Vec::new())
    });
}

#[test]
fn d2_a_repetition_is_not_shown_whichever_comes_first() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str])] = &[
        ("a lower source repeats later",  &[r#"{"reasoning_content":"Look"}"#, r#"{"reasoning":"Look"}"#]),
        ("a higher source repeats later", &[r#"{"reasoning":"Look"}"#, r#"{"reasoning_content":"Look"}"#]),
        ("details repeat at the end",     &[r#"{"reasoning":"Lo"}"#, r#"{"reasoning":"ok"}"#, r#"{"reasoning_details":[{"type":"reasoning.text","text":"Look","signature":"Sg","index":0}]}"#]),
        ("piece by piece",                &[r#"{"reasoning":"Lo","reasoning_content":"Lo"}"#, r#"{"reasoning":"ok","reasoning_content":"ok"}"#]),
    ];
    every(cases, |(name, deltas)| {
        let deltas: Vec<&str> = deltas.iter().copied().chain([r#"{"content":"4"}"#]).collect();
        let reply = ReplyReader::chat().reply(&chat(&deltas));
        same(name, thinking_texts(&reply).concat(), "Look".to_owned())?;
        same(name, text(&reply), "4".to_owned())
    });
}

#[test]
fn d2_opaque_data_of_any_source_is_kept() {
    const ENCRYPTED: &str = r#"{"type":"reasoning.encrypted","data":"gAAA","id":"rs_1","format":"f","index":0}"#;
    #[rustfmt::skip]
    let cases = [
        ("encrypted details beside a string", "generic", format!(r#"{{"reasoning":"Look","reasoning_details":[{ENCRYPTED}]}}"#), "gAAA"),
        ("a signature in details that only repeat", "generic",
            r#"{"reasoning_content":"Look","reasoning_details":[{"type":"reasoning.text","text":"Look","signature":"Sg1","index":0}]}"#.to_owned(), "Sg1"),
        ("a signature alone in details",      "generic", r#"{"reasoning_content":"Look","reasoning_details":[{"type":"reasoning.text","signature":"Sg2","index":0}]}"#.to_owned(), "Sg2"),
        ("thinking_blocks beside a string",   "litellm", r#"{"reasoning_content":"Look","thinking_blocks":[{"type":"thinking","thinking":"Look","signature":"Sg3"}]}"#.to_owned(), "Sg3"),
        ("a redacted thinking block",         "litellm", r#"{"reasoning_content":"Look","thinking_blocks":[{"type":"redacted_thinking","data":"Rd1"}]}"#.to_owned(), "Rd1"),
        ("reasoning_opaque of Copilot",       "copilot", r#"{"reasoning_text":"Look","reasoning_opaque":"Op1"}"#.to_owned(), "Op1"),
        ("reasoning_opaque, unknown host",    "generic", r#"{"reasoning_text":"Look","reasoning_opaque":"Op2"}"#.to_owned(), "Op2"),
        ("a signature on the message, Gemini", "gemini-openai", r#"{"reasoning_content":"Look","extra_content":{"google":{"thought_signature":"Ts1"}}}"#.to_owned(), "Ts1"),
        ("the same as a plain member",        "gemini-openai", r#"{"reasoning_content":"Look","thought_signature":"Ts2"}"#.to_owned(), "Ts2"),
    ];
    every(cases, |(name, dialect, delta, payload)| {
        let reader = ReplyReader::dialect(dialect);
        for (form, bytes) in [("streamed", chat(&[&delta])), ("whole", chat_whole(&delta))] {
            let reply = reader.reply(&bytes);
            let name = format!("{name}, {form}: {}", drawn(&reply));
            same(&name, thinking_texts(&reply).concat(), "Look".to_owned())?;
            let blocks = as_json(&reply)["blocks"].as_array().unwrap().clone();
            let holds = |block: &Value| block["signature"] == payload || block["encrypted"] == payload;
            same(&name, blocks.iter().filter(|block| holds(block)).count(), 1)?;
        }
        Ok(())
    });
}

#[test]
fn d2_once_a_structured_source_is_seen_tags_are_literal_text() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("the field first",   &[r#"{"reasoning_content":"a"}"#, r#"{"content":"<think>b</think>c"}"#],
            r#"{"reasoning_content":"a","content":"<think>b</think>c"}"#, "think reasoning_content 'a' | text '<think>b</think>c'"),
        ("in the same delta", &[r#"{"content":"<think>b</think>c","reasoning":"a"}"#],
            r#"{"content":"<think>b</think>c","reasoning":"a"}"#, "think reasoning 'a' | text '<think>b</think>c'"),
        ("details first",     &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#, r#"{"content":"<think>b</think>c"}"#],
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}],"content":"<think>b</think>c"}"#,
            "think reasoning_details 'a' | text '<think>b</think>c'"),
        ("a stray close tag", &[r#"{"reasoning_content":"a"}"#, r#"{"content":"</think>c"}"#],
            r#"{"reasoning_content":"a","content":"</think>c"}"#, "think reasoning_content 'a' | text '</think>c'"),
    ];
    every(cases, |(name, deltas, message, expected)| {
        ReplyReader::chat().check_both(name, &chat(deltas), &chat_whole(message), expected)
    });
    let stream = chat(&[r#"{"content":"<think>a"}"#, r#"{"reasoning_content":"b"}"#, r#"{"content":"c</think>d"}"#]);
    let expected = "think <think> 'a' | think reasoning_content 'b' | text 'c</think>d'";
    ReplyReader::chat().check("a field comes into an open tag", &stream, expected).unwrap();
}

/// A stream of these entries, one per delta, then the answer.
fn details(entries: &[&str]) -> Vec<u8> {
    let deltas: Vec<String> = entries.iter().map(|entry| format!(r#"{{"reasoning_details":[{entry}]}}"#)).collect();
    let deltas: Vec<&str> = deltas.iter().map(String::as_str).chain([r#"{"content":"4"}"#]).collect();
    chat(&deltas)
}

fn details_whole(entries: &[&str]) -> Vec<u8> {
    chat_whole(&format!(r#"{{"reasoning_details":[{}],"content":"4"}}"#, entries.join(",")))
}

#[test]
fn d3_fragments_are_merged_by_index_and_type() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &[&str], &str)] = &[
        ("text, signature, id, format and a key nobody knows",
            &[r#"{"type":"reasoning.text","text":"Look","signature":null,"id":null,"format":"f","index":0}"#,
              r#"{"type":"reasoning.text","text":" up","index":0,"x_depth":{"n":[1,2]}}"#,
              r#"{"type":"reasoning.text","text":".","id":"r1","index":0}"#,
              r#"{"type":"reasoning.text","signature":"Sg","format":"f","index":0}"#],
            &[r#"{"type":"reasoning.text","text":"Look up.","signature":"Sg","id":"r1","format":"f","index":0,"x_depth":{"n":[1,2]}}"#],
            "think reasoning_details 'Look up.' sig=Sg id=r1"),
        ("a summary",
            &[r#"{"type":"reasoning.summary","summary":"**Plan**","format":"f","index":0}"#, r#"{"type":"reasoning.summary","summary":"\n\nLook","index":0}"#],
            &[r#"{"type":"reasoning.summary","summary":"**Plan**\n\nLook","format":"f","index":0}"#],
            "think reasoning_details '**Plan**⏎⏎Look'"),
        ("encrypted data in pieces",
            &[r#"{"type":"reasoning.encrypted","data":"gA","id":"rs_1","format":"f","index":0}"#, r#"{"type":"reasoning.encrypted","data":"AA","index":0}"#],
            &[r#"{"type":"reasoning.encrypted","data":"gAAA","id":"rs_1","format":"f","index":0}"#],
            "think reasoning_details '' enc=gAAA id=rs_1"),
        ("one index, two types: two units",
            &[r#"{"type":"reasoning.summary","summary":"Pl","index":0}"#, r#"{"type":"reasoning.encrypted","data":"gAAA","id":"rs_1","index":0}"#,
              r#"{"type":"reasoning.summary","summary":"an","index":0}"#],
            &[r#"{"type":"reasoning.summary","summary":"Plan","index":0}"#, r#"{"type":"reasoning.encrypted","data":"gAAA","id":"rs_1","index":0}"#],
            "think reasoning_details 'Plan' | think reasoning_details '' enc=gAAA id=rs_1"),
        ("one type, two indexes: two units",
            &[r#"{"type":"reasoning.text","text":"a","index":0}"#, r#"{"type":"reasoning.text","text":"b","index":1}"#, r#"{"type":"reasoning.text","text":"c","index":1}"#],
            &[r#"{"type":"reasoning.text","text":"a","index":0}"#, r#"{"type":"reasoning.text","text":"bc","index":1}"#],
            "think reasoning_details 'a' | think reasoning_details 'bc'"),
        ("two indexes in turns",
            &[r#"{"type":"reasoning.text","text":"a","index":0}"#, r#"{"type":"reasoning.text","text":"x","index":1}"#,
              r#"{"type":"reasoning.text","text":"b","index":0}"#, r#"{"type":"reasoning.text","text":"y","index":1}"#],
            &[r#"{"type":"reasoning.text","text":"ab","index":0}"#, r#"{"type":"reasoning.text","text":"xy","index":1}"#],
            "think reasoning_details 'ab' | think reasoning_details 'xy'"),
        ("an empty beginning, then a signature",
            &[r#"{"type":"reasoning.text","text":"","signature":"","index":0}"#, r#"{"type":"reasoning.text","text":"a","index":0}"#, r#"{"type":"reasoning.text","signature":"Sg","index":0}"#],
            &[r#"{"type":"reasoning.text","text":"a","signature":"Sg","index":0}"#],
            "think reasoning_details 'a' sig=Sg"),
    ];
    every(cases, |(name, fragments, entries, expected)| {
        let expected = format!("{expected} | text '4'");
        ReplyReader::chat().check_both(name, &details(fragments), &details_whole(entries), &expected)?;
        let wanted: Vec<Value> = entries.iter().map(|entry| parsed(entry)).collect();
        same(
            &format!("{name}: what goes back, streamed"),
            natives(&ReplyReader::chat().reply(&details(fragments))),
            wanted,
        )
    });
}

#[test]
fn d3_an_entry_is_sent_back_verbatim() {
    #[rustfmt::skip]
    let cases = [
        ("every key filled",      "openrouter", r#"{"type":"reasoning.text","text":"Look","signature":"Sg","id":"r1","format":"f","index":0}"#),
        ("null keys",             "openrouter", r#"{"type":"reasoning.text","text":"Look","signature":null,"id":null,"format":"f","index":0}"#),
        ("unknown keys, empty",   "openrouter", r#"{"type":"reasoning.text","text":"Look","index":0,"x_a":null,"x_b":[],"x_c":"","x_d":false,"x_e":{}}"#),
        ("no index",              "openrouter", r#"{"type":"reasoning.text","text":"Look","format":"f"}"#),
        ("no type, MiniMax",      "minimax",    r#"{"text":"Look"}"#),
        ("a type nobody knows",   "openrouter", r#"{"type":"reasoning.sketch","steps":[1,2],"index":0}"#),
        ("LiteLLM",               "litellm",    r#"{"type":"thinking","thinking":"Look","signature":"Sg"}"#),
    ];
    every(cases, |(name, dialect, entry)| -> RowResult {
        let reader = ReplyReader::dialect(dialect);
        let (field, entries) = match dialect {
            "litellm" => ("thinking_blocks", entry),
            _ => ("reasoning_details", entry),
        };
        let message = format!(r#"{{"{field}":[{entries}],"content":"4"}}"#);
        same(&format!("{name}, streamed"), natives(&reader.reply(&chat(&[&message]))), vec![parsed(entry)])?;
        same(&format!("{name}, whole"), natives(&reader.reply(&chat_whole(&message))), vec![parsed(entry)])
    });
}

#[test]
fn d3_one_block_per_run_not_one_per_token() {
    #[rustfmt::skip]
    let cases: &[(&str, &[&str], &str)] = &[
        ("text after the answer is a thought of its own",
            &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#, r#"{"content":"A"}"#,
              r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}"#, r#"{"reasoning_details":[{"type":"reasoning.text","text":"c","index":0}]}"#, r#"{"content":"B"}"#],
            "think reasoning_details 'a' | text 'A' | think reasoning_details 'bc' | text 'B'"),
        ("a signature after the answer finds its thought",
            &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#, r#"{"content":"A"}"#, r#"{"reasoning_details":[{"type":"reasoning.text","signature":"Sg","index":0}]}"#, r#"{"content":"B"}"#],
            "think reasoning_details 'a' sig=Sg | text 'AB'"),
        ("a payload after a call is a unit of its own",
            &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#, r#"{"tool_calls":[{"index":0,"id":"c1","function":{"name":"get","arguments":"{}"}}]}"#,
              r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA","id":"c1","index":1}]}"#],
            "think reasoning_details 'a' | call get(c1) {} | think reasoning_details '' enc=gAAA id=c1"),
        ("empty lists between fragments are padding",
            &[r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}"#, r#"{"content":"","reasoning_details":[]}"#, r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}"#],
            "think reasoning_details 'ab'"),
    ];
    every(cases, |(name, deltas, expected)| ReplyReader::chat().check(name, &chat(deltas), expected));
    let tokens: Vec<String> =
        (0..200).map(|n| format!(r#"{{"type":"reasoning.text","text":"{n} ","index":0}}"#)).collect();
    let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
    let reply = ReplyReader::chat().reply(&details(&tokens));
    assert_eq!((reply.blocks.len(), thinking_texts(&reply).len()), (2, 1), "200 fragments, one thought and the answer");
}
