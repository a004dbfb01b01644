//! Keys, tenants, limits, errors and the end of a gateway.

use std::sync::Arc;
use std::time::Duration;

use aside_gateway::hash_text;
use aside_session::serve_table::StoreChoice;
use tokio::sync::Notify;

use super::support::{Provider, Running, Scripted, Setup};

const CHAT: &str = r#"{"model":"sim/deepseek","messages":[{"role":"user","content":"hi"}]}"#;

fn keys() -> String {
    format!(
        "[[serve.keys]]\nname = \"a\"\nhash = \"{}\"\ntenant = \"one\"\n\
         [[serve.keys]]\nname = \"b\"\nhash = \"{}\"\nmodels = [\"sim/kimi*\"]\nlimit = {{ requests = \"1/day\" }}\n",
        hash_text("key-a"),
        hash_text("key-b")
    )
}

#[tokio::test]
async fn g8_without_the_right_key_nothing_is_served_and_receipts_stay_with_their_tenant() {
    let running = Setup::new(keys()).start().await;
    #[rustfmt::skip]
    let cases = [
        ("/v1/chat/completions", "authentication_error"),
        ("/v1/messages",         "\"type\":\"error\""),
        ("/v1beta/models/m:generateContent", "UNAUTHENTICATED"),
        ("/api/chat",            "{\"error\":\""),
    ];
    for (path, expected) in cases {
        for headers in [&[][..], &[("authorization", "Bearer wrong")][..]] {
            let answer = running.post(path, headers, CHAT).await;
            assert_eq!((answer.status, answer.header("aside-error")), (401, Some("unauthorized")), "{path}");
            assert!(answer.text().contains(expected), "{path}: {}", answer.text());
        }
    }
    let answer = running.post("/v1/chat/completions", &[("authorization", "Bearer key-a")], CHAT).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let path = format!("/aside/requests/{}", answer.header("aside-request").expect("an id"));
    let own = running.send("GET", &path, &[("x-api-key", "key-a")], Vec::new()).await;
    assert_eq!((own.status, own.json()["tenant"].as_str()), (200, Some("one")));
    let foreign = running.send("GET", &path, &[("x-api-key", "key-b")], Vec::new()).await;
    assert_eq!(foreign.status, 404);
    let list = running.send("GET", "/aside/requests", &[("x-api-key", "key-b")], Vec::new()).await;
    assert_eq!(list.json()["requests"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn g11_a_key_has_its_models_and_limits() {
    let running = Setup::new(keys()).start().await;
    let key = [("x-api-key", "key-b")];
    let kimi = CHAT.replace("deepseek", "kimi");
    assert_eq!(running.post("/v1/chat/completions", &key, kimi.clone()).await.status, 200);
    let limited = running.post("/v1/chat/completions", &key, kimi).await;
    assert_eq!((limited.status, limited.header("aside-error")), (429, Some("limit")), "{}", limited.text());
    assert!(limited.header("retry-after").is_some());
    let list = running.send("GET", "/v1/models", &key, Vec::new()).await;
    let ids = list.json()["data"].to_string();
    assert!(ids.contains("sim/kimi") && !ids.contains("sim/deepseek"), "{ids}");
}

#[tokio::test]
async fn g1_unknown_models_and_paths_are_answered_in_the_client_s_shape() {
    let running = Setup::new("").start().await;
    #[rustfmt::skip]
    let cases = [
        ("/v1/chat/completions", "\"code\":\"model_not_found\""),
        ("/v1/responses",        "\"code\":\"model_not_found\""),
        ("/v1/messages",         "\"type\":\"not_found_error\""),
        ("/v1beta/models/none/such:generateContent", "\"status\":\"NOT_FOUND\""),
        ("/api/chat",            "{\"error\":\""),
    ];
    for (path, expected) in cases {
        let answer = running.post(path, &[], r#"{"model":"none/such","messages":[]}"#).await;
        assert_eq!((answer.status, answer.header("aside-error")), (404, Some("unknown_model")), "{path}");
        assert!(answer.text().contains(expected), "{path}: {}", answer.text());
        assert!(answer.header("aside-request").is_some(), "{path}");
    }
    let other = running.post("/v1/embeddings", &[], "{}").await;
    assert!(other.status == 404 && other.text().contains("/pass"), "{}", other.text());
    let web_socket = running.send("GET", "/v1/responses", &[("upgrade", "websocket")], Vec::new()).await;
    assert_eq!(web_socket.status, 426);
    let page = running.post("/v1/chat/completions", &[("origin", "http://evil.example")], CHAT).await;
    assert_eq!(page.status, 403);
    let host = running.post("/v1/chat/completions", &[("host", "evil.example")], CHAT).await;
    assert_eq!(host.status, 421);
}

#[tokio::test]
async fn g1_models_are_listed_in_every_shape() {
    let running = Setup::new("[serve.models]\n\"best\" = \"sim/kimi\"\n").start().await;
    #[rustfmt::skip]
    let cases = [
        ("/v1/models",      "", "/data/0/id",     "best"),
        ("/v1/models",      "anthropic-version", "/data/1/id", "claude-via-aside/best"),
        ("/v1beta/models",  "", "/models/0/name", "models/best"),
        ("/api/tags",       "", "/models/0/model", "best"),
    ];
    for (path, header, pointer, expected) in cases {
        let headers = if header.is_empty() { Vec::new() } else { vec![(header, "2023-06-01")] };
        let list = running.send("GET", path, &headers, Vec::new()).await.json();
        assert_eq!(list.pointer(pointer).and_then(serde_json::Value::as_str), Some(expected), "{path}: {list}");
    }
    let answer = running.post("/v1/chat/completions", &[], CHAT.replace("sim/deepseek", "claude-via-aside/best")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(running.receipt(&answer).await["model"]["resolved"], "sim/kimi");
    let counted = running.post("/v1/messages/count_tokens", &[], CHAT).await;
    assert_eq!((counted.status, counted.header("aside-estimated")), (200, Some("true")), "{}", counted.text());
    assert!(counted.json()["input_tokens"].as_u64().is_some_and(|count| count > 0));
}

#[tokio::test]
async fn g8_large_bodies_are_refused_and_a_changed_config_applies() {
    let running = Setup::new("[serve]\nmax_body = 1000\n").start().await;
    let long = CHAT.replace("hi", &"x".repeat(2000));
    let answer = running.post("/v1/chat/completions", &[], long.clone()).await;
    assert_eq!((answer.status, answer.header("aside-error")), (413, Some("too_large")));
    running.write_config("[serve]\nmax_body = \"much\"\n");
    assert!(running.gateway.reload().is_err(), "a broken config is refused");
    assert_eq!(running.post("/v1/chat/completions", &[], long.clone()).await.status, 413, "and the old one stays");
    running.write_config("");
    running.gateway.reload().expect("a valid config");
    assert_eq!(running.post("/v1/chat/completions", &[], long).await.status, 200);
}

#[tokio::test]
async fn g8_a_draining_gateway_refuses_new_requests_and_ends() {
    let mut running = Setup::new("").start().await;
    assert_eq!(running.get("/readyz").await.status, 200);
    assert_eq!(running.get("/healthz").await.status, 200);
    running.gateway.drain();
    assert_eq!(running.get("/readyz").await.status, 503);
    let answer = running.post("/v1/messages", &[], CHAT).await;
    assert_eq!((answer.status, answer.header("aside-error")), (503, Some("draining")));
    running.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(60), &mut running.task).await;
    assert!(ended.is_ok(), "it ends once nothing runs");
}

/// Ends a gateway at once when its client has half of a reply.
fn ends_in_mid_reply(running: &Running) -> impl FnMut(&[u8]) {
    |bytes| {
        if String::from_utf8_lossy(bytes).contains("half") {
            running.stop.cancel();
            running.stop_now.cancel();
        }
    }
}

#[tokio::test]
async fn g8_what_came_of_a_reply_is_remembered_when_the_gateway_ends_before_it() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    // A provider that sends a part of its reply, and nothing else until its client has gone.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let has_sent = Arc::new(Notify::new());
    let sent = Arc::clone(&has_sent);
    let provider = tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.expect("a client");
            let mut bytes = [0; 4096];
            let _n = socket.read(&mut bytes).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
                data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"Deep\"}}]}\n\n\
                data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";
            socket.write_all(head.as_bytes()).await.expect("a client");
            sent.notify_one();
            while socket.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
        }
    });
    let config = format!("[providers.slow]\ndialect = \"kimi\"\nbase_url = \"http://{address}\"\n");
    let body = r#"{"model":"slow/kimi-k3","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    for path in ["/v1/chat/completions", "/v1/messages"] {
        let running = Setup { store: StoreChoice::Sqlite, ..Setup::new(config.clone()) }.start().await;
        let answer = running.send_watched("POST", path, &[], body.into(), ends_in_mid_reply(&running)).await;
        let is_told = answer.broke_off || answer.text().contains("event: error");
        assert!(is_told && answer.text().contains("half"), "{path}: {answer:?}");
        let running = running.restart().await;
        let receipt = running.receipt(&answer).await;
        assert_eq!((&receipt["status"], &receipt["store"]), (&200.into(), &"ok".into()), "{path}: {receipt}");
        let body = r#"{"model":"slow/kimi-k3","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"x"},
            {"role":"assistant","content":"half"},{"role":"user","content":"y"}]}"#;
        let again = running.send_watched("POST", path, &[], body.into(), ends_in_mid_reply(&running)).await;
        assert_eq!(again.header("aside-repaired"), Some("1 restored, 0 filler, 0 ambiguous"), "{path}");
    }
    // A client that waits for the whole reply is told.
    let running = Setup { store: StoreChoice::Sqlite, ..Setup::new(config) }.start().await;
    let body = r#"{"model":"slow/kimi-k3","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;
    let end = async {
        has_sent.notified().await;
        running.stop.cancel();
        running.stop_now.cancel();
    };
    // The permit of the replies before.
    let _already = tokio::time::timeout(Duration::ZERO, has_sent.notified()).await;
    let (answer, ()) = tokio::join!(running.post("/v1/messages", &[], body), end);
    assert_eq!((answer.status, answer.header("aside-error")), (503, Some("draining")), "{}", answer.text());
    let running = running.restart().await;
    assert_eq!(running.receipt(&answer).await["status"], 503);
    provider.abort();
}

