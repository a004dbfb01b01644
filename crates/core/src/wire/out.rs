//! What every writer of streams shares: the frames, and small pieces of JSON.

use serde_json::{Map, Value};

use crate::block::CallId;
use crate::event::{BlockId, Usage};
use crate::frame::eventstream;

/// Bytes on their way out, framed.
#[derive(Debug, Default)]
pub(super) struct Out(Vec<u8>);

impl Out {
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// A server-sent event without a name.
    pub(super) fn data(&mut self, json: &str) {
        self.push(&["data: ", json, "\n\n"]);
    }

    /// A server-sent event with a name.
    pub(super) fn named(&mut self, name: &str, json: &str) {
        self.push(&["event: ", name, "\ndata: ", json, "\n\n"]);
    }

    /// One value on a line of its own.
    pub(super) fn line(&mut self, json: &str) {
        self.push(&[json, "\n"]);
    }

    /// One message of AWS's event stream.
    pub(super) fn message(&mut self, kind: eventstream::MessageKind, name: &str, json: &str) {
        eventstream::write_message(kind, name, json.as_bytes(), &mut self.0);
    }

    fn push(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.0.extend_from_slice(piece.as_bytes());
        }
    }
}

/// What is known of each block, by its id.
#[derive(Debug)]
pub(super) struct Slots<T>(Vec<T>);

impl<T> Default for Slots<T> {
    fn default() -> Slots<T> {
        Slots(Vec::new())
    }
}

impl<T> Slots<T> {
    /// Blocks are opened in the order of their ids.
    pub(super) fn open(&mut self, slot: T) {
        self.0.push(slot);
    }

    pub(super) fn at(&mut self, block: BlockId) -> Option<&mut T> {
        self.0.get_mut(block.0 as usize)
    }
}

/// Names for calls that came without one, where a client cannot do without.
/// The same as the fold gives them.
#[derive(Debug, Default)]
pub(super) struct CallNames(u32);

impl CallNames {
    pub(super) fn of(&mut self, id: Option<&str>) -> String {
        match id.filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => {
                self.0 += 1;
                format!("{}{}", CallId::INVENTED, self.0)
            }
        }
    }
}

/// Puts a value below an object: `a.b.c`.
pub(super) fn put(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

/// Counters under their names; what is unknown is left out.
pub(super) fn counters<'a>(counts: impl IntoIterator<Item = (&'a str, Option<u64>)>) -> Map<String, Value> {
    let mut object = Map::new();
    for (path, count) in counts {
        if let Some(count) = count {
            put(&mut object, path, Value::from(count));
        }
    }
    object
}

/// Input and output together, where both are known.
pub(super) fn total(usage: Usage) -> Option<u64> {
    Some(usage.input?.saturating_add(usage.output?))
}

pub(super) fn is_unknown(usage: Usage) -> bool {
    usage == Usage::default()
}
