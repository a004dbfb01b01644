//! The text of deltas on their way to a front end.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The text of one delta, or of several that were joined. If a joiner created it, its memory goes back
/// there when it is dropped.
#[derive(Default)]
pub struct DeltaText {
    text: String,
    origin: Option<Arc<DeltaBuffers>>,
}

/// Buffers that front ends have read.
#[derive(Debug, Default)]
pub(crate) struct DeltaBuffers(Mutex<Vec<String>>);

/// How many buffers are kept.
const MAX_BUFFERS: usize = 4;
/// The largest buffer that is kept.
const MAX_KEPT_BYTES: usize = 16 << 10;

impl DeltaText {
    /// A copy of the text in a buffer that was used before, if there is one.
    pub(crate) fn copied(text: &str, buffers: &Arc<DeltaBuffers>) -> DeltaText {
        let mut buffer = buffers.take();
        buffer.push_str(text);
        DeltaText { text: buffer, origin: Some(Arc::clone(buffers)) }
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }
}

impl DeltaBuffers {
    fn take(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn give_back(&self, mut buffer: String) {
        if buffer.capacity() > MAX_KEPT_BYTES {
            return;
        }
        buffer.clear();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_BUFFERS {
            kept.push(buffer);
        }
    }
}

impl Drop for DeltaText {
    fn drop(&mut self) {
        if let Some(origin) = self.origin.take() {
            origin.give_back(std::mem::take(&mut self.text));
        }
    }
}

impl Deref for DeltaText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl From<String> for DeltaText {
    fn from(text: String) -> DeltaText {
        DeltaText { text, origin: None }
    }
}

impl From<&str> for DeltaText {
    fn from(text: &str) -> DeltaText {
        text.to_owned().into()
    }
}

impl Clone for DeltaText {
    fn clone(&self) -> DeltaText {
        DeltaText::from(&**self)
    }
}

impl PartialEq for DeltaText {
    fn eq(&self, other: &DeltaText) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for DeltaText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Serialize for DeltaText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for DeltaText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeltaText, D::Error> {
        String::deserialize(deserializer).map(DeltaText::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_after_its_text_was_read() {
        let buffers = Arc::default();
        let first = DeltaText::copied("first", &buffers);
        let address = first.as_ptr();
        let second = DeltaText::copied("second", &buffers);
        assert_ne!(second.as_ptr(), address, "the first one is still in use");
        drop(first);
        let third = DeltaText::copied("third", &buffers);
        assert_eq!((&*third, third.as_ptr()), ("third", address));
        let long = DeltaText::copied(&"x".repeat(MAX_KEPT_BYTES + 1), &buffers);
        drop(long);
        assert_eq!(buffers.take().capacity(), 0, "a long one is freed");
    }
}
