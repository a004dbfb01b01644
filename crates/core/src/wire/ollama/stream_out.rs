//! Ollama, events to bytes: every delta a line, a call whole.

use crate::block::{Block, CallId, Reply, Time, ToolCall};
use crate::dialect::Rules;
use crate::event::{BlockId, End, Ending, Event, Opening, ProviderError, Side, Usage};
use crate::json::rfc3339;
use crate::wire::ReplyHead;
use crate::wire::chat::{Course, Tags, tags};
use crate::wire::draft::{arguments_text, list, object};
use crate::wire::json::{ObjectWriter, Raw, quote};
use crate::wire::out::{Out, Slots};

#[derive(Debug)]
pub(in crate::wire) struct OllamaWriter {
    rules: Rules,
    /// What every line begins with.
    head: String,
    slots: Slots<Slot>,
    course: Course,
    usage: Usage,
}

#[derive(Debug)]
enum Slot {
    Text,
    Thinking { place: Place, n_items: u32, grew: bool },
    Call { id: Option<String>, name: String, arguments: String },
    Unmodelled,
}

#[derive(Debug)]
enum Place {
    Field(String),
    Tags(Tags),
}

impl OllamaWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> OllamaWriter {
        OllamaWriter {
            rules,
            head: line_head(head),
            slots: Slots::default(),
            course: Course::default(),
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut Out) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { opening, .. } => {
                let slot = match opening {
                    Opening::Text => Slot::Text,
                    Opening::Thinking { source, .. } => {
                        Slot::Thinking { place: place(&self.rules, source, &self.course), n_items: 0, grew: false }
                    }
                    Opening::ToolCall { id, name } => Slot::Call {
                        id: id.filter(|id| !id.is_empty()).map(str::to_owned),
                        name: name.to_owned(),
                        arguments: String::new(),
                    },
                    Opening::Unmodelled => Slot::Unmodelled,
                };
                self.slots.open(slot);
            }
            Event::Item { block, .. } => {
                if let Some(Slot::Thinking { n_items, .. }) = self.slots.at(block) {
                    *n_items += 1;
                    if *n_items > 1 {
                        self.grow(block, "\n\n", out);
                    }
                }
            }
            Event::Refiled { block, to } => {
                if let Some(slot) = self.slots.at(block) {
                    *slot = match to {
                        Side::Text => Slot::Text,
                        Side::Thinking => Slot::Thinking {
                            place: place(&self.rules, "content", &self.course),
                            n_items: 0,
                            grew: true,
                        },
                    };
                }
            }
            Event::Closed { block } => self.close(block, out),
            Event::Seen { field } => {
                if self.rules.read.text.iter().any(|known| known == field) {
                    self.message(&[("content", "\"\""), (field, "\"\"")], out);
                }
            }
            Event::Usage(usage) => self.usage = usage,
            Event::Ended(end) => self.end(end, out),
            Event::Started { .. }
            | Event::Sealed { .. }
            | Event::Identified { .. }
            | Event::Restated { .. }
            | Event::Kept { .. }
            | Event::Noted(_) => (),
        }
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut Out) {
        match self.slots.at(block) {
            Some(Slot::Call { arguments, .. }) => arguments.push_str(text),
            Some(Slot::Text) => {
                self.course.content_began |= !text.trim().is_empty();
                self.message(&[("content", &quote(text))], out);
            }
            Some(Slot::Thinking { place: Place::Field(field), .. }) => {
                self.course.tags_are_literal = true;
                let field = field.clone();
                self.message(&[("content", "\"\""), (&field, &quote(text))], out);
            }
            Some(Slot::Thinking { place: Place::Tags(tags), grew, .. }) => {
                let open = if std::mem::replace(grew, true) { "" } else { tags.open.as_str() };
                let text = quote(&format!("{open}{text}"));
                self.course.tagged = true;
                self.message(&[("content", &text)], out);
            }
            Some(Slot::Unmodelled) | None => (),
        }
    }

    fn close(&mut self, block: BlockId, out: &mut Out) {
        match self.slots.at(block) {
            Some(Slot::Call { id, name, arguments }) => {
                let call = call_entry(id.as_deref(), name, arguments);
                self.message(&[("content", "\"\""), ("tool_calls", &format!("[{call}]"))], out);
            }
            Some(Slot::Thinking { place: Place::Tags(tags), grew: true, .. }) => {
                let close = quote(&tags.close);
                self.message(&[("content", &close)], out);
            }
            Some(Slot::Text | Slot::Thinking { .. } | Slot::Unmodelled) | None => (),
        }
    }

    fn message(&self, members: &[(&str, &str)], out: &mut Out) {
        let mut message = ObjectWriter::default();
        message.push_raw("role", "\"assistant\"");
        for (name, json) in members {
            message.push_raw(name, json);
        }
        out.line(&format!(r#"{},"message":{},"done":false}}"#, self.head, message.finish()));
    }

    fn end(&mut self, end: &End, out: &mut Out) {
        if let Some(error) = &end.error {
            out.line(&failure(error));
        }
        match &end.ending {
            Ending::CutOff => return,
            Ending::Unsaid if end.error.is_some() => return,
            Ending::Unsaid
            | Ending::Stop
            | Ending::Length
            | Ending::ToolCalls
            | Ending::ContentFilter
            | Ending::Refusal
            | Ending::Pause
            | Ending::Error
            | Ending::Unrecognized(_) => (),
        }
        out.line(&last(&self.head, r#"{"role":"assistant","content":""}"#, &end.ending, self.usage));
    }
}

/// A whole answer: the last line with everything in it.
pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return failure(error);
    }
    let (mut content, mut calls) = (String::new(), Vec::new());
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut course = Course { tags_are_literal: speaks_beside(rules, reply), ..Course::default() };
    for block in &reply.blocks {
        match block {
            Block::Text(text) => {
                course.content_began |= !text.text.trim().is_empty();
                content.push_str(&text.text);
            }
            Block::Thinking(thinking) => match place(rules, &thinking.source, &course) {
                Place::Tags(tags) => {
                    course.tagged = true;
                    content.push_str(&format!("{}{}{}", tags.open, thinking.text(), tags.close));
                }
                Place::Field(name) => match fields.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, said)) => said.push_str(thinking.text()),
                    None => fields.push((name, thinking.text().to_owned())),
                },
            },
            Block::ToolCall(call) => calls.push(whole_call(call)),
            Block::Unmodelled(_) | Block::ToolResult(_) | Block::Image(_) => (),
        }
    }
    let mut message = ObjectWriter::default();
    message.push_raw("role", "\"assistant\"");
    message.push_raw("content", &quote(&content));
    if let Some(field) = reply.seen.as_deref().filter(|_| fields.is_empty()) {
        message.push_raw(field, "\"\"");
    }
    for (name, text) in &fields {
        message.push_raw(name, &quote(text));
    }
    if !calls.is_empty() {
        message.push_raw("tool_calls", &list(&calls));
    }
    last(&line_head(head), &message.finish(), &reply.end.ending, reply.usage)
}

