//! Handles typed lines: prompts, commands and permission answers.

use super::{InputSource, InputState, PlainSession, PlainTurn, wording};
use crate::QUIT_WINDOW;
use crate::app::{mode_message, next_view};
use aside_core::mention::escape_mentions;
use aside_core::permission_question::QuestionLayout;
use aside_core::tool_mode::ToolMode;
use aside_front::slash_commands::{self, COMMANDS, LocalCommand, ParsedLine};

use aside_front::{Command, CommandOutput, PendingQuestion, PermissionAnswer, TerminalAction, sent_report};

impl PlainSession {
    /// Handles an entered line.
    pub fn line(&mut self, text: &str) -> Vec<Command> {
        if self.input == InputState::Quitting {
            return Vec::new();
        }
        self.input = InputState::Open;
        match self.source {
            InputSource::Terminal => self.output.mark_line_start(),
            InputSource::Pipe if text.trim().is_empty() => return Vec::new(),
            InputSource::Pipe => self.output.line(&format!("You: {text}")),
        }
        match self.questions.front().cloned() {
            Some(question) => self.answer(&question, text),
            None => self.run_line(text),
        }
    }

    /// Handles a text of several lines, from an editor.
    pub fn write(&mut self, text: &str) -> Vec<Command> {
        if text.trim().is_empty() {
            self.output.line("Nothing was written.");
            return Vec::new();
        }
        self.output.line(&format!("You: {}", text.trim_end()));
        self.submit(text.trim_end().to_owned())
    }

    /// Shows an error from outside the session.
    pub fn error(&mut self, what: &str) {
        self.show_output(&CommandOutput::Error { what: what.to_owned(), hint: None });
    }

    /// The input ended: Ctrl+D, or the end of the file.
    pub fn end_of_input(&mut self) -> Vec<Command> {
        if self.source == InputSource::Terminal {
            self.output.start_line();
        }
        self.input = InputState::Ended;
        let refused = self.questions.drain(..).map(|question| answer_command(&question, PermissionAnswer::No(None)));
        let mut commands: Vec<Command> = refused.collect();
        if self.is_idle() {
            commands.extend(self.quit());
        } else if self.source == InputSource::Terminal {
            self.output.line("Leaving when the answer is done. Ctrl+C stops it.");
        }
        commands
    }

    /// Handles Ctrl+C, which stops what runs, else clears the typed line, else leaves when pressed twice.
    pub fn interrupt(&mut self, draft: &str) -> Vec<Command> {
        if self.source == InputSource::Terminal {
            // The terminal echoes `^C` into the line.
            self.output.mark_mid_line();
        }
        // A command outside a turn, such as `/compact`, or its question.
        let runs_command = self.source == InputSource::Terminal && self.pending_commands > 0;
        match (self.turn, self.input, self.source) {
            (_, InputState::Quitting, _) => Vec::new(),
            (PlainTurn::Running, ..) => self.stop(draft),
            (PlainTurn::Idle, ..) if runs_command => self.stop(draft),
            (_, InputState::Open | InputState::QuitWarned { .. }, InputSource::Terminal) if !draft.is_empty() => {
                self.input = InputState::Open;
                self.output.line("The line is cleared.");
                Vec::new()
            }
            (_, InputState::QuitWarned { at }, _) if self.now.saturating_duration_since(at) <= QUIT_WINDOW => {
                self.leave()
            }
            (_, InputState::Open | InputState::QuitWarned { .. }, InputSource::Terminal) => {
                self.input = InputState::QuitWarned { at: self.now };
                self.output.line("Once more leaves, as Ctrl+D does.");
                Vec::new()
            }
            (_, InputState::Open | InputState::QuitWarned { .. } | InputState::Ended, _) => self.leave(),
        }
    }

    fn stop(&mut self, draft: &str) -> Vec<Command> {
        if !draft.trim().is_empty() {
            self.output.line(&format!("Not sent: {draft}"));
        }
        self.turn = PlainTurn::Stopping;
        // The session withdraws them, and no line may answer them any more.
        self.questions.clear();
        if self.source == InputSource::Pipe {
            // A script cannot decide what to do next.
            self.input = InputState::Ended;
        }
        vec![Command::Interrupt]
    }

    fn leave(&mut self) -> Vec<Command> {
        if self.source == InputSource::Terminal {
            // What is printed after the session begins on a line of its own.
            self.output.start_line();
        }
        self.outcome.interrupted = true;
        self.quit()
    }

