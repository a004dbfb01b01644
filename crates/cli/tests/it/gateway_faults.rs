//! What goes wrong around a gateway: processes that are killed, clients and providers
//! that disappear or hang, and requests that mean harm.

use crate::bombs::bombs;
use crate::gateway_process::{
    GatewayProcess, HttpAnswer, Step, THOUGHT, Upstream, follow_up, held_upstream, question, thinking_reply, wait_for,
};
use crate::support::TestConfig;

const CHAT: &str = "/v1/chat/completions";

/// The end of a reply waits for the store, however slow the machine is.
const PATIENT: &str = "[serve]\nstore_wait = \"10m\"\n";

fn config(name: &str, upstream: &Upstream, more: &str) -> TestConfig {
    TestConfig::with(name, &format!("{}{more}", upstream.config("openai-chat", "deepseek")))
}

#[test]
fn g7_a_gateway_that_is_killed_before_the_last_frame_never_makes_up_a_thought() {
    let upstream = held_upstream();
    let config = config("faults-killed", &upstream, PATIENT);
    let gateway = GatewayProcess::start(&config);
    let mut stream = gateway.open("POST", CHAT, &[], question("up/m", "killed").as_bytes());
    stream.read_until("call_00_x8Bq2LmVf3kZ");
    gateway.kill();
    let broken = stream.rest();
    assert!(!broken.is_whole && !broken.text().contains("[DONE]"), "{}", broken.text());
    // The client has seen no end. If it goes on all the same, nothing is invented.
    let gateway = GatewayProcess::start(&config);
    let answer = gateway.post(CHAT, &follow_up("up/m", "killed"));
    assert_eq!(answer.n_restored(), 0, "{:?}", answer.header("aside-repaired"));
    // Asked again, the same question gets its reply, which is remembered.
    upstream.release();
    let again = gateway.post(CHAT, &question("up/m", "killed"));
    assert!(again.is_whole && again.text().contains("[DONE]"), "{}", again.text());
    gateway.kill();
    let gateway = GatewayProcess::start(&config);
    let answer = gateway.post(CHAT, &follow_up("up/m", "killed"));
    assert_eq!((answer.status, answer.n_restored()), (200, 1), "{}", answer.text());
    assert!(upstream.received().pop().unwrap().contains(THOUGHT));
}

#[test]
fn g7_whoever_saw_the_last_frame_finds_the_thought_after_a_kill() {
    let upstream = Upstream::start(|_| thinking_reply(false));
    let config = config("faults-durable", &upstream, PATIENT);
    for n in 0..5 {
        let gateway = GatewayProcess::start(&config);
        let words = format!("durable {n}");
        let mut stream = gateway.open("POST", CHAT, &[], question("up/m", &words).as_bytes());
        stream.read_until("[DONE]");
        gateway.kill();
        let gateway = GatewayProcess::start(&config);
        let answer = gateway.post(CHAT, &follow_up("up/m", &words));
        assert_eq!((answer.status, answer.n_restored()), (200, 1), "{}", answer.text());
    }
}

#[test]
fn g7_the_last_frame_waits_for_the_store_also_if_it_comes_in_parts_or_the_body_stays_open() {
    let upstream = Upstream::start(|request| {
        let mut steps = thinking_reply(false);
        if request.contains("\"role\":\"tool\"") {
            return steps;
        }
        if request.contains("in two parts") {
            steps.pop();
            steps.extend([Step::send("data: [DO"), Step::Wait, Step::send("NE]\n\n")]);
        }
        steps.push(Step::Wait);
        steps
    });
    let config = config("faults-open-body", &upstream, PATIENT);
    for (words, end) in [("whole", "[DONE]"), ("in two parts", "NE]")] {
        let gateway = GatewayProcess::start(&config);
        let mut stream = gateway.open("POST", CHAT, &[], question("up/m", words).as_bytes());
        if words == "in two parts" {
            stream.read_until("data: [DO");
            upstream.release();
        }
        stream.read_until(end);
        gateway.kill();
        let gateway = GatewayProcess::start(&config);
        let answer = gateway.post(CHAT, &follow_up("up/m", words));
        assert_eq!((answer.status, answer.n_restored()), (200, 1), "{words}: {}", answer.text());
    }
}

