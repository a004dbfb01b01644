//! A turn as text: the answer on standard output, everything else on standard
//! error. A thought never reaches standard output.

use std::borrow::Cow;
use std::io::Write;
use std::time::{Duration, Instant};

use aside_core::block::{Arguments, ToolCall, ToolResult};
use aside_core::event::{BlockId, Event, Opening, Side};
use aside_core::fold::Fold;
use aside_core::loop_guard::LoopGuard;
use aside_core::question::spelled_out;
use aside_core::screen::Neutral;
use aside_core::text::split_within;
use aside_engine::{Front, Update};

use super::say;

/// How often the waiting line moves.
const BEAT: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How much of a call or a result is shown on its line.
const MOST_OF_A_CALL: usize = 100;

/// About; what is shown by it carries a `~`.
const BYTES_A_TOKEN: u64 = 4;

/// Which of the two is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Thinking {
    Show,
    Hide,
    /// The thinking, and no answer
    Only,
}

/// What the streams are, and how to write on them.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "four facts that do not depend on each other")]
pub(crate) struct Look {
    pub(crate) out_is_terminal: bool,
    pub(crate) err_is_terminal: bool,
    pub(crate) colour: bool,
    pub(crate) thinking: Thinking,
    /// Text of a step counts as the answer only when the step is over: a call
    /// or a stray close tag may turn it into something else.
    pub(crate) holds: bool,
}

/// What is going on while nothing is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Waiting,
    Thinking,
    RunningTools,
    Writing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Other,
}

/// Where a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Ended,
    /// Something was written and its line goes on.
    Open,
}

impl Line {
    fn after(text: &str) -> Line {
        if text.ends_with('\n') { Line::Ended } else { Line::Open }
    }
}

pub(crate) struct Plain<O: Write, E: Write> {
    out: O,
    err: E,
    look: Look,
    doing: Doing,
    since: Instant,
    /// Letters of the thought that is running, for the estimate of its tokens.
    thought: u64,
    /// Watches the running thought, until it has something to say.
    guard: Option<LoopGuard>,
    /// The kinds of the blocks of this reply, by their ids.
    kinds: Vec<Kind>,
    has_calls: bool,
    /// Nothing of this reply's answer is written yet.
    at_its_start: bool,
    out_line: Line,
    err_line: Line,
    spinner_is_drawn: bool,
    frame: usize,
    out_neutral: Neutral,
    err_neutral: Neutral,
    /// Notes of the last request, so that each is said once.
    noted: Vec<String>,
    /// While a question has the terminal, what is to be said waits.
    waiting: Option<Vec<String>>,
    /// The first failure to write; a reader that is gone ends the run.
    broken: Option<std::io::Error>,
}

impl<O: Write, E: Write> Plain<O, E> {
    pub(crate) fn new(out: O, err: E, look: Look) -> Plain<O, E> {
        Plain {
            out,
            err,
            look,
            doing: Doing::Waiting,
            since: Instant::now(),
            thought: 0,
            guard: None,
            kinds: Vec::new(),
            has_calls: false,
            at_its_start: true,
            out_line: Line::Ended,
            err_line: Line::Ended,
            spinner_is_drawn: false,
            frame: 0,
            out_neutral: Neutral::new(),
            err_neutral: Neutral::new(),
            noted: Vec::new(),
            waiting: None,
            broken: None,
        }
    }

