//! The secret of the server, and the login tokens and cookies made with it.
//!
//! Only the user can read the secret's file. So any process of the user can make a login token, and
//! a cookie survives a restart of the server.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

/// How long a login token is valid.
const TOKEN_LIFE: Duration = Duration::from_secs(60);
/// How long a cookie is valid.
pub(crate) const COOKIE_LIFE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const NONCE_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

/// What the state folder keeps about the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StateFile {
    /// The last port, taken again if it is free.
    port: Option<u16>,
    secret: String,
}

/// The secret, and the file that keeps it.
pub struct WebSecret {
    /// None without a state folder; then the secret is lost when the server ends.
    path: Option<PathBuf>,
    /// The key, and when its file was written.
    key: Mutex<(Option<SystemTime>, hmac::Key)>,
    /// The nonces of used tokens, until the tokens expire.
    used: Mutex<HashMap<Vec<u8>, SystemTime>>,
    started: SystemTime,
}

impl std::fmt::Debug for WebSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSecret").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Whether the secret of earlier runs is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretChoice {
    Keep,
    /// All earlier tokens and cookies become invalid.
    Renew,
}

impl WebSecret {
    /// Reads the secret, or makes one.
    pub fn open(path: Option<PathBuf>, choice: SecretChoice) -> io::Result<WebSecret> {
        let stored = path.as_ref().and_then(|path| read(path).transpose()).transpose()?;
        let kept = stored.as_ref().filter(|_| choice == SecretChoice::Keep).and_then(|state| decode(&state.secret));
        let key = match kept {
            Some(key) => key,
            None => {
                let mut bytes = [0; 32];
                random(&mut bytes)?;
                if let Some(path) = &path {
                    let port = stored.and_then(|state| state.port);
                    write(path, &StateFile { port, secret: URL_SAFE_NO_PAD.encode(bytes) })?;
                }
                hmac::Key::new(hmac::HMAC_SHA256, &bytes)
            }
        };
        let written = path.as_ref().and_then(written_at);
        let started = SystemTime::now();
        Ok(WebSecret { path, key: Mutex::new((written, key)), used: Mutex::default(), started })
    }

    /// The port of the last run.
    pub fn last_port(&self) -> Option<u16> {
        read(self.path.as_ref()?).ok().flatten()?.port
    }