/// Whether a thought has a field of its own; tags are literal then.
fn speaks_beside(rules: &Rules, reply: &Reply) -> bool {
    let mut course = Course::default();
    reply.blocks.iter().any(|block| match block {
        Block::Thinking(thinking) => {
            let place = place(rules, &thinking.source, &course);
            course.tagged = true;
            matches!(place, Place::Field(_)) && !thinking.text().is_empty()
        }
        Block::Text(text) => {
            course.content_began |= !text.text.trim().is_empty();
            false
        }
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Image(_) | Block::Unmodelled(_) => false,
    })
}

fn whole_call(call: &ToolCall) -> String {
    let id = match &call.id {
        CallId::Given(id) => Some(id.as_str()),
        CallId::Invented(_) => None,
    };
    call_entry(id, &call.name, arguments_text(&call.arguments))
}

fn call_entry(id: Option<&str>, name: &str, arguments: &str) -> String {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    // What never became JSON is text.
    let json = if Raw::of(arguments).is_ok() { arguments.to_owned() } else { quote(arguments) };
    let mut call = ObjectWriter::default();
    if let Some(id) = id {
        call.push_raw("id", &quote(id));
    }
    call.push("function", &object([("name", &quote(name)), ("arguments", &json)]));
    call.finish()
}

fn place(rules: &Rules, source: &str, course: &Course) -> Place {
    let named = rules.read.text.iter().find(|field| *field == source);
    if let (None, Some(tags)) = (named, tags(rules, source, course)) {
        return Place::Tags(tags);
    }
    let field = named.or(rules.read.text.first());
    Place::Field(field.map_or_else(|| "thinking".to_owned(), Clone::clone))
}

fn line_head(head: &ReplyHead<'_>) -> String {
    let created = rfc3339(Time(head.created.saturating_mul(1000)));
    format!(r#"{{"model":{},"created_at":{}"#, quote(head.model), quote(&created))
}

fn last(head: &str, message: &str, ending: &Ending, usage: Usage) -> String {
    let mut line = format!(r#"{head},"message":{message},"done":true"#);
    if let Some(word) = done_reason(ending) {
        line.push_str(&format!(r#","done_reason":{}"#, quote(word)));
    }
    line.push_str(r#","total_duration":0,"load_duration":0"#);
    for (name, count) in [("prompt_eval_count", usage.input), ("eval_count", usage.output)] {
        if let Some(count) = count {
            line.push_str(&format!(r#","{name}":{count}"#));
        }
    }
    line.push('}');
    line
}

fn failure(error: &ProviderError) -> String {
    let mut line = ObjectWriter::default();
    line.push_raw("error", &quote(&error.message));
    if let Some(code) = &error.code {
        line.push_raw("code", &quote(code));
    }
    if let Some(status) = error.status {
        line.push_raw("status_code", &status.to_string());
    }
    line.finish()
}

/// A call ends with the same word as an answer.
fn done_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop | Ending::ToolCalls => Some("stop"),
        Ending::Length => Some("length"),
        Ending::ContentFilter => Some("content_filter"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause_turn"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(word) => Some(word),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
