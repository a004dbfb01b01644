//! A call of a tool with what came of it.

use aside_core::block::{Arguments, Time, ToolCall, ToolResult};
use aside_core::screen::{neutral, neutral_line};
use serde_json::Value;

use super::Look;
use super::diff::changed;
use super::plain::{Extent, Manner, Plain};
use super::thought::duration;
use crate::text::light::{Job, Lit, Ticket};
use crate::text::wrap::cut;
use crate::text::{Body, Ink, Row, Span, width_of};

/// Arguments that name what a call is about, the most telling first.
const SUBJECTS: [&str; 8] = ["command", "path", "file_path", "pattern", "query", "url", "name", "city"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The model is still writing the arguments.
    Coming,
    Waiting,
    Running,
    Done,
    Failed,
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
        self.subject = neutral_line(&subject(text));
        self.arguments = neutral(text).into_owned();
        if self.state == State::Coming {
            self.state = State::Waiting;
        }
    }

    pub fn start(&mut self, now: Option<Time>) {
        self.state = State::Running;
        self.began = now;
    }

    pub fn finish(&mut self, result: &ToolResult, now: Option<Time>) {
        if let (Some(began), Some(now)) = (self.began, now) {
            self.took = Some(now.0.saturating_sub(began.0));
        }
        self.state = if result.is_error { State::Failed } else { State::Done };
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
            State::Done | State::Failed | State::NotRun => (),
        }
    }

    pub fn has_output(&self) -> bool {
        self.output.is_some()
    }

    fn is_long(&self) -> bool {
        self.output.as_ref().is_some_and(Plain::is_long)
    }

    fn shape(&self) -> Shape {
        let shape = match self.choice {
            Some(shape) => shape,
            // A change and a failure are what one wants to see.
            None if self.state == State::Failed => Shape::Part,
            None => match self.output.as_ref().map(Plain::manner) {
                Some(Manner::Diff) => Shape::Part,
                Some(Manner::Output | Manner::User | Manner::Notice(_)) | None => Shape::Line,
            },
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
            State::NotRun => ("○", Ink::Warn),
        };
        let arrow = if self.is_open() { "▼ " } else { "▶ " };
        let tail = self.tail();
        let used = width_of(arrow) + width_of(mark) + 1 + width_of(&self.name);
        let room = look.width.saturating_sub(used + width_of(&tail) + 1);
        let mut spans =
            vec![Span::new(Ink::Muted, arrow), Span::new(ink, mark), Span::new(Ink::Accent, format!(" {}", self.name))];
        if room > 3 && !self.subject.is_empty() {
            spans.push(Span::new(Ink::Plain, format!(" {}", cut(&self.subject, room))));
        }
        if used + width_of(&tail) <= look.width {
            spans.push(Span::new(Ink::Muted, tail));
        }
        Row::new(spans)
    }

    fn tail(&self) -> String {
        let mut tail = String::new();
        if let Some(output) = &self.output {
            let (added, removed) = self.changed;
            match (added + removed, output.lines()) {
                (0, 0) => tail.push_str(" · nothing"),
                (0, 1) => tail.push_str(" · 1 line"),
                (0, lines) => tail.push_str(&format!(" · {lines} lines")),
                _ => tail.push_str(&format!(" · +{added} -{removed}")),
            }
        }
        match self.state {
            State::NotRun => tail.push_str(" · not run"),
            State::Failed => tail.push_str(" · failed"),
            State::Coming | State::Waiting | State::Running | State::Done => (),
        }
        if let Some(took) = self.took.filter(|took| *took >= 1000) {
            tail.push_str(&format!(" · {}", duration(took)));
        }
        tail
    }

    pub fn body(&mut self, width: usize) -> Body<'_> {
        let extent = match self.shape() {
            Shape::Line => return Body::plain(&[]),
            Shape::Part => Extent::Part,
            Shape::Open => Extent::All,
        };
        if let Some(output) = &mut self.output {
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
fn subject(arguments: &str) -> String {
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
