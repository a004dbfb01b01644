//! One entry of `reasoning_details` or `thinking_blocks`, written in pieces:
//! text as it grows, everything else once.

use super::details::Family;
use super::pace::Pace;
use crate::dialect::DeltaMode;
use crate::wire::json::{ObjectWriter, Raw, each_entry, member, quote, text_member};

#[derive(Debug)]
pub(super) struct Entry {
    family: Family,
    /// The two members that say which entry a piece belongs to; decided when
    /// the first piece is written.
    key: Option<Key>,
    index: u64,
    pace: Pace,
    is_summary: bool,
    /// The entry as it came, where it came from this family.
    native: Option<String>,
    text_member: Option<String>,
    id: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    /// Everything but the text is said.
    complete: bool,
    said_data: bool,
}

#[derive(Debug, Clone)]
struct Key {
    kind: String,
    /// JSON; none where entries are not counted.
    index: Option<String>,
    text_member: String,
}

impl Entry {
    pub(super) fn new(family: Family, index: u64, mode: DeltaMode, id: Option<&str>) -> Entry {
        Entry {
            family,
            key: None,
            index,
            pace: Pace::new(mode),
            is_summary: false,
            native: None,
            text_member: None,
            id: id.map(str::to_owned),
            signature: None,
            data: None,
            complete: false,
            said_data: false,
        }
    }

    pub(super) fn field(&self) -> &'static str {
        self.family.field()
    }

    pub(super) fn summarize(&mut self) {
        self.is_summary = true;
    }

    pub(super) fn keep(&mut self, json: &str, text_member: Option<&str>) {
        self.native = Some(json.to_owned());
        self.text_member = text_member.map(str::to_owned);
        self.complete = false;
    }

    pub(super) fn identify(&mut self, id: &str) {
        self.complete &= self.id.as_deref() == Some(id);
        self.id = Some(id.to_owned());
    }

    pub(super) fn hold(&mut self, signature: Option<String>, data: Option<String>) {
        // The entry that was written may have had them already.
        self.complete &= signature.is_none() || self.signature == signature;
        self.complete &= data.is_none() || self.data == data;
        self.signature = signature.or(self.signature.take());
        self.data = data.or(self.data.take());
    }

    pub(super) fn grow(&mut self, text: &str, mut take: impl FnMut(&str)) {
        let key = self.key();
        self.pace.deltas(text, |delta| {
            let mut entry = key.begin();
            entry.push_raw(&key.text_member, &quote(delta));
            take(&entry.finish());
        });
    }

    /// The entry in one piece.
    pub(super) fn whole(&mut self, text: Option<&str>) -> String {
        let mut entry = ObjectWriter::default();
        let key = self.key();
        let rest = self.rest();
        entry.push_members(&rest.unwrap_or_else(|| key.begin().finish()));
        if let Some(text) = text {
            entry.push_raw(&key.text_member, &quote(text));
        }
        entry.finish()
    }

    /// What the pieces did not say; none where nothing is left.
    pub(super) fn rest(&mut self) -> Option<String> {
        let nothing = self.native.is_none() && self.id.is_none() && self.signature.is_none() && self.data.is_none();
        if nothing || std::mem::replace(&mut self.complete, true) {
            return None;
        }
        let key = self.key();
        let mut entry = key.begin();
        let native = self.native.as_deref().and_then(|native| Raw::of(native).ok());
        if let Some(native) = native {
            each_entry(native, |name, value| match name {
                "type" | "index" | "signature" | "data" | "id" => (),
                _ => entry.push(name, value.get()),
            });
        }
        let mut push = |name: &str, value: Option<&String>| {
            let kept = native.and_then(|native| member(native, name)).map(Raw::get);
            match value {
                Some(value) => entry.push_raw(name, &quote(value)),
                None => kept.into_iter().for_each(|json| entry.push(name, json)),
            }
        };
        push("id", self.id.as_ref());
        push("signature", self.signature.as_ref());
        // Payloads under one key are joined: never twice.
        if !std::mem::replace(&mut self.said_data, self.data.is_some()) {
            push("data", self.data.as_ref());
        }
        Some(entry.finish())
    }

    fn key(&mut self) -> Key {
        if self.key.is_none() {
            let native = self.native.as_deref().and_then(|native| Raw::of(native).ok());
            let kept = |name: &str| native.and_then(|native| text_member(native, name));
            let (kind, text) = self.usual_words();
            let index = match native {
                Some(native) => member(native, "index").map(|index| index.get().to_owned()),
                None => Some(self.index.to_string()).filter(|_| self.family == Family::ReasoningDetails),
            };
            self.key = Some(Key {
                kind: kept("type").unwrap_or_else(|| kind.to_owned()),
                index,
                text_member: self.text_member.clone().unwrap_or_else(|| text.to_owned()),
            });
        }
        self.key.clone().unwrap_or_else(|| Key { kind: String::new(), index: None, text_member: String::new() })
    }

    fn usual_words(&self) -> (&'static str, &'static str) {
        match (self.family, &self.data) {
            (Family::ReasoningDetails, _) if self.is_summary => ("reasoning.summary", "summary"),
            (Family::ReasoningDetails, Some(_)) => ("reasoning.encrypted", "text"),
            (Family::ReasoningDetails, None) => ("reasoning.text", "text"),
            (Family::ThinkingBlocks, Some(_)) => ("redacted_thinking", "thinking"),
            (Family::ThinkingBlocks, None) => ("thinking", "thinking"),
        }
    }
}

impl Key {
    fn begin(&self) -> ObjectWriter {
        let mut entry = ObjectWriter::default();
        entry.push_raw("type", &quote(&self.kind));
        if let Some(index) = &self.index {
            entry.push_raw("index", index);
        }
        entry
    }
}
