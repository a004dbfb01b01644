//! Shared by all stream writers: framing and small JSON helpers.

use serde_json::{Map, Value};

use crate::block::CallId;
use crate::event::{BlockId, Usage};
use crate::frame::eventstream;
use crate::json_text::set_value;

/// Collects framed output bytes.
#[derive(Debug, Default)]
pub(super) struct FrameWriter(Vec<u8>);

impl FrameWriter {
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    /// Writes a server-sent event without a name.
    pub(super) fn data(&mut self, json: &str) {
        self.push(&["data: ", json, "\n\n"]);
    }

    /// Writes a server-sent event with a name.
    pub(super) fn named(&mut self, name: &str, json: &str) {
        self.push(&["event: ", name, "\ndata: ", json, "\n\n"]);
    }

    /// Writes one value on its own line.
    pub(super) fn line(&mut self, json: &str) {
        self.push(&[json, "\n"]);
    }

    /// Writes one message of an AWS event stream.
    pub(super) fn message(&mut self, kind: eventstream::MessageKind, name: &str, json: &str) {
        eventstream::write_message(kind, name, json.as_bytes(), &mut self.0);
    }

    fn push(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.0.extend_from_slice(piece.as_bytes());
        }
    }
}

/// A value per block, indexed by its id.
#[derive(Debug)]
pub(super) struct PerBlock<T>(Vec<T>);

impl<T> Default for PerBlock<T> {
    fn default() -> PerBlock<T> {
        PerBlock(Vec::new())
    }
}

impl<T> PerBlock<T> {
    /// Adds the next block; ids are assigned in order.
    pub(super) fn open(&mut self, value: T) {
        self.0.push(value);
    }

    pub(super) fn at(&mut self, block: BlockId) -> Option<&mut T> {
        self.0.get_mut(block.0 as usize)
    }
}

/// Ids for calls that came without one, for clients that require one. The fold
/// assigns the same ids.
#[derive(Debug, Default)]
pub(super) struct CallIdSource(u32);

impl CallIdSource {
    pub(super) fn given_or_new(&mut self, id: Option<&str>) -> String {
        match id.filter(|id| !id.is_empty()) {
            Some(id) => id.to_owned(),
            None => {
                self.0 += 1;
                format!("{}{}", CallId::INVENTED, self.0)
            }
        }
    }
}

/// A usage object with nested names; unknown counts are left out.
pub(super) fn usage_object<'a>(counts: impl IntoIterator<Item = (&'a str, Option<u64>)>) -> Map<String, Value> {
    let mut object = Map::new();
    for (path, count) in counts {
        if let Some(count) = count {
            set_value(&mut object, path, Value::from(count));
        }
    }
    object
}

/// The sum of input and output tokens, if both are known.
pub(super) fn total_tokens(usage: Usage) -> Option<u64> {
    Some(usage.input?.saturating_add(usage.output?))
}

pub(super) fn is_unknown_usage(usage: Usage) -> bool {
    usage == Usage::default()
}
