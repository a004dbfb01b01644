//! Writes an Ollama stream: one line per delta; a call is one line.

use crate::block::{Block, CallId, Reply, Time, ToolCall};
use crate::dialect::Rules;
use crate::event::{BlockId, BlockOpening, Ending, Event, ProseKind, ProviderError, ReplyEnd, Usage};
use crate::json::rfc3339;
use crate::json_text::{ObjectWriter, Raw, quote};
use crate::wire::ReplyHead;
use crate::wire::chat::{ContentState, ThinkingTags, tags_for};
use crate::wire::request_draft::{arguments_text, list, object};
use crate::wire::stream_parts::{FrameWriter, PerBlock};

#[derive(Debug)]
pub(in crate::wire) struct OllamaWriter {
    rules: Rules,
    /// The beginning of every line.
    head: String,
    blocks: PerBlock<OllamaBlockOut>,
    content_state: ContentState,
    usage: Usage,
}

#[derive(Debug)]
enum OllamaBlockOut {
    Text,
    Thinking { carrier: OllamaCarrier, n_items: u32, grew: bool },
    Call { id: Option<String>, name: String, arguments: String },
    Unmodelled,
}

#[derive(Debug)]
enum OllamaCarrier {
    Field(String),
    Tags(ThinkingTags),
}

impl OllamaWriter {
    pub(in crate::wire) fn new(rules: Rules, head: &ReplyHead<'_>) -> OllamaWriter {
        OllamaWriter {
            rules,
            head: line_head(head),
            blocks: PerBlock::default(),
            content_state: ContentState::default(),
            usage: Usage::default(),
        }
    }