    /// Ends what is open and gives up the streams.
    pub(crate) fn finish(mut self) -> std::io::Result<()> {
        self.answered();
        self.clear();
        self.end_lines();
        self.rest();
        match self.broken {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// A line to the person.
    pub(crate) fn say(&mut self, line: &str) {
        if let Some(waiting) = &mut self.waiting {
            waiting.push(line.to_owned());
            return;
        }
        self.clear();
        self.end_lines();
        self.let_out_go_first();
        let text = if self.look.err_is_terminal { aside_core::screen::neutral(line) } else { Cow::Borrowed(line) };
        let written = writeln!(self.err, "{text}");
        self.check(written);
    }

    /// The terminal is the question's from here on.
    fn asked(&mut self) {
        self.clear();
        self.end_lines();
        self.waiting.get_or_insert_default();
    }

    fn answered(&mut self) {
        for line in self.waiting.take().unwrap_or_default() {
            self.say(&line);
        }
    }

    fn check(&mut self, written: std::io::Result<()>) {
        if let Err(error) = written {
            self.broken.get_or_insert(error);
        }
    }

    fn start(&mut self, doing: Doing) {
        self.doing = doing;
        self.since = Instant::now();
        self.thought = 0;
    }

    fn opened(&mut self, block: BlockId, opening: Opening<'_>) {
        let kind = match opening {
            Opening::Text => Kind::Text,
            Opening::Thinking { .. } => Kind::Thinking,
            Opening::ToolCall { .. } => {
                self.has_calls = true;
                Kind::Other
            }
            Opening::Unmodelled => Kind::Other,
        };
        match kind {
            Kind::Thinking => {
                self.start(Doing::Thinking);
                self.guard = self.look.err_is_terminal.then(LoopGuard::new);
            }
            Kind::Text => self.start(Doing::Writing),
            Kind::Other => (),
        }
        let at = block.0 as usize;
        if self.kinds.len() <= at {
            self.kinds.resize(at + 1, Kind::Other);
        }
        if let Some(slot) = self.kinds.get_mut(at) {
            *slot = kind;
        }
    }

    fn kind(&self, block: BlockId) -> Kind {
        self.kinds.get(block.0 as usize).copied().unwrap_or(Kind::Other)
    }

    fn grew(&mut self, block: BlockId, text: &str) {
        match self.kind(block) {
            Kind::Text if self.look.holds => (),
            Kind::Text => self.answer(text),
            Kind::Thinking => {
                self.thought += text.len() as u64;
                if self.look.thinking != Thinking::Hide {
                    self.think(text);
                }
                self.watch(text);
            }
            Kind::Other => (),
        }
    }

    /// Says once that a thought goes in circles.
    fn watch(&mut self, text: &str) {
        let Some(guard) = &mut self.guard else { return };
        guard.push(text);
        if let Some(line) = guard.found().map(say::stuck) {
            self.guard = None;
            self.say(&line);
        }
    }

    fn answer(&mut self, text: &str) {
        // Empty lines between a thought and its answer belong to neither.
        let text = if self.at_its_start { text.trim_start_matches(['\n', '\r']) } else { text };
        if self.look.thinking == Thinking::Only || text.is_empty() {
            return;
        }
        self.at_its_start = false;
        self.clear();
        if self.err_line == Line::Open && self.look.err_is_terminal {
            let written = self.err.write_all(b"\n");
            self.check(written);
            self.err_line = Line::Ended;
        }
        // Both may lead to one screen: what was said first must be there first.
        let written = self.err.flush();
        self.check(written);
        let text = if self.look.out_is_terminal { self.out_neutral.take(text) } else { Cow::Borrowed(text) };
        let written = self.out.write_all(text.as_bytes());
        self.out_line = Line::after(&text);
        self.check(written);
    }

    fn think(&mut self, text: &str) {
        self.clear();
        self.end_out();
        self.let_out_go_first();
        let text = if self.look.err_is_terminal { self.err_neutral.take(text) } else { Cow::Borrowed(text) };
        let written = match self.look.colour {
            true => write!(self.err, "\x1b[2;3m{text}\x1b[0m"),
            false => self.err.write_all(text.as_bytes()),
        };
        self.err_line = Line::after(&text);
        self.check(written);
    }

    fn closed(&mut self, block: BlockId) {
        if self.kind(block) != Kind::Thinking {
            return;
        }
        if self.look.thinking == Thinking::Hide && self.look.err_is_terminal && self.doing == Doing::Thinking {
            let line = format!("thought for {}", self.figures());
            let line = if self.look.colour { format!("\x1b[2m{line}\x1b[0m") } else { line };
            self.clear();
            self.end_lines();
            let written = writeln!(self.err, "{line}");
            self.check(written);
        }
        if self.err_line == Line::Open {
            let written = self.err.write_all(b"\n");
            self.check(written);
            self.err_line = Line::Ended;
        }
        self.start(Doing::Waiting);
    }

    /// What was taken for one thing is another; what it holds moves along.
    fn refiled(&mut self, block: BlockId, to: Side, fold: &Fold) {
        let text = fold.text(block);
        let kind = match to {
            Side::Text => Kind::Text,
            Side::Thinking => Kind::Thinking,
        };
        if let Some(slot) = self.kinds.get_mut(block.0 as usize) {
            *slot = kind;
        }
        match to {
            Side::Text if self.look.holds => (),
            Side::Text => self.answer(text),
            Side::Thinking if self.look.holds && self.look.thinking != Thinking::Hide => self.think(text),
            Side::Thinking if self.look.holds => (),
            Side::Thinking => self.say("note: what is written above was thinking, not the answer"),
        }
    }

    /// A reply is over: what was held is the answer, or words between calls.
    fn reply_ended(&mut self, fold: &Fold) {
        if self.look.holds {
            let texts: Vec<&str> = self.held(fold).collect();
            if !self.has_calls {
                texts.into_iter().for_each(|text| self.answer(text));
            } else if self.look.thinking != Thinking::Only && texts.iter().any(|text| !text.trim().is_empty()) {
                self.say(texts.concat().trim());
            }
        }
        if self.has_calls {
            self.end_lines();
        }
        self.kinds.clear();
        self.has_calls = false;
        self.at_its_start = true;
        self.start(Doing::Waiting);
    }

    /// The text of the reply, as its provider had the last word on it.
    fn held<'f>(&self, fold: &'f Fold) -> impl Iterator<Item = &'f str> {
        let blocks = (0..self.kinds.len()).filter_map(|at| u32::try_from(at).ok()).map(BlockId);
        blocks.filter(|block| self.kind(*block) == Kind::Text).map(|block| fold.text(block))
    }

