//! One server over the life of a session: opened, used, opened again if it
//! ended, closed.

use std::sync::Arc;
use std::time::Duration;

use aside_engine::tools::Outcome;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Unanswered};
use crate::listing::Listing;
use crate::server::{Server, Surroundings, Way};
use crate::servers::Trouble;

pub(crate) struct Connection {
    pub(crate) server: Server,
    around: Arc<Surroundings>,
    state: Mutex<State>,
}

enum State {
    Idle,
    Open(Arc<Client>),
    Closed,
}

impl Connection {
    pub(crate) fn new(server: Server, around: Arc<Surroundings>) -> Connection {
        Connection { server, around, state: Mutex::new(State::Idle) }
    }

    /// Connects and lists the tools.
    pub(crate) async fn open(&self) -> Result<Listing, Trouble> {
        let patience = self.around.patience;
        let opened = timeout(patience, async { self.client().await?.tools().await }).await;
        let opened = opened.unwrap_or_else(|_| Err(self.slow(patience)));
        if opened.is_err() {
            // Nobody will use it, so it need not be asked to end.
            *self.state.lock().await = State::Closed;
        }
        opened
    }

    fn slow(&self, patience: Duration) -> Trouble {
        let what = format!("it did not answer within {} s", patience.as_secs());
        let remedy = match &self.server.way {
            Way::Command { program, .. } => {
                format!("if `{program}` downloads something first, run it once by hand; or set enabled = false")
            }
            Way::Url { .. } => "check its url, or set enabled = false".to_owned(),
        };
        Trouble { what, remedy }
    }

    /// The living client. One that has ended is replaced.
    async fn client(&self) -> Result<Arc<Client>, Trouble> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Open(client) if !client.has_ended() => return Ok(Arc::clone(client)),
            State::Closed => {
                let what = "it is not in use any more".to_owned();
                return Err(Trouble { what, remedy: "start a new session".to_owned() });
            }
            State::Open(_) | State::Idle => *state = State::Idle,
        }
        let client = Arc::new(Client::connect(&self.server.way, &self.around).await?);
        *state = State::Open(Arc::clone(&client));
        Ok(client)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Map<String, Value>, cancel: &CancellationToken) -> Outcome {
        let patience = self.around.patience;
        let name = &self.server.name;
        let client = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err("interrupted; nothing was done".to_owned()),
            client = timeout(patience, self.client()) => client.unwrap_or_else(|_| Err(self.slow(patience))),
        };
        let client = client
            .map_err(|trouble| format!("the MCP server `{name}` cannot be used: {}; nothing was done", trouble.what))?;
        client.call(tool, arguments, self.around.silence, cancel).await.unwrap_or_else(|unanswered| {
            Err(match unanswered {
                Unanswered::Interrupted => "interrupted; the server was told to stop".to_owned(),
                Unanswered::Silent(limit) => {
                    format!("the MCP server `{name}` said nothing for {} s and was told to stop", limit.as_secs())
                }
                Unanswered::Ended(last_words) => format!(
                    "the MCP server `{name}` ended during the call{}; what it had done is not known. \
                     It is started again at the next call",
                    last_words.map(|words| format!(" ({words})")).unwrap_or_default()
                ),
                Unanswered::Refused(why) => format!("the MCP server `{name}` says: {why}"),
                Unanswered::Failed(how) => format!("no answer of the MCP server `{name}`: {how}"),
            })
        })
    }

    pub(crate) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock().await, State::Closed);
        match state {
            State::Open(client) => client.close().await,
            State::Idle | State::Closed => (),
        }
    }
}
