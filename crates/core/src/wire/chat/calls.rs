//! Tool calls, assembled from deltas by index, by id, or whole.

use super::types::CallDelta;
use crate::block::SealKind;
use crate::event::{BlockId, Event, Opening, Sink};
use crate::text::JsonText;
use crate::wire::json::{ObjectWriter, Raw, at_path, each_entry, is_void, read, text_of};
use crate::wire::speech::Ids;

#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    scratch: String,
}

#[derive(Debug)]
struct Slot {
    index: u64,
    id: Option<String>,
    state: State,
    extra: Option<ObjectWriter>,
    signature: Option<String>,
}

#[derive(Debug)]
enum State {
    /// No name yet: what came of the arguments waits for it.
    Unnamed {
        arguments: String,
    },
    Open(BlockId),
}

/// Where a call delta without an index stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In a whole message: its position in the list.
    InList(u64),
    /// In a stream: the only one there is.
    InStream,
}

impl Calls {
    pub(super) fn any(&self) -> bool {
        self.slots.iter().any(|slot| matches!(slot.state, State::Open(_)))
    }

    /// Takes one entry of `tool_calls`. `extra_names` are the members that
    /// must go back with the call.
    pub(super) fn take(
        &mut self,
        entry: Raw<'_>,
        place: Place,
        extra_names: &[String],
        ids: &mut Ids,
        sink: &mut dyn Sink,
    ) {
        let delta: CallDelta<'_> = read(entry);
        let CallDelta { function, custom, .. } = &delta;
        let name = function.name.said().or(custom.name.said());
        let filled = |raw: Option<_>| raw.filter(|raw| !is_void(*raw));
        let arguments = filled(function.arguments).or(filled(custom.input));

        let at = self.slot_for(&delta, name, place);
        let Some(slot) = self.slots.get_mut(at) else { return };
        if let (None, Some(id)) = (&slot.id, delta.id.said()) {
            slot.id = Some(id.to_owned());
        }
        if let (State::Unnamed { arguments }, Some(name)) = (&mut slot.state, name) {
            let block = ids.next();
            let early = std::mem::take(arguments);
            sink.take(Event::Opened { block, opening: Opening::ToolCall { id: slot.id.as_deref(), name } });
            if !early.is_empty() {
                sink.take(Event::Grew { block, text: &early });
            }
            slot.state = State::Open(block);
        }
        if let Some(arguments) = arguments {
            slot.grow(arguments, &mut self.scratch, sink);
        }
        slot.keep_extra(entry, extra_names);
    }

    /// A new call starts when the index is new or the id changes at the same
    /// index; without an index, when a name comes again.
    fn slot_for(&mut self, delta: &CallDelta<'_>, name: Option<&str>, place: Place) -> usize {
        let index = match (delta.index, place) {
            (Some(index), _) | (None, Place::InList(index)) => index,
            (None, Place::InStream) => 0,
        };
        let known = self.slots.iter().rposition(|slot| slot.index == index);
        let continues = known.and_then(|at| self.slots.get(at).map(|slot| (at, slot))).filter(|(_, slot)| {
            match (delta.id.said(), slot.id.as_deref()) {
                (Some(new), Some(old)) => new == old,
                (None, _) if delta.index.is_none() => name.is_none() || matches!(slot.state, State::Unnamed { .. }),
                _ => true,
            }
        });
        match continues {
            Some((at, _)) => at,
            None => {
                let state = State::Unnamed { arguments: String::new() };
                self.slots.push(Slot { index, id: None, state, extra: None, signature: None });
                self.slots.len() - 1
            }
        }
    }

    pub(super) fn finish(&mut self, ids: &mut Ids, sink: &mut dyn Sink) {
        for mut slot in std::mem::take(&mut self.slots) {
            // A call that never got a name is kept for what it is.
            let block = match std::mem::replace(&mut slot.state, State::Unnamed { arguments: String::new() }) {
                State::Open(block) => block,
                State::Unnamed { arguments } if arguments.is_empty() && slot.id.is_none() => continue,
                State::Unnamed { arguments } => {
                    let block = ids.next();
                    sink.take(Event::Opened { block, opening: Opening::ToolCall { id: slot.id.as_deref(), name: "" } });
                    sink.take(Event::Grew { block, text: &arguments });
                    block
                }
            };
            if let Some(payload) = &slot.signature {
                sink.take(Event::Sealed { block, kind: SealKind::Signature, payload });
            }
            if let Some(extra) = slot.extra {
                sink.take(Event::Kept { block, json: &extra.finish(), text_member: None });
            }
            sink.take(Event::Closed { block });
        }
    }
}

/// The rule for a field that holds a seal: where in its value, empty for the
/// value itself. `a.b.c` in a dialect means `b.c` inside the field `a`.
pub(super) fn seal_path<'r>(names: &'r [String], field: &str) -> Option<&'r str> {
    names.iter().find_map(|name| {
        let rest = name.strip_prefix(field)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('.') }
    })
}

pub(super) fn seal_in(value: Raw<'_>, path: &str) -> Option<String> {
    if path.is_empty() { text_of(value) } else { at_path(value, path).and_then(text_of) }
}

impl Slot {
    fn grow(&mut self, arguments: Raw<'_>, scratch: &mut String, sink: &mut dyn Sink) {
        // Some servers send the object itself instead of its text.
        let text = JsonText::of(arguments).unwrap_or(JsonText::plain(arguments.get()));
        match &mut self.state {
            State::Open(block) => text.pieces(scratch, |text| sink.take(Event::Grew { block: *block, text })),
            State::Unnamed { arguments } => text.pieces(scratch, |text| {
                arguments.push_str(text);
                sink.hold(text.len());
            }),
        }
    }

    fn keep_extra(&mut self, entry: Raw<'_>, names: &[String]) {
        if names.is_empty() {
            return;
        }
        each_entry(entry, |key, value| {
            let Some(path) = seal_path(names, key).filter(|_| !is_void(value)) else { return };
            self.extra.get_or_insert_default().push(key, value.get());
            self.signature = seal_in(value, path).or(self.signature.take());
        });
    }
}
