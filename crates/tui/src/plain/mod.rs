//! The same session in lines of words, for screen readers, slow lines and
//! pipes: nothing moves, nothing is drawn over, and every change is announced.
//!
//! No IO: what the engine tells and what is typed goes in, text and commands
//! come out. It is a second front on [`crate::seam`], not a second engine.

mod speech;
mod typed;
mod words;

use std::collections::{HashMap, VecDeque};

use aside_core::block::{Block, Thinking};
use aside_core::event::{BlockId, Side};
use aside_core::loop_guard::LoopGuard;
use aside_core::message::{Message, Role};
use aside_core::question::Layout;
use aside_core::settings::Display;
use aside_core::turn::TurnEnd;

use crate::app::taken_back_words;
use crate::seam::{Command, Opening, Question, QuestionId, Said, Sending, Status, Update};
use crate::transcript::thought::{Thought, duration};
use crate::transcript::{ending, told_words};
use speech::{Speech, Voice};

/// Who types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typist {
    /// Somebody at a terminal, which shows what is typed.
    Person,
    /// A file or another program: its lines are shown, and taken one at a time.
    Pipe,
}

#[derive(Debug)]
pub struct Plain {
    speech: Speech,
    typist: Typist,
    status: Status,
    sending: Option<Sending>,
    blocks: HashMap<BlockId, Live>,
    /// Commands the engine has still to carry out.
    waiting: usize,
    turn: Turn,
    queue: VecDeque<String>,
    questions: VecDeque<Question>,
    /// How much room a question has.
    layout: Layout,
    /// The last thought, for `/reader`, and whether it was told in full.
    thought: Option<(String, Told)>,
    noted: Vec<String>,
    input: Input,
    /// A turn came to nothing, or the user stopped one.
    troubles: Troubles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Idle,
    Running,
    Stopping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Open,
    /// Ctrl+C was pressed with nothing to stop; once more leaves.
    Warned,
    /// No more lines come.
    Ended,
    /// We asked the engine to end.
    Left,
}

/// How the turns went, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Troubles {
    pub failed: bool,
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    InFull,
    Not,
}

/// A block that is still coming.
#[derive(Debug)]
struct Live {
    kind: Kind,
    text: String,
    /// How much of the text was told, in bytes.
    told: usize,
    /// Watches a thought until it is said that it goes in circles.
    guard: Option<Box<LoopGuard>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Other,
}

impl Plain {
    pub fn new(status: Status, typist: Typist) -> Plain {
        let mut plain = Plain {
            speech: Speech::default(),
            typist,
            status,
            sending: None,
            blocks: HashMap::new(),
            waiting: 0,
            turn: Turn::Idle,
            queue: VecDeque::new(),
            questions: VecDeque::new(),
            layout: Layout::default(),
            thought: None,
            noted: Vec::new(),
            input: Input::Open,
            troubles: Troubles::default(),
        };
        let model = plain.status.model.clone();
        plain.speech.line(&format!("Model: {model}"));
        if typist == Typist::Person {
            plain.speech.line("/help lists the commands. Ctrl+C stops an answer, Ctrl+D leaves.");
        }
        plain
    }

    /// How wide a line may be, and how long the command or diff of a question.
    pub fn set_layout(&mut self, layout: Layout) {
        self.layout = layout;
    }

    /// The question that waits for an answer.
    pub fn question(&self) -> Option<QuestionId> {
        self.questions.front().map(|question| question.id)
    }

    /// What is to be written now.
    pub fn take(&mut self) -> String {
        self.prompt();
        self.speech.take()
    }

    /// The same for whoever will not read a line yet.
    pub fn take_unprompted(&mut self) -> String {
        self.speech.take()
    }

    /// Whether the next line of the input may be read.
    pub fn wants_line(&self) -> bool {
        match (self.input, self.typist) {
            (Input::Ended | Input::Left, _) => false,
            (Input::Open | Input::Warned, Typist::Person) => true,
            (Input::Open | Input::Warned, Typist::Pipe) => self.is_idle() || !self.questions.is_empty(),
        }
    }

    pub fn troubles(&self) -> Troubles {
        self.troubles
    }

    fn is_idle(&self) -> bool {
        self.waiting == 0 && self.turn == Turn::Idle && self.queue.is_empty()
    }

    fn prompt(&mut self) {
        if self.typist == Typist::Pipe || !matches!(self.input, Input::Open | Input::Warned) {
            return;
        }
        if !self.questions.is_empty() {
            self.speech.prompt("Allow? ");
        } else if self.is_idle() {
            self.speech.prompt("You: ");
        }
    }

