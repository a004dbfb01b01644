//! A system message in the middle of a conversation, as some clients send it, on every
//! provider protocol: it stays where it is, in a form that the provider accepts.

use aside_core::block::Block;
use aside_core::dialect::Dialects;
use aside_core::message::{Message, Role};
use aside_core::protocol::Protocol;
use aside_core::rules::{IssuedThinking, judge};
use aside_core::wire::read_request;

use super::support::{Provider, Received, Running, Scripted, Setup, client_path};

const FIRST: &str = "Be brief.";
const LATER: &str = "The user opened harbour.rs.";

/// The clients that can send one, with a request that has one.
fn requests(model: &str) -> [(Protocol, String); 4] {
    let chat = |first: &str| {
        format!(
            r#"{{"model":"{model}","stream":true,"messages":[{{"role":"{first}","content":"{FIRST}"}},{{"role":"user","content":"Hi"}},{{"role":"assistant","content":"Hello"}},{{"role":"{first}","content":"{LATER}"}},{{"role":"user","content":"Go on"}}]}}"#
        )
    };
    let messages = format!(
        r#"{{"model":"{model}","stream":true,"max_tokens":100,"system":[{{"type":"text","text":"{FIRST}"}}],"messages":[{{"role":"user","content":"Hi"}},{{"role":"assistant","content":"Hello"}},{{"role":"system","content":[{{"type":"text","text":"{LATER}"}}]}},{{"role":"user","content":"Go on"}}]}}"#
    );
    let responses = format!(
        r#"{{"model":"{model}","stream":true,"store":false,"instructions":"{FIRST}","input":[{{"role":"user","content":"Hi"}},{{"role":"assistant","content":"Hello"}},{{"role":"developer","content":"{LATER}"}},{{"role":"user","content":"Go on"}}]}}"#
    );
    [
        (Protocol::OpenaiChat, chat("system")),
        (Protocol::OpenaiResponses, responses),
        (Protocol::Anthropic, messages),
        (Protocol::Ollama, chat("system")),
    ]
}

fn text_of(message: &Message) -> String {
    let texts = message
        .blocks
        .iter()
        .filter_map(|block| if let Block::Text(text) = block { Some(text.text.as_str()) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}

/// A gateway with a provider for each protocol. The provider's answer does not matter here.
async fn gateway() -> (Provider, Running) {
    let whole = |_: &Received| Scripted {
        status: 400,
        content_type: "application/json",
        pieces: vec![b"{}".to_vec()],
        ..Scripted::stream("")
    };
    let provider = Provider::start(whole).await;
    let mut config = String::new();
    for protocol in Protocol::ALL {
        let base = match protocol {
            Protocol::OpenaiChat | Protocol::OpenaiResponses => format!("http://{}/v1", provider.address),
            _ => format!("http://{}", provider.address),
        };
        config.push_str(&format!("[providers.to-{protocol}]\nprotocol = \"{protocol}\"\nbase_url = \"{base}\"\n"));
    }
    let running = Setup::new(config).start().await;
    (provider, running)
}

#[tokio::test]
async fn g1_a_system_message_within_the_conversation_reaches_every_provider_at_its_place() {
    let dialects = Dialects::builtin().expect("dialects");
    let (provider, running) = gateway().await;
    for upstream in Protocol::ALL {
        let model = format!("to-{upstream}/m1");
        for (client, body) in requests(&model) {
            let name = format!("{client} to {upstream}");
            running.post(&client_path(client, &model), &[], body).await;
            let received = provider.received().pop().unwrap_or_else(|| panic!("{name}: nothing was sent"));
            let dialect = dialects.generic(upstream).expect("a generic dialect");
            let verdict = judge(dialect, "m1", &[], &received.body, IssuedThinking::Unknown).expect("JSON");
            assert!(verdict.is_ok(), "{name}: {:?}: {}", verdict.broken, received.body);
            let request = read_request(upstream, dialect.rules(None), &received.body)
                .unwrap_or_else(|error| panic!("{name}: {error}: {}", received.body));
            let texts: Vec<(Role, String)> =
                request.messages.iter().map(|message| (message.role, text_of(message))).collect();
            let all: String = texts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("|");
            let order: Vec<Option<usize>> =
                [FIRST, "Hi", "Hello", LATER, "Go on"].iter().map(|part| all.find(part)).collect();
            assert!(order.iter().all(Option::is_some), "{name}: something is missing: {}", received.body);
            assert!(
                order.is_sorted(),
                "{name}: it moved, which changes the prefix of the conversation: {}",
                received.body
            );
            let from_assistant = texts.iter().any(|(role, text)| *role == Role::Assistant && text.contains(LATER));
            assert!(!from_assistant, "{name}: the model did not say it: {}", received.body);
        }
    }
}
