//! Finds a provider's key: in the environment, then in the system's keyring, then
//! with a command that prints it. Keys are never printed or written to a file.

use std::process::{Command, Stdio};
use std::time::Duration;

use aside_engine::ApiKey;

use crate::error::HintedError;
use crate::keyring;
use crate::providers::{KeySource, Provider, ProviderEndpoint, env_var};

/// A key, and the command that printed it.
pub struct FoundKey {
    key: String,
    command: Option<KeyProgram>,
}

/// A command that prints a key.
#[derive(Clone)]
struct KeyProgram {
    command: String,
    /// The provider.
    id: String,
    ttl: Option<Duration>,
}

impl FoundKey {
    fn fixed(key: &str) -> FoundKey {
        FoundKey { key: key.trim().to_owned(), command: None }
    }

    pub fn expose(&self) -> &str {
        &self.key
    }

    /// Identifies the account. A token that expires differs each time, so its command is used instead.
    pub fn account(&self) -> String {
        match &self.command {
            Some(KeyProgram { command, ttl: Some(_), .. }) => fingerprint(command),
            Some(_) | None => fingerprint(&self.key),
        }
    }

    /// The key for requests, which runs its command again when needed.
    pub(crate) fn into_api_key(self) -> ApiKey {
        let FoundKey { key, command } = self;
        let Some(command) = command else { return ApiKey::fixed(&key) };
        let ttl = command.ttl;
        let obtain = move || command.run(Stdio::piped()).map_err(|error| error.to_string());
        ApiKey::renewable(&key, ttl, Box::new(obtain))
    }
}

/// The provider's key; none if the provider takes none.
pub fn find(provider: &Provider) -> Result<Option<FoundKey>, HintedError> {
    let variable = provider.keys.iter().filter_map(KeySource::variable).find_map(env_var);
    if let Some(key) = variable {
        return Ok(Some(FoundKey::fixed(&key)));
    }
    if !provider.keys.is_empty()
        && let Some(key) = keyring::find(&provider.id)
    {
        return Ok(Some(FoundKey::fixed(&key)));
    }
    for source in &provider.keys {
        if let KeySource::Command { command, ttl } = source {
            let command = KeyProgram { command: command.clone(), id: provider.id.clone(), ttl: *ttl };
            let key = command.run(Stdio::inherit())?;
            return Ok(Some(FoundKey { key: key.trim().to_owned(), command: Some(command) }));
        }
    }
    let missing = || HintedError::new(format!("`{}` needs a key", provider.id));
    match (provider.keys.first(), key_remedy(provider)) {
        (None, _) => Ok(None),
        (Some(_), Some(remedy)) => Err(missing().hint(remedy)),
        (Some(_), None) => Err(missing()),
    }
}

/// How to give aside a provider's key, if it is read from a variable.
pub fn key_remedy(provider: &Provider) -> Option<String> {
    let variable = provider.keys.iter().find_map(KeySource::variable)?;
    Some(format!("export {variable}=…, or aside key set {}", provider.id))
}

/// Whether a key is available. Does not run `api_key_cmd`.
pub fn has_key(provider: &Provider, env: &dyn Fn(&str) -> Option<String>) -> bool {
    let is_complete = !matches!(provider.endpoint, ProviderEndpoint::Missing { .. });
    provider.keys.iter().any(|source| match source {
        KeySource::Env(name) => env(name).is_some(),
        // A preset's command works once its account is set up, as the URL shows.
        KeySource::Command { .. } => is_complete,
    }) || (!provider.keys.is_empty() && keyring::find(&provider.id).is_some())
}

impl KeyProgram {
    fn run(&self, stderr: Stdio) -> Result<String, HintedError> {
        let failed = |why: String| {
            let what = format!("the api_key_cmd of `{}` failed: {why}", self.id);
            HintedError::new(what).hint("run it by hand; it prints the key and nothing else")
        };
        let output = Command::new("sh").arg("-c").arg(&self.command).stdin(Stdio::null()).stderr(stderr).output();
        let output = output.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let last = words.lines().rev().find(|line| !line.trim().is_empty());
            return Err(failed(match last {
                Some(line) => format!("{}: {}", output.status, line.trim()),
                None => output.status.to_string(),
            }));
        }
        let key = String::from_utf8(output.stdout).map_err(|_| failed("it did not print text".to_owned()))?;
        if key.trim().is_empty() { Err(failed("it printed nothing".to_owned())) } else { Ok(key) }
    }
}

/// A short hash to recognise a key without revealing it. FNV-1a, because it must
/// be the same on every machine and in every version.
pub fn fingerprint(key: &str) -> String {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{:08x}", hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_identifies_a_key_and_is_not_the_key() {
        assert_eq!(fingerprint("sk-1"), fingerprint("sk-1"));
        assert_ne!(fingerprint("sk-1"), fingerprint("sk-2"));
        assert_eq!(fingerprint("sk-1").len(), 8);
    }
}
