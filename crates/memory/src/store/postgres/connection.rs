//! A connection that reconnects automatically.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls, Row};

use super::commands::Command;
use super::tls::RustlsConnector;
use crate::error::StoreError;

/// A database that takes longer to connect or to answer counts as down.
const TIMEOUT: Duration = Duration::from_secs(5);
/// For this long after a failed attempt to connect, no other attempt is made.
const RECONNECT_PAUSE: Duration = Duration::from_millis(250);
/// How often statements are sent if they conflict with other writers.
const ATTEMPTS: usize = 5;

/// Whether statements succeed or fail together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pipeline {
    Separate,
    Transaction,
}

/// One connection, made when it is first needed.
pub(super) struct Link {
    config: Config,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    client: Option<Arc<Client>>,
    /// When and why the last attempt to connect failed.
    failed: Option<(Instant, String)>,
}

impl Link {
    pub(super) fn new(url: &str) -> Result<Link, StoreError> {
        let mut config: Config = url.parse().map_err(|_| StoreError::CannotOpen {
            location: "postgres://…".to_owned(),
            problem: "not a valid URL; use postgres://USER:PASSWORD@HOST/DATABASE".to_owned(),
        })?;
        config.connect_timeout(TIMEOUT).application_name("aside");
        Ok(Link { config, state: Mutex::default() })
    }

    /// Creates a table or an index. Another process may create it at the same time.
    pub(super) async fn create(&self, statement: &str) -> Result<(), StoreError> {
        let client = self.client().await.map_err(|error| self.cannot_open(&error))?;
        match client.batch_execute(statement).await {
            Ok(()) => Ok(()),
            Err(error) if is_already_there(&error) => Ok(()),
            Err(error) => Err(self.cannot_open(&describe(&error))),
        }
    }

    fn cannot_open(&self, problem: &dyn std::fmt::Display) -> StoreError {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let location = format!("postgres://{host}/{}", self.config.get_dbname().unwrap_or(""));
        StoreError::CannotOpen { location, problem: problem.to_string() }
    }

    /// Sends statements, all at once. Each can be repeated without harm.
    pub(super) async fn run(&self, commands: &[Command], pipeline: Pipeline) -> Result<Vec<Vec<Row>>, StoreError> {
        let mut problem = String::new();
        for attempt in 0..ATTEMPTS {
            let client = self.client().await?;
            let sent = timeout(TIMEOUT, send(&client, commands, pipeline)).await;
            let error = match sent {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) => error,
                Err(_) => {
                    self.forget(&client).await;
                    return Err(StoreError::Down(format!("no answer within {} s", TIMEOUT.as_secs())));
                }
            };
            problem = describe(&error);
            let is_conflict = error.code().is_some_and(|code| {
                [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
            });
            let is_lost = client.is_closed() || error.code().is_some_and(|code| code.code().starts_with("08"));
            if is_lost {
                self.forget(&client).await;
            }
            // A lost connection is reopened once.
            if !(is_conflict || (is_lost && attempt == 0)) {
                break;
            }
        }
        Err(StoreError::Down(problem))
    }

    async fn client(&self) -> Result<Arc<Client>, StoreError> {
        let mut state = self.state.lock().await;
        if let Some(client) = state.client.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        if let Some((at, problem)) = &state.failed
            && at.elapsed() < RECONNECT_PAUSE
        {
            return Err(StoreError::Down(problem.clone()));
        }
        let connected = timeout(TIMEOUT, self.connect()).await;
        let connected = connected.unwrap_or_else(|_| Err("no answer to the connection".to_owned()));
        match connected {
            Ok(client) => {
                let client = Arc::new(client);
                *state = LinkState { client: Some(Arc::clone(&client)), failed: None };
                Ok(client)
            }
            Err(problem) => {
                *state = LinkState { client: None, failed: Some((Instant::now(), problem.clone())) };
                Err(StoreError::Down(problem))
            }
        }
    }

    async fn connect(&self) -> Result<Client, String> {
        // The connection ends when its client is dropped, or with an error that the client gets as well.
        if self.config.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = self.config.connect(NoTls).await.map_err(|error| describe(&error))?;
            drop(tokio::spawn(async move { drop(connection.await) }));
            return Ok(client);
        }
        let tls = RustlsConnector::new()?;
        let (client, connection) = self.config.connect(tls).await.map_err(|error| describe(&error))?;
        drop(tokio::spawn(async move { drop(connection.await) }));
        Ok(client)
    }

    async fn forget(&self, client: &Arc<Client>) {
        let mut state = self.state.lock().await;
        if state.client.as_ref().is_some_and(|known| Arc::ptr_eq(known, client)) {
            state.client = None;
        }
    }
}

/// All statements are on their way before the first answer is read.
async fn send(
    client: &Client,
    commands: &[Command],
    pipeline: Pipeline,
) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    let rows = join_all(commands.iter().map(|command| command.run(client)));
    let rows = match pipeline {
        Pipeline::Separate => rows.await,
        // If a statement fails, the others do too, and the commit undoes everything.
        Pipeline::Transaction if commands.len() > 1 => {
            let (begun, rows, committed) =
                futures_util::future::join3(client.batch_execute("BEGIN"), rows, client.batch_execute("COMMIT")).await;
            begun?;
            let rows: Result<Vec<Vec<Row>>, tokio_postgres::Error> = rows.into_iter().collect();
            let rows = rows?;
            committed?;
            return Ok(rows);
        }
        Pipeline::Transaction => rows.await,
    };
    rows.into_iter().collect()
}

fn is_already_there(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::UNIQUE_VIOLATION, SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_OBJECT].contains(code)
    })
}

/// The reason of an error, which its display leaves out.
fn describe(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(database), _) => format!("{} ({})", database.message(), database.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
