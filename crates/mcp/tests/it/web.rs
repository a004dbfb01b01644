//! Servers with a URL.

use std::time::Duration;

use aside_engine::tools::Mode;
use aside_mcp::{Server, Servers, Way, look};
use serde_json::json;

use crate::plays::Web;
use crate::support::{around, call, tools};

const PATIENCE: Duration = Duration::from_secs(20);

fn at(url: &str, headers: &[(&str, &str)]) -> Server {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Server { name: "web".to_owned(), way: Way::Url { url: url.to_owned(), headers } }
}

#[tokio::test]
async fn l2_a_server_over_http_lists_and_answers() {
    let web = Web::wanting("authorization: bearer hush");
    let server = at(&web.url, &[("authorization", "Bearer hush")]);
    let mut servers = Servers::start(vec![server], around(PATIENCE));
    let (tools, notes) = tools(&mut servers, Mode::AllowAll).await;
    assert_eq!(notes, [""; 0]);
    assert_eq!(tools.specs().len(), 8);
    #[rustfmt::skip]
    let cases = [
        ("list_things", json!({ "of": "ours" }), false, "things of ours"),
        ("fail",        json!({}),               true,  "the disk is full"),
        ("refuse",      json!({}),               true,  "the MCP server `web` says: not today"),
    ];
    for (tool, arguments, is_error, content) in cases {
        let result = call(&tools, &format!("web__{tool}"), arguments).await;
        assert_eq!((result.content.as_str(), result.is_error), (content, is_error), "{tool}");
    }
    servers.close().await;
    let heads = web.heads.lock().unwrap();
    assert!(heads.iter().any(|head| head.starts_with("DELETE")), "the session is ended there too: {heads:?}");
    assert!(heads.iter().skip(1).any(|head| head.to_lowercase().contains("mcp-session-id: s1")), "{heads:?}");
}

#[tokio::test]
async fn l2_a_server_that_wants_a_key_or_is_not_there_is_said_with_a_remedy() {
    let web = Web::wanting("authorization: bearer hush");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    #[rustfmt::skip]
    let cases = [
        (at(&web.url, &[]),                              "it wants an authorization",        "headers = { authorization"),
        (at(&format!("http://{nobody}/mcp"), &[]),       "it cannot be reached: Connection refused", "set enabled = false"),
        (at(&web.url, &[("x-key", "a\nb")]),             "the header `x-key` cannot be sent", "check its url and headers"),
    ];
    for (server, what, remedy) in cases {
        let shown = format!("{server:?}");
        let found = look(vec![server], around(PATIENCE)).await;
        let trouble = found[0].1.clone().unwrap_err();
        assert!(trouble.what.contains(what) && trouble.remedy.contains(remedy), "{shown}: {trouble:?}");
    }
}

#[tokio::test]
async fn l4_an_answer_that_does_not_end_is_not_read_to_its_end() {
    for kind in ["application/json", "text/event-stream"] {
        let web = Web::wanting("host:");
        let mut servers = Servers::start(vec![at(&web.url, &[])], around(PATIENCE));
        let (tools, notes) = tools(&mut servers, Mode::AllowAll).await;
        assert_eq!(notes, [""; 0]);
        let result = call(&tools, "web__write_thing", json!({ "flood": kind })).await;
        assert!(result.is_error && result.content.len() < 1000, "{kind}: {}", result.content);
        assert!(result.content.contains("more than 8388608 bytes"), "{kind}: {}", result.content);
        assert_eq!(call(&tools, "web__write_thing", json!({})).await.content, "written", "{kind}: it still serves");
        servers.close().await;
    }
}
