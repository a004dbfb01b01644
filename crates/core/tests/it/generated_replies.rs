//! Generated replies, written in every dialect with every source of thinking, and
//! decoded again.

use aside_core::block::{
    Arguments, Block, CallId, Reply, Seal, SealKind, Seals, Text, Thinking, ThinkingContent, ToolCall,
};
use aside_core::dialect::{Details, Rules};
use aside_core::event::{BlockId, BlockOpening, Ending, Event, ProviderError, ReplyEnd, Sink, Usage};
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, ReplyHead, StreamWriter, emit_reply, whole_reply};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use crate::reply_round_trip::{grouped_by_kind, normalized};
use crate::support::{decode, dialects, generic_rules};

const HEAD: ReplyHead<'_> = ReplyHead::new("reply-1", "m-1", 1_763_200_000);

/// The content of a reply.
#[derive(Debug, Clone, Copy)]
enum ReplyShape {
    NoThinking,
    ThinkingThenText,
    ThinkingThenCalls,
    TwoThoughts,
    EncryptedOnly,
    Summaries,
    ErrorMidway,
    Length,
}

const SHAPES: [ReplyShape; 8] = [
    ReplyShape::NoThinking,
    ReplyShape::ThinkingThenText,
    ReplyShape::ThinkingThenCalls,
    ReplyShape::TwoThoughts,
    ReplyShape::EncryptedOnly,
    ReplyShape::Summaries,
    ReplyShape::ErrorMidway,
    ReplyShape::Length,
];

/// Every distinct set of rules: each dialect, and each model it names.
fn every_rules() -> Vec<(String, Protocol, Rules)> {
    let mut found: Vec<(String, Protocol, Rules)> = Vec::new();
    for dialect in dialects().iter() {
        let models = dialect.models().map(|(pattern, rules)| (format!("{} {pattern}", dialect.id), rules));
        for (name, rules) in std::iter::once((dialect.id.clone(), dialect.rules(None))).chain(models) {
            // Many models differ only in how thinking is requested.
            let same = |(_, protocol, known): &(String, Protocol, Rules)| {
                *protocol == dialect.protocol
                    && known.read == rules.read
                    && known.echo == rules.echo
                    && known.usage == rules.usage
            };
            if !found.iter().any(same) {
                found.push((name, dialect.protocol, rules.clone()));
            }
        }
    }
    found
}

/// Every field and tag that may carry thinking in this dialect, and an unknown one.
fn sources(protocol: Protocol, rules: &Rules) -> Vec<String> {
    let mut sources = vec!["elsewhere".to_owned()];
    if !matches!(protocol, Protocol::OpenaiChat | Protocol::Ollama) {
        return sources;
    }
    sources.extend(rules.read.text.iter().cloned());
    sources.extend(rules.read.tags.pairs.iter().flat_map(|pair| pair.open.iter().cloned()));
    if protocol == Protocol::OpenaiChat {
        if rules.read.content_chunks {
            sources.push("content.thinking".to_owned());
        }
        match rules.read.details {
            Details::None => (),
            Details::Openrouter => sources.push("reasoning_details".to_owned()),
            Details::Litellm => sources.push("thinking_blocks".to_owned()),
            Details::Any => sources.extend(["reasoning_details".to_owned(), "thinking_blocks".to_owned()]),
        }
    }
    sources
}

/// Whether the protocol has a place for seals.
fn has_place_for_seals(protocol: Protocol, rules: &Rules) -> bool {
    match protocol {
        Protocol::OpenaiChat => rules.read.details != Details::None || !rules.read.opaque.is_empty(),
        Protocol::OpenaiResponses | Protocol::Anthropic | Protocol::Gemini | Protocol::Bedrock => true,
        Protocol::Ollama | Protocol::Cohere => false,
    }
}

