//! A call of a tool with what came of it.

use aside_core::block::{Arguments, Time, ToolCall, ToolResult};
use aside_core::question::spelled_out;
use aside_core::screen::neutral_line;
use serde_json::Value;

use super::Look;
use super::hunks::changed;
use super::plain::{Extent, Manner, Plain};
use super::thought::duration;
use crate::text::light::{Job, Lit, Ticket};
use crate::text::wrap::cut;
use crate::text::{Body, Ink, Row, Span, width_of};

/// Arguments that name what a call is about, the most telling first.
const SUBJECTS: [&str; 8] = ["command", "path", "file_path", "pattern", "query", "url", "name", "city"];

/// How a result begins that a tool did not write. It is told the model in
/// words, and those are what the store keeps.
const NOT_OF_THE_TOOL: [(&str, State); 3] = [
    ("denied", State::Denied),
    ("stopped by the user", State::Stopped),
    ("interrupted before it was allowed", State::NotRun),
];

/// So much of a name is always shown.
const LEAST_NAME: usize = 8;
/// From this width on both the subject and the size of the output say something.
const ROOM_FOR_BOTH: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The model is still writing the arguments.
    Coming,
    Waiting,
    Running,
    Done,
    Failed,
    /// Nobody allowed it.
    Denied,
    /// The user stopped the turn while it ran.
    Stopped,
    /// The turn ended before it was run.
    NotRun,
}

/// How much of a call is shown below its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Line,
    /// The first lines of much.
    Part,
    Open,
}

#[derive(Debug)]
pub struct Tool {
    name: String,
    subject: String,
    arguments: String,
    state: State,
    began: Option<Time>,
    took: Option<u64>,
    output: Option<Plain>,
    /// The arguments, to look at while nothing came back.
    asked: Option<Plain>,
    /// What the user chose.
    choice: Option<Shape>,
    /// Lines that its change brings and takes away.
    changed: (usize, usize),
}

impl Tool {
    pub fn begin(name: &str) -> Tool {
        Tool {
            name: neutral_line(name),
            subject: String::new(),
            arguments: String::new(),
            state: State::Coming,
            began: None,
            took: None,
            output: None,
            asked: None,
            choice: None,
            changed: (0, 0),
        }
    }

    pub fn whole(call: &ToolCall) -> Tool {
        let mut tool = Tool::begin(&call.name);
        tool.close(call);
        tool
    }

    pub fn push(&mut self, text: &str) {
        self.arguments.push_str(text);
    }

    pub fn close(&mut self, call: &ToolCall) {
        self.name = neutral_line(&call.name);
        let text = match &call.arguments {
            Arguments::Json(text) | Arguments::Broken(text) => text,
        };
        // What a call does is not hidden by how it is written.
        self.subject = neutral_line(&spelled_out(&subject(text)));
        self.arguments = spelled_out(text);
        if self.state == State::Coming {
            self.state = State::Waiting;
        }
    }

    pub fn start(&mut self, now: Option<Time>) {
        self.state = State::Running;
        self.began = now;
    }

    /// How long the user took to allow it is not its own time.
    pub fn answered(&mut self, now: Option<Time>) {
        self.began = now;
    }

    pub fn is_running(&self, name: &str) -> bool {
        self.state == State::Running && self.name == neutral_line(name)
    }

    pub fn is_about(&self, about: &str) -> bool {
        spelled_out(&subject(&self.arguments)) == spelled_out(about)
    }

    pub fn finish(&mut self, result: &ToolResult, now: Option<Time>) {
        if let (Some(began), Some(now)) = (self.began, now) {
            self.took = Some(now.0.saturating_sub(began.0));
        }
        let known = NOT_OF_THE_TOOL.iter().find(|(begins, _)| result.content.starts_with(begins));
        self.state = match (result.is_error, known) {
            (false, _) => State::Done,
            (true, None) => State::Failed,
            (true, Some((_, state))) => *state,
        };
        let output = Plain::output(&result.content);
        if output.manner() == Manner::Diff {
            self.changed = changed(output.source());
        }
        self.output = Some(output);
    }

    /// The turn is over: what has not run will not.
    pub fn settle(&mut self) {
        match self.state {
            State::Coming | State::Waiting | State::Running => self.state = State::NotRun,
            State::Done | State::Failed | State::Denied | State::Stopped | State::NotRun => (),
        }
    }

    pub fn has_output(&self) -> bool {
        self.output.is_some()
    }

    /// The output, unless there is nothing in it to see.
    fn words(&self) -> Option<&Plain> {
        self.output.as_ref().filter(|output| !output.is_blank())
    }

    fn is_long(&self) -> bool {
        self.words().is_some_and(Plain::is_long)
    }

    fn shape(&self) -> Shape {
        let shape = match self.choice {
            Some(shape) => shape,
            // A change and a failure are what one wants to see.
            None => {
                let is_bad = matches!(self.state, State::Failed | State::Denied);
                let is_seen = self.words().is_some_and(|out| is_bad || out.manner() == Manner::Diff);
                if is_seen { Shape::Part } else { Shape::Line }
            }
        };
        if shape == Shape::Part && !self.is_long() { Shape::Open } else { shape }
    }

    pub fn is_open(&self) -> bool {
        self.shape() != Shape::Line
    }

    /// Only the first lines are shown.
    pub fn is_part(&self) -> bool {
        self.shape() == Shape::Part
    }

