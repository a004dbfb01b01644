//! Keeps what a reply carries that has no neutral form.
//!
//! Each decoder lists the members that it understands. Every other member is kept
//! under its wire name, unless it is empty.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::event::{BlockId, Event, ExtraValue, Note, NoteCode, Sink};
use crate::json_text::{JsonKind, Raw, each_member, is_empty_value};

/// How the values of successive deltas combine. A value that is in no list
/// replaces an earlier one.
#[derive(Debug)]
pub(super) struct ExtraNames {
    /// Lists that come in pieces.
    pub(super) lists: &'static [&'static str],
    /// Lists and texts that come in pieces as members of an object. The other
    /// members of such an object are kept one by one.
    pub(super) members: &'static [(&'static str, &'static str)],
}

/// How many names the note lists, and how long each may be.
const MAX_NAMES: usize = 12;
const MAX_NAME_CHARS: usize = 60;

/// Emits the members without a neutral form, each value once.
#[derive(Debug)]
pub(super) struct ExtraReader {
    names: &'static ExtraNames,
    /// A digest of the last value of each member. Many providers repeat the same
    /// value in every chunk.
    last: HashMap<u64, u64>,
    noted: Vec<String>,
    n_noted: usize,
}

impl ExtraReader {
    pub(super) fn new(names: &'static ExtraNames) -> ExtraReader {
        ExtraReader { names, last: HashMap::new(), noted: Vec::new(), n_noted: 0 }
    }

    /// Keeps a member of the reply as a whole.
    pub(super) fn keep(&mut self, name: &str, value: Raw<'_>, sink: &mut dyn Sink) {
        self.keep_in(None, name, value, sink);
    }

    /// Keeps a member of a block.
    pub(super) fn keep_in(&mut self, block: Option<BlockId>, name: &str, value: Raw<'_>, sink: &mut dyn Sink) {
        if is_empty_value(value) {
            return;
        }
        if value.kind() == JsonKind::Object && self.names.members.iter().any(|(object, _)| *object == name) {
            each_member(value, |member, value| self.keep_part(block, (name, Some(member)), value, sink));
            return;
        }
        let continues = value.kind() == JsonKind::Array && self.names.lists.contains(&name);
        self.emit(block, ExtraValue { name, member: None, json: value.get(), continues }, sink);
    }

    /// Keeps one element of a list that comes in pieces.
    pub(super) fn keep_element(&mut self, block: Option<BlockId>, name: &str, element: Raw<'_>, sink: &mut dyn Sink) {
        let json = format!("[{}]", element.get());
        self.emit(block, ExtraValue { name, member: None, json: &json, continues: true }, sink);
    }

    /// Keeps one member of an object.
    pub(super) fn keep_part(
        &mut self,
        block: Option<BlockId>,
        (name, member): (&str, Option<&str>),
        value: Raw<'_>,
        sink: &mut dyn Sink,
    ) {
        if !is_empty_value(value) {
            let continues = member.is_some_and(|member| self.names.members.contains(&(name, member)));
            self.emit(block, ExtraValue { name, member, json: value.get(), continues }, sink);
        }
    }

    fn emit(&mut self, block: Option<BlockId>, value: ExtraValue<'_>, sink: &mut dyn Sink) {
        let (key, digest) = (digest(&(block, value.name, value.member)), digest(value.json));
        let before = self.last.insert(key, digest);
        if before.is_none() {
            self.note_name(value.name);
        }
        if before != Some(digest) || value.continues {
            sink.take(Event::Extra { block, value });
        }
    }

    fn note_name(&mut self, name: &str) {
        let name: String = name.chars().take(MAX_NAME_CHARS).collect();
        if self.noted.contains(&name) {
            return;
        }
        self.n_noted += 1;
        if self.noted.len() < MAX_NAMES {
            self.noted.push(name);
        }
    }

    /// Says once per reply what was kept.
    pub(super) fn finish(&mut self, sink: &mut dyn Sink) {
        let mut names = std::mem::take(&mut self.noted);
        if names.is_empty() {
            return;
        }
        names.sort_unstable();
        let more = match self.n_noted - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("kept without a neutral form: {}{more}", names.join(", "));
        sink.take(Event::Noted(&Note { code: NoteCode::Kept, message }));
    }
}

fn digest(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A member with the same short value in almost every chunk. Comparing it is
/// cheaper than a digest.
#[derive(Debug, Default)]
pub(super) struct RepeatedMember {
    last: String,
}

impl RepeatedMember {
    /// The value, if it is not the one that came last.
    pub(super) fn changed<'a>(&mut self, value: Option<Raw<'a>>) -> Option<Raw<'a>> {
        let value = value.filter(|value| value.get() != self.last)?;
        value.get().clone_into(&mut self.last);
        Some(value)
    }
}