fn thinking_block(source: &str, text: &str, seal: Option<(SealKind, &str)>) -> Block {
    let mut seals = Seals::default();
    if let Some((kind, payload)) = seal {
        let seal = Some(Seal { kind, payload: payload.to_owned() });
        match kind {
            SealKind::Signature => seals.signature = seal,
            SealKind::Encrypted => seals.encrypted = seal,
        }
    }
    let content = match (text, seal) {
        ("", _) => ThinkingContent::Hidden { seals },
        (_, None) => ThinkingContent::Open { text: text.to_owned() },
        (_, Some(_)) => ThinkingContent::Sealed { text: text.to_owned(), seals },
    };
    let source = source.to_owned();
    Block::Thinking(Thinking::new(content, source))
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

fn call(id: &str, argument: &str) -> Block {
    Block::ToolCall(ToolCall::new(
        CallId::Given(id.to_owned()),
        format!("tool_{id}"),
        Arguments::Json(serde_json::json!({ "a": argument, "n": [1, 2] }).to_string()),
    ))
}

fn reply(shape: ReplyShape, source: &str, words: &[String], sealed: bool, usage: Usage) -> Reply {
    let word = |at: usize| words[at % words.len()].as_str();
    let seal = sealed.then_some((SealKind::Signature, "c2lnbmVkLTE="));
    let error = ProviderError::new(word(3)).with_code("overloaded".to_owned());
    let (blocks, ending) = match shape {
        ReplyShape::NoThinking => (vec![text(word(0))], Ending::Stop),
        ReplyShape::ThinkingThenText => (vec![thinking_block(source, word(0), seal), text(word(1))], Ending::Stop),
        ReplyShape::ThinkingThenCalls => {
            (vec![thinking_block(source, word(0), seal), call("one", word(1)), call("two", word(2))], Ending::ToolCalls)
        }
        ReplyShape::TwoThoughts => (
            vec![
                thinking_block(source, word(0), seal),
                text(word(1)),
                thinking_block(source, word(2), None),
                call("one", word(3)),
            ],
            Ending::ToolCalls,
        ),
        ReplyShape::EncryptedOnly => {
            let hidden = thinking_block(source, "", Some((SealKind::Encrypted, "ZW5jcnlwdGVk")));
            (vec![hidden, text(word(0))], Ending::Stop)
        }
        ReplyShape::Summaries => {
            let joined = format!("{}\n\n{}", word(0), word(1));
            let first = word(0).len();
            let mut summary = thinking_block(source, &joined, None);
            if let Block::Thinking(thinking) = &mut summary {
                thinking.items = vec![0..first, first + 2..joined.len()];
            }
            (vec![summary, text(word(2))], Ending::Stop)
        }
        ReplyShape::ErrorMidway => (vec![thinking_block(source, word(0), None), text(word(1))], Ending::Unsaid),
        ReplyShape::Length => (vec![thinking_block(source, word(0), None)], Ending::Length),
    };
    let error = matches!(shape, ReplyShape::ErrorMidway).then_some(error);
    Reply { blocks, usage, end: ReplyEnd { ending, error }, model: Some("m-1".to_owned()), ..Reply::default() }
}

/// Splits deltas into pieces.
struct InPieces<'a> {
    inner: &'a mut StreamWriter,
    cuts: &'a [Index],
}

impl Sink for InPieces<'_> {
    fn take(&mut self, event: Event<'_>) {
        let Event::Grew { block, text } = event else {
            self.inner.take(event);
            return;
        };
        let mut rest = text;
        let mut places: Vec<usize> = self.cuts.iter().map(|cut| cut.index(text.len())).collect();
        places.sort_unstable();
        for place in places {
            let at = place.saturating_sub(text.len() - rest.len());
            if at > 0 && at < rest.len() && rest.is_char_boundary(at) {
                let (piece, after) = rest.split_at(at);
                self.inner.take(Event::Grew { block, text: piece });
                rest = after;
            }
        }
        self.inner.take(Event::Grew { block, text: rest });
    }
}

fn write_stream(protocol: Protocol, rules: &Rules, reply: &Reply, cuts: &[Index]) -> Vec<u8> {
    let mut writer = StreamWriter::new(protocol, rules, &HEAD);
    emit_reply(reply, &mut InPieces { inner: &mut writer, cuts });
    writer.drain()
}

