//! One output item that is being written, and its final form.

use std::fmt::Write;

use crate::block::Native;
use crate::event::RestatedPart;
use crate::json_text::{ObjectWriter, Raw, quote, text_member};
use crate::wire::request_draft::{object, typed_text};

#[derive(Debug)]
pub(super) struct ItemOut {
    pub(super) kind: ItemKindOut,
    /// The provider's id, or one of ours.
    pub(super) id: Option<String>,
    /// The original item.
    pub(super) native: Option<Native>,
    /// Its index in the output, once announced.
    pub(super) index: Option<usize>,
    /// The text of an answer or a call, or thinking that is not a summary.
    pub(super) text: String,
    pub(super) summary: Vec<SummaryPart>,
    /// The summary part that is being written.
    pub(super) current: usize,
    pub(super) encrypted: Option<String>,
    pub(super) closed: bool,
    /// A free-form tool, whose input is not JSON.
    pub(super) is_custom: bool,
}

#[derive(Debug)]
pub(super) struct SummaryPart {
    /// The index used by the events.
    pub(super) index: u32,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ItemKindOut {
    Message,
    Thinking,
    Call { call_id: String, name: String },
    Unmodelled,
}

impl ItemOut {
    pub(super) fn new(kind: ItemKindOut, id: Option<&str>) -> ItemOut {
        ItemOut {
            kind,
            id: id.map(str::to_owned),
            native: None,
            index: None,
            text: String::new(),
            summary: Vec::new(),
            current: 0,
            encrypted: None,
            closed: false,
            is_custom: false,
        }
    }

    /// Assigns its index in the output and its final id.
    pub(super) fn assign_index(&mut self, index: usize) {
        self.index = Some(index);
        let native = self.own_native().and_then(|native| Raw::of(&native.json).ok());
        let native_id = native.and_then(|native| text_member(native, "id"));
        let custom = native.and_then(|native| text_member(native, "type")).as_deref() == Some("custom_tool_call");
        let prefix = match self.kind {
            ItemKindOut::Message => "msg",
            ItemKindOut::Thinking => "rs",
            ItemKindOut::Call { .. } => "fc",
            ItemKindOut::Unmodelled => "item",
        };
        self.id = native_id.or_else(|| self.id.take()).or_else(|| Some(format!("{prefix}_{index}")));
        self.is_custom = custom;
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("")
    }

    /// The original item, if it belongs to this protocol.
    pub(super) fn own_native(&self) -> Option<&Native> {
        let native = self.native.as_ref()?;
        let kind = text_member(Raw::of(&native.json).ok()?, "type")?;
        let fits = match self.kind {
            ItemKindOut::Message => kind == "message",
            ItemKindOut::Thinking => kind == "reasoning",
            ItemKindOut::Call { .. } => matches!(kind.as_str(), "function_call" | "custom_tool_call"),
            ItemKindOut::Unmodelled => true,
        };
        fits.then_some(native)
    }

    /// Switches to the part with this index; returns whether it is new.
    pub(super) fn enter(&mut self, index: u32) -> bool {
        let known = self.summary.iter().position(|part| part.index == index);
        let is_new = known.is_none();
        self.current = known.unwrap_or_else(|| {
            self.summary.push(SummaryPart { index, text: String::new() });
            self.summary.len() - 1
        });
        is_new
    }

    pub(super) fn restate(&mut self, part: RestatedPart, text: String) {
        match part {
            RestatedPart::Whole => self.text = text,
            RestatedPart::Item(index) => {
                let current = self.current;
                self.enter(index);
                if let Some(part) = self.summary.get_mut(self.current) {
                    part.text = text;
                }
                self.current = current;
            }
        }
    }

    /// The item as announced, without content.
    pub(super) fn announced(&self) -> String {
        let id = quote(self.id());
        match &self.kind {
            ItemKindOut::Message => object([
                ("id", &id),
                ("type", "\"message\""),
                ("status", "\"in_progress\""),
                ("content", "[]"),
                ("role", "\"assistant\""),
            ]),
            ItemKindOut::Thinking => object([("id", &id), ("type", "\"reasoning\""), ("summary", "[]")]),
            ItemKindOut::Call { call_id, name } => {
                let (kind, empty) =
                    if self.is_custom { ("\"custom_tool_call\"", "input") } else { ("\"function_call\"", "arguments") };
                object([
                    ("id", &id),
                    ("type", kind),
                    ("status", "\"in_progress\""),
                    (empty, "\"\""),
                    ("call_id", &quote(call_id)),
                    ("name", &quote(name)),
                ])
            }
            ItemKindOut::Unmodelled => self.native.as_ref().map(|native| native.json.clone()).unwrap_or_default(),
        }
    }

    /// The complete item; the original one if there is one.
    pub(super) fn finished(&self) -> String {
        if let Some(native) = self.own_native() {
            return native.with_text(&self.text);
        }
        let id = quote(self.id());
        match &self.kind {
            ItemKindOut::Message => {
                let content = format!("[{}]", output_text(&self.text));
                object([
                    ("id", &id),
                    ("type", "\"message\""),
                    ("status", "\"completed\""),
                    ("content", &content),
                    ("role", "\"assistant\""),
                ])
            }
            ItemKindOut::Thinking => self.finished_thinking(&id),
            ItemKindOut::Call { call_id, name } => object([
                ("id", &id),
                ("type", "\"function_call\""),
                ("status", "\"completed\""),
                ("arguments", &quote(if self.text.is_empty() { "{}" } else { &self.text })),
                ("call_id", &quote(call_id)),
                ("name", &quote(name)),
            ]),
            ItemKindOut::Unmodelled => String::new(),
        }
    }

    fn finished_thinking(&self, id: &str) -> String {
        let mut item = ObjectWriter::default();
        item.push_raw("id", id);
        item.push_raw("type", "\"reasoning\"");
        let parts: Vec<String> = self.summary.iter().map(|part| typed_text("summary_text", &part.text)).collect();
        item.push_list("summary", parts);
        if !self.text.is_empty() {
            item.push_raw("content", &format!("[{}]", typed_text("reasoning_text", &self.text)));
        }
        if let Some(payload) = &self.encrypted {
            item.push_text("encrypted_content", payload);
        }
        item.finish()
    }
}

/// The text part of a message.
pub(super) fn output_text(text: &str) -> String {
    let mut part = String::from(r#"{"type":"output_text","annotations":[],"logprobs":[],"text":"#);
    let _ = write!(part, "{}}}", quote(text));
    part
}
