//! Generated conversations of every form, with text that looks like something else.

use aside_core::block::{
    Arguments, Block, CallId, Media, MediaKind, MediaSource, Native, Origin, Seal, SealKind, Seals, Text, Thinking,
    ThinkingContent, ThinkingSpan, Time, ToolCall, ToolResult, Unmodelled,
};
use aside_core::conversation::{Conversation, ToolSpec};
use aside_core::event::{Ending, Usage};
use aside_core::extra::Extra;
use aside_core::history::{EntryId, History};
use aside_core::message::{Message, Role};
use aside_core::safe_json;
use proptest::option;
use proptest::prelude::*;

/// Pieces with a meaning in Markdown, in JSON or in our formats.
const NASTY: &[&str] = &[
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    " ",
    "  \n",
    "\t",
    "```",
    "````",
    "~~~",
    "`",
    "> ",
    ">",
    "> [!thinking]- Thought",
    "[!thinking]-",
    "## You",
    "## Assistant · m",
    "## Tools",
    "## System",
    "# T",
    "---",
    "<!-- aside:message {} -->",
    "<!-- aside:text -->",
    "<!--",
    "-->",
    "<details>",
    "</details>",
    "<details><summary>Thought</summary>",
    "</summary>",
    "<think>",
    "</think>",
    "<pre>",
    "\\",
    "\\\\## You",
    "\\<details>",
    "\"",
    "\\n",
    "{\"aside\":1}",
    "{\"role\":\"user\"}",
    "é",
    "\u{1f600}",
    "\u{2028}",
    "\0",
    "word",
    "**Title**",
    "* item",
    "    code",
    "| a |",
];

/// Text that is not empty.
pub(super) fn nasty() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![4 => prop::sample::select(NASTY).prop_map(str::to_owned), 1 => "[a-z ]{1,6}", 1 => "\\PC{1,4}"];
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

fn nasty_or_empty() -> impl Strategy<Value = String> {
    prop_oneof![5 => nasty(), 1 => Just(String::new())]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z_]{1,8}", 1 => nasty()]
}

