//! The state of the screen and how it changes. No IO: messages in, commands
//! out, and [`crate::view::draw`] paints what is.

pub mod asking;
mod keys;
mod lights;
mod updates;
pub(crate) use updates::taken_back_words;

use std::collections::VecDeque;

use aside_core::block::Time;
use aside_core::event::Usage;
use aside_core::mention::unescaped;
use aside_core::screen::neutral_line;
use aside_core::settings::Display;
use crossterm::event::{KeyEvent, MouseEvent};
use ratatui::layout::Rect;

use crate::bindings::Bindings;
use crate::commands::{self, Local, Parsed};
use crate::count::{Rate, short};
use crate::input::composer::Composer;
use crate::seam::{Command, Lists, Said, Sending, Status, TerminalAct, Update};
use crate::text::light::Lit;
use crate::text::width_of;
use crate::text::wrap::cut;
use crate::theme::{Ground, Theme};
use crate::transcript::Transcript;
use crate::transcript::item::Item;
use crate::transcript::thought::duration;
use crate::view::reader::Reader;
use asking::Asking;

/// Everything that can happen to the screen.
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    /// The user's own editor was left with this.
    Edited(String),
    Resize,
    Tick(Time),
    Update(Box<Update>),
    /// Colours of code that was in sight.
    Lit(Box<Lit>),
}

/// Who gets the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Write,
    /// Walking over the blocks.
    Browse,
    /// A tool waits for an answer.
    Asked,
    /// The answer is no, and a message is being written.
    Message,
}

/// What the screen begins with.
#[derive(Debug, Default)]
pub struct Setup {
    pub theme: Theme,
    pub status: Status,
    pub lists: Lists,
    /// What was sent in earlier sessions.
    pub sent: Vec<String>,
}

#[derive(Debug)]
pub struct App {
    pub(crate) transcript: Transcript,
    pub(crate) composer: Composer,
    pub(crate) status: Status,
    pub(crate) sending: Option<Sending>,
    pub(crate) usage: Usage,
    pub(crate) rate: Rate,
    pub(crate) theme: Theme,
    bindings: Bindings,
    pub(crate) queue: VecDeque<String>,
    pub(crate) asking: Asking,
    pub(crate) reader: Option<Reader>,
    pub(crate) transcript_area: Rect,
    browsing: bool,
    turn: Turn,
    doing: Doing,
    /// The answer was asked for, and nothing has come since.
    hurried: bool,
    /// Whether the wish for thinking was heard.
    pub(crate) wish: Wish,
    now: Option<Time>,
    /// When Ctrl+C was pressed the first time.
    leaving: Option<Time>,
    /// The view that was asked for and that the engine has still to confirm.
    /// What it told before it knew does not count.
    asked_view: Option<Display>,
    /// A word on what was just done, and until when it stands.
    toast: Option<(String, Option<Time>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Idle,
    Running {
        since: Option<Time>,
    },
    /// The user stopped it; the engine has still to say so.
    Stopping {
        since: Option<Time>,
    },
}

/// The wish for thinking, over a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    None,
    /// It was sent, and no thought has come.
    Sent,
    Heard,
    /// The turn is over, and none came.
    Ignored,
}

/// What the turn is at, in a word: it shows even where thinking does not.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Doing {
    Nothing,
    /// The request is out and nothing has come back.
    Waiting,
    Thinking,
    Writing,
    Calling(String),
    Running(String),
}

const LEAVE_WITHIN_MS: u64 = 2000;
const TOAST_MS: u64 = 3000;

impl App {
    pub fn new(setup: Setup) -> App {
        let Setup { theme, status, lists, sent } = setup;
        App {
            transcript: Transcript::new(status.view),
            composer: Composer::new(lists, sent),
            status,
            sending: None,
            usage: Usage::default(),
            rate: Rate::default(),
            theme,
            bindings: Bindings::default(),
            queue: VecDeque::new(),
            asking: Asking::default(),
            reader: None,
            transcript_area: Rect::default(),
            browsing: false,
            turn: Turn::Idle,
            doing: Doing::Nothing,
            hurried: false,
            wish: Wish::None,
            now: None,
            leaving: None,
            asked_view: None,
            toast: None,
        }
    }

    /// Other keys than those of the table.
    pub fn bind(&mut self, bindings: Bindings) {
        self.bindings = bindings;
    }

    /// Takes one message; what the engine should do comes back.
    pub fn update(&mut self, msg: Msg) -> Vec<Command> {
        match msg {
            Msg::Key(key) => self.key(key),
            Msg::Mouse(mouse) => self.mouse(mouse),
            Msg::Paste(text) => self.paste(&text),
            Msg::Edited(text) => {
                self.edited(&text);
                Vec::new()
            }
            Msg::Resize => Vec::new(),
            Msg::Tick(now) => {
                self.tick(now);
                Vec::new()
            }
            Msg::Update(update) => self.hear(*update),
            Msg::Lit(mut lit) => {
                self.lit(&mut lit);
                Vec::new()
            }
        }
    }

