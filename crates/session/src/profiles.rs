//! Writes and removes profiles: named sets of thinking settings with a model.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use aside_core::settings::{Layer, SettingKey, Settings};

use crate::error::HintedError;
use crate::settings::{self, ProfileName};
use crate::user_files::UserFolders;

/// Writes a profile and returns the path of its file.
pub fn write(
    folders: &UserFolders,
    name: &ProfileName,
    model: Option<&str>,
    settings: &Settings,
) -> Result<PathBuf, HintedError> {
    let mut file = settings::profile_file(folders.require_config()?, name)?;
    file.add_header_comment(&format!(
        "aside profile load {name}. What is not here is left to config.toml and the dialect."
    ));
    file.set_text("model", model)?;
    for key in SettingKey::ALL.iter().copied().filter(|key| key.is_about_thinking()) {
        // Only the user's own values are saved: a default in a profile would
        // override the dialect.
        match settings.get(key).filter(|(_, layer)| layer.is_set_by_user()) {
            Some((value, _)) => file.set(key, value)?,
            None => drop(file.unset(key)?),
        }
    }
    file.write()?;
    Ok(file.path().to_owned())
}

/// Says which settings of these layers a profile does not hold.
pub fn left_out(settings: &Settings, layers: &[Layer]) -> Option<String> {
    let keys = layers.iter().flat_map(|layer| settings.layer(*layer)).map(|(key, _)| key);
    let keys: BTreeSet<&str> = keys.filter(|key| !key.is_about_thinking()).map(SettingKey::name).collect();
    let keys: Vec<&str> = keys.into_iter().collect();
    (!keys.is_empty())
        .then(|| format!("note: {}: not saved; a profile holds only the model and `reasoning.*`", keys.join(", ")))
}

/// Removes a profile. Returns true if it was the active one.
pub fn remove(folders: &UserFolders, name: &ProfileName) -> Result<bool, HintedError> {
    let folder = folders.require_config()?;
    let file = settings::existing_profile(folder, name)?;
    let mut config = settings::config_file(folder)?;
    let is_active = config.contents()?.profile.as_deref() == Some(&name.to_string());
    // The config first: it must never name a missing profile.
    if is_active {
        config.set_text("profile", None)?;
        config.write()?;
    }
    let path = file.path();
    fs::remove_file(path).map_err(|error| HintedError::new(format!("cannot delete {}: {error}", path.display())))?;
    Ok(is_active)
}