    fn tool_started(&mut self, call: &ToolCall) {
        let arguments = match &call.arguments {
            Arguments::Json(text) | Arguments::Broken(text) => text,
        };
        self.say(&format!("→ {} {}", call.name, cut(&spelled_out(arguments))));
        self.start(Doing::RunningTools);
    }

    fn tool_ended(&mut self, call: &ToolCall, result: &ToolResult) {
        let first = result.content.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        let line = match (result.is_error, result.content.lines().count()) {
            (true, _) => format!("✗ {}: {}", call.name, cut(first)),
            (false, 0 | 1) => format!("✓ {}: {}", call.name, cut(first)),
            (false, lines) => format!("✓ {}: {lines} lines", call.name),
        };
        self.say(&line);
    }

    /// Both streams may lead to one screen: what was said first must be there
    /// first. Nothing waits there in the middle of a thought, so this is cheap.
    fn let_out_go_first(&mut self) {
        let written = self.out.flush();
        self.check(written);
    }

    fn end_out(&mut self) {
        if self.out_line == Line::Open && self.look.out_is_terminal {
            let written = self.out.write_all(b"\n");
            self.check(written);
            self.out_line = Line::Ended;
        }
    }

    fn end_lines(&mut self) {
        if self.out_line == Line::Open {
            let written = self.out.write_all(b"\n");
            self.check(written);
            self.out_line = Line::Ended;
        }
        if self.err_line == Line::Open {
            let written = self.err.write_all(b"\n");
            self.check(written);
            self.err_line = Line::Ended;
        }
    }