#[tokio::test]
async fn g8_metrics_count_requests_without_names_of_clients() {
    let running = Setup::new("").start().await;
    let headers = [("user-agent", "made-up-by-someone/1")];
    assert_eq!(running.post("/v1/messages", &headers, CHAT).await.status, 200);
    let metrics = running.get("/metrics").await.text();
    let line = "aside_requests_total{client=\"other\",protocol=\"anthropic\",dialect=\"deepseek\",code=\"200\"} 1";
    assert!(metrics.lines().any(|found| found == line), "{metrics}");
    assert!(!metrics.contains("made-up"), "{metrics}");
}

#[tokio::test]
async fn g11_models_and_limits_of_a_key_hold_below_pass() {
    let provider = Provider::start(|_| Scripted { content_type: "application/json", ..Scripted::stream("{}") }).await;
    let config = format!(
        "[providers.up]\nprotocol = \"openai-chat\"\nbase_url = \"http://{}\"\n\
         [[serve.keys]]\nname = \"models\"\nhash = \"{}\"\npass = [\"up\"]\nmodels = [\"up/only\"]\n\
         [[serve.keys]]\nname = \"limit\"\nhash = \"{}\"\npass = [\"up\"]\nlimit = {{ requests = \"1/day\" }}\n\
         [[serve.keys]]\nname = \"free\"\nhash = \"{}\"\npass = [\"up\"]\n",
        provider.address,
        hash_text("key-models"),
        hash_text("key-limit"),
        hash_text("key-free")
    );
    let running = Setup::new(config).start().await;
    #[rustfmt::skip]
    let cases = [
        ("/v1/chat/completions%20",           400, 400),
        ("/v1/chat/completions%20%20/",       400, 400),
        ("/v1/chat/completions%20?x=1",       400, 400),
        ("/v1/messages%20",                   400, 400),
        ("/v1beta/models/x:generateContent%20", 400, 400),
        ("/v1/chat/completions%c2%a0",        400, 400),
        ("/v1/chat/completions",              404, 404),
        ("/v1/completions",                   404, 200),
        ("/api/generate",                     404, 200),
        ("/v1/batches",                       404, 200),
        ("/v1/messages/batches",              404, 200),
        ("/v1/embeddings",                    200, 200),
        ("/v1/my%20file",                     200, 200),
    ];
    for (path, limited, free) in cases {
        for (key, expected) in [("key-models", limited), ("key-limit", limited), ("key-free", free)] {
            let before = provider.received().len();
            let answer = running.post(&format!("/pass/up{path}"), &[("x-api-key", key)], "{}").await;
            assert_eq!(answer.status, expected, "{key} {path}: {}", answer.text());
            let n_sent = provider.received().len() - before;
            assert_eq!(n_sent, usize::from(expected == 200), "{key} {path}");
        }
    }
    let refused = running.post("/pass/up/v1/completions", &[("x-api-key", "key-limit")], "{}").await;
    assert!(refused.text().contains("the key has models or limits"), "{}", refused.text());
}
