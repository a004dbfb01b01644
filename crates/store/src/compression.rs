//! Texts and metadata as they stand in a row: plain while small, compressed where that saves space. A long row
//! otherwise wastes half a page on average.

use std::borrow::Cow;
use std::convert::Infallible;

use crate::stored::Unreadable;

/// Values from this size on are compressed if that saves enough.
const COMPRESS_FROM: usize = 1024;
/// Compressed values from this size on are written to the database through a blob handle.
pub(crate) const STREAM_FROM: usize = 1 << 20;
/// Texts from this size on are compressed piece by piece while they are written, so that a long one needs no buffer of
/// its own length. A shorter one is cheaper as a whole: each piece needs a table, twice.
const PIECES_FROM: usize = 1 << 20;
/// How much text a piece has; only the last one has less.
const PIECE_BYTES: usize = 64 << 10;
/// One compressed byte stands for at most this many.
const MAX_RATIO: usize = 256;
/// What a value in pieces has instead of the length of a whole value, which is never that long.
const IN_PIECES: [u8; 4] = [0xFF; 4];

/// The text or the metadata in a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StoredText<'a> {
    Plain(Cow<'a, str>),
    /// The length, then one block of LZ4.
    Compressed(Cow<'a, [u8]>),
    InPieces(TextInPieces<'a>),
}

/// A long text that is compressed piece by piece: [`IN_PIECES`], the length of the text, then for each piece its
/// compressed length and its block of LZ4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextInPieces<'a> {
    text: &'a str,
    /// How long it is compressed, with all lengths.
    n_bytes: u64,
}

impl<'a> StoredText<'a> {
    /// Compresses a short text into `scratch`, which several texts can share.
    pub(crate) fn of(text: &'a str, scratch: &'a mut Vec<u8>) -> StoredText<'a> {
        if text.len() >= PIECES_FROM
            && let Some(pieces) = TextInPieces::of(text, scratch)
        {
            return StoredText::InPieces(pieces);
        }
        match compress(text, scratch) {
            true => StoredText::Compressed(Cow::Borrowed(scratch)),
            false => StoredText::Plain(Cow::Borrowed(text)),
        }
    }

    /// The same for a text of any length without a buffer to share.
    pub(crate) fn owned(text: String) -> StoredText<'static> {
        let mut packed = Vec::new();
        match compress(&text, &mut packed) {
            true => StoredText::Compressed(Cow::Owned(packed)),
            false => StoredText::Plain(Cow::Owned(text)),
        }
    }

    pub(crate) fn decompress(bytes: &[u8]) -> Result<String, Unreadable> {
        String::from_utf8(decompress_bytes(bytes)?).map_err(|error| Unreadable(error.to_string()))
    }
}

impl<'a> TextInPieces<'a> {
    /// Compresses the text once to learn its length. None if it is too long for its length.
    fn of(text: &'a str, scratch: &mut Vec<u8>) -> Option<TextInPieces<'a>> {
        u32::try_from(text.len()).ok()?;
        let mut n_bytes = IN_PIECES.len() as u64 + 4;
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            n_bytes += 4 + compress_piece(piece, scratch)?.len() as u64;
        }
        Some(TextInPieces { text, n_bytes })
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Compresses the text again, and passes the bytes on in their order.
    pub(crate) fn write<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut scratch = Vec::new();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        write(&IN_PIECES)?;
        write(&length(self.text.as_bytes()))?;
        for piece in self.text.as_bytes().chunks(PIECE_BYTES) {
            // It did not fail the first time.
            let packed = compress_piece(piece, &mut scratch).unwrap_or_default();
            write(&length(packed))?;
            write(packed)?;
        }
        Ok(())
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = self.write(|more| {
            bytes.extend_from_slice(more);
            Ok::<_, Infallible>(())
        });
        bytes
    }
}

/// Compresses a piece into the beginning of `scratch`.
fn compress_piece<'s>(piece: &[u8], scratch: &'s mut Vec<u8>) -> Option<&'s [u8]> {
    scratch.resize(lz4_flex::block::get_maximum_output_size(PIECE_BYTES), 0);
    let n_packed = lz4_flex::block::compress_into(piece, scratch).ok()?;
    scratch.get(..n_packed)
}

/// Unpacks a compressed value.
pub(crate) fn decompress_bytes(bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let Some(in_pieces) = bytes.strip_prefix(&IN_PIECES) else {
        checked_length(bytes, bytes)?;
        return lz4_flex::decompress_size_prepended(bytes).map_err(|error| Unreadable(error.to_string()));
    };
    let (head, pieces) = in_pieces.split_at_checked(4).ok_or_else(ends_too_early)?;
    decompress_pieces(pieces, checked_length(head, bytes)?)
}

