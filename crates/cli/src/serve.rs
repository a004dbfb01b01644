//! `aside serve`: runs the gateway until it is told to stop.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aside_gateway::{Gateway, GatewayOptions, KeyAdmin, KeyOrigin, KeyRights, Listening};
use aside_session::UserFolders;
use aside_session::serve_table::{Limit, StoreChoice};
use tokio_util::sync::CancellationToken;

use crate::ExitStatus;
use crate::client_setup::{self, SetupClient};
use crate::output;
use crate::override_arguments::OverrideArguments;
use crate::report;

/// How often the config file is checked for changes.
const CONFIG_POLL: Duration = Duration::from_secs(2);

/// Serve every client and provider through one URL
///
/// A gateway: any client, SDK or agent keeps its own protocol and uses any
/// provider. Requests to a provider of the same protocol pass unchanged, apart from
/// the model's name and the key, unless the provider would refuse them; others are
/// translated. What was done is in the headers `aside-request` and `aside-repaired`
/// of each answer, and at GET /aside/requests.
///
/// Thinking that a client lost is put back where the provider wants it: the gateway
/// remembers every reply in gateway.db of the data folder, encrypted with gateway.key
/// next to it or with ASIDE_STORE_KEY.
///
/// Models are PROVIDER/MODEL, the names in [serve.models] of config.toml, or the
/// bare name of a model whose provider has a key. sim/DIALECT[:BEHAVIOUR] is the
/// built-in simulator, which needs no key.
///
/// Reads config.toml again on SIGHUP and when it changes. On SIGTERM or Ctrl+C,
/// running replies may finish; a second signal stops at once.
///
/// Exit code: 0 when it is told to stop, 2 wrong usage or config.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Paths: /v1/chat/completions, /v1/responses, /v1/messages, /v1beta/models/MODEL:generateContent,
/api/chat, /v1/models, /pass/PROVIDER/…, /aside/requests[/ID], /healthz, /readyz, /metrics.

Examples:
  aside serve
  ANTHROPIC_BASE_URL=http://127.0.0.1:4140 ANTHROPIC_AUTH_TOKEN=any claude --model sim/deepseek
  curl -i http://127.0.0.1:4140/v1/messages -H 'content-type: application/json' -d \\
    '{\"model\":\"sim/deepseek\",\"max_tokens\":500,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<ServeCommand>,

    #[command(flatten)]
    start: StartArguments,
}

#[derive(Debug, clap::Subcommand)]
enum ServeCommand {
    /// Print what a client needs to use the gateway
    Setup {
        #[arg(value_enum)]
        client: SetupClient,
        /// The model to use
        #[arg(long, default_value = "sim/deepseek")]
        model: String,
        /// The gateway's address, if it is not the one in the config
        #[arg(long, value_name = "URL")]
        url: Option<String>,
    },
    /// Create, list or revoke client keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Delete what is stored for a tenant
    #[command(subcommand)]
    Tenant(TenantCommand),
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    /// Create a key and print it once; only its hash is kept
    New {
        /// Its name, which is unique
        name: String,
        /// The tenant; by default the name
        #[arg(long, value_name = "T")]
        tenant: Option<String>,
        /// The models it may use, as patterns separated by commas
        #[arg(long, value_name = "G,…", value_delimiter = ',')]
        models: Vec<String>,
        /// A limit such as requests=60/m, tokens=2M/day, thinking=500k/day or money=20/day
        #[arg(long = "limit", value_name = "K=V", value_parser = limit)]
        limits: Vec<Limit>,
        /// A provider that it may reach under /pass
        #[arg(long = "pass", value_name = "PROVIDER")]
        pass: Vec<String>,
        /// Print one JSON object with the key and its hash
        #[arg(long)]
        json: bool,
    },
    /// List the keys, without the keys themselves
    List,
    /// Revoke a key of the store; it stops working within two seconds
    Revoke {
        /// The name of the key
        name: String,
    },
    /// Encrypt the memory with a new key
    ///
    /// The key in gateway.key or in the keyring is replaced, and a running gateway
    /// takes the new one. A key in ASIDE_STORE_KEY is changed to the one in
    /// ASIDE_STORE_KEY_NEW; every gateway then needs the new key and a restart.
    RotateStore,
}

#[derive(Debug, clap::Subcommand)]
enum TenantCommand {
    /// Delete all replies and receipts of a tenant
    Forget {
        /// The name of the tenant
        name: String,
    },
}

fn limit(word: &str) -> Result<Limit, String> {
    Limit::parse_pair(word).ok_or_else(|| "expected KIND=NUMBER/WINDOW, such as requests=60/m".to_owned())
}

