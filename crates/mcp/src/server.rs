//! What a user says about a server.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aside_confine::{Confine, Want};

/// One server, by the name its tools begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    pub name: String,
    pub way: Way,
}

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum Way {
    /// A process that speaks on its standard input and output.
    /// `variables` is all it finds in its environment, beside where programs, the
    /// home folder and temporary files are, and the language.
    Command { program: String, arguments: Vec<String>, variables: Vec<(String, String)>, want: Want },
    /// Streamable HTTP.
    Url { url: String, headers: Vec<(String, String)> },
}

/// Values may be secrets, so only names are shown.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Way::Command { program, arguments, variables, want } => f
                .debug_struct("Command")
                .field("program", program)
                .field("arguments", arguments)
                .field("variables", &names(variables))
                .field("want", want)
                .finish(),
            Way::Url { url, headers } => {
                f.debug_struct("Url").field("url", url).field("headers", &names(headers)).finish()
            }
        }
    }
}

/// What servers find around them.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// Where their processes run.
    pub folder: PathBuf,
    /// How their processes are confined.
    pub confine: Arc<Confine>,
    /// How long one may take until it has listed its tools.
    pub patience: Duration,
    /// How long a call may go without a word; a report of progress is one.
    pub silence: Duration,
}

impl Surroundings {
    pub fn new(folder: PathBuf, confine: Arc<Confine>) -> Surroundings {
        let (patience, silence) = (Duration::from_secs(10), Duration::from_secs(120));
        Surroundings { folder, confine, patience, silence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_of_a_server_holds_no_secret() {
        let pair = || vec![("token".to_owned(), "hush".to_owned())];
        for way in [
            Way::Command { program: "files".to_owned(), arguments: Vec::new(), variables: pair(), want: Want::Usual },
            Way::Url { url: "https://x.example".to_owned(), headers: pair() },
        ] {
            let shown = format!("{way:?}");
            assert!(shown.contains("token") && !shown.contains("hush"), "{shown}");
        }
    }
}
