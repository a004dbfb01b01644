//! Whatever of a request is not in its body is reported, with the reason.

use aside_core::block::{
    Arguments, Block, CallId, Media, MediaKind, MediaSource, Native, Origin, Text, ToolCall, ToolResult, Unmodelled,
};
use aside_core::dialect::{Dialect, DialectSource, Dialects};
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::rules::LeftOut;
use aside_core::settings::Settings;
use aside_core::wire::{Encoded, Request, encode, read_request};

/// A text that the encoders do not write by themselves.
const MARK: &str = "Zm91ciBtZXRyZXM";

fn test_dialects() -> Dialects {
    let texts: Vec<String> =
        Protocol::ALL.iter().map(|protocol| format!("id=\"acme-{protocol}\"\nprotocol=\"{protocol}\"\n")).collect();
    let sources: Vec<DialectSource<'_>> = texts.iter().map(|text| DialectSource { path: "acme.toml", text }).collect();
    Dialects::with_user_files(&sources).unwrap()
}

fn send(dialects: &Dialects, dialect: &Dialect, messages: &[Message]) -> Encoded {
    let messages: Vec<&Message> = messages.iter().collect();
    encode(&Request::new(dialects, dialect, "m", &Origin::default(), &Settings::new()).with_messages(&messages))
}

fn call(id: &str, arguments: Arguments) -> Block {
    Block::ToolCall(ToolCall::new(CallId::Given(id.to_owned()), "f", arguments))
}

fn result(id: &str, content: &str, is_error: bool) -> Block {
    Block::ToolResult(ToolResult {
        id: id.to_owned(),
        name: "f".to_owned(),
        content: content.to_owned(),
        is_error,
        media: Vec::new(),
    })
}

fn text(text: &str) -> Block {
    Block::Text(Text { text: text.to_owned(), ..Text::default() })
}

/// Images and documents of every source; each contains the mark.
fn media() -> Vec<(&'static str, Media)> {
    let url = |start: &str| MediaSource::Url(format!("{start}://host/{MARK}"));
    let id = || MediaSource::FileId(MARK.to_owned());
    let of = |kind, media_type: &str, source, name: Option<&str>| Media {
        kind,
        media_type: media_type.to_owned(),
        source,
        name: name.map(str::to_owned),
    };
    // A mark at the start of the data stays readable in Base64.
    let data = || MediaSource::Data(format!("{MARK}="));
    vec![
        ("image", of(MediaKind::Image, "image/png", data(), None)),
        ("image by URL", of(MediaKind::Image, "image/png", url("https"), None)),
        ("image in S3", of(MediaKind::Image, "image/png", url("s3"), None)),
        ("image by id", of(MediaKind::Image, "", id(), None)),
        ("document", of(MediaKind::Document, "application/pdf", data(), Some("chart 4"))),
        ("document by URL", of(MediaKind::Document, "application/pdf", url("https"), None)),
        ("document by id", of(MediaKind::Document, "", id(), None)),
    ]
}

/// One block of each kind that is not thinking; each contains the mark.
fn blocks() -> Vec<(&'static str, Block)> {
    let native = |json: String| Block::Unmodelled(Unmodelled { native: Native { json, text_member: None } });
    let mut blocks: Vec<_> = media().into_iter().map(|(name, media)| (name, Block::Media(media))).collect();
    blocks.extend([
        ("text", text(MARK)),
        ("call", call("c1", Arguments::Json(format!("{{\"a\":\"{MARK}\"}}")))),
        ("result", result("c0", MARK, false)),
        ("unmodelled", native(format!("{{\"type\":\"odd\",\"odd\":\"{MARK}\"}}"))),
        ("plan", native(format!("{{\"tool_plan\":\"{MARK}\"}}"))),
    ]);
    blocks
}

