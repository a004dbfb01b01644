//! The state of the screen and how it changes. No IO: messages in, commands out;
//! [`crate::view::draw`] paints the state.

mod attention;
mod find;
mod highlighting;
mod keys;
pub mod permission_prompt;
mod updates;
pub use attention::Notification;
pub(crate) use find::FindBar;
pub(crate) use updates::undone_message;

use std::collections::VecDeque;

use aside_core::block::Time;
use aside_core::event::Usage;
use aside_core::mention::unescape_mentions;
use aside_core::settings::ThinkingDisplay;
use aside_core::terminal_text::terminal_safe_line;
use aside_core::tool_mode::ToolMode;
use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;

use crate::bindings::{Bindings, KeyAction};
use crate::input::composer::Composer;
use crate::text::highlight_jobs::HighlightResult;
use crate::text::width_of;
use crate::text::wrap::ellipsize;
use crate::theme::Theme;
use crate::token_estimate::TokenRate;
use crate::transcript::item::TranscriptItem;
use crate::transcript::thinking::duration;
use crate::transcript::{Transcript, output_markdown};
use crate::view::reader::ReaderView;
pub(crate) use aside_front::sent_report;
use aside_front::slash_commands::{self, LocalCommand, ParsedLine};
use aside_front::{Command, CommandOutput, CompletionLists, MouseMode, Sending, Status, TerminalAction, Update};
use attention::Attention;
use permission_prompt::PermissionPrompt;

/// Everything that can happen to the screen.
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The text returned by the user's editor.
    Edited(String),
    Resize,
    Tick(Time),
    Update(Box<Update>),
    /// Highlighted code.
    Highlighted(Box<HighlightResult>),
    /// The window got or lost the focus.
    Focus(bool),
}

/// What the keys act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMode {
    Write,
    /// Moving between blocks.
    Browse,
    /// A permission question is waiting for an answer.
    Permission,
    /// Finding words in the transcript.
    Find,
    /// The user denied the question and is writing a message.
    DenyMessage,
}

/// The initial state of the screen.
#[derive(Debug, Default)]
pub struct Setup {
    pub theme: Theme,
    pub status: Status,
    pub lists: CompletionLists,
    /// Prompts of earlier sessions.
    pub sent: Vec<String>,
}

#[derive(Debug)]
pub struct App {
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(crate) status: Status,
    pub(crate) sending: Option<Sending>,
    pub(crate) usage: Usage,
    pub(crate) rate: TokenRate,
    pub(crate) theme: Theme,
    bindings: Bindings,
    /// Prompts for after the turn.
    pub(crate) queue: VecDeque<String>,
    /// Messages for the running turn that have not gone in yet.
    pub(crate) steering: VecDeque<String>,
    pub(crate) permission_prompt: PermissionPrompt,
    pub(crate) reader: Option<ReaderView>,
    pub(crate) find: Option<FindBar>,
    pub(crate) transcript_area: Rect,
    browsing: bool,
    attention: Attention,
    /// The command of the user that runs.
    user_command: Option<UserCommand>,
    /// The colours that the terminal's background asks for.
    detected_theme: Theme,
    turn: TurnState,
    activity: TurnActivity,
    /// Answer-now was requested, and no block has opened since.
    answer_requested: bool,
    /// Whether the provider honoured the request for thinking.
    pub(crate) thinking_request: ThinkingRequest,
    now: Option<Time>,
    /// When the provider was heard last, or a wait for it began.
    heard_at: Option<Time>,
    /// When Ctrl+C was pressed the first time.
    quit_armed_at: Option<Time>,
    /// A view that the engine has not confirmed yet. Older status updates do not override it.
    requested_view: Option<ThinkingDisplay>,
    /// A short confirmation, and when it disappears.
    toast: Option<(String, Option<Time>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnState {
    Idle,
    Running {
        since: Option<Time>,
    },
    /// The user stopped the turn; the engine has not confirmed it yet.
    Stopping {
        since: Option<Time>,
    },
}

/// When a message that is sent during a turn reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DuringTurn {
    /// After the current step.
    Steer,
    /// After the turn.
    Queue,
}

/// Whether thinking was requested and arrived in this turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingRequest {
    None,
    /// Requested, but no thinking has arrived yet.
    Sent,
    Honoured,
    /// The turn ended without thinking.
    Ignored,
}

/// What the turn is doing. Shown even where thinking is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TurnActivity {
    None,
    /// The request was sent and nothing has arrived yet.
    Waiting,
    Thinking,
    Writing,
    Calling(String),
    Running(String),
    /// Older turns are being summarised.
    Compacting,
    /// The request is sent again at this time.
    Retrying {
        at: Option<Time>,
        attempt: u32,
        why: String,
    },
}