    fn tick(&mut self, now: Time) {
        self.now = Some(now);
        self.transcript.set_now(now);
        self.rate.tick(now);
        if self.leaving.is_some_and(|at| now.0.saturating_sub(at.0) > LEAVE_WITHIN_MS) {
            self.leaving = None;
        }
        if let Some((_, until)) = &mut self.toast {
            // It came before the first look at the clock.
            let until = *until.get_or_insert(Time(now.0 + TOAST_MS));
            if now > until {
                self.toast = None;
            }
        }
    }

    fn toast(&mut self, text: String) {
        self.toast = Some((text, self.now.map(|now| Time(now.0 + TOAST_MS))));
    }

    pub fn toasted(&self) -> Option<&str> {
        self.toast.as_ref().map(|(text, _)| text.as_str())
    }

    /// The question in front is part of the frame being drawn.
    pub(crate) fn question_drawn(&mut self, readable: asking::Readable) {
        self.asking.drawn(self.now, readable);
    }

    /// The frame is on the screen. What was typed until now was typed before it
    /// could be read.
    pub fn frame_shown(&mut self) {
        self.asking.shown(self.now);
    }

    /// Something on the screen moves by itself.
    pub fn is_moving(&self) -> bool {
        self.is_busy() || self.leaving.is_some() || self.toast.is_some()
    }

    pub fn mode(&self) -> Mode {
        if self.asking.message().is_some() {
            Mode::Message
        } else if self.asking.is_waiting() {
            Mode::Asked
        } else if self.browsing {
            Mode::Browse
        } else {
            Mode::Write
        }
    }

    /// A turn is running.
    pub fn is_busy(&self) -> bool {
        self.turn != Turn::Idle
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    pub fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    pub fn theme(&self) -> Theme {
        self.theme
    }

    /// The model that answers, or the one that will.
    pub fn model(&self) -> &str {
        match &self.sending {
            Some(sending) if self.is_busy() => &sending.model,
            _ => &self.status.model,
        }
    }

    /// What is going on, for the line above the input. If there is too little
    /// room, a name is cut and how to stop it is not.
    pub fn doing(&self, room: usize) -> Option<String> {
        let (since, how) = match self.turn {
            Turn::Idle => return None,
            // There Esc leads back to the question.
            Turn::Running { since } if self.asking.is_waiting() => (since, None),
            Turn::Running { since } => (since, Some("Esc stops")),
            Turn::Stopping { since } => (since, Some("stopping")),
        };
        let passed = since.zip(self.now).map(|(since, now)| now.0.saturating_sub(since.0)).filter(|ms| *ms >= 1000);
        let what = match &self.doing {
            _ if self.asking.is_waiting() => Some("waiting for you".to_owned()),
            Doing::Nothing => None,
            Doing::Waiting if self.model().is_empty() => Some("waiting".to_owned()),
            Doing::Waiting => Some(format!("waiting for {}", neutral_line(self.model()))),
            Doing::Thinking if self.transcript.is_stuck() => Some("in circles · Alt+Enter answers now".to_owned()),
            Doing::Thinking => Some("thinking".to_owned()),
            Doing::Writing => Some("writing".to_owned()),
            Doing::Calling(name) => Some(format!("calling {}", neutral_line(name))),
            Doing::Running(name) => Some(format!("running {}", neutral_line(name))),
        };
        let rest: Vec<String> = passed.map(duration).into_iter().chain(how.map(str::to_owned)).collect();
        let mut rest = rest.join(" · ");
        let spinner = self.transcript.look(self.theme.motion).spinner();
        let room_beside = |rest: &str| room.saturating_sub(width_of(spinner) + width_of(rest) + 4);
        // How to stop is known; how to get an answer out of it is not.
        let is_stuck = self.doing == Doing::Thinking && self.transcript.is_stuck();
        if is_stuck && what.as_deref().is_some_and(|what| width_of(what) > room_beside(&rest)) {
            rest.clear();
        }
        let room = room_beside(&rest);
        // Half a name of a model says nothing.
        let is_bare = self.doing == Doing::Waiting && !self.asking.is_waiting();
        let what = what.map(|what| match width_of(&what) > room && is_bare {
            true => "waiting".to_owned(),
            false => cut(&what, room),
        });
        let parts: Vec<String> = what.into_iter().chain([rest]).filter(|part| !part.is_empty()).collect();
        Some(format!("{spinner} {}", parts.join(" · ")))
    }

    /// A line was written: a command, or something to say.
    fn submit(&mut self, text: &str) -> Vec<Command> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        self.composer.remember(text);
        match commands::parse(text) {
            Parsed::Text => self.say(text.to_owned()),
            Parsed::Local(local) => self.local(local),
            Parsed::Engine(command) => {
                self.transcript.follow();
                vec![command]
            }
            Parsed::Wrong { what, hint } => {
                self.transcript.said(&Said::Wrong { what, hint });
                self.transcript.follow();
                Vec::new()
            }
        }
    }

