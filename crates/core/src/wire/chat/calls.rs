//! Assembles tool calls from deltas, by index or by id, or reads them whole.

use super::types::{CallDelta, ChatFunction};
use crate::block::SealKind;
use crate::event::{BlockId, BlockOpening, Event, Sink};
use crate::json_text::{JsonText, ObjectWriter, Raw, at_path, each_member, is_empty_value, member, read, text_of};
use crate::wire::extra_in::ExtraReader;
use crate::wire::implicit_blocks::BlockIds;

#[derive(Debug, Default)]
pub(super) struct CallAssembler {
    calls: Vec<PartialCall>,
    scratch: String,
}

#[derive(Debug)]
struct PartialCall {
    index: u64,
    id: Option<String>,
    state: CallState,
    extra: Option<ObjectWriter>,
    signature: Option<String>,
}

#[derive(Debug)]
enum CallState {
    /// No name yet: argument text is kept until the name comes.
    Unnamed {
        arguments: String,
    },
    Open(BlockId),
}

/// The position of a call delta that has no index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallPosition {
    /// In a complete message: its position in the list.
    InList(u64),
    /// In a stream: the only call so far.
    InStream,
}

impl CallAssembler {
    pub(super) fn any(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.state, CallState::Open(_)))
    }

    /// Reads one entry of `tool_calls`. `extra_names` are the members that must
    /// be sent back with the call.
    pub(super) fn take(
        &mut self,
        entry: Raw<'_>,
        position: CallPosition,
        extra_names: &[String],
        ids: &mut BlockIds,
        extra: &mut ExtraReader,
        sink: &mut dyn Sink,
    ) {
        let delta: CallDelta<'_> = read(entry);
        let CallDelta { function, custom, .. } = &delta;
        let name = function.name.non_empty().or(custom.name.non_empty());
        let filled = |raw: Option<_>| raw.filter(|raw| !is_empty_value(*raw));
        let arguments = filled(function.arguments).or(filled(custom.input));

        let at = self.call_for(&delta, name, position);
        let Some(call) = self.calls.get_mut(at) else { return };
        if let (None, Some(id)) = (&call.id, delta.id.non_empty()) {
            call.id = Some(id.to_owned());
        }
        if let (CallState::Unnamed { arguments }, Some(name)) = (&mut call.state, name) {
            let block = ids.next();
            let early = std::mem::take(arguments);
            sink.take(Event::Opened { block, opening: BlockOpening::ToolCall { id: call.id.as_deref(), name } });
            if !early.is_empty() {
                sink.take(Event::Grew { block, text: &early });
            }
            call.state = CallState::Open(block);
        }
        if let Some(arguments) = arguments {
            call.grow(arguments, &mut self.scratch, sink);
        }
        call.keep_extra(entry, extra_names);
        if delta.unread || function.unread || custom.unread {
            call.keep_unread(entry, extra_names, extra, sink);
        }
    }

    /// A new call starts if the index is new or the id changes at the same index;
    /// without an index, if a name comes again.
    fn call_for(&mut self, delta: &CallDelta<'_>, name: Option<&str>, position: CallPosition) -> usize {
        let index = match (delta.index, position) {
            (Some(index), _) | (None, CallPosition::InList(index)) => index,
            (None, CallPosition::InStream) => 0,
        };
        let known = self.calls.iter().rposition(|call| call.index == index);
        let continues = known.and_then(|at| self.calls.get(at).map(|call| (at, call))).filter(|(_, call)| {
            match (delta.id.non_empty(), call.id.as_deref()) {
                (Some(new), Some(old)) => new == old,
                (None, _) if delta.index.is_none() => name.is_none() || matches!(call.state, CallState::Unnamed { .. }),
                _ => true,
            }
        });
        match continues {
            Some((at, _)) => at,
            None => {
                let state = CallState::Unnamed { arguments: String::new() };
                self.calls.push(PartialCall { index, id: None, state, extra: None, signature: None });
                self.calls.len() - 1
            }
        }
    }

    pub(super) fn finish(&mut self, ids: &mut BlockIds, sink: &mut dyn Sink) {
        for mut call in std::mem::take(&mut self.calls) {
            // A call that never got a name is kept without one.
            let block = match std::mem::replace(&mut call.state, CallState::Unnamed { arguments: String::new() }) {
                CallState::Open(block) => block,
                CallState::Unnamed { arguments } if arguments.is_empty() && call.id.is_none() => continue,
                CallState::Unnamed { arguments } => {
                    let block = ids.next();
                    sink.take(Event::Opened {
                        block,
                        opening: BlockOpening::ToolCall { id: call.id.as_deref(), name: "" },
                    });
                    sink.take(Event::Grew { block, text: &arguments });
                    block
                }
            };
            if let Some(payload) = &call.signature {
                sink.take(Event::Sealed { block, kind: SealKind::Signature, payload });
            }
            if let Some(extra) = call.extra {
                sink.take(Event::NativeItem { block, json: &extra.finish(), text_member: None });
            }
            sink.take(Event::Closed { block });
        }
    }
}

/// The path of the seal inside a field's value; empty if the value itself is the
/// seal. `a.b.c` in a dialect means `b.c` inside the field `a`.
pub(super) fn seal_path<'r>(names: &'r [String], field: &str) -> Option<&'r str> {
    names.iter().find_map(|name| {
        let rest = name.strip_prefix(field)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
    })
}

pub(super) fn seal_in(value: Raw<'_>, path: &str) -> Option<String> {
    if path.is_empty() { text_of(value) } else { at_path(value, path).and_then(text_of) }
}

impl PartialCall {
    fn grow(&mut self, arguments: Raw<'_>, scratch: &mut String, sink: &mut dyn Sink) {
        // Some servers send an object instead of a string.
        let text = JsonText::of(arguments).unwrap_or(JsonText::plain(arguments.get()));
        match &mut self.state {
            CallState::Open(block) => text.pieces(scratch, |text| sink.take(Event::Grew { block: *block, text })),
            CallState::Unnamed { arguments } => text.pieces(scratch, |text| {
                arguments.push_str(text);
                sink.buffered(text.len());
            }),
        }
    }

    /// Keeps the members that are neither understood nor sent back.
    fn keep_unread(&self, entry: Raw<'_>, names: &[String], extra: &mut ExtraReader, sink: &mut dyn Sink) {
        let block = match self.state {
            CallState::Open(block) => Some(block),
            CallState::Unnamed { .. } => None,
        };
        CallDelta::each_unread(entry, |name, value| {
            if seal_path(names, name).is_none() {
                extra.keep_in(block, name, value, sink);
            }
        });
        for tool in ["function", "custom"] {
            if let Some(tool) = member(entry, tool) {
                ChatFunction::each_unread(tool, |name, value| extra.keep_in(block, name, value, sink));
            }
        }
    }

    fn keep_extra(&mut self, entry: Raw<'_>, names: &[String]) {
        if names.is_empty() {
            return;
        }
        each_member(entry, |key, value| {
            let Some(path) = seal_path(names, key).filter(|_| !is_empty_value(value)) else { return };
            self.extra.get_or_insert_default().push(key, value.get());
            self.signature = seal_in(value, path).or(self.signature.take());
        });
    }
}
