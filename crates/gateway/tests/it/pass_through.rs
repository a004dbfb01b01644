//! Requests to a provider of the same protocol: bytes in, bytes out.

use super::support::{Provider, Scripted, Setup};

const KEY: &str = "sk-upstream-0123456789abcdef";

fn config(provider: &Provider, protocol: &str) -> String {
    let command = format!("printf {KEY}");
    format!(
        "[providers.up]\nprotocol = \"{protocol}\"\nbase_url = \"http://{}/base\"\napi_key_cmd = \"{command}\"\n",
        provider.address
    )
}

#[tokio::test]
async fn g4_a_stream_passes_byte_for_byte_with_its_headers() {
    let stream = "event: message_start\r\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3},\"x-new\":[1.0]}}\r\n\r\n\
        : a comment\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n\
        event: unknown_event\ndata: {\"type\":\"unknown_event\",\"a\" : 1e2}\n\n\
        event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"h\\u00e9\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":5}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let provider = Provider::start(move |_| Scripted {
        headers: vec![("request-id", "req_up".to_owned()), ("set-cookie", "secret=1".to_owned())],
        pieces: stream.as_bytes().chunks(41).map(<[u8]>::to_vec).collect(),
        ..Scripted::stream("")
    })
    .await;
    let running = Setup::new(config(&provider, "anthropic")).start().await;
    let body = "{ \"model\" : \"up/claude-x\",\n  \"max_tokens\": 1e2, \"new_member\": {\"model\":\"y\"}, \"stream\":true,\
        \"system\":[{\"type\":\"text\",\"text\":\"a\",\"cache_control\":{\"type\":\"ephemeral\"}}], \"messages\" : [ {\"role\":\"user\",\"content\":\"\\u0068i\"} ] }";
    let headers = [
        ("anthropic-beta", "one-2026,two"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "whatever"),
        ("x-custom", "stays"),
        ("user-agent", "claude-cli/9.9 (external, cli)"),
    ];
    let answer = running.post("/v1/messages?beta=true", &headers, body).await;
    assert_eq!(answer.text(), stream);
    assert_eq!(answer.header("request-id"), Some("req_up"));
    assert_eq!(answer.header("set-cookie"), None);
    let id = answer.header("aside-request").expect("an id");
    assert!(id.starts_with("req_") && id.len() == 30, "{id}");
    let received = provider.received().pop().expect("a request");
    assert_eq!(received.body, body.replace("up/claude-x", "claude-x"));
    assert_eq!(received.path, "/base/v1/messages?beta=true");
    assert_eq!(received.header("x-api-key"), Some(KEY));
    assert_eq!(received.header("anthropic-beta"), Some("one-2026,two"));
    assert_eq!(received.header("x-custom"), Some("stays"));
    assert!(!received.head.contains("whatever"), "the client's key stays here: {}", received.head);
    let receipt = running.receipt(&answer).await;
    assert_eq!(receipt["client"]["name"], "claude-cli", "{receipt}");
    assert_eq!(receipt["usage"]["output"], 5, "{receipt}");
    assert_eq!(receipt["upstream"][0]["status"], 200, "{receipt}");
}

#[tokio::test]
async fn g4_error_bodies_pass_with_our_key_replaced() {
    let provider = Provider::start(|received| Scripted {
        status: if received.body.contains("overload") { 529 } else { 400 },
        content_type: "application/json",
        headers: vec![("retry-after", "7".to_owned())],
        pieces: vec![format!("{{\"error\" : {{\"message\":\"bad key {KEY}\",  \"x\":1}}}}").into_bytes()],
        breaks_off: false,
    })
    .await;
    let running = Setup::new(config(&provider, "openai-chat")).start().await;
    for (word, status) in [("plain", 400), ("overload", 529)] {
        let body = format!("{{\"model\":\"up/m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{word}\"}}]}}");
        let answer = running.post("/v1/chat/completions", &[], body).await;
        assert_eq!((answer.status, answer.header("retry-after")), (status, Some("7")));
        assert_eq!(answer.text(), "{\"error\" : {\"message\":\"bad key ***\",  \"x\":1}}");
        assert_eq!(answer.header("aside-error"), None, "it is the provider's error");
        assert!(!running.receipt(&answer).await.to_string().contains(KEY));
    }
    assert_eq!(provider.received().len(), 2, "nothing was sent twice");
}

