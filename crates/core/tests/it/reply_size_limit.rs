//! A reply of any size stays within its memory limit, and everything up to the limit is
//! kept.

use aside_core::block::{Arguments, Block, Native, Reply, Seal};
use aside_core::event::{Ending, NoteCode};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::Decoder;

use crate::support::{decode, fixture_responses, generic_rules};

/// Decodes a reply up to a size limit; also returns how many bytes were read.
fn bounded(protocol: Protocol, bytes: &[u8], size: usize, limit: u64) -> (Reply, usize) {
    let mut fold = Fold::new();
    let mut decoder = Decoder::bounded(protocol, &generic_rules(protocol), Some(limit));
    let mut read = 0;
    for chunk in bytes.chunks(size) {
        if decoder.is_full() {
            break;
        }
        decoder.push(chunk, &mut fold);
        read += chunk.len();
    }
    let _understood = decoder.finish(&mut fold);
    (fold.finish(), read)
}

/// The size of everything in a reply, in bytes.
fn reply_size(reply: &Reply) -> usize {
    let native = |native: &Option<Native>| native.as_ref().map_or(0, |native| native.json.len());
    let seal = |seal: &Option<Seal>| seal.as_ref().map_or(0, |seal| seal.payload.len());
    let block = |block: &Block| match block {
        Block::Text(text) => text.text.len() + seal(&text.seal) + native(&text.native),
        Block::Thinking(thinking) => {
            let seals = thinking.seals().map_or(0, |seals| seal(&seals.signature) + seal(&seals.encrypted));
            thinking.text().len() + seals + native(&thinking.native)
        }
        Block::ToolCall(call) => {
            let (Arguments::Json(text) | Arguments::Broken(text)) = &call.arguments;
            text.len() + seal(&call.seal) + native(&call.native)
        }
        Block::Unmodelled(unmodelled) => unmodelled.native.json.len(),
        Block::ToolResult(_) | Block::Media(_) => 0,
    };
    reply.blocks.iter().map(block).sum()
}

fn is_oversized(reply: &Reply) -> bool {
    reply.notes.iter().any(|note| note.code == NoteCode::Oversized)
}

#[test]
fn every_recorded_reply_is_cut_at_the_limit_and_is_complete_below_it() {
    let mut n_cut = 0;
    for (name, protocol, bytes) in fixture_responses() {
        let (whole, _) = decode(protocol, &generic_rules(protocol), &bytes, 4096);
        let (same, _) = bounded(protocol, &bytes, 4096, 1 << 30);
        assert_eq!(same, whole, "{name}: a bound that is not reached changes nothing");
        for limit in [0, 300, 600, 1500] {
            let (cut, _) = bounded(protocol, &bytes, 64, limit);
            assert!(reply_size(&cut) as u64 <= limit, "{name}: {} of {limit} bytes", reply_size(&cut));
            if is_oversized(&cut) {
                n_cut += 1;
                assert_eq!(cut.end.ending, Ending::CutOff, "{name}");
            } else {
                assert_eq!(cut, whole, "{name}: nothing is cut in silence");
            }
        }
    }
    assert!(n_cut > 50, "only {n_cut} were cut");
}