/// The length at the beginning of `head`. It may be corrupt, so one that no compression of `bytes` can reach is an
/// error.
fn checked_length(head: &[u8], bytes: &[u8]) -> Result<usize, Unreadable> {
    let length = leading_length(head);
    if length > bytes.len().saturating_mul(MAX_RATIO) {
        return Err(Unreadable("a packed value has a wrong length".to_owned()));
    }
    Ok(length)
}

fn ends_too_early() -> Unreadable {
    Unreadable("a packed value ends too early".to_owned())
}

fn decompress_pieces(pieces: &[u8], length: usize) -> Result<Vec<u8>, Unreadable> {
    let mut unpacked = vec![0; length];
    let mut rest = pieces;
    for out in unpacked.chunks_mut(PIECE_BYTES) {
        let piece = rest.split_at_checked(4).and_then(|(head, after)| after.split_at_checked(leading_length(head)));
        let (piece, after) = piece.ok_or_else(ends_too_early)?;
        let n_unpacked = lz4_flex::block::decompress_into(piece, out).map_err(|error| Unreadable(error.to_string()))?;
        if n_unpacked != out.len() {
            return Err(Unreadable("a piece of a packed value is too short".to_owned()));
        }
        rest = after;
    }
    if rest.is_empty() { Ok(unpacked) } else { Err(Unreadable("a packed value has too many pieces".to_owned())) }
}

fn leading_length(bytes: &[u8]) -> usize {
    bytes.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
}

/// Compresses a text after its length, if that saves enough.
fn compress(text: &str, out: &mut Vec<u8>) -> bool {
    let Ok(length) = u32::try_from(text.len()) else { return false };
    if text.len() < COMPRESS_FROM {
        return false;
    }
    let most = 4 + lz4_flex::block::get_maximum_output_size(text.len());
    out.clear();
    out.reserve_exact(most);
    out.extend_from_slice(&length.to_le_bytes());
    out.resize(most, 0);
    let Some(Ok(packed)) = out.get_mut(4..).map(|rest| lz4_flex::block::compress_into(text.as_bytes(), rest)) else {
        return false;
    };
    out.truncate(4 + packed);
    // Blob handles, used for long values, work with bytes only.
    out.len() < text.len() / 10 * 9 || out.len() >= STREAM_FROM
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As it is stored: its kind, and its bytes.
    fn stored(text: &str) -> (&'static str, Vec<u8>) {
        let mut scratch = Vec::new();
        match StoredText::of(text, &mut scratch) {
            StoredText::Plain(text) => ("plain", text.as_bytes().to_vec()),
            StoredText::Compressed(bytes) => ("compressed", bytes.into_owned()),
            StoredText::InPieces(pieces) => {
                let bytes = pieces.to_bytes();
                assert_eq!(bytes.len() as u64, pieces.n_bytes(), "the length is known before");
                ("in pieces", bytes)
            }
        }
    }

    /// Text of this length. Its characters do not end where its pieces do.
    fn prose(length: usize) -> String {
        let mut text: String = (0..length / 10).map(|at| format!("{at}. naïve 終わり\n")).collect();
        while text.len() > length {
            text.pop();
        }
        text
    }

    #[test]
    fn texts_of_every_length_come_back_as_they_were() {
        #[rustfmt::skip]
        let cases = [
            (0,                    "plain"),
            (COMPRESS_FROM - 100,  "plain"),
            (COMPRESS_FROM + 100,  "compressed"),
            (PIECES_FROM - 100,    "compressed"),
            (PIECES_FROM + 100,    "in pieces"),
            (PIECES_FROM + 5 * PIECE_BYTES + 30, "in pieces"),
        ];
        for (length, kind) in cases {
            let text = prose(length);
            let (is, bytes) = stored(&text);
            assert_eq!(is, kind, "{length}");
            if is != "plain" {
                assert_eq!(StoredText::decompress(&bytes).unwrap(), text, "{length}");
                assert!(bytes.len() < text.len(), "{length}: {}", bytes.len());
            }
        }
        let whole_pieces = "y".repeat(PIECES_FROM + 3 * PIECE_BYTES);
        assert_eq!(StoredText::decompress(&stored(&whole_pieces).1).unwrap(), whole_pieces);
    }

    #[test]
    fn damaged_values_are_reported_and_never_panic() {
        let (_, bytes) = stored(&prose(PIECES_FROM + 5000));
        for cut in (0..bytes.len()).step_by(9973) {
            assert!(StoredText::decompress(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(StoredText::decompress(&[bytes.as_slice(), &[0; 9]].concat()).is_err(), "more than its pieces");
        for at in (0..bytes.len()).step_by(1999) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            // Any result is fine, as long as there is one.
            drop(StoredText::decompress(&damaged));
        }
        assert!(StoredText::decompress(&[IN_PIECES, [0xFF; 4], [0; 4]].concat()).is_err(), "too long");
        assert!(StoredText::decompress(b"not packed").is_err());
        assert!(StoredText::decompress(b"").is_err());
        assert!(StoredText::decompress(&[0xFF, 0xFF, 0xFF, 0xFF, 0]).is_err());
    }
}
