//! Seals that verify themselves: a keyed hash of the content and its context. Checking
//! one needs no stored state.

use std::hash::Hasher;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use siphasher::sip128::{Hasher128, SipHasher13};

/// The same in every process, so that a conversation continues after a restart. It
/// protects no secret; it only detects changed seals.
const KEY: (u64, u64) = (0x6173_6964_652d_7369, 0x6d75_6c61_746f_7221);

const MAGIC: &[u8; 4] = b"sim\x01";

/// The length of the magic, the index, the prefix hash and the nonce.
const HEADER_LEN: usize = MAGIC.len() + 2 + 8 + 8;

/// What a seal is issued for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SealedContent<'a> {
    /// A signature over readable text.
    Text(&'a str),
    Call {
        name: &'a str,
        /// In canonical form, however the client formatted it.
        arguments: &'a str,
    },
    /// A payload that covers no other content.
    PayloadOnly,
}

/// What a seal is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SealContext<'a> {
    pub(crate) dialect: &'a str,
    /// A hash of the API key, if seals are bound to it.
    pub(crate) account: u64,
    /// A hash of everything before it, if seals are bound to that.
    pub(crate) prefix: u64,
    /// Its position among the seals of its message.
    pub(crate) index: u16,
}

/// Why a seal fails verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealFault {
    /// From another issuer, or the seal or its content was changed.
    Forged,
    /// Valid, but what precedes it has changed.
    WrongPrefix,
}

/// A seal for this content. `nonce` distinguishes seals for the same content.
pub(crate) fn seal(content: SealedContent<'_>, context: SealContext<'_>, nonce: u64) -> String {
    STANDARD.encode(seal_bytes(content, context, nonce))
}

fn seal_bytes(content: SealedContent<'_>, context: SealContext<'_>, nonce: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&context.index.to_le_bytes());
    bytes.extend_from_slice(&context.prefix.to_le_bytes());
    bytes.extend_from_slice(&nonce.to_le_bytes());
    // Longer than necessary, like real ones.
    for round in 0..4u8 {
        let hash = keyed_hash(&bytes, content, context, round);
        bytes.extend_from_slice(&hash);
    }
    bytes
}

/// Verifies a seal that came back and returns its index.
pub(crate) fn check(payload: &str, content: SealedContent<'_>, context: SealContext<'_>) -> Result<u16, SealFault> {
    // Clients use either Base64 alphabet, with or without padding.
    let plain = payload.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let bytes = STANDARD_NO_PAD.decode(plain).map_err(|_| SealFault::Forged)?;
    let head = bytes.get(..HEADER_LEN).and_then(|head| head.strip_prefix(MAGIC)).ok_or(SealFault::Forged)?;
    let (index, rest) = head.split_first_chunk::<2>().ok_or(SealFault::Forged)?;
    let (prefix, nonce) = rest.split_first_chunk::<8>().ok_or(SealFault::Forged)?;
    let nonce = nonce.first_chunk::<8>().ok_or(SealFault::Forged)?;
    let (index, prefix) = (u16::from_le_bytes(*index), u64::from_le_bytes(*prefix));
    let claimed = SealContext { index, prefix, ..context };
    if seal_bytes(content, claimed, u64::from_le_bytes(*nonce)) != bytes {
        return Err(SealFault::Forged);
    }
    if prefix == context.prefix { Ok(index) } else { Err(SealFault::WrongPrefix) }
}

fn keyed_hash(head: &[u8], content: SealedContent<'_>, context: SealContext<'_>, round: u8) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_keys(KEY.0, KEY.1);
    let mut part = |bytes: &[u8]| {
        hasher.write_u64(bytes.len() as u64);
        hasher.write(bytes);
    };
    part(&[round]);
    part(head);
    part(context.dialect.as_bytes());
    part(&context.account.to_le_bytes());
    match content {
        SealedContent::Text(words) => part(words.as_bytes()),
        SealedContent::Call { name, arguments } => {
            part(name.as_bytes());
            part(arguments.as_bytes());
        }
        SealedContent::PayloadOnly => part(&[]),
    }
    let hash = hasher.finish128();
    hash.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: SealContext<'_> = SealContext { dialect: "acme", account: 1, prefix: 2, index: 3 };

    #[test]
    fn x1_a_seal_is_bound_to_its_content_and_its_context() {
        let payload = seal(SealedContent::Text("a thought"), HERE, 7);
        assert_eq!(check(&payload, SealedContent::Text("a thought"), SealContext { index: 9, ..HERE }), Ok(3));
        #[rustfmt::skip]
        let cases = [
            ("other words",      SealedContent::Text("a thought!"), HERE,                               SealFault::Forged),
            ("other content",       SealedContent::PayloadOnly,              HERE,                               SealFault::Forged),
            ("another dialect",  SealedContent::Text("a thought"),  SealContext { dialect: "other", ..HERE }, SealFault::Forged),
            ("another account",  SealedContent::Text("a thought"),  SealContext { account: 0, ..HERE },       SealFault::Forged),
            ("another prefix",   SealedContent::Text("a thought"),  SealContext { prefix: 0, ..HERE },        SealFault::WrongPrefix),
        ];
        for (name, content, context, fault) in cases {
            assert_eq!(check(&payload, content, context), Err(fault), "{name}");
        }
    }

    #[test]
    fn x1_no_byte_of_a_seal_can_change() {
        let payload = seal(SealedContent::PayloadOnly, HERE, 7);
        let mut bytes = STANDARD.decode(&payload).expect("it is Base64");
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(check(&STANDARD.encode(&bytes), SealedContent::PayloadOnly, HERE).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
        let other_alphabet = payload.replace('+', "-").replace('/', "_");
        assert_eq!(check(other_alphabet.trim_end_matches('='), SealedContent::PayloadOnly, HERE), Ok(3));
        for foreign in ["", "c2ln", "not base64", payload.get(..40).unwrap_or_default()] {
            assert_eq!(check(foreign, SealedContent::PayloadOnly, HERE), Err(SealFault::Forged), "{foreign}");
        }
    }
}