#[derive(Debug, clap::Args)]
struct StartArguments {
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

impl StartArguments {
    fn options(&self) -> GatewayOptions {
        GatewayOptions {
            folders: UserFolders::from_environment(),
            overrides: self.overrides.overrides(),
            listen: self.listen,
            store: self.store.clone(),
            shadow: self.shadow,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let options = arguments.start.options();
    match &arguments.command {
        None => serve(&arguments.start, options),
        Some(ServeCommand::Setup { client, model, url }) => {
            let loaded = options.overrides.load(&options.folders)?;
            let url = url.clone().unwrap_or_else(|| format!("http://{}", loaded.serve.listen));
            write!(output::stdout(), "{}", client_setup::text(*client, &url, model))?;
            Ok(ExitStatus::Done)
        }
        Some(ServeCommand::Key(command)) => administer(&options, |admin| async move { run_key(&admin, command).await }),
        Some(ServeCommand::Tenant(TenantCommand::Forget { name })) => administer(&options, |admin| async move {
            admin.forget_tenant(name).await?;
            report::print_notice(&format!("everything stored for `{name}` is deleted"));
            Ok(())
        }),
    }
}

fn administer<F: Future<Output = anyhow::Result<()>>>(
    options: &GatewayOptions,
    work: impl FnOnce(KeyAdmin) -> F,
) -> anyhow::Result<ExitStatus> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { work(KeyAdmin::open(options).await?).await })?;
    Ok(ExitStatus::Done)
}

async fn run_key(admin: &KeyAdmin, command: &KeyCommand) -> anyhow::Result<()> {
    let mut out = output::stdout();
    match command {
        KeyCommand::New { name, tenant, models, limits, pass, json } => {
            let rights = KeyRights {
                tenant: tenant.clone(),
                models: models.clone(),
                limits: limits.clone(),
                pass: pass.clone(),
            };
            let made = admin.add(name, &rights).await?;
            if *json {
                writeln!(out, "{}", serde_json::json!({ "name": name, "key": made.key, "hash": made.hash }))?;
            } else {
                writeln!(out, "{}", made.key)?;
            }
            match made.toml {
                Some(toml) => report::print_notice(&format!("there is no store; add this to config.toml:\n\n{toml}")),
                None => report::print_notice("this key is shown only now; clients send it as their API key"),
            }
        }
        KeyCommand::List => {
            for key in admin.list().await? {
                let origin = match key.origin {
                    KeyOrigin::Config => "config",
                    KeyOrigin::Store => "store",
                };
                writeln!(out, "{}\t{}\t{origin}", key.name, key.tenant)?;
            }
        }
        KeyCommand::RotateStore => {
            let rotated = admin.rotate_store_key().await?;
            report::print_notice(&format!("the memory of {} tenants is encrypted with a new key", rotated.n_tenants));
            rotated.remedy.iter().for_each(|remedy| report::print_notice(remedy));
        }
        KeyCommand::Revoke { name } => {
            admin.revoke(name).await?;
            report::print_notice(&format!("the key `{name}` is revoked"));
        }
    }
    Ok(())
}

/// Lets the process open as many files as it may: every stream needs two sockets, and the usual limit is 1,024.
fn raise_open_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Where that is refused, the old limit is good enough to start with.
        let _refused = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    }
}

fn serve(arguments: &StartArguments, options: GatewayOptions) -> anyhow::Result<ExitStatus> {
    raise_open_file_limit();
    let config = options.folders.config.as_ref().map(|folder| folder.join("config.toml"));
    // Connections have threads of their own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served: anyhow::Result<()> = runtime.block_on(async {
        let gateway = Arc::new(Gateway::open(options).await?);
        if arguments.check_config {
            report::print_notice("the config is valid");
            return Ok(());
        }
        if let Some(path) = gateway.new_key_file() {
            let text = format!("created {}, the key that encrypts the memory; keep it private", path.display());
            report::print_notice(&text);
        }
        let listening = Listening::bind(&gateway).await?;
        print_address(listening.address()?);
        let (stop, stop_now) = (CancellationToken::new(), CancellationToken::new());
        let signals = tokio::spawn(wait_for_signals(Arc::clone(&gateway), stop.clone(), stop_now.clone()));
        let reloads = tokio::spawn(watch_config(Arc::clone(&gateway), config));
        let follower = Arc::clone(&gateway);
        let follows = tokio::spawn(async move { follower.follow_store().await });
        aside_gateway::serve(Arc::clone(&gateway), listening, stop, stop_now).await;
        signals.abort();
        reloads.abort();
        follows.abort();
        Ok(())
    });
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
    report::print_notice("running replies may finish; a second signal stops at once");
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
