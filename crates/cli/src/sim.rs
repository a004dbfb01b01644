//! `aside sim`: runs the simulator until it is interrupted.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use aside_session::HintedError;
use aside_session::UserFolders;
use aside_sim::{ScriptOptions, Service, Simulator, Strictness};

use crate::ExitStatus;

const LOCALHOST_IP: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Simulate every provider on this machine
///
/// Serves every protocol on its usual path and enforces the real rules of every
/// dialect: a client that omits what a provider demands gets that provider's own
/// error. No model is called and nothing leaves this machine. The model's name is
/// a dialect or a real name, optionally with a behaviour; any key is accepted.
///
/// Prints one line for each request: the status, the client, the model and its
/// dialect, and what happened to the thinking of earlier replies. The newest 100
/// are at GET /aside/requests, as JSON.
///
/// Exit code: 0 when it is interrupted, 2 wrong usage.
#[derive(Debug, clap::Args)]
#[command(after_help = "Models: DIALECT, DIALECT/MODEL or a real name such as claude-sonnet-5.
Behaviours: MODEL:BEHAVIOUR as the model, or a line `sim: NAME [ARG] [key=value…]` in the prompt.
GET / of the running simulator lists them all, and the line `sim: help` is answered with what each does.
Lines `sim: call TOOL {ARGUMENTS}` are the tool calls of one turn.

Examples:
  aside sim
  aside sim --listen 8080 --rate 0
  curl -N http://127.0.0.1:4141/v1/chat/completions -d \\
    '{\"model\":\"generic:thoughts 3\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'")]
pub(crate) struct Arguments {
    /// Where to listen: an address with a port, or only a port for 127.0.0.1
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4141", value_parser = address)]
    listen: SocketAddr,

    /// Tokens per second; 0 is as fast as possible
    #[arg(long, value_name = "N", default_value = "60", value_parser = rate)]
    rate: f64,

    /// The seed of the generated text; the same seed gives the same bytes
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,

    /// Also refuse a request without the thinking of an earlier reply where the
    /// provider accepts it and the thinking is silently lost
    #[arg(long)]
    strict: bool,

    /// Send in chunks of this many bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    chunk: Option<u32>,
}

fn address(word: &str) -> Result<SocketAddr, String> {
    let port = || word.parse().map(|port| SocketAddr::new(LOCALHOST_IP, port));
    word.parse().or_else(|_| port()).map_err(|_| "expected ADDRESS:PORT or PORT".to_owned())
}

fn rate(word: &str) -> Result<f64, String> {
    let rate = word.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "expected a number of tokens, 0 or more".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitStatus> {
    let chunk = arguments.chunk.and_then(|bytes| usize::try_from(bytes).ok());
    let options =
        ScriptOptions { seed: Some(arguments.seed), rate: Some(arguments.rate), chunk, ..ScriptOptions::default() };
    let strictness = if arguments.strict { Strictness::RefuseLosses } else { Strictness::AsProvider };
    let service = Service::new(UserFolders::from_environment().dialects()?, options)
        .with_strictness(strictness)
        // A closed standard error does not stop the simulator.
        .with_observer(|receipt| drop(writeln!(std::io::stderr(), "{receipt}")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = arguments.listen;
        let simulator = Simulator::bind(listen, service).await.map_err(|error| {
            HintedError::new(format!("cannot listen on {listen}: {error}")).hint("--listen 0 takes any free port")
        })?;
        print_address(simulator.address());
        // Stop in any case, even if the signal handler fails.
        simulator.run(async { drop(tokio::signal::ctrl_c().await) }).await;
        Ok(ExitStatus::Done)
    })
}

/// Prints the address and an example. Ignores a closed standard error.
fn print_address(address: SocketAddr) {
    let url = format!("http://{address}");
    let question = r#"{"model":"generic","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let reach = if address.ip().is_loopback() { "" } else { "note: other machines can reach it\n" };
    let text = format!(
        "aside simulator listening on {url}; no model is called; press Ctrl+C to stop
{reach}
base URL  {url}/v1   openai-chat, openai-responses
          {url}      anthropic, gemini, ollama, bedrock, cohere
models    curl {url}/v1/models
try       curl -N {url}/v1/chat/completions -d '{question}'
"
    );
    let _ignored = std::io::stderr().write_all(text.as_bytes());
}
