//! Some servers repeat the same thinking in several fields. One is emitted; the
//! others are only compared with it, without storing their text.

use super::delta_mode_in::DeltaModeReader;
use crate::dialect::DeltaMode;
use crate::json_text::JsonText;

/// The text of one source so far, as a length and a hash.
#[derive(Debug, Default)]
pub(super) struct SourceDigest {
    bytes: usize,
    hash: u64,
    delta_mode: DeltaModeReader,
}

impl SourceDigest {
    pub(super) fn new(mode: DeltaMode) -> SourceDigest {
        SourceDigest { delta_mode: DeltaModeReader::new(mode), ..SourceDigest::default() }
    }

    pub(super) fn has_text(&self) -> bool {
        self.bytes > 0
    }

    pub(super) fn add_delta(&mut self, text: JsonText<'_>, scratch: &mut String) {
        if self.delta_mode.is_incremental() {
            text.pieces(scratch, |piece| self.add(piece));
        } else {
            let text = text.to_owned_text();
            let mut delta_mode = std::mem::take(&mut self.delta_mode);
            self.add(delta_mode.new_text(&text));
            self.delta_mode = delta_mode;
        }
    }

    /// Whether both sources sent the same text (compared by hash).
    pub(super) fn equals(&self, other: &SourceDigest) -> bool {
        (self.bytes, self.hash) == (other.bytes, other.hash)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        // FNV-1a byte by byte: eight bytes at a time would depend on the
        // chunking.
        self.hash = text.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}