    fn say(&mut self, text: String) -> Vec<Command> {
        if self.is_busy() {
            self.queue.push_back(text);
            return Vec::new();
        }
        self.transcript.follow();
        self.begin(text)
    }

    /// Enough thought: the same turn asks for the answer. What is being
    /// answered already is left alone.
    fn answer_now(&mut self) -> Vec<Command> {
        match (self.turn, &self.doing) {
            (Turn::Running { .. }, Doing::Waiting | Doing::Thinking) if !self.hurried => {
                self.hurried = true;
                self.toast("asking for the answer".to_owned());
                vec![Command::AnswerNow]
            }
            (Turn::Running { .. } | Turn::Stopping { .. } | Turn::Idle, _) => {
                self.toast("nothing is thought right now".to_owned());
                Vec::new()
            }
        }
    }

    fn can_hurry(&self) -> bool {
        matches!(self.turn, Turn::Running { .. }) && matches!(self.doing, Doing::Waiting | Doing::Thinking)
    }

    /// Begins a turn. Whoever reads further up is left alone.
    fn begin(&mut self, text: String) -> Vec<Command> {
        self.turn = Turn::Running { since: self.now };
        self.transcript.say(&unescaped(&text));
        vec![Command::Say(text)]
    }

    fn local(&mut self, local: Local) -> Vec<Command> {
        match local {
            Local::Help => self.reader = Some(Reader::page("aside", &commands::help(&self.bindings))),
            Local::NextView => return self.set_view(next_view(self.transcript.view())),
            Local::View(view) => return self.set_view(view),
            Local::Reader => self.read_last(),
            Local::AnswerNow => return self.answer_now(),
            Local::CopyAnswer => {
                return self.copy_last(|item| matches!(item, Item::Text(doc) if !doc.is_blank()), "answer");
            }
            Local::CopyThinking => return self.copy_last(|item| matches!(item, Item::Thought(_)), "thought"),
            Local::Sent => self.sent(),
            Local::Theme(ground) => {
                let other = if self.theme.ground == Ground::Dark { Ground::Light } else { Ground::Dark };
                let ground = ground.unwrap_or(other);
                self.theme = Theme { ground, background: None, ..self.theme };
            }
        }
        Vec::new()
    }

    /// Shows every thought this way, and asks the engine to remember it.
    fn set_view(&mut self, view: Display) -> Vec<Command> {
        self.status.view = view;
        self.asked_view = Some(view);
        self.transcript.set_view(view);
        self.toast(format!("Thinking: {view}"));
        vec![Command::View(view)]
    }

    fn said(&mut self, said: Said) {
        self.transcript.said(&said);
        self.transcript.follow();
    }

    /// The decision table of the last request.
    fn sent(&mut self) {
        for said in explained(self.sending.as_ref()) {
            self.said(said);
        }
    }

    fn last_item(&self, wanted: impl Fn(&Item) -> bool) -> Option<usize> {
        self.transcript.items().iter().rposition(wanted)
    }

    fn read_last(&mut self) {
        match self.last_item(|item| matches!(item, Item::Thought(_))) {
            Some(index) => self.reader = Some(Reader::thought(index)),
            None => self.toast("there is no thought yet".to_owned()),
        }
    }

    fn copy_last(&mut self, wanted: impl Fn(&Item) -> bool, name: &str) -> Vec<Command> {
        let found = self.last_item(wanted).and_then(|index| self.transcript.items().get(index)).map(Item::copy_text);
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

/// The decision table of the last request, and what else it was.
pub(crate) fn explained(sending: Option<&Sending>) -> Vec<Said> {
    let Some(sending) = sending else { return vec![Said::Line("nothing was sent yet".to_owned())] };
    let Sending { step, model, effort, tokens, notes, decisions, .. } = sending;
    let effort = effort.as_ref().map(|effort| format!(" · effort {effort}")).unwrap_or_default();
    let head = format!("to {} · step {step}{effort} · ~{} tokens", neutral_line(model), short(*tokens));
    let lines: Vec<&str> = std::iter::once(head.as_str()).chain(notes.iter().map(String::as_str)).collect();
    let table = match Some(decisions).filter(|rows| !rows.is_empty()) {
        None => Said::Line("no stored thought was part of it".to_owned()),
        Some(rows) => {
            let row = |row: &crate::seam::DecisionRow| vec![row.what.clone(), row.action.clone(), row.why.clone()];
            let head = ["what", "sent as", "why"].map(str::to_owned).to_vec();
            Said::Table { head, rows: rows.iter().map(row).collect() }
        }
    };
    vec![Said::Line(lines.join("\n")), table]
}

fn copy(text: String) -> Command {
    Command::Terminal(TerminalAct::Copy(text))
}

/// The order in which `/thinking` walks.
pub(crate) fn next_view(view: Display) -> Display {
    let all = Display::ALL;
    let at = all.iter().position(|one| *one == view).map_or(0, |at| (at + 1) % all.len());
    all.get(at).copied().unwrap_or_default()
}