    pub(in crate::wire) fn take(&mut self, event: Event<'_>, out: &mut FrameWriter) {
        match event {
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Opened { opening, .. } => {
                let state = match opening {
                    BlockOpening::Text => OllamaBlockOut::Text,
                    BlockOpening::Thinking { source, .. } => OllamaBlockOut::Thinking {
                        carrier: carrier_for(&self.rules, source, &self.content_state),
                        n_items: 0,
                        grew: false,
                    },
                    BlockOpening::ToolCall { id, name } => OllamaBlockOut::Call {
                        id: id.filter(|id| !id.is_empty()).map(str::to_owned),
                        name: name.to_owned(),
                        arguments: String::new(),
                    },
                    BlockOpening::Unmodelled => OllamaBlockOut::Unmodelled,
                };
                self.blocks.open(state);
            }
            Event::Item { block, .. } => {
                if let Some(OllamaBlockOut::Thinking { n_items, .. }) = self.blocks.at(block) {
                    *n_items += 1;
                    if *n_items > 1 {
                        self.grow(block, "\n\n", out);
                    }
                }
            }
            Event::Refiled { block, to } => {
                if let Some(state) = self.blocks.at(block) {
                    *state = match to {
                        ProseKind::Text => OllamaBlockOut::Text,
                        ProseKind::Thinking => OllamaBlockOut::Thinking {
                            carrier: carrier_for(&self.rules, "content", &self.content_state),
                            n_items: 0,
                            grew: true,
                        },
                    };
                }
            }
            Event::Closed { block } => self.close(block, out),
            Event::EmptyThinkingField { field } => {
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
            | Event::NativeItem { .. }
            | Event::Extra { .. }
            | Event::Noted(_) => (),
        }
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut FrameWriter) {
        match self.blocks.at(block) {
            Some(OllamaBlockOut::Call { arguments, .. }) => arguments.push_str(text),
            Some(OllamaBlockOut::Text) => {
                self.content_state.content_began |= !text.trim().is_empty();
                self.message(&[("content", &quote(text))], out);
            }
            Some(OllamaBlockOut::Thinking { carrier: OllamaCarrier::Field(field), .. }) => {
                self.content_state.tags_are_literal = true;
                let field = field.clone();
                self.message(&[("content", "\"\""), (&field, &quote(text))], out);
            }
            Some(OllamaBlockOut::Thinking { carrier: OllamaCarrier::Tags(tags), grew, .. }) => {
                let open = if std::mem::replace(grew, true) { "" } else { tags.open.as_str() };
                let text = quote(&format!("{open}{text}"));
                self.content_state.tagged = true;
                self.message(&[("content", &text)], out);
            }
            Some(OllamaBlockOut::Unmodelled) | None => (),
        }
    }

    fn close(&mut self, block: BlockId, out: &mut FrameWriter) {
        match self.blocks.at(block) {
            Some(OllamaBlockOut::Call { id, name, arguments }) => {
                let call = call_entry(id.as_deref(), name, arguments);
                self.message(&[("content", "\"\""), ("tool_calls", &format!("[{call}]"))], out);
            }
            Some(OllamaBlockOut::Thinking { carrier: OllamaCarrier::Tags(tags), grew: true, .. }) => {
                let close = quote(&tags.close);
                self.message(&[("content", &close)], out);
            }
            Some(OllamaBlockOut::Text | OllamaBlockOut::Thinking { .. } | OllamaBlockOut::Unmodelled) | None => (),
        }
    }

    fn message(&self, members: &[(&str, &str)], out: &mut FrameWriter) {
        let mut message = ObjectWriter::default();
        message.push_raw("role", "\"assistant\"");
        for (name, json) in members {
            message.push_raw(name, json);
        }
        out.line(&format!(r#"{},"message":{},"done":false}}"#, self.head, message.finish()));
    }

    fn end(&mut self, end: &ReplyEnd, out: &mut FrameWriter) {
        if let Some(error) = &end.error {
            out.line(&error_line(error));
        }
        if end.has_last_frame() {
            out.line(&last_line(&self.head, r#"{"role":"assistant","content":""}"#, &end.ending, self.usage));
        }
    }
}

/// A whole reply: the last line with all content.
pub(in crate::wire) fn whole(rules: &Rules, head: &ReplyHead<'_>, reply: &Reply) -> String {
    if let (Some(error), []) = (&reply.end.error, reply.blocks.as_slice()) {
        return error_line(error);
    }
    let (mut content, mut calls) = (String::new(), Vec::new());
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut content_state =
        ContentState { tags_are_literal: has_thinking_field(rules, reply), ..ContentState::default() };
    for block in &reply.blocks {
        match block {
            Block::Text(text) => {
                content_state.content_began |= !text.text.trim().is_empty();
                content.push_str(&text.text);
            }
            Block::Thinking(thinking) => match carrier_for(rules, &thinking.source, &content_state) {
                OllamaCarrier::Tags(tags) => {
                    content_state.tagged = true;
                    content.push_str(&format!("{}{}{}", tags.open, thinking.text(), tags.close));
                }
                OllamaCarrier::Field(name) => match fields.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known_text)) => known_text.push_str(thinking.text()),
                    None => fields.push((name, thinking.text().to_owned())),
                },
            },
            Block::ToolCall(call) => calls.push(whole_call(call)),
            Block::Unmodelled(_) | Block::ToolResult(_) | Block::Media(_) => (),
        }
    }
    let mut message = ObjectWriter::default();
    message.push_raw("role", "\"assistant\"");
    message.push_raw("content", &quote(&content));
    if let Some(field) = reply.empty_thinking_field.as_deref().filter(|_| fields.is_empty()) {
        message.push_raw(field, "\"\"");
    }
    for (name, text) in &fields {
        message.push_raw(name, &quote(text));
    }
    if !calls.is_empty() {
        message.push_raw("tool_calls", &list(&calls));
    }
    last_line(&line_head(head), &message.finish(), &reply.end.ending, reply.usage)
}

/// Whether any thinking is in its own field; then tags are literal.
fn has_thinking_field(rules: &Rules, reply: &Reply) -> bool {
    let mut content_state = ContentState::default();
    reply.blocks.iter().any(|block| match block {
        Block::Thinking(thinking) => {
            let carrier = carrier_for(rules, &thinking.source, &content_state);
            content_state.tagged = true;
            matches!(carrier, OllamaCarrier::Field(_)) && !thinking.text().is_empty()
        }
        Block::Text(text) => {
            content_state.content_began |= !text.text.trim().is_empty();
            false
        }
        Block::ToolCall(_) | Block::ToolResult(_) | Block::Media(_) | Block::Unmodelled(_) => false,
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
    // Arguments that are not valid JSON are written as a string.
    let json = if Raw::of(arguments).is_ok() { arguments.to_owned() } else { quote(arguments) };
    let mut call = ObjectWriter::default();
    if let Some(id) = id {
        call.push_raw("id", &quote(id));
    }
    call.push("function", &object([("name", &quote(name)), ("arguments", &json)]));
    call.finish()
}

fn carrier_for(rules: &Rules, source: &str, content_state: &ContentState) -> OllamaCarrier {
    let named = rules.read.text.iter().find(|field| *field == source);
    if let (None, Some(tags)) = (named, tags_for(rules, source, content_state)) {
        return OllamaCarrier::Tags(tags);
    }
    let field = named.or(rules.read.text.first());
    OllamaCarrier::Field(field.map_or_else(|| "thinking".to_owned(), Clone::clone))
}

fn line_head(head: &ReplyHead<'_>) -> String {
    let created = rfc3339(Time(head.created.saturating_mul(1000)));
    format!(r#"{{"model":{},"created_at":{}"#, quote(head.model), quote(&created))
}

fn last_line(head: &str, message: &str, ending: &Ending, usage: Usage) -> String {
    let mut line = format!(r#"{head},"message":{message},"done":true"#);
    if let Some(reason) = done_reason(ending) {
        line.push_str(&format!(r#","done_reason":{}"#, quote(reason)));
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

fn error_line(error: &ProviderError) -> String {
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

/// Replies with tool calls end with the same reason as others.
fn done_reason(ending: &Ending) -> Option<&str> {
    match ending {
        Ending::Stop | Ending::ToolCalls => Some("stop"),
        Ending::Length => Some("length"),
        Ending::ContentFilter => Some("content_filter"),
        Ending::Refusal => Some("refusal"),
        Ending::Pause => Some("pause_turn"),
        Ending::Error => Some("error"),
        Ending::Unrecognized(reason) => Some(reason),
        Ending::Unsaid | Ending::CutOff => None,
    }
}
