//! One entry of `reasoning_details` or `thinking_blocks`, written in fragments:
//! text as it grows, all other members once.

use super::delta_mode_out::DeltaModeWriter;
use super::details::DetailList;
use crate::dialect::DeltaMode;
use crate::json_text::{ObjectWriter, Raw, each_member, member, quote, text_member};

#[derive(Debug)]
pub(super) struct DetailOut {
    list: DetailList,
    /// The members that assign a fragment to its entry; fixed with the first
    /// fragment.
    key: Option<DetailKey>,
    index: u64,
    delta_mode: DeltaModeWriter,
    is_summary: bool,
    /// The original entry, if it came from this list.
    native: Option<String>,
    text_member: Option<String>,
    id: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    /// All members besides the text are written.
    complete: bool,
    data_written: bool,
}

#[derive(Debug, Clone)]
struct DetailKey {
    kind: String,
    /// JSON; none in lists without an index.
    index: Option<String>,
    text_member: String,
}

impl DetailOut {
    pub(super) fn new(list: DetailList, index: u64, mode: DeltaMode, id: Option<&str>) -> DetailOut {
        DetailOut {
            list,
            key: None,
            index,
            delta_mode: DeltaModeWriter::new(mode),
            is_summary: false,
            native: None,
            text_member: None,
            id: id.map(str::to_owned),
            signature: None,
            data: None,
            complete: false,
            data_written: false,
        }
    }

    pub(super) fn field(&self) -> &'static str {
        self.list.field()
    }

    pub(super) fn mark_summary(&mut self) {
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

    pub(super) fn set_seals(&mut self, signature: Option<String>, data: Option<String>) {
        // The entry already written may contain them.
        self.complete &= signature.is_none() || self.signature == signature;
        self.complete &= data.is_none() || self.data == data;
        self.signature = signature.or(self.signature.take());
        self.data = data.or(self.data.take());
    }

    pub(super) fn grow(&mut self, text: &str, mut take: impl FnMut(&str)) {
        let key = self.key();
        self.delta_mode.deltas(text, |delta| {
            let mut detail = key.begin();
            detail.push_raw(&key.text_member, &quote(delta));
            take(&detail.finish());
        });
    }

    /// The complete entry.
    pub(super) fn whole(&mut self, text: Option<&str>) -> String {
        let mut detail = ObjectWriter::default();
        let key = self.key();
        let rest = self.rest();
        detail.push_members(&rest.unwrap_or_else(|| key.begin().finish()));
        if let Some(text) = text {
            detail.push_raw(&key.text_member, &quote(text));
        }
        detail.finish()
    }

    /// The members that are not written yet, if any.
    pub(super) fn rest(&mut self) -> Option<String> {
        let nothing = self.native.is_none() && self.id.is_none() && self.signature.is_none() && self.data.is_none();
        if nothing || std::mem::replace(&mut self.complete, true) {
            return None;
        }
        let key = self.key();
        let mut detail = key.begin();
        let native = self.native.as_deref().and_then(|native| Raw::of(native).ok());
        if let Some(native) = native {
            each_member(native, |name, value| match name {
                "type" | "index" | "signature" | "data" | "id" => (),
                _ => detail.push(name, value.get()),
            });
        }
        let mut push = |name: &str, value: Option<&String>| {
            let kept = native.and_then(|native| member(native, name)).map(Raw::get);
            match value {
                Some(value) => detail.push_raw(name, &quote(value)),
                None => kept.into_iter().for_each(|json| detail.push(name, json)),
            }
        };
        push("id", self.id.as_ref());
        push("signature", self.signature.as_ref());
        // Readers concatenate payloads with the same key, so it is written only
        // once.
        if !std::mem::replace(&mut self.data_written, self.data.is_some()) {
            push("data", self.data.as_ref());
        }
        Some(detail.finish())
    }

    fn key(&mut self) -> DetailKey {
        if self.key.is_none() {
            let native = self.native.as_deref().and_then(|native| Raw::of(native).ok());
            let kept = |name: &str| native.and_then(|native| text_member(native, name));
            let (kind, text) = self.default_names();
            let index = match native {
                Some(native) => member(native, "index").map(|index| index.get().to_owned()),
                None => Some(self.index.to_string()).filter(|_| self.list == DetailList::ReasoningDetails),
            };
            self.key = Some(DetailKey {
                kind: kept("type").unwrap_or_else(|| kind.to_owned()),
                index,
                text_member: self.text_member.clone().unwrap_or_else(|| text.to_owned()),
            });
        }
        self.key.clone().unwrap_or_else(|| DetailKey { kind: String::new(), index: None, text_member: String::new() })
    }

    fn default_names(&self) -> (&'static str, &'static str) {
        match (self.list, &self.data) {
            (DetailList::ReasoningDetails, _) if self.is_summary => ("reasoning.summary", "summary"),
            (DetailList::ReasoningDetails, Some(_)) => ("reasoning.encrypted", "text"),
            (DetailList::ReasoningDetails, None) => ("reasoning.text", "text"),
            (DetailList::ThinkingBlocks, Some(_)) => ("redacted_thinking", "thinking"),
            (DetailList::ThinkingBlocks, None) => ("thinking", "thinking"),
        }
    }
}

impl DetailKey {
    fn begin(&self) -> ObjectWriter {
        let mut detail = ObjectWriter::default();
        detail.push_raw("type", &quote(&self.kind));
        if let Some(index) = &self.index {
            detail.push_raw("index", index);
        }
        detail
    }
}