#[tokio::test]
async fn g4_a_translated_error_has_the_code_that_clients_look_for() {
    let provider = Provider::start(|received| {
        let (status, message) = if received.body.contains("long") {
            (400, "prompt is too long: 210000 tokens > 200000 maximum")
        } else {
            (429, "Your credit balance is too low")
        };
        Scripted {
            status,
            content_type: "application/json",
            headers: vec![],
            pieces: vec![
                format!("{{\"type\":\"error\",\"error\":{{\"type\":\"x\",\"message\":\"{message}\"}}}}").into(),
            ],
            breaks_off: false,
        }
    })
    .await;
    let running = Setup::new(config(&provider, "anthropic")).start().await;
    for (word, status, code) in [("long", 400, "context_length_exceeded"), ("poor", 429, "insufficient_quota")] {
        let body = format!("{{\"model\":\"up/m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{word}\"}}]}}");
        let answer = running.post("/v1/chat/completions", &[], body).await;
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (status, Some(code)), "{answer:?}");
    }
    assert_eq!(provider.received().len(), 2, "nothing was sent twice");
}

#[tokio::test]
async fn g4_a_broken_stream_breaks_for_the_client_too() {
    let piece = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n".to_vec();
    let provider =
        Provider::start(move |_| Scripted { pieces: vec![piece.clone()], breaks_off: true, ..Scripted::stream("") })
            .await;
    let config = config(&provider, "openai-chat");
    let running = Setup::new(config.clone()).start().await;
    let body = r#"{"model":"up/m","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let same = running.post("/v1/chat/completions", &[], body).await;
    assert!(same.broke_off && same.text().contains("half"), "{same:?}");
    let encoded = running.post("/v1/chat/completions", &[("aside-set", "reasoning.effort=low")], body).await;
    assert!(encoded.broke_off && encoded.text().contains("half"), "with a request of ours: {encoded:?}");
    let body = r#"{"model":"up/m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    let translated = running.post("/v1/messages", &[], body).await;
    assert!(translated.text().contains("half"), "{translated:?}");
    assert!(translated.text().contains("event: error"), "the client is told: {}", translated.text());
    assert!(!translated.text().contains("message_stop"), "{}", translated.text());
}

#[tokio::test]
async fn g4_a_connection_that_breaks_after_the_end_of_a_stream_does_not_break_for_the_client() {
    let pieces = [
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ];
    let pieces = pieces.map(|piece| piece.as_bytes().to_vec()).to_vec();
    let provider =
        Provider::start(move |_| Scripted { pieces: pieces.clone(), breaks_off: true, ..Scripted::stream("") }).await;
    let running = Setup::new(config(&provider, "openai-chat")).start().await;
    let body = r#"{"model":"up/m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    for (path, headers, end) in [
        ("/v1/chat/completions", &[][..], "data: [DONE]"),
        ("/v1/chat/completions", &[("aside-set", "reasoning.effort=low")], "data: [DONE]"),
        ("/v1/messages", &[], "event: message_stop"),
    ] {
        let answer = running.post(path, headers, body).await;
        assert!(!answer.broke_off && answer.text().contains("whole"), "{path} {headers:?}: {answer:?}");
        assert!(
            answer.text().contains(end) && !answer.text().contains("error"),
            "{path} {headers:?}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn g6_a_silent_stream_gets_signs_of_life_between_its_frames() {
    // A provider that says nothing until its client has seen two of them.
    let (enough, seen) = tokio::sync::oneshot::channel();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let silent = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut socket, _) = listener.accept().await.expect("a client");
        let mut bytes = [0; 4096];
        let _n = socket.read(&mut bytes).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: {\"a\":1}\n\n";
        socket.write_all(head.as_bytes()).await.expect("a client");
        seen.await.expect("two signs of life");
        socket.write_all(b"data: [DONE]\n\n").await.expect("a client");
    });
    let config = format!(
        "[serve]\nkeep_alive = \"50ms\"\n[providers.quiet]\nprotocol = \"openai-chat\"\nbase_url = \"http://{address}\"\n"
    );
    let running = Setup::new(config).start().await;
    let body = r#"{"model":"quiet/m","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let mut enough = Some(enough);
    let watch = |bytes: &[u8]| {
        let signs = String::from_utf8_lossy(bytes).matches(": keep-alive\n\n").count();
        if let Some(enough) = enough.take_if(|_| signs >= 2) {
            enough.send(()).expect("the provider waits");
        }
    };
    let answer = running.send_watched("POST", "/v1/chat/completions", &[], body.into(), watch).await;
    assert_eq!(answer.text().replace(": keep-alive\n\n", ""), "data: {\"a\":1}\n\ndata: [DONE]\n\n");
    silent.await.expect("no panic");
}

