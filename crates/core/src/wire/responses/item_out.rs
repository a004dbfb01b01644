//! One output item on its way out, and the whole of it at its end.

use std::fmt::Write;

use crate::event::Part;
use crate::wire::draft::{object, typed_text};
use crate::wire::json::{ObjectWriter, Raw, quote, text_member};

#[derive(Debug)]
pub(super) struct ItemOut {
    pub(super) kind: Kind,
    /// The provider's own name for it, or one of ours.
    pub(super) id: Option<String>,
    /// The item as it came.
    pub(super) native: Option<String>,
    /// Its place in the output, once it is announced.
    pub(super) place: Option<usize>,
    /// The text of an answer or a call, or thinking that is no summary.
    pub(super) text: String,
    pub(super) items: Vec<SummaryPart>,
    /// The summary part that grows now.
    pub(super) current: usize,
    pub(super) encrypted: Option<String>,
    pub(super) closed: bool,
    /// A free-form tool, whose input is no JSON.
    pub(super) is_custom: bool,
}

#[derive(Debug)]
pub(super) struct SummaryPart {
    /// As the events count it.
    pub(super) index: u32,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Thinking,
    Call { call_id: String, name: String },
    Unmodelled,
}

impl ItemOut {
    pub(super) fn new(kind: Kind, id: Option<&str>) -> ItemOut {
        ItemOut {
            kind,
            id: id.map(str::to_owned),
            native: None,
            place: None,
            text: String::new(),
            items: Vec::new(),
            current: 0,
            encrypted: None,
            closed: false,
            is_custom: false,
        }
    }

    /// Takes its place in the output, and with it a name that stays.
    pub(super) fn settle(&mut self, place: usize) {
        self.place = Some(place);
        let native = self.own_native().and_then(|native| Raw::of(native).ok());
        let kept = native.and_then(|native| text_member(native, "id"));
        let custom = native.and_then(|native| text_member(native, "type")).as_deref() == Some("custom_tool_call");
        let letters = match self.kind {
            Kind::Message => "msg",
            Kind::Thinking => "rs",
            Kind::Call { .. } => "fc",
            Kind::Unmodelled => "item",
        };
        self.id = kept.or_else(|| self.id.take()).or_else(|| Some(format!("{letters}_{place}")));
        self.is_custom = custom;
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("")
    }

    /// The item as it came, where it is one of this protocol.
    pub(super) fn own_native(&self) -> Option<&str> {
        let native = self.native.as_deref()?;
        let kind = text_member(Raw::of(native).ok()?, "type")?;
        let fits = match self.kind {
            Kind::Message => kind == "message",
            Kind::Thinking => kind == "reasoning",
            Kind::Call { .. } => matches!(kind.as_str(), "function_call" | "custom_tool_call"),
            Kind::Unmodelled => true,
        };
        fits.then_some(native)
    }

    /// The part with this index, which may be new.
    pub(super) fn enter(&mut self, index: u32) -> bool {
        let known = self.items.iter().position(|part| part.index == index);
        let is_new = known.is_none();
        self.current = known.unwrap_or_else(|| {
            self.items.push(SummaryPart { index, text: String::new() });
            self.items.len() - 1
        });
        is_new
    }

    pub(super) fn restate(&mut self, part: Part, text: String) {
        match part {
            Part::Whole => self.text = text,
            Part::Item(index) => {
                let current = self.current;
                self.enter(index);
                if let Some(part) = self.items.get_mut(self.current) {
                    part.text = text;
                }
                self.current = current;
            }
        }
    }

    /// The item before anything of it is said.
    pub(super) fn announced(&self) -> String {
        let id = quote(self.id());
        match &self.kind {
            Kind::Message => object([
                ("id", &id),
                ("type", "\"message\""),
                ("status", "\"in_progress\""),
                ("content", "[]"),
                ("role", "\"assistant\""),
            ]),
            Kind::Thinking => object([("id", &id), ("type", "\"reasoning\""), ("summary", "[]")]),
            Kind::Call { call_id, name } => {
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
            Kind::Unmodelled => self.native.clone().unwrap_or_default(),
        }
    }

    /// The item with everything in it; as it came, where it did.
    pub(super) fn finished(&self) -> String {
        if let Some(native) = self.own_native() {
            return native.to_owned();
        }
        let id = quote(self.id());
        match &self.kind {
            Kind::Message => {
                let content = format!("[{}]", output_text(&self.text));
                object([
                    ("id", &id),
                    ("type", "\"message\""),
                    ("status", "\"completed\""),
                    ("content", &content),
                    ("role", "\"assistant\""),
                ])
            }
            Kind::Thinking => self.finished_thinking(&id),
            Kind::Call { call_id, name } => object([
                ("id", &id),
                ("type", "\"function_call\""),
                ("status", "\"completed\""),
                ("arguments", &quote(if self.text.is_empty() { "{}" } else { &self.text })),
                ("call_id", &quote(call_id)),
                ("name", &quote(name)),
            ]),
            Kind::Unmodelled => String::new(),
        }
    }

    fn finished_thinking(&self, id: &str) -> String {
        let mut item = ObjectWriter::default();
        item.push_raw("id", id);
        item.push_raw("type", "\"reasoning\"");
        let parts: Vec<String> = self.items.iter().map(|part| typed_text("summary_text", &part.text)).collect();
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

/// The part of a message that is its text.
pub(super) fn output_text(text: &str) -> String {
    let mut part = String::from(r#"{"type":"output_text","annotations":[],"logprobs":[],"text":"#);
    let _ = write!(part, "{}}}", quote(text));
    part
}
