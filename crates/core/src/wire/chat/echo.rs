//! Several fields with the same thinking: one is shown, the others are checked
//! against it without being kept.

use super::freshness::Freshness;
use crate::dialect::DeltaMode;
use crate::text::JsonText;

/// Everything one source has said, as a length and a hash.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    bytes: usize,
    hash: u64,
    freshness: Freshness,
}

impl Spoken {
    pub(super) fn new(mode: DeltaMode) -> Spoken {
        Spoken { freshness: Freshness::new(mode), ..Spoken::default() }
    }

    pub(super) fn any(&self) -> bool {
        self.bytes > 0
    }

    pub(super) fn hear(&mut self, text: JsonText<'_>, scratch: &mut String) {
        if self.freshness.is_plain() {
            text.pieces(scratch, |piece| self.add(piece));
        } else {
            let text = text.to_owned_text();
            let mut freshness = std::mem::take(&mut self.freshness);
            self.add(freshness.new_part(&text));
            self.freshness = freshness;
        }
    }

    /// Whether both have said the same, as far as a hash can tell.
    pub(super) fn equals(&self, other: &Spoken) -> bool {
        (self.bytes, self.hash) == (other.bytes, other.hash)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        // FNV-1a, eight bytes at a time would depend on how text is cut.
        self.hash = text.bytes().fold(self.hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}