#[tokio::test]
async fn g6_a_client_that_is_gone_cancels_the_request() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    // A provider that never ends, and says when its client has gone.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let endless = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let mut bytes = [0; 4096];
        let _n = socket.read(&mut bytes).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        socket.write_all(head.as_bytes()).await.expect("a client");
        while socket.write_all(b"data: {\"choices\":[]}\n\n").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    let config = format!("[providers.endless]\nprotocol = \"openai-chat\"\nbase_url = \"http://{address}\"\n");
    let running = Setup::new(config).start().await;
    let body = r#"{"model":"endless/m","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = tokio::net::TcpStream::connect(running.address).await.expect("the gateway");
    client.write_all(head.as_bytes()).await.expect("the gateway");
    let mut bytes = [0; 1024];
    assert!(client.read(&mut bytes).await.expect("bytes") > 0);
    drop(client);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), endless).await;
    assert!(ended.is_ok(), "the provider's connection is closed");
}

#[tokio::test]
async fn g11_targets_are_tried_in_order_until_one_answers() {
    let broken = Provider::start(|_| Scripted {
        status: 503,
        content_type: "application/json",
        pieces: vec![b"{\"error\":\"down\"}".to_vec()],
        ..Scripted::stream("")
    })
    .await;
    let good = Provider::start(|_| Scripted {
        content_type: "application/json",
        pieces: vec![
            br#"{"choices":[{"message":{"role":"assistant","content":"here"},"finish_reason":"stop"}]}"#.to_vec(),
        ],
        ..Scripted::stream("")
    })
    .await;
    let provider = |name: &str, address: std::net::SocketAddr| {
        format!("[providers.{name}]\nprotocol = \"openai-chat\"\nbase_url = \"http://{address}\"\n")
    };
    let config = format!(
        "{}{}[providers.nowhere]\nprotocol = \"openai-chat\"\nbase_url = \"http://127.0.0.1:1\"\n\
         [serve.models]\n\"best\" = [\"nowhere/a\", \"broken/b\", \"good/c\"]\n\"bad\" = [\"nowhere/a\", \"broken/b\"]\n",
        provider("broken", broken.address),
        provider("good", good.address)
    );
    let running = Setup::new(config).start().await;
    let body = |model: &str| format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"x"}}]}}"#);
    let answer = running.post("/v1/chat/completions", &[], body("best")).await;
    assert_eq!((answer.status, answer.text().contains("here")), (200, true), "{}", answer.text());
    let receipt = running.receipt(&answer).await;
    let statuses: Vec<_> =
        receipt["upstream"].as_array().expect("attempts").iter().map(|row| row["status"].clone()).collect();
    assert_eq!(statuses, [serde_json::Value::Null, 503.into(), 200.into()], "{receipt}");
    assert_eq!(receipt["model"]["resolved"], "good/c");
    let last = running.post("/v1/chat/completions", &[], body("bad")).await;
    assert_eq!((last.status, last.text().as_str()), (503, "{\"error\":\"down\"}"), "the last answer passes");
    let passed = running.send("PUT", "/pass/good/v9/files?x=1", &[], b"raw".to_vec()).await;
    assert_eq!(passed.status, 200);
    let received = good.received().pop().expect("a request");
    assert_eq!((received.path.as_str(), received.body.as_str()), ("/v9/files?x=1", "raw"));
    assert!(received.head.starts_with("PUT "), "{}", received.head);
    let inference = running.post("/pass/good/v1/chat/completions", &[], "{}").await;
    assert_eq!(inference.status, 404, "{}", inference.text());
}