#[test]
fn g6_a_client_that_leaves_cancels_the_request_and_what_came_is_kept() {
    let upstream = held_upstream();
    let config = config("faults-gone", &upstream, PATIENT);
    let gateway = GatewayProcess::start(&config);
    let mut stream = gateway.open("POST", CHAT, &[], question("up/m", "gone").as_bytes());
    stream.read_until("call_00_x8Bq2LmVf3kZ");
    drop(stream);
    wait_for("the end of the provider's connection", || (upstream.n_gone() == 1).then_some(()));
    // The client goes on with the part that it saw.
    let answer = wait_for("the interrupted reply", || {
        let answer = gateway.post(CHAT, &follow_up("up/m", "gone"));
        (answer.status == 200 && answer.n_restored() == 1).then_some(answer)
    });
    assert!(answer.is_whole, "{}", answer.text());
    assert_eq!(gateway.metric("aside_streams").as_deref(), Some("0"));
}

#[test]
fn g6_a_slow_client_slows_its_provider_down_and_gets_every_byte() {
    let piece =
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n", "x".repeat(60_000));
    let (n_pieces, n_bytes) = (4_000, 4_000 * piece.len());
    let upstream = Upstream::start(move |_| {
        vec![Step::Repeat(piece.clone().into_bytes(), n_pieces), Step::send("data: [DONE]\n\n")]
    });
    let config = config("faults-slow", &upstream, "[settings]\n\"reply.maxBytes\" = 1000000\n");
    let gateway = GatewayProcess::start(&config);
    let mut stream = gateway.open("POST", CHAT, &[], question("up/m", "slow").as_bytes());
    stream.read_until("xxx");
    // Nobody reads: the provider gets stuck when all buffers are full.
    let mut before = 0;
    let stuck = wait_for("back-pressure", || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let sent = upstream.n_sent();
        let is_stuck = sent == before && sent > 0;
        before = sent;
        is_stuck.then_some(sent)
    });
    assert!(stuck < n_bytes / 2, "{stuck} of {n_bytes} bytes were taken from the provider");
    let answer = stream.rest();
    assert!(answer.is_whole && answer.len() > n_bytes, "{} of {n_bytes} bytes", answer.len());
}

#[test]
fn g6_a_provider_that_hangs_behind_a_live_socket_ends_the_stream() {
    for (protocol, path) in [("openai-chat", CHAT), ("openai-chat", "/v1/messages")] {
        let upstream = held_upstream();
        let settings = "[settings]\n\"http.idleSeconds\" = 1\n[serve]\nkeep_alive = \"50ms\"\nstore_wait = \"10m\"\n";
        let config = TestConfig::with("faults-hang", &format!("{}{settings}", upstream.config(protocol, "deepseek")));
        let gateway = GatewayProcess::start(&config);
        let body = match path {
            CHAT => question("up/m", "hang"),
            _ => r#"{"model":"up/m","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"hang"}],"tools":[{"name":"depth","input_schema":{"type":"object","properties":{}}}]}"#.to_owned(),
        };
        let mut stream = gateway.open("POST", path, &[], body.as_bytes());
        stream.read_until("Berth 4 was dredged");
        // Signs of life come while the provider is silent, until it counts as dead.
        let sign = if path == CHAT { ": keep-alive\n\n" } else { "event: ping" };
        stream.read_until(sign);
        let answer = stream.rest();
        match path {
            // The same protocol: the connection breaks, as the provider's did.
            CHAT => assert!(!answer.is_whole && !answer.text().contains("[DONE]"), "{}", answer.text()),
            _ => {
                assert!(answer.is_whole && answer.text().contains("event: error"), "{}", answer.text());
                assert!(!answer.text().contains("message_stop"), "{}", answer.text());
            }
        }
        wait_for("the end of the provider's connection", || (upstream.n_gone() == 1).then_some(()));
        let receipt = gateway.receipt(&answer);
        assert_eq!(receipt["status"], 200, "{receipt}");
    }
}

