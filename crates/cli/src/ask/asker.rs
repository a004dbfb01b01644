//! Asking the person at the terminal before a tool does something.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use aside_core::question::{Choice, Choices, Layout, Rendered, Selected, TOO_EARLY_MS, render};
use aside_engine::tools::{Asker, NobodyToAsk, Permit, Question};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::terminal::{Key, Keys, Lines, Terminal};
use crate::report::tell;

/// What is above and below the command or diff of a question.
pub(crate) const ROWS_AROUND: usize = 8;
pub(crate) const FEWEST_ROWS: usize = 5;

/// The person, if there is one. Ctrl+C at a question also stops the turn.
pub(crate) fn on_this_terminal(stop: &CancellationToken) -> Box<dyn Asker> {
    // The answer is read from the terminal itself: standard input may be a pipe.
    match Terminal::open() {
        Ok(terminal) if std::io::stderr().is_terminal() => {
            let answers = if std::io::stdin().is_terminal() { Answers::Keys } else { Answers::Lines };
            Box::new(Person { terminal, answers, stop: stop.clone() })
        }
        _ => Box::new(NobodyHere),
    }
}

/// Nobody can be asked, but somebody may read what is said.
struct NobodyHere;

impl Asker for NobodyHere {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        NobodyToAsk.ask(question)
    }

    fn trouble(&self, what: &str) {
        tell(what);
    }
}

/// How answers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// One key each. What is typed before a question can be read does not count.
    Keys,
    /// A line each, for whoever feeds standard input from elsewhere.
    Lines,
}

struct Person {
    terminal: Terminal,
    answers: Answers,
    stop: CancellationToken,
}

impl Asker for Person {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(async move {
            let answer = match self.answers {
                Answers::Keys => self.by_key(&question).await,
                Answers::Lines => self.by_line(&question).await,
            };
            // A terminal that cannot be read or written to has nobody at it.
            answer.unwrap_or(Permit::No(None))
        })
    }

    fn trouble(&self, what: &str) {
        tell(what);
    }
}

impl Person {
    fn layout(&self, show: Show) -> Layout {
        let (width, height) = self.terminal.size();
        let rows = match show {
            Show::Part => Some(height.saturating_sub(ROWS_AROUND).max(FEWEST_ROWS)),
            Show::All => None,
        };
        Layout { width: Some(width), rows }
    }

    fn show(&self, question: &Question, show: Show) -> std::io::Result<()> {
        put(&render(question, self.layout(show)))
    }

    async fn by_key(&self, question: &Question) -> std::io::Result<Permit> {
        let mut keys = self.terminal.keys()?;
        let mut choices = Choices::new(question);
        self.show(question, Show::Part)?;
        self.offer(&choices)?;
        keys.wait_until_read().await?;
        loop {
            let key = keys.next().await?;
            let chosen = match key {
                Key::Letter('v') => {
                    end_line()?;
                    self.show(question, Show::All)?;
                    keys.forget()?;
                    None
                }
                Key::Letter(letter) => choices.by_key(letter),
                Key::Next => {
                    choices.select_next();
                    None
                }
                Key::Previous => {
                    choices.select_previous();
                    None
                }
                Key::Enter => choices.selected(),
                Key::Interrupt | Key::End => {
                    end_line()?;
                    // The turn is stopped first, so that the model is not told.
                    self.stop.cancel();
                    return Ok(Permit::No(None));
                }
                Key::Other => None,
            };
            let Some(choice) = chosen else {
                self.offer(&choices)?;
                continue;
            };
            say_chosen(choice)?;
            return match choice {
                Choice::Once => Ok(Permit::Once),
                Choice::Session => Ok(Permit::Session),
                Choice::Project => Ok(Permit::Project),
                Choice::No => Ok(Permit::No(None)),
                Choice::Message => self.message(keys).await,
            };
        }
    }

    /// A line to the model; it is written as any line on this terminal is.
    async fn message(&self, keys: Keys) -> std::io::Result<Permit> {
        drop(keys);
        let line = self.terminal.lines()?.next("message to the model: ").await?;
        let line = line.unwrap_or_default();
        let line = line.trim();
        Ok(Permit::No((!line.is_empty()).then(|| line.to_owned())))
    }

