//! The key of a provider. A key from a command may expire: it is obtained again when it expires, and once after the
//! provider refused it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many earlier keys are still redacted.
const MAX_REMEMBERED: usize = 16;

/// A key. Clones share it: if one renews it, all use the new one.
#[derive(Clone)]
pub struct ApiKey {
    current: Arc<Mutex<Current>>,
    renewal: Option<Arc<Renewal>>,
}

/// The text of a key. Its `Debug` output does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

/// What obtains a key, or says why it cannot. It may block.
pub type ObtainKey = Box<dyn Fn() -> Result<String, String> + Send + Sync>;

struct Current {
    secret: Secret,
    obtained: Instant,
    /// The newest last.
    earlier: Vec<Secret>,
}

struct Renewal {
    obtain: ObtainKey,
    /// How long a key is valid; if none, until it is refused.
    ttl: Option<Duration>,
    /// One renewal at a time.
    running: tokio::sync::Mutex<()>,
}

impl Secret {
    /// The key itself, for a header or to redact it from output.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl ApiKey {
    /// A key that does not change.
    pub fn fixed(key: &str) -> ApiKey {
        let current = Current { secret: Secret(key.into()), obtained: Instant::now(), earlier: Vec::new() };
        ApiKey { current: Arc::new(Mutex::new(current)), renewal: None }
    }

    /// A key that was obtained just now and can be obtained again.
    pub fn renewable(key: &str, ttl: Option<Duration>, obtain: ObtainKey) -> ApiKey {
        let renewal = Renewal { obtain, ttl, running: tokio::sync::Mutex::new(()) };
        ApiKey { renewal: Some(Arc::new(renewal)), ..ApiKey::fixed(key) }
    }

    /// Whether it can be obtained again.
    pub(crate) fn is_renewable(&self) -> bool {
        self.renewal.is_some()
    }

    /// The key as it is, even if it has expired.
    pub fn current(&self) -> Secret {
        self.lock().secret.clone()
    }

    /// The current key and earlier ones, all of which must be redacted.
    pub fn secrets(&self) -> Vec<Secret> {
        let current = self.lock();
        current.earlier.iter().chain([&current.secret]).cloned().collect()
    }

    /// A key that has not expired.
    pub async fn valid(&self) -> Result<Secret, String> {
        let (secret, obtained) = {
            let current = self.lock();
            (current.secret.clone(), current.obtained)
        };
        let ttl = self.renewal.as_ref().and_then(|renewal| renewal.ttl);
        match ttl {
            Some(ttl) if obtained.elapsed() >= ttl => self.renewed_after(&secret).await,
            Some(_) | None => Ok(secret),
        }
    }

    /// A key other than the one that was refused or has expired. A key that does not change is returned as it is.
    pub(crate) async fn renewed_after(&self, old: &Secret) -> Result<Secret, String> {
        let Some(renewal) = &self.renewal else { return Ok(self.current()) };
        let _running = renewal.running.lock().await;
        let current = self.current();
        if current != *old {
            return Ok(current);
        }
        let renewal = Arc::clone(renewal);
        let obtained = tokio::task::spawn_blocking(move || (renewal.obtain)()).await;
        let key = obtained.map_err(|error| error.to_string())??;
        let mut current = self.lock();
        let secret = Secret(key.trim().into());
        if current.secret != secret {
            let earlier = std::mem::replace(&mut current.secret, secret);
            current.earlier.push(earlier);
            if current.earlier.len() > MAX_REMEMBERED {
                current.earlier.remove(0);
            }
        }
        current.obtained = Instant::now();
        Ok(current.secret.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A key that counts how often it was obtained.
    fn counted(ttl: Option<Duration>) -> (ApiKey, Arc<AtomicUsize>) {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let obtain = move || Ok(format!("token-{}\n", counter.fetch_add(1, Ordering::SeqCst) + 1));
        (ApiKey::renewable("token-0", ttl, Box::new(obtain)), count)
    }

    #[tokio::test]
    async fn a_key_is_obtained_again_when_its_time_is_over() {
        let (key, count) = counted(Some(Duration::ZERO));
        assert_eq!(key.valid().await.unwrap().expose(), "token-1");
        assert_eq!(key.valid().await.unwrap().expose(), "token-2");
        let (key, _) = counted(Some(Duration::from_secs(3600)));
        assert_eq!(key.valid().await.unwrap().expose(), "token-0");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn requests_that_are_refused_together_renew_a_key_once() {
        let (key, count) = counted(None);
        let old = key.current();
        let (first, second) = tokio::join!(key.renewed_after(&old), key.renewed_after(&old));
        assert_eq!((first.unwrap().expose(), second.unwrap().expose()), ("token-1", "token-1"));
        assert_eq!(count.load(Ordering::SeqCst), 1);
        let secrets: Vec<String> = key.secrets().iter().map(|secret| secret.expose().to_owned()).collect();
        assert_eq!(secrets, ["token-0", "token-1"]);
        assert!(!format!("{key:?} {old:?}").contains("token"));
    }

    #[tokio::test]
    async fn a_fixed_key_stays_and_a_failed_command_is_reported() {
        let fixed = ApiKey::fixed("sk-1");
        assert_eq!(fixed.renewed_after(&fixed.current()).await.unwrap().expose(), "sk-1");
        let broken = ApiKey::renewable("t", None, Box::new(|| Err("no login".to_owned())));
        assert_eq!(broken.renewed_after(&broken.current()).await, Err("no login".to_owned()));
        assert_eq!(broken.current().expose(), "t");
    }
}
