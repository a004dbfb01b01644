//! Asking the person at the terminal before a tool does something.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};

use aside_core::screen::{neutral, neutral_line};
use aside_engine::tools::{Asker, NobodyToAsk, Permit, Question};
use futures_util::future::BoxFuture;

use crate::report::tell;

/// The person, if there is one.
pub(crate) fn on_this_terminal() -> Box<dyn Asker> {
    // The answer is read from the terminal itself: standard input may be a pipe.
    match File::open("/dev/tty") {
        Ok(_) if std::io::stderr().is_terminal() => Box::new(Person),
        _ => Box::new(NobodyToAsk),
    }
}

struct Person;

impl Asker for Person {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || ask(&question)).await;
            asked.ok().and_then(Result::ok).unwrap_or(Permit::No(None))
        })
    }

    fn trouble(&self, what: &str) {
        tell(what);
    }
}

/// Until one of the answers is given; the end of input is a no.
fn ask(question: &Question) -> std::io::Result<Permit> {
    let mut err = std::io::stderr().lock();
    let Question { tool, subject, preview, covers, .. } = question;
    // What the model wrote must not draw its own prompt.
    writeln!(err, "\r\x1b[2K{}: {}", neutral_line(tool), neutral(subject))?;
    if let Some(preview) = preview {
        writeln!(err, "{}", neutral(preview))?;
    }
    let mut lines = BufReader::new(File::open("/dev/tty")?);
    let longer = match covers {
        Some(covers) => format!(" `{}` for this [s]ession or this [p]roject,", neutral_line(covers)),
        None => String::new(),
    };
    loop {
        write!(err, "allow? [y]es,{longer} [n]o, or a word to the model: ")?;
        err.flush()?;
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Ok(Permit::No(None));
        }
        match line.trim() {
            "" => (),
            "y" | "yes" => return Ok(Permit::Once),
            "s" | "session" if covers.is_some() => return Ok(Permit::Session),
            "p" | "project" if covers.is_some() => return Ok(Permit::Project),
            "n" | "no" => return Ok(Permit::No(None)),
            word => return Ok(Permit::No(Some(word.to_owned()))),
        }
    }
}
