//! The exact order of updates and flushes that a front end sees.

use aside_core::event::Event;
use aside_core::settings::Layer;
use aside_engine::{Front, Update};
use tokio_util::sync::CancellationToken;

use crate::scripted_server::{ScriptedServer, ServerScript, ServerStep, answer, stream, stream_head};
use crate::session_support::{Nobody, chat, session, user};

/// Records one word for each update. The network decides how many chunks arrive, so they count as one.
#[derive(Debug, Default)]
struct OrderFront(Vec<&'static str>);

impl OrderFront {
    fn push(&mut self, word: &'static str) {
        let chunk = [["received", "event", "flush"].as_slice(), ["received", "flush"].as_slice()];
        if word == "received"
            && let Some(chunk) = chunk.iter().find(|chunk| self.0.ends_with(chunk))
        {
            self.0.truncate(self.0.len() - chunk.len());
        }
        if self.0.last() != Some(&word) {
            self.0.push(word);
        }
    }
}

impl Front for OrderFront {
    fn on_update(&mut self, update: Update<'_>) {
        self.push(match update {
            Update::Sending { .. } => "sending",
            Update::Received(_) => "received",
            Update::Event { event: Event::Ended(_), .. } => "ended",
            Update::Event { event: Event::Noted(_), .. } => "event-note",
            Update::Event { .. } => "event",
            Update::Retrying { .. } => "retrying",
            Update::TurnNotice(_) => "notice",
            Update::Noted(_) => "noted",
            Update::LeftOut(_) => "left-out",
            Update::ToolStarted(_) => "tool-started",
            Update::ToolOutput { .. } => "tool-output",
            Update::ToolEnded { .. } => "tool-ended",
            Update::Asked(_) => "asked",
            Update::Answered { .. } => "answered",
            Update::Compacted { .. } => "compacted",
            Update::Recorded(_) => "recorded",
            Update::Ended(_) => "turn-ended",
        });
    }

    fn flush(&mut self) {
        self.push("flush");
    }
}

#[tokio::test]
async fn a_front_end_sees_updates_in_this_order() {
    let must = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    let reply = || answer("200 OK", "", &chat(&[r#"{"content":"Four."}"#], "stop"));
    let calling = r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":"{}"}}]}"#;
    let calls = answer("200 OK", "", &chat(&[calling], "tool_calls"));
    let busy = answer("429 Busy", "retry-after-ms: 1\r\n", r#"{"error":{"message":"busy"}}"#);
    let refused = answer("400 Bad Request", "", &format!(r#"{{"error":{{"message":"{must}"}}}}"#));
    let in_stream = answer("200 OK", "", &format!("data: {{\"error\":{{\"message\":\"{must}\"}}}}\n\n"));
    let no_money = answer("402 Payment Required", "", r#"{"error":{"message":"Insufficient Balance"}}"#);
    let html = answer("200 OK", "content-type: text/html\r\n", "<html>Sign in</html>");
    let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"abcdefgh\"}}]}\n\n";
    let long = vec![stream_head(), ServerStep::Bytes(delta.repeat(50).into_bytes()), ServerStep::WaitForDisconnect];
    let read = "received event flush event ended flush recorded";
    let cut = "received event flush event event-note ended flush recorded";
    #[rustfmt::skip]
    let cases: [(&str, Vec<ServerScript>, String); 9] = [
        ("a reply",              vec![reply()],            format!("sending flush {read}")),
        ("a tool loop",          vec![calls, reply()],     format!("sending flush {read} tool-started flush tool-ended flush recorded sending flush {read}")),
        ("a retry",              vec![busy, reply()],      format!("sending flush retrying flush {read}")),
        ("a repair",             vec![refused, reply()],   format!("sending flush notice sending flush {read}")),
        ("a repair in a stream", vec![in_stream, reply()], format!("sending flush received flush ended flush notice sending flush {read}")),
        ("a refusal",            vec![no_money],           "sending flush".to_owned()),
        ("not our protocol",     vec![html],               "sending flush received flush event-note ended flush".to_owned()),
        ("a cut reply",          vec![stream(delta)],      format!("sending flush {cut}")),
        ("a long reply",         vec![long],               format!("sending flush {cut}")),
    ];
    for (name, scripts, expected) in cases {
        let server = ScriptedServer::start(scripts).await;
        let mut session = session(&server.url, "deepseek", "deepseek-v4-pro");
        session.settings.set(Layer::Session, "reply.maxBytes", "300").unwrap();
        let mut front = OrderFront::default();
        session.turn(user("hi"), &mut front, &Nobody, &CancellationToken::new()).await;
        assert_eq!(front.0.join(" "), format!("recorded {expected} turn-ended flush"), "{name}");
    }
}
