//! Random ids and keys, and the hash of a key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The source of random ids.
#[derive(Debug)]
pub(crate) struct IdSource(SystemRandom);

impl Default for IdSource {
    fn default() -> IdSource {
        IdSource(SystemRandom::new())
    }
}

impl IdSource {
    /// `req_` and 26 characters.
    pub(crate) fn request_id(&self) -> String {
        format!("req_{}", self.base32(26))
    }

    /// An id with a prefix such as `chatcmpl-`.
    pub(crate) fn reply_id(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.base32(24))
    }

    fn base32(&self, length: usize) -> String {
        let mut bytes = [0; 32];
        // Without randomness the ids would repeat, which only makes receipts harder to find.
        let _filled = self.0.fill(&mut bytes);
        let digit = |byte: &u8| BASE32.get(usize::from(byte & 31)).copied().map_or('0', char::from);
        bytes.iter().take(length).map(digit).collect()
    }
}

/// A new key for a client: `aside-` and 43 characters. None if the system has no randomness.
pub fn new_client_key() -> Option<String> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(format!("aside-{}", URL_SAFE_NO_PAD.encode(bytes)))
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
        let key = new_client_key().expect("randomness");
        assert_eq!((key.len(), key.starts_with("aside-")), (49, true), "{key}");
        let id = IdSource::default().request_id();
        assert_eq!((id.len(), id.starts_with("req_")), (30, true), "{id}");
        assert_ne!(id, IdSource::default().request_id());
        assert_eq!(hash_text("abc"), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
