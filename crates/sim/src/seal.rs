//! Seals that verify themselves: a keyed hash of the unit and of its place, so
//! that what comes back is checked without memory.

use std::hash::Hasher;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use siphasher::sip128::{Hasher128, SipHasher13};

/// The same in every process, so that a conversation outlives the server. It
/// keeps nothing secret; it tells a changed seal from a whole one.
const KEY: (u64, u64) = (0x6173_6964_652d_7369, 0x6d75_6c61_746f_7221);

/// What every seal begins with.
const MARK: &[u8; 4] = b"sim\x01";

/// Where the index, the place before it and the grain stand.
const HEAD: usize = MARK.len() + 2 + 8 + 8;

/// What is sealed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Unit<'a> {
    /// A signature on readable words.
    Words(&'a str),
    Call {
        name: &'a str,
        /// In one order of members, whatever a client made of it.
        arguments: &'a str,
    },
    /// A payload that stands for itself.
    Itself,
}

/// Where a unit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) dialect: &'a str,
    /// Whose key, where seals are bound to it.
    pub(crate) account: u64,
    /// Everything said before it, where seals are bound to that.
    pub(crate) prefix: u64,
    /// Which sealed unit of its message it is.
    pub(crate) index: u16,
}

/// What is wrong with a seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Another issuer's, or its unit or its bytes were changed.
    Forged,
    /// Whole, but what was said before it has changed.
    Elsewhere,
}

/// A seal for a unit. `grain` tells it from others of the same unit.
pub(crate) fn seal(unit: Unit<'_>, place: Place<'_>, grain: u64) -> String {
    STANDARD.encode(sealed(unit, place, grain))
}

fn sealed(unit: Unit<'_>, place: Place<'_>, grain: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(96);
    bytes.extend_from_slice(MARK);
    bytes.extend_from_slice(&place.index.to_le_bytes());
    bytes.extend_from_slice(&place.prefix.to_le_bytes());
    bytes.extend_from_slice(&grain.to_le_bytes());
    // Longer than it needs to be, as real ones are.
    for round in 0..4u8 {
        let hash = keyed(&bytes, unit, place, round);
        bytes.extend_from_slice(&hash);
    }
    bytes
}

/// Whether a seal that came back is one of ours, untouched; gives its index.
pub(crate) fn check(payload: &str, unit: Unit<'_>, place: Place<'_>) -> Result<u16, Fault> {
    // Clients write Base64 in either alphabet, with or without its padding.
    let plain = payload.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let bytes = STANDARD_NO_PAD.decode(plain).map_err(|_| Fault::Forged)?;
    let head = bytes.get(..HEAD).and_then(|head| head.strip_prefix(MARK)).ok_or(Fault::Forged)?;
    let (index, rest) = head.split_first_chunk::<2>().ok_or(Fault::Forged)?;
    let (prefix, grain) = rest.split_first_chunk::<8>().ok_or(Fault::Forged)?;
    let grain = grain.first_chunk::<8>().ok_or(Fault::Forged)?;
    let (index, prefix) = (u16::from_le_bytes(*index), u64::from_le_bytes(*prefix));
    let claimed = Place { index, prefix, ..place };
    if sealed(unit, claimed, u64::from_le_bytes(*grain)) != bytes {
        return Err(Fault::Forged);
    }
    if prefix == place.prefix { Ok(index) } else { Err(Fault::Elsewhere) }
}

fn keyed(head: &[u8], unit: Unit<'_>, place: Place<'_>, round: u8) -> [u8; 16] {
    let mut hasher = SipHasher13::new_with_keys(KEY.0, KEY.1);
    let mut part = |bytes: &[u8]| {
        hasher.write_u64(bytes.len() as u64);
        hasher.write(bytes);
    };
    part(&[round]);
    part(head);
    part(place.dialect.as_bytes());
    part(&place.account.to_le_bytes());
    match unit {
        Unit::Words(words) => part(words.as_bytes()),
        Unit::Call { name, arguments } => {
            part(name.as_bytes());
            part(arguments.as_bytes());
        }
        Unit::Itself => part(&[]),
    }
    let hash = hasher.finish128();
    hash.as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place<'_> = Place { dialect: "acme", account: 1, prefix: 2, index: 3 };

    #[test]
    fn x1_a_seal_knows_its_unit_and_its_place() {
        let payload = seal(Unit::Words("a thought"), HERE, 7);
        assert_eq!(check(&payload, Unit::Words("a thought"), Place { index: 9, ..HERE }), Ok(3));
        #[rustfmt::skip]
        let cases = [
            ("other words",      Unit::Words("a thought!"), HERE,                               Fault::Forged),
            ("another unit",     Unit::Itself,              HERE,                               Fault::Forged),
            ("another dialect",  Unit::Words("a thought"),  Place { dialect: "other", ..HERE }, Fault::Forged),
            ("another account",  Unit::Words("a thought"),  Place { account: 0, ..HERE },       Fault::Forged),
            ("another prefix",   Unit::Words("a thought"),  Place { prefix: 0, ..HERE },        Fault::Elsewhere),
        ];
        for (name, unit, place, fault) in cases {
            assert_eq!(check(&payload, unit, place), Err(fault), "{name}");
        }
    }

    #[test]
    fn x1_no_byte_of_a_seal_can_change() {
        let payload = seal(Unit::Itself, HERE, 7);
        let mut bytes = STANDARD.decode(&payload).expect("it is Base64");
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(check(&STANDARD.encode(&bytes), Unit::Itself, HERE).is_err(), "byte {at}");
            bytes[at] ^= 1;
        }
        let other_alphabet = payload.replace('+', "-").replace('/', "_");
        assert_eq!(check(other_alphabet.trim_end_matches('='), Unit::Itself, HERE), Ok(3));
        for foreign in ["", "c2ln", "not base64", payload.get(..40).unwrap_or_default()] {
            assert_eq!(check(foreign, Unit::Itself, HERE), Err(Fault::Forged), "{foreign}");
        }
    }
}