/// A command of the user that takes time. It can be stopped, as a turn can.
#[derive(Debug, Clone, PartialEq, Eq)]
enum UserCommand {
    /// A command line, by the id of its call.
    Shell(String),
    Compact,
}

const QUIT_WINDOW_MS: u64 = 3000;
/// From here on the user is told that the provider sends nothing.
const SILENCE_MS: u64 = 10_000;
const TOAST_MS: u64 = 3000;

impl App {
    pub fn new(setup: Setup) -> App {
        let Setup { theme, status, lists, sent } = setup;
        let mut transcript = Transcript::new(status.view);
        transcript.set_prose_width(status.screen.prose_width);
        App {
            transcript,
            composer: Composer::new(lists, sent),
            sending: None,
            usage: Usage::default(),
            rate: TokenRate::default(),
            theme: theme.chosen(status.screen.theme),
            detected_theme: theme,
            status,
            bindings: Bindings::default(),
            queue: VecDeque::new(),
            steering: VecDeque::new(),
            permission_prompt: PermissionPrompt::default(),
            reader: None,
            find: None,
            transcript_area: Rect::default(),
            browsing: false,
            attention: Attention::default(),
            user_command: None,
            turn: TurnState::Idle,
            activity: TurnActivity::None,
            answer_requested: false,
            thinking_request: ThinkingRequest::None,
            now: None,
            heard_at: None,
            quit_armed_at: None,
            requested_view: None,
            toast: None,
        }
    }

    /// Replaces the default key bindings.
    pub fn bind(&mut self, bindings: Bindings) {
        self.bindings = bindings;
    }

    /// Handles one message and returns the commands for the engine.
    pub fn update(&mut self, msg: Msg) -> Vec<Command> {
        match msg {
            Msg::Key(key) => self.key(key),
            Msg::Mouse(mouse) => self.mouse_event(mouse),
            Msg::Paste(text) => self.paste(&text),
            Msg::Edited(text) => {
                self.edited(&text);
                Vec::new()
            }
            Msg::Resize => Vec::new(),
            Msg::Focus(has_focus) => {
                self.focus_changed(has_focus);
                Vec::new()
            }
            Msg::Tick(now) => {
                self.tick(now);
                Vec::new()
            }
            Msg::Update(update) => self.apply_update(*update),
            Msg::Highlighted(mut result) => {
                self.apply_highlight(&mut result);
                Vec::new()
            }
        }
    }

    fn tick(&mut self, now: Time) {
        self.now = Some(now);
        self.transcript.set_now(now);
        self.rate.tick(now);
        if self.quit_armed_at.is_some_and(|at| now.0.saturating_sub(at.0) > QUIT_WINDOW_MS) {
            self.quit_armed_at = None;
        }
        if let Some((_, until)) = &mut self.toast {
            // The toast was set before the first tick.
            let until = *until.get_or_insert(Time(now.0 + TOAST_MS));
            if now > until {
                self.toast = None;
            }
        }
    }

    fn toast(&mut self, text: String) {
        self.toast = Some((text, self.now.map(|now| Time(now.0 + TOAST_MS))));
    }

    pub fn toast_text(&self) -> Option<&str> {
        self.toast.as_ref().map(|(text, _)| text.as_str())
    }

    /// The current question is part of the frame being drawn.
    pub(crate) fn question_drawn(&mut self, fit: permission_prompt::QuestionFit) {
        self.permission_prompt.drawn(self.now, fit);
    }

    /// The frame is on the screen. Keys pressed before this moment cannot answer its question.
    pub fn frame_shown(&mut self) {
        self.permission_prompt.shown(self.now);
    }

    /// Whether anything on the screen changes by itself.
    pub fn is_animated(&self) -> bool {
        self.is_busy() || self.quit_armed_at.is_some() || self.toast.is_some()
    }

    pub fn mode(&self) -> InputMode {
        if self.permission_prompt.message().is_some() {
            InputMode::DenyMessage
        } else if self.permission_prompt.is_waiting() {
            InputMode::Permission
        } else if self.find.is_some() {
            InputMode::Find
        } else if self.browsing {
            InputMode::Browse
        } else {
            InputMode::Write
        }
    }

    /// Whether a turn is running.
    pub fn is_busy(&self) -> bool {
        self.turn != TurnState::Idle
    }