/// Nothing but the name may be missing, and only if that is reported. Several
/// protocols do not name the type of media that they refer to by URL or id.
fn assert_same_media(found: Media, mut sent: Media, left_out: &[LeftOut], case: &str) {
    if sent.data().is_none() {
        sent.media_type.clone_from(&found.media_type);
    }
    let name_is_lost = found.name != sent.name;
    sent.name.clone_from(&found.name);
    assert_eq!(found, sent, "{case}");
    let paths: Vec<bool> = left_out.iter().map(|loss| loss.path.ends_with(".name")).collect();
    assert_eq!(paths, vec![true; usize::from(name_is_lost)], "{case}");
}

#[test]
fn e17_media_of_a_message_is_read_back_or_left_out() {
    let dialects = test_dialects();
    for protocol in Protocol::ALL {
        let dialect = dialects.get(&format!("acme-{protocol}")).unwrap();
        for (name, media) in media() {
            let messages = [Message::new(Role::User, vec![text("go"), Block::Media(media.clone())])];
            let encoded = send(&dialects, dialect, &messages);
            let read = read_request(protocol, dialect.rules(None), &encoded.body).unwrap();
            let found = read.messages.iter().flat_map(|message| &message.blocks).find_map(|block| match block {
                Block::Media(media) => Some(media.clone()),
                _ => None,
            });
            let case = format!("{protocol} {name}: {:?}\n{}", encoded.left_out, encoded.body);
            match found {
                Some(mut found) => {
                    // One protocol has no media types.
                    if protocol == Protocol::Ollama {
                        found.media_type.clone_from(&media.media_type);
                    }
                    assert_same_media(found, media, &encoded.left_out, &case);
                }
                None => assert_eq!(encoded.left_out.len(), 1, "{case}"),
            }
        }
    }
}

#[test]
fn e17_media_of_a_tool_result_is_read_back_or_left_out() {
    let dialects = test_dialects();
    for protocol in Protocol::ALL {
        let dialect = dialects.get(&format!("acme-{protocol}")).unwrap();
        for (name, media) in media() {
            for words in ["done", ""] {
                let Block::ToolResult(plain) = result("c0", words, false) else { panic!("a result") };
                let with_media = Block::ToolResult(ToolResult { media: vec![media.clone()], ..plain });
                let messages = [
                    Message::new(Role::User, vec![text("go")]),
                    Message::new(Role::Assistant, vec![call("c0", Arguments::Json("{}".to_owned()))]),
                    Message::new(Role::Tool, vec![with_media]),
                ];
                let encoded = send(&dialects, dialect, &messages);
                let read = read_request(protocol, dialect.rules(None), &encoded.body).unwrap();
                let found = read.messages.iter().flat_map(|message| &message.blocks).find_map(|block| match block {
                    Block::ToolResult(result) => Some(result.clone()),
                    _ => None,
                });
                let case = format!("{protocol} {name}: {:?}\n{}", encoded.left_out, encoded.body);
                let found = found.unwrap_or_else(|| panic!("no result: {case}"));
                match found.media.as_slice() {
                    [] => {
                        // The model is told of it.
                        let described = [words, &media.describe()].join(if words.is_empty() { "" } else { "\n" });
                        assert_eq!(found.content, described, "{case}");
                        let [loss] = encoded.left_out.as_slice() else { panic!("{case}") };
                        assert_eq!(loss.path, "messages[2].blocks[0].media[0]", "{case}");
                    }
                    [read] => {
                        assert_eq!(found.content, words, "{case}");
                        assert_same_media(read.clone(), media.clone(), &encoded.left_out, &case);
                    }
                    _ => panic!("{case}"),
                }
            }
        }
    }
}

