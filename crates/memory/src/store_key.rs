//! The key that encrypts the tenants' own keys.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::hmac;

use crate::random;

/// A longer key file is not one of ours.
const MAX_FILE_BYTES: u64 = 1024;

/// Encrypts the keys of all tenants. Without it, nothing in the store can be read.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreKey([u8; 32]);

/// Never printed.
impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreKey")
    }
}

/// Whether a key file existed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFile {
    /// It was read.
    Read,
    /// It was created, readable only by its owner.
    Created,
}

/// A key that cannot be used. The key itself is never quoted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreKeyError {
    /// It is not 32 bytes in a known form.
    #[error("the store key is not 64 hexadecimal digits, nor 32 bytes in Base64; make one with `openssl rand -hex 32`")]
    Malformed,
    /// Its file cannot be read or created.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        problem: String,
    },
}

impl StoreKey {
    /// Reads a key from text: 64 hexadecimal digits, or 32 bytes in Base64.
    pub fn parse(text: &str) -> Result<StoreKey, StoreKeyError> {
        let text = text.trim();
        let bytes = if text.len() == 64 { from_hex(text) } else { None };
        let unpadded = || URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        let bytes = bytes.or_else(|| STANDARD.decode(text).ok()).or_else(unpadded);
        bytes.and_then(|bytes| bytes.try_into().ok()).map(StoreKey).ok_or(StoreKeyError::Malformed)
    }

    /// A new key.
    pub fn generate() -> StoreKey {
        StoreKey(random::bytes())
    }

    /// The key as text, for a file or a keyring.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The key of a file, which is created if it does not exist. Only its owner
    /// may be able to read it.
    pub fn load_or_create_file(path: &Path) -> Result<(StoreKey, KeyFile), StoreKeyError> {
        let fail = |problem: String| StoreKeyError::File { path: path.to_owned(), problem };
        let key = StoreKey::generate();
        let mut create = OpenOptions::new();
        create.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
        match create.open(path) {
            Ok(mut file) => {
                let written = writeln!(file, "{}", key.to_text()).and_then(|()| file.sync_all());
                written.map_err(|error| fail(format!("cannot write the store key: {error}")))?;
                Ok((key, KeyFile::Created))
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok((read_file(path)?, KeyFile::Read)),
            Err(error) => Err(fail(format!("cannot create the store key: {error}"))),
        }
    }

    /// Writes the key into a new file, which only its owner may read. An existing
    /// file is replaced.
    pub fn write_file(&self, path: &Path) -> Result<(), StoreKeyError> {
        let fail = |error: std::io::Error| StoreKeyError::File {
            path: path.to_owned(),
            problem: format!("cannot write the store key: {error}"),
        };
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(error)),
            Ok(()) | Err(_) => (),
        }
        let mut create = OpenOptions::new();
        create.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut create, 0o600);
        let mut file = create.open(path).map_err(fail)?;
        writeln!(file, "{}", self.to_text()).and_then(|()| file.sync_all()).map_err(fail)
    }

    /// The key of a file.
    pub fn read_file(path: &Path) -> Result<StoreKey, StoreKeyError> {
        read_file(path)
    }

    /// A key for one purpose.
    pub(crate) fn derive(&self, purpose: &str, name: &[u8]) -> [u8; 32] {
        derive(&self.0, purpose, name)
    }
}

/// A key for one purpose, derived from another.
pub(crate) fn derive(key: &[u8; 32], purpose: &str, name: &[u8]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(purpose.as_bytes());
    context.update(&[0]);
    context.update(name);
    let mut out = [0; 32];
    // A tag of HMAC-SHA-256 has 32 bytes.
    out.iter_mut().zip(context.sign().as_ref()).for_each(|(out, byte)| *out = *byte);
    out
}

fn read_file(path: &Path) -> Result<StoreKey, StoreKeyError> {
    let fail = |problem: String| StoreKeyError::File { path: path.to_owned(), problem };
    let unreadable = |error: std::io::Error| fail(format!("cannot read the store key: {error}"));
    let file = std::fs::File::open(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().map_err(unreadable)?.permissions());
        if mode & 0o077 != 0 {
            return Err(fail(format!(
                "others may read the store key (mode {:o}); run `chmod 600` on it",
                mode & 0o777
            )));
        }
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
    StoreKey::parse(&text)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    Some(digits?.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g7_a_key_is_read_in_every_form_it_is_written_in() {
        let key = StoreKey::generate();
        assert_eq!(StoreKey::parse(&key.to_text()).expect("hexadecimal"), key);
        assert_eq!(StoreKey::parse(&STANDARD.encode(key.0)).expect("Base64"), key);
        assert_eq!(StoreKey::parse(&URL_SAFE_NO_PAD.encode(key.0)).expect("Base64 for URLs"), key);
        for wrong in ["", "secret", "0123", &"z".repeat(64)] {
            assert!(matches!(StoreKey::parse(wrong), Err(StoreKeyError::Malformed)), "{wrong}");
        }
    }
}