/// The content that every protocol can carry, in order; adjacent blocks of a kind are joined.
fn content(reply: &Reply) -> Vec<(&'static str, String)> {
    let mut content: Vec<(&'static str, String)> = Vec::new();
    for block in &reply.blocks {
        let (kind, words) = match block {
            Block::Thinking(thinking) => ("thought", thinking.text().to_owned()),
            Block::Text(text) => ("text", text.text.clone()),
            Block::ToolCall(call) => {
                let arguments: Value = match &call.arguments {
                    Arguments::Json(json) => serde_json::from_str(json).unwrap(),
                    Arguments::Broken(text) => text.as_str().into(),
                };
                ("call", format!("{} {arguments}", call.name))
            }
            Block::Unmodelled(_) | Block::ToolResult(_) | Block::Media(_) => continue,
        };
        match content.last_mut() {
            _ if words.is_empty() => (),
            Some((last, before)) if *last == kind && kind != "call" => before.push_str(&words),
            _ => content.push((kind, words)),
        }
    }
    content
}

fn seals(reply: &Reply) -> Vec<String> {
    let mut found = Vec::new();
    for block in &reply.blocks {
        match block {
            Block::Thinking(thinking) => {
                if let Some(Seals { signature, encrypted }) = thinking.seals() {
                    found.extend(signature.iter().chain(encrypted).map(|seal| seal.payload.clone()));
                }
            }
            Block::Text(text) => found.extend(text.seal.iter().map(|seal| seal.payload.clone())),
            Block::ToolCall(call) => found.extend(call.seal.iter().map(|seal| seal.payload.clone())),
            Block::Unmodelled(_) | Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    found
}

/// The counters that the protocol has.
fn counted(protocol: Protocol, usage: Usage) -> Usage {
    match protocol {
        Protocol::Ollama => usage.with_thinking(None).with_cached(None).with_cache_write(None),
        Protocol::Bedrock => usage.with_thinking(None),
        Protocol::Gemini | Protocol::Cohere => usage.with_cache_write(None),
        Protocol::OpenaiChat | Protocol::OpenaiResponses | Protocol::Anthropic => usage,
    }
}

/// Characters of all kinds, except those that tags, code and tool tokens consist of.
fn words() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[a-zé]([a-z \n\"\\\\é😀\u{7}{}:,]{0,12})[a-z.]", 4..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_reply_written_in_any_dialect_reads_back_the_same(
        (name, protocol, rules) in select(every_rules()),
        shape in select(SHAPES.to_vec()),
        source in any::<Index>(),
        words in words(),
        sealed in any::<bool>(),
        cuts in proptest::collection::vec(any::<Index>(), 0..5),
    ) {
        let sources = sources(protocol, &rules);
        let source = &sources[source.index(sources.len())];
        let usage = Usage::default().with_input(31).with_output(12).with_thinking(7).with_cached(5).with_cache_write(3);
        let wanted = reply(shape, source, &words, sealed, usage);
        let bytes = write_stream(protocol, &rules, &wanted, &cuts);
        let (got, outcome) = decode(protocol, &rules, &bytes, usize::MAX);
        let context = format!("{name} {protocol} {shape:?} {source}\n{}", String::from_utf8_lossy(&bytes));
        prop_assert!(outcome.is_ok(), "{context}");
        prop_assert_eq!(content(&got), content(&wanted), "{}", context);
        prop_assert_eq!(&got.end.ending, &wanted.end.ending, "{}", context);
        let message = |reply: &Reply| reply.end.error.as_ref().map(|error| error.message.clone());
        prop_assert_eq!(message(&got), message(&wanted), "{}", context);
        if wanted.end.error.is_none() {
            prop_assert_eq!(got.usage, counted(protocol, usage), "{}", context);
        }
        let kept = if has_place_for_seals(protocol, &rules) { seals(&wanted) } else { Vec::new() };
        prop_assert_eq!(seals(&got), kept, "{}", context);

        // A decoded reply survives further round trips unchanged.
        let again = decode(protocol, &rules, &write_stream(protocol, &rules, &got, &[]), usize::MAX).0;
        prop_assert_eq!(normalized(again), normalized(got.clone()), "{}", context);
        if got.end.error.is_none() {
            let body = whole_reply(protocol, &rules, &HEAD, &got);
            let whole = decode(protocol, &rules, body.as_bytes(), usize::MAX).0;
            let (whole, got) = (grouped_by_kind(normalized(whole)), grouped_by_kind(normalized(got)));
            prop_assert_eq!(content(&whole), content(&got), "{}\n{}", context, body);
            prop_assert_eq!(seals(&whole), seals(&got), "{}\n{}", context, body);
            prop_assert_eq!((&whole.usage, &whole.end), (&got.usage, &got.end), "{}\n{}", context, body);
        }
    }
}

/// All thinking, text and calls, whatever their order.
fn content_by_kind(reply: &Reply) -> [String; 3] {
    let all = content(reply);
    ["thought", "text", "call"].map(|kind| {
        let of_kind = all.iter().filter(|(of, _)| *of == kind).map(|(_, words)| words.as_str());
        if kind == "call" { of_kind.collect::<Vec<_>>().join("\n") } else { of_kind.collect() }
    })
}

/// Replies that lose content in other protocols, and why.
#[rustfmt::skip]
const CHANGED_IN_OTHER_PROTOCOLS: &[(&str, &[Protocol], &str)] = &[
    ("192-", &[Protocol::OpenaiChat, Protocol::Ollama], "an answer that begins with a tag is thinking where tags are parsed"),
    ("openai/final_word_differs", &Protocol::ALL, "the restated text replaces deltas that were already written"),
    ("080-", &Protocol::ALL, "as above"),
    ("459-", &[Protocol::OpenaiResponses], "written while decoding, empty thinking becomes an item"),
];

/// What a reply loses in other protocols, written from the whole reply and while it is
/// decoded.
fn changed_in_other_protocols(name: &str, from: Protocol, rules: &Rules, bytes: &[u8]) -> Vec<String> {
    let reply = decode(from, rules, bytes, usize::MAX).0;
    let mut out = Vec::new();
    for to in Protocol::ALL {
        if CHANGED_IN_OTHER_PROTOCOLS
            .iter()
            .any(|(case, protocols, _)| name.starts_with(case) && protocols.contains(&to))
        {
            continue;
        }
        let other_rules = generic_rules(to);
        let mut writer = StreamWriter::new(to, &other_rules, &HEAD);
        let mut decoder = Decoder::new(from, rules);
        decoder.push(bytes, &mut writer);
        assert_eq!(decoder.finish(&mut writer), Ok(()), "{name}");
        for (mode, bytes) in
            [("from the reply", write_stream(to, &other_rules, &reply, &[])), ("while decoding", writer.drain())]
        {
            let got = decode(to, &other_rules, &bytes, usize::MAX).0;
            if content_by_kind(&got) != content_by_kind(&reply) {
                out.push(format!(
                    "{name} as {to}, {mode}\nGOT {:?}\nWANTED {:?}",
                    content_by_kind(&got),
                    content_by_kind(&reply)
                ));
            }
        }
    }
    out
}

#[test]
fn a_reply_of_any_protocol_written_in_any_other_keeps_its_text_and_calls() {
    let fixtures = crate::fixtures::fixtures();
    let all = fixtures.iter();
    let failures: Vec<String> =
        all.flat_map(|case| changed_in_other_protocols(&case.name, case.protocol, &case.rules, &case.bytes)).collect();
    assert!(failures.is_empty(), "{} differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_recording_of_any_protocol_written_in_any_other_keeps_its_text_and_calls() {
    let Some(cases) = crate::recordings::recordings() else { return };
    let all = cases.iter();
    let failures: Vec<String> = all
        .flat_map(|(name, protocol, bytes)| {
            changed_in_other_protocols(name, *protocol, &generic_rules(*protocol), bytes)
        })
        .collect();
    assert!(failures.is_empty(), "{} differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_delta_is_a_frame_of_its_own() {
    for protocol in Protocol::ALL {
        let mut writer = StreamWriter::new(protocol, &generic_rules(protocol), &HEAD);
        let block = BlockId(0);
        writer.take(Event::Opened { block, opening: BlockOpening::Thinking { source: "thinking", id: None } });
        writer.take(Event::Grew { block, text: "first" });
        assert!(writer.content_type().contains('/'));
        writer.drain();
        for piece in ["second", "third", "fourth"] {
            writer.take(Event::Grew { block, text: piece });
            let frame = String::from_utf8_lossy(&writer.drain()).into_owned();
            let pieces = ["first", "second", "third", "fourth"];
            assert_eq!(pieces.iter().filter(|piece| frame.contains(**piece)).count(), 1, "{protocol}: {frame}");
        }
        assert!(writer.drain().is_empty());
    }
}
