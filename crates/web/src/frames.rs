//! The events of the stream: a name, a position and JSON.

use std::fmt::Write;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

/// How far a tab has read: the message, the block, and the number of bytes of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub(crate) struct Position {
    /// The id of the message in the store.
    pub entry: i64,
    pub block: usize,
    pub bytes: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.entry, self.block, self.bytes)
    }
}

/// The text cannot be read as a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoPosition;

impl FromStr for Position {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Position, NoPosition> {
        let mut parts = text.split('.');
        let (Some(entry), Some(block), Some(bytes), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(NoPosition);
        };
        let entry = entry.parse().map_err(|_| NoPosition)?;
        let number = |text: &str| text.parse::<usize>().map_err(|_| NoPosition);
        Ok(Position { entry, block: number(block)?, bytes: number(bytes)? })
    }
}

/// One event of the stream, as it goes over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub position: Position,
    pub text: Arc<str>,
}

impl Frame {
    pub(crate) fn new(position: Position, event: &str, data: &impl Serialize) -> Frame {
        // Serializing plain data into memory cannot fail.
        let data = serde_json::to_string(data).unwrap_or_default();
        let mut text = String::with_capacity(data.len() + 64);
        // Serialized JSON contains no line breaks. Writing to a string cannot fail.
        let _ok = write!(text, "id: {position}\nevent: {event}\ndata: {data}\n\n");
        Frame { position, text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w3_a_position_is_read_as_it_is_written() {
        let position = Position { entry: 17, block: 2, bytes: 40_961 };
        assert_eq!(position.to_string(), "17.2.40961");
        assert_eq!(position.to_string().parse(), Ok(position));
        for wrong in ["", "1", "1.2", "1.2.3.4", "a.b.c", "1.-2.3", "1.2.99999999999999999999999"] {
            assert_eq!(wrong.parse::<Position>(), Err(NoPosition), "{wrong}");
        }
        let frame = Frame::new(position, "grew", &"a\nb");
        assert_eq!(&*frame.text, "id: 17.2.40961\nevent: grew\ndata: \"a\\nb\"\n\n");
    }
}
