//! Every client protocol with every provider protocol.

use aside_core::block::{
    Arguments, Block, Media, MediaKind, MediaSource, Reply, Text, Thinking, ThinkingContent, ToolCall,
};
use aside_core::dialect::{Dialect, Dialects};
use aside_core::event::{Ending, ReplyEnd, Usage};
use aside_core::fold::Fold;
use aside_core::protocol::Protocol;
use aside_core::wire::{Decoder, ReplyHead, StreamWriter, emit_reply, read_request, whole_reply, with_model};
use aside_core::{CallId, Message, Origin, Request, Role, Settings, ToolSpec, encode};

use super::support::{Provider, Received, Running, Scripted, Setup, client_path};

const CLIENTS: [Protocol; 5] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini, Protocol::Ollama];

/// The provider protocol whose messages have no images.
const NO_IMAGES: Protocol = Protocol::Cohere;

const THOUGHT: &str = "The depth comes first.\nThen the \"width\".";
const ANSWER: &str = "I look at both, één moment.";
const QUESTION: &str = "How big?";
/// A picture of one pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn reply() -> Reply {
    let call = |id: &str, name: &str, arguments: &str| {
        Block::ToolCall(ToolCall {
            id: CallId::Given(id.to_owned()),
            name: name.to_owned(),
            arguments: Arguments::Json(arguments.to_owned()),
            seal: None,
            native: None,
            extra: Default::default(),
        })
    };
    let thinking = Thinking {
        content: ThinkingContent::Open { text: THOUGHT.to_owned() },
        source: "thinking".to_owned(),
        id: None,
        items: Vec::new(),
        span: None,
        native: None,
        extra: Default::default(),
    };
    Reply {
        blocks: vec![
            Block::Thinking(thinking),
            Block::Text(Text { text: ANSWER.to_owned(), ..Text::default() }),
            call("call_a", "depth", r#"{"berth":4}"#),
            call("call_b", "width", r#"{"berth":5,"unit":"m"}"#),
        ],
        usage: Usage::default().with_input(11).with_output(22),
        end: ReplyEnd { ending: Ending::ToolCalls, error: None },
        ..Reply::default()
    }
}

/// The protocol of a provider's path.
fn provider_protocol(path: &str) -> Protocol {
    match path.split('?').next().unwrap_or_default() {
        path if path.ends_with("/chat/completions") => Protocol::OpenaiChat,
        path if path.ends_with("/responses") => Protocol::OpenaiResponses,
        path if path.ends_with("/v1/messages") => Protocol::Anthropic,
        path if path.contains(":streamGenerateContent") || path.contains(":generateContent") => Protocol::Gemini,
        path if path.ends_with("/api/chat") => Protocol::Ollama,
        path if path.ends_with("/converse-stream") => Protocol::Bedrock,
        path if path.ends_with("/v2/chat") => Protocol::Cohere,
        path => panic!("nobody asks for {path}"),
    }
}

/// A provider's reply in its protocol, as a stream or as one body.
fn scripted(dialects: &Dialects, received: &Received) -> Scripted {
    let protocol = provider_protocol(&received.path);
    let rules = generic(dialects, protocol).rules(None);
    let head = ReplyHead::new("r1", "m", 0);
    let by_path = received.path.contains(":streamGenerateContent") || received.path.ends_with("/converse-stream");
    if !by_path && !received.body.contains("\"stream\":true") {
        let whole = whole_reply(protocol, rules, &head, &reply());
        return Scripted { content_type: "application/json", pieces: vec![whole.into_bytes()], ..Scripted::stream("") };
    }
    let mut writer = StreamWriter::new(protocol, rules, &head);
    emit_reply(&reply(), &mut writer);
    let content_type = writer.content_type();
    let bytes = writer.drain();
    let pieces = bytes.chunks(97).map(<[u8]>::to_vec).collect();
    Scripted { content_type, pieces, ..Scripted::stream("") }
}

fn generic(dialects: &Dialects, protocol: Protocol) -> &Dialect {
    dialects.generic(protocol).expect("every protocol has a generic dialect")
}

/// A request with an image and tools, as a client of this protocol writes it.
fn client_body(dialects: &Dialects, protocol: Protocol, model: &str) -> String {
    let dialect = generic(dialects, protocol);
    let schema = r#"{"type":"object","properties":{"berth":{"type":"integer"},"unit":{"type":"string"}}}"#;
    let tools = [ToolSpec::new("depth", "the depth", schema), ToolSpec::new("width", "the width", schema)];
    let image = Media {
        kind: MediaKind::Image,
        media_type: "image/png".to_owned(),
        source: MediaSource::Data(IMAGE.to_owned()),
        name: None,
    };
    let question = Text { text: QUESTION.to_owned(), ..Text::default() };
    let user = Message::new(Role::User, vec![Block::Text(question), Block::Media(image)]);
    let (settings, origin) = (Settings::new(), Origin::default());
    let messages = [&user];
    let request =
        Request::new(dialects, dialect, model, &origin, &settings).with_messages(&messages).with_tools(&tools);
    let body = encode(&request).body;
    with_model(&body, model).expect("JSON").into_owned()
}

fn config(provider: &Provider) -> String {
    let mut config = String::new();
    for protocol in Protocol::ALL {
        let base = match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => format!("http://{}/v1", provider.address),
            _ => format!("http://{}", provider.address),
        };
        config.push_str(&format!("[providers.to-{protocol}]\nprotocol = \"{protocol}\"\nbase_url = \"{base}\"\n"));
    }
    config
}

