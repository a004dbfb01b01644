//! Turns the events of one provider's reply into those of a reply that a client of
//! another protocol understands: thinking in the client's shape, calls under the
//! client's names and ids, and nothing that only the provider can read.

use aside_core::block::{Block, SealKind};
use aside_core::dialect::{Details, Dialects, Rules};
use aside_core::event::{BlockId, BlockOpening, Event, ProseKind, RestatedPart, Sink};
use aside_core::message::Message;
use aside_core::protocol::Protocol;
use aside_memory::SHOWN_THINKING;
use aside_session::serve_table::ThinkingShape;
use serde_json::json;

use crate::tool_names::{ClientTool, ToolNames, freeform_input};

/// The text before and after thinking inside an answer.
const TAGS: (&str, &str) = ("<think>\n", "\n</think>\n\n");
const DETAILS: (&str, &str) = ("<details>\n<summary>Thinking</summary>\n\n", "\n\n</details>\n\n");

/// Provides the marks by which a reply is recognised when the client sends it back.
pub(crate) trait ReplyMarks {
    /// The client's id for a call.
    fn call_id(&mut self, given: Option<&str>) -> String;
    /// The seal that the client gets for a thinking block, with or without readable text. None if none.
    fn seal(&mut self, block: u32, has_text: bool) -> Option<(SealKind, String)>;
    /// Sees every event of the reply before it is converted.
    fn watch(&mut self, event: Event<'_>);
    /// The id of a reasoning item.
    fn item_id(&mut self, block: u32) -> Option<String>;
}

/// The rules for writing replies to a client, and where thinking goes.
#[derive(Debug, Clone)]
pub(crate) struct ClientShape {
    pub(crate) rules: Rules,
    form: ThinkingForm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThinkingForm {
    /// A thinking block; in Chat, under this field.
    Block {
        source: &'static str,
    },
    /// Inside the answer.
    Answer {
        before: &'static str,
        after: &'static str,
    },
    Nowhere,
}

impl ClientShape {
    /// None if no dialect speaks the protocol.
    pub(crate) fn of(dialects: &Dialects, protocol: Protocol, wanted: ThinkingShape) -> Option<ClientShape> {
        let mut rules = dialects.generic(protocol)?.rules(None).clone();
        let form = match (wanted, protocol) {
            (ThinkingShape::None, _) => ThinkingForm::Nowhere,
            (ThinkingShape::Tags, _) => ThinkingForm::Answer { before: TAGS.0, after: TAGS.1 },
            (ThinkingShape::Details, _) => ThinkingForm::Answer { before: DETAILS.0, after: DETAILS.1 },
            (ThinkingShape::ReasoningDetails, Protocol::OpenaiChat) => {
                rules.read.details = Details::Openrouter;
                ThinkingForm::Block { source: "reasoning_details" }
            }
            (ThinkingShape::Reasoning, Protocol::OpenaiChat) => chat_field(&mut rules, "reasoning"),
            (ThinkingShape::ReasoningContent | ThinkingShape::Auto | ThinkingShape::Native, Protocol::OpenaiChat) => {
                chat_field(&mut rules, "reasoning_content")
            }
            (
                ThinkingShape::Auto
                | ThinkingShape::Native
                | ThinkingShape::ReasoningContent
                | ThinkingShape::Reasoning
                | ThinkingShape::ReasoningDetails,
                Protocol::OpenaiResponses
                | Protocol::Anthropic
                | Protocol::Gemini
                | Protocol::Ollama
                | Protocol::Bedrock
                | Protocol::Cohere,
            ) => ThinkingForm::Block { source: "thinking" },
        };
        Some(ClientShape { rules, form })
    }
}

fn chat_field(rules: &mut Rules, field: &'static str) -> ThinkingForm {
    rules.read.text = vec![field.to_owned()];
    ThinkingForm::Block { source: field }
}

/// Converts events. Blocks that are left out change the numbers of those that follow.
pub(crate) struct ReplyShaper<'a, M> {
    form: ThinkingForm,
    tools: &'a ToolNames,
    marks: M,
    blocks: Vec<ShapedBlock>,
    n_out: u32,
}

/// What a block was converted to.
#[derive(Debug)]
enum ShapedBlock {
    Same(BlockId),
    /// A thinking block. It gets a seal of ours when it ends.
    Thinking {
        id: BlockId,
        has_text: bool,
    },
    /// Thinking inside the answer.
    InAnswer(BlockId),
    /// Thinking that is left out. Its text is kept in case it turns out to be the answer.
    LeftOut {
        text: String,
    },
    /// A call whose arguments are collected, because the client expects another form.
    Collected {
        id: BlockId,
        call_id: String,
        name: String,
        tool: ClientTool,
        arguments: String,
    },
    Gone,
}

impl<'a, M: ReplyMarks> ReplyShaper<'a, M> {
    pub(crate) fn new(shape: &ClientShape, tools: &'a ToolNames, marks: M) -> ReplyShaper<'a, M> {
        ReplyShaper { form: shape.form, tools, marks, blocks: Vec::new(), n_out: 0 }
    }

    pub(crate) fn into_marks(self) -> M {
        self.marks
    }

    pub(crate) fn take(&mut self, event: Event<'_>, out: &mut dyn Sink) {
        self.marks.watch(event);
        match event {
            Event::Opened { block, opening } => self.open(block, opening, out),
            Event::Grew { block, text } => self.grow(block, text, out),
            Event::Closed { block } => self.close(block, out),
            Event::Item { block, index } => match self.at(block) {
                Some(ShapedBlock::Thinking { id, .. }) => out.take(Event::Item { block: *id, index }),
                Some(ShapedBlock::InAnswer(id)) if index > 0 => out.take(Event::Grew { block: *id, text: "\n\n" }),
                _ => (),
            },
            Event::Refiled { block, to } => self.refile(block, to, out),
            Event::Restated { block, part, text } => {
                // The client has the deltas already; only a protocol that restates can use it.
                if let Some(ShapedBlock::Same(id) | ShapedBlock::Thinking { id, .. }) = self.at(block) {
                    out.take(Event::Restated { block: *id, part, text });
                } else if let (Some(ShapedBlock::Collected { arguments, .. }), RestatedPart::Whole) =
                    (self.at(block), part)
                {
                    *arguments = text.to_owned_text();
                }
            }
            Event::Started { .. } | Event::Usage(_) | Event::Ended(_) => out.take(event),
            // Only the provider understands these, or they are not part of the reply.
            Event::Sealed { .. }
            | Event::Identified { .. }
            | Event::NativeItem { .. }
            | Event::Extra { .. }
            | Event::EmptyThinkingField { .. }
            | Event::Noted(_) => (),
        }
    }

    fn at(&mut self, block: BlockId) -> Option<&mut ShapedBlock> {
        self.blocks.get_mut(usize::try_from(block.0).unwrap_or(usize::MAX))
    }

    fn next_id(&mut self) -> BlockId {
        self.n_out += 1;
        BlockId(self.n_out - 1)
    }

    fn open(&mut self, block: BlockId, opening: BlockOpening<'_>, out: &mut dyn Sink) {
        let shaped = match opening {
            BlockOpening::Text => {
                let id = self.next_id();
                out.take(Event::Opened { block: id, opening });
                ShapedBlock::Same(id)
            }
            BlockOpening::Thinking { .. } => match self.form {
                ThinkingForm::Nowhere => ShapedBlock::LeftOut { text: String::new() },
                ThinkingForm::Answer { before, .. } => {
                    let id = self.next_id();
                    out.take(Event::Opened { block: id, opening: BlockOpening::Text });
                    out.take(Event::Grew { block: id, text: before });
                    ShapedBlock::InAnswer(id)
                }
                ThinkingForm::Block { source } => {
                    let id = self.next_id();
                    let item = self.marks.item_id(block.0);
                    let opening = BlockOpening::Thinking { source, id: item.as_deref() };
                    out.take(Event::Opened { block: id, opening });
                    ShapedBlock::Thinking { id, has_text: false }
                }
            },
            BlockOpening::ToolCall { id, name } => {
                let call_id = self.marks.call_id(id);
                let out_id = self.next_id();
                match self.tools.get(name) {
                    Some(tool) => ShapedBlock::Collected {
                        id: out_id,
                        call_id,
                        name: name.to_owned(),
                        tool: tool.clone(),
                        arguments: String::new(),
                    },
                    None => {
                        let opening = BlockOpening::ToolCall { id: Some(&call_id), name };
                        out.take(Event::Opened { block: out_id, opening });
                        ShapedBlock::Same(out_id)
                    }
                }
            }
            BlockOpening::Unmodelled => ShapedBlock::Gone,
        };
        self.blocks.push(shaped);
    }

    fn grow(&mut self, block: BlockId, text: &str, out: &mut dyn Sink) {
        match self.at(block) {
            Some(ShapedBlock::Same(id) | ShapedBlock::InAnswer(id)) => out.take(Event::Grew { block: *id, text }),
            Some(ShapedBlock::Thinking { id, has_text }) => {
                *has_text |= !text.is_empty();
                out.take(Event::Grew { block: *id, text });
            }
            Some(ShapedBlock::LeftOut { text: kept }) => kept.push_str(text),
            Some(ShapedBlock::Collected { arguments, .. }) => arguments.push_str(text),
            Some(ShapedBlock::Gone) | None => (),
        }
    }

    fn close(&mut self, block: BlockId, out: &mut dyn Sink) {
        let form = self.form;
        if let Some(ShapedBlock::Thinking { id, has_text }) = self.at(block) {
            let (id, has_text) = (*id, *has_text);
            if let Some((kind, payload)) = self.marks.seal(block.0, has_text) {
                out.take(Event::Sealed { block: id, kind, payload: &payload });
            }
            out.take(Event::Closed { block: id });
            return;
        }
        let Some(shaped) = self.at(block) else { return };
        match shaped {
            ShapedBlock::Same(id) => out.take(Event::Closed { block: *id }),
            ShapedBlock::InAnswer(id) => {
                if let ThinkingForm::Answer { after, .. } = form {
                    out.take(Event::Grew { block: *id, text: after });
                }
                out.take(Event::Closed { block: *id });
            }
            ShapedBlock::Collected { id, call_id, name, tool, arguments } => {
                write_collected(*id, call_id, name, tool, arguments, out);
                *shaped = ShapedBlock::Gone;
            }
            ShapedBlock::Thinking { .. } | ShapedBlock::LeftOut { .. } | ShapedBlock::Gone => (),
        }
    }

    /// Text turned out to be thinking, or the other way round, after a part of it was sent.
    fn refile(&mut self, block: BlockId, to: ProseKind, out: &mut dyn Sink) {
        let form = self.form;
        let n_out = self.n_out;
        let Some(shaped) = self.at(block) else { return };
        match (&mut *shaped, to) {
            (ShapedBlock::Same(id), ProseKind::Text) => out.take(Event::Refiled { block: *id, to }),
            (ShapedBlock::Same(id), ProseKind::Thinking) => {
                out.take(Event::Refiled { block: *id, to });
                *shaped = ShapedBlock::Thinking { id: *id, has_text: true };
            }
            (ShapedBlock::Thinking { id, .. }, _) => {
                out.take(Event::Refiled { block: *id, to });
                if to == ProseKind::Text {
                    *shaped = ShapedBlock::Same(*id);
                }
            }
            (ShapedBlock::InAnswer(id), ProseKind::Text) => {
                if let ThinkingForm::Answer { after, .. } = form {
                    out.take(Event::Grew { block: *id, text: after });
                }
                *shaped = ShapedBlock::Same(*id);
            }
            (ShapedBlock::LeftOut { text }, ProseKind::Text) => {
                let id = BlockId(n_out);
                out.take(Event::Opened { block: id, opening: BlockOpening::Text });
                out.take(Event::Grew { block: id, text });
                *shaped = ShapedBlock::Same(id);
                self.n_out += 1;
            }
            (ShapedBlock::InAnswer(_) | ShapedBlock::LeftOut { .. }, ProseKind::Thinking)
            | (ShapedBlock::Collected { .. } | ShapedBlock::Gone, _) => (),
        }
    }
}

/// Writes a call in the form of the client's tool.
fn write_collected(block: BlockId, call_id: &str, name: &str, tool: &ClientTool, arguments: &str, out: &mut dyn Sink) {
    let (native, name, text) = match tool {
        ClientTool::Freeform => {
            let native = json!({ "type": "custom_tool_call", "call_id": call_id, "name": name });
            (native, name, freeform_input(arguments))
        }
        ClientTool::Namespaced { namespace, name } => {
            let native = json!({ "type": "function_call", "call_id": call_id, "namespace": namespace, "name": name });
            (native, name.as_str(), arguments.to_owned())
        }
    };
    out.take(Event::Opened { block, opening: BlockOpening::ToolCall { id: Some(call_id), name } });
    let member = if *tool == ClientTool::Freeform { "input" } else { "arguments" };
    out.take(Event::NativeItem { block, json: &native.to_string(), text_member: Some(member) });
    out.take(Event::Grew { block, text: &text });
    out.take(Event::Closed { block });
}

/// Removes thinking that a client shows in front of an answer, and keeps there. It does not belong to the answer.
pub(crate) fn remove_shown_thinking(message: &mut Message) {
    let own = (DETAILS.0.trim_end(), DETAILS.1.trim());
    let after_thinking = |text: &str| {
        let after = |(open, close): (&str, &str)| text.trim_start().strip_prefix(open)?.split_once(close);
        let (_, answer) = std::iter::once(own).chain(SHOWN_THINKING).find_map(after)?;
        Some(answer.trim_start().to_owned())
    };
    for block in &mut message.blocks {
        let Block::Text(text) = block else { continue };
        while let Some(answer) = after_thinking(&text.text) {
            text.text = answer;
        }
    }
}
