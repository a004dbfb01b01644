//! Arbitrary messages for property tests.

use aside_core::block::{
    Arguments, Block, CallId, Media, MediaKind, MediaSource, Native, Origin, Seal, SealKind, Seals, Text, Thinking,
    ThinkingContent, ThinkingSpan, Time, ToolCall, ToolResult, Unmodelled,
};
use aside_core::event::{Ending, Usage};
use aside_core::extra::Extra;
use aside_core::message::{Message, Role};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn words() -> BoxedStrategy<String> {
    prop_oneof![
        4 => "[a-zA-Z0-9_ .\n\"\\\\]{0,40}",
        1 => "\\PC{0,20}",
        1 => any::<String>(),
        1 => "[a-z]{50,120}",
    ]
    .boxed()
}

fn kind() -> impl Strategy<Value = SealKind> {
    prop_oneof![Just(SealKind::Signature), Just(SealKind::Encrypted)]
}

fn seal() -> impl Strategy<Value = Seal> {
    (kind(), words()).prop_map(|(kind, payload)| Seal { kind, payload })
}

fn seals() -> impl Strategy<Value = Seals> {
    (option::of(seal()), option::of(seal())).prop_map(|(signature, encrypted)| Seals { signature, encrypted })
}

fn native() -> impl Strategy<Value = Native> {
    (words(), option::of(words())).prop_map(|(json, text_member)| Native { json, text_member })
}

/// A native item that repeats the text and seals of its block, as some providers do.
fn repeating(thinking: &Thinking, json: String) -> Native {
    let seals = thinking.seals().cloned().unwrap_or_default();
    let quoted = |text: &str| serde_json::to_string(text).unwrap();
    let encrypted = quoted(&seals.encrypted.map_or(String::new(), |seal| seal.payload));
    let text = quoted(thinking.text());
    Native { json: format!(r#"{{"x":{json:?},"enc":{encrypted},"text":{text},"again":{text}}}"#), text_member: None }
}

/// Members without a neutral form, with names and values that need escapes.
fn extra() -> impl Strategy<Value = Extra> {
    vec((words(), words()), 0..3).prop_map(|members| {
        let mut extra = Extra::default();
        for (name, value) in members {
            extra.set(&name, &serde_json::to_string(&value).unwrap());
        }
        extra
    })
}

fn thinking() -> impl Strategy<Value = Thinking> {
    let content = prop_oneof![
        words().prop_map(|text| ThinkingContent::Open { text }),
        (words(), seals()).prop_map(|(text, seals)| ThinkingContent::Sealed { text, seals }),
        seals().prop_map(|seals| ThinkingContent::Hidden { seals }),
    ];
    let items = vec((0usize..50, 0usize..50).prop_map(|(a, b)| a.min(b)..a.max(b)), 0..3);
    let span = option::of((any::<u64>(), any::<u64>()))
        .prop_map(|span| span.map(|(started, ended)| ThinkingSpan { started: Time(started), ended: Time(ended) }));
    let rest = (words(), option::of(words()), items, span, option::of(native()), extra(), any::<bool>());
    (content, rest).prop_map(|(content, (source, id, items, span, native, extra, repeats))| {
        let mut thinking = Thinking { content, source, id, items, span, native, extra };
        if let Some(native) = thinking.native.clone().filter(|_| repeats) {
            thinking.native = Some(repeating(&thinking, native.json));
        }
        thinking
    })
}

fn media() -> impl Strategy<Value = Media> {
    // An empty name or address means none, in JSON as on the wire.
    let filled = || words().prop_map(|text| format!("x{text}"));
    let source = prop_oneof![
        words().prop_map(MediaSource::Data),
        filled().prop_map(MediaSource::Url),
        filled().prop_map(MediaSource::FileId),
    ];
    let kind = prop_oneof![Just(MediaKind::Image), Just(MediaKind::Document)];
    (kind, words(), source, option::of(filled())).prop_map(|(kind, media_type, source, name)| Media {
        kind,
        media_type,
        source,
        name,
    })
}

fn block() -> impl Strategy<Value = Block> {
    let arguments = prop_oneof![words().prop_map(Arguments::Json), words().prop_map(Arguments::Broken)];
    let id = prop_oneof![words().prop_map(CallId::Given), words().prop_map(CallId::Invented)];
    prop_oneof![
        (words(), option::of(seal()), option::of(native()), extra())
            .prop_map(|(text, seal, native, extra)| Block::Text(Text { text, seal, native, extra })),
        thinking().prop_map(Block::Thinking),
        (id, words(), arguments, option::of(seal()), option::of(native()), extra()).prop_map(
            |(id, name, arguments, seal, native, extra)| Block::ToolCall(ToolCall {
                id,
                name,
                arguments,
                seal,
                native,
                extra
            })
        ),
        (words(), words(), words(), vec(media(), 0..3), any::<bool>()).prop_map(
            |(id, name, content, media, is_error)| Block::ToolResult(ToolResult { id, name, content, media, is_error })
        ),
        media().prop_map(Block::Media),
        native().prop_map(|native| Block::Unmodelled(Unmodelled { native })),
    ]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Stop),
        Just(Ending::Length),
        Just(Ending::ToolCalls),
        Just(Ending::ContentFilter),
        Just(Ending::Refusal),
        Just(Ending::Pause),
        Just(Ending::Error),
        Just(Ending::Unsaid),
        Just(Ending::CutOff),
        words().prop_map(Ending::Unrecognized),
    ]
}

fn origin() -> impl Strategy<Value = Origin> {
    let member = || option::of(words());
    (member(), member(), member(), member(), member()).prop_map(|(provider, dialect, model, endpoint, account)| {
        Origin::default()
            .with_provider(provider)
            .with_dialect(dialect)
            .with_model(model)
            .with_endpoint(endpoint)
            .with_account(account)
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(any::<u64>());
    (count(), count(), count(), count(), count()).prop_map(|(input, output, reasoning, cached, cache_write)| {
        Usage::default()
            .with_input(input)
            .with_output(output)
            .with_thinking(reasoning)
            .with_cached(cached)
            .with_cache_write(cache_write)
    })
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::System), Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
    let about = (option::of(origin()), option::of(ending()), option::of(usage()), option::of(words()));
    let rest = (any::<bool>(), option::of(any::<u64>()), vec((words(), words()), 0..3), extra());
    (role, vec(block(), 0..5), about, rest).prop_map(
        |(role, blocks, (origin, ending, usage, seen), (interrupted, at, unknown_members, extra))| Message {
            role,
            blocks,
            origin,
            ending,
            usage,
            empty_thinking_field: seen,
            interrupted,
            at: at.map(Time),
            extra,
            unknown_members,
        },
    )
}
