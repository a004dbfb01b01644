//! What a user says about a server.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
    Command { program: String, arguments: Vec<String>, variables: Vec<(String, String)> },
    /// Streamable HTTP.
    Url { url: String, headers: Vec<(String, String)> },
}

/// Values may be secrets, so only names are shown.
impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |pairs: &[(String, String)]| pairs.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        match self {
            Way::Command { program, arguments, variables } => f
                .debug_struct("Command")
                .field("program", program)
                .field("arguments", arguments)
                .field("variables", &names(variables))
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
    /// Variables they do not get to see unless they are given them by name.
    pub hidden_variables: Vec<String>,
    /// How long one may take until it has listed its tools.
    pub patience: Duration,
    /// How long a call may go without a word; a report of progress is one.
    pub silence: Duration,
}

impl Surroundings {
    pub fn new(folder: PathBuf, hidden_variables: Vec<String>) -> Surroundings {
        let (patience, silence) = (Duration::from_secs(10), Duration::from_secs(120));
        Surroundings { folder, hidden_variables, patience, silence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_of_a_server_holds_no_secret() {
        let pair = || vec![("token".to_owned(), "hush".to_owned())];
        for way in [
            Way::Command { program: "files".to_owned(), arguments: Vec::new(), variables: pair() },
            Way::Url { url: "https://x.example".to_owned(), headers: pair() },
        ] {
            let shown = format!("{way:?}");
            assert!(shown.contains("token") && !shown.contains("hush"), "{shown}");
        }
    }
}
