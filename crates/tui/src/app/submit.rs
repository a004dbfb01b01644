//! What a submitted line does: a prompt, a command of the screen, or a command for the session.

use aside_core::mention::unescape_mentions;
use aside_core::settings::ThinkingDisplay;
use aside_core::tool_mode::ToolMode;
use aside_front::slash_commands::{self, LocalCommand, ParsedLine};
use aside_front::{Command, CommandOutput, TerminalAction, sent_report};

use super::{App, InputMode, TurnActivity, TurnState, UserCommand};
use crate::input::composer::CurrentValues;
use crate::transcript::item::TranscriptItem;
use crate::transcript::output_markdown;
use crate::view::reader::ReaderView;

/// When a message that is sent during a turn reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DuringTurn {
    /// After the current step.
    Steer,
    /// After the turn.
    Queue,
}

/// The commands of the session whose output is a page, like that of `/help` and `/sent`.
const PAGES: [&str; 2] = ["/context", "/set"];

impl App {
    /// Handles a submitted line: a command or a prompt.
    pub(super) fn submit(&mut self, text: &str, during_turn: DuringTurn) -> Vec<Command> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        self.composer.remember(text);
        let own = slash_commands::parse_own(text, &self.composer.lists().commands);
        if let Some(command) = own.or_else(|| slash_commands::parse_shell(text)) {
            self.transcript.follow();
            return vec![command];
        }
        match slash_commands::parse(text) {
            ParsedLine::Text => self.prompt(text.to_owned(), during_turn),
            ParsedLine::Local(local) => self.run_local(local),
            ParsedLine::Command(command) if self.composer.pick(text, is_choice(&command)) => {
                // The list grows while the user looks at it.
                let lists_models = matches!(command, Command::Model(None));
                lists_models.then_some(Command::ListModels).into_iter().collect()
            }
            ParsedLine::Command(command) => {
                self.transcript.follow();
                self.remember_search(&command);
                if command == Command::Compact && self.turn == TurnState::Idle {
                    self.turn = TurnState::Running { since: self.now };
                    (self.user_command, self.activity) = (Some(UserCommand::Compact), TurnActivity::Compacting);
                }
                self.apply_at_once(&command).into_iter().chain([command]).collect()
            }
            ParsedLine::Invalid { what, hint } => {
                self.transcript.push_output(&CommandOutput::Error { what, hint });
                self.transcript.follow();
                Vec::new()
            }
        }
    }

    /// What the screen does at once, before the session has stored it.
    fn apply_at_once(&mut self, command: &Command) -> Option<Command> {
        if let Command::Theme(Some(theme)) = command {
            self.status.screen.theme = *theme;
            self.theme = self.detected_theme.chosen(*theme);
            self.composer.set_current(CurrentValues::of(&self.status));
        }
        let Command::Mouse(mouse) = command else { return None };
        self.status.screen.mouse = *mouse;
        Some(Command::Terminal(TerminalAction::Mouse(*mouse)))
    }

    pub(super) fn prompt(&mut self, text: String, during_turn: DuringTurn) -> Vec<Command> {
        match (self.turn, during_turn) {
            (TurnState::Idle, _) => {
                self.transcript.follow();
                self.transcript.mark_words("");
                self.begin_turn(text)
            }
            (TurnState::Running { .. }, DuringTurn::Steer) => {
                self.steering.push_back(text.clone());
                vec![Command::Steer(text)]
            }
            // A turn that is being stopped has no next step.
            (TurnState::Running { .. } | TurnState::Stopping { .. }, _) => {
                self.queue.push_back(text);
                Vec::new()
            }
        }
    }

    /// Asks the same turn for its answer. Does nothing once the answer streams.
    pub(super) fn answer_now(&mut self) -> Vec<Command> {
        match (self.turn, &self.activity) {
            (TurnState::Running { .. }, TurnActivity::Waiting | TurnActivity::Thinking) if !self.answer_requested => {
                self.answer_requested = true;
                self.toast("asking for the answer".to_owned());
                vec![Command::AnswerNow]
            }
            (TurnState::Running { .. } | TurnState::Stopping { .. } | TurnState::Idle, _) => {
                self.toast("the model is not thinking".to_owned());
                Vec::new()
            }
        }
    }

    pub(super) fn can_answer_now(&self) -> bool {
        matches!(self.turn, TurnState::Running { .. })
            && matches!(self.activity, TurnActivity::Waiting | TurnActivity::Thinking)
    }

    /// Begins a turn, without scrolling if the user has scrolled up.
    pub(super) fn begin_turn(&mut self, text: String) -> Vec<Command> {
        self.turn = TurnState::Running { since: self.now };
        self.transcript.push_prompt(&unescape_mentions(&text));
        vec![Command::Prompt(text)]
    }

    pub(super) fn run_local(&mut self, local: LocalCommand) -> Vec<Command> {
        match local {
            LocalCommand::Help => {
                let page = crate::help::help(&self.bindings, &self.composer.lists().commands);
                self.reader = Some(ReaderView::page("aside", &page));
            }
            LocalCommand::NextView => return self.set_view(next_view(self.transcript.view())),
            LocalCommand::View(view) => return self.set_view(view),
            LocalCommand::Reader => self.read_last(),
            LocalCommand::AnswerNow => return self.answer_now(),
            LocalCommand::CopyAnswer => {
                return self.copy_last(|item| matches!(item, TranscriptItem::Text(doc) if !doc.is_blank()), "answer");
            }
            LocalCommand::CopyCode => return self.copy_code(),
            LocalCommand::CopyThinking => {
                return self.copy_last(|item| matches!(item, TranscriptItem::Thinking(_)), "thought");
            }
            LocalCommand::NextMode => return self.set_mode(self.status.mode.map(ToolMode::next)),
            LocalCommand::Mode(mode) => return self.set_mode(self.status.mode.map(|_| mode)),
            LocalCommand::Sent => self.show_sent(),
            LocalCommand::Find(words) => self.open_find(&words),
        }
        Vec::new()
    }

    pub(super) fn set_mode(&mut self, mode: Option<ToolMode>) -> Vec<Command> {
        let Some(mode) = mode else {
            self.toast("there are no tools".to_owned());
            return Vec::new();
        };
        self.status.mode = Some(mode);
        self.toast(mode_message(mode).to_owned());
        vec![Command::Mode(mode)]
    }

    /// Shows all thinking this way and asks the engine to store the preference.
    pub(super) fn set_view(&mut self, view: ThinkingDisplay) -> Vec<Command> {
        self.status.view = view;
        self.requested_view = Some(view);
        self.transcript.set_view(view);
        self.toast(format!("Thinking: {view}"));
        vec![Command::View(view)]
    }

    pub(super) fn show_output(&mut self, output: CommandOutput) {
        self.transcript.push_output(&output);
        self.transcript.follow();
    }

    /// Shows the decision table of the last request.
    fn show_sent(&mut self) {
        let parts: Vec<String> = sent_report(self.sending.as_ref()).iter().filter_map(output_markdown).collect();
        self.reader = Some(ReaderView::page("/sent", &parts.join("\n\n")));
    }

    /// Shows the output of a command: as a page if it is long to read, else in the transcript. A user who is doing
    /// something else is not interrupted.
    pub(super) fn command_output(&mut self, output: &CommandOutput) {
        let is_free = self.reader.is_none() && self.mode() == InputMode::Write && self.composer.editor.is_empty();
        let page = match output {
            CommandOutput::Titled { command, page } if is_free && PAGES.contains(&command.as_str()) => {
                output_markdown(page).map(|text| (command, text))
            }
            CommandOutput::Titled { .. }
            | CommandOutput::Line(_)
            | CommandOutput::Error { .. }
            | CommandOutput::Table { .. }
            | CommandOutput::Markdown(_) => None,
        };
        match page {
            Some((command, text)) => self.reader = Some(ReaderView::page(command, &text)),
            // Submitting the command already scrolled to the end. A user who has scrolled away since stays there.
            None => self.transcript.push_output(output),
        }
    }
}

/// Whether the command lets the user choose among values if it has none.
fn is_choice(command: &Command) -> bool {
    let is_resume = matches!(command, Command::Other { name, rest } if name == "resume" && rest.is_empty());
    is_resume || matches!(command, Command::Model(None) | Command::Effort(None) | Command::Theme(None))
}

/// What a tool mode means.
pub(crate) fn mode_message(mode: ToolMode) -> &'static str {
    match mode {
        ToolMode::Ask => "Mode: ask before changes and commands",
        ToolMode::AcceptEdits => "Mode: accept edits, ask before commands",
        ToolMode::ReadOnly => "Mode: read only, tools change nothing",
    }
}

/// The next view in the order that `/thinking` cycles through.
pub(crate) fn next_view(view: ThinkingDisplay) -> ThinkingDisplay {
    let all = ThinkingDisplay::ALL;
    let at = all.iter().position(|one| *one == view).map_or(0, |at| (at + 1) % all.len());
    all.get(at).copied().unwrap_or_default()
}
