//! The options that choose the session to continue.

use aside_session::{Continuation, SessionChoice};

#[derive(Debug, clap::Args)]
pub(crate) struct SessionArguments {
    /// Continue the most recent session of this folder or its repository
    #[arg(short = 'c', long = "continue", conflicts_with = "resume", group = "stored")]
    last: bool,

    /// With -c: the most recent session of any folder
    #[arg(long, requires = "last")]
    anywhere: bool,

    /// Continue this session: its id, title, or the beginning of either
    #[arg(short, long, value_name = "ID", group = "stored")]
    resume: Option<String>,

    /// Continue in a copy of the session; the original does not change
    #[arg(long, requires = "stored")]
    fork: bool,
}

impl SessionArguments {
    pub(crate) fn choice(&self) -> SessionChoice {
        match (&self.resume, self.last, self.anywhere) {
            (Some(word), ..) => SessionChoice::Named(word.clone()),
            (None, true, true) => SessionChoice::LastAnywhere,
            (None, true, false) => SessionChoice::Last,
            (None, false, _) => SessionChoice::New,
        }
    }

    pub(crate) fn continuation(&self) -> Continuation {
        if self.fork { Continuation::Copy } else { Continuation::Itself }
    }
}
