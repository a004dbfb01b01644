//! Permission questions of `ask`, asked on the controlling terminal.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::Duration;

use aside_core::permission_question::{
    AnswerChoice, AnswerChoices, IGNORE_KEYS_MS, QuestionKind, QuestionLayout, RenderedQuestion, Selected, render,
};
use aside_engine::tools::{Asker, NobodyToAsk, PermissionAnswer, PermissionQuestion};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::terminal::{KeyPress, KeyReader, LineReader, Tty};
use crate::report::print_notice;

/// The rows of a question above and below its command or diff.
pub(crate) const ROWS_AROUND: usize = 8;
pub(crate) const FEWEST_ROWS: usize = 5;

/// Asks on the controlling terminal, if there is one. Ctrl+C at a question also
/// stops the turn.
pub(crate) fn terminal_asker(stop: &CancellationToken) -> Arc<dyn Asker + Send> {
    // Answers are read from /dev/tty, because standard input may be a pipe.
    match Tty::open() {
        Ok(terminal) if std::io::stderr().is_terminal() => {
            let input = if std::io::stdin().is_terminal() { AnswerInput::Keys } else { AnswerInput::Lines };
            Arc::new(TerminalPrompt { terminal, input, stop: stop.clone() })
        }
        _ => Arc::new(NoTerminal),
    }
}

/// Without a terminal no one can be asked, but problems are still printed.
struct NoTerminal;

impl Asker for NoTerminal {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        NobodyToAsk.ask(question)
    }

    fn warn(&self, what: &str) {
        print_notice(what);
    }
}

/// How the user answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerInput {
    /// With a single key. Keys typed too soon after the question are ignored.
    Keys,
    /// With a line, if standard input is not a terminal.
    Lines,
}

struct TerminalPrompt {
    terminal: Tty,
    input: AnswerInput,
    stop: CancellationToken,
}

impl Asker for TerminalPrompt {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let answer = match self.input {
                AnswerInput::Keys => self.ask_by_key(&question).await,
                AnswerInput::Lines => self.ask_by_line(&question).await,
            };
            // If the terminal cannot be read or written, the answer is no.
            answer.unwrap_or(PermissionAnswer::No(None))
        })
    }

    fn warn(&self, what: &str) {
        print_notice(what);
    }
}

impl TerminalPrompt {
    fn layout(&self, view: QuestionView) -> QuestionLayout {
        let (width, height) = self.terminal.size();
        let rows = match view {
            QuestionView::Part => Some(height.saturating_sub(ROWS_AROUND).max(FEWEST_ROWS)),
            QuestionView::All => None,
        };
        QuestionLayout { width: Some(width), rows, ..QuestionLayout::default() }
    }

    fn show(&self, question: &PermissionQuestion, view: QuestionView) -> std::io::Result<()> {
        print_question(&render(question, self.layout(view)))
    }

    async fn ask_by_key(&self, question: &PermissionQuestion) -> std::io::Result<PermissionAnswer> {
        let mut keys = self.terminal.keys()?;
        let mut choices = AnswerChoices::new(question);
        self.show(question, QuestionView::Part)?;
        self.draw_choices(&choices)?;
        keys.discard_early_keys().await?;
        loop {
            let key = keys.next().await?;
            let chosen = match key {
                KeyPress::Letter('v') => {
                    print_newline()?;
                    self.show(question, QuestionView::All)?;
                    keys.discard_typed()?;
                    None
                }
                KeyPress::Letter(letter) => choices.by_key(letter),
                KeyPress::Next => {
                    choices.select_next();
                    None
                }
                KeyPress::Previous => {
                    choices.select_previous();
                    None
                }
                KeyPress::Enter => choices.selected(),
                KeyPress::Interrupt | KeyPress::End => {
                    print_newline()?;
                    // Cancel first, so that the denial is not sent to the model.
                    self.stop.cancel();
                    return Ok(PermissionAnswer::No(None));
                }
                KeyPress::Other => None,
            };
            let Some(choice) = chosen else {
                self.draw_choices(&choices)?;
                continue;
            };
            print_choice(choice, choices.kind())?;
            return match choice {
                AnswerChoice::Once => Ok(PermissionAnswer::Once),
                AnswerChoice::Session => Ok(PermissionAnswer::Session),
                AnswerChoice::Project => Ok(PermissionAnswer::Project),
                AnswerChoice::No => Ok(PermissionAnswer::No(None)),
                AnswerChoice::Message => self.ask_for_message(keys).await,
            };
        }
    }

    /// Reads a line for the model, in the terminal's normal line mode.
    async fn ask_for_message(&self, keys: KeyReader) -> std::io::Result<PermissionAnswer> {
        drop(keys);
        let line = self.terminal.lines()?.next("message to the model: ").await?;
        let line = line.unwrap_or_default();
        let line = line.trim();
        Ok(PermissionAnswer::No((!line.is_empty()).then(|| line.to_owned())))
    }

