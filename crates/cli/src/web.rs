//! `aside web`: the page on this machine.

use std::fs::{File, TryLockError};
use std::io::{BufRead, IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use aside_session::providers::env_var;
use aside_session::session_recorder::open_store;
use aside_session::{HintedError, SessionOptions, Trust, UserFolders};
use aside_web::{SecretChoice, Sessions, WebSecret, WebServer, login_url};

use crate::ExitStatus;
use crate::override_arguments::OverrideArguments;
use crate::report::print_notice;
use crate::session_arguments::SessionArguments;

const LOCALHOST_IP: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A shorter token could be guessed.
const MIN_TOKEN: usize = 16;

/// Browsers that can show a page in a window of its own.
const APP_BROWSERS: [&str; 6] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "brave-browser"];

/// Open sessions in a browser
///
/// Serves a page on this machine and opens it. The address has a token that works
/// once, within a minute; after that a cookie keeps the browser logged in for 30
/// days. Press Enter in the terminal for another address. Tools work in the folder
/// in which aside web was started.
///
/// Exit code: 0 when it is interrupted, 2 wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  aside web
  aside web -c --app
  aside web --print-url --listen 8800      over ssh: ssh -L 8800:127.0.0.1:8800 HOST
  aside web --listen 0.0.0.0:8800 --token-env WEB_TOKEN")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Arguments {
    /// The model of new sessions, as PROVIDER/MODEL
    #[arg(short, long, value_name = "MODEL")]
    model: Option<String>,

    #[command(flatten)]
    session: SessionArguments,

    /// Where to listen: an address with a port, or only a port for 127.0.0.1; by
    /// default the port used last, if it is free
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,

    /// Print the address and open no browser. While a server runs: print a new
    /// address of it
    #[arg(long)]
    print_url: bool,

    /// Open a separate window, with an installed Chromium, Chrome or Edge
    #[arg(long, conflicts_with = "print_url")]
    app: bool,

    /// Open no browser
    #[arg(long, conflicts_with = "app")]
    no_open: bool,

    /// Log every browser out first
    #[arg(long)]
    new_token: bool,

    /// The variable with the token to log in with, for an address that other
    /// machines can reach
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,

    /// Trust this folder from now on: send its AGENTS.md to the model
    #[arg(long)]
    trust: bool,

    #[command(flatten)]
    overrides: OverrideArguments,
}

fn address(word: &str) -> Result<SocketAddr, String> {
    let port = || word.parse().map(|port| SocketAddr::new(LOCALHOST_IP, port));
    word.parse().or_else(|_| port()).map_err(|_| "expected ADDRESS:PORT or PORT".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let folders = UserFolders::from_environment();
    let choice = if arguments.new_token { SecretChoice::Renew } else { SecretChoice::Keep };
    let state = folders.state.as_ref().map(|folder| folder.join("web.json"));
    let secret = WebSecret::open(state, choice);
    let secret = Arc::new(secret.map_err(|error| HintedError::new(format!("cannot keep the page's secret: {error}")))?);
    let other = OtherServer::find(&folders)?;
    if let (OtherServer::Taken { listen: Some(running) }, true) = (&other, arguments.print_url) {
        print_line(&login_url(*running, "/", &secret.login_token()?))?;
        return Ok(ExitStatus::Done);
    }
    let fixed_token = arguments.fixed_token()?;
    let sessions = Arc::new(Sessions::new(open_store(&folders)?, Box::new(arguments.options_maker(folders)?)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let server = arguments.bind(&secret, &other, fixed_token, sessions).await?;
        other.announce(server.address())?;
        if arguments.listen.is_none() && matches!(other, OtherServer::Ours { .. }) {
            secret.remember_port(server.address().port())?;
        }
        let path = server.session_path(&arguments.session.choice())?;
        let page = PageAddress { address: server.address(), secret: Arc::clone(&secret), path };
        arguments.show(&page)?;
        page.print_at_enter();
        server.run(stopped()).await?;
        Ok(ExitStatus::Done)
    })
}

/// Until Ctrl+C or SIGTERM.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return drop(tokio::signal::ctrl_c().await) };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => (),
        _ = terminated.recv() => (),
    }
}

impl Arguments {
    /// The token from the environment, and whether one is needed.
    fn fixed_token(&self) -> Result<Option<String>, HintedError> {
        let is_reachable = self.listen.is_some_and(|listen| !listen.ip().is_loopback());
        let Some(name) = &self.token_env else {
            let hint = "--token-env NAME names a variable with the token to log in with";
            let error = || HintedError::new("an address that other machines can reach needs a token").hint(hint);
            return if is_reachable { Err(error()) } else { Ok(None) };
        };
        let token = env_var(name).unwrap_or_default();
        if token.len() < MIN_TOKEN {
            let hint = format!("set it to a random text of at least {MIN_TOKEN} characters");
            return Err(HintedError::new(format!("{name} is not set, or too short")).hint(hint));
        }
        Ok(Some(token))
    }

