//! Between a client and a provider of one protocol, bytes pass unchanged both ways,
//! apart from the model's name: framing, unknown members, odd JSON, error bodies.

use std::io::Write;

use aside_core::protocol::Protocol;

use super::support::{Provider, Received, Running, Scripted, Setup, client_path};

const CLIENTS: [Protocol; 5] =
    [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini, Protocol::Ollama];

/// A request with spaces, escapes, exponents, unknown members, and a second member named `model`.
fn request(protocol: Protocol, model: &str, stream: bool) -> String {
    let odd = r#""x_new" : {"model":"other", "n": [1.0, 1e2, -0 ], "s":"\u00e9\/"} ,"#;
    match protocol {
        Protocol::OpenaiChat => format!(
            "{{ \"model\" : \"{model}\",\n\t{odd} \"stream\":{stream}, \"messages\" : [ {{\"content\":\"\\u0068i\", \"role\":\"user\", \"x\" : null}} ]  }}\n"
        ),
        Protocol::OpenaiResponses => format!(
            "{{ \"input\" : [ {{\"role\":\"user\",\"content\":\"\\u0068i\",\"x\":[ ]}} ], {odd} \"stream\" : {stream} , \"model\" :\"{model}\" }}"
        ),
        Protocol::Anthropic => format!(
            "{{\"max_tokens\": 1e2, {odd}\r\n \"system\":[{{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{{\"type\":\"ephemeral\"}}}}, {{\"text\":\"b\",\"type\":\"text\"}}], \"model\":\"{model}\", \"stream\":{stream},\"messages\":[ {{\"role\":\"user\",\"content\":\"h\\u0069\"}} ] }}"
        ),
        Protocol::Gemini => {
            format!("{{ {odd} \"contents\" : [ {{\"role\":\"user\",\"parts\":[ {{\"text\":\"h\\u0069\"}} ]}} ] }}")
        }
        Protocol::Ollama => format!(
            "{{ \"model\":\"{model}\", {odd} \"stream\" :{stream}, \"options\":{{\"seed\": 1}}, \"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}] }}"
        ),
        Protocol::Bedrock | Protocol::Cohere => panic!("clients do not speak {protocol}"),
    }
}

/// A stream with line ends, comments, spaces, events and members that no provider sends.
fn odd_stream(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenaiChat => {
            "data:{\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\"},\"x\":1e0}]}\r\n\r\n: a comment\n\nid: 7\nretry: 100\ndata: {\"choices\" : [ {\"index\":0,\ndata: \"delta\":{\"content\":\"\\u00e9\"}} ]}\n\n\n\nevent: strange\ndata: not JSON\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n: after the end\n\n"
        }
        Protocol::OpenaiResponses => {
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\nevent: response.new_thing\r\ndata: {\"type\":\"response.new_thing\" , \"x\":[1.50]}\r\n\r\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[]}}\n\n"
        }
        Protocol::Anthropic => {
            "\u{feff}event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3},\"x\":[1.0]}}\r\n\r\n: c\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\nevent: new\ndata: {\"type\":\"new\",\"a\" : 1e2}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
        }
        Protocol::Gemini => {
            "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"a\",\"thought\" : true}],\"role\":\"model\"},\"x\":1.0}]}\r\n\r\ndata: {\"candidates\": [{\"finishReason\": \"STOP\"}],\"usageMetadata\":{\"y\" : 1}}\r\n\r\n"
        }
        Protocol::Ollama => {
            "{\"message\":{\"role\":\"assistant\",\"thinking\":\"h\"},\"done\":false, \"x\":1.0}\r\n\n{ \"message\":{\"content\":\"\\u00e9\"},\"done\":false}\n{\"done\":true,\"done_reason\":\"stop\"}"
        }
        Protocol::Bedrock | Protocol::Cohere => panic!("clients do not speak {protocol}"),
    }
}

fn content_type(protocol: Protocol) -> &'static str {
    if protocol == Protocol::Ollama { "application/x-ndjson" } else { "text/event-stream" }
}

/// A gateway with one provider, which answers every request alike.
async fn gateway(protocol: Protocol, answer: Scripted) -> (Provider, Running) {
    let provider = Provider::start(move |_| answer.clone()).await;
    let base = match protocol {
        Protocol::OpenaiChat | Protocol::OpenaiResponses => format!("http://{}/v1", provider.address),
        _ => format!("http://{}", provider.address),
    };
    let config = format!("[providers.up]\nprotocol = \"{protocol}\"\nbase_url = \"{base}\"\n");
    let running = Setup::new(config).start().await;
    (provider, running)
}