    /// Whether a command of the user runs, and no turn.
    pub(crate) fn runs_user_command(&self) -> bool {
        self.user_command.is_some()
    }

    pub fn is_quit_armed(&self) -> bool {
        self.quit_armed_at.is_some()
    }

    /// The key that sends a message after the turn.
    pub(crate) fn queue_key(&self) -> Option<String> {
        self.bindings.keys(KeyAction::Queue).first().map(ToString::to_string)
    }

    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Who handles the mouse.
    pub fn mouse(&self) -> MouseMode {
        self.status.screen.mouse
    }

    pub fn theme(&self) -> Theme {
        self.theme
    }

    /// The model of the running turn, or of the next one.
    pub fn model(&self) -> &str {
        match &self.sending {
            Some(sending) if self.is_busy() => &sending.model,
            _ => &self.status.model,
        }
    }

    /// The activity, for the line above the input. If space is short, names are shortened and the
    /// stop key stays.
    pub fn activity_line(&self, room: usize) -> Option<String> {
        let (since, how) = match self.turn {
            TurnState::Idle => return None,
            // Esc then belongs to the permission question.
            TurnState::Running { since } if self.permission_prompt.is_waiting() => (since, None),
            TurnState::Running { since } => (since, Some("Esc stops")),
            TurnState::Stopping { since } => (since, Some("stopping")),
        };
        let passed = since.zip(self.now).map(|(since, now)| now.0.saturating_sub(since.0)).filter(|ms| *ms >= 1000);
        let what = match &self.activity {
            _ if self.permission_prompt.is_waiting() => Some("waiting for you".to_owned()),
            TurnActivity::None => None,
            TurnActivity::Waiting if self.model().is_empty() => Some("waiting".to_owned()),
            TurnActivity::Waiting => Some(format!("waiting for {}", terminal_safe_line(self.model()))),
            TurnActivity::Thinking if self.transcript.is_looping() => {
                Some("repeating · Alt+Enter answers now".to_owned())
            }
            TurnActivity::Thinking => Some("thinking".to_owned()),
            TurnActivity::Writing => Some("writing".to_owned()),
            TurnActivity::Calling(name) => Some(format!("calling {}", terminal_safe_line(name))),
            TurnActivity::Running(name) => Some(format!("running {}", terminal_safe_line(name))),
            TurnActivity::Compacting => Some("compacting".to_owned()),
            TurnActivity::Retrying { at, attempt, why } => Some(self.retry_text(*at, *attempt, why)),
        };
        let silence = self.silence();
        let passed = passed.filter(|_| silence.is_none() && !matches!(self.activity, TurnActivity::Retrying { .. }));
        let rest: Vec<String> = silence.into_iter().chain(passed.map(duration)).chain(how.map(str::to_owned)).collect();
        let mut rest = rest.join(" · ");
        let spinner = self.transcript.render_context(self.theme.motion).spinner();
        let room_for = |rest: &str| room.saturating_sub(width_of(spinner) + width_of(rest) + 4);
        // Users know how to stop; the key that asks for an answer is less known.
        let is_looping = self.activity == TurnActivity::Thinking && self.transcript.is_looping();
        if is_looping && what.as_deref().is_some_and(|what| width_of(what) > room_for(&rest)) {
            rest.clear();
        }
        let room = room_for(&rest);
        // A shortened model name is useless, and so are the first words of a reason.
        let is_plain_wait = self.activity == TurnActivity::Waiting && !self.permission_prompt.is_waiting();
        let is_retry = matches!(self.activity, TurnActivity::Retrying { .. });
        let what = what.map(|what| match what.split_once(',') {
            _ if width_of(&what) > room && is_plain_wait => "waiting".to_owned(),
            Some((wait, _)) if width_of(&what) > room && is_retry && room < REASON_ROOM => wait.to_owned(),
            Some(_) | None => ellipsize(&what, room),
        });
        let parts: Vec<String> = what.into_iter().chain([rest]).filter(|part| !part.is_empty()).collect();
        Some(format!("{spinner} {}", parts.join(" · ")))
    }

    /// The wait counts down; the reason comes last, because it may be long.
    fn retry_text(&self, at: Option<Time>, attempt: u32, why: &str) -> String {
        let left = at.zip(self.now).map_or(0, |(at, now)| at.0.saturating_sub(now.0).div_ceil(1000));
        match left {
            0 => format!("trying again, attempt {attempt}: {why}"),
            left => format!("trying again in {left}s, attempt {attempt}: {why}"),
        }
    }

