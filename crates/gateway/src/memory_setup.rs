//! Opens the memory that the config asks for, with its store key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aside_memory::{Durability, KeyFile, Memory, MemoryOptions, StoreError, StoreKey, StoreKeyError, StoreLocation};
use aside_session::serve_table::{self, StoreChoice};
use aside_session::{HintedError, keyring};

use crate::config::{Config, GatewayOptions};
use crate::gateway::now;

/// The variable and the keyring entry for the store key.
const KEY_VARIABLE: &str = "ASIDE_STORE_KEY";
const KEYRING_ENTRY: &str = "gateway-store";

/// The variable with the new key for a rotation.
const NEW_KEY_VARIABLE: &str = "ASIDE_STORE_KEY_NEW";

/// Where replies wait while a shared store is down, and how many bytes of them.
const SPILL_FILE: &str = "gateway-spill.db";
const SPILL_BYTES: u64 = 64 << 20;

/// Where the store key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    Variable,
    Keyring,
    /// In a file next to the database, created just now or found.
    File {
        path: PathBuf,
        file: KeyFile,
    },
    /// Random; nothing encrypted with it can be read after this process ends.
    NotKept,
}

/// The memory, and where its key is.
#[derive(Debug)]
pub(crate) struct OpenedMemory {
    pub(crate) memory: Memory,
    pub(crate) key_source: KeySource,
}

pub(crate) async fn open(options: &GatewayOptions, config: &Config) -> Result<OpenedMemory, HintedError> {
    let (key, key_source) = store_key(options, &config.serve.store)?;
    let opened = open_with(options, config, key).await;
    let opened = match (opened, &key_source) {
        (Err(StoreError::WrongKey), KeySource::File { path, .. }) => finish_rotation(options, config, path).await,
        (opened, _) => opened,
    };
    let memory = opened.map_err(|error| {
        HintedError::new(error.to_string())
            .hint("--store none runs without a memory; lost thinking is then not restored")
    })?;
    Ok(OpenedMemory { memory, key_source })
}

/// A rotation that was interrupted after the store was encrypted again has left the new key next to the old one.
async fn finish_rotation(options: &GatewayOptions, config: &Config, path: &Path) -> Result<Memory, StoreError> {
    let new = new_key_path(path);
    let key = StoreKey::read_file(&new).map_err(|_| StoreError::WrongKey)?;
    let memory = open_with(options, config, key).await?;
    std::fs::rename(&new, path).map_err(|_| StoreError::WrongKey)?;
    Ok(memory)
}

async fn open_with(options: &GatewayOptions, config: &Config, key: StoreKey) -> Result<Memory, StoreError> {
    let serve = &config.serve;
    let no_folder = |error: HintedError| StoreError::Down(error.to_string());
    let location = match &serve.store {
        StoreChoice::None => StoreLocation::None,
        StoreChoice::Sqlite => StoreLocation::Sqlite(database(options).map_err(no_folder)?),
        StoreChoice::Postgres(url) => StoreLocation::Postgres(url.clone()),
    };
    let durability = match serve.durability {
        serve_table::Durability::Process => Durability::Process,
        serve_table::Durability::Power => Durability::Power,
    };
    let is_shared = matches!(location, StoreLocation::Postgres(_));
    let mut memory = MemoryOptions::new(location, key).with_retention(serve.retention).with_durability(durability);
    if let Some(wait) = serve.store_wait {
        memory = memory.with_deadline(wait);
    }
    if is_shared {
        memory = memory.with_spill(data_folder(options).map_err(no_folder)?.join(SPILL_FILE), SPILL_BYTES);
    }
    Memory::open(memory, Arc::clone(&config.dialects), now()).await
}

fn database(options: &GatewayOptions) -> Result<PathBuf, HintedError> {
    Ok(data_folder(options)?.join("gateway.db"))
}

