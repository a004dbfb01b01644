//! `aside sim`: the simulator, until it is interrupted.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use aside_sim::{Options, Simulator, Stage};

use crate::report::Report;
use crate::{Outcome, user_files};

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Play every provider on this machine
///
/// Speaks every protocol on its usual path and enforces the real rules of every
/// dialect: a client that forgets what a provider demands gets that provider's
/// own refusal. No model is asked and nothing leaves this machine. A model is a
/// dialect, with a behaviour behind it where one is wanted; any key is accepted.
///
/// Exit code: 0 when it is interrupted, 2 you asked wrongly.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Behaviours: DIALECT:BEHAVIOUR as the model, or a line `sim: NAME [ARG] [key=value…]` in the prompt.
GET / of the running simulator lists them all.

Examples:
  aside sim
  aside sim --listen 8080 --rate 0
  curl -N http://127.0.0.1:4141/v1/chat/completions -d \\
    '{\"model\":\"generic:thoughts 3\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'"
)]
pub(crate) struct Arguments {
    /// Where to listen: an address with a port, or a port of this machine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4141", value_parser = address)]
    listen: SocketAddr,

    /// Tokens a second; 0 is as fast as it goes
    #[arg(long, value_name = "N", default_value = "60", value_parser = rate)]
    rate: f64,

    /// Another seed gives other words; the same seed the same bytes
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,

    /// Send in pieces of this many bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    chunk: Option<u32>,
}

fn address(word: &str) -> Result<SocketAddr, String> {
    let port = || word.parse().map(|port| SocketAddr::new(HOME, port));
    word.parse().or_else(|_| port()).map_err(|_| "expected ADDRESS:PORT or PORT".to_owned())
}

fn rate(word: &str) -> Result<f64, String> {
    let rate = word.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    rate.ok_or_else(|| "expected a number of tokens, 0 or more".to_owned())
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let chunk = arguments.chunk.and_then(|bytes| usize::try_from(bytes).ok());
    let options = Options { seed: Some(arguments.seed), rate: Some(arguments.rate), chunk, ..Options::default() };
    let stage = Stage::new(user_files::dialects()?, options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listen = arguments.listen;
        let simulator = Simulator::bind(listen, stage).await.map_err(|error| {
            Report::new(format!("cannot listen on {listen}: {error}")).hint("--listen 0 takes any free port")
        })?;
        introduce(simulator.address());
        // Whatever the signal comes to, there is nothing left to wait for.
        simulator.run(async { drop(tokio::signal::ctrl_c().await) }).await;
        Ok(Outcome::Done)
    })
}

/// Nobody need listen: a server that cannot say where it is serves all the same.
fn introduce(address: SocketAddr) {
    let url = format!("http://{address}");
    let question = r#"{"model":"generic","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let reach = if address.ip().is_loopback() { "" } else { "note: other machines can reach it\n" };
    let text = format!(
        "aside simulator at {url}; no model is asked, Ctrl+C ends it
{reach}
base URL  {url}/v1   openai-chat, openai-responses
          {url}      anthropic, gemini, ollama, bedrock, cohere
models    curl {url}/v1/models
try       curl -N {url}/v1/chat/completions -d '{question}'
"
    );
    let _unheard = std::io::stderr().write_all(text.as_bytes());
}