    pub fn hear(&mut self, update: Update) -> Vec<Command> {
        match update {
            Update::Opened { block, opening } => self.opened(block, &opening),
            Update::Grew { block, text } => self.grew(block, &text),
            Update::Item { block } => self.grew(block, "\n\n"),
            Update::Refiled { block, to } => self.refiled(block, to),
            Update::Closed { block, value } => self.closed(block, &value),
            Update::Emptied { block } => drop(self.blocks.remove(&block)),
            Update::Sending(sending) => self.sending(*sending),
            Update::Noted(note) => self.note(&note.message),
            Update::ReplyEnded(_) => self.speech.end(),
            Update::Retrying { after, attempt, why } => {
                let wait = duration(u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                self.speech.line(&format!("{why}; trying again in {wait}, attempt {attempt}"));
            }
            Update::Told(told) => self.speech.line(&told_words(&told)),
            Update::ToolStarted(call) => self.speech.line(&words::call(&call)),
            Update::ToolEnded(result) => self.speech.line(&words::result(&result)),
            Update::TurnEnded(end) => self.turn_ended(&end),
            Update::Asked(question) => return self.asked(*question),
            Update::Withdrawn(id) => self.questions.retain(|question| question.id != id),
            Update::Said(said) => self.said(&said),
            Update::Restored(messages) => self.restored(&messages),
            Update::NotSent { what, hint, .. } => {
                self.turn = Turn::Idle;
                self.troubles.failed = true;
                self.said(&Said::Wrong { what, hint });
            }
            Update::TakenBack(question) => {
                self.speech.line(&format!("{}; /retry asks it again", taken_back_words(&question)));
            }
            Update::Status(status) => self.status = *status,
            Update::Ready => return self.ready(),
            Update::Interrupt => return self.interrupt(),
            Update::Leave => return self.leave(),
            // It is in the history; what is worth telling of it was told.
            Update::Recorded(_) | Update::Usage(_) | Update::Sealed { .. } => (),
            // A terminal of lines has its own keys, and stops by itself.
            Update::Lists(_) | Update::Earlier(_) | Update::Suspend => (),
            // Lines cannot be gone back to.
            Update::GoTo { .. } => (),
        }
        Vec::new()
    }

    fn sending(&mut self, sending: Sending) {
        self.blocks.clear();
        if self.turn == Turn::Idle {
            self.turn = Turn::Running;
        }
        for note in &sending.notes {
            if !self.noted.contains(note) {
                self.noted.push(note.clone());
                self.note(note);
            }
        }
        self.sending = Some(sending);
    }

    fn note(&mut self, text: &str) {
        self.speech.line(&format!("Note: {text}"));
    }

    fn opened(&mut self, block: BlockId, opening: &Opening) {
        let kind = match opening {
            Opening::Text => Kind::Text,
            Opening::Thinking => Kind::Thinking,
            Opening::ToolCall { .. } | Opening::Unmodelled => Kind::Other,
        };
        let guard = (kind == Kind::Thinking).then(Box::default);
        self.blocks.insert(block, Live { kind, text: String::new(), told: 0, guard });
    }

    fn grew(&mut self, block: BlockId, text: &str) {
        let view = self.status.view;
        let Some(live) = self.blocks.get_mut(&block) else { return };
        live.text.push_str(text);
        let is_told = live.kind == Kind::Text || live.kind == Kind::Thinking && tells_thinking(view);
        // What began unheard is told when it is whole.
        if is_told && live.told + text.len() == live.text.len() {
            live.told = live.text.len();
            let voice = if live.kind == Kind::Text { Voice::Answer } else { Voice::Thinking };
            self.speech.say(voice, text);
        }
        let found = live.guard.as_mut().and_then(|guard| {
            guard.push(text);
            guard.found().map(words::stuck)
        });
        if let Some(line) = found {
            live.guard = None;
            self.speech.line(&line);
        }
    }

    /// Text turned out to be a thought, or the other way round.
    fn refiled(&mut self, block: BlockId, to: Side) {
        let Some(live) = self.blocks.get_mut(&block) else { return };
        let (kind, was_told) = (live.kind, live.told > 0);
        live.kind = match to {
            Side::Text => Kind::Text,
            Side::Thinking => Kind::Thinking,
        };
        match (kind, to, was_told) {
            (Kind::Text, Side::Thinking, true) => self.note("what was just said was thinking, not the answer"),
            (Kind::Thinking, Side::Text, true) => self.note("what was just said is the answer, not thinking"),
            (Kind::Text | Kind::Thinking | Kind::Other, Side::Text | Side::Thinking, _) => (),
        }
    }

    /// The block as it is kept: what was not told of it is told now.
    fn closed(&mut self, block: BlockId, value: &Block) {
        let live = self.blocks.remove(&block);
        let told = live.as_ref().map_or("", |live| live.text.get(..live.told).unwrap_or(""));
        match value {
            Block::Text(text) => self.rest(Voice::Answer, told, &text.text),
            Block::Thinking(thinking) => self.thought(told, thinking),
            Block::Unmodelled(_) => self.note("the provider sent something aside does not know; it is kept"),
            Block::Image(image) => self.note(&format!("image {}", image.media_type)),
            // It is told when it runs.
            Block::ToolCall(_) | Block::ToolResult(_) => (),
        }
    }

    fn rest(&mut self, voice: Voice, told: &str, whole: &str) {
        match whole.strip_prefix(told) {
            Some(rest) => self.speech.say(voice, rest),
            None => {
                self.note("the provider took that back; it is");
                self.speech.say(voice, whole);
            }
        }
    }

    fn thought(&mut self, told: &str, thinking: &Thinking) {
        let thought = Thought::whole(thinking);
        let in_full = tells_thinking(self.status.view) || !told.is_empty();
        match self.status.view {
            Display::Off => (),
            Display::Collapsed if !in_full => {
                if let Some(line) = thought.spoken_line() {
                    self.speech.line(&line);
                }
            }
            Display::Full | Display::Live | Display::Collapsed => {
                let readable = !thinking.text().trim().is_empty();
                if readable {
                    self.rest(Voice::Thinking, told, thinking.text());
                }
                match (readable, thought.spoken_line()) {
                    (true, _) => self.speech.line(thought.spoken_end().as_deref().unwrap_or("Thought done")),
                    (false, Some(line)) => self.speech.line(&line),
                    (false, None) => (),
                }
            }
        }
        self.speech.end();
        let told = if in_full { Told::InFull } else { Told::Not };
        self.thought = Some((thinking.text().to_owned(), told));
    }

    fn turn_ended(&mut self, end: &TurnEnd) {
        self.speech.end();
        self.turn = Turn::Idle;
        self.questions.clear();
        self.blocks.clear();
        self.troubles.failed |= match end {
            TurnEnd::Answered | TurnEnd::ThinkingOnly { .. } | TurnEnd::Length | TurnEnd::Interrupted => false,
            TurnEnd::Empty
            | TurnEnd::Declined(_)
            | TurnEnd::CutOff
            | TurnEnd::Oversized { .. }
            | TurnEnd::Failed(_)
            | TurnEnd::Unreachable(_)
            | TurnEnd::OutOfSteps(_) => true,
        };
        // It is all there is to the reply, so it is told after all.
        if let (TurnEnd::ThinkingOnly { .. }, Some((text, Told::Not))) = (end, &self.thought)
            && self.status.view != Display::Off
        {
            let text = text.clone();
            self.speech.say(Voice::Thinking, &text);
            self.speech.end();
        }
        if *end == TurnEnd::Interrupted {
            self.troubles.interrupted = true;
            self.speech.line("Interrupted. What came is kept.");
            for text in std::mem::take(&mut self.queue) {
                self.speech.line(&format!("Not sent: {text}"));
            }
        } else if let Some((_, text)) = ending(end) {
            self.speech.line(&text);
        }
    }

    fn said(&mut self, said: &Said) {
        for line in words::said(said) {
            self.speech.line(&line);
        }
    }

    /// Not all of it again: where one is, and what was said last.
    fn restored(&mut self, messages: &[Message]) {
        let count = messages.iter().filter(|message| message.role != Role::System).count();
        let title = self.status.title.as_ref().map(|title| format!(" \"{title}\"")).unwrap_or_default();
        self.speech.line(&format!("Session{title}: {count} messages"));
        let last = |role: Role| messages.iter().rev().find(|message| message.role == role && !message.is_nudge());
        for (role, who) in [(Role::User, "You said"), (Role::Assistant, "The answer was")] {
            let text = last(role).map(words::text_of).unwrap_or_default();
            if !text.trim().is_empty() {
                self.speech.line(&format!("{who}: {}", text.trim()));
            }
        }
    }

    /// A command is done; the next line that waited goes out.
    fn ready(&mut self) -> Vec<Command> {
        self.waiting = self.waiting.saturating_sub(1);
        if self.waiting > 0 {
            return Vec::new();
        }
        self.turn = Turn::Idle;
        match (self.queue.pop_front(), self.input) {
            (Some(text), _) => {
                self.speech.line(&format!("You: {text}"));
                self.begin(text)
            }
            (None, Input::Ended) => self.leave(),
            (None, Input::Open | Input::Warned | Input::Left) => Vec::new(),
        }
    }
}

/// In lines all text is there once it came, so `live` is as `full` is.
fn tells_thinking(view: Display) -> bool {
    match view {
        Display::Full | Display::Live => true,
        Display::Collapsed | Display::Off => false,
    }
}

#[cfg(test)]
mod tests;
