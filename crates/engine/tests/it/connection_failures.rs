//! Failed connections are told apart by the kind of the error.

use std::time::Duration;

use aside_engine::http::CallError;
use aside_engine::{ConnectionFailure, Http, Timeouts};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::scripted_server::{ScriptedServer, ServerStep};

#[tokio::test]
async fn each_failure_has_its_kind_and_its_message() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = nobody.local_addr().unwrap();
    drop(nobody);
    let closing = ScriptedServer::start(vec![Vec::new()]).await;
    let silent = ScriptedServer::start(vec![vec![ServerStep::WaitForDisconnect]]).await;
    let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let secure = format!("https://{}", plain.local_addr().unwrap());
    // A server without TLS.
    tokio::spawn(async move {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let mut buffer = [0; 4096];
        while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
    });
    #[rustfmt::skip]
    let cases = [
        ("nobody listens", format!("http://{free}"),              ConnectionFailure::Refused,     false, "cannot be reached: Connection refused"),
        ("closed",         closing.url.clone(),                   ConnectionFailure::Closed,      true,  "cannot be reached: "),
        ("silent",         silent.url.clone(),                    ConnectionFailure::IdleTimeout, false, "was silent for 1 s"),
        ("no TLS",         secure,                                ConnectionFailure::Tls,         false, "cannot be reached: "),
        ("no such host",   "http://nowhere.invalid/".to_owned(),  ConnectionFailure::Dns,         true,  "nowhere.invalid:80 cannot be reached: failed to lookup address"),
    ];
    let http =
        Http::new(Timeouts { connect: Duration::from_secs(20), idle: Duration::from_secs(1), ..Timeouts::default() });
    for (name, url, failure, is_transient, message) in cases {
        let error = http.get(&url, &[]).await.unwrap_err();
        let CallError::Unreachable(error) = error else { panic!("{name}: {error:?}") };
        assert_eq!(error.failure, failure, "{name}: {error}");
        assert_eq!(failure.is_transient(), is_transient, "{name}");
        assert!(error.what.contains(message), "{name}: {error}");
    }
}
