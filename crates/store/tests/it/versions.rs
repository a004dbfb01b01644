//! Files of every format version stay readable.
//!
//! `tests/versions` holds a compressed file of each version. To add one, before
//! the next migration: `WRITE_VERSION=5 cargo test -p aside-store versions`, with
//! the number of the newest version. Versions 3 and 4 were made later, with the
//! statements of their migrations: 3 from the file of 2, and 4 from the file of 5,
//! which only added a table.

use std::path::PathBuf;
use std::sync::Arc;

use aside_core::block::{
    Arguments, Block, CallId, Media, Native, Origin, Seal, SealKind, Seals, Text, Thinking, ThinkingContent,
    ThinkingSpan, Time, ToolCall, ToolResult, Unmodelled,
};
use aside_core::event::{BlockId, BlockOpening, Ending, Event, Sink, Usage};
use aside_core::message::{Message, Role};
use aside_store::search::SearchQuery;
use aside_store::session::{NewReply, NewSession, Parent};
use aside_store::{FILE_NAME, ReplyRecorder, SqliteStore, Store};

use crate::support::{Folder, at, text, user};

fn compressed_file(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/versions/{version}.db.lz4"))
}

/// The versions in `tests/versions`.
const VERSIONS: [u32; 5] = [1, 2, 3, 4, 5];