    fn options_maker(
        &self,
        folders: UserFolders,
    ) -> Result<impl Fn() -> SessionOptions + Send + Sync + 'static, HintedError> {
        let (folder, model, overrides) = (crate::working_directory()?, self.model.clone(), self.overrides.overrides());
        let (continuation, is_trusted) = (self.session.continuation(), self.trust);
        Ok(move || SessionOptions {
            model: model.clone(),
            continuation,
            trust: if is_trusted { Trust::Given } else { Trust::AsBefore },
            overrides: overrides.clone(),
            // Slow enough to read.
            simulator_rate: Some(80.0),
            ..SessionOptions::new(folder.clone(), folders.clone())
        })
    }

    async fn bind(
        &self,
        secret: &Arc<WebSecret>,
        other: &OtherServer,
        token: Option<String>,
        sessions: Arc<Sessions>,
    ) -> Result<WebServer, HintedError> {
        let bind =
            async |listen| WebServer::bind(listen, Arc::clone(secret), token.clone(), Arc::clone(&sessions)).await;
        if let Some(listen) = self.listen {
            let failed = |error| {
                let hint = "--listen 0 takes any free port";
                HintedError::new(format!("cannot listen on {listen}: {error}")).hint(hint)
            };
            return bind(listen).await.map_err(failed);
        }
        let last = secret.last_port().filter(|_| matches!(other, OtherServer::Ours { .. }));
        if let Some(port) = last
            && let Ok(server) = bind(SocketAddr::new(LOCALHOST_IP, port)).await
        {
            return Ok(server);
        }
        let any = SocketAddr::new(LOCALHOST_IP, 0);
        bind(any).await.map_err(|error| HintedError::new(format!("cannot listen on this machine: {error}")))
    }

    /// Opens the page, or prints where it is.
    fn show(&self, page: &PageAddress) -> anyhow::Result<()> {
        if !page.address.ip().is_loopback() {
            print_notice("note: other machines can reach it; the token is needed to log in");
        }
        if self.print_url || self.no_open {
            print_line(&page.url()?)?;
            return Ok(());
        }
        let url = page.url()?;
        let opened = if self.app { open_app(&url) } else { open_browser(&url) };
        match opened {
            Ok(()) => print_notice(&format!(
                "the page is at http://{}; press Enter for another address, Ctrl+C to stop",
                page.address
            )),
            Err(why) => {
                print_notice(&format!("{why}; open this address:"));
                print_line(&url)?;
            }
        }
        Ok(())
    }
}

/// Where the page is, and what is needed to log in.
struct PageAddress {
    address: SocketAddr,
    secret: Arc<WebSecret>,
    path: String,
}

impl PageAddress {
    fn url(&self) -> std::io::Result<String> {
        Ok(login_url(self.address, &self.path, &self.secret.login_token()?))
    }

    /// Enter in the terminal prints another address.
    fn print_at_enter(self) {
        if !std::io::stdin().is_terminal() {
            return;
        }
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let printed = line.and_then(|_| self.url()).and_then(|url| print_line(&url));
                if printed.is_err() {
                    return;
                }
            }
        });
    }
}

fn print_line(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Whether another server of this user runs.
enum OtherServer {
    /// This is the one; the lock is held until the process ends.
    Ours { lock: File },
    /// Another one runs, at this address.
    Taken { listen: Option<SocketAddr> },
    /// Without a state folder nothing is known.
    Unknown,
}

impl OtherServer {
    fn find(folders: &UserFolders) -> Result<OtherServer, HintedError> {
        let Some(folder) = &folders.state else { return Ok(OtherServer::Unknown) };
        let path = folder.join("web.lock");
        let failed = |error: std::io::Error| HintedError::new(format!("cannot use {}: {error}", path.display()));
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let lock = options.open(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(OtherServer::Ours { lock }),
            Err(TryLockError::WouldBlock) => {
                let text = std::fs::read_to_string(&path).map_err(failed)?;
                Ok(OtherServer::Taken { listen: text.trim().parse().ok() })
            }
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    /// Tells other processes where the server is.
    fn announce(&self, address: SocketAddr) -> std::io::Result<()> {
        let OtherServer::Ours { lock } = self else { return Ok(()) };
        lock.set_len(0)?;
        let mut lock = lock;
        std::io::Seek::rewind(&mut lock)?;
        writeln!(lock, "{address}")
    }
}

/// Starts a program that goes on without us.
fn start(command: &mut Command) -> std::io::Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

fn open_browser(url: &str) -> Result<(), String> {
    let has_screen = cfg!(target_os = "macos") || env_var("DISPLAY").is_some() || env_var("WAYLAND_DISPLAY").is_some();
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    if !has_screen || find_program(&[opener]).is_none() {
        return Err("no browser can be opened here".to_owned());
    }
    start(Command::new(opener).arg(url)).map_err(|error| format!("{opener} failed: {error}"))
}

fn open_app(url: &str) -> Result<(), String> {
    let Some(browser) = find_program(&APP_BROWSERS) else {
        return Err("there is no Chromium, Chrome or Edge in the PATH".to_owned());
    };
    let profile = UserFolders::from_environment().state.map(|folder| folder.join("web-profile"));
    let mut command = Command::new(&browser);
    command.arg(format!("--app={url}"));
    if let Some(profile) = profile {
        command.arg(format!("--user-data-dir={}", profile.display()));
    }
    start(command.args(["--no-first-run", "--no-default-browser-check"]))
        .map_err(|error| format!("{} failed: {error}", browser.display()))
}

/// The first of these programs in the PATH.
fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let is_program = |path: &Path| path.is_file();
    names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| is_program(path))
}