    /// Asks the engine to quit. A running turn is stopped and its reply kept.
    pub(super) fn quit(&mut self) -> Vec<Command> {
        self.queue.clear();
        self.input = InputState::Quitting;
        vec![Command::Quit]
    }

    fn run_line(&mut self, text: &str) -> Vec<Command> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        if let Some(command) = slash_commands::parse_own(text, &self.own_commands) {
            self.turn = PlainTurn::Running;
            return self.send(command);
        }
        // A script may pass on what somebody else wrote.
        if let (Some(command), InputSource::Terminal) = (slash_commands::parse_shell(text), self.source) {
            self.turn = PlainTurn::Running;
            return self.send(command);
        }
        match slash_commands::parse(text) {
            ParsedLine::Text => self.submit(text.to_owned()),
            ParsedLine::Local(local) => self.run_local(local),
            ParsedLine::Command(Command::Quit) => self.quit(),
            ParsedLine::Command(Command::Terminal(TerminalAction::Edit(_))) if self.source == InputSource::Pipe => {
                self.unavailable("an editor needs a terminal")
            }
            ParsedLine::Command(Command::Terminal(TerminalAction::Edit(text))) => {
                vec![Command::Terminal(TerminalAction::Edit(text))]
            }
            ParsedLine::Command(Command::Terminal(_) | Command::Mouse(_)) => {
                self.unavailable("the mouse is the terminal's own")
            }
            ParsedLine::Command(Command::Theme(_)) => self.unavailable("there are no colours"),
            ParsedLine::Command(command) => self.send(command),
            ParsedLine::Invalid { what, hint } => {
                self.show_output(&CommandOutput::Error { what, hint });
                Vec::new()
            }
        }
    }

    fn submit(&mut self, text: String) -> Vec<Command> {
        if self.is_idle() {
            return self.begin_turn(text);
        }
        match (self.source, self.turn) {
            (InputSource::Terminal, PlainTurn::Running) => {
                self.output.line("The model gets it after this step, the reply and its tools.");
                return vec![Command::Steer(text)];
            }
            (InputSource::Terminal, PlainTurn::Idle | PlainTurn::Stopping) => {
                self.output.line("Queued. It is sent when the answer is done.");
            }
            (InputSource::Pipe, _) => (),
        }
        self.queue.push_back(text);
        Vec::new()
    }

    pub(super) fn begin_turn(&mut self, text: String) -> Vec<Command> {
        self.turn = PlainTurn::Running;
        // Lines from a pipe are not typed by the user and mention no files.
        let text = match self.source {
            InputSource::Terminal => text,
            InputSource::Pipe => escape_mentions(&text).into_owned(),
        };
        self.send(Command::Prompt(text))
    }

    fn send(&mut self, command: Command) -> Vec<Command> {
        self.pending_commands += 1;
        vec![command]
    }

    fn run_local(&mut self, local: LocalCommand) -> Vec<Command> {
        match local {
            LocalCommand::Help => {
                let takes = |takes: &str| if takes.is_empty() { String::new() } else { format!(" {takes}") };
                for entry in COMMANDS {
                    self.output.line(&format!("/{}{}: {}", entry.name, takes(entry.arguments), entry.doc));
                }
                for command in self.own_commands.clone() {
                    self.output.line(&format!("/{}: {} (yours)", command.name, command.about));
                }
                self.output.line(
                    "!COMMAND: run a command line outside the sandbox. !!COMMAND: and send its output to the model.",
                );
                self.output.line("Ctrl+C: stop the answer, or leave. Ctrl+D: leave.");
            }
            LocalCommand::NextView => return self.set_view(next_view(self.status.view)),
            LocalCommand::View(view) => return self.set_view(view),
            LocalCommand::Reader => match self.last_thinking.clone() {
                Some((text, _)) if !text.trim().is_empty() => {
                    self.output.write_section(super::OutputSection::Thinking, &text);
                    self.output.end();
                }
                Some(_) => self.output.line("The last thought is hidden by the provider."),
                None => self.output.line("There is no thought yet."),
            },
            LocalCommand::NextMode => return self.set_mode(self.status.mode.map(ToolMode::next)),
            LocalCommand::Mode(mode) => return self.set_mode(self.status.mode.map(|_| mode)),
            LocalCommand::Sent => sent_report(self.sending.as_ref()).iter().for_each(|output| self.show_output(output)),
            // Sent during the turn, like an interrupt.
            LocalCommand::AnswerNow if self.turn == PlainTurn::Running => return vec![Command::AnswerNow],
            LocalCommand::AnswerNow => self.output.line("The model is not thinking."),
            LocalCommand::CopyAnswer | LocalCommand::CopyCode | LocalCommand::CopyThinking => {
                return self.unavailable("the terminal can copy its text");
            }
            LocalCommand::Find(_) => return self.unavailable("the terminal can search its text"),
        }
        Vec::new()
    }

    fn unavailable(&mut self, why: &str) -> Vec<Command> {
        self.output.line(&format!("Not in plain mode: {why}."));
        Vec::new()
    }

    fn set_view(&mut self, view: aside_core::settings::ThinkingDisplay) -> Vec<Command> {
        self.status.view = view;
        self.output.line(&format!("Thinking: {view}"));
        self.send(Command::View(view))
    }

    fn set_mode(&mut self, mode: Option<ToolMode>) -> Vec<Command> {
        let Some(mode) = mode else {
            self.output.line("There are no tools.");
            return Vec::new();
        };
        self.status.mode = Some(mode);
        self.output.line(mode_message(mode));
        match self.turn {
            PlainTurn::Idle => self.send(Command::Mode(mode)),
            // It takes effect at once, and no `Ready` follows.
            PlainTurn::Running | PlainTurn::Stopping => vec![Command::Mode(mode)],
        }
    }

    pub(super) fn question_asked(&mut self, question: PendingQuestion) -> Vec<Command> {
        if self.turn == PlainTurn::Stopping {
            // It was asked before the session knew; the stop answers it.
            return Vec::new();
        }
        // Nobody can answer any more.
        if matches!(self.input, InputState::Ended | InputState::Quitting) {
            let lines = wording::question(&question, self.layout);
            lines.iter().take(1).for_each(|line| self.output.line(line));
            self.output.line("Denied: there is no one to ask.");
            return vec![answer_command(&question, PermissionAnswer::No(None))];
        }
        if self.questions.is_empty() {
            self.show_question(&question);
        }
        self.questions.push_back(question);
        Vec::new()
    }

    /// Prints the question.
    fn show_question(&mut self, question: &PendingQuestion) {
        wording::question(question, self.layout).iter().for_each(|line| self.output.line(line));
        if self.source == InputSource::Pipe {
            self.output.line("Allow?");
        }
    }

    /// The answer came before the question could be read.
    pub fn too_early(&mut self) {
        self.output.mark_line_start();
        self.output.line("That came too soon after the question. Read it, then answer.");
    }

    fn answer(&mut self, question: &PendingQuestion, text: &str) -> Vec<Command> {
        if text.trim().eq_ignore_ascii_case("v") {
            let whole = QuestionLayout { rows: None, ..self.layout };
            wording::question(question, whole).iter().for_each(|line| self.output.line(line));
            return Vec::new();
        }
        let answer = parse_answer(text, question.about.rememberable_scope().is_some());
        let (answer, rest) = match (answer, self.source) {
            (Some(answer), _) => (answer, None),
            (None, InputSource::Terminal) => {
                self.output.line(&wording::answers(question));
                return Vec::new();
            }
            // A script line that is not an answer is a prompt. The call is denied.
            (None, InputSource::Pipe) => (PermissionAnswer::No(None), Some(text)),
        };
        if matches!(answer, PermissionAnswer::No(_)) {
            self.output.line("Denied.");
        }
        self.questions.pop_front();
        let mut commands = vec![answer_command(question, answer)];
        if let Some(next) = self.questions.front() {
            let next = next.clone();
            self.show_question(&next);
        }
        if let Some(rest) = rest {
            commands.extend(self.run_line(rest));
        }
        commands
    }
}

fn answer_command(question: &PendingQuestion, answer: PermissionAnswer) -> Command {
    Command::Answer { id: question.id, answer }
}

/// Only these words are answers; any other line is not.
fn parse_answer(text: &str, covers: bool) -> Option<PermissionAnswer> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word.to_lowercase().as_str() {
        "y" | "yes" if rest.is_empty() => Some(PermissionAnswer::Once),
        "s" | "session" if covers && rest.is_empty() => Some(PermissionAnswer::Session),
        "p" | "project" if covers && rest.is_empty() => Some(PermissionAnswer::Project),
        "n" | "no" => Some(PermissionAnswer::No((!rest.is_empty()).then(|| rest.to_owned()))),
        _ => None,
    }
}
