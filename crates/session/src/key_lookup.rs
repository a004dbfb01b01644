//! Finds a provider's key: in the environment, then in the system's keyring, then
//! with a command that prints it. Keys are never printed or written to a file.

use std::process::{Command, Stdio};

use crate::error::HintedError;
use crate::keyring;
use crate::providers::{KeySource, Provider, env_var};

/// The provider's key; none if the provider takes none.
pub fn find(provider: &Provider) -> Result<Option<String>, HintedError> {
    let variable = provider.keys.iter().find_map(|source| match source {
        KeySource::Env(name) => env_var(name),
        KeySource::Command(_) => None,
    });
    if let Some(key) = variable {
        return Ok(Some(key.trim().to_owned()));
    }
    if !provider.keys.is_empty()
        && let Some(key) = keyring::find(&provider.id)
    {
        return Ok(Some(key));
    }
    for source in &provider.keys {
        if let KeySource::Command(command) = source {
            return Ok(Some(run_key_command(command, &provider.id)?.trim().to_owned()));
        }
    }
    match provider.keys.first() {
        None => Ok(None),
        Some(KeySource::Env(name)) => Err(HintedError::new(format!("`{}` needs a key", provider.id))
            .hint(format!("export {name}=…, or aside key set {}", provider.id))),
        Some(KeySource::Command(_)) => Err(HintedError::new(format!("`{}` needs a key", provider.id))),
    }
}

/// Whether a key is available. Does not run `api_key_cmd`.
pub fn has_key(provider: &Provider, env: &dyn Fn(&str) -> Option<String>) -> bool {
    provider.keys.iter().any(|source| match source {
        KeySource::Env(name) => env(name).is_some(),
        KeySource::Command(_) => true,
    }) || (!provider.keys.is_empty() && keyring::find(&provider.id).is_some())
}

fn run_key_command(command: &str, id: &str) -> Result<String, HintedError> {
    let failed = |why: String| {
        let what = format!("the api_key_cmd of `{id}` failed: {why}");
        HintedError::new(what).hint("run it by hand; it prints the key and nothing else")
    };
    let output = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()));
    }
    let key = String::from_utf8(output.stdout).map_err(|_| failed("it did not print text".to_owned()))?;
    if key.trim().is_empty() { Err(failed("it printed nothing".to_owned())) } else { Ok(key) }
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
