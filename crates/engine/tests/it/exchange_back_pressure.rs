//! Back pressure: nothing is read from the provider while the sink is not ready.

use std::sync::Arc;
use std::time::Duration;

use aside_engine::exchange::ExchangeError;
use tokio::sync::Semaphore;

use crate::exchange_support::{TestExchange, TestSink, wait_until};
use crate::scripted_server::{ScriptedServer, ServerStep, stream_head};
use crate::session_support::{chat, endpoint};

const N_COMMENTS: usize = 3000;
const COMMENT_BYTES: usize = 16 << 10;
/// What the buffers of two sockets hold at most, which is a fraction of the reply.
const MAX_BUFFERED: usize = 16 << 20;
/// The HTTP client reads no more than this at once.
const MAX_CHUNK: usize = 1 << 20;

/// A reply that is much longer than all buffers: comments, then a short answer.
async fn long_reply() -> ScriptedServer {
    let comment = format!(": {}\n\n", "x".repeat(COMMENT_BYTES - 4)).into_bytes();
    assert_eq!(comment.len(), COMMENT_BYTES);
    let answer = chat(&[r#"{"content":"Four."}"#], "stop").into_bytes();
    ScriptedServer::start(vec![vec![stream_head(), ServerStep::Repeat(comment, N_COMMENTS), ServerStep::Bytes(answer)]])
        .await
}

/// Waits until the server makes no more progress.
async fn wait_until_held_back(server: &ScriptedServer) -> usize {
    wait_until("the reply has begun", || server.n_written() > 0).await;
    loop {
        let before = server.n_written();
        tokio::time::sleep(Duration::from_millis(300)).await;
        if server.n_written() == before {
            return before;
        }
    }
}

#[tokio::test]
async fn a_sink_that_waits_keeps_the_provider_from_being_read() {
    let server = long_reply().await;
    let permits = Arc::new(Semaphore::new(3));
    let sink = TestSink::with_permits(Arc::clone(&permits));
    let exchange = TestExchange::new(endpoint(&server.url, "deepseek", "deepseek-v4-pro"));
    let running = tokio::spawn(exchange.run_with("2+2?", sink));
    let n_written = wait_until_held_back(&server).await;
    assert!(n_written < MAX_BUFFERED, "{n_written} bytes were written although nobody took them");
    assert!(!running.is_finished());
    permits.add_permits(1 << 20);
    let (outcome, sink) = running.await.unwrap();
    assert_eq!((outcome.result, sink.text().as_str()), (Ok(()), "Four."));
    assert!(sink.n_received > N_COMMENTS * COMMENT_BYTES, "everything arrives in the end");
    assert!(sink.largest_chunk <= MAX_CHUNK, "{}", sink.largest_chunk);
}

#[tokio::test]
async fn an_exchange_whose_sink_waits_can_be_cancelled() {
    let server = long_reply().await;
    let sink = TestSink::with_permits(Arc::new(Semaphore::new(2)));
    let exchange = TestExchange::new(endpoint(&server.url, "deepseek", "deepseek-v4-pro"));
    let cancel = exchange.cancel.clone();
    let running = tokio::spawn(exchange.run_with("2+2?", sink));
    let n_written = wait_until_held_back(&server).await;
    cancel.cancel();
    let (outcome, sink) = running.await.unwrap();
    assert_eq!(outcome.result, Err(ExchangeError::Cancelled));
    assert!(sink.n_received <= 2 * MAX_CHUNK && n_written < MAX_BUFFERED, "{} {n_written}", sink.n_received);
}