#[tokio::test]
async fn g4_compressed_requests_reach_the_provider_in_plain_bytes() {
    let provider = Provider::start(|_| Scripted {
        content_type: "application/json",
        pieces: vec![b"{\"choices\":[]}".to_vec()],
        ..Scripted::stream("")
    })
    .await;
    let running = Setup::new(config(&provider, "openai-chat")).start().await;
    let body = r#"{"model":"up/m","messages":[{"role":"user","content":"squeezed"}]}"#;
    let squeezed = gzip(body.as_bytes());
    let answer = running.post("/v1/chat/completions", &[("content-encoding", "gzip")], squeezed).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let received = provider.received().pop().expect("a request");
    assert_eq!(received.body, body.replace("up/m", "m"));
    assert_eq!(received.header("content-encoding"), None);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut encoder, bytes).expect("memory");
    encoder.finish().expect("memory")
}

#[tokio::test]
async fn g4_no_part_of_a_reply_shows_the_provider_s_key() {
    let text = format!("{{\"error\":{{\"message\":\"bad key {KEY}\",\"code\":\"{KEY}\"}}}}");
    let cleaned = "{\"error\":{\"message\":\"bad key ***\",\"code\":\"***\"}}";
    let json = |status: u16, pieces: Vec<Vec<u8>>, headers: &[(&'static str, &str)]| Scripted {
        status,
        content_type: "application/json",
        headers: headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        pieces,
        breaks_off: false,
    };
    let packed = [("content-encoding", "gzip")];
    let challenge = [("www-authenticate", format!("Bearer {KEY}"))];
    let challenge = [(challenge[0].0, challenge[0].1.as_str())];
    let event = |text: &str| format!("data: {{\"choices\":[]}}\n\ndata: {text}\n\n");
    let in_bytes = |text: &str| text.bytes().map(|byte| vec![byte]).collect::<Vec<_>>();
    let passes = |text: &str| Some(text.to_owned());
    #[rustfmt::skip]
    let cases = [
        ("event",        Scripted::stream(event(&text)),                          200, passes(&event(cleaned))),
        ("event, split", Scripted { pieces: in_bytes(&event(&text)), ..Scripted::stream("") }, 200, passes(&event(cleaned))),
        ("begun only",   Scripted::stream("data: sk-upstre"),         200, passes("data: sk-upstre")),
        ("body, header", json(401, vec![text.clone().into_bytes()], &challenge),  401, passes(cleaned)),
        ("body, split",  json(403, in_bytes(&text), &[]),                         403, passes(cleaned)),
        ("gzip",         json(400, vec![gzip(text.as_bytes())], &packed),         400, passes(cleaned)),
        ("broken gzip",  json(400, vec![text.clone().into_bytes()], &packed),     502, None),
    ];
    for (name, scripted, status, expected) in cases {
        let provider = Provider::start(move |_| scripted.clone()).await;
        let running = Setup::new(config(&provider, "openai-chat")).start().await;
        let body = r#"{"model":"up/m","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
        for path in ["/v1/chat/completions", "/pass/up/v1/files"] {
            let answer = running.post(path, &[], body).await;
            assert_eq!(answer.status, status, "{name} {path}: {}", answer.text());
            assert_eq!(answer.header("content-encoding"), None, "{name} {path}");
            match &expected {
                Some(expected) => assert_eq!(answer.text(), *expected, "{name} {path}"),
                None => assert_eq!(answer.header("aside-error"), Some("upstream_unreachable"), "{name} {path}"),
            }
            assert!(!format!("{answer:?}").contains(KEY) && !answer.text().contains(KEY), "{name} {path}: {answer:?}");
            if name == "body, header" {
                assert_eq!(answer.header("www-authenticate"), Some("Bearer ***"), "{path}");
            }
        }
    }
}

/// The request is ours, so the reply is read by the exchange; its bytes still reach the client as they are.
#[tokio::test]
async fn g4_a_stream_for_a_request_of_ours_passes_without_the_provider_s_key() {
    let stream = |said: &str| {
        let delta = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{said}\"}}}}]}}\n\n");
        let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        format!("{delta}{end}")
    };
    let pieces: Vec<Vec<u8>> = stream(&format!("Your key is {KEY}.")).bytes().map(|byte| vec![byte]).collect();
    let provider = Provider::start(move |_| Scripted { pieces: pieces.clone(), ..Scripted::stream("") }).await;
    let running = Setup::new(config(&provider, "openai-chat")).start().await;
    let body = r#"{"model":"up/m","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let answer = running.post("/v1/chat/completions", &[("aside-set", "reasoning.effort=low")], body).await;
    assert_eq!((answer.status, answer.text()), (200, stream("Your key is ***.")));
    assert!(!answer.broke_off);
}