/// Compact JSON.
fn json() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("[]".to_owned()),
        Just("{\"a\":[true,-1.5e3]}".to_owned()),
        // In our own spelling, so that every byte is preserved.
        nasty().prop_map(|text| safe_json::to_string(&text)),
    ];
    prop::collection::vec(("[a-z]{1,5}", value), 0..4).prop_map(|members| {
        let members: Vec<String> = members.into_iter().map(|(key, value)| format!("\"x{key}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

fn seal(kind: SealKind) -> impl Strategy<Value = Option<Seal>> {
    option::of(nasty().prop_map(move |payload| Seal { kind, payload }))
}

fn any_seal() -> impl Strategy<Value = Option<Seal>> {
    prop_oneof![seal(SealKind::Signature), seal(SealKind::Encrypted)]
}

/// With the text inside, next to it, or without it.
fn native(text: String) -> impl Strategy<Value = Option<Native>> {
    let holder = prop_oneof![
        Just(None),
        Just(Some("text".to_owned())),
        Just(Some("summary".to_owned())),
        Just(Some("content".to_owned())),
    ];
    let lookalike = prop::bool::weighted(0.2);
    option::of((json(), holder, lookalike).prop_map(move |(json, text_member, lookalike)| {
        // A member with the same text as the block need not be the block's text member.
        let twin = format!("{{\"text\":{},", safe_json::to_string(&text));
        let json =
            if lookalike && text_member.is_none() { json.replacen('{', &twin, 1).replace(",}", "}") } else { json };
        Native { json, text_member }
    }))
}

/// Members without a neutral form.
fn extra() -> impl Strategy<Value = Extra> {
    prop::collection::vec((nasty_or_empty(), json()), 0..3).prop_map(|members| {
        let mut extra = Extra::default();
        for (name, json) in members {
            extra.set(&name, &json);
        }
        extra
    })
}

fn thinking() -> impl Strategy<Value = Block> {
    let about = (name(), option::of("[a-z_]{1,9}"), option::of((0..4_000_000_000_000u64, 0..99_999u64)));
    let seals = (seal(SealKind::Signature), seal(SealKind::Encrypted));
    let texts = prop::collection::vec(nasty_or_empty(), 0..4);
    (texts, seals, about, any::<bool>()).prop_flat_map(|(texts, (signature, encrypted), (source, id, span), items)| {
        let mut text = String::new();
        let mut ranges = Vec::new();
        for (at, item) in texts.iter().enumerate() {
            text.push_str(if at > 0 { "\n\n" } else { "" });
            ranges.push(text.len()..text.len() + item.len());
            text.push_str(item);
        }
        let sealed = signature.is_some() || encrypted.is_some();
        let seals = Seals { signature, encrypted };
        let content = match (text.is_empty(), sealed) {
            (true, _) => ThinkingContent::Hidden { seals },
            (false, true) => ThinkingContent::Sealed { text: text.clone(), seals },
            (false, false) => ThinkingContent::Open { text: text.clone() },
        };
        let span = span.map(|(from, long)| ThinkingSpan { started: Time(from), ended: Time(from + long) });
        let items = if items { ranges } else { Vec::new() };
        (native(text), extra()).prop_map(move |(native, extra)| {
            let (content, source, id, items) = (content.clone(), source.clone(), id.clone(), items.clone());
            Block::Thinking(Thinking { content, source, id, items, span, native, extra })
        })
    })
}

fn text() -> impl Strategy<Value = Block> {
    nasty_or_empty().prop_flat_map(|text| {
        (any_seal(), native(text.clone()), extra())
            .prop_map(move |(seal, native, extra)| Block::Text(Text { text: text.clone(), seal, native, extra }))
    })
}

fn call() -> impl Strategy<Value = Block> {
    let arguments = prop_oneof![
        4 => json().prop_map(Arguments::Json),
        1 => nasty().prop_map(|text| Arguments::Json(safe_json::to_string(&text))),
        1 => nasty_or_empty().prop_map(Arguments::Broken),
    ];
    let id = prop_oneof![
        name().prop_map(CallId::Given),
        (0..9u32).prop_map(|n| CallId::Invented(format!("{}{n}", CallId::INVENTED))),
    ];
    let rest = (any_seal(), option::of(json()), extra());
    (id, name(), arguments, rest).prop_map(|(id, name, arguments, (seal, native, extra))| {
        let native = native.map(|json| Native { json, text_member: None });
        Block::ToolCall(ToolCall { id, name, arguments, seal, native, extra })
    })
}

/// Images and documents of every source.
fn media() -> impl Strategy<Value = Media> {
    let source = prop_oneof![
        Just(MediaSource::Data("QUJD".to_owned())),
        nasty().prop_map(MediaSource::Data),
        nasty().prop_map(MediaSource::Url),
        name().prop_map(MediaSource::FileId),
    ];
    let kind = prop_oneof![Just(MediaKind::Image), Just(MediaKind::Document)];
    let media_type = prop_oneof![Just("image/png".to_owned()), Just("application/pdf".to_owned()), nasty_or_empty()];
    (kind, media_type, source, option::of(nasty())).prop_map(|(kind, media_type, source, name)| Media {
        kind,
        media_type,
        source,
        name,
    })
}

fn block() -> impl Strategy<Value = Block> {
    let result = (name(), name(), nasty_or_empty(), prop::collection::vec(media(), 0..3), any::<bool>());
    let result = result.prop_map(|(id, name, content, media, is_error)| {
        Block::ToolResult(ToolResult { id, name, content, media, is_error })
    });
    let kept = prop_oneof![json(), Just("\"bare\"".to_owned()), Just("[1]".to_owned())]
        .prop_map(|json| Block::Unmodelled(Unmodelled { native: Native { json, text_member: None } }));
    prop_oneof![4 => thinking(), 4 => text(), 2 => call(), 2 => result, 1 => media().prop_map(Block::Media), 1 => kept]
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
        Just(Ending::Unrecognized("stop".into())),
        name().prop_map(Ending::Unrecognized),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role =
        prop_oneof![1 => Just(Role::System), 1 => Just(Role::User), 3 => Just(Role::Assistant), 1 => Just(Role::Tool)];
    let count = || option::of(any::<u64>());
    let usage = (count(), count(), count(), count(), count());
    let usage = usage.prop_map(|(input, output, reasoning, cached, cache_write)| {
        Usage::default()
            .with_input(input)
            .with_output(output)
            .with_thinking(reasoning)
            .with_cached(cached)
            .with_cache_write(cache_write)
    });
    let member = || option::of(name());
    let origin = (member(), member(), member(), member(), member());
    let origin = origin.prop_map(|(provider, dialect, model, endpoint, account)| {
        Origin::default()
            .with_provider(provider)
            .with_dialect(dialect)
            .with_model(model)
            .with_endpoint(endpoint)
            .with_account(account)
    });
    let extra = (prop::collection::vec(("x-[a-z]{1,4}", json()), 0..2), extra());
    let about = (option::of(origin), option::of(ending()), option::of(usage), member());
    let when = (any::<bool>(), option::of(0..9_000_000_000_000u64));
    let blocks = prop::collection::vec(block(), 0..5);
    (role, blocks, about, when, extra).prop_map(
        |(role, blocks, (origin, ending, usage, seen), (cut, at), (unknown_members, extra))| Message {
            origin,
            ending,
            usage,
            empty_thinking_field: seen,
            interrupted: cut,
            at: at.map(Time),
            extra,
            unknown_members,
            ..Message::new(role, blocks)
        },
    )
}

/// A history that forks, returns to its beginning and stops anywhere.
pub(super) fn conversation() -> impl Strategy<Value = Conversation> {
    let steps =
        prop::collection::vec((message(), option::weighted(0.3, any::<prop::sample::Index>()), any::<bool>()), 0..7);
    let tool = (name(), nasty_or_empty(), json());
    let tool = tool.prop_map(|(name, description, parameters)| ToolSpec::new(name, description, parameters));
    let header = (option::of(name()), option::of(nasty()), prop::collection::vec(tool, 0..2));
    let settings = prop::collection::btree_map("[a-z.]{1,6}", nasty_or_empty(), 0..3);
    let extra = prop::collection::vec(("x-[a-z]{1,4}", json()), 0..2);
    let head = option::weighted(0.3, any::<prop::sample::Index>());
    (steps, header, settings, extra, head).prop_map(|(steps, (model, title, tools), settings, extra, head)| {
        let mut history = History::new();
        for (message, parent, named) in steps {
            let so_far = history.entries().len();
            // One past the end means before the beginning.
            let parent = parent.map(|index| index.index(so_far + 1)).map(|at| (at < so_far).then_some(EntryId(at)));
            let parent = parent.unwrap_or(history.head());
            let name = named.then(|| format!("name {so_far}"));
            history.append_named(name, parent, message).unwrap();
        }
        if let Some(head) = head {
            let at = head.index(history.entries().len() + 1);
            history.fork((at < history.entries().len()).then_some(EntryId(at))).unwrap();
        }
        Conversation { model, title, tools, settings, history, extra }
    })
}
