//! MCP servers over HTTP.

use std::time::Duration;

use aside_engine::tools::PermissionMode;
use aside_mcp::{McpServers, McpTransport, ServerConfig, check_servers};
use serde_json::json;

use crate::support::{call, environment, tools};
use crate::test_server::HttpTestServer;

const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);

fn at(url: &str, headers: &[(&str, &str)]) -> ServerConfig {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ServerConfig { name: "web".to_owned(), transport: McpTransport::Url { url: url.to_owned(), headers } }
}

#[tokio::test]
async fn l2_a_server_over_http_lists_and_answers() {
    let web = HttpTestServer::requiring("authorization: bearer hush");
    let server = at(&web.url, &[("authorization", "Bearer hush")]);
    let mut servers = McpServers::start(vec![server], environment(STARTUP_TIMEOUT));
    let (tools, notes) = tools(&mut servers, PermissionMode::AllowAll).await;
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
async fn l2_a_server_that_needs_a_key_or_is_missing_is_reported_with_a_remedy() {
    let web = HttpTestServer::requiring("authorization: bearer hush");
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    #[rustfmt::skip]
    let cases = [
        (at(&web.url, &[]),                              "it wants an authorization",        "headers = { authorization"),
        (at(&format!("http://{closed_port}/mcp"), &[]),       "it cannot be reached: Connection refused", "set enabled = false"),
        (at(&web.url, &[("x-key", "a\nb")]),             "the header `x-key` cannot be sent", "check its url and headers"),
    ];
    for (server, what, remedy) in cases {
        let shown = format!("{server:?}");
        let found = check_servers(vec![server], environment(STARTUP_TIMEOUT)).await;
        let error = found[0].1.clone().unwrap_err();
        assert!(error.what.contains(what) && error.remedy.contains(remedy), "{shown}: {error:?}");
    }
}

#[tokio::test]
async fn l4_an_endless_response_is_not_read_forever() {
    for kind in ["application/json", "text/event-stream"] {
        let web = HttpTestServer::requiring("host:");
        let mut servers = McpServers::start(vec![at(&web.url, &[])], environment(STARTUP_TIMEOUT));
        let (tools, notes) = tools(&mut servers, PermissionMode::AllowAll).await;
        assert_eq!(notes, [""; 0]);
        let result = call(&tools, "web__write_thing", json!({ "flood": kind })).await;
        assert!(result.is_error && result.content.len() < 1000, "{kind}: {}", result.content);
        assert!(result.content.contains("exceeds 8388608 bytes"), "{kind}: {}", result.content);
        assert_eq!(call(&tools, "web__write_thing", json!({})).await.content, "written", "{kind}: it still serves");
        servers.close().await;
    }
}

#[tokio::test]
async fn l4_an_event_that_is_nested_too_deep_is_an_error() {
    let web = HttpTestServer::requiring("host:");
    let mut servers = McpServers::start(vec![at(&web.url, &[])], environment(STARTUP_TIMEOUT));
    let (tools, _) = tools(&mut servers, PermissionMode::AllowAll).await;
    let result = call(&tools, "web__write_thing", json!({ "depth": 125 })).await;
    assert!(!result.is_error && result.content.contains("deep enough"), "{}", result.content);
    let result = call(&tools, "web__write_thing", json!({ "depth": 500_000 })).await;
    assert!(result.is_error && result.content.contains("nested more than 127 levels deep"), "{}", result.content);
    assert_eq!(call(&tools, "web__write_thing", json!({})).await.content, "written", "it still serves");
    servers.close().await;
}