    /// Draws the line of answers, over the previous one.
    fn draw_choices(&self, choices: &AnswerChoices) -> std::io::Result<()> {
        let (width, _) = self.terminal.size();
        let mut err = std::io::stderr().lock();
        write!(err, "\r\x1b[2K{}", choices_line(choices, width))?;
        err.flush()
    }

    async fn ask_by_line(&self, question: &PermissionQuestion) -> std::io::Result<PermissionAnswer> {
        let mut view = QuestionView::Part;
        loop {
            let mut lines: LineReader = self.terminal.lines()?;
            self.show(question, view)?;
            let longer = if AnswerChoices::new(question).offers_lasting() { ", [s]ession, [p]roject" } else { "" };
            let prompt = format!("allow? [y]es{longer}, [n]o, [v]iew, or a message to the model: ");
            let Some(line) = lines.next(&prompt).await? else { return Ok(PermissionAnswer::No(None)) };
            match parse_answer(&line, question) {
                Some(answer) => return Ok(answer),
                None => view = QuestionView::All,
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionView {
    Part,
    All,
}

/// Parses an answer line. None means: show the full question. A line that is not
/// an answer denies, and is sent to the model as a message.
fn parse_answer(line: &str, question: &PermissionQuestion) -> Option<PermissionAnswer> {
    let offers_lasting = AnswerChoices::new(question).offers_lasting();
    Some(match line.trim() {
        "v" | "view" => return None,
        "y" | "yes" => PermissionAnswer::Once,
        "s" | "session" if offers_lasting => PermissionAnswer::Session,
        "p" | "project" if offers_lasting => PermissionAnswer::Project,
        "" | "n" | "no" => PermissionAnswer::No(None),
        message => PermissionAnswer::No(Some(message.to_owned())),
    })
}

fn print_question(rendered: &RenderedQuestion) -> std::io::Result<()> {
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

fn print_newline() -> std::io::Result<()> {
    writeln!(std::io::stderr())
}

fn print_choice(choice: AnswerChoice, kind: QuestionKind) -> std::io::Result<()> {
    writeln!(std::io::stderr(), "\r\x1b[2Kallow? {}", choice.label(kind))
}

/// The answers on one line; only their keys in a narrow terminal.
fn choices_line(choices: &AnswerChoices, width: usize) -> String {
    let line = |name: &dyn Fn(AnswerChoice) -> String, view: &str| {
        let labels = choices.iter().map(|(choice, selected)| match selected {
            Selected::Yes => format!("›{}", name(choice)),
            Selected::No => name(choice),
        });
        let labels: Vec<String> = labels.chain([view.to_owned()]).collect();
        format!("allow? {}", labels.join(" · "))
    };
    let full = line(&|choice| format!("{} {}", choice.key(), choice.label(choices.kind())), "v all");
    // Leave a column for the cursor: a line that wraps cannot be redrawn in place.
    if full.chars().count() < width { full } else { line(&|choice| choice.key().to_string(), "v") }
}

/// How long keys are ignored after a question appears.
pub(super) const TOO_EARLY: Duration = Duration::from_millis(IGNORE_KEYS_MS);

#[cfg(test)]
mod tests {
    use super::*;
    use aside_engine::tools::Risk;

    fn question(covers: bool) -> PermissionQuestion {
        let covers = covers.then(|| "shell:make".to_owned());
        PermissionQuestion { covers, ..PermissionQuestion::new("shell", "make", Risk::Runs) }
    }

    #[test]
    fn only_an_answer_that_is_offered_permits() {
        let no = |message: &str| Some(PermissionAnswer::No(Some(message.to_owned())));
        #[rustfmt::skip]
        let cases = [
            ("y\n",       true,  Some(PermissionAnswer::Once)),
            (" yes ",     false, Some(PermissionAnswer::Once)),
            ("s",         true,  Some(PermissionAnswer::Session)),
            ("s",         false, no("s")),
            ("project",   true,  Some(PermissionAnswer::Project)),
            ("n",         true,  Some(PermissionAnswer::No(None))),
            ("",          true,  Some(PermissionAnswer::No(None))),
            ("yes please", true, no("yes please")),
            ("v",         true,  None),
        ];
        for (line, covers, permit) in cases {
            assert_eq!(parse_answer(line, &question(covers)), permit, "{line:?}");
        }
    }

    #[test]
    fn the_answers_fit_on_one_row() {
        let mut choices = AnswerChoices::new(&question(true));
        assert!(choices_line(&choices, 100).starts_with("allow? y once · s this session"));
        choices.select_next();
        assert_eq!(choices_line(&choices, 40), "allow? ›y · s · p · n · w · v");
    }
}