fn last(provider: &Provider) -> Received {
    provider.received().pop().expect("a request")
}

#[tokio::test]
async fn g4_streams_pass_byte_for_byte_in_any_pieces() {
    for protocol in CLIENTS {
        let stream = odd_stream(protocol);
        for size in [1, 7, 64, 1 << 16] {
            let pieces = stream.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            let answer = Scripted { content_type: content_type(protocol), pieces, ..Scripted::stream("") };
            let (provider, running) = gateway(protocol, answer).await;
            let answer = running.post(&client_path(protocol, "up/m"), &[], request(protocol, "up/m", true)).await;
            assert_eq!(answer.text(), stream, "{protocol} in pieces of {size}");
            assert_eq!(answer.header("content-type"), Some(content_type(protocol)), "{protocol}");
            assert!(!answer.broke_off, "{protocol} in pieces of {size}");
            assert_eq!(last(&provider).body, request(protocol, "m", true), "{protocol}");
        }
    }
}

#[tokio::test]
async fn g4_whole_bodies_and_errors_pass_byte_for_byte() {
    let body = "{ \"error\" : {\"message\":\"n\\u00f6 \",  \"x\":1.0, \"code\" : null} }\r\n\n";
    for protocol in CLIENTS {
        for status in [200, 400, 401, 404, 413, 418, 429, 500, 529] {
            let answer = Scripted {
                status,
                content_type: "application/json; charset=utf-8",
                headers: vec![("x-request-id", "up-1".to_owned()), ("retry-after", "3".to_owned())],
                pieces: vec![body.as_bytes().to_vec()],
                ..Scripted::stream("")
            };
            let (provider, running) = gateway(protocol, answer).await;
            let path = client_path(protocol, "up/m").replace(":streamGenerateContent?alt=sse", ":generateContent");
            let answer = running.post(&path, &[], request(protocol, "up/m", false)).await;
            let name = format!("{protocol} {status}");
            assert_eq!((answer.status, answer.text().as_str()), (status, body), "{name}");
            assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"), "{name}");
            assert_eq!(answer.header("x-request-id"), Some("up-1"), "{name}");
            assert_eq!(answer.header("retry-after"), Some("3"), "{name}");
            assert_eq!(answer.header("aside-error"), None, "{name}: it is the provider's own answer");
            assert_eq!(provider.received().len(), 1, "{name}: sent once");
            assert_eq!(last(&provider).body, request(protocol, "m", false), "{name}");
        }
    }
}

#[tokio::test]
async fn g4_requests_in_every_compression_reach_the_provider_as_the_same_plain_bytes() {
    let plain = request(Protocol::Anthropic, "up/m", false);
    let bytes = plain.as_bytes();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).expect("memory");
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    zlib.write_all(bytes).expect("memory");
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    raw.write_all(bytes).expect("memory");
    let zstd = ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
    let cases = [
        ("gzip", gzip.finish().expect("memory")),
        ("x-gzip", {
            let mut again = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            again.write_all(bytes).expect("memory");
            again.finish().expect("memory")
        }),
        ("deflate", zlib.finish().expect("memory")),
        ("deflate", raw.finish().expect("memory")),
        ("br", brotli(bytes)),
        ("ZSTD", zstd),
        ("identity", bytes.to_vec()),
    ];
    let whole = Scripted { content_type: "application/json", pieces: vec![b"{}".to_vec()], ..Scripted::stream("") };
    let (provider, running) = gateway(Protocol::Anthropic, whole).await;
    for (encoding, body) in cases {
        let answer = running.post("/v1/messages", &[("content-encoding", encoding)], body).await;
        assert_eq!(answer.status, 200, "{encoding}: {}", answer.text());
        let received = last(&provider);
        assert_eq!(received.body, request(Protocol::Anthropic, "m", false), "{encoding}");
        assert_eq!(received.header("content-encoding"), None, "{encoding}");
        let length = received.header("content-length").map(str::to_owned);
        assert_eq!(length, Some(received.body.len().to_string()), "{encoding}");
    }
}

/// A brotli stream that stores its content uncompressed, which every decoder reads.
fn brotli(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len() - 1).expect("a short body");
    assert!(length < 1 << 16);
    // From the lowest bit: a window of 64 KiB, not the last block, a length of four nibbles, uncompressed.
    let head = (length << 4) | (1 << 20);
    let mut out = head.to_le_bytes()[..3].to_vec();
    out.extend_from_slice(bytes);
    out.push(3);
    out
}
