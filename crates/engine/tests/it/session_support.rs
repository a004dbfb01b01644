//! Shared helpers: sessions, a front end that records updates, and chat streams.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use aside_core::block::{Block, Text};
use aside_core::dialect::Dialects;
use aside_core::event::Event;
use aside_core::message::{Message, Role};
use aside_core::settings::Settings;
use aside_core::turn::TurnEnd;
pub(crate) use aside_engine::tools::NobodyToAsk as Nobody;
use aside_engine::{Endpoint, Front, Http, Session, Timeouts, Update};
use tokio_util::sync::CancellationToken;

/// Records a short line for each update.
#[derive(Debug, Default)]
pub(crate) struct TestFront {
    pub(crate) lines: Vec<String>,
    pub(crate) text: String,
    pub(crate) thinking: String,
    /// Stops the turn as soon as any text has arrived.
    pub(crate) stop_at_text: Option<CancellationToken>,
    pub(crate) is_thinking: bool,
}

impl Front for TestFront {
    fn on_update(&mut self, update: Update<'_>) {
        let line = match update {
            Update::Sending { step, .. } => format!("sending {step}"),
            Update::Received(_) => return,
            Update::Event { event: Event::Opened { opening, .. }, .. } => {
                self.is_thinking = matches!(opening, aside_core::event::BlockOpening::Thinking { .. });
                return;
            }
            Update::Event { event: Event::Grew { text, .. }, .. } => {
                if let Some(stop) = &self.stop_at_text {
                    stop.cancel();
                }
                if self.is_thinking {
                    self.thinking.push_str(text)
                } else {
                    self.text.push_str(text)
                }
                return;
            }
            Update::Event { .. } => return,
            Update::Retrying { attempt, .. } => format!("retrying {attempt}"),
            Update::TurnNotice(notices) => format!("notice {notices:?}"),
            Update::LeftOut(loss) => format!("left out {loss}"),
            Update::Noted(note) => format!("noted {note}"),
            Update::ToolStarted(call) => format!("started {}", call.name),
            // How often it comes depends on time.
            Update::ToolOutput { .. } => return,
            Update::ToolEnded { call, result } => format!("ended {} {}", call.name, result.is_error),
            Update::Asked(question) => format!("asked {}", question.tool),
            Update::Answered { permit, .. } => format!("answered {}", permit.as_str()),
            Update::Compacted { summarised, trigger, .. } => format!("compacted {summarised} {trigger:?}"),
            Update::Recorded(message) => format!("recorded {:?}", message.role),
            Update::Ended(end) => format!("ended {end:?}"),
        };
        self.lines.push(line);
    }
}

/// Loaded once, because loading takes longer than most tests.
pub(crate) fn dialects() -> Arc<Dialects> {
    static READ: LazyLock<Arc<Dialects>> = LazyLock::new(|| Arc::new(Dialects::builtin().unwrap()));
    Arc::clone(&READ)
}

pub(crate) fn session(url: &str, dialect: &str, model: &str) -> Session {
    session_with(
        url,
        dialect,
        model,
        Timeouts { connect: Duration::from_secs(2), idle: Duration::from_secs(5), ..Timeouts::default() },
    )
}

pub(crate) fn session_with(url: &str, dialect: &str, model: &str, timeouts: Timeouts) -> Session {
    Session::new(dialects(), endpoint(url, dialect, model), Settings::new(), Http::new(timeouts))
}

pub(crate) fn endpoint(url: &str, dialect: &str, model: &str) -> Endpoint {
    let dialects = dialects();
    let known = dialects.get(dialect).unwrap();
    Endpoint {
        provider: dialect.to_owned(),
        access: known.access.clone().at_the_protocols_path(),
        dialect: known.clone(),
        model: model.to_owned(),
        base_url: url.to_owned(),
        origin_url: Some(url.to_owned()),
        key: None,
        headers: Vec::new(),
        extra_body: serde_json::Map::new(),
        account: None,
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::new(Role::User, vec![Block::Text(Text { text: text.to_owned(), ..Text::default() })])
}

/// Sends a message and waits for the end of the turn.
pub(crate) async fn send(session: &mut Session, text: &str) -> (TurnEnd, TestFront) {
    let mut recorded = TestFront::default();
    let end = session.turn(user(text), &mut recorded, &Nobody, &CancellationToken::new()).await;
    (end, recorded)
}

/// A chat stream of these deltas, with a normal end.
pub(crate) fn chat(deltas: &[&str], finish: &str) -> String {
    let mut body = String::new();
    for delta in deltas {
        body.push_str(&format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n"));
    }
    body.push_str(&format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"{finish}\"}}]}}\n\ndata: [DONE]\n\n"
    ));
    body
}