/// What a user sees of a reply: texts in order, and calls without their ids.
fn visible(blocks: &[Block]) -> Vec<String> {
    let mut out = Vec::new();
    for block in blocks {
        match block {
            Block::Thinking(thinking) => out.push(format!("thinking {}", thinking.text())),
            Block::Text(text) => out.push(format!("text {}", text.text)),
            Block::ToolCall(call) => {
                assert!(!call.id.as_str().is_empty(), "a call has an id");
                let arguments = match &call.arguments {
                    Arguments::Json(text) | Arguments::Broken(text) => text,
                };
                let value: serde_json::Value = serde_json::from_str(arguments).expect("arguments");
                out.push(format!("call {} {value}", call.name));
            }
            other => out.push(format!("{other:?}")),
        }
    }
    out
}

fn decode(dialects: &Dialects, protocol: Protocol, bytes: &[u8]) -> Reply {
    let (mut decoder, mut fold) = (Decoder::new(protocol, generic(dialects, protocol).rules(None)), Fold::new());
    decoder.push(bytes, &mut fold);
    let read = decoder.finish(&mut fold);
    assert!(read.is_ok(), "{protocol}: {read:?}: {}", String::from_utf8_lossy(bytes));
    fold.finish()
}

/// The question, the image and the tools that reached the provider, read as the provider would read them.
fn assert_received(dialects: &Dialects, received: &Received, protocol: Protocol, name: &str) {
    assert_eq!(provider_protocol(&received.path), protocol, "{name}");
    let rules = generic(dialects, protocol).rules(None);
    let request = read_request(protocol, rules, &received.body)
        .unwrap_or_else(|error| panic!("{name}: {error}: {}", received.body));
    let blocks: Vec<&Block> = request.messages.iter().flat_map(|message| &message.blocks).collect();
    let (question, image) = match blocks.as_slice() {
        [Block::Text(question), Block::Media(image)] => (question, Some(image)),
        [Block::Text(question)] => (question, None),
        _ => panic!("{name}: {blocks:?}: {}", received.body),
    };
    assert_eq!(question.text, QUESTION, "{name}: {}", received.body);
    let image = image.map(|image| (image.kind, &image.source));
    let (kind, source) = (MediaKind::Image, MediaSource::Data(IMAGE.to_owned()));
    let expected = (protocol != NO_IMAGES).then_some((kind, &source));
    assert_eq!(image, expected, "{name}: {}", received.body);
    let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["depth", "width"], "{name}: {}", received.body);
}

