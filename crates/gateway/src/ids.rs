//! Random ids and keys, and the hash of a key.

use aside_memory::random;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// `req_` and 26 characters.
pub(crate) fn request_id() -> String {
    with_base32("req_", 26)
}

/// An id with a prefix such as `chatcmpl-`.
pub(crate) fn reply_id(prefix: &str) -> String {
    with_base32(prefix, 24)
}

/// The text with random characters after it, at most 32.
fn with_base32(prefix: &str, length: usize) -> String {
    let mut id = String::with_capacity(prefix.len() + length);
    id.push_str(prefix);
    let digit = |byte: &u8| BASE32.get(usize::from(byte & 31)).copied().map_or('0', char::from);
    id.extend(random::bytes::<32>().iter().take(length).map(digit));
    id
}

/// A new key for a client: `aside-` and 43 characters.
pub fn new_client_key() -> String {
    format!("aside-{}", URL_SAFE_NO_PAD.encode(random::bytes::<32>()))
}

/// The SHA-256 hash of a key.
pub(crate) fn hash(key: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    for (to, from) in hash.iter_mut().zip(digest(&SHA256, key.as_bytes()).as_ref()) {
        *to = *from;
    }
    hash
}

/// The hash of a key, as config and store hold it: `sha256:` and 64 digits.
pub fn hash_text(key: &str) -> String {
    let digits: String = hash(key).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g8_keys_and_ids_have_their_form() {
        let key = new_client_key();
        assert_eq!((key.len(), key.starts_with("aside-")), (49, true), "{key}");
        let id = request_id();
        assert_eq!((id.len(), id.starts_with("req_")), (30, true), "{id}");
        assert_ne!(id, request_id());
        assert_eq!(hash_text("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
