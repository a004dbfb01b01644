//! A whole front end on `aside_session` and `aside_front` alone: each line of input is a
//! prompt or a slash command, and the answer goes to standard output.
//!
//! cargo run -p aside-session --example line_front_end -- sim/deepseek

use std::error::Error;
use std::io::{self, BufRead, Lines, StdinLock, Write};
use std::process::ExitCode;
use std::sync::mpsc::Sender;

use aside_front::slash_commands::{ParsedLine, parse};
use aside_front::terminal_safe;
use aside_front::wording::{HintStyle, compacted, turn_end, turn_notice};
use aside_front::{BlockId, Command, OpenedBlock, PendingQuestion, PermissionAnswer, TerminalFilter, Update};
use aside_session::{SessionHandle, SessionOptions, UserFolders, spawn};

fn main() -> ExitCode {
    // Before anything else: this program is its own sandbox helper.
    if let Some(code) = aside_session::run_if_helper() {
        return code;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "error: {}", terminal_safe(&error.to_string())));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut options = SessionOptions::new(std::env::current_dir()?, UserFolders::from_environment());
    options.model = std::env::args().nth(1);
    let SessionHandle { commands, updates, setup, session } = spawn(options)?;
    let mut front = LineFrontEnd::new(commands);
    front.print(&format!("model: {}", setup.status.model))?;
    while let Some(command) = front.next_command()? {
        let quits = command == Command::Quit;
        front.commands.send(command)?;
        // Every command ends with `Ready`, including the turn that it started.
        for update in &updates {
            if update == Update::Ready {
                break;
            }
            front.show(update)?;
        }
        if quits {
            break;
        }
    }
    // Without a sender of commands, the session ends.
    drop(front);
    if let Some(id) = session.join() {
        writeln!(io::stdout(), "saved as {id}")?;
    }
    Ok(())
}

struct LineFrontEnd {
    commands: Sender<Command>,
    input: Lines<StdinLock<'static>>,
    /// Removes terminal escapes from the text of models.
    filter: TerminalFilter,
    /// The block whose text is printed as it grows.
    current: Option<BlockId>,
    /// What was printed last has no line end yet.
    is_inside_line: bool,
}

impl LineFrontEnd {
    fn new(commands: Sender<Command>) -> LineFrontEnd {
        let input = io::stdin().lock().lines();
        LineFrontEnd { commands, input, filter: TerminalFilter::new(), current: None, is_inside_line: false }
    }

    /// The next line as a command; none at the end of the input.
    fn next_command(&mut self) -> Result<Option<Command>, Box<dyn Error>> {
        while let Some(line) = self.input.next().transpose()? {
            match parse(&line) {
                ParsedLine::Text if line.trim().is_empty() => (),
                ParsedLine::Text => return Ok(Some(Command::Prompt(line))),
                ParsedLine::Command(Command::Terminal(_)) | ParsedLine::Local(_) => {
                    self.print("this front end cannot do that")?;
                }
                ParsedLine::Command(command) => return Ok(Some(command)),
                ParsedLine::Invalid { what, hint } => {
                    self.print(&what)?;
                    hint.map_or(Ok(()), |hint| self.print(&format!("hint: {hint}")))?;
                }
            }
        }
        Ok(None)
    }

    fn show(&mut self, update: Update) -> Result<(), Box<dyn Error>> {
        match update {
            Update::Opened { block, opening } => {
                let title = match opening {
                    OpenedBlock::Text => "answer:",
                    OpenedBlock::Thinking => "thinking:",
                    OpenedBlock::ToolCall { .. } | OpenedBlock::Unmodelled => return Ok(()),
                };
                self.current = Some(block);
                self.print(title)?;
            }
            Update::Grew { block, text } if self.current == Some(block) => {
                let text = self.filter.take(&text).into_owned();
                self.is_inside_line = !text.ends_with('\n');
                write!(io::stdout(), "{text}").and_then(|()| io::stdout().flush())?;
            }
            Update::ToolStarted(call) => self.print(&format!("tool: {}", call.name))?,
            Update::ToolEnded(result) if result.is_error => self.print(&format!("failed: {}", result.content))?,
            Update::QuestionAsked(question) => self.answer(&question)?,
            Update::CommandOutput(output) => output.lines().iter().try_for_each(|line| self.print(line))?,
            Update::Compacted { summarised, trigger, .. } => self.print(&compacted(summarised, trigger))?,
            Update::NotSent { what, .. } => self.print(&what)?,
            Update::Retrying { why, .. } => self.print(&format!("{why}; trying again"))?,
            Update::TurnNotice(notice) => self.print(&turn_notice(&notice).what)?,
            Update::TurnEnded(end) => {
                let notice = turn_end(&end, HintStyle::SlashCommands);
                self.print(&notice.map(|notice| notice.what).unwrap_or_default())?;
            }
            Update::Noted(note) => self.print(&format!("note: {}", note.message))?,
            Update::Undone(prompt) => self.print(&format!("undone: {prompt}"))?,
            // What only a screen shows, and signals, which this front end does not handle.
            Update::Models(_) | Update::Detail(_) | Update::TakenBack(_) | Update::NotTakenBack(_) => (),
            Update::Closed { .. } | Update::ToolEnded(_) | Update::MessageStored(_) | Update::CompletionLists(_) => (),
            Update::Restored(_) | Update::Recorded(_) | Update::ToolOutput { .. } | Update::Quit | Update::Ready => (),
            Update::Sending(_) | Update::GoTo { .. } | Update::ClosedAsStreamed { .. } | Update::SessionStored(_) => (),
            Update::Suspend | Update::Sealed { .. } | Update::Item { .. } | Update::Usage(_) | Update::Status(_) => (),
            Update::QuestionWithdrawn(_) | Update::Grew { .. } | Update::PromptHistory(_) | Update::Interrupt => (),
            Update::NotSteered { .. } | Update::Refiled { .. } | Update::Emptied { .. } | Update::ReplyEnded(_) => (),
        }
        Ok(())
    }

    /// Asks the user; the end of the input is a no.
    fn answer(&mut self, question: &PendingQuestion) -> Result<(), Box<dyn Error>> {
        question.lines().iter().try_for_each(|line| self.print(line))?;
        self.print("allow? y or n")?;
        let line = self.input.next().transpose()?.unwrap_or_default();
        let answer = if line.trim() == "y" { PermissionAnswer::Once } else { PermissionAnswer::No(None) };
        Ok(self.commands.send(Command::Answer { id: question.id, answer })?)
    }

    fn print(&mut self, line: &str) -> io::Result<()> {
        let line_end = if std::mem::take(&mut self.is_inside_line) { "\n" } else { "" };
        writeln!(io::stdout(), "{line_end}{}", terminal_safe(line))
    }
}