#[test]
fn e17_every_block_is_in_the_body_or_left_out_with_a_reason() {
    let dialects = test_dialects();
    for protocol in Protocol::ALL {
        let dialect = dialects.get(&format!("acme-{protocol}")).unwrap();
        for role in [Role::System, Role::User, Role::Assistant, Role::Tool] {
            for (name, block) in blocks() {
                for own in [true, false] {
                    let mut message = Message::new(role, vec![text("besides"), block.clone()]);
                    let origin = Origin::default().with_dialect(dialect.id.clone());
                    message.origin = own.then_some(origin);
                    // A call before it and a result after it, so that both are paired.
                    let messages = [
                        Message::new(Role::User, vec![text("go")]),
                        Message::new(Role::Assistant, vec![call("c0", Arguments::Json("{}".to_owned()))]),
                        message,
                        Message::new(Role::Tool, vec![result("c1", "1", false), result("c0", "1", false)]),
                    ];
                    let encoded = send(&dialects, dialect, &messages);
                    let is_sent = encoded.body.contains(MARK);
                    let losses = encoded.left_out.iter().filter(|loss| loss.path == "messages[2].blocks[1]").count();
                    let case =
                        format!("{protocol} {role:?} {name} own {own}: {:?}\n{}", encoded.left_out, encoded.body);
                    assert_eq!(losses, usize::from(!is_sent), "{case}");
                }
            }
        }
    }
}

#[test]
fn e17_what_a_sent_block_loses_is_left_out_too() {
    let dialects = test_dialects();
    for protocol in Protocol::ALL {
        let dialect = dialects.get(&format!("acme-{protocol}")).unwrap();
        let messages = [
            Message::new(Role::User, vec![text("go")]),
            Message::new(Role::Assistant, vec![call("c0", Arguments::Broken("{\"a\":".to_owned()))]),
            Message::new(Role::Tool, vec![result("c0", "no", true)]),
        ];
        let encoded = send(&dialects, dialect, &messages);
        let losses: Vec<&str> = encoded.left_out.iter().map(|loss| loss.path.as_str()).collect();
        let mut expected = Vec::new();
        if !encoded.body.contains("{\\\"a\\\":") {
            expected.push("messages[1].blocks[0].arguments");
        }
        if !encoded.body.contains("error") {
            expected.push("messages[2].blocks[0].isError");
        }
        assert_eq!(losses, expected, "{protocol}: {}", encoded.body);
    }
}

#[test]
fn e17_the_reason_is_a_sentence_and_the_same_kind_is_reported_once() {
    let dialects = test_dialects();
    let image = || Block::Media(Media::image("image/png".to_owned(), MARK.to_owned()));
    let messages =
        [Message::new(Role::User, vec![text("go"), image(), image()]), Message::new(Role::System, vec![image()])];
    let encoded = send(&dialects, dialects.get("acme-cohere").unwrap(), &messages);
    let [first, second, third] = encoded.left_out.as_slice() else { panic!("{:?}", encoded.left_out) };
    let sentence = "messages[0].blocks[1] is not sent: the cohere protocol has no images in user messages";
    assert_eq!(first.to_string(), sentence);
    assert!(first.is_same_kind(second) && !first.is_same_kind(third));
}

/// Some clients write results twice when they resume a session; providers accept one for each call.
#[test]
fn e17_a_result_that_comes_twice_is_sent_once() {
    let dialects = test_dialects();
    for protocol in Protocol::ALL {
        let dialect = dialects.get(&format!("acme-{protocol}")).unwrap();
        let messages = [
            Message::new(Role::User, vec![text("Look.")]),
            Message::new(Role::Assistant, vec![call("a", Arguments::Json("{}".to_owned()))]),
            Message::new(Role::Tool, vec![result("a", MARK, false), result("a", MARK, false)]),
        ];
        let sent = send(&dialects, dialect, &messages);
        assert_eq!(sent.body.matches(MARK).count(), 1, "{protocol}: {}", sent.body);
        let losses: Vec<String> = sent.left_out.iter().map(|loss| format!("{}: {}", loss.path, loss.reason)).collect();
        assert_eq!(losses, ["messages[2].blocks[1]: the same result of the same call is already there"], "{protocol}");
        let different = [
            messages[0].clone(),
            messages[1].clone(),
            Message::new(Role::Tool, vec![result("a", MARK, false), result("a", "other", false)]),
        ];
        assert_eq!(
            send(&dialects, dialect, &different).left_out,
            [],
            "{protocol}: nothing is known to be the right one"
        );
    }
}