    /// Draws the line of answers, over itself if it stands there already.
    fn offer(&self, choices: &Choices) -> std::io::Result<()> {
        let (width, _) = self.terminal.size();
        let mut err = std::io::stderr().lock();
        write!(err, "\r\x1b[2K{}", offered(choices, width))?;
        err.flush()
    }

    async fn by_line(&self, question: &Question) -> std::io::Result<Permit> {
        let mut show = Show::Part;
        loop {
            let mut lines: Lines = self.terminal.lines()?;
            self.show(question, show)?;
            let longer = if Choices::new(question).offers_lasting() { ", [s]ession, [p]roject" } else { "" };
            let prompt = format!("allow? [y]es{longer}, [n]o, [v]iew, or a message to the model: ");
            let Some(line) = lines.next(&prompt).await? else { return Ok(Permit::No(None)) };
            match answer(&line, question) {
                Some(permit) => return Ok(permit),
                None => show = Show::All,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    Part,
    All,
}

/// What a line means; none asks to see all of it. A line that is no answer is a
/// no, and goes to the model.
fn answer(line: &str, question: &Question) -> Option<Permit> {
    let offers_lasting = Choices::new(question).offers_lasting();
    Some(match line.trim() {
        "v" | "view" => return None,
        "y" | "yes" => Permit::Once,
        "s" | "session" if offers_lasting => Permit::Session,
        "p" | "project" if offers_lasting => Permit::Project,
        "" | "n" | "no" => Permit::No(None),
        message => Permit::No(Some(message.to_owned())),
    })
}

fn put(rendered: &Rendered) -> std::io::Result<()> {
    let mut err = std::io::stderr().lock();
    write!(err, "\r\x1b[2K")?;
    for line in rendered.lines() {
        writeln!(err, "{line}")?;
    }
    if let Some(covers) = &rendered.covers {
        writeln!(err, "{covers}")?;
    }
    err.flush()
}

fn end_line() -> std::io::Result<()> {
    writeln!(std::io::stderr())
}

fn say_chosen(choice: Choice) -> std::io::Result<()> {
    writeln!(std::io::stderr(), "\r\x1b[2Kallow? {}", choice.label())
}

/// The answers on one line; in a narrow terminal the keys alone.
fn offered(choices: &Choices, width: usize) -> String {
    let line = |name: &dyn Fn(Choice) -> String, view: &str| {
        let named = choices.iter().map(|(choice, selected)| match selected {
            Selected::Yes => format!("›{}", name(choice)),
            Selected::No => name(choice),
        });
        let named: Vec<String> = named.chain([view.to_owned()]).collect();
        format!("allow? {}", named.join(" · "))
    };
    let whole = line(&|choice| format!("{} {}", choice.key(), choice.label()), "v all");
    // The cursor stands behind it, and a second row could not be drawn over.
    if whole.chars().count() < width { whole } else { line(&|choice| choice.key().to_string(), "v") }
}

/// How long keys do not count after a question.
pub(super) const TOO_EARLY: Duration = Duration::from_millis(TOO_EARLY_MS);

#[cfg(test)]
mod tests {
    use super::*;
    use aside_engine::tools::Risk;

    fn question(covers: bool) -> Question {
        let covers = covers.then(|| "shell:make".to_owned());
        Question { covers, ..Question::new("shell", "make", Risk::Runs) }
    }

    #[test]
    fn only_an_answer_that_is_offered_permits() {
        let no = |message: &str| Some(Permit::No(Some(message.to_owned())));
        #[rustfmt::skip]
        let cases = [
            ("y\n",       true,  Some(Permit::Once)),
            (" yes ",     false, Some(Permit::Once)),
            ("s",         true,  Some(Permit::Session)),
            ("s",         false, no("s")),
            ("project",   true,  Some(Permit::Project)),
            ("n",         true,  Some(Permit::No(None))),
            ("",          true,  Some(Permit::No(None))),
            ("yes please", true, no("yes please")),
            ("v",         true,  None),
        ];
        for (line, covers, permit) in cases {
            assert_eq!(answer(line, &question(covers)), permit, "{line:?}");
        }
    }

    #[test]
    fn the_answers_fit_on_one_row() {
        let mut choices = Choices::new(&question(true));
        assert!(offered(&choices, 100).starts_with("allow? y once · s this session"));
        choices.select_next();
        assert_eq!(offered(&choices, 40), "allow? ›y · s · p · n · w · v");
    }
}