    pub fn remember_port(&self, port: u16) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        match read(path)? {
            Some(state) if state.port != Some(port) => {
                write(path, &StateFile { port: Some(port), ..state })?;
                // The secret is the same, so the key need not be read again.
                lock(&self.key).0 = written_at(path);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The current key: another process may have renewed the secret.
    fn key(&self) -> hmac::Key {
        let mut key = lock(&self.key);
        let written = self.path.as_ref().and_then(written_at);
        if written != key.0
            && let Some(renewed) = self.path.as_ref().and_then(|path| decode(&read(path).ok()??.secret))
        {
            *key = (written, renewed);
        }
        key.1.clone()
    }

    /// A token for one login within a minute.
    pub fn login_token(&self) -> io::Result<String> {
        let mut payload = vec![0; NONCE_BYTES];
        random(&mut payload)?;
        // Later than the start even on a coarse clock, so that it is not taken for a token of an earlier run.
        let made = nanos(SystemTime::now()).max(nanos(self.started).saturating_add(1));
        payload.extend(made.to_be_bytes());
        Ok(self.sign("login", payload))
    }

    /// Whether this is a valid login token. A token can be used only once.
    pub(crate) fn use_login_token(&self, token: &str) -> bool {
        let Some(payload) = self.verify("login", token) else { return false };
        let (Some(nonce), Some(made)) = (payload.get(..NONCE_BYTES), time_at(&payload, NONCE_BYTES)) else {
            return false;
        };
        let now = SystemTime::now();
        let is_current = made + TOKEN_LIFE >= now && nanos(made) > nanos(self.started);
        let mut used = lock(&self.used);
        used.retain(|_, made| *made + TOKEN_LIFE >= now);
        is_current && used.insert(nonce.to_vec(), made).is_none()
    }

    /// The value of a cookie that is valid for a month.
    pub(crate) fn cookie(&self) -> String {
        self.sign("cookie", nanos(SystemTime::now() + COOKIE_LIFE).to_be_bytes().to_vec())
    }

    pub(crate) fn is_cookie(&self, value: &str) -> bool {
        let expires = self.verify("cookie", value).and_then(|payload| time_at(&payload, 0));
        expires.is_some_and(|expires| expires > SystemTime::now())
    }

    /// Whether two texts are equal, compared in constant time.
    pub(crate) fn is_same(&self, expected: &str, given: &str) -> bool {
        let key = self.key();
        hmac::verify(&key, given.as_bytes(), hmac::sign(&key, expected.as_bytes()).as_ref()).is_ok()
    }

    fn sign(&self, purpose: &str, mut payload: Vec<u8>) -> String {
        let signature = hmac::sign(&self.key(), &message(purpose, &payload));
        payload.extend(signature.as_ref());
        URL_SAFE_NO_PAD.encode(payload)
    }

    /// The payload of a signed text.
    fn verify(&self, purpose: &str, text: &str) -> Option<Vec<u8>> {
        let mut bytes = URL_SAFE_NO_PAD.decode(text.get(..).filter(|text| text.len() <= 256)?).ok()?;
        let signature = bytes.split_off(bytes.len().checked_sub(32)?);
        hmac::verify(&self.key(), &message(purpose, &bytes), &signature).ok()?;
        Some(bytes)
    }
}

fn message(purpose: &str, payload: &[u8]) -> Vec<u8> {
    [purpose.as_bytes(), b":", payload].concat()
}

fn nanos(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

fn time_at(payload: &[u8], at: usize) -> Option<SystemTime> {
    let bytes: [u8; TIME_BYTES] = payload.get(at..at + TIME_BYTES)?.try_into().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_nanos(u64::from_be_bytes(bytes)))
}

fn random(bytes: &mut [u8]) -> io::Result<()> {
    SystemRandom::new().fill(bytes).map_err(|_| io::Error::other("the system gives no random numbers"))
}

fn decode(secret: &str) -> Option<hmac::Key> {
    let bytes = URL_SAFE_NO_PAD.decode(secret).ok().filter(|bytes| bytes.len() == 32)?;
    Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

fn read(path: &PathBuf) -> io::Result<Option<StateFile>> {
    match std::fs::read_to_string(path) {
        // A damaged file is written again.
        Ok(text) => Ok(serde_json::from_str(&text).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(path: &std::path::Path, state: &StateFile) -> io::Result<()> {
    aside_session::write_atomically(path, &serde_json::to_string(state)?)
}

fn written_at(path: &PathBuf) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w4_a_token_works_once_and_a_cookie_until_the_secret_is_renewed() {
        let folder = std::env::temp_dir().join(format!("aside-web-secret-{}", std::process::id()));
        let path = folder.join("web.json");
        let secret = WebSecret::open(Some(path.clone()), SecretChoice::Keep).unwrap();
        let token = secret.login_token().unwrap();
        assert!(secret.use_login_token(&token));
        assert!(!secret.use_login_token(&token), "a token works once");
        let cookie = secret.cookie();
        assert!(!secret.use_login_token(&cookie), "a cookie is no token");
        assert!(!secret.is_cookie(&secret.login_token().unwrap()), "a token is no cookie");
        secret.remember_port(4321).unwrap();
        let again = WebSecret::open(Some(path.clone()), SecretChoice::Keep).unwrap();
        assert!(again.is_cookie(&cookie), "a cookie survives a restart");
        assert_eq!(again.last_port(), Some(4321));
        assert!(!again.use_login_token(&token), "a token of an earlier run is refused");
        let mut changed = cookie.clone();
        changed.replace_range(0..1, if cookie.starts_with('A') { "B" } else { "A" });
        assert!(!again.is_cookie(&changed));
        let renewed = WebSecret::open(Some(path), SecretChoice::Renew).unwrap();
        assert!(!renewed.is_cookie(&cookie));
        assert!(!again.is_cookie(&cookie), "a running server notices");
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(folder.join("web.json")).unwrap());
            assert_eq!(mode & 0o777, 0o600);
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
