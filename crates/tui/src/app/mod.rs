//! The state of the screen and how it changes. No IO: messages in, commands out;
//! [`crate::view::draw`] paints the state.

mod attention;
mod copying;
mod find;
mod highlighting;
mod keys;
pub mod permission_prompt;
mod submit;
mod turn_activity;
mod updates;
pub use attention::Notification;
pub(crate) use find::FindBar;
pub(crate) use submit::{mode_message, next_view};
pub(crate) use turn_activity::ThinkingRequest;
pub(crate) use updates::undone_message;

use std::collections::VecDeque;

use aside_core::block::Time;
use aside_core::event::Usage;
use aside_core::settings::ThinkingDisplay;
use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;

use crate::QUIT_WINDOW;
use crate::bindings::{Bindings, KeyAction};
use crate::input::composer::{Composer, CurrentValues};
use crate::text::highlight_jobs::HighlightResult;
use crate::theme::Theme;
use crate::token_estimate::TokenRate;
use crate::transcript::{HintKeys, Transcript};
use crate::view::reader::ReaderView;
use aside_front::{Command, CompletionLists, MouseMode, Sending, Status, Update};
use attention::Attention;
use permission_prompt::PermissionPrompt;
use turn_activity::{TurnActivity, TurnState, UserCommand};

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
    /// The session was asked to take the last of them back.
    pub(super) taking_back: bool,
    /// The messages that did not go into the turn and are back at the start of the input.
    pub(super) returned: Option<String>,
    pub(crate) permission_prompt: PermissionPrompt,
    pub(crate) reader: Option<ReaderView>,
    pub(crate) find: Option<FindBar>,
    pub(crate) transcript_area: Rect,
    browsing: bool,
    /// The words of the last `/search`.
    searched: String,
    /// The prompt that an undo put into the input, until the next key.
    undone_prompt: Option<String>,
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
    /// When the session was asked for the git branch.
    branch_asked_at: Option<Time>,
    /// A view that the engine has not confirmed yet. Older status updates do not override it.
    requested_view: Option<ThinkingDisplay>,
    /// A short confirmation, and when it disappears.
    toast: Option<(String, Option<Time>)>,
}

const TOAST_MS: u64 = 3000;

impl App {
    pub fn new(setup: Setup) -> App {
        let Setup { theme, status, lists, sent } = setup;
        let mut transcript = Transcript::new(status.view);
        transcript.set_prose_width(status.screen.prose_width);
        let bindings = Bindings::default();
        transcript.set_hint_keys(HintKeys::of(&bindings));
        let mut composer = Composer::new(lists, sent);
        composer.set_current(CurrentValues::of(&status));
        App {
            transcript,
            composer,
            sending: None,
            usage: Usage::default(),
            rate: TokenRate::default(),
            theme: theme.chosen(status.screen.theme),
            detected_theme: theme,
            status,
            bindings,
            queue: VecDeque::new(),
            steering: VecDeque::new(),
            taking_back: false,
            returned: None,
            permission_prompt: PermissionPrompt::default(),
            reader: None,
            find: None,
            transcript_area: Rect::default(),
            browsing: false,
            undone_prompt: None,
            searched: String::new(),
            attention: Attention::default(),
            user_command: None,
            turn: TurnState::Idle,
            activity: TurnActivity::None,
            answer_requested: false,
            thinking_request: ThinkingRequest::None,
            now: None,
            heard_at: None,
            quit_armed_at: None,
            branch_asked_at: None,
            requested_view: None,
            toast: None,
        }
    }

    /// Replaces the default key bindings.
    pub fn bind(&mut self, bindings: Bindings) {
        self.transcript.set_hint_keys(HintKeys::of(&bindings));
        self.bindings = bindings;
    }

    /// Handles one message and returns the commands for the engine.
    pub fn update(&mut self, msg: Msg) -> Vec<Command> {
        match msg {
            Msg::Key(key) => {
                let mut commands = self.key(key);
                commands.extend(self.refresh_branch());
                commands
            }
            Msg::Mouse(mouse) => self.mouse_event(mouse),
            Msg::Paste(text) => self.paste(&text),
            Msg::Edited(text) => {
                self.edited(&text);
                Vec::new()
            }
            Msg::Resize => Vec::new(),
            Msg::Focus(has_focus) => {
                self.focus_changed(has_focus);
                if has_focus { self.refresh_branch().into_iter().collect() } else { Vec::new() }
            }
            Msg::Tick(now) => {
                self.tick(now);
                if self.permission_prompt.holds_an_answer() { self.settle_answer(now) } else { Vec::new() }
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
        if self.quit_armed_at.is_some_and(|at| u128::from(now.0.saturating_sub(at.0)) > QUIT_WINDOW.as_millis()) {
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

    /// Whether a key counts soon unless another one follows it.
    pub fn holds_an_answer(&self) -> bool {
        self.permission_prompt.holds_an_answer()
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

    /// The key that sends a message after the current step.
    pub(crate) fn send_key(&self) -> Option<String> {
        self.bindings.keys(KeyAction::Send).first().map(ToString::to_string)
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

    /// The model of the request that was sent, or of the next one.
    pub fn model(&self) -> &str {
        match &self.sending {
            Some(sending) if self.is_busy() && self.status.next.is_none() => &sending.model,
            Some(_) | None => &self.status.model,
        }
    }
}