/// One block of each kind that versions 1 and 2 had.
fn first_messages() -> Vec<Message> {
    let seal = |kind, payload: &str| Seal { kind, payload: payload.to_owned() };
    let native = |json: &str| Some(Native { json: json.to_owned(), text_member: Some("text".to_owned()) });
    let long = "a thought that is long enough to be packed ".repeat(40);
    let repeated = format!(r#"{{"type":"item","text":"{long}","enc":"{}"}}"#, "E".repeat(60));
    let thinking = |content, native| {
        Block::Thinking(Thinking {
            content,
            source: "summary".to_owned(),
            id: Some("rs_1".to_owned()),
            items: vec![0..3, 5..9],
            span: Some(ThinkingSpan { started: Time(10), ended: Time(20) }),
            native,
            extra: Default::default(),
        })
    };
    let seals = |signature: Option<&str>, encrypted: Option<String>| Seals {
        signature: signature.map(|payload| seal(SealKind::Signature, payload)),
        encrypted: encrypted.map(|payload| seal(SealKind::Encrypted, &payload)),
    };
    let call = |id, arguments| {
        let seal = Some(seal(SealKind::Signature, "sig"));
        Block::ToolCall(ToolCall { seal, ..ToolCall::new(id, "read", arguments) })
    };
    let image = Media::image("image/png".to_owned(), "iVBORw0KGgo=".to_owned());
    let origin = Origin::default()
        .with_provider("p".to_owned())
        .with_dialect("d".to_owned())
        .with_model("m".to_owned())
        .with_endpoint("e".to_owned())
        .with_account("a".to_owned());
    let blocks = vec![
        thinking(ThinkingContent::Open { text: "open thinking".to_owned() }, None),
        thinking(
            ThinkingContent::Sealed { text: long, seals: seals(None, Some("E".repeat(60))) },
            Some(Native { json: repeated, text_member: None }),
        ),
        thinking(ThinkingContent::Hidden { seals: seals(Some("sig"), None) }, native(r#"{"type":"hidden"}"#)),
        Block::Text(Text {
            text: "the answer".to_owned(),
            seal: Some(seal(SealKind::Encrypted, "x")),
            native: native("{}"),
            extra: Default::default(),
        }),
        call(CallId::Given("call_1".to_owned()), Arguments::Json(r#"{"path":"src/main.rs"}"#.to_owned())),
        call(CallId::Invented("aside_call_1".to_owned()), Arguments::Broken(r#"{"path""#.to_owned())),
        Block::Unmodelled(Unmodelled { native: Native { json: r#"{"odd":1}"#.to_owned(), text_member: None } }),
    ];
    let reply = Message {
        role: Role::Assistant,
        blocks,
        origin: Some(origin),
        ending: Some(Ending::Unrecognized("odd".to_owned())),
        usage: Some(Usage::default().with_input(1).with_thinking(3).with_cached(4)),
        empty_thinking_field: Some("field".to_owned()),
        interrupted: false,
        at: Some(Time(1_700_000_000_000)),
        unknown_members: vec![("key".to_owned(), r#"{"a":1}"#.to_owned())],
        extra: Default::default(),
    };
    let result = ToolResult {
        id: "call_1".to_owned(),
        name: "read".to_owned(),
        content: "the result".to_owned(),
        is_error: true,
        media: Vec::new(),
    };
    let mut prompt = user("the prompt");
    prompt.blocks.push(Block::Media(image));
    vec![
        Message::new(Role::System, vec![text("the system")]),
        at(prompt, 5),
        reply,
        Message::new(Role::Tool, vec![Block::ToolResult(result)]),
    ]
}

/// What later versions added: the members of a reply without a neutral form, tokens written to the cache,
/// documents, and media in tool results.
fn later_messages(version: u32) -> Vec<Message> {
    if version < 4 {
        return Vec::new();
    }
    let mut reply = Message::new(Role::Assistant, vec![text("later")]);
    reply.usage = Some(Usage::default().with_output(1).with_cache_write(2));
    reply.extra.set("citations", "[1]");
    let document = Media::document("application/pdf".to_owned(), "JVBERi0=".to_owned(), Some("a.pdf".to_owned()));
    let result = ToolResult {
        id: "call_2".to_owned(),
        name: "read".to_owned(),
        content: String::new(),
        is_error: false,
        media: vec![document.clone()],
    };
    let tool = Message::new(Role::Tool, vec![Block::ToolResult(result)]);
    vec![reply, tool, Message::new(Role::User, vec![Block::Media(document)])]
}

/// A reply that is never finished.
fn record_half(recorder: &mut ReplyRecorder) {
    let block = BlockId(0);
    recorder.take(Event::Started { model: "m" });
    recorder.take(Event::Opened { block, opening: BlockOpening::Thinking { source: "s", id: None } });
    recorder.take(Event::Grew { block, text: "half a thou" });
    recorder.flush().unwrap();
}

/// Unknown members of the header, which version 2 added.
fn header_members(version: u32) -> Vec<(String, String)> {
    if version < 2 { Vec::new() } else { vec![("note".to_owned(), "[1]".to_owned())] }
}

fn write_version(version: u32) {
    let folder = Folder::new();
    let store = Arc::new(folder.store());
    let (title, extra) = (Some("version".to_owned()), header_members(version));
    let new = NewSession { title, extra, at: Some(Time(1)), ..NewSession::default() };
    let id = store.create(&new).unwrap();
    let lock = store.lock_session(&id).unwrap();
    for message in first_messages().into_iter().chain(later_messages(version)) {
        store.append(&lock, Parent::Head, &message).unwrap();
    }
    let shared: Arc<dyn Store> = store.clone();
    let reply = NewReply { parent: Parent::Head, origin: None, at: Some(Time(9)) };
    let mut recorder = ReplyRecorder::begin(shared, &lock, &reply).unwrap();
    record_half(&mut recorder);
    drop((recorder, lock, store));
    let file = std::fs::read(folder.path().join(FILE_NAME)).unwrap();
    std::fs::write(compressed_file(version), lz4_flex::compress_prepend_size(&file)).unwrap();
}

#[test]
fn a_file_of_an_old_version_is_read_as_it_was_written() {
    for version in VERSIONS {
        if std::env::var("WRITE_VERSION").is_ok_and(|named| named == version.to_string()) {
            write_version(version);
        }
        check_version(version);
    }
}

fn check_version(version: u32) {
    let file = lz4_flex::decompress_size_prepended(&std::fs::read(compressed_file(version)).unwrap()).unwrap();
    let folder = Folder::new();
    std::fs::write(folder.path().join(FILE_NAME), file).unwrap();
    let store = SqliteStore::open(folder.path()).unwrap();
    let loaded = store.load(&store.find("version").unwrap()).unwrap().conversation;
    assert_eq!(loaded.extra, header_members(version), "version {version}");
    let mut messages: Vec<Message> = loaded.history.branch().into_iter().map(|(_, message)| message.clone()).collect();
    let half = messages.pop().unwrap();
    let written: Vec<Message> = first_messages().into_iter().chain(later_messages(version)).collect();
    assert_eq!(messages, written, "version {version}");
    assert!(half.interrupted);
    assert_eq!(half.thinking_text().as_deref(), Some("half a thou"));
    for (word, n_hits) in [("prompt", 1), ("thinking", 1), ("main", 1), ("result", 1), ("half", 1), ("packed", 1)] {
        assert_eq!(store.search(&SearchQuery::new(word)).unwrap().hits.len(), n_hits, "{word}");
    }
    assert_eq!(store.integrity_errors().unwrap(), Vec::<String>::new());
}
