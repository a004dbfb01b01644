//! Creates, lists and revokes client keys, deletes tenants, and rotates the store key.

use aside_memory::{ClientKeyRow, StoreError};
use aside_session::HintedError;
use aside_session::serve_table::{Limit, ServeKey, ServeTable, StoreChoice, parse_hash};
use serde_json::{Value, json};

use crate::config::{Config, GatewayOptions};
use crate::gateway::now;
use crate::ids::{hash_text, new_client_key};
use crate::memory_setup::{self, OpenedMemory, RotatedKey};

/// The row that makes a gateway require a key even after the last one was revoked. No key has its hash.
const CLOSED: &str = "(closed)";

/// The keys of a gateway, in its config and in its store.
#[derive(Debug)]
pub struct KeyAdmin {
    opened: OpenedMemory,
    serve: ServeTable,
}

/// A key that was just created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Shown once.
    pub key: String,
    pub hash: String,
    /// What to put into the config, if there is no store.
    pub toml: Option<String>,
}

/// What a new key may do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyRights {
    pub tenant: Option<String>,
    pub models: Vec<String>,
    pub limits: Vec<Limit>,
    pub pass: Vec<String>,
}

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrigin {
    Config,
    Store,
}

/// A key, without the key itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyListing {
    pub name: String,
    pub tenant: String,
    pub origin: KeyOrigin,
}

impl KeyAdmin {
    pub async fn open(options: &GatewayOptions) -> Result<KeyAdmin, HintedError> {
        let config = Config::load(options)?;
        let opened = memory_setup::open(options, &config).await?;
        Ok(KeyAdmin { opened, serve: config.serve.clone() })
    }

    pub async fn add(&self, name: &str, rights: &KeyRights) -> Result<NewKey, HintedError> {
        let taken =
            || HintedError::new(format!("there is a key `{name}` already")).hint("choose another name, or revoke it");
        if self.serve.keys.iter().any(|key| key.name == name) || name == CLOSED {
            return Err(taken());
        }
        let key = new_client_key();
        let hash = hash_text(&key);
        if self.serve.store == StoreChoice::None {
            let toml = Some(toml(name, &hash, rights));
            return Ok(NewKey { key, hash, toml });
        }
        let row = ClientKeyRow {
            name: name.to_owned(),
            hash: hash.clone(),
            tenant: rights.tenant.clone().unwrap_or_else(|| name.to_owned()),
            settings: settings(rights),
            created: now(),
        };
        match self.opened.memory.add_client_key(row).await.map_err(store_error)? {
            true => Ok(NewKey { key, hash, toml: None }),
            false => Err(taken()),
        }
    }

    pub async fn list(&self) -> Result<Vec<KeyListing>, HintedError> {
        let config = self.serve.keys.iter().map(|key| KeyListing {
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            origin: KeyOrigin::Config,
        });
        let rows = self.opened.memory.client_keys().await.map_err(store_error)?;
        let stored = rows.into_iter().filter(|row| row.name != CLOSED).map(|row| KeyListing {
            name: row.name,
            tenant: row.tenant,
            origin: KeyOrigin::Store,
        });
        Ok(config.chain(stored).collect())
    }

    pub async fn revoke(&self, name: &str) -> Result<(), HintedError> {
        if self.serve.keys.iter().any(|key| key.name == name) {
            return Err(HintedError::new(format!("the key `{name}` is in config.toml"))
                .hint("remove its [[serve.keys]] table; the gateway reads the file again"));
        }
        // Without any row, a gateway on loopback would be open to everybody on this machine.
        let closed = ClientKeyRow {
            name: CLOSED.to_owned(),
            hash: String::new(),
            tenant: String::new(),
            settings: "{}".to_owned(),
            created: now(),
        };
        self.opened.memory.add_client_key(closed).await.map_err(store_error)?;
        match name != CLOSED && self.opened.memory.revoke_client_key(name).await.map_err(store_error)? {
            true => Ok(()),
            false => Err(HintedError::new(format!("there is no key `{name}`")).hint("aside serve key list")),
        }
    }

    /// Encrypts the store with a new key.
    pub async fn rotate_store_key(&self) -> Result<RotatedKey, HintedError> {
        memory_setup::rotate(&self.opened).await
    }

    /// Deletes everything that is remembered of a tenant.
    pub async fn forget_tenant(&self, name: &str) -> Result<(), HintedError> {
        match self.opened.memory.forget_tenant(name).await.map_err(store_error)? {
            true => Ok(()),
            false => Err(HintedError::new(format!("nothing is stored for tenant `{name}`"))),
        }
    }
}

fn store_error(error: StoreError) -> HintedError {
    HintedError::new(error.to_string())
}

fn settings(rights: &KeyRights) -> String {
    let limits: Vec<Value> = rights.limits.iter().map(|limit| json!(limit_text(limit))).collect();
    json!({ "models": rights.models, "limits": limits, "pass": rights.pass }).to_string()
}

/// `KIND=NUMBER/WINDOW`
fn limit_text(limit: &Limit) -> String {
    format!("{}={}/{}", limit.kind.as_str(), limit.amount, limit.window.as_str())
}

fn toml(name: &str, hash: &str, rights: &KeyRights) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!("[[serve.keys]]\nname = {}\nhash = {}\n", quoted(name), quoted(hash));
    if let Some(tenant) = &rights.tenant {
        text.push_str(&format!("tenant = {}\n", quoted(tenant)));
    }
    for (member, words) in [("models", &rights.models), ("pass", &rights.pass)] {
        if !words.is_empty() {
            text.push_str(&format!("{member} = {}\n", json!(words)));
        }
    }
    if !rights.limits.is_empty() {
        let limits = rights
            .limits
            .iter()
            .map(|limit| format!("{} = \"{}/{}\"", limit.kind.as_str(), limit.amount, limit.window.as_str()));
        text.push_str(&format!("limit = {{ {} }}\n", limits.collect::<Vec<_>>().join(", ")));
    }
    text
}

/// A key of the store. None if no client can use it.
pub(crate) fn stored_key(row: &ClientKeyRow) -> Option<ServeKey> {
    let settings: Value = serde_json::from_str(&row.settings).unwrap_or_default();
    let words = |name: &str| -> Vec<String> {
        let list = settings.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    Some(ServeKey {
        name: row.name.clone(),
        hash: parse_hash(&row.hash)?,
        tenant: row.tenant.clone(),
        models: words("models"),
        // A limit that cannot be read must not become no limit.
        limits: words("limits").iter().map(|text| Limit::parse_pair(text)).collect::<Option<_>>()?,
        pass: words("pass"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g8_a_stored_key_keeps_its_rights() {
        let rights = KeyRights {
            tenant: Some("team".to_owned()),
            models: vec!["deepseek/*".to_owned()],
            limits: vec![Limit::parse_pair("tokens=2M/day").expect("a limit")],
            pass: vec!["openai".to_owned()],
        };
        let row = ClientKeyRow {
            name: "ci".to_owned(),
            hash: hash_text("k"),
            tenant: "team".to_owned(),
            settings: settings(&rights),
            created: now(),
        };
        let key = stored_key(&row).expect("a key");
        assert_eq!((&key.models, &key.limits, &key.pass), (&rights.models, &rights.limits, &rights.pass));
        assert_eq!(stored_key(&ClientKeyRow { hash: String::new(), ..row }), None, "a closed gateway has no key");
        let text = toml("ci", &hash_text("k"), &rights);
        assert!(text.contains("limit = { tokens = \"2000000/day\" }"), "{text}");
    }
}
