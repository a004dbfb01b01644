//! D16: connections that fail. A reply counts as complete only as far as is known.

use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;

use super::{
    ReplyReader, aws_event, chat, chat_whole, cohere, converse, converse_whole, drawn, every, finish, gemini, messages,
    messages_whole, notices, ollama, same, sse,
};
use crate::support::text;

const TEXT: &str = r#"{"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":30}}"#;

/// The body without its last `n` events.
fn without_last(n: usize, body: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(body).unwrap();
    let mut events: Vec<&str> = text.split_inclusive("\n\n").collect();
    events.truncate(events.len() - n);
    events.concat().into_bytes()
}

#[test]
fn d16_a_connection_that_fails_after_the_finish_reason_leaves_out_nothing_silently() {
    use Protocol::{Anthropic, Bedrock, Gemini, OpenaiChat, OpenaiResponses};
    let with = |chunk: &str, usage: &str| chunk.replacen("\"choices\"", &format!("\"usage\":{usage},\"choices\""), 1);
    let counts = r#"{"prompt_tokens":10,"completion_tokens":30}"#;
    let text_with_usage = with(TEXT, counts);
    let claude = messages(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ]);
    let item = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"A"}]}}"#;
    let metadata = aws_event("metadata", r#"{"usage":{"inputTokens":5,"outputTokens":9}}"#);
    let mut converse = converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"A"}}}"#]);
    converse.truncate(converse.len() - metadata.len());
    let gemini_end = r#"{"candidates":[{"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5}}"#;
    let gemini_text = r#"{"candidates":[{"content":{"parts":[{"text":"A"}]}}],"usageMetadata":{"promptTokenCount":5}}"#;
    let filter = STOP.replace("stop", "content_filter");
    #[rustfmt::skip]
    let cases = [
        ("chat, after the usage",               OpenaiChat, sse([TEXT, STOP, USAGE]),                          Some("stop"), vec![]),
        ("chat, before the usage",              OpenaiChat, sse([TEXT, STOP]),                                 Some("stop"), vec!["usage_missing"]),
        ("chat, null usage",                    OpenaiChat, sse([TEXT, &with(STOP, "null")]),                  Some("stop"), vec!["usage_missing"]),
        ("chat, interim usage",                 OpenaiChat, sse([&text_with_usage, STOP]),                     Some("stop"), vec!["usage_missing"]),
        ("chat, usage with the reason",         OpenaiChat, sse([TEXT, &with(STOP, counts)]),                  Some("stop"), vec![]),
        ("chat, the same usage again",          OpenaiChat, sse([&text_with_usage, &with(STOP, counts)]),      Some("stop"), vec![]),
        ("chat, inside the usage",              OpenaiChat, [sse([TEXT, STOP]), b"data: {\"cho".to_vec()].concat(), Some("stop"), vec!["usage_missing"]),
        ("chat, inside an event after it",      OpenaiChat, [sse([TEXT, STOP, USAGE]), b"data: {\"cho".to_vec()].concat(), Some("stop"), vec!["malformed"]),
        ("chat, after content after the reason", OpenaiChat, sse([TEXT, STOP, TEXT]),                          None,         vec!["cut_off"]),
        ("chat, with usage after that content", OpenaiChat, sse([TEXT, STOP, TEXT, USAGE]),                    None,         vec!["cut_off"]),
        ("chat, before any content",            OpenaiChat, sse([STOP, USAGE]),                                None,         vec!["cut_off"]),
        ("chat, filtered before any content",   OpenaiChat, sse([&filter, USAGE]),                             Some("content_filter"), vec![]),
        ("chat, before the reason",             OpenaiChat, sse([TEXT, USAGE]),                                None,         vec!["cut_off"]),
        ("chat, a whole message in a stream",   OpenaiChat, sse([r#"{"choices":[{"message":{"content":"A"}}]}"#]), None,     vec!["cut_off"]),
        ("messages, before its end",            Anthropic,  without_last(1, &claude),                          Some("stop"), vec![]),
        ("messages, before the reason",         Anthropic,  without_last(2, &claude),                          None,         vec!["cut_off"]),
        ("gemini, without usage",               Gemini,     gemini(&[r#"[{"text":"A"}]"#]),                    Some("stop"), vec!["usage_missing"]),
        ("gemini, with usage",                  Gemini,     sse([gemini_text, gemini_end]),                    Some("stop"), vec![]),
        ("converse, before the metadata",       Bedrock,    converse,                                          Some("stop"), vec!["usage_missing"]),
        ("responses, before the end",           OpenaiResponses, sse([item]),                                  None,         vec!["cut_off"]),
    ];
    every(cases, |(name, protocol, bytes, expected, codes)| {
        let mut decoder = Decoder::new(protocol, &ReplyReader::generic(protocol).rules);
        let mut fold = Fold::new();
        decoder.push(&bytes, &mut fold);
        same(name, decoder.is_at_end(), false)?;
        decoder.finish_broken_off(&mut fold).unwrap();
        let reply = fold.finish();
        same(name, (finish(&reply).as_deref(), notices(&reply)), (expected, codes))
    });
}

#[test]
fn d16_a_connection_that_fails_after_the_end_of_a_reply_changes_nothing() {
    use Protocol::{Anthropic, Bedrock, Cohere, Ollama, OpenaiChat, OpenaiResponses};
    let cohere = cohere(&[
        r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
        r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"A"}}}}"#,
    ]);
    let text_part = r#"[{"type":"text","text":"A"}]"#;
    let ended = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"A"}]}]}}"#;
    #[rustfmt::skip]
    let cases = [
        ("chat",              OpenaiChat,      true,  chat(&[r#"{"content":"A"}"#])),
        ("chat, no reason",   OpenaiChat,      true,  sse([TEXT, "[DONE]"])),
        ("chat, whole",       OpenaiChat,      false, chat_whole(r#"{"content":"A"}"#)),
        ("messages",          Anthropic,       true,  messages(&[r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"A"}}"#])),
        ("messages, whole",   Anthropic,       false, messages_whole(text_part)),
        ("responses",         OpenaiResponses, true,  sse([ended])),
        ("cohere",            Cohere,          true,  without_last(1, &cohere)),
        ("ollama",            Ollama,          true,  ollama(&[r#"{"role":"assistant","content":"A"}"#])),
        ("converse",          Bedrock,         true,  converse(&[r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"A"}}}"#])),
        ("converse, whole",   Bedrock,         false, converse_whole(r#"[{"text":"A"}]"#)),
    ];
    every(cases, |(name, protocol, is_streamed, bytes)| {
        let rules = ReplyReader::generic(protocol).rules;
        let (mut broken, mut closed) = (Fold::new(), Fold::new());
        let mut decoder = Decoder::new(protocol, &rules);
        let (last, before) = bytes.split_last().unwrap();
        decoder.push(before, &mut broken);
        same(&format!("{name}, before the last byte"), decoder.is_at_end(), false)?;
        decoder.push(&[*last], &mut broken);
        same(name, decoder.is_at_end(), is_streamed)?;
        decoder.finish_broken_off(&mut broken).unwrap();
        let mut decoder = Decoder::new(protocol, &rules);
        decoder.push(&bytes, &mut closed);
        decoder.finish(&mut closed).unwrap();
        let (broken, closed) = (broken.finish(), closed.finish());
        same(name, text(&broken), "A".to_owned())?;
        same(
            name,
            (drawn(&broken), &broken.end, &broken.notes, broken.usage),
            (drawn(&closed), &closed.end, &closed.notes, closed.usage),
        )
    });
}