async fn check(dialects: &Dialects, running: &Running, scripted: &Provider, client: Protocol, provider: Protocol) {
    let model = format!("to-{provider}/m1");
    let body = client_body(dialects, client, &model);
    let expected = [
        format!("thinking {THOUGHT}"),
        format!("text {ANSWER}"),
        r#"call depth {"berth":4}"#.to_owned(),
        r#"call width {"berth":5,"unit":"m"}"#.to_owned(),
    ];
    let name = format!("{client} to {provider}");
    let streamed = running.post(&client_path(client, &model), &[], body.clone()).await;
    assert_eq!(streamed.status, 200, "{name}: {}", streamed.text());
    let reply = decode(dialects, client, &streamed.bytes);
    assert_eq!(visible(&reply.blocks), expected, "{name}, streamed: {}", streamed.text());
    assert_eq!(reply.end.ending, Ending::ToolCalls, "{name}, streamed: {}", streamed.text());
    assert_eq!(streamed.header("aside-repaired"), Some("0 restored, 0 filler, 0 ambiguous"), "{name}");
    let receipt = running.receipt(&streamed).await;
    assert_eq!(receipt["status"], 200, "{name}: {receipt}");
    assert_eq!(receipt["model"]["provider"], format!("to-{provider}"), "{name}: {receipt}");
    assert_eq!(receipt["usage"]["output"], 22, "{name}: {receipt}");
    // A switch of Chat's streams has no counterpart elsewhere; an image that cannot be sent is reported.
    let left_out: Vec<&str> =
        receipt["leftOut"].as_array().expect("a list").iter().filter_map(|left| left["path"].as_str()).collect();
    let unsent: Vec<&str> = left_out.into_iter().filter(|path| *path != "stream_options.include_usage").collect();
    let image: &[&str] = if provider == NO_IMAGES { &["messages[0].blocks[1]"] } else { &[] };
    assert_eq!(unsent, image, "{name}: {receipt}");
    assert_received(dialects, &scripted.received().pop().expect("a request"), provider, &name);
    let (path, body) = match client {
        Protocol::Gemini => (format!("/v1beta/models/{model}:generateContent"), body),
        _ => (client_path(client, &model), body.replace("\"stream\":true", "\"stream\":false")),
    };
    let whole = running.post(&path, &[], body).await;
    assert_eq!(whole.status, 200, "{name}: {}", whole.text());
    assert_eq!(whole.header("content-type"), Some("application/json"), "{name}");
    let reply = decode(dialects, client, &whole.bytes);
    assert_eq!(visible(&reply.blocks), expected, "{name}, whole: {}", whole.text());
    assert_received(dialects, &scripted.received().pop().expect("a request"), provider, &name);
}

#[tokio::test]
async fn g1_any_client_protocol_reaches_any_provider_protocol() {
    let dialects = Dialects::builtin().expect("dialects");
    let scripts = dialects.clone();
    let provider = Provider::start(move |received| scripted(&scripts, received)).await;
    let running = Setup::new(config(&provider)).start().await;
    for client in CLIENTS {
        for upstream in Protocol::ALL {
            check(&dialects, &running, &provider, client, upstream).await;
        }
    }
}

