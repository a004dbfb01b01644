//! Opens the memory that the config asks for, with the key that seals it.

use std::path::PathBuf;
use std::sync::Arc;

use aside_memory::{Durability, KeyFile, Memory, MemoryOptions, StoreKey, StoreLocation};
use aside_session::serve_table::{self, StoreChoice};
use aside_session::{HintedError, keyring};

use crate::config::{Config, GatewayOptions};
use crate::gateway::now;

/// The variable and the entry of the keyring that hold the store's key.
const KEY_VARIABLE: &str = "ASIDE_STORE_KEY";
const KEYRING_ENTRY: &str = "gateway-store";

/// Where replies wait while a shared store is down, and how many bytes of them.
const SPILL_FILE: &str = "gateway-spill.db";
const SPILL_BYTES: u64 = 64 << 20;

/// The memory, and the key file if it was made just now.
pub(crate) struct OpenedMemory {
    pub(crate) memory: Memory,
    pub(crate) new_key_file: Option<PathBuf>,
}

pub(crate) async fn open(options: &GatewayOptions, config: &Config) -> Result<OpenedMemory, HintedError> {
    let serve = &config.serve;
    let location = match &serve.store {
        StoreChoice::None => StoreLocation::None,
        StoreChoice::Sqlite => StoreLocation::Sqlite(database(options)?),
        StoreChoice::Postgres(url) => StoreLocation::Postgres(url.clone()),
    };
    let (key, new_key_file) = store_key(options, &serve.store)?;
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
        memory = memory.with_spill(data_folder(options)?.join(SPILL_FILE), SPILL_BYTES);
    }
    let memory = Memory::open(memory, Arc::clone(&config.dialects), now()).await.map_err(|error| {
        HintedError::new(error.to_string()).hint("--store none runs without a memory; nothing lost is then restored")
    })?;
    Ok(OpenedMemory { memory, new_key_file })
}

fn database(options: &GatewayOptions) -> Result<PathBuf, HintedError> {
    Ok(data_folder(options)?.join("gateway.db"))
}

fn data_folder(options: &GatewayOptions) -> Result<&PathBuf, HintedError> {
    let folder = options.folders.data.as_ref().ok_or_else(|| {
        HintedError::new("there is no data folder").hint("set HOME, or ASIDE_DATA_DIR to a folder, or --store none")
    })?;
    aside_session::create_private_folder(folder)
        .map_err(|error| HintedError::new(format!("cannot make {}: {error}", folder.display())))?;
    Ok(folder)
}

/// From the environment, the keyring, or a file next to the database.
fn store_key(options: &GatewayOptions, store: &StoreChoice) -> Result<(StoreKey, Option<PathBuf>), HintedError> {
    let invalid = |error: aside_memory::StoreKeyError| HintedError::new(error.to_string());
    let given = std::env::var(KEY_VARIABLE).ok().filter(|key| !key.trim().is_empty());
    if let Some(key) = given.or_else(|| keyring::find(KEYRING_ENTRY)) {
        return Ok((StoreKey::parse(key.trim()).map_err(invalid)?, None));
    }
    match store {
        StoreChoice::None => Ok((StoreKey::generate(), None)),
        StoreChoice::Postgres(_) => Err(HintedError::new("a shared store needs a key that all replicas have")
            .hint(format!("export {KEY_VARIABLE}=… with 64 hexadecimal digits"))),
        StoreChoice::Sqlite => {
            let path = database(options)?.with_extension("key");
            let (key, file) = StoreKey::load_or_create_file(&path).map_err(invalid)?;
            Ok((key, (file == KeyFile::Created).then_some(path)))
        }
    }
}