    fn figures(&self) -> String {
        let seconds = self.since.elapsed();
        // A thought that took no second did not take none.
        let seconds = match seconds.as_secs() {
            0 => format!("{:.1}s", seconds.as_secs_f64()),
            whole => format!("{whole}s"),
        };
        match (self.doing, self.thought) {
            (Doing::Thinking, letters) if letters > 0 => format!("{seconds} · ~{} tokens", tokens_of(letters)),
            _ => seconds,
        }
    }

    fn clear(&mut self) {
        if self.spinner_is_drawn {
            self.spinner_is_drawn = false;
            let written = self.err.write_all(b"\r\x1b[2K");
            self.check(written);
        }
    }
}

impl<O: Write, E: Write> Front for Plain<O, E> {
    fn hear(&mut self, update: Update<'_>) {
        match update {
            // The hot one first.
            Update::Event { event: Event::Grew { block, text }, .. } => self.grew(block, text),
            Update::Event { event, fold } => match event {
                Event::Opened { block, opening } => self.opened(block, opening),
                Event::Closed { block } => self.closed(block),
                Event::Refiled { block, to } => self.refiled(block, to, fold),
                Event::Restated { .. } | Event::Item { .. } | Event::Sealed { .. } | Event::Identified { .. } => (),
                Event::Noted(note) => self.say(&format!("note: {}", note.message)),
                Event::Ended(_) => self.reply_ended(fold),
                Event::Started { .. } | Event::Kept { .. } | Event::Seen { .. } | Event::Usage(_) => (),
                Event::Grew { .. } => (),
            },
            Update::Sending { encoded, .. } => {
                for note in &encoded.notes {
                    if !self.noted.contains(note) {
                        self.say(&format!("note: {note}"));
                        self.noted.push(note.clone());
                    }
                }
                self.start(Doing::Waiting);
            }
            Update::Received(_) | Update::Recorded(_) | Update::Ended(_) => (),
            Update::Retrying { after, why, .. } => {
                self.say(&format!("{why}; trying again in {:.1} s", after.as_secs_f64()));
            }
            Update::Told(told) => self.say(&say::told(told)),
            Update::Compacted { summarised, .. } => self.say(&say::compacted(summarised)),
            Update::Noted(note) => self.say(&format!("note: {note}")),
            Update::Asked(_) => self.asked(),
            Update::Answered { .. } => self.answered(),
            Update::ToolStarted(call) => self.tool_started(call),
            Update::ToolEnded { call, result } => self.tool_ended(call, result),
        }
    }

    fn rest(&mut self) {
        let written = self.out.flush().and_then(|()| self.err.flush());
        self.check(written);
    }

    fn beat(&self) -> Option<Duration> {
        self.look.err_is_terminal.then_some(BEAT)
    }

    /// One line that moves while there is nothing to read.
    fn tick(&mut self) {
        if self.waiting.is_some() {
            return;
        }
        if self.out_line == Line::Open || self.err_line == Line::Open {
            return;
        }
        let what = match self.doing {
            Doing::Waiting => "waiting",
            Doing::Thinking => "thinking",
            Doing::RunningTools => "running tools",
            Doing::Writing if self.look.holds => "answering",
            Doing::Writing => return,
        };
        self.frame = (self.frame + 1) % SPINNER.len();
        let sign = SPINNER.get(self.frame).copied().unwrap_or("");
        let written = write!(self.err, "\r\x1b[2K{sign} {what} {}", self.figures()).and_then(|()| self.err.flush());
        self.spinner_is_drawn = true;
        self.check(written);
    }
}

/// One line of at most so many letters.
fn cut(text: &str) -> String {
    // Of a long text no more is looked at than a line can show.
    let (text, _) = split_within(text.trim_start(), 16 * MOST_OF_A_CALL);
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_OF_A_CALL) {
        Some((at, _)) => line.get(..at).map(|line| format!("{line}…")).unwrap_or_default(),
        None => line,
    }
}

/// A figure that moves while one waits; the ledger has the real one.
fn tokens_of(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_A_TOKEN)
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