#[tokio::test]
async fn g5_thinking_comes_in_the_shape_that_is_asked_for() {
    let dialects = Dialects::builtin().expect("dialects");
    let scripts = dialects.clone();
    let provider = Provider::start(move |received| scripted(&scripts, received)).await;
    let quoted = serde_json::to_string(THOUGHT).expect("JSON");
    let inside = quoted.trim_matches('"');
    #[rustfmt::skip]
    let cases = [
        ("auto",              format!("\"reasoning_content\":{quoted}")),
        ("reasoning",         format!("\"reasoning\":{quoted}")),
        ("reasoning_details", "\"reasoning_details\":[{".to_owned()),
        ("tags",              "<think>".to_owned()),
        ("details",           "<details>".to_owned()),
    ];
    for (shape, expected) in cases {
        let running = Setup::new(format!("{}[serve]\nthinking = \"{shape}\"\n", config(&provider))).start().await;
        let body = client_body(&dialects, Protocol::OpenaiChat, "to-anthropic/m1")
            .replace("\"stream\":true", "\"stream\":false");
        let answer = running.post("/v1/chat/completions", &[], body).await;
        assert!(answer.text().contains(&expected), "{shape}: {}", answer.text());
        assert!(answer.text().contains(inside), "{shape}: {}", answer.text());
    }
    let running = Setup::new(format!("{}[serve]\nthinking = \"none\"\n", config(&provider))).start().await;
    for client in CLIENTS {
        let upstream = if client == Protocol::Anthropic { Protocol::Gemini } else { Protocol::Anthropic };
        let model = format!("to-{upstream}/m1");
        let answer = running.post(&client_path(client, &model), &[], client_body(&dialects, client, &model)).await;
        let reply = decode(&dialects, client, &answer.bytes);
        assert_eq!(visible(&reply.blocks).len(), 3, "{client}: {}", answer.text());
        assert!(!answer.text().contains("depth comes first"), "{client}: {}", answer.text());
    }
}

#[tokio::test]
async fn g5_thinking_that_a_client_keeps_in_front_of_an_answer_is_not_sent_as_part_of_it() {
    let dialects = Dialects::builtin().expect("dialects");
    let provider = Provider::start(move |received| scripted(&dialects, received)).await;
    let running = Setup::new(config(&provider)).start().await;
    let tag = "thinking-content-7bbeb8e1441453ad999a0bbba8a46d4b";
    #[rustfmt::skip]
    let cases = [
        ("our own details", "<details>\n<summary>Thinking</summary>\n\nhidden\n\n</details>\n\n4 m.".to_owned(),                "4 m."),
        ("a chat page's",   "<details type=\"reasoning\" done=\"true\">\n> hidden\n</details>\n4 m.".to_owned(),                 "4 m."),
        ("an agent's",      format!("\n<{tag}>\n\nhidden\n\n</{tag}>\n\n4 m."),                                                  "4 m."),
        ("twice",           format!("<{tag}>hidden</{tag}>\n<{tag}>hidden</{tag}>\n4 m."),                                       "4 m."),
        ("other details",   "<details>\n<summary>More</summary>\nseen</details>".to_owned(),                                     "<details>\n<summary>More</summary>\nseen</details>"),
        ("a model's tags",  "<thinking>seen</thinking> 4 m.".to_owned(),                                                         "<thinking>seen</thinking> 4 m."),
        ("in the middle",   "See <details type=\"reasoning\">seen</details>".to_owned(),                                         "See <details type=\"reasoning\">seen</details>"),
        ("never closed",    "<details type=\"reasoning\">seen".to_owned(),                                                       "<details type=\"reasoning\">seen"),
    ];
    for (name, kept, expected) in cases {
        let message = |role: &str, content: &str| serde_json::json!({ "role": role, "content": content });
        let messages = [message("user", QUESTION), message("assistant", &kept), message("user", "And now?")];
        let body = serde_json::json!({ "model": "to-anthropic/m1", "messages": messages });
        let answer = running.post("/v1/chat/completions", &[], body.to_string()).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        let sent = provider.received().pop().expect("a request").body;
        let sent: serde_json::Value = serde_json::from_str(&sent).expect("JSON");
        assert_eq!(sent["messages"][1]["content"][0]["text"], expected, "{name}: {sent}");
    }
}
