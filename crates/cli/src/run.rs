//! From the command line to a session that runs: which model, whose key, which
//! tools. Every front end begins here.

use std::sync::Arc;

use aside_core::block::Block;
use aside_engine::{Endpoint as Target, Http, Secret, Session};
use tokio_util::sync::CancellationToken;

use crate::choice::{self, Named};
use crate::providers::{Endpoint, Provider, Providers, environment};
use crate::report::{Report, tell};
use crate::settings::Overrides;
use crate::user_files;
use crate::{keys, local};

/// What a command line wants of a session.
pub(crate) struct Wanted<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) tools: bool,
    pub(crate) yes: bool,
    pub(crate) deny: bool,
}

/// One thread is enough: everything waits most of the time.
pub(crate) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?)
}

pub(crate) async fn session(wanted: &Wanted<'_>, overrides: &Overrides) -> anyhow::Result<Session> {
    let dialects = Arc::new(user_files::dialects()?);
    let loaded = overrides.load()?;
    let providers = Providers { dialects: &dialects, tables: &loaded.providers, env: &environment };
    let named = Named { flag: wanted.model, ..loaded.named() };
    let choice = match named.first() {
        Some(choice) => choice,
        None => {
            // A key in the environment is faster to see than a server.
            let by_key = choice::choose(&named, &providers, None);
            let choice = match by_key.is_simulated() {
                true => {
                    let local = local::first_model(&local::servers(&dialects).await);
                    choice::choose(&named, &providers, local.as_deref())
                }
                false => by_key,
            };
            tell(&format!("{}: {}", choice.name, choice.why));
            choice
        }
    };
    let provider = providers.resolve(&choice.name, None)?;
    let mut settings = loaded.settings;
    provider.lay_defaults(&mut settings);
    let target = target(provider).await?;
    let session = Session::new(Arc::clone(&dialects), target, settings, Http::default());
    Ok(session)
}

/// The provider with its key and its URL, the simulator's included.
async fn target(provider: Provider) -> Result<Target, Report> {
    let key = keys::find(&provider)?;
    let base_url = match provider.endpoint {
        Endpoint::At(url) => url,
        Endpoint::BuiltInSimulator => simulator().await?,
        Endpoint::Missing { what, remedy } => return Err(Report::new(what).hint(remedy)),
    };
    let Provider { id, dialect, model, headers, extra_body, .. } = provider;
    let account = key.as_deref().map(keys::fingerprint);
    let key = key.map(Secret::new);
    Ok(Target { provider: id, dialect, model, base_url, key, headers, extra_body, account })
}

async fn simulator() -> Result<String, Report> {
    Err(Report::new("no simulator yet"))
}

/// The prompt as blocks, with what it attaches.
pub(crate) fn attach(prompt: &str) -> Result<Vec<Block>, Report> {
    Ok(vec![Block::Text(aside_core::block::Text { text: prompt.to_owned(), ..Default::default() })])
}

/// The first Ctrl+C stops the turn and keeps what came; the second leaves.
pub(crate) fn cancelled_by_ctrl_c() -> CancellationToken {
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(crate::Outcome::Interrupted as i32);
            }
        }
    });
    cancel
}
