//! `aside serve`: runs the gateway until it is told to stop.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aside_gateway::{Gateway, GatewayOptions, Listening};
use aside_session::UserFolders;
use aside_session::serve_table::StoreChoice;
use tokio_util::sync::CancellationToken;

use crate::ExitStatus;
use crate::override_arguments::OverrideArguments;
use crate::report;

/// How often the config file is looked at.
const CONFIG_POLL: Duration = Duration::from_secs(2);

/// Serve every client and provider through one URL
///
/// A gateway: any client, SDK or agent keeps its own protocol and uses any
/// provider. Requests to a provider of the same protocol pass unchanged, apart from
/// the model's name and the key, unless the provider would refuse them; others are
/// translated. What was done is in the headers `aside-request` and `aside-repaired`
/// of each answer, and at GET /aside/requests.
///
/// Models are PROVIDER/MODEL, the names in [serve.models] of config.toml, or the
/// bare name of a model whose provider has a key. sim/DIALECT[:BEHAVIOUR] is the
/// built-in simulator, which needs no key.
///
/// Reads config.toml again on SIGHUP and when it changes. On SIGTERM or Ctrl+C,
/// running replies may end; a second signal ends at once.
///
/// Exit code: 0 when it is told to stop, 2 wrong usage or config.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Paths: /v1/chat/completions /v1/responses /v1/messages /v1beta/models/MODEL:generateContent /api/chat,
/v1/models, /pass/PROVIDER/…, /aside/requests[/ID], /healthz, /readyz, /metrics.

Examples:
  aside serve
  ANTHROPIC_BASE_URL=http://127.0.0.1:4140 claude --model sim/deepseek
  curl -i http://127.0.0.1:4140/v1/messages -H 'content-type: application/json' -d \\
    '{\"model\":\"sim/deepseek\",\"max_tokens\":500,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'"
)]
pub(crate) struct Arguments {
    /// Where to listen: an address with a port, or only a port for 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,

    /// Where replies are remembered: sqlite, none or postgres://…
    #[arg(long, value_name = "URL", value_parser = store)]
    store: Option<StoreChoice>,

    /// Change nothing, and only report what would be repaired, refused or lost
    #[arg(long)]
    shadow: bool,

    /// Check the config and exit
    #[arg(long)]
    check_config: bool,

    #[command(flatten)]
    overrides: OverrideArguments,
}

fn address(word: &str) -> Result<SocketAddr, String> {
    let port = || word.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    word.parse().or_else(|_| port()).map_err(|_| "expected ADDRESS:PORT or PORT".to_owned())
}

fn store(word: &str) -> Result<StoreChoice, String> {
    StoreChoice::parse(word).ok_or_else(|| "expected sqlite, none or postgres://…".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let options = GatewayOptions {
        folders: UserFolders::from_environment(),
        overrides: arguments.overrides.overrides(),
        listen: arguments.listen,
        store: arguments.store.clone(),
        shadow: arguments.shadow,
    };
    let config = options.folders.config.as_ref().map(|folder| folder.join("config.toml"));
    let gateway = Arc::new(Gateway::new(options)?);
    if arguments.check_config {
        report::print_notice("the config is fine");
        return Ok(ExitStatus::Done);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served: anyhow::Result<()> = runtime.block_on(async {
        let listening = Listening::bind(&gateway).await?;
        print_address(listening.address()?);
        let (stop, stop_now) = (CancellationToken::new(), CancellationToken::new());
        let signals = tokio::spawn(wait_for_signals(Arc::clone(&gateway), stop.clone(), stop_now.clone()));
        let reloads = tokio::spawn(watch_config(Arc::clone(&gateway), config));
        aside_gateway::serve(Arc::clone(&gateway), listening, stop, stop_now).await;
        signals.abort();
        reloads.abort();
        Ok(())
    });
    // Replies that may not end any more are cut off.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served.map(|()| ExitStatus::Done)
}

/// The first signal drains, the second ends at once; SIGHUP reads the config again.
async fn wait_for_signals(gateway: Arc<Gateway>, stop: CancellationToken, stop_now: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hang_up)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        return;
    };
    loop {
        tokio::select! {
            _ = hang_up.recv() => reload(&gateway),
            _ = terminate.recv() => stop_step(&gateway, &stop, &stop_now),
            _ = interrupt.recv() => stop_step(&gateway, &stop, &stop_now),
        }
    }
}

fn stop_step(gateway: &Gateway, stop: &CancellationToken, stop_now: &CancellationToken) {
    if stop.is_cancelled() {
        stop_now.cancel();
        return;
    }
    report::print_notice("running replies may end; a second signal ends at once");
    gateway.drain();
    stop.cancel();
}

fn reload(gateway: &Gateway) {
    match gateway.reload() {
        Ok(()) => report::print_notice("the config was read again"),
        Err(error) => {
            report::print_error(&error);
            report::print_notice("the old config stays");
        }
    }
}

/// Reads the config again when the file changes.
async fn watch_config(gateway: Arc<Gateway>, config: Option<PathBuf>) {
    let Some(path) = config else { return };
    let changed = || -> Option<(SystemTime, u64)> {
        let file = std::fs::metadata(&path).ok()?;
        Some((file.modified().ok()?, file.len()))
    };
    let mut known = changed();
    loop {
        tokio::time::sleep(CONFIG_POLL).await;
        let now = changed();
        if now != known {
            known = now;
            reload(&gateway);
        }
    }
}

/// Prints the address and an example. Ignores a closed standard error.
fn print_address(address: SocketAddr) {
    let url = format!("http://{address}");
    let question = r#"{"model":"sim/deepseek","messages":[{"role":"user","content":"hi"}]}"#;
    let text = format!(
        "aside gateway listening on {url}; press Ctrl+C to stop

base URL  {url}/v1   OpenAI Chat Completions and Responses
          {url}      Anthropic, Gemini, Ollama
models    curl {url}/v1/models
receipts  curl {url}/aside/requests
try       curl -i {url}/v1/chat/completions -d '{question}'
"
    );
    let _ignored = std::io::stderr().write_all(text.as_bytes());
}