#[test]
fn g6_an_error_in_the_middle_of_a_stream_reaches_the_client() {
    let steps = |end: Vec<Step>| -> Vec<Step> { thinking_reply(true).into_iter().take(2).chain(end).collect() };
    let error =
        "data: {\"error\":{\"message\":\"overloaded in the middle\",\"type\":\"server_error\",\"code\":503}}\n\n";
    #[rustfmt::skip]
    let cases = [
        ("error", vec![Step::send(error), Step::send("data: [DONE]\n\n")]),
        ("broken", vec![Step::BreakOff]),
    ];
    for (name, end) in cases {
        let all = steps(end);
        let upstream = Upstream::start(move |_| all.clone());
        let config = config(&format!("faults-{name}"), &upstream, PATIENT);
        let gateway = GatewayProcess::start(&config);
        let same = gateway.post(CHAT, &question("up/m", name));
        let body = r#"{"model":"up/m","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"x"}]}"#;
        let translated = gateway.post("/v1/messages", body);
        assert!(translated.is_whole && translated.text().contains("event: error"), "{name}: {}", translated.text());
        assert!(!translated.text().contains("message_stop"), "{name}: {}", translated.text());
        match name {
            "error" => assert!(same.is_whole && same.text().contains(error.trim()), "{}", same.text()),
            _ => assert!(!same.is_whole && !same.text().contains("[DONE]"), "{}", same.text()),
        }
        for answer in [same, translated] {
            assert_eq!(gateway.receipt(&answer)["status"], 200, "{name}");
        }
    }
}

/// The resident memory of a process, in bytes.
fn resident(gateway: &GatewayProcess) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).unwrap() * 1024
}

#[test]
fn g8_compressed_bombs_are_refused_without_being_unpacked() {
    let config = TestConfig::with("faults-bombs", "[serve]\nmax_body = 1000000\n");
    let gateway = GatewayProcess::start(&config);
    assert_eq!(gateway.post(CHAT, &question("sim/kimi", "hi")).status, 200);
    let before = resident(&gateway);
    for (encoding, bomb) in bombs() {
        assert!(bomb.len() < 900_000, "{encoding}: it must get past the limit of {} bytes", bomb.len());
        let answer = gateway.send("POST", CHAT, &[("content-encoding", encoding)], &bomb);
        let found = (answer.status, answer.header("aside-error"));
        assert_eq!(found, (413, Some("too_large")), "{encoding}: {}", answer.text());
    }
    let after = resident(&gateway);
    assert!(after < before + (64 << 20), "{before} bytes before, {after} after");
    assert_eq!(gateway.post(CHAT, &question("sim/kimi", "hi")).status, 200, "it still serves");
}

#[test]
fn g8_wrong_keys_foreign_hosts_and_other_tenants_get_nothing() {
    let config = TestConfig::with("faults-doors", PATIENT);
    let keys = ["a", "b"].map(|name| config.stdout(&format!("serve key new {name}")).trim_end().to_owned());
    let gateway = GatewayProcess::start(&config);
    let ask = |key: &str, headers: &[(&str, &str)]| -> HttpAnswer {
        let bearer = format!("Bearer {key}");
        let mut all = vec![("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        gateway.send("POST", "/v1/responses", &all, br#"{"model":"sim/deepseek","input":"sim: tool-loop 1","tools":[{"type":"function","name":"list","parameters":{"type":"object","properties":{}}}]}"#)
    };
    let answer = ask(&keys[0], &[]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let cut: String = keys[0].chars().take(48).collect();
    for wrong in ["", "aside-", &cut, &keys[0].to_uppercase()] {
        let refused = ask(wrong, &[]);
        assert_eq!((refused.status, refused.header("aside-error")), (401, Some("unauthorized")), "{wrong}");
    }
    for (header, value, status) in [("host", "evil.example", 421), ("origin", "https://evil.example", 403)] {
        assert_eq!(ask(&keys[0], &[(header, value)]).status, status, "{header}");
    }
    // The other tenant knows every id, and gets nothing.
    let (request, response) = (answer.header("aside-request").unwrap(), answer.json()["id"].clone());
    let id = response.as_str().unwrap();
    for path in
        [format!("/aside/requests/{request}"), format!("/v1/responses/{id}"), format!("/v1/responses/{id}/input_items")]
    {
        let own = gateway.send("GET", &path, &[("x-api-key", &keys[0])], b"");
        assert_eq!(own.status, 200, "{path}: {}", own.text());
        let other = gateway.send("GET", &path, &[("x-api-key", &keys[1])], b"");
        assert_eq!(other.status, 404, "{path}: {}", other.text());
    }
    let list = gateway.send("GET", "/aside/requests", &[("x-api-key", &keys[1])], b"").json();
    assert_eq!(list["requests"], serde_json::json!([]));
}