/// One event, or one whole body, that contains `filler`.
fn large(filler: &str) -> Vec<(&'static str, Protocol, String)> {
    let sse = |json: String| format!("data: {json}\n\n");
    vec![
        (
            "chat delta",
            Protocol::OpenaiChat,
            sse(format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{filler}"}}}}]}}"#)),
        ),
        (
            "chat body",
            Protocol::OpenaiChat,
            format!(r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"{filler}"}}}}]}}"#),
        ),
        (
            "chat arguments",
            Protocol::OpenaiChat,
            sse(format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"n","arguments":"{filler}"}}}}]}}}}]}}"#
            )),
        ),
        (
            "responses delta",
            Protocol::OpenaiResponses,
            sse(r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#.to_owned())
                + &sse(format!(
                    r#"{{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"{filler}"}}"#
                )),
        ),
        (
            "anthropic thinking",
            Protocol::Anthropic,
            sse(r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#.to_owned())
                + &sse(format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"thinking_delta","thinking":"{filler}"}}}}"#
                )),
        ),
        (
            "gemini part",
            Protocol::Gemini,
            sse(format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{filler}"}}]}}}}]}}"#)),
        ),
        (
            "ollama line",
            Protocol::Ollama,
            format!(r#"{{"model":"m","message":{{"role":"assistant","content":"{filler}"}},"done":false}}"#) + "\n",
        ),
        (
            "cohere delta",
            Protocol::Cohere,
            sse(r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#.to_owned())
                + &sse(format!(
                    r#"{{"type":"content-delta","index":0,"delta":{{"message":{{"content":{{"text":"{filler}"}}}}}}}}"#
                )),
        ),
    ]
}

#[test]
fn one_event_over_the_limit_is_cut_and_its_beginning_is_kept() {
    const LIMIT: u64 = 1 << 20;
    // Below the limit of one event, and far above it.
    for megabytes in [1.5, 9.0] {
        let filler = "All work and no play. ".repeat((megabytes * 1048576.0 / 22.0) as usize);
        for (name, protocol, body) in large(&filler) {
            let (reply, read) = bounded(protocol, body.as_bytes(), 16384, LIMIT);
            assert!(is_oversized(&reply), "{name}");
            assert_eq!(reply.end.ending, Ending::CutOff, "{name}");
            let kept = reply_size(&reply);
            assert!((1_000_000..=LIMIT as usize).contains(&kept), "{name}: {kept} of {LIMIT}");
            assert!(read < 4 << 20, "{name}: {read} bytes were read");
        }
    }
}

#[test]
fn blocks_without_text_count_too() {
    let call = |at: usize| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{at},\"id\":\"c{at}\",\"function\":{{\"name\":\"n\"}}}}]}}}}]}}\n\n"
        )
    };
    let calls: String = (0..10_000).map(call).collect();
    let (reply, _) = bounded(Protocol::OpenaiChat, calls.as_bytes(), 4096, 100_000);
    assert!(is_oversized(&reply));
    assert!(reply.blocks.len() < 400, "{} blocks", reply.blocks.len());
}

#[test]
fn without_a_limit_everything_is_decoded() {
    let filler = "x".repeat(3 << 20);
    for (name, protocol, body) in large(&filler) {
        let mut fold = Fold::new();
        let mut decoder = Decoder::bounded(protocol, &generic_rules(protocol), None);
        decoder.push(body.as_bytes(), &mut fold);
        decoder.finish(&mut fold).unwrap();
        let reply = fold.finish();
        assert!(!is_oversized(&reply) && reply_size(&reply) >= filler.len(), "{name}: {}", reply_size(&reply));
    }
}

#[test]
fn text_buffered_before_its_event_counts_too() {
    let piece = "x".repeat(10_000);
    let blank = " ".repeat(10_000);
    let sse = |json: String| format!("data: {json}\n\n");
    let chat = |delta: String| sse(format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#));
    let begin =
        sse(r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#.into());
    let signature = sse(format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta","signature":"{piece}"}}}}"#
    ));
    let nameless = chat(format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{piece}"}}}}]}}"#));
    let plan = sse(format!(r#"{{"type":"tool-plan-delta","delta":{{"message":{{"tool_plan":"{piece}"}}}}}}"#));
    let cases = [
        ("a call without a name", Protocol::OpenaiChat, String::new(), nameless),
        (
            "blanks before a thought",
            Protocol::OpenaiChat,
            String::new(),
            chat(format!(r#"{{"reasoning_content":"{blank}"}}"#)),
        ),
        ("a signature in pieces", Protocol::Anthropic, begin, signature),
        ("a plan", Protocol::Cohere, String::new(), plan),
    ];
    for (name, protocol, begin, repeated) in cases {
        let body = begin + &repeated.repeat(100);
        let (reply, read) = bounded(protocol, body.as_bytes(), 4096, 100_000);
        assert!(is_oversized(&reply), "{name}");
        assert!(read < 200_000, "{name}: {read} bytes were read");
    }
}

#[test]
fn a_text_that_its_provider_repeats_counts_once() {
    let text = "All work and no play. ".repeat(30_000);
    let sse = |json: String| format!("data: {json}\n\n");
    let item = format!(
        r#"{{"type":"message","id":"m","role":"assistant","content":[{{"type":"output_text","annotations":[],"text":"{text}"}}]}}"#
    );
    let added =
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#;
    let events = [
        added.to_owned(),
        format!(
            r#"{{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"{text}"}}"#
        ),
        format!(
            r#"{{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"{text}"}}"#
        ),
        format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
        format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{item}]}}}}"#),
    ];
    let body: String = events.into_iter().map(sse).collect();
    let (reply, _) = bounded(Protocol::OpenaiResponses, body.as_bytes(), 16384, text.len() as u64 + 2000);
    assert!(!is_oversized(&reply), "{:?}", reply.notes);
    assert_eq!(reply.end.ending, Ending::Stop);
}