    /// How long the provider has sent nothing, once that is long.
    pub(crate) fn silence(&self) -> Option<String> {
        let waits = match &self.activity {
            TurnActivity::Waiting | TurnActivity::Thinking | TurnActivity::Writing | TurnActivity::Calling(_) => true,
            TurnActivity::None
            | TurnActivity::Running(_)
            | TurnActivity::Compacting
            | TurnActivity::Retrying { .. } => false,
        };
        let silent = self.heard_at.zip(self.now).map(|(heard, now)| now.0.saturating_sub(heard.0))?;
        let is_long = waits && silent >= SILENCE_MS && !self.permission_prompt.is_waiting();
        is_long.then(|| format!("nothing came for {}", duration(silent)))
    }

    /// Handles a submitted line: a command or a prompt.
    fn submit(&mut self, text: &str, during_turn: DuringTurn) -> Vec<Command> {
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
        }
        let Command::Mouse(mouse) = command else { return None };
        self.status.screen.mouse = *mouse;
        Some(Command::Terminal(TerminalAction::Mouse(*mouse)))
    }

    fn prompt(&mut self, text: String, during_turn: DuringTurn) -> Vec<Command> {
        match (self.turn, during_turn) {
            (TurnState::Idle, _) => {
                self.transcript.follow();
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
    fn answer_now(&mut self) -> Vec<Command> {
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

    fn can_answer_now(&self) -> bool {
        matches!(self.turn, TurnState::Running { .. })
            && matches!(self.activity, TurnActivity::Waiting | TurnActivity::Thinking)
    }

    /// Begins a turn, without scrolling if the user has scrolled up.
    fn begin_turn(&mut self, text: String) -> Vec<Command> {
        self.turn = TurnState::Running { since: self.now };
        self.transcript.push_prompt(&unescape_mentions(&text));
        vec![Command::Prompt(text)]
    }

    fn run_local(&mut self, local: LocalCommand) -> Vec<Command> {
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

    fn set_mode(&mut self, mode: Option<ToolMode>) -> Vec<Command> {
        let Some(mode) = mode else {
            self.toast("there are no tools".to_owned());
            return Vec::new();
        };
        self.status.mode = Some(mode);
        self.toast(mode_message(mode).to_owned());
        vec![Command::Mode(mode)]
    }

    /// Shows all thinking this way and asks the engine to store the preference.
    fn set_view(&mut self, view: ThinkingDisplay) -> Vec<Command> {
        self.status.view = view;
        self.requested_view = Some(view);
        self.transcript.set_view(view);
        self.toast(format!("Thinking: {view}"));
        vec![Command::View(view)]
    }

    fn show_output(&mut self, output: CommandOutput) {
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
    fn command_output(&mut self, output: &CommandOutput) {
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

    fn last_item(&self, wanted: impl Fn(&TranscriptItem) -> bool) -> Option<usize> {
        self.transcript.items().iter().rposition(wanted)
    }

    fn read_last(&mut self) {
        match self.last_item(|item| matches!(item, TranscriptItem::Thinking(_))) {
            Some(index) => self.reader = Some(ReaderView::thinking(index)),
            None => self.toast("there is no thought yet".to_owned()),
        }
    }

    fn copy_last(&mut self, wanted: impl Fn(&TranscriptItem) -> bool, name: &str) -> Vec<Command> {
        let found =
            self.last_item(wanted).and_then(|index| self.transcript.items().get(index)).map(TranscriptItem::copy_text);
        self.copy_found(found, name)
    }

    /// Copies the last code block of the answers.
    fn copy_code(&mut self) -> Vec<Command> {
        let answers = self.transcript.items().iter().rev().filter(|item| matches!(item, TranscriptItem::Text(_)));
        let found = answers.map(TranscriptItem::copy_text).find_map(|text| {
            let nodes = aside_markdown::parse(&text);
            aside_markdown::last_code(&nodes).map(str::to_owned)
        });
        self.copy_found(found, "code block")
    }

    fn copy_found(&mut self, found: Option<String>, name: &str) -> Vec<Command> {
        match found {
            Some(text) => {
                self.toast(format!("{name} copied"));
                vec![copy(text)]
            }
            None => {
                self.toast(format!("there is no {name} yet"));
                Vec::new()
            }
        }
    }
}

fn copy(text: String) -> Command {
    Command::Terminal(TerminalAction::Copy(text))
}

/// With less room, a retry is shown without its reason.
const REASON_ROOM: usize = 45;

/// The commands of the session whose output is a page, like that of `/help` and `/sent`.
const PAGES: [&str; 2] = ["/context", "/set"];

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
