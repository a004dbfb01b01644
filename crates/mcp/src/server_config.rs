//! The configuration of a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aside_confine::{Confine, RequestedAccess};

/// One server. The names of its tools begin with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    pub name: String,
    pub transport: McpTransport,
}

/// How to connect to a server.
#[derive(Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A process that communicates over standard input and output. Its environment has only `variables`,
    /// `PATH`, `HOME`, `LANG` and `TMPDIR`.
    Command { program: String, arguments: Vec<String>, variables: Vec<(String, String)>, access: RequestedAccess },
    /// A URL, for streamable HTTP.
    Url { url: String, headers: Vec<(String, String)> },
}

/// Shows only names, because values may be secrets.
impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            McpTransport::Command { program, arguments, variables, access } => f
                .debug_struct("Command")
                .field("program", program)
                .field("arguments", arguments)
                .field("variables", &names(variables))
                .field("access", access)
                .finish(),
            McpTransport::Url { url, headers } => {
                f.debug_struct("Url").field("url", url).field("headers", &names(headers)).finish()
            }
        }
    }
}

/// The environment in which servers run.
#[derive(Debug, Clone)]
pub struct ServerEnvironment {
    /// The working directory of their processes.
    pub folder: PathBuf,
    /// How their processes are confined.
    pub confine: Arc<Confine>,
    /// How long a server may take to start and list its tools.
    pub startup_timeout: Duration,
    /// How long a call may take without progress.
    pub call_idle_timeout: Duration,
}

impl ServerEnvironment {
    pub fn new(folder: PathBuf, confine: Arc<Confine>) -> ServerEnvironment {
        let (startup_timeout, call_idle_timeout) = (Duration::from_secs(10), Duration::from_secs(120));
        ServerEnvironment { folder, confine, startup_timeout, call_idle_timeout }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_of_a_server_shows_no_secret() {
        let pair = || vec![("token".to_owned(), "hush".to_owned())];
        for transport in [
            McpTransport::Command {
                program: "files".to_owned(),
                arguments: Vec::new(),
                variables: pair(),
                access: RequestedAccess::Standard,
            },
            McpTransport::Url { url: "https://x.example".to_owned(), headers: pair() },
        ] {
            let shown = format!("{transport:?}");
            assert!(shown.contains("token") && !shown.contains("hush"), "{shown}");
        }
    }
}