pub(crate) fn data_folder(options: &GatewayOptions) -> Result<&PathBuf, HintedError> {
    let folder = options.folders.data.as_ref().ok_or_else(|| {
        HintedError::new("there is no data folder").hint("set HOME, or ASIDE_DATA_DIR to a folder, or --store none")
    })?;
    aside_session::create_private_folder(folder)
        .map_err(|error| HintedError::new(format!("cannot create {}: {error}", folder.display())))?;
    Ok(folder)
}

/// From the environment, the keyring, or a file next to the database.
pub(crate) fn store_key(options: &GatewayOptions, store: &StoreChoice) -> Result<(StoreKey, KeySource), HintedError> {
    let parse = |key: String| StoreKey::parse(key.trim()).map_err(invalid);
    if let Some(key) = variable(KEY_VARIABLE) {
        return Ok((parse(key)?, KeySource::Variable));
    }
    if let Some(key) = keyring::find(KEYRING_ENTRY) {
        return Ok((parse(key)?, KeySource::Keyring));
    }
    match store {
        StoreChoice::None => Ok((StoreKey::generate(), KeySource::NotKept)),
        StoreChoice::Postgres(_) => Err(HintedError::new("a shared store needs a key that all replicas have")
            .hint(format!("export {KEY_VARIABLE}=… with 64 hexadecimal digits"))),
        StoreChoice::Sqlite => {
            let path = database(options)?.with_extension("key");
            let (key, file) = StoreKey::load_or_create_file(&path).map_err(invalid)?;
            Ok((key, KeySource::File { path, file }))
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|key| !key.trim().is_empty())
}

fn invalid(error: StoreKeyError) -> HintedError {
    HintedError::new(error.to_string())
}

/// Where a new key is kept until the store is encrypted with it.
fn new_key_path(path: &Path) -> PathBuf {
    path.with_extension("key.new")
}

/// What a rotation has done, and what is left to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedKey {
    pub n_tenants: u64,
    /// None if nothing is left to do.
    pub remedy: Option<String>,
}

/// Encrypts the store with a new key.
pub(crate) async fn rotate(opened: &OpenedMemory) -> Result<RotatedKey, HintedError> {
    let failed = |error: StoreError| HintedError::new(error.to_string());
    let OpenedMemory { memory, key_source } = opened;
    match key_source {
        KeySource::NotKept => Err(HintedError::new("there is no store whose key could change")),
        KeySource::Variable => {
            let new = variable(NEW_KEY_VARIABLE).ok_or_else(|| {
                HintedError::new(format!("the key is in {KEY_VARIABLE}, and there is no new one"))
                    .hint(format!("export {NEW_KEY_VARIABLE}=$(openssl rand -hex 32)"))
            })?;
            let n_tenants = memory.rotate_store_key(StoreKey::parse(&new).map_err(invalid)?).await.map_err(failed)?;
            let remedy = format!("set {KEY_VARIABLE} to the new key and restart every gateway of this store");
            Ok(RotatedKey { n_tenants, remedy: Some(remedy) })
        }
        KeySource::Keyring => {
            let new = StoreKey::generate();
            let old = keyring::find(KEYRING_ENTRY).and_then(|key| StoreKey::parse(key.trim()).ok());
            let n_tenants = memory.rotate_store_key(new.clone()).await.map_err(failed)?;
            if let Err(error) = keyring::set(KEYRING_ENTRY, &new.to_text()) {
                // With a key that is not kept anywhere, the store could not be read any more.
                if let Some(old) = old {
                    memory.rotate_store_key(old).await.map_err(failed)?;
                }
                return Err(error);
            }
            Ok(RotatedKey { n_tenants, remedy: None })
        }
        KeySource::File { path, .. } => {
            let (new, waiting) = (StoreKey::generate(), new_key_path(path));
            new.write_file(&waiting).map_err(invalid)?;
            let n_tenants = memory.rotate_store_key(new).await.map_err(failed)?;
            std::fs::rename(&waiting, path)
                .map_err(|error| HintedError::new(format!("cannot replace {}: {error}", path.display())))?;
            Ok(RotatedKey { n_tenants, remedy: None })
        }
    }
}
