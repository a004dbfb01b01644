//! Finding model servers on this machine.

use aside_core::protocol::Protocol;
use aside_engine::probe::{LocalServer, ServerCandidate, probe};

use crate::scripted_server::{ScriptedServer, ServerStep, answer};

fn candidate(id: &str, protocol: Protocol, url: &str) -> ServerCandidate {
    ServerCandidate { id: id.to_owned(), protocol, base_url: url.to_owned() }
}

#[tokio::test]
async fn servers_that_answer_are_found_with_their_models() {
    let json = "content-type: application/json\r\n";
    let one =
        ScriptedServer::start(vec![answer("200 OK", json, r#"{"object":"list","data":[{"id":"qwen3-8b"}]}"#)]).await;
    let two =
        ScriptedServer::start(vec![answer("200 OK", json, r#"{"models":[{"name":"qwen3:8b"},{"name":"r1"}]}"#)]).await;
    let web = ScriptedServer::start(vec![answer("200 OK", "", "<html>a dashboard</html>")]).await;
    let silent = ScriptedServer::start(vec![vec![ServerStep::WaitForDisconnect]]).await;
    let candidates = [
        candidate("web", Protocol::OpenaiChat, &web.url),
        candidate("silent", Protocol::OpenaiChat, &silent.url),
        candidate("two", Protocol::Ollama, &two.url),
        candidate("nobody", Protocol::OpenaiChat, "http://127.0.0.1:1"),
        candidate("one", Protocol::OpenaiChat, &one.url),
    ];
    let found = |id: &str, url: &str, models: &[&str]| LocalServer {
        id: id.to_owned(),
        base_url: url.to_owned(),
        models: models.iter().map(|model| (*model).to_owned()).collect(),
    };
    assert_eq!(
        probe(&candidates).await,
        [found("two", &two.url, &["qwen3:8b", "r1"]), found("one", &one.url, &["qwen3-8b"])]
    );
}
