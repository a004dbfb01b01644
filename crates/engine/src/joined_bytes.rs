//! Chunks of bytes that are passed on as one.

use bytes::{Bytes, BytesMut};

/// Room for what follows is reserved up to this.
const MAX_ROOM: usize = 64 << 10;

/// Bytes that wait to be passed on. One chunk alone is never copied.
#[derive(Debug, Default)]
pub struct JoinedBytes {
    chunks: Chunks,
}

#[derive(Debug, Default)]
enum Chunks {
    #[default]
    None,
    One(Bytes),
    Joined(BytesMut),
}

impl JoinedBytes {
    pub fn len(&self) -> usize {
        match &self.chunks {
            Chunks::None => 0,
            Chunks::One(bytes) => bytes.len(),
            Chunks::Joined(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn add(&mut self, bytes: Bytes) {
        match &mut self.chunks {
            Chunks::None => self.chunks = Chunks::One(bytes),
            Chunks::One(first) => {
                let bytes_now = first.len() + bytes.len();
                let mut joined = BytesMut::with_capacity((4 * bytes_now).min(bytes_now.max(MAX_ROOM)));
                joined.extend_from_slice(first);
                joined.extend_from_slice(&bytes);
                self.chunks = Chunks::Joined(joined);
            }
            Chunks::Joined(joined) => joined.extend_from_slice(&bytes),
        }
    }

    /// Everything that was added. None if that is nothing.
    pub fn take(&mut self) -> Option<Bytes> {
        match std::mem::take(&mut self.chunks) {
            Chunks::None => None,
            Chunks::One(bytes) => Some(bytes),
            Chunks::Joined(bytes) => Some(bytes.freeze()),
        }
    }

    /// The first bytes of what was added.
    pub fn take_up_to(&mut self, max: usize) -> Option<Bytes> {
        match &mut self.chunks {
            Chunks::One(bytes) if bytes.len() > max => Some(bytes.split_to(max)),
            Chunks::Joined(bytes) if bytes.len() > max => Some(bytes.split_to(max).freeze()),
            Chunks::None | Chunks::One(_) | Chunks::Joined(_) => self.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_in_order_and_taken_in_parts() {
        let mut bytes = JoinedBytes::default();
        assert!(bytes.is_empty() && bytes.take().is_none());
        bytes.add(Bytes::from_static(b"abcdef"));
        assert_eq!(bytes.take_up_to(4).as_deref(), Some(&b"abcd"[..]));
        bytes.add(Bytes::from_static(b"gh"));
        bytes.add(Bytes::from_static(b"ij"));
        assert_eq!((bytes.len(), bytes.take_up_to(5).as_deref()), (6, Some(&b"efghi"[..])));
        assert_eq!(bytes.take_up_to(5).as_deref(), Some(&b"j"[..]));
        assert!(bytes.take().is_none());
    }
}