    /// Much opens in two steps: its first lines, then all of it.
    pub fn toggle(&mut self) {
        self.choice = Some(match self.shape() {
            Shape::Line => Shape::Part,
            Shape::Part => Shape::Open,
            Shape::Open => Shape::Line,
        });
    }

    pub fn copy_text(&self) -> String {
        self.output.as_ref().map_or_else(|| self.arguments.clone(), |output| output.source().to_owned())
    }

    pub fn header(&self, look: &Look) -> Row {
        let (mark, ink) = match self.state {
            State::Coming | State::Running => (look.spinner(), Ink::Accent),
            State::Waiting => ("○", Ink::Muted),
            State::Done => ("✓", Ink::Good),
            State::Failed => ("✗", Ink::Bad),
            State::Denied => ("✗", Ink::Warn),
            State::Stopped | State::NotRun => ("○", Ink::Warn),
        };
        let arrow = if self.is_open() { "▼ " } else { "▶ " };
        let marks = width_of(arrow) + width_of(mark) + 1;
        let fate = self.fate(look.now);
        let fits =
            |tail: &str| marks + width_of(&self.name) + 1 + width_of(&self.subject) + width_of(tail) <= look.width;
        let all = self.size() + &fate;
        // What it is about says more than how long its output is.
        let gives_way = !fits(&all) && (fits(&fate) || look.width < ROOM_FOR_BOTH);
        let tail = if gives_way { fate } else { all };
        let room = look.width.saturating_sub(marks + width_of(&tail));
        let name = cut(&self.name, room.max(LEAST_NAME));
        let room = room.saturating_sub(width_of(&name) + 1);
        let mut spans =
            vec![Span::new(Ink::Muted, arrow), Span::new(ink, mark), Span::new(Ink::Accent, format!(" {name}"))];
        if room > 3 && !self.subject.is_empty() {
            spans.push(Span::new(Ink::Plain, format!(" {}", cut(&self.subject, room))));
        }
        if marks + width_of(&name) + width_of(&tail) <= look.width {
            spans.push(Span::new(Ink::Muted, tail));
        }
        Row::new(spans)
    }

    /// How much came back.
    fn size(&self) -> String {
        let is_of_the_tool = matches!(self.state, State::Done | State::Failed);
        let Some(output) = self.output.as_ref().filter(|_| is_of_the_tool) else { return String::new() };
        let (added, removed) = self.changed;
        match (added + removed, output.lines()) {
            (0, 0) => " · no output".to_owned(),
            (0, 1) => " · 1 line".to_owned(),
            (0, lines) => format!(" · {lines} lines"),
            _ => format!(" · +{added} -{removed}"),
        }
    }

    /// What became of it, and how long that took.
    fn fate(&self, now: Option<Time>) -> String {
        let (word, ms) = match self.state {
            State::NotRun => (" · not run", None),
            State::Failed => (" · failed", self.took),
            State::Denied => (" · denied", None),
            State::Stopped => (" · stopped", self.took),
            State::Done => ("", self.took),
            State::Running => ("", self.began.zip(now).map(|(began, now)| now.0.saturating_sub(began.0))),
            State::Coming | State::Waiting => ("", None),
        };
        let ms = ms.filter(|ms| *ms >= 1000);
        format!("{word}{}", ms.map(|ms| format!(" · {}", duration(ms))).unwrap_or_default())
    }

    pub fn body(&mut self, width: usize) -> Body<'_> {
        let extent = match self.shape() {
            Shape::Line => return Body::plain(&[]),
            Shape::Part => Extent::Part,
            Shape::Open => Extent::All,
        };
        if let Some(output) = self.output.as_mut().filter(|output| !output.is_blank()) {
            return output.body(width, extent);
        }
        let stale = self.asked.as_ref().is_some_and(|asked| asked.source() != self.arguments);
        if stale {
            self.asked = None;
        }
        let arguments = &self.arguments;
        self.asked.get_or_insert_with(|| Plain::new(arguments, Manner::Output)).body(width, Extent::All)
    }

    pub fn wants(&mut self, next: &mut Ticket) -> Option<Job> {
        self.output.as_mut().and_then(|output| output.wants(next))
    }

    pub fn lit(&mut self, lit: &mut Lit) -> bool {
        self.output.as_mut().is_some_and(|output| output.lit(lit))
    }

    pub fn forget_rows(&mut self) {
        self.asked = None;
        if let Some(output) = &mut self.output {
            output.forget_rows();
        }
    }
}

/// What a call is about, from its arguments.
pub(crate) fn subject(arguments: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return arguments.to_owned() };
    let Some(object) = value.as_object() else { return arguments.to_owned() };
    let named = SUBJECTS.iter().find_map(|name| object.get(*name).and_then(Value::as_str));
    match named {
        Some(text) => text.to_owned(),
        None if object.is_empty() => String::new(),
        None => {
            let pairs = object.iter().map(|(key, value)| match value.as_str() {
                Some(text) => format!("{key}={text}"),
                None => format!("{key}={value}"),
            });
            pairs.collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_what_it_is_about() {
        #[rustfmt::skip]
        let cases = [
            ("path",        r#"{"offset":3,"path":"a.rs"}"#,  "a.rs"),
            ("command",     r#"{"command":"ls -l"}"#,         "ls -l"),
            ("none of ours", r#"{"a":1,"b":"x"}"#,            "a=1 b=x"),
            ("nothing",     "{}",                             ""),
            ("broken",      r#"{"a": "#,                      r#"{"a": "#),
        ];
        for (name, arguments, expected) in cases {
            assert_eq!(subject(arguments), expected, "{name}");
        }
    }
}
