//! References: what a client gets in place of an opaque value that it must send
//! back. A reference names one block of one reply, and only its tenant can create
//! one.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::reply_id::{REPLY_ID_BYTES, ReplyId};

/// What every reference begins with.
const MAGIC: &str = "asd1_";
/// Reply, block and authentication code.
pub(crate) const REFERENCE_BYTES: usize = REPLY_ID_BYTES + 2 + MAC_BYTES;
pub(crate) const MAC_BYTES: usize = 8;
/// Those bytes in Base64 without padding.
const ENCODED_CHARS: usize = 30;
/// Some programs call a shorter signature invalid.
const SIGNATURE_CHARS: usize = 64;
/// Decodes to 64 characters of Base64.
const PADDED_BYTES: usize = 48;
/// The block of a reference to a whole reply.
pub(crate) const WHOLE_REPLY: u16 = u16::MAX;

/// A reference to a block, ready to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    pub(crate) bytes: [u8; REFERENCE_BYTES],
}

impl Reference {
    /// The short form, for encrypted payloads.
    pub fn text(&self) -> String {
        format!("{MAGIC}{}", self.encoded())
    }

    /// Padded to 64 characters, for signatures.
    pub fn padded(&self) -> String {
        let mut text = self.text();
        text.extend(std::iter::repeat_n('A', SIGNATURE_CHARS.saturating_sub(text.len())));
        text
    }

    /// As bytes in Base64, for members that must be bytes.
    pub fn base64_bytes(&self) -> String {
        let mut bytes = Vec::with_capacity(PADDED_BYTES);
        bytes.extend_from_slice(MAGIC.as_bytes());
        bytes.extend_from_slice(&self.bytes);
        bytes.resize(PADDED_BYTES, 0);
        STANDARD.encode(bytes)
    }

    /// As the id of an item, such as `rs_…`.
    pub fn item_id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.encoded())
    }

    fn encoded(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.bytes)
    }
}

/// What a text refers to, before its authentication code is checked.
pub(crate) struct Claim {
    pub(crate) reply: ReplyId,
    pub(crate) block: u16,
    pub(crate) bytes: [u8; REFERENCE_BYTES],
}

impl Claim {
    fn of(bytes: &[u8]) -> Option<Claim> {
        let bytes: [u8; REFERENCE_BYTES] = bytes.try_into().ok()?;
        let (reply, rest) = bytes.split_at_checked(REPLY_ID_BYTES)?;
        let (block, _) = rest.split_at_checked(2)?;
        Some(Claim { reply: ReplyId::from_slice(reply)?, block: u16::from_be_bytes(block.try_into().ok()?), bytes })
    }
}

/// Whether a text claims to be a reference. It may be forged.
pub(crate) fn looks_like_reference(text: &str) -> bool {
    text.starts_with(MAGIC) || decoded_magic(text).is_some()
}

/// Reads an opaque value in any form that we write.
pub(crate) fn read_claim(text: &str) -> Option<Claim> {
    if let Some(rest) = text.strip_prefix(MAGIC) {
        let (encoded, padding) = rest.split_at_checked(ENCODED_CHARS)?;
        let is_padding = padding.bytes().all(|byte| byte == b'A');
        return is_padding.then(|| URL_SAFE_NO_PAD.decode(encoded).ok()).flatten().and_then(|bytes| Claim::of(&bytes));
    }
    let decoded = decoded_magic(text)?;
    let (bytes, padding) = decoded.get(MAGIC.len()..)?.split_at_checked(REFERENCE_BYTES)?;
    if padding.iter().any(|byte| *byte != 0) { None } else { Claim::of(bytes) }
}

/// Reads the id of an item.
pub(crate) fn read_item_id(text: &str) -> Option<Claim> {
    let start = text.len().checked_sub(ENCODED_CHARS)?;
    let (prefix, encoded) = text.split_at_checked(start)?;
    let has_prefix = prefix.len() > 1 && prefix.ends_with('_');
    has_prefix.then(|| URL_SAFE_NO_PAD.decode(encoded).ok()).flatten().and_then(|bytes| Claim::of(&bytes))
}

/// The bytes of a value in Base64 that begins with our magic, in either alphabet.
fn decoded_magic(text: &str) -> Option<Vec<u8>> {
    // A longer value is not a reference.
    if text.len() > SIGNATURE_CHARS + 4 {
        return None;
    }
    let text = text.trim_end_matches('=');
    let decoded = STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()?;
    decoded.starts_with(MAGIC.as_bytes()).then_some(decoded)
}
